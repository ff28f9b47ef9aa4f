"""Parts for waterjar by somebody else. Each file follows the contract of a file of waterjar's own."""
