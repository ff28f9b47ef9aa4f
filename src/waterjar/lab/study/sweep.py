"""Sweeps: every combination of values of some settings, each given by its dotted path."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.faults import unknown

_ABSENT = object()


def combinations(
    content: Mapping[str, Any],
    sweep: Mapping[str, tuple[Any, ...]],
    where: str,
    *,
    sections: Sequence[str],
    more: Iterable[str] = (),
) -> Iterator[dict[str, Any]]:
    """The content with every combination of the swept values in it; the last setting varies fastest.

    `sections` are those whose settings can be swept, `more` the dotted names that do not stand in the content.

    >>> content = {"training": {"epochs_t1": 1, "epochs_t2": 1}}
    >>> values = {"training.epochs_t1": (2, 3), "training.epochs_t2": (5,)}
    >>> swept = combinations(content, values, "study", sections=["training"])
    >>> [variant["training"] for variant in swept]
    [{'epochs_t1': 2, 'epochs_t2': 5}, {'epochs_t1': 3, 'epochs_t2': 5}]
    """
    there = _below("", {section: content[section] for section in sections if section in content})
    known = list(dict.fromkeys([*there, *more]))
    for key, values in sweep.items():
        section = key.partition(".")[0]
        if section in content and section not in sections:
            raise WaterjarError(f"{where}: sweep over '{key}': only settings of {', '.join(sections)} can be swept")
        _check(key, values, known, where)
        _check_within(key, sweep, where)
    for chosen in itertools.product(*sweep.values()):
        variant = copy.deepcopy(dict(content))
        # A section before the settings in it, whichever comes first in the file.
        for key, value in sorted(zip(sweep, chosen, strict=True), key=lambda entry: entry[0].count(".")):
            *path, last = key.split(".")
            place = variant
            for part in path:
                place = place.setdefault(part, {})
            place[last] = copy.deepcopy(value)  # settings within it may follow
        yield variant


def _check(key: str, values: tuple[Any, ...], known: list[str], where: str) -> None:
    section = key.partition(".")[0]
    if key not in known:
        beside = [name for name in known if name.partition(".")[0] == section]
        raise WaterjarError(f"{where}: {unknown('sweep over', key, key, beside or known)}")
    if not values:
        raise WaterjarError(f"{where}: sweep over '{key}' has no values")
    for place, value in enumerate(values):
        same = [other for other in values[:place] if other == value]
        if any(isinstance(other, bool) == isinstance(value, bool) for other in same):  # True == 1, and is no number
            raise WaterjarError(f"{where}: sweep over '{key}' has the value {value!r} twice")


def _check_within(key: str, sweep: Mapping[str, tuple[Any, ...]], where: str) -> None:
    """Refuse a setting that is swept by itself and also stands in the values of a section that is swept."""
    parts = key.split(".")
    for length in range(1, len(parts)):
        outer = ".".join(parts[:length])
        for value in sweep.get(outer, ()):
            place = value
            for part in parts[length:]:
                if not isinstance(place, Mapping):
                    raise WaterjarError(
                        f"{where}: sweep over '{outer}' has the value {value!r}, in which '{key}' cannot be swept: "
                        "expected a mapping"
                    )
                place = place.get(part, _ABSENT)
                if place is _ABSENT:
                    break
            else:
                raise WaterjarError(
                    f"{where}: sweep over '{outer}' has the value {value!r}, which gives '{key}', and that is swept by "
                    "itself: leave it out there"
                )


def _below(at: str, settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"{at}{name}"
        if isinstance(value, Mapping):
            yield from _below(f"{at}{name}.", value)
