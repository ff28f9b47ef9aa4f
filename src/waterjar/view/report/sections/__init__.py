"""The sections of a report, one a file: TITLE, ORDER and `blocks(model)`. A new file is a new one."""
