"""A LaTeX table (booktabs) of text that may hold anything."""

from __future__ import annotations

from collections.abc import Sequence

from waterjar.run.shown import visible


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A tabular with booktabs rules; the first two columns to the left, the others to the right."""
    from waterjar.view.report.renderers.latex import escape  # noqa: PLC0415 - --help stays light

    layout = "ll" + "r" * (len(header) - 2)
    lines = [" & ".join(escape(visible(cell)) for cell in cells) + r" \\" for cells in (header, *rows)]
    body = "\n".join(lines[1:])
    return f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{lines[0]}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
