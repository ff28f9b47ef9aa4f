"""Who ends best, of a study whose evaluations belong to no task, or that recorded losses alone.

Where accuracy over tasks was measured, `continual` tells it. Here each learner's last value on each evaluation set is
compared with the baseline's, seed by seed.
"""

from __future__ import annotations

from waterjar.view.report.ends import Ends, ends_of
from waterjar.view.report.leads._claims import FEW, against, inside, row, seeds_of, written
from waterjar.view.report.leads._learned import nobody_learned
from waterjar.view.report.leads.continual import sentences as of_tasks
from waterjar.view.report.model import Model

TITLE = "Learning"
ORDER = 22


def sentences(model: Model) -> list[str]:
    """The end of training on the first evaluation set, and how many of the others say the same."""
    if "rigidity" in model.diagnosis.results or nobody_learned(model) or of_tasks(model):
        return []
    found = ends_of(model)
    if not found:
        return []
    first = next((one for one in found if one.group == "performance"), found[0])
    return [_sentence(first)] if first.means else [f"No learner ends with a number: {first.words} is not a number."]


def _sentence(ends: Ends) -> str:
    lower, what = ends.lower_is_better, ends.words
    best, worse = ("a lower", "a higher") if lower else ("a higher", "a lower")
    if ends.differences:
        words = (f"has {best} {what} than", f"has {worse} {what} than", f"has {what}")
        plural = (f"have {best} {what}", f"have {worse} {what}")
        said = against(ends.differences, words, lower_is_better=lower, plural=plural)
        return f"At the end of training, {inside(said)}"
    if len(ends.means) > FEW:
        ordered = sorted(ends.means, key=lambda one: one.mean)
        told = " to ".join(f"{written(one)} ({one.cell})" for one in (ordered[0], ordered[-1]))
        return f"At the end of training, {what} reaches from {told} ({seeds_of(ends.means)})."
    told = row([f"{written(one)} in {one.cell}" for one in ends.means])
    return f"At the end of training, {what} is {told} ({seeds_of(ends.means)})."
