"""What people look at: figures, and later reports and a live page."""
