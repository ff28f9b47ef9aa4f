"""LaTeX that compiles by itself, with its figures as PDF in a folder beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from waterjar._version import __version__
from waterjar.run.shown import visible
from waterjar.view.numbers import one_line, shorten
from waterjar.view.report import blocks as b
from waterjar.view.report.renderers.pictures import caption_of, write_with_pictures

_LONG = 90
_MOST_ROWS = 60
_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", "±": r"$\pm$",
    "−": r"$-$", "×": r"$\times$", "·": r"$\cdot$", "→": r"$\to$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "≤": r"$\le$", "≥": r"$\ge$", "∞": r"$\infty$", "τ": r"$\tau$", "ρ": r"$\rho$", "α": r"$\alpha$", "–": "--",
    "—": "---", "…": r"\ldots{}", "“": "``", "”": "''", "’": "'", "‘": "`", "*": r"$^{*}$", '"': r"\textquotedbl{}",
}  # fmt: skip
_RAISED = dict(zip("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789", strict=True))
_HEAD = r"""\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{array,booktabs,longtable,graphicx,textcomp}
\usepackage[margin=2cm]{geometry}
\usepackage[hidelinks]{hyperref}
\setlength{\parindent}{0pt}\setlength{\parskip}{4pt plus 1pt}
"""


def write(report: b.Report, path: Path) -> None:
    """Write the document, and the charts as PDF beside it."""
    write_with_pictures(report, path, ".pdf", render)


def render(report: b.Report, pictures: Mapping[str, str]) -> str:
    """The report as a LaTeX document; `pictures` says where a chart's picture is."""
    title = escape(report.title, 200)
    parts = [
        f"{_HEAD}\\title{{{title}}}\n\\author{{}}\n\\date{{}}\n\\begin{{document}}\n\\maketitle",
        escape(report.lead),
        _callout(report.status),
    ]
    for section in report.sections:
        parts.append(f"\\section{{{escape(section.title)}}}")
        parts += [_block(block, pictures) for block in section.blocks]
    roots = "".join(f"% {root}\n" for root in report.roots)
    end = f"% made by waterjar {__version__} from the runs with these root hashes\n{roots}\\end{{document}}\n"
    return "\n\n".join(part for part in [*parts, end] if part)


def escape(text: str, most: int = 3000) -> str:
    r"""Text that LaTeX prints as it is; a sign that no common font has is named by its code.

    >>> print(escape("ewc_on, 50 % ± 1, 10⁻⁵"))
    ewc\_on, 50 \% $\pm$ 1, 10$^{-5}$
    """
    made = []
    for sign in visible(" ".join(shorten(text, most).split())):
        if sign in _RAISED:
            made.append(f"$^{{{_RAISED[sign]}}}$")
        elif sign in _SIGNS:
            made.append(_SIGNS[sign])
        elif ord(sign) < 0x180 and sign.isprintable():
            made.append(sign)
        else:
            made.append(f"[U+{ord(sign):04X}]")
    return "".join(made).replace("}$$^{", "")


def _callout(block: b.Callout) -> str:
    return f"\\begin{{quote}}\\textbf{{{escape(block.title)}.}} {escape(block.text)}\\end{{quote}}"


def _block(block: b.Block, pictures: Mapping[str, str]) -> str:  # noqa: PLR0911 - one line per kind of block
    match block:
        case b.Heading(text):
            return f"\\subsection*{{{escape(text)}}}"
        case b.Text(text):
            return escape(text)
        case b.Callout():
            return _callout(block)
        case b.Items(items):
            lines = [
                f"  \\item {escape(item)}" if isinstance(item, str) else _described(item[0], item[1]) for item in items
            ]
            return "\\begin{itemize}\n" + "\n".join(lines) + "\n\\end{itemize}"
        case b.Code(title, text):
            lines = [escape(line, 200) or r"\strut" for line in text.splitlines()]
            indents = [len(line) - len(line.lstrip()) for line in text.splitlines()]
            body = "\\\\\n".join(f"\\hspace*{{{0.5 * n:g}em}}{line}" for n, line in zip(indents, lines, strict=True))
            return f"\\subsection*{{{escape(title)}}}\n{{\\footnotesize\\ttfamily\\raggedright\n{body}\\par}}"
        case b.Verdicts():
            columns = ["learner", "verdict", *(label.partition("\n")[0] for label, _ in block.verdicts[0].facts)]
            rows = [(one.name, one.short, *(value for _, value in one.facts)) for one in block.verdicts]
            return _grid(columns, rows, range(2, len(columns))) + f"\n\n{escape(block.caption)}"
        case b.Table():
            table = _grid(block.columns, block.rows, block.numeric)
            return f"\\subsection*{{{escape(block.title)}}}\n{table}\n\n{escape(block.caption)}".rstrip()
        case b.Pictures():
            return f"{escape(block.caption)} In the page: {escape('; '.join(one.caption for one in block.pictures))}."
        case b.Chart():
            if block.name not in pictures:
                return f"\\subsection*{{{escape(block.title)}}}\n{escape(block.alt)}"
            size = r"width=\linewidth,height=0.85\textheight,keepaspectratio"
            return (
                "\\begin{figure}[htbp]\\centering\n"
                f"\\includegraphics[{size}]{{{pictures[block.name]}}}\n"
                f"\\caption{{{escape(block.title)}. {escape(caption_of(block))}}}\n\\end{{figure}}"
            )


def _described(term: str, text: str) -> str:
    return f"  \\item \\textbf{{{escape(term, 80)}:}} {escape(text)}"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[int]) -> str:
    """A booktabs table over pages, in columns of equal share that wrap."""
    share = 0.97 / len(columns)
    layout = "".join(
        f"p{{\\dimexpr {share:.3f}\\linewidth-2\\tabcolsep}}" if i not in numeric else
        f">{{\\raggedleft\\arraybackslash}}p{{\\dimexpr {share:.3f}\\linewidth-2\\tabcolsep}}"
        for i in range(len(columns))
    )  # fmt: skip
    lines = [
        " & ".join(escape(one_line(cell), _LONG) for cell in row) + r" \\" for row in (columns, *rows[:_MOST_ROWS])
    ]
    more = len(rows) - _MOST_ROWS
    rest = f"\n{more} more rows: use --format csv." if more > 0 else ""
    body = "\n".join(lines[1:])
    return (
        f"{{\\scriptsize\\begin{{longtable}}{{{layout}}}\n\\toprule\n{lines[0]}\n\\midrule\\endhead\n{body}\n"
        f"\\bottomrule\n\\end{{longtable}}}}{rest}"
    )
