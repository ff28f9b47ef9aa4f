"""How far the representation moved, and whether what was forgotten is gone from it or only not read any more."""

from __future__ import annotations

from waterjar.view.report.leads._claims import FEW, Mean, means_of, row, seeds_of, written
from waterjar.view.report.leads._learned import nobody_learned
from waterjar.view.report.model import Model

TITLE = "Representation"
ORDER = 35
_GONE, _UNREAD, _SIMILAR = "probe_forgetting", "unread_forgetting", "cka"


def sentences(model: Model) -> list[str]:
    """Knowledge that is lost against knowledge that is unread; then how alike the first and the last snapshot are."""
    if "drift" not in model.diagnosis.results:
        return []
    return [text for text in ("" if nobody_learned(model) else _lost(model), _moved(model)) if text]


def _lost(model: Model) -> str:
    gone = {one.cell: one for one in means_of(model, _GONE)}
    unread = {one.cell: one for one in means_of(model, _UNREAD)}
    both = [cell for cell in unread if cell in gone and unread[cell].n > 1]
    hidden = [cell for cell in both if unread[cell].low > 0]
    if not both:
        return ""
    if not hidden:
        return (
            "No learner is shown to keep knowledge that its readout does not use (a fresh linear probe finds no more)."
        )
    shown = sorted(hidden, key=lambda cell: -unread[cell].mean)[:FEW]
    told = [
        f"{cell}: a fresh linear probe on its features finds {written(unread[cell])} of the accuracy that its own "
        f"readout has lost on earlier tasks; {_rest(gone[cell])}"
        for cell in shown
    ]
    more = f" So it is in {len(hidden) - len(shown)} more of {len(both)} learners." if len(hidden) > len(shown) else ""
    seeds = seeds_of([unread[cell] for cell in shown])
    return f"Much of what was forgotten is still there, and unread. {'; '.join(told)} ({seeds}).{more}"


def _rest(one: Mean) -> str:
    if one.low > 0:
        return f"{written(one)} is gone from them"
    return f"that any is gone from them is not shown ({written(one)})"


def _moved(model: Model) -> str:
    lines = means_of(model, _SIMILAR)
    if not lines:
        return ""
    ordered = sorted(lines, key=lambda one: one.mean)
    if len(lines) > FEW:
        ordered = [ordered[0], ordered[-1]]
    told = row([f"{written(one)} in {one.cell}" for one in ordered])
    ends = f", of {len(lines)} learners the two ends" if len(lines) > FEW else ""
    about = "(CKA: 1 is the same, 0 unrelated)"
    return f"The last snapshot's similarity to the first {about} is {told} ({seeds_of(lines)}{ends})."
