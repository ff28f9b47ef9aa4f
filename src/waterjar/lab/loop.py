"""The only training loop: sealed? -> resume -> recorder -> phases -> log -> checkpoint -> seal.

What is trained is an `Experiment`. The loop knows nothing of networks: it says which batches come next, records what
the experiment has found, and keeps a checkpoint that it can go on from to the bit.
"""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab import checkpoint, stopping
from waterjar.lab.checkpoint import BEST, LAST, Keep, Progress
from waterjar.lab.dead_networks import Signs, news
from waterjar.lab.memory import PeakMemory
from waterjar.run.branching import copy_prefix
from waterjar.run.coordinates import describe
from waterjar.run.provenance import using_parts
from waterjar.run.reader import Run, open_run
from waterjar.run.recorder import Recorder
from waterjar.run.resume import mend
from waterjar.run.root import read_array, read_root
from waterjar.run.schema import Missing, missing
from waterjar.run.store import ROOT

BACKWARD_COST = 3
"""Floating-point operations of a training pass against those of a forward pass: the usual estimate."""


@dataclasses.dataclass(frozen=True, eq=False)
class Phase:
    """A stretch of training that is recorded under one name."""

    name: str
    """The `train_task` of its steps."""
    epochs: int
    batches: int
    """How many an epoch has."""


class Usage(NamedTuple):
    """What the learner took since the last step, its companions and evaluations apart."""

    images: int
    flops: int
    buffer_bytes: int


class Experiment(ABC):
    """A learner with its companions, and all that is evaluated and recorded of it.

    Whatever happens between two batches hangs on its state and on the position alone, so that a resumed training has
    the bits of an unbroken one. What is not abstract does nothing unless it is overridden.
    """

    phases: Sequence[Phase]
    """What is trained, in this order."""
    epochs_a_step: int = 1
    """Epochs from one record to the next; those of a phase are a multiple of it."""
    asks_often: bool = True
    """Whether the loop may look after every batch if it is time to stop: it costs nothing to come back."""

    @abstractmethod
    def recorder(self) -> dict[str, Any]:
        """The arguments of the `Recorder`, without its path."""

    @abstractmethod
    def train(self, at: Progress, stop: int) -> None:
        """Train batches `at.batch` to `stop` of an epoch, and add to `at` what was seen (trace, replayed, patched)."""

    @abstractmethod
    def evaluated(self, at: Progress) -> dict[str, Any]:
        """What a step records: at epoch 0 of the network before the phase, else after an epoch."""

    @abstractmethod
    def usage(self, at: Progress) -> Usage:
        """Resources of the step."""

    @abstractmethod
    def state(self) -> Any:
        """All that goes into a checkpoint."""

    @abstractmethod
    def load_state(self, state: Any) -> None:
        """Back to a state."""

    def parts(self) -> Mapping[str, list[str]]:
        """What of it can come from other packages: shelf -> names."""
        return {}

    def describe(self, recorder: Recorder) -> None:  # noqa: B027 - so are those below that do nothing
        """Record what is recorded once."""

    def begin(self, phase: int) -> None:  # noqa: B027
        """Tell the learner that a phase begins."""

    def end(self, at: Progress) -> None:  # noqa: B027
        """Do what the learner does at the end of a phase, after its last batch."""

    def signs(self) -> Signs:
        """Whether the network that was just evaluated is alive."""
        return Signs()

    def is_due(self, at: Progress) -> bool:
        """Whether a step has a snapshot."""
        return False

    def snapshot(self, at: Progress) -> dict[str, Any]:
        """The snapshot of a step that was just evaluated."""
        return {}

    def score(self, at: Progress) -> float | None:
        """By which accuracy of the step just evaluated the best weights are chosen; None where there is none."""
        return None

    def weights(self) -> dict[str, Tensor]:
        """Those of the learner as they are now, for whoever wants to use the best ones."""
        return {}

    def finish(self, at: Progress, recorder: Recorder) -> None:  # noqa: B027
        """Record what is known at the very end only."""

    def peak_memory(self) -> int:
        """Largest resident memory of processes beside this one, in bytes, added up."""
        return 0

    def close(self) -> None:  # noqa: B027
        """Let go of whatever is held."""


class Branch(Protocol):
    """Where a run goes off from another one."""

    @property
    def source(self) -> Run:
        """The other one."""
        ...

    def described(self, experiment: Experiment) -> dict[str, Any]:
        """The arguments of the recorder of the new one."""
        ...

    def content(self, experiment: Experiment) -> tuple[dict[str, Any], list[str]]:
        """The checkpoint that it begins with, and what is to be noted of it."""
        ...


