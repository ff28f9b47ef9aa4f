"""Metrics that other packages bring, as entry points `waterjar.metrics`: declared when ours are, and held to the same.

An entry point's name is the name of a metric; its module declares it with `@metric`, as a file of ours does, and may
declare others beside it. What is wrong with one is told, and leaves nothing of it behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from waterjar.diagnose.declaration import refuse_parts
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.shelf import SHELVES, Part, PartError, tell_once

if TYPE_CHECKING:
    from waterjar.diagnose.registry import Family, Metric

SHELF = SHELVES["metrics"]


def declare_from_outside(metrics: dict[str, Metric], families: dict[str, Family]) -> None:
    """Add the metrics of other packages to `metrics`, where ours stand already; all `families` are ours."""
    SHELF.tell_refusals()
    added: dict[Part, list[str]] = {}
    for part in SHELF.outside().values():
        before, known = dict(metrics), dict(families)
        try:
            added[part] = _declare(part, metrics, families)
        except PartError as error:
            _put_back(metrics, before)
            _put_back(families, known)
            tell_once(str(error))
    for part, names in added.items():  # when all are there: one may be made of another
        try:
            for name in names:
                refuse_parts(metrics[name], metrics.values())
        except WaterjarError as error:
            _put_back(metrics, {name: one for name, one in metrics.items() if name not in names})
            tell_once(str(SHELF.broken(part, str(error))))


def _declare(part: Part, metrics: dict[str, Metric], families: dict[str, Family]) -> list[str]:
    """Import the module of a part, and return the names of the metrics that it has declared."""
    before = {name: one for name, one in metrics.items() if one.compute.__module__ != part.target}
    known = dict(families)
    if part.name in before:
        owner = before[part.name].origin or "waterjar"
        raise SHELF.broken(part, f"passed over: the metric '{part.name}' of {owner} stays")
    SHELF.load(part)
    new = [name for name in metrics if name not in before]
    try:
        if families != known:
            raise WaterjarError("it declares a family; expected metrics of the families that there are")
        if part.name not in new:
            declared = ", ".join(new) or "none"
            raise WaterjarError(f"expected it to declare the metric '{part.name}', and it declares {declared}")
        for name in new:
            if metrics[name].family not in known:
                raise unknown_name(f"metric '{name}': family", metrics[name].family, known)
    except WaterjarError as error:
        raise SHELF.broken(part, str(error)) from error
    metrics.update({name: replace(metrics[name], origin=part.origin) for name in new})
    return new


def _put_back(known: dict[str, Any], before: dict[str, Any]) -> None:
    known.clear()
    known.update(before)
