"""A study as a report: one HTML file that opens anywhere, or Markdown, LaTeX, JSON, CSV, PDF.

model = model_of(waterjar.open_study("study"))
write(compose(model), "report.html")
"""

from waterjar.view.report.composing import compose
from waterjar.view.report.formats import FORMATS, write
from waterjar.view.report.model import Model, model_of

__all__ = ["FORMATS", "Model", "compose", "model_of", "write"]
