"""Figures, one a file: `figures.draw("learning_curves", study)` calls the function `learning_curves` of that file.

The contract. Every file `<name>.py` here whose name does not begin with `_` is a figure, and has

- `TITLE`, a few words; `CAPTION`, one or two plain sentences on how to read it;
- `NEEDS`, the families of diagnostics that it shows (`a|b`: any of them); empty: recorded accuracies are enough;
- `data(source, **settings) -> pandas.DataFrame`: the numbers that are drawn, tidy, with bounds of bands, counts (`n`),
  reasons of what is missing, the name of the cell, and the seed where a row is about one;
- `<name>(source, *, ax= or figure=, **settings) -> Figure`, which draws what `data` gave and nothing else, in the house
  style, stamped with the root hashes of its runs. matplotlib is imported in there, not at the top.

`source` is a run, a study, a `Diagnosis` (what it has measured is not measured again) or the result of a family. A new
figure is ONE new file here, its test, and its example in docs/gallery; or one file of another package (docs/parts.md).
"""

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waterjar.errors import unknown_name
from waterjar.run.join import UnlikeError
from waterjar.run.shelf import SHELVES
from waterjar.view.style import save

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from waterjar.view.results import Source

__all__ = ["SHELF", "Description", "available", "data", "describe", "described", "draw", "save"]

SHELF = SHELVES["figures"]
_NAMES = frozenset(("metrics", "metric", "x", "y", "cost", "accuracy"))
"""Settings of figures that name metrics: symbols stand there as well as names, and names of what was recorded."""


@dataclass(frozen=True)
class Description:
    """What a figure says of itself."""

    name: str
    title: str
    caption: str
    needs: tuple[str, ...]
    """Families of diagnostics; `a|b` where any of them will do."""
    settings: tuple[str, ...]
    """Its own settings; further ones go to the families, if it needs any."""


def available() -> list[str]:
    """The names of all figures, ours and those of other packages."""
    return list(SHELF.names())


def describe(name: str) -> Description:
    """Title, caption and needs of a figure, without matplotlib.

    >>> describe("tau_heatmap").needs
    ('rigidity',)
    """
    module = _module(name)
    own = tuple(key for key in _settings(getattr(module, name)) if key not in ("ax", "figure"))
    return Description(name, module.TITLE, module.CAPTION, module.NEEDS, own)


def described() -> tuple[list[Description], dict[str, str]]:
    """All figures that can be drawn, and why others cannot, by name: what another package brings may be broken."""
    found, faults = SHELF.modules()
    return [describe(name) for name in found], faults


def data(name: str, source: "Source", **settings: Any) -> "pd.DataFrame":
    """The numbers behind a figure, as a tidy table."""
    function = _module(name).data
    _check(name, function, settings)
    settings = _without_symbols(settings)
    with SHELF.calling(name), _saying_which_runs(source):
        found: pd.DataFrame = function(source, **settings)
        if not hasattr(found, "columns"):
            raise TypeError(f"expected a DataFrame, and its data gave {type(found).__name__}")
    return found


def draw(name: str, source: "Source", **settings: Any) -> "Figure":
    """Draw a figure by its name."""
    function = getattr(_module(name), name)
    _check(name, function, settings)
    settings = _without_symbols(settings)
    with SHELF.calling(name), _saying_which_runs(source):
        drawn: Figure = function(source, **settings)
        if not hasattr(drawn, "savefig"):
            raise TypeError(f"expected a Figure, and it gave {type(drawn).__name__}")
        if name not in SHELF.ours:  # some of what is wrong shows when it is laid out: here its package can be named
            drawn.draw_without_rendering()
    return drawn


@contextlib.contextmanager
def _saying_which_runs(source: "Source") -> Iterator[None]:
    """Of runs that do not fit together, say which they are, as a diagnosis does."""
    from waterjar.diagnose.fitting import unlike  # noqa: PLC0415 - not for a list of figures
    from waterjar.run.study import Study  # noqa: PLC0415

    try:
        yield
    except UnlikeError as error:
        study = getattr(source, "study", source)
        apart = unlike(study) if isinstance(study, Study) else {}
        if not isinstance(study, Study) or not apart:
            raise
        raise UnlikeError("; ".join(f"{study.cell_names[cell]}: {why}" for cell, why in apart.items())) from error


def _without_symbols(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that name metrics, with names in the place of symbols; `metrics="ACC,BWT"` is a list of two."""
    from waterjar.diagnose.registry import metric_name  # noqa: PLC0415 - the registry imports every family

    found = dict(settings)
    for key in _NAMES.intersection(settings):
        value = settings[key]
        if isinstance(value, str):
            words = [metric_name(word.strip()) for word in value.split(",")]
            found[key] = words if key == "metrics" else metric_name(value)
        elif isinstance(value, list | tuple):
            found[key] = [metric_name(word) if isinstance(word, str) else word for word in value]
    return found


def of_recorded_alone(settings: dict[str, Any]) -> bool:
    """Whether settings ask for what was recorded (`metrics="train/loss"`), and for no metric: no family is needed."""
    from waterjar.diagnose.registry import metrics  # noqa: PLC0415 - the registry imports every family

    given = [settings[key] for key in _NAMES.intersection(settings)]
    words = [word for value in given for word in (value.split(",") if isinstance(value, str) else value)]
    return bool(words) and not set(_without_symbols({"metrics": words})["metrics"]) & set(metrics())


def _module(name: str) -> Any:
    return SHELF.module(name)


def _settings(function: Any) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def _check(name: str, function: Any, settings: dict[str, Any]) -> None:
    """Refuse a setting that the figure does not have; what goes on to a family is checked there."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = _settings(function)
    for key in settings:
        if key not in known:
            raise unknown_name(f"{name}: setting", key, known)
