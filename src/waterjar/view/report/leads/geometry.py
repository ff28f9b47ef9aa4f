"""Whether classes became better or worse untangled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import INSIDE_CONE, NOT_UNIQUE
from waterjar.view.numbers import listed, number
from waterjar.view.report.leads._claims import FEW, row, seeds_of
from waterjar.view.report.leads._courses import Course, course, in_layer, ways
from waterjar.view.report.leads._learned import nobody_learned
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

TITLE = "Untangling of classes"
ORDER = 40
_CAPACITY = "capacity"


class _Collapse(NamedTuple):
    """Why capacity at the end says little about classes: in how many seeds, and of how many."""

    narrow: int
    """Seeds in which few directions are left."""
    free: int
    """Seeds in which the anchors at the end are the solver's choice."""
    seeds: int


def sentences(model: Model) -> list[str]:
    """Capacity from begin to end."""
    if "geometry" not in model.diagnosis.results or nobody_learned(model):
        return []
    made = [course(model, "geometry", _CAPACITY, cell) for cell in model.names.values()]
    found = [one for one in made if one is not None]
    if not found:
        return []
    if len(found) > FEW:
        return [_many(model, found)]
    seeds = seeds_of([one.end for one in found])
    return [f"{' '.join(_few(model, found))} (Higher capacity: easier to tell apart; {seeds}.)"]


def caution(model: Model) -> str:
    """For a figure or table of capacity: of which learners it tells little; empty where it tells of all."""
    made = [course(model, "geometry", _CAPACITY, cell) for cell in model.names.values()]
    gone = [one.cell for one in made if one is not None and _collapse(model, one) is not None]
    if not gone:
        return ""
    return (
        f"Capacity at the end tells little about the classes of {listed(gone, FEW)}: in the last layer few directions "
        "are left, or the anchors behind it are not unique."
    )


def _collapse(model: Model, one: Course) -> _Collapse | None:
    """Whether a layer has collapsed at its last snapshot, in any seed; None where it has in none.

    The means of P classes that are apart span P - 1 directions. Where the effective rank of the features is below half
    of that, most of them are gone: any labels of the points lie in the few directions that are left, and capacity is
    high for shuffled labels, too. Where anchors are not unique, or t is inside the cone of the points, the points
    depend on each other or overlap, and what is made of anchors has no value: no more is claimed of capacity then.
    """
    free = np.zeros(0, bool)
    classes = 0
    for cell, whole in by_cell(model.diagnosis.results["geometry"]):
        if cell == one.cell and "dimension" in whole:
            classes = len({str(name).rsplit(":", 1)[-1] for name in whole["manifold"].values})
            ends = in_layer(reasons_of(whole, "dimension"), one.layer)[one.seeds]
            free = np.isin(ends[np.arange(len(ends)), one.last], (INSIDE_CONE, NOT_UNIQUE))
    narrow = _ranks(model, one) < (classes - 1) / 2
    if not free.any() and not narrow.any():
        return None
    return _Collapse(int(narrow.sum()), int(free.sum()), len(free))


def _ranks(model: Model, one: Course) -> np.ndarray:
    """(seed,): effective rank of the same layer at its last snapshot with a value; empty where it was not measured."""
    result = model.diagnosis.results.get("plasticity")
    for cell, whole in by_cell(result) if result is not None else ():
        if cell == one.cell and "effective_rank" in whole and one.layer in whole["layer"].values:
            values = in_layer(whole["effective_rank"], one.layer).astype(float)
            there = np.isfinite(values)
            last = values.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
            return np.asarray(values[np.arange(len(values)), last])
    return np.zeros(0)


def _few(model: Model, found: list[Course]) -> list[str]:
    """Those that went the same way in one sentence, and those of which capacity tells little in one each."""
    said, kept = [], []
    for one in found:
        gone = _collapse(model, one)
        if gone is None:
            kept.append(one)
        else:
            said.append(f"In {one.cell}, {_collapsed(gone, _in(one))}: capacity then tells little about classes.")
    for where in dict.fromkeys(map(_in, kept)):
        lines = [one for one in kept if _in(one) == where]
        for sign, better, verb in ((1, "better", "rose"), (-1, "worse", "fell")):
            if own := [one for one in lines if one.sign == sign]:
                said.append(f"Classes became {better} untangled{where}: capacity {verb} {ways(own, number)}.")
        if rest := [one for one in lines if not one.sign]:
            lone = "With one seed, whether" if rest[0].end.n == 1 else "Whether"
            said.append(
                f"{lone} classes became better untangled{where} is not settled: capacity went {ways(rest, number)}."
            )
    return said


def _in(one: Course) -> str:
    return one.where and f" in {one.where}"


def _collapsed(gone: _Collapse, where: str) -> str:
    of = f" in {{}} of {gone.seeds} seeds" if gone.seeds > 1 else ""
    if gone.narrow:
        return f"few directions are left{where} at the end{of.format(gone.narrow)}"
    return f"the points of classes overlap or depend on each other{where} at the end{of.format(gone.free)}"


def _many(model: Model, found: list[Course]) -> str:
    gone = {one.cell: why for one in found if (why := _collapse(model, one)) is not None}
    kept = [one for one in found if one.cell not in gone]
    narrow = sum(why.narrow > 0 for why in gone.values())
    causes = {
        "few directions are left": narrow,
        "points of classes overlap or depend on each other": len(gone) - narrow,
    }
    told = [f"{why} in {n}" for why, n in causes.items() if n]
    if told:
        told[0] += f" of {len(found)} learners"
    lost = f"In the last layer at the end, {row(told)}: capacity then tells little about classes." if told else ""
    if not kept:
        return lost
    rose, fell = (sum(one.sign == sign for one in kept) for sign in (1, -1))
    rest = len(kept) - rose - fell
    counts = [f"{word} in {n}" for word, n in (("better untangled", rose), ("worse untangled", fell)) if n]
    of = f"{len(kept)} learners" if not gone else f"the {len(kept)} other learners"
    if not counts:
        said = f"Whether classes became better untangled in the last layer is settled in none of {of}."
    else:
        unsettled = f"; in {rest} it is not settled" if rest else ""
        said = f"Of {of}, classes became {row(counts)} in the last layer{unsettled}."
    ordered = sorted(kept, key=lambda one: -one.end.mean)
    best, worst = (f"{number(one.end.mean)} ({one.cell})" for one in (ordered[0], ordered[-1]))
    reaches = f"Capacity at the end reaches from {worst} to {best}; higher is easier to tell apart."
    return " ".join(text for text in (said, reaches, lost) if text)
