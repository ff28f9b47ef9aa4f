"""Whether classes became better or worse untangled."""

from __future__ import annotations

from waterjar.view.numbers import counted
from waterjar.view.report.leads._claims import FEW, row, written
from waterjar.view.report.leads._courses import Course, course
from waterjar.view.report.leads._learned import nobody_learned
from waterjar.view.report.model import Model

TITLE = "Untangling of classes"
ORDER = 40
_CAPACITY = "capacity"
_WHY = {"radius": ("smaller", "larger"), "dimension": ("of fewer dimensions", "of more dimensions")}


def sentences(model: Model) -> list[str]:
    """Capacity from begin to end; where it clearly changed, which of radius and dimension clearly changed with it."""
    if "geometry" not in model.diagnosis.results or nobody_learned(model):
        return []
    made = [course(model, "geometry", _CAPACITY, cell) for cell in model.names.values()]
    found = [one for one in made if one is not None]
    if not found:
        return []
    if len(found) > FEW:
        return [_many(found)]
    return [f"{' '.join(_words(model, one) for one in found)} (Higher capacity: classes are easier to tell apart.)"]


def _words(model: Model, one: Course) -> str:
    start = "at the start" if one.first_epoch == 0 else f"at epoch {one.first_epoch:g}"
    numbers = f"capacity {written(one.end)} at the end, {written(one.begin)} {start}, {counted(one.end.n, 'seed')}"
    if not one.sign:
        verb = "with one seed, whether" if one.end.n == 1 else "whether"
        return f"In {one.cell}, {verb} classes became better untangled is not settled ({numbers})."
    better = "better" if one.sign > 0 else "worse"
    clouds = []
    for metric, (less, more) in _WHY.items():
        other = course(model, "geometry", metric, one.cell)
        if other is not None and other.sign == -one.sign:
            clouds.append(f"{less if other.sign < 0 else more} ({written(other.begin)} to {written(other.end)})")
    why = f"; their clouds became {row(clouds)}" if clouds else ""
    return f"In {one.cell}, classes became {better} untangled ({numbers}){why}."


def _many(found: list[Course]) -> str:
    rose, fell = (sum(one.sign == sign for one in found) for sign in (1, -1))
    ordered = sorted(found, key=lambda one: -one.end.mean)
    best, worst = (f"{written(one.end)} ({one.cell})" for one in (ordered[0], ordered[-1]))
    rest = len(found) - rose - fell
    unsettled = f", and in {rest} it is not settled" if rest else ""
    return (
        f"Classes became better untangled in {rose} of {len(found)} learners, worse in {fell}{unsettled}. Capacity at "
        f"the end reaches from {worst} to {best}; higher is easier to tell apart."
    )
