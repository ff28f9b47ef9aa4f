"""The house style, and the stamp that ties every figure to the runs it was made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterjar._version import __version__
from waterjar.errors import WaterjarError, missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito (2008): told apart with every common colour-vision deficiency; yellow left out, too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", "-.", ":")
"""Beyond colour, so that a figure survives a black-and-white printer."""

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
    "svg.hashsalt": "waterjar",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}

_STAMP = "_waterjar_roots"


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


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PNG, PDF or SVG with the root hashes in its metadata. The same figure, the same bytes."""
    target = Path(path)
    note = json.dumps({"waterjar": __version__, "roots": roots_of(figure)})
    fields: dict[str, dict[str, Any]] = {
        ".png": {"Description": note, "Software": f"waterjar {__version__}"},
        ".pdf": {"Keywords": note, "Creator": f"waterjar {__version__}", "CreationDate": None},
        ".svg": {"Description": note, "Creator": f"waterjar {__version__}", "Date": None},
    }
    if target.suffix.lower() not in fields:
        raise WaterjarError(
            f"{target}: a figure is saved as .png, .pdf or .svg, not as {target.suffix or 'no suffix'!r}"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with house_style():
        figure.savefig(target, metadata=fields[target.suffix.lower()])
    return target


def line_styles(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """A colour and a dash for each name, the same whatever order they are drawn in."""
    return {
        name: {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i // len(COLOURS) % len(LINES)]}
        for i, name in enumerate(names)
    }
