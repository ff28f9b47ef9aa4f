"""Who forgets less, and who is better over all tasks at the end."""

from __future__ import annotations

from waterjar.diagnose.compare import untested
from waterjar.view.numbers import counted, listed, number
from waterjar.view.report.leads._claims import (
    FEW,
    OVER_TASKS,
    Difference,
    Mean,
    against,
    differences_of,
    inside,
    means_of,
    row,
    seeds_of,
    valueless,
    written,
)
from waterjar.view.report.leads._learned import learning, nobody_learned
from waterjar.view.report.model import Model

TITLE = "Forgetting"
ORDER = 20
_FORGETTING, _ENDING = OVER_TASKS


def sentences(model: Model) -> list[str]:
    """What is lost of earlier tasks, and what is left of all; nothing where nobody learned."""
    if "continual" not in model.diagnosis.results or nobody_learned(model):
        return []
    lost = {one.accuracy.cell for one in learning(model) if one.at_chance}
    return [text for text in (_forgetting(model, lost), _ending(model), _untested(model)) if text]


def _untested(model: Model) -> str:
    """Of one task, which says no more than its accuracy: that its loss was recorded, and how it is compared."""
    table = model.compared[0]
    if table.empty or int(model.diagnosis.results["continual"]["n_tasks"].max()) > 1:
        return ""
    name, _ = untested(model.diagnosis, table["metric"])
    return f"The recorded loss is compared by waterjar compare --metrics '{name}'." if name else ""


def _same_tasks(model: Model, one: Difference) -> bool:
    """Whether both were trained on the same tasks: a network that never saw one is not worse at remembering it."""
    trained = {
        cell: frozenset(steps["train_task"].values.astype(str))
        for cell, steps in model.recorded("performance").items()
        if "train_task" in steps.coords
    }
    return trained.get(one.own.cell) == trained.get(one.other.cell)


def _losses(model: Model) -> bool:
    return model.diagnosis.settings("continual").get("metric_type") == "loss"


def _forgetting(model: Model, unlearned: set[str]) -> str:
    """Learners that never learned have nothing to forget, and are left out."""
    what = (
        "the rise of the loss on earlier tasks by the end"
        if _losses(model)
        else "the accuracy on earlier tasks that is lost by the end"
    )
    found = [one for one in differences_of(model, _FORGETTING) if not {one.own.cell, one.other.cell} & unlearned]
    if found:
        words = "forgets less than", "forgets more than", "forgets"
        many = "forget less", "forget more"
        without = valueless(model, _FORGETTING)
        said = against(found, words, lower_is_better=True, plural=many, without=without)
        return f"{said} (Forgetting: {what}.)"
    return _alone([one for one in means_of(model, _FORGETTING) if one.cell not in unlearned], what)


def _alone(lines: list[Mean], what: str) -> str:
    """Learners that are compared with nobody."""
    if not lines:
        return ""
    if len(lines) > FEW:
        ends = sorted(lines, key=lambda one: one.mean)
        told = [f"from {number(ends[0].mean)} ({ends[0].cell}) to {number(ends[-1].mean)} ({ends[-1].cell})"]
    else:
        told = [f"{written(one)} in {one.cell}" for one in lines]
    clear = [one for one in lines if one.n > 1 and one.low > 0]
    who = listed([one.cell for one in clear], FEW)
    if len(clear) == len(lines) == 1:
        told = [written(lines[0])]
    verb = "forgets" if len(clear) == 1 else "forget"
    begin = f"{who} {verb}" if clear else "Nobody is shown to forget"
    if min(one.n for one in lines) < 2:
        begin = "What other seeds would forget is not known"
    return f"{begin}: {what} is {row(told)} ({seeds_of(lines)})."


def _ending(model: Model) -> str:
    """All tasks together at the end: against the baseline, or alone."""
    metric = model.diagnosis.declared(_ENDING)
    losses = metric.direction == "lower"
    what = "loss" if losses else "accuracy"
    tasks = int(model.diagnosis.results["continual"]["n_tasks"].max())
    where = f"over all {counted(tasks, 'task')}" if tasks > 1 else ""
    where = f"At the end of training, {where}".rstrip(", ") if where else "At the end of training"
    found = [one for one in differences_of(model, _ENDING) if _same_tasks(model, one)]
    if found:
        ends = ("lower", "higher") if losses else ("higher", "lower")
        words = f"has a {ends[0]} {what} than", f"has a {ends[1]} {what} than", f"has {what}"
        many = f"have a {ends[0]} {what}", f"have a {ends[1]} {what}"
        without = valueless(model, _ENDING)
        said = against(found, words, lower_is_better=losses, plural=many, without=without)
        return f"{where}, {inside(said)}"
    lines = means_of(model, _ENDING)
    if not lines:
        return ""
    if len(lines) > FEW:
        ordered = sorted(lines, key=lambda one: one.mean, reverse=not losses)
        best, worst = (f"{number(one.mean)} ({one.cell})" for one in (ordered[0], ordered[-1]))
        return f"{where}, {what} reaches from {worst} to {best} ({seeds_of(lines)})."
    return f"{where}, {what} is {row([f'{written(one)} in {one.cell}' for one in lines])} ({seeds_of(lines)})."
