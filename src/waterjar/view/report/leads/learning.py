"""Who ends best, of a study whose evaluations belong to no task, or that recorded losses alone.

Where accuracy, or loss, over tasks was measured, `continual` tells it. Here each learner's last value on each
evaluation set is compared with the baseline's, seed by seed.
"""

from __future__ import annotations

from waterjar.view.numbers import counted, number
from waterjar.view.report.ends import Ends, ends_of
from waterjar.view.report.leads._claims import FEW, against, inside, row, seeds_of, written
from waterjar.view.report.leads._learned import nobody_learned
from waterjar.view.report.leads.continual import sentences as of_tasks
from waterjar.view.report.model import Model

TITLE = "Learning"
ORDER = 22


def sentences(model: Model) -> list[str]:
    """The end of training by a few variables, those first by which learners are shown to differ; others are counted."""
    if "rigidity" in model.diagnosis.results or nobody_learned(model) or of_tasks(model):
        return []
    found = ends_of(model)
    if not found:
        return []
    evaluated = [one for one in found if one.group == "performance"]
    of_group = evaluated or [one for one in found if one.group == found[0].group]
    able = sorted((one for one in of_group if one.means), key=lambda one: not _differs(one))
    if not able:
        return [f"No learner ends with a number: {of_group[0].words} is not a number."]
    shown = list({one.quantity.variable: one for one in reversed(able)}.values())[::-1]
    shown = sorted(shown, key=lambda one: (not _differs(one), able.index(one)))[:FEW]
    rest = [one for one in able if one not in shown]
    return [*(_sentence(one) for one in shown), *([_rest(rest)] if rest else [])]


def _differs(ends: Ends) -> bool:
    """Whether some learner is shown to differ from its baseline."""
    return any(one.sign for one in ends.differences)


def _rest(ends: list[Ends]) -> str:
    """The others that were recorded, counted."""
    what = f"{counted(len(ends), 'other curve')} {'was' if len(ends) == 1 else 'were'} recorded"
    if not any(one.differences for one in ends):
        return f"{what}."
    n = sum(_differs(one) for one in ends)
    return f"{what}: learners are shown to differ at the end of {n or 'none'} of them."


def _sentence(ends: Ends) -> str:
    lower, what = ends.lower_is_better, ends.words
    best, worse = ("a lower", "a higher") if lower else ("a higher", "a lower")
    if ends.differences:
        words = (f"has {best} {what} than", f"has {worse} {what} than", f"has {what}")
        plural = (f"have {best} {what}", f"have {worse} {what}")
        said = against(ends.differences, words, lower_is_better=lower, plural=plural, without=ends.without)
        return f"At the end of training, {inside(said)}"
    if len(ends.means) > FEW:
        ordered = sorted(ends.means, key=lambda one: one.mean)
        told = " to ".join(f"{number(one.mean)} ({one.cell})" for one in (ordered[0], ordered[-1]))
        return f"At the end of training, {what} reaches from {told} ({seeds_of(ends.means)})."
    told = row([f"{written(one)} in {one.cell}" for one in ends.means])
    return f"At the end of training, {what} is {told} ({seeds_of(ends.means)})."
