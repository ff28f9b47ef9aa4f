"""How far the representation moved, and whether what was forgotten is gone from it or only not read any more."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.over_seeds import over_seeds
from waterjar.diagnose.registry import find_metric
from waterjar.view.numbers import number
from waterjar.view.report.leads._claims import FEW, Mean, means_of, moved, row, seeds_of, written
from waterjar.view.report.leads._learned import nobody_learned
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

TITLE = "Representation"
ORDER = 35
_GONE, _UNREAD, _SIMILAR, _PROBE = "probe_forgetting", "unread_forgetting", "cka", "probe_accuracy"


def sentences(model: Model) -> list[str]:
    """Knowledge that is lost against knowledge that is unread; then how alike the first and the last snapshot are."""
    if "drift" not in model.diagnosis.results:
        return []
    return [text for text in ("" if nobody_learned(model) else _lost(model), _moved(model)) if text]


def _lost(model: Model) -> str:
    """What a readout has lost beside what a fresh probe of each task has lost.

    A probe only tells a task's own classes apart, which untrained features may allow, too: that something is still
    there is only said where the probe is surely better than before any training.
    """
    gone = {one.cell: one for one in means_of(model, _GONE)}
    unread = {one.cell: one for one in means_of(model, _UNREAD)}
    both = [cell for cell in unread if cell in gone and unread[cell].n > 1]
    hidden = [cell for cell in both if unread[cell].low > 0]
    if not both:
        return ""
    if not hidden:
        return "No learner is shown to lose more with its own readout than a linear probe does that is fitted afresh."
    shown = sorted(hidden, key=lambda cell: -unread[cell].mean)[:FEW]
    more = f" So it is in {len(hidden) - len(shown)} more of {len(both)} learners." if len(hidden) > len(shown) else ""
    return f"{' '.join(_still_there(model, cell, unread[cell]) for cell in shown)}{more}"


def _over(model: Model) -> str:
    """What numbers are a mean over beside seeds."""
    return ", mean over layers" if model.diagnosis.results["drift"].sizes.get("layer", 1) > 1 else ""


def _still_there(model: Model, cell: str, unread: Mean) -> str:
    said = (
        f"In {cell}, the network's own readout lost {written(unread)} more accuracy on earlier tasks than a linear "
        f"probe fitted afresh to each ({seeds_of([unread])}{_over(model)})."
    )
    ends = _probe_ends(model, cell)
    if ends is None:
        return said
    begin, end, sign = ends
    if sign > 0:
        than = f"at the end than before any training ({number(end.mean)} against {number(begin.mean)})"
        return f"{said} That probe has more right {than}: some of what was learned can still be read."
    return (
        f"{said} That probe is not shown to be better than before any training, so it does not show that anything that "
        "was learned is left."
    )


def _probe_ends(model: Model, cell: str) -> tuple[Mean, Mean, int] | None:
    """The probe's accuracy before any training and at the end, mean over layers and tasks, and which way it moved."""
    for name, one in by_cell(model.diagnosis.results["drift"]):
        if name != cell or _PROBE not in one or not (one["total_epoch"].values[:1] == 0).all():
            continue
        values = one[_PROBE].transpose("repeat", "snapshot", ...).values.astype(float)
        values = values.reshape(*values.shape[:2], -1)
        known = np.isfinite(values).all(axis=(0, 1))
        if not known.any() or values.shape[1] < 2:
            return None
        first, last = (values[:, place, known].mean(axis=1) for place in (0, -1))
        level = model.diagnosis.confidence("drift")
        bounding = find_metric(_PROBE).bounding
        begin, end = (over_seeds(part, None, level, **bounding) for part in (first, last))
        _, sign = moved(first.tolist(), last.tolist(), level)
        return (
            Mean(cell, begin.mean, begin.low, begin.high, begin.n),
            Mean(cell, end.mean, end.low, end.high, end.n),
            sign,
        )
    return None


def _moved(model: Model) -> str:
    lines = means_of(model, _SIMILAR)
    if not lines:
        return ""
    ordered = sorted(lines, key=lambda one: one.mean)
    if len(lines) > FEW:
        ordered = [ordered[0], ordered[-1]]
    told = row([f"{number(one.mean)} in {one.cell}" for one in ordered])
    ends = f", of {len(lines)} learners the two ends" if len(lines) > FEW else ""
    about = "(CKA: 1 is the same, 0 unrelated)"
    return f"The last snapshot's similarity to the first {about} is {told} ({seeds_of(lines)}{_over(model)}{ends})."
