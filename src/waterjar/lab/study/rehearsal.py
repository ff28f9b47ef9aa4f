"""A rehearsal: the few things that a run of any kind does, done once and timed, in this process.

What is tried is the `Experiment` itself, over a part of its data with as many images of each class as make a few
batches: batches of its first and second phase, what ends a task, an evaluation, a snapshot, a recorded step, a
checkpoint. Batches are as large as those of the run. An evaluation is scaled by the sizes of its sets, and done in full
where that is quick; the end of a task by its batches; files by their rows, samples and examples.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.lab import checkpoint
from waterjar.lab.checkpoint import BEST, LAST, Progress
from waterjar.lab.data import ImageData, image_data
from waterjar.lab.loop import Experiment
from waterjar.lab.study.files import Files, allotted, files_of, lengths_of
from waterjar.run.recorder import Recorder

_BATCHES = 5
"""Of an epoch of the part: one to warm up, one that may be smaller, and some to time."""
_EVALUATED = 2000
"""Images in the evaluation sets of the part, over all repeats, about."""
_ENOUGH, _EPOCHS = 0.2, 20
"""Seconds of timed batches of a phase that make a good mean, and epochs in which they are looked for at most."""
_FEWEST = 3
"""Batches of a phase that are timed whatever the deadline."""
Make = Callable[[ImageData, Path], Experiment]
"""An experiment over data, with a folder for what it has to write down."""


class NoRoomError(WaterjarError):
    """What is recorded for the estimate could not be written."""


@dataclass(frozen=True)
class PhaseTime:
    """Seconds of one phase."""

    begin: float
    batch: float
    """Of a batch, with its share of what an epoch takes beside them."""
    end: float
    """What ends the phase, for each batch of it."""


@dataclass(frozen=True)
class Rehearsal:
    """What was found out about runs of one kind; times in seconds."""

    batches: int
    """That were trained."""
    share: float
    """Of the images of an evaluation, that were evaluated."""
    phases: tuple[PhaseTime, ...]
    """The first, and the second; later ones are like the last of these."""
    evaluation: float
    snapshot: float
    step: float
    """Recording one."""
    fixed: float
    """Making the experiment, opening its run and sealing it."""
    due: float
    """Share of the steps that have a snapshot."""
    flops: float
    """Of the whole run, see `flops_of`."""
    files: Files
    best: int
    """Bytes of the best weights."""
    last: int
    """Bytes of a checkpoint."""


def flops_of(experiment: Experiment) -> float:
    """What the learner of a whole run computes, as far as that is known beforehand: replay apart."""
    each = experiment.epochs_a_step
    phases = enumerate(experiment.phases)
    return float(
        sum(experiment.usage(Progress(phase=k, epoch=each)).flops * (phase.epochs // each) for k, phase in phases)
    )


def rehearse(make: Make, data: ImageData, deadline: float) -> Rehearsal:
    """Try an experiment. Behind the `deadline` (of `time.monotonic`) nothing is begun that can be left out."""
    with rehearsal_folder() as folder, contextlib.ExitStack() as stack:
        began = time.monotonic()
        whole = make(data, folder / "data")
        stack.callback(whole.close)
        making = time.monotonic() - began
        part = _part(make, whole, data, folder / "data-part")
        if part is not whole:
            stack.callback(part.close)
        trial = _Trial(part, folder, deadline)
        found = trial.go()
        evaluation, share = trial.evaluation, 1.0
        if part is not whole:
            share = _evaluated(part) / _evaluated(whole)
            evaluation /= share
            if share < 0.5 and evaluation < (deadline - time.monotonic()) / 2:
                whole.begin(0)
                evaluation, share = _seconds(lambda: whole.evaluated(Progress())), 1.0
        steps = [
            Progress(phase=k, epoch=epoch)
            for k, phase in enumerate(whole.phases)
            for epoch in range(0, phase.epochs + 1, whole.epochs_a_step)
        ]
        return Rehearsal(
            batches=trial.batches,
            share=share,
            phases=tuple(found),
            evaluation=evaluation,
            snapshot=trial.snapshot,
            step=trial.step,
            fixed=making + trial.recorder,
            due=sum(map(whole.is_due, steps)) / len(steps),
            flops=flops_of(whole),
            files=files_of(folder / "run", lengths_of(whole, folder / "lengths") if part is not whole else {}),
            best=allotted(folder / "best"),
            last=allotted(folder / "last"),
        )


class _Trial:
    """One experiment that is tried; the seconds that its parts took."""

    def __init__(self, experiment: Experiment, folder: Path, deadline: float) -> None:
        self._experiment = experiment
        self._folder = folder
        self._deadline = deadline
        self.batches = 0
        self.evaluation = self.snapshot = self.step = self.recorder = 0.0

    def go(self) -> list[PhaseTime]:
        """Two phases, or the one that there is."""
        experiment, found = self._experiment, []
        began = time.monotonic()
        with Recorder(self._folder / "run", **experiment.recorder(), summary=False) as recorder:
            experiment.describe(recorder)
            self.recorder = time.monotonic() - began
            for number in range(min(2, len(experiment.phases))):
                if number and self._left() <= 0:
                    break
                at = Progress(phase=number)
                begin = _seconds(lambda number=number: experiment.begin(number))  # type: ignore[misc]
                if not number:
                    self._log(at, recorder)  # what is loaded and compiled the first time is not timed
                batch = self._batches(at)
                self._save(LAST, {"position": {}, "experiment": experiment.state()})
                found.append(PhaseTime(begin, batch, self._end(at)))
            self._log(at, recorder)
            if experiment.score(at) is not None:
                self._save(BEST, {"network": experiment.weights()})
            began = time.monotonic()
        self.recorder += time.monotonic() - began
        return found

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _batches(self, at: Progress) -> float:
        """Seconds of a batch. The first of an epoch, which also has what an epoch begins with, is set apart."""
        train, phase = self._experiment.train, self._experiment.phases[at.phase]
        last = min(phase.batches, max(2, phase.batches - 1))  # the very last may be a smaller one
        timed, count, beside = 0.0, 0, list[float]()
        while not beside or (timed < min(_ENOUGH, self._left() / 3) and len(beside) < _EPOCHS):
            at.trace, at.epoch = None, len(beside)
            beside.append(_seconds(lambda: train(at, 1)))
            at.batch = 1
            while at.batch < last and (at.batch == 1 or timed < self._left() / 3):
                stop = min(last, max(2 * at.batch, 1 + _FEWEST))
                timed += _seconds(lambda stop=stop: train(at, stop))  # type: ignore[misc]
                count, at.batch = count + stop - at.batch, stop
            at.batch = 0
        self.batches += count + len(beside)
        at.epoch = self._experiment.epochs_a_step
        if not count:
            return min(beside)
        mean = timed / count
        return mean + (max(0.0, min(beside[1:]) - mean) / phase.batches if beside[1:] else 0.0)

    def _end(self, at: Progress) -> float:
        return _seconds(lambda: self._experiment.end(at)) / self._experiment.phases[at.phase].batches

    def _log(self, at: Progress, recorder: Recorder) -> None:
        """An evaluation, with a snapshot if any step of the phase has one."""
        experiment, phase = self._experiment, self._experiment.phases[at.phase]
        began = time.monotonic()
        values = experiment.evaluated(at)
        self.evaluation = time.monotonic() - began
        values["resources"] = {"seconds": 0.0, "peak_memory": 1, **experiment.usage(at)._asdict()}
        epochs = range(0, phase.epochs + 1, experiment.epochs_a_step)
        due = any(experiment.is_due(Progress(phase=at.phase, epoch=epoch)) for epoch in epochs)
        began = time.monotonic()
        snapshot = experiment.snapshot(at) if due else None
        self.snapshot = time.monotonic() - began
        began = time.monotonic()
        recorder.log(train_task=phase.name, epoch=at.epoch, snapshot=snapshot, **values)
        self.step = time.monotonic() - began

    def _save(self, name: str, content: dict[str, Any]) -> None:
        checkpoint.save(self._folder / name.partition(".")[0], name, "rehearsal", content)


def _seconds(call: Callable[[], Any]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def _part(make: Make, whole: Experiment, data: ImageData, scratch: Path) -> Experiment:
    """The experiment over a part of its data that gives enough batches; the whole one where it takes no smaller."""
    train = max(_BATCHES / phase.batches for phase in whole.phases)
    test = _EVALUATED / (_evaluated(whole) * len(whole.recorder()["seeds"]))
    while train < 1.0:
        with contextlib.suppress(WaterjarError):  # too few to hold some out, for instance
            return make(part_of(data, train, test), scratch)
        train, test = 4 * train, 4 * test
    return whole


def part_of(data: ImageData, train: float, test: float) -> ImageData:
    """The first images of each class, so large a share of both splits."""
    trained, tested = _first(data.train_labels, train), _first(data.test_labels, test)
    return image_data(
        data.name,
        train=(data.train_images[trained], data.train_labels[trained], data.train_index[trained]),
        test=(data.test_images[tested], data.test_labels[tested], data.test_index[tested]),
        class_names=data.class_names,
        superclass_names=data.superclass_names,
        class_superclass=data.class_superclass,
    )


def _first(labels: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    each = [np.flatnonzero(labels == one) for one in np.unique(labels)]
    return np.sort(np.concatenate([rows[: max(2, round(share * len(rows)))] for rows in each]))


def _evaluated(experiment: Experiment) -> int:
    """Images of all evaluation sets, of one repeat."""
    sizes: dict[str, int] = experiment.recorder().get("eval_sizes", {})
    return max(1, sum(sizes.values()))


@contextlib.contextmanager
def rehearsal_folder() -> Iterator[Path]:
    """A folder for a copy, removed again. What could not be written there is an error that says how to get room."""
    try:
        with tempfile.TemporaryDirectory(prefix="waterjar-rehearsal-") as name:
            try:
                yield Path(name)
            except (OSError, WaterjarError) as error:
                if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
                    raise _no_room(error, f"below {Path(name).parent}", allotted(Path(name))) from error
                raise
    except OSError as error:  # there is no such folder, or it is full already
        raise _no_room(error, "to a folder for temporary files", 0) from error


def _no_room(error: Exception, place: str, written: int) -> NoRoomError:
    return NoRoomError(
        f"a small part of a run, to be tried out for the estimate, could not be written {place}: {error}. It had "
        f"{written} bytes there and needs more: set the environment variable TMPDIR to a folder with more room"
    )
