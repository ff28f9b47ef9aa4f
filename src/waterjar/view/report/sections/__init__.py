"""The sections of a report, one a file: TITLE, ORDER, `appears(story)` and `blocks(story)`. A new file is a new one."""
