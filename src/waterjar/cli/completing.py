"""What the shell offers for a value: names of metrics, figures, formats and settings, and the keys of a study's runs.

Nothing is imported before somebody presses tab there. Names of metrics need all families, which takes a second; all
else is read from folders and from the study's index. What cannot be read is not offered, and nothing is said of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

import typer


def metrics(incomplete: str) -> list[str]:
    """Names and symbols of metrics, behind those that stand there already: `ad,p`."""
    from waterjar.diagnose.registry import metric_words  # noqa: PLC0415 - not for --help

    return _of_list(incomplete, metric_words())


def families_or_metrics(incomplete: str) -> list[str]:
    """The same, and names of families."""
    from waterjar.diagnose.registry import families, metric_words  # noqa: PLC0415

    return _of_list(incomplete, [*families(), *metric_words()])


def figures(incomplete: str) -> list[str]:
    """Names of figures, and the words for several."""
    from waterjar.run.shelf import SHELVES  # noqa: PLC0415

    return _beginning(incomplete, ["all", "album", *SHELVES["figures"].names()])


def formats(incomplete: str) -> list[str]:
    """Formats that runs are exported to and imported from."""
    from waterjar.run.shelf import SHELVES  # noqa: PLC0415

    return _beginning(incomplete, SHELVES["formats"].names())


def kinds(incomplete: str) -> list[str]:
    """Kinds of studies."""
    from waterjar.run.shelf import SHELVES  # noqa: PLC0415

    return _beginning(incomplete, SHELVES["kinds"].names())


def settings(incomplete: str) -> list[str]:
    """Settings of the families, by their own names, with the = behind them."""
    from waterjar.diagnose.registry import families  # noqa: PLC0415

    if "=" in incomplete:
        return []
    names = {name: list(family.settings_model.model_fields) for name, family in families().items()}
    own = dict.fromkeys(f"{key}=" for keys in names.values() for key in keys)
    return _beginning(incomplete, [*own, *(f"{name}.{key}=" for name, keys in names.items() for key in keys)])


def conditions(context: typer.Context, incomplete: str) -> list[str]:
    """The keys of a study's runs, as far as its index knows them."""
    from waterjar.run.cells import flat  # noqa: PLC0415
    from waterjar.run.index import read_index  # noqa: PLC0415

    path = _place(context)
    before, _, last = incomplete.rpartition(" ")
    keys = {key: None for _, entry in read_index(path).values() for key in flat(entry.config)}
    return [f"{before} {key}=".lstrip() for key in sorted((*keys, "status", "name")) if key.startswith(last)]


def cells(context: typer.Context, incomplete: str) -> list[str]:
    """Names of a study's cells."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run.study import open_study  # noqa: PLC0415

    with contextlib.suppress(WaterjarError, OSError):
        return _beginning(incomplete, open_study(_place(context)).cell_names.values())
    return []


def one_of(*words: str) -> Callable[[str], list[str]]:
    """A completer for words that are known here."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(incomplete, words)

    return complete


def _place(context: typer.Context) -> Path:
    """The study that the command is given; behind an option without a value it is not taken apart yet."""
    given = [*(word for word in context.args if not word.startswith("-")), context.params.get("path")]
    return Path(next((place for place in given if place), "."))


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def _of_list(incomplete: str, words: Iterable[str]) -> list[str]:
    """Words that may follow the last comma, with all that stands before it."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{word}" for word in words if word.startswith(last) and word not in before.split(",")]
