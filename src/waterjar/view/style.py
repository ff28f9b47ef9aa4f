"""The house style, names made fit to be drawn, and the stamp that ties every figure to the runs it was made from."""

from __future__ import annotations

import functools
import io
import json
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from waterjar._version import __version__
from waterjar.errors import WaterjarError, missing_extra
from waterjar.run.disk import write_file
from waterjar.view.short_names import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008): told apart with every common colour-vision deficiency; yellow left out, too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES: tuple[Any, ...] = (
    "-", "--", "-.", ":", (0, (7, 1)), (0, (1, 3)), (0, (3, 1, 1, 1)), (0, (8, 3, 2, 3)), (0, (2, 2)),
    (0, (6, 2, 1, 2, 1, 2)), (0, (12, 3)), (0, (4, 1, 4, 4)),
)  # fmt: skip
"""Twelve that are told apart without colour."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
"""Beyond colour, so that a figure survives a black-and-white printer."""
GREY = "#8a8a8a"
_LACKING, _HAIR = "□", "\u200a"

_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.dpi": 120,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "text.usetex": False,
    "text.parse_math": True,
    "axes.formatter.useoffset": False,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "waterjar",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}

_STAMP, _OURS = "_waterjar_roots", "_waterjar_ours"
_LINES_OF_LEGEND = 4
"""For which the sizes of figures have room; a figure of ours grows by what a legend has more."""


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in the house style, and leave matplotlib as it was."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_extra("matplotlib", "view", "figures") from error
    with mpl.rc_context(_STYLE):
        yield


def axes(ax: Axes | None, size: tuple[float, float] = (6.0, 3.6)) -> Axes:
    """The axes to draw on: those given, or one in a new figure that no global state knows of."""
    return ax if ax is not None else canvas(None, size).subplots()


def canvas(figure: Figure | None, size: tuple[float, float]) -> Figure:
    """The figure to draw on: the one given, or a new one that no global state knows of."""
    if figure is not None:
        return figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    made = Figure(figsize=size)
    setattr(made, _OURS, True)
    FigureCanvasAgg(made)
    return made


def figure_of(ax: Axes) -> Figure:
    """The figure an axes belongs to."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise WaterjarError("the axes given as ax= belong to no figure any more")
    return figure


def stamp(figure: Figure, roots: Iterable[str | None]) -> Figure:
    """Note the root hashes of the runs a figure shows; `save` writes them into the file.

    A run that is not sealed has none: it is stamped as `unsealed`, so that the file says so too.
    """
    known: list[str] = getattr(figure, _STAMP, [])
    new = [root or "unsealed" for root in roots]
    setattr(figure, _STAMP, [*known, *(root for root in dict.fromkeys(new) if root not in known)])
    return figure


def roots_of(figure: Figure) -> list[str]:
    """The root hashes a figure is stamped with."""
    return list(getattr(figure, _STAMP, []))


def check_target(path: str | Path) -> Path:
    """The path as a file that a figure can be saved to, or the error that says what was expected."""
    target = Path(path)
    if target.suffix.lower() not in (".png", ".pdf", ".svg") or target.is_dir():
        raise WaterjarError(
            f"{target}: a figure is saved as .png, .pdf or .svg, not as {target.suffix or 'no suffix'!r}"
        )
    return target


def save(figure: Figure, path: str | Path, *, dpi: float | None = None) -> Path:
    """Write a figure as PNG, PDF or SVG with the root hashes in its metadata. The same figure, the same bytes.

    `dpi` is the resolution of a PNG; 200 by default.
    """
    target = check_target(path)
    return write_file(target, picture(figure, target.suffix.lower(), dpi=dpi))


def picture(figure: Figure, kind: str, *, dpi: float | None = None) -> bytes:
    """What `save` writes to a file that ends in `kind`."""
    note = json.dumps({"waterjar": __version__, "roots": roots_of(figure)})
    fields: dict[str, dict[str, Any]] = {
        ".png": {"Description": note, "Software": f"waterjar {__version__}"},
        ".pdf": {"Keywords": note, "Creator": f"waterjar {__version__}", "CreationDate": None},
        ".svg": {"Description": note, "Creator": f"waterjar {__version__}", "Date": None},
    }
    drawn_bytes = io.BytesIO()
    with house_style():
        figure.savefig(drawn_bytes, format=kind[1:], metadata=fields[kind], dpi=dpi or _STYLE["savefig.dpi"])
    return drawn_bytes.getvalue()


