"""Figures as functions: the figure's own signature and docstring, and any source in the first place."""

from __future__ import annotations

import functools
import inspect
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from waterjar.front.sources import Source, study_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_names() -> list[str]:
    """The names of all figures, ours and those of other packages; none is imported."""
    from waterjar.view.figures import available  # noqa: PLC0415 - not for `import waterjar`

    return available()


def figure_function(name: str) -> Callable[..., Figure]:
    """The figure of that name, as a function that completes in a notebook and tells its settings to `help`."""
    from waterjar.view import figures  # noqa: PLC0415

    own = getattr(figures.SHELF.module(name), name)

    @functools.wraps(own)
    def figure(source: Source, **settings: Any) -> Figure:
        drawn = figures.draw(name, _shown(source), **settings)
        _tell_notebook(type(drawn))
        return drawn

    return figure


def _shown(source: Any) -> Any:
    """What figures take (a run, a study, a diagnosis, a family's result) as it is; of a path, what is there."""
    return study_of(source) if isinstance(source, str | os.PathLike) else source


def _tell_notebook(kind: type[Figure]) -> None:
    """Let Jupyter show figures that no global state knows of, as `%matplotlib inline` would."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        return
    pictures = shell.display_formatter.formatters["image/png"]
    try:
        pictures.lookup_by_type(kind)
    except KeyError:
        pictures.for_type(kind, _png)


def _png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=figure.dpi)
    return picture.getvalue()


class Plots:
    """The figures of one source: `study.plot.learning_curves()`."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        """A figure of this source, by its name; its signature is the figure's own without the source."""
        if name.startswith("_") or name not in figure_names():
            raise absent(name)
        whole = figure_function(name)
        source = self._source

        @functools.wraps(whole)
        def figure(**settings: Any) -> Figure:
            return whole(source, **settings)

        told = inspect.signature(whole)
        figure.__signature__ = told.replace(parameters=list(told.parameters.values())[1:])  # type: ignore[attr-defined]
        return figure

    def __dir__(self) -> list[str]:
        """The names of all figures, for completion."""
        return figure_names()

    def __repr__(self) -> str:
        """Say which there are."""
        return f"<figures: {', '.join(figure_names())}>"


def absent(name: str) -> AttributeError:
    """The error for a figure that there is not, with the nearest name."""
    from waterjar.errors import unknown_name  # noqa: PLC0415

    names = [] if name.startswith("__") else figure_names()  # Python itself asks for such
    return AttributeError(str(unknown_name("figure", name, names)))
