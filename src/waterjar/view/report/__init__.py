"""A study as a report: one HTML file that opens anywhere, or Markdown, LaTeX, JSON, CSV, PDF.

story = tell(waterjar.open_study("study"))
write(compose(story), "report.html")
"""

from waterjar.view.report.composing import compose
from waterjar.view.report.formats import FORMATS, write
from waterjar.view.report.story import Story, open_for_report, tell

__all__ = ["FORMATS", "Story", "compose", "open_for_report", "tell", "write"]
