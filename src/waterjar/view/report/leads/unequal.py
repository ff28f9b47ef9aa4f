"""Runs that come less far than others: of their own learner, or of the tasks that were declared."""

from __future__ import annotations

from waterjar.run.index import Entry
from waterjar.view.numbers import counted, label, listed
from waterjar.view.report.leads._claims import FEW
from waterjar.view.report.model import Model

TITLE = "Runs that end early"
ORDER = 24


def sentences(model: Model) -> list[str]:
    """Seeds that end before others of their learner, and learners none of whose seeds comes to the last task."""
    model.recorded("performance")
    apart = model.unjoined.get("performance")
    said = [f"Accuracies and losses were not compared, for runs do not fit together: {apart}."] if apart else []
    for cell, entries in model.study.cells.items():
        begun = sorted((entry for entry in entries if entry.progress["step"] >= 0), key=_place)
        if begun:
            said += [text for text in (_shorter(model, cell, begun), _unfinished(model, cell, begun[-1])) if text]
    return [*said[:FEW], f"{counted(len(said) - FEW, 'more learner')} alike."] if len(said) > FEW else said


def _place(entry: Entry) -> tuple[int, float]:
    """How far a run has come: the visit of a task, and the epoch in it."""
    return int(entry.progress.get("visit", 0)), float(entry.progress["epoch"])


def _at(entry: Entry) -> str:
    return f"epoch {float(entry.progress['epoch']):g} of {entry.progress['train_task']}"


def _shorter(model: Model, cell: str, begun: list[Entry]) -> str:
    """Which seeds end before the last run of a learner, where, and what they lack for it."""
    name, longest = model.names[cell], begun[-1]
    short = [entry for entry in begun if _place(entry) < _place(longest)]
    if not short:
        return ""
    seeds = sorted(seed for entry in short for seed in entry.seeds)
    ends = _at(short[0]) if _place(short[0]) == _place(short[-1]) else f"{_at(short[0])} to {_at(short[-1])}"
    one, is_open = len(seeds) == 1, all(entry.status != "sealed" for entry in short)
    verb = f"{'stands' if one else 'stand'}, not sealed, at" if is_open else f"{'ends' if one else 'end'} at"
    who = f"{'Seed' if one else 'Seeds'} {listed(map(str, seeds))} of {name}"
    return f"{who} {verb} {ends}, its longest run at {_at(longest)}{_without(model, cell, seeds)}."


def _without(model: Model, cell: str, seeds: list[int]) -> str:
    """Which metrics have no value for it, so that their means are those of the other seeds."""
    rows = model.table
    gone = rows[(rows["cell_id"] == cell) & rows["seed"].isin(seeds) & (rows["reason"] == "run_ended")]
    known = [model.diagnosis.declared(str(metric)) for metric in dict.fromkeys(gone["metric"])]
    known.sort(key=lambda metric: (not metric.matters, metric.matters))
    several = "have" if len(known) > 1 else "has"
    return f": {listed(map(label, known), FEW)} {several} no value there, and means leave it out" if known else ""


def _unfinished(model: Model, cell: str, longest: Entry) -> str:
    """Which of the declared tasks a learner has not come to; trained in another order, nobody knows what is next."""
    at, visit = (int(longest.progress.get(key, -1)) for key in ("train_task_index", "visit"))
    later = model.study.open(longest).attributes["tasks"][at + 1 :]
    if at < 0 or at != visit or not later or "continual" not in model.diagnosis.results:
        return ""
    ends = "ends at" if longest.status == "sealed" else "is not sealed: it has so far come to"
    return (
        f"{model.names[cell]} {ends} {_at(longest)}, and has not been trained on {listed(map(str, later))}. What takes "
        "the training of all tasks, such as forgetting, has no value."
    )
