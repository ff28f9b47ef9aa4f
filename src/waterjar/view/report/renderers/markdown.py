"""Markdown for a repository or a wiki, with its pictures in a folder beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from waterjar._version import __version__
from waterjar.run.shown import visible
from waterjar.view.numbers import one_line, shorten
from waterjar.view.report import blocks as b
from waterjar.view.report.renderers.pictures import caption_of, write_with_pictures

_LONG = 200
_MOST_ROWS = 60


def write(report: b.Report, path: Path) -> None:
    """Write the text, and the charts as SVG beside it."""
    write_with_pictures(report, path, ".svg", render)


def render(report: b.Report, pictures: Mapping[str, str]) -> str:
    """The report as Markdown; `pictures` says where a chart's picture is."""
    parts = [f"# {escape(report.title)}", escape(report.lead), _callout(report.status)]
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        parts += [_block(block, pictures) for block in section.blocks]
    where = "; the root hashes of the runs are listed under Seals" if report.roots else ""
    parts.append(f"Made by waterjar {__version__}{where}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str, most: int = 4000) -> str:
    r"""Text that Markdown shows as it is, in one line.

    >>> print(escape("<b>a_b</b> *x* | [y](z)"))
    \<b\>a\_b\</b\> \*x\* \| \[y\](z)
    """
    flat = visible(" ".join(shorten(text, most).split()))
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", flat)


def _callout(block: b.Callout) -> str:
    return f"> **{escape(block.title)}.** {escape(block.text)}"


def _block(block: b.Block, pictures: Mapping[str, str]) -> str:  # noqa: PLR0911 - one line per kind of block
    match block:
        case b.Heading(text):
            return f"### {escape(text)}"
        case b.Text(text):
            return escape(text)
        case b.Callout():
            return _callout(block)
        case b.Items(items):
            return "\n".join(
                f"- {escape(item)}" if isinstance(item, str) else f"- **{escape(item[0], 80)}:** {escape(item[1])}"
                for item in items
            )
        case b.Code(title, text):
            shown = "\n".join(map(visible, text.rstrip().split("\n")))
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
            return f"{escape(title)}\n\n{fence}yaml\n{shown}\n{fence}"
        case b.Verdicts():
            columns = ["learner", "verdict", *(label for label, _ in block.verdicts[0].facts)]
            rows = [(one.name, one.short, *(value for _, value in one.facts)) for one in block.verdicts]
            return _grid(columns, rows) + f"\n\n{escape(block.caption)}"
        case b.Table():
            return (
                f"### {escape(block.title)}\n\n{_grid(block.columns, block.rows)}\n\n{escape(block.caption)}".rstrip()
            )
        case b.Pictures():
            return f"{escape(block.caption)} In the page: {escape('; '.join(one.caption for one in block.pictures))}."
        case b.Chart():
            picture = f"![{escape(block.alt, 1000)}]({pictures[block.name]})" if block.name in pictures else ""
            told = picture or escape(block.alt)
            return f"### {escape(block.title)}\n\n{told}\n\n{escape(caption_of(block))}"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows[:_MOST_ROWS]]
    shown = ["| " + " | ".join(c if c == "---" else escape(one_line(c), _LONG) for c in line) + " |" for line in lines]
    more = len(rows) - _MOST_ROWS
    return "\n".join(shown) + (f"\n\n{more} more rows: use --format csv." if more > 0 else "")