class Loop:
    """One training under way. `train` below is the way in."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        run_id: str,
        device: str,
        folder: Path,
        every: float,
        keep: Keep,
        memory: PeakMemory,
    ) -> None:
        self._experiment = experiment
        self._run_id = run_id
        self._device = device
        self._folder = folder
        self._every = every
        self._keep = keep
        self._memory = memory
        self._at = Progress()
        self._chunk = 1
        self._saved_at = self._step_began = time.monotonic()

    def resume(self, found: dict[str, Any] | None) -> int:
        """Take up a checkpoint; returns the last step it contains, -1 if there is none."""
        if found is not None:
            with checkpoint.understood(self._folder / LAST):
                self._at = checkpoint.position(self._folder, found)
                self._experiment.load_state(found["experiment"])
        return self._at.step

    def go(self, recorder: Recorder) -> None:
        """Train what is left, from wherever the training stands."""
        self._step_began = time.monotonic() - self._at.seconds
        phases = self._experiment.phases
        while self._at.phase < len(phases):
            phase = phases[self._at.phase]
            if not self._at.begun:
                self._experiment.begin(self._at.phase)
                self._log(recorder, phase)
                self._at.begun = True
                self._save_if_due(recorder)
            while self._at.epoch < phase.epochs:
                self._train_some(recorder, phase)
            self._at = dataclasses.replace(self._at, phase=self._at.phase + 1, begun=False, epoch=0)
            if self._keep == "task":
                self._save(recorder, checkpoint.of_task([phase.name for phase in phases], self._at.phase - 1))
        steps = sum(1 + phase.epochs // self._experiment.epochs_a_step for phase in phases)
        if recorder.last_step != steps - 1:
            raise WaterjarError(
                f"{recorder.path} has its last step at {recorder.last_step}, not {steps - 1}: delete it, and the same "
                "command trains it from its beginning"
            )
        self._experiment.finish(self._at, recorder)

    def _train_some(self, recorder: Recorder, phase: Phase) -> None:
        """A few batches: as many as fit between two checkpoints, and at most to the end of the epoch."""
        at = self._at
        began = time.monotonic()
        stop = min(at.batch + self._chunk, phase.batches)
        self._experiment.train(at, stop)
        at.batch = stop
        if not self._experiment.asks_often and time.monotonic() - began < self._every / 4:
            self._chunk = min(2 * self._chunk, phase.batches)
        if at.batch == phase.batches:
            at.epoch, at.batch = at.epoch + 1, 0
            if at.epoch == phase.epochs:
                self._experiment.end(at)
            if at.epoch % self._experiment.epochs_a_step == 0:
                self._log(recorder, phase)
                at.trace, at.replayed, at.patched = None, 0, 0
        self._save_if_due(recorder)

    def _log(self, recorder: Recorder, phase: Phase) -> None:
        """Record a step; at epoch 0 it is the evaluation at the start of a phase."""
        at = self._at
        values = self._experiment.evaluated(at)
        values["resources"] = self._resources()
        snapshot = self._experiment.snapshot(at) if self._experiment.is_due(at) else None
        at.step = recorder.log(train_task=phase.name, epoch=at.epoch, snapshot=snapshot, **values)
        for notice in news(self._experiment.signs(), at.extra, f"epoch {at.epoch} of {phase.name}"):
            recorder.event(**notice._asdict())
        score = self._experiment.score(at)
        if score is not None and score > at.best:  # the first of equals
            at.best, at.best_step = score, at.step
            if self._keep != "none":
                best = {"step": at.step, "network": self._experiment.weights()}
                checkpoint.save(self._folder, BEST, self._run_id, best)

    def _resources(self) -> dict[str, float | Missing]:
        """Seconds and memory of all that goes on; images, buffer and flops of the learner, without its companions."""
        now = time.monotonic()
        seconds, self._step_began = now - self._step_began, now
        used: dict[str, float | Missing] = {
            "seconds": seconds,
            "peak_memory": self._peak_memory() or missing("not_recorded"),
            **self._experiment.usage(self._at)._asdict(),
        }
        if self._device.startswith("cuda"):
            used["peak_device_memory"] = self._peak_device_memory()
        return used

    def _peak_memory(self) -> int:
        """Of all sessions of the run and of all its processes; 0 if the system does not tell."""
        own = self._memory.largest() or 0
        return max(own + self._experiment.peak_memory(), self._at.peak_memory)

    def _peak_device_memory(self) -> int:
        here = torch.cuda.max_memory_allocated() if self._device.startswith("cuda") else 0
        return max(here, self._at.peak_device_memory)

    def _save_if_due(self, recorder: Recorder) -> None:
        if time.monotonic() - self._saved_at < self._every and not stopping.requested():
            return
        self._saved_at = time.monotonic()
        self._save(recorder, LAST)
        stopping.stop_if_requested()

    def _save(self, recorder: Recorder, name: str) -> None:
        """All that it takes to go on from here."""
        recorder.sync()  # a checkpoint may not reach the disk before the step that it stands behind
        self._at.seconds = time.monotonic() - self._step_began
        self._at.peak_memory, self._at.peak_device_memory = self._peak_memory(), self._peak_device_memory()
        position = {f.name: getattr(self._at, f.name) for f in dataclasses.fields(Progress)}
        content = {"position": position, "experiment": self._experiment.state()}
        checkpoint.save(self._folder, name, self._run_id, content)


def train(
    make: Callable[[bool], Experiment],
    path: Path,
    *,
    run_id: str,
    checkpoints: Path,
    device: str,
    checkpoint_seconds: float = 60.0,
    keep: Keep = "best",
    branch: Branch | None = None,
) -> Path:
    """Train a run to its end and seal it at `path`, from its last checkpoint if it was begun before.

    A sealed run is left alone. `make` gives the experiment, and is told whether the run was begun; it is not called for
    a sealed one. `keep` says what stays in `checkpoints` once the run is complete: the best weights; beside them the
    state after each task; or nothing. One with a `branch` goes on from there, and has what was recorded before it. The
    caller's random generators are not touched.
    """
    mend(path)
    if is_sealed(path):
        (checkpoints / LAST).unlink(missing_ok=True)
        return path
    memory = PeakMemory()  # from here on it is this run's
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    begun = (path / ROOT).exists()
    found = checkpoint.load(checkpoints, LAST, run_id)
    if found is not None and not begun:
        (checkpoints / LAST).unlink()  # of a run that was removed: going on from it would leave out its beginning
        found = None
    experiment = make(begun)
    try:
        arguments, notes = experiment.recorder(), list[str]()
        loop = Loop(
            experiment,
            run_id=run_id,
            device=device,
            folder=checkpoints,
            every=checkpoint_seconds,
            keep=keep,
            memory=memory,
        )
        if branch is not None:
            arguments = branch.described(experiment)
            if found is None:
                found, notes = branch.content(experiment)
            if not begun:
                copy_prefix(branch.source, path, describe(**arguments))
                begun = True
        last = loop.resume(found)
        if begun:
            _check_that_run_is_not_older(path, checkpoints / LAST, last)
        try:
            with using_parts(experiment.parts()):
                recorder = Recorder(path, **arguments, resume_at=last if begun else None, summary=False)
        except WaterjarError:
            if is_sealed(path):  # by another process, since we looked
                return path
            raise
        with recorder:
            experiment.describe(recorder)
            for note in notes:
                note_once(recorder, "branch", note)
            with stopping.heeded():
                loop.go(recorder)
    finally:
        experiment.close()
    (checkpoints / LAST).unlink(missing_ok=True)
    return path


def _check_that_run_is_not_older(path: Path, file: Path, last: int) -> None:
    """A step is recorded before its checkpoint is written, so a run that lacks it was exchanged or lost its end."""
    recorded = int(read_root(path)["attributes"]["progress"]["step"])
    if recorded < last:
        raise WaterjarError(
            f"{path} ends at step {recorded}, but its checkpoint {file} is of step {last}: the run is an older copy, "
            "or its end did not reach the disk before a power cut. Put the newer copy back, or delete the checkpoint "
            f"(rm '{file}'): the same command then trains the run from its beginning"
        )


def note_once(recorder: Recorder, kind: str, message: str) -> None:
    """Record an event, unless a session that was killed since has done so."""
    nodes = read_root(recorder.path)["consolidated_metadata"]["metadata"]
    keys = ("events/kind", "events/message")
    columns = [read_array(recorder.path, key, nodes[key]).tolist() for key in keys if key in nodes]
    if (kind, message) not in zip(*columns, strict=True):
        recorder.event(kind, message)


def is_sealed(path: Path) -> bool:
    """Whether a complete run stands there."""
    return (path / ROOT).exists() and open_run(path).status == "sealed"