def line_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a dash for each name, the same whatever order they are drawn in; 84 differ, 12 of them in grey.

    Neighbours differ in both.
    """
    return {
        name: {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)]} for i, name in enumerate(names)
    }


def marker_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each name; 63 of them differ."""
    return {
        name: {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]} for i, name in enumerate(names)
    }


def drawn(text: str) -> str:
    """Text from a file as it is meant: `$` is a dollar sign and no formula; what has no glyph is shown as □.

    Line breaks become spaces, other control characters □. Call it within the house style: the font is the user's.
    """
    glyphs = _glyphs(_families())
    flat = " ".join(text.split())
    shown = (c if ord(c) in glyphs and unicodedata.category(c)[0] != "C" else _LACKING for c in flat)
    return "".join(shown).replace("$", r"\$")


def _families() -> tuple[str, ...]:
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    return tuple(mpl.rcParams["font.family"])


@functools.cache
def _glyphs(families: tuple[str, ...]) -> frozenset[int]:
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415

    return frozenset().union(*(get_font(findfont(FontProperties(family=[f]))).get_charmap() for f in families))


def labels(names: Iterable[str], *, most: int = 32, width: int | None = None) -> dict[str, str]:
    """name -> how it is drawn: shortened, made safe, and broken into lines of `width` characters.

    matplotlib leaves a label that begins with `_` out of legends: a hair space goes before it.
    """
    shown = {name: drawn(label) for name, label in short(names, most).items()}
    if width is not None:
        shown = {name: _in_lines(label, width) for name, label in shown.items()}
    before = _HAIR if ord(_HAIR) in _glyphs(_families()) else " "
    return {name: before + label if label.startswith("_") else label for name, label in shown.items()}


def _in_lines(label: str, width: int) -> str:
    """Lines of at most `width` characters; a line may end behind a gap, too."""
    lines = textwrap.wrap(label.replace(r"\$", "$").replace("…", "… "), width)
    return "\n".join(line.replace("… ", "…") for line in lines).replace("$", r"\$")


def legend_outside(
    figure: Figure, handles: dict[str, Any], title: str | None, *, where: Literal["lower", "upper"] = "lower"
) -> None:
    """A legend below (or above, `where="upper"`) all panels, in as many columns as fit on the paper.

    Its title is broken into lines that fit. A figure of ours grows with it, so that panels keep their height.
    """
    longest = max((len(label) for label in handles), default=1)
    columns = int(figure.get_figwidth() / (0.45 + 0.068 * longest))
    columns = max(1, min(columns, len(handles)))
    said = [] if title is None else _wrapped(title, figure.get_figwidth() / 0.07)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center" if where == "lower" else "outside upper center",
        ncols=columns,
        title="\n".join(said) or None,
    )
    if getattr(figure, _OURS, False):
        more = -(-len(handles) // columns) + len(said) - _LINES_OF_LEGEND
        figure.set_figheight(figure.get_figheight() + 0.17 * max(0, more))


def beside_legend(names: Iterable[str], least: float) -> float:
    """The height of a figure in inches beside which a legend of these names, and its title, fits."""
    lines = sum(1 + name.count("\n") for name in names)
    return max(least, 1.6 + 0.19 * lines)


def foot_note(figure: Figure, text: str) -> None:
    """A line or two below all panels: what is shown, of how many seeds, by which test."""
    lines = _wrapped(text, figure.get_figwidth() / 0.062)
    figure.supxlabel("\n".join(lines), fontsize=7.5, color="#555555")


def _wrapped(text: str, most: float) -> list[str]:
    """Lines of at most so many characters."""
    return [line for part in text.split("\n") for line in textwrap.wrap(part, int(most))]


def counted(numbers: Iterable[int], what: str) -> str:
    """How many, where cells may differ in it.

    >>> counted({3, 2, 0}, "seed"), counted([1], "seed"), counted([], "seed")
    ('2 or 3 seeds', '1 seed', 'no seed')
    """
    known = sorted({int(n) for n in numbers} - {0})
    if not known:
        return f"no {what}"
    return " or ".join(map(str, known)) + f" {what}" + ("s" if known != [1] else "")


def axis_end(units: str, direction: str) -> str:
    """What follows a name on an axis: its unit, and the arrow that says which way is better.

    >>> axis_end("s", "lower"), axis_end("1", "none")
    (' (s) ↓', '')
    """
    arrows = {"higher": " ↑", "lower": " ↓", "zero": " →0"}
    return ("" if units == "1" else f" ({units})") + arrows.get(direction, "")
