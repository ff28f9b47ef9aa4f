"""A PDF to print or to send: text, tables and figures, set by matplotlib alone. Figures are vectors, text is text.

No browser and no further package is needed: matplotlib writes PDF, measures text and brings a font with most signs. A
chart is drawn by its own figure of `waterjar.view.figures`, at the top of a page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from waterjar._version import __version__
from waterjar.view.numbers import one_line
from waterjar.view.report import blocks as b
from waterjar.view.report.renderers.pictures import caption_of, draw
from waterjar.view.report.renderers.press import Press
from waterjar.view.style import house_style

_COLOURS = {"good": "#116149", "note": "#0B5C94", "warning": "#7A4A00", "bad": "#A01722"}
_MOST_ROWS = 80
_CODE_LINES = 150


def write(report: b.Report, path: Path) -> Path:
    """Write the report as PDF. The same report, the same bytes."""
    with house_style():
        from matplotlib.backends.backend_pdf import PdfPages  # noqa: PLC0415 - an extra

        note = json.dumps({"waterjar": __version__, "roots": list(report.roots)})
        about = {
            "Title": report.title[:200],
            "Keywords": note,
            "Creator": f"waterjar {__version__}",
            "CreationDate": None,
        }
        with PdfPages(path, metadata=about) as pages:
            press = Press(pages)
            press.words(report.title, size=20, weight="bold", most=200)
            press.words(report.lead, size=10.5)
            _callout(press, report.status)
            for section in report.sections:
                press.heading(section.title, 15)
                for block in section.blocks:
                    _block(press, report, block)
            press.gap(10)
            press.words(f"Made by waterjar {__version__}. The same runs give the same file.", size=8, colour="#57606A")
            press.turn()
    return path


def _callout(press: Press, block: b.Callout) -> None:
    press.gap(3)
    press.words(f"{block.title}. {block.text}", size=9.5, colour=_COLOURS[block.kind], indent=8, bar=True)
    press.gap(3)


def _block(press: Press, report: b.Report, block: b.Block) -> None:
    match block:
        case b.Heading(text):
            press.heading(text, 11)
        case b.Text(text):
            press.words(text)
        case b.Callout():
            _callout(press, block)
        case b.Items(items):
            for item in items:
                press.words(f"• {item}" if isinstance(item, str) else f"• {item[0]}: {item[1]}", indent=8)
        case b.Code(title, text):
            press.heading(title, 11)
            lines = text.splitlines()
            for line in lines[:_CODE_LINES]:
                press.words(line, size=7.5, family="monospace", indent=8 + 4 * (len(line) - len(line.lstrip())), gap=0)
            if len(lines) > _CODE_LINES:
                press.words(f"{len(lines) - _CODE_LINES} more lines are in the study's own file.", size=8)
        case b.Verdicts():
            columns = ["learner", "verdict", *(label for label, _ in block.verdicts[0].facts)]
            rows = [(one.name, one.short, *(value for _, value in one.facts)) for one in block.verdicts]
            _grid(press, columns, rows, range(2, len(columns)), block.caption)
        case b.Table():
            press.heading(block.title, 11)
            _grid(press, block.columns, block.rows, block.numeric, block.caption)
        case b.Chart():
            drawn = draw(report, block)
            if drawn is None:
                press.heading(block.title, 11)
                press.words(block.alt)
            else:
                press.figure(drawn, block.title, caption_of(block))


def _grid(
    press: Press, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int], caption: str
) -> None:
    press.table(columns, rows[:_MOST_ROWS], set(numeric))
    if len(rows) > _MOST_ROWS:
        press.words(f"{len(rows) - _MOST_ROWS} more rows: use --format csv.", size=8)
    if caption:
        press.words(one_line(caption), size=8, colour="#57606A")
