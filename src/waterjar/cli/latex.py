"""A LaTeX table (booktabs) of text that may hold anything."""

from __future__ import annotations

from collections.abc import Sequence

from waterjar.cli.output import visible

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "<": r"$<$",
    ">": r"$>$",
    "≤": r"$\le$",
    "–": "--",
    "*": r"$^{*}$",
}


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(escape("ewc_on, 50 % ± 1"))
    ewc\_on, 50 \% $\pm$ 1
    """
    return "".join(_ESCAPES.get(character, character) for character in visible(text))


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A tabular with booktabs rules; the first two columns to the left, the others to the right."""
    layout = "ll" + "r" * (len(header) - 2)
    lines = [" & ".join(escape(cell) for cell in cells) + r" \\" for cells in (header, *rows)]
    body = "\n".join(lines[1:])
    return f"\\begin{{tabular}}{{{layout}}}\n\\toprule\n{lines[0]}\n\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"
