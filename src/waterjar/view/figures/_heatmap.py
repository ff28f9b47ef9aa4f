"""What figures with coloured squares share: hatching, numbers in squares, and how panels are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panel_grid(panels: int, width: float, height: float, most: int = 3) -> tuple[int, int, tuple[float, float]]:
    """(rows, columns, size in inches) for so many panels of this size, with room for a colour bar."""
    columns = max(1, min(most, panels))
    rows = max(1, -(-panels // columns))
    return rows, columns, (width * columns + 1.0, height * rows + 0.4)


def colour_bar(figure: Figure, picture: Any, panels: Any, label: str) -> None:
    """The scale of colours beside all panels: a quarter of an inch wide, and at most four long."""
    width, height = figure.get_size_inches()
    shrink = min(0.8, 4.0 / height)
    figure.colorbar(
        picture, ax=panels, panchor=False, label=label, shrink=shrink, fraction=0.25 / width,
        aspect=shrink * height / 0.25, anchor=(0.0, 0.5 if shrink == 0.8 else 1.0),
    )  # fmt: skip


def hatch(ax: Axes, where: NDArray[np.bool_], colour: str = "#777777") -> None:
    """Hatch the squares (row, column) of an image where something is missing or censored."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - an extra

    for i, j in zip(*np.nonzero(where), strict=True):
        corner = (float(j) - 0.5, float(i) - 0.5)
        ax.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor=colour, linewidth=0, gid="hatched"))


def write_in(
    ax: Axes, picture: Any, texts: NDArray[Any], size: float = 7.0, box: NDArray[np.bool_] | None = None
) -> None:
    """Write a text into every square, black or white, whichever is easier to read on its colour; `box` puts that
    colour behind it, so that it stands clear of a hatch.
    """
    values: NDArray[np.float64] = np.ma.filled(np.ma.asarray(picture.get_array(), float), np.nan)
    for (i, j), text in np.ndenumerate(texts):
        if not text:
            continue
        back = picture.cmap(picture.norm(values[i, j])) if np.isfinite(values[i, j]) else (1.0, 1.0, 1.0, 1.0)
        dark = 0.299 * back[0] + 0.587 * back[1] + 0.114 * back[2] < 0.5
        behind = {"facecolor": back, "edgecolor": "none", "pad": 0.6} if box is not None and box[i, j] else None
        ax.text(j, i, text, ha="center", va="center", fontsize=size, color="white" if dark else "black", bbox=behind)
