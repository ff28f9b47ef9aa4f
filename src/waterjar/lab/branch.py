"""Going on from the end of a task of a run with something changed: twins that differ by the intervention only.

The state of the source is taken over part by part. A part (the weights, an optimiser's momenta, a memory ...) that
begins alike in both experiments is the source's; one that the change has made another, or new, begins as it does at the
start of a run, which is noted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab import checkpoint
from waterjar.lab.loop import Experiment
from waterjar.run.branching import described
from waterjar.run.reader import Run

_NONE_KEPT = "begins empty, since the source has kept none"


@dataclass(frozen=True)
class Branch:
    """The beginning of a task of a sealed run."""

    source: Run
    checkpoints: Path
    """The folder of the source's."""
    task: str
    changes: str
    """What is changed, in words."""
    again: Callable[[], Experiment]
    """Makes the source's experiment, as it begins."""

    @property
    def at(self) -> str:
        """Task and epoch.

        Of what is kept only the end of a task is one to go on from, which is epoch 0 of the next.
        """
        return f"{self.task}:0"

    def described(self, experiment: Experiment) -> dict[str, Any]:
        """The arguments of the recorder of the new run."""
        return described(self.source, self.at, experiment.recorder())

    def content(self, experiment: Experiment) -> tuple[dict[str, Any], list[str]]:
        """The checkpoint that it begins with, and what is to be noted of it.

        A learner that has nothing of what it measures at the end of a task measures it now, of the task before.
        """
        found, notes = self.taken_over(experiment)
        said = f"went off from {self.source.path.name} (root {self.source.root_hash}) at {self.at}"
        said += f" with {self.changes}" if self.changes else " with no change"
        if any(note.endswith(_NONE_KEPT) for note in notes):
            at = checkpoint.position(self.checkpoints, found)
            experiment.load_state(found["experiment"])
            experiment.end(dataclasses.replace(at, phase=at.phase - 1))
            after = experiment.state()
            if not _alike(after, found["experiment"]):
                before = experiment.phases[at.phase - 1].name
                notes.append(f"what the learner measures at the end of a task was measured of {before} at the branch")
            found["experiment"] = after
        return found, [said, *notes]

    def taken_over(self, experiment: Experiment) -> tuple[dict[str, Any], list[str]]:
        """The source's checkpoint with what the experiment can take over of it, and what that is not."""
        names = [phase.name for phase in experiment.phases]
        place = names.index(self.task) - 1
        file = checkpoint.of_task(names, place)
        found = checkpoint.load(self.checkpoints, file, self.source.run_id)
        if found is None:
            raise WaterjarError(
                f"{self.checkpoints / file} is not there: states at the end of tasks are kept by a run with "
                "resources.checkpoint_frequency: task. Remove the run and train it again with that"
            )
        first = self.again()
        try:
            before = [(phase.name, phase.epochs) for phase in first.phases[: place + 1]]
            if before != [(phase.name, phase.epochs) for phase in experiment.phases[: place + 1]]:
                raise WaterjarError(f"other tasks or epochs before {self.at}: that would make untrue what was trained")
            _check_same_network(first.weights(), experiment.weights())
            notes: list[str] = []
            with checkpoint.understood(self.checkpoints / file):
                state = _merged(first.state(), experiment.state(), found["experiment"], "", notes)
        finally:
            first.close()
        return {**found, "experiment": state}, list(dict.fromkeys(notes))


def _check_same_network(before: dict[str, Tensor], now: dict[str, Tensor]) -> None:
    if before.keys() != now.keys() or any(not torch.equal(before[name], now[name]) for name in before):
        raise WaterjarError(
            "the network would be another one than was trained until there: expected the same weights to begin with"
        )


def _merged(first: Any, own: Any, found: Any, name: str, notes: list[str]) -> Any:
    """The state of the source with its own parts where these are others from the beginning.

    `first` and `own` are the states in which the source's experiment and the new one begin. A mapping whose tensors are
    others is one part, taken as a whole.
    """
    if _alike(first, own):
        return found
    if isinstance(own, list) and isinstance(first, list) and len(own) == len(first) == len(found):
        return [_merged(*values, name, notes) for values in zip(first, own, found, strict=True)]
    if not (isinstance(own, dict) and isinstance(first, dict)) or _has_other_tensors(first, own):
        if isinstance(own, dict):
            notes.append(f"{name}: begins anew, since it is another one")
        return own
    merged = {}
    for key, value in own.items():
        if key in first and key in found:
            merged[key] = _merged(first[key], value, found[key], key, notes)
            continue
        merged[key] = value
        if not isinstance(value, dict | list | Tensor) or name == "settings":
            continue
        notes.append(f"{key}: {_NONE_KEPT}")
    notes += [f"{key}: left behind" for key in first if key not in own and name != "settings"]
    return merged


def _has_other_tensors(first: dict[str, Any], own: dict[str, Any]) -> bool:
    keys = {key for some in (first, own) for key, value in some.items() if isinstance(value, Tensor)}
    return any(key not in first or key not in own or not _alike(first[key], own[key]) for key in keys)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return isinstance(one, Tensor) and isinstance(other, Tensor) and one.dtype == other.dtype and one.equal(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(type(one) is type(other) and one == other)
