"""Training one run: evaluated before it starts and after every epoch, recorded, and resumable to the bit."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.lab import checkpoint, learners, networks, stopping
from waterjar.lab.checkpoint import BEST, LAST, Position
from waterjar.lab.config import RunConfig, resolve_device
from waterjar.lab.data import ImageData, channel_statistics
from waterjar.lab.evaluation import EVAL_SETS, Normalisation, Tally, evaluate, evaluation_sizes, performance
from waterjar.lab.examples import describe_examples, examples_of, outputs_of, train_sets
from waterjar.lab.memory import PeakMemory
from waterjar.lab.scenarios import Epoch, Phase, phases, plain_batches
from waterjar.lab.snapshots import Snapshots
from waterjar.lab.tasks import TASKS, arrange
from waterjar.run.identity import identify
from waterjar.run.provenance import using_parts
from waterjar.run.reader import open_run
from waterjar.run.recorder import Recorder
from waterjar.run.resume import mend
from waterjar.run.root import read_array, read_root
from waterjar.run.schema import JOINT, Missing, missing
from waterjar.run.store import ROOT

BACKWARD_COST = 3
"""Floating-point operations of a training pass against those of a forward pass: the usual estimate."""


def run_id_of(config: RunConfig, fingerprint: str) -> str:
    """The identity of the run that a config and a data set make."""
    return identify(config.to_plain(), [config.seed], fingerprint)[0]


class Trainer:
    """One run under way. `train` below is the way in."""

    def __init__(self, config: RunConfig, data: ImageData, *, device: str, checkpoints: Path, every: float) -> None:
        self._memory = PeakMemory()  # from here on it is this run's
        if device.startswith("cuda"):
            torch.cuda.reset_peak_memory_stats()
        self.config = config
        self.experiment = arrange(data, config)
        self.phases = phases(self.experiment, config)
        self.run_id = run_id_of(config, data.fingerprint)
        self._device = device
        self._folder = checkpoints
        self._every = every
        rows = np.concatenate([self.experiment.train_rows[task] for task in TASKS])
        mean, std = channel_statistics(data.train_images, rows)
        self.scale = Normalisation(torch.tensor(mean), torch.tensor([value or 1.0 for value in std]))
        network = networks.build(
            config.backbone,
            n_classes=self.experiment.n_classes,
            image_shape=(3, *data.image_size),
            seed=config.seed,
            **config.backbone_settings,
        )
        self._flops = networks.flops(network)
        self.learner = learners.make(
            config.learner,
            network,
            seed=config.seed,
            device=device,
            precision=config.training.precision,
            **config.learner_settings,
        )
        self.snapshots = Snapshots(self.experiment, config, self.scale, device)
        self._train_sets = train_sets(self.experiment, config.recording)
        self._at = Position()
        self._saved_at = time.monotonic()
        self._step_began = time.monotonic()

    def resume(self) -> int:
        """Take up the last checkpoint; returns the last step it contains, -1 if there is none."""
        found = checkpoint.load(self._folder, LAST, self.run_id)
        if found is not None:
            with checkpoint.understood(self._folder / LAST):
                self.learner.load_state(found["learner"])
                self._at = checkpoint.position(self._folder, found)
        return self._at.step

    def go(self, recorder: Recorder) -> None:
        """Train what is left, from wherever the training stands."""
        self._step_began = time.monotonic() - self._at.seconds
        while self._at.phase < len(self.phases):
            phase = self.phases[self._at.phase]
            if not self._at.begun:
                self.learner.begin_task(phase.task)
                self._log(recorder, phase, self.evaluate(), None)
                self._at.begun = True
                self._save(recorder)
            while self._at.epoch < phase.epochs:
                self._train_epoch(recorder, phase)
            self._at = dataclasses.replace(self._at, phase=self._at.phase + 1, begun=False, epoch=0)
        steps = sum(phase.epochs + 1 for phase in self.phases)
        if recorder.last_step != steps - 1:
            raise WaterjarError(
                f"{recorder.path} has its last step at {recorder.last_step}, not {steps - 1}: delete it, and the same "
                "command trains it from its beginning"
            )
        if self._at.best_step >= 0:
            _note_once(recorder, "best_validation", f"step {self._at.best_step}: accuracy {self._at.best!r}")

    def _train_epoch(self, recorder: Recorder, phase: Phase) -> None:
        at = self._at
        epoch = Epoch(self.experiment, self.config, phase, at.epoch, self.scale)
        if at.trace is None:
            at.trace = torch.zeros(3, len(epoch.bounds))
        trace = at.trace.to(self._device)
        while at.batch < len(epoch.bounds):
            batch = epoch.batch(at.batch)
            seen = self.learner.observe(batch.inputs.to(self._device), batch.labels.to(self._device))
            trace[:, at.batch] = torch.stack([seen.loss, seen.correct.to(seen.loss.dtype), seen.gradient_norm])
            at.replayed += seen.replayed
            at.patched += batch.patched
            at.batch += 1
            if time.monotonic() - self._saved_at > self._every or stopping.requested():
                at.trace = trace.cpu()
                self._save(recorder)
                stopping.stop_if_requested()
        if at.epoch + 1 == phase.epochs:
            size = self.config.training.batch_size
            at.replayed += self.learner.end_task(plain_batches(self.experiment, phase, self.scale, size, self._device))
        at.epoch += 1
        at.trace = trace.cpu()
        self._log(recorder, phase, self.evaluate(), epoch)
        at.batch, at.trace, at.replayed, at.patched = 0, None, 0, 0
        self._save(recorder)

    def evaluate(self) -> dict[str, Tally]:
        """Show every evaluation set to the network as it is now."""
        network, fill = self.learner.network, self.config.shortcut.mask
        keep, train = self.config.recording.examples, self._train_sets
        return evaluate(network, self.experiment, self.scale, self._device, fill, keep=keep, train=train)

    def _log(self, recorder: Recorder, phase: Phase, tallies: dict[str, Tally], epoch: Epoch | None) -> None:
        """Record a step; without an epoch it is the evaluation at the start of a phase."""
        at = self._at
        values: dict[str, Any] = {
            "performance": performance(tallies, list(EVAL_SETS), self.config.recording.class_accuracy),
            "examples": examples_of(tallies, self.config.recording),
        }
        images = 0
        if epoch is not None and at.trace is not None:
            sizes = torch.tensor([stop - start for start, stop in epoch.bounds], dtype=torch.float64)
            images = int(sizes.sum())
            loss, correct, norm = at.trace.double()
            values["train"] = {
                "loss": float(loss @ sizes) / images,
                "accuracy": float(correct.sum()) / images,
                "gradient_norm": float(norm.mean()),
                "learning_rate": self.learner.learning_rate,
                "patched_images": at.patched,
            }
        values["resources"] = self._resources(images)
        snapshot = self.snapshots.take(self.learner.network, at.epoch) or {}
        snapshot |= outputs_of(tallies, self.config.recording, at.epoch)
        at.step = recorder.log(train_task=phase.name, epoch=at.epoch, snapshot=snapshot or None, **values)
        if epoch is not None and phase.name in ("t2", JOINT):
            self._keep_best(tallies["t2_validation"])

    def _resources(self, images: int) -> dict[str, float | Missing]:
        now = time.monotonic()
        seconds, self._step_began = now - self._step_began, now
        used: dict[str, float | Missing] = {
            "seconds": seconds,
            "images": images,
            "peak_memory": self._peak_memory() or missing("not_recorded"),
            "buffer_bytes": self.learner.buffer_bytes,
            "flops": BACKWARD_COST * self._flops * (images + self._at.replayed),
        }
        if self._device.startswith("cuda"):
            used["peak_device_memory"] = self._peak_device_memory()
        return used

    def _peak_memory(self) -> int:
        """Of all sessions of the run; 0 if the system does not tell."""
        return max(self._memory.largest() or 0, self._at.peak_memory)

    def _peak_device_memory(self) -> int:
        here = torch.cuda.max_memory_allocated() if self._device.startswith("cuda") else 0
        return max(here, self._at.peak_device_memory)

    def _keep_best(self, tally: Tally) -> None:
        """Keep the weights with the highest T2 validation accuracy; the first of equals."""
        if tally.broken:
            return
        accuracy = float(tally.right.sum() / tally.count.sum())
        if accuracy > self._at.best:
            self._at.best, self._at.best_step = accuracy, self._at.step
            weights = {key: value.cpu() for key, value in self.learner.network.state_dict().items()}
            checkpoint.save(self._folder, BEST, self.run_id, {"step": self._at.step, "network": weights})

    def _save(self, recorder: Recorder) -> None:
        recorder.sync()  # a checkpoint may not reach the disk before the step that it stands behind
        self._saved_at = time.monotonic()
        self._at.seconds = self._saved_at - self._step_began
        self._at.peak_memory, self._at.peak_device_memory = self._peak_memory(), self._peak_device_memory()
        position = {f.name: getattr(self._at, f.name) for f in dataclasses.fields(Position)}
        content = {"learner": _to_cpu(self.learner.state()), "position": position}
        checkpoint.save(self._folder, LAST, self.run_id, content)


def _to_cpu(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {key: _to_cpu(value) for key, value in state.items()}
    return [_to_cpu(value) for value in state] if isinstance(state, list) else state


def _note_once(recorder: Recorder, kind: str, message: str) -> None:
    """Record an event, unless a session that was killed before it could seal the run has done so."""
    nodes = read_root(recorder.path)["consolidated_metadata"]["metadata"]
    keys = ("events/kind", "events/message")
    columns = [read_array(recorder.path, key, nodes[key]).tolist() for key in keys if key in nodes]
    if (kind, message) not in zip(*columns, strict=True):
        recorder.event(kind, message)


def check_that_run_is_not_older(path: Path, file: Path, last: int) -> None:
    """A step is recorded before its checkpoint is written, so a run that lacks it was exchanged or lost its end."""
    recorded = int(read_root(path)["attributes"]["progress"]["step"])
    if recorded < last:
        raise WaterjarError(
            f"{path} ends at step {recorded}, but its checkpoint {file} is of step {last}: the run is an older copy, "
            "or its end did not reach the disk before a power cut. Put the newer copy back, or delete the checkpoint "
            f"(rm '{file}'): the same command then trains the run from its beginning"
        )


def is_sealed(path: Path) -> bool:
    """Whether a complete run stands there."""
    return (path / ROOT).exists() and open_run(path).status == "sealed"


def train(
    config: RunConfig,
    data: ImageData,
    path: Path,
    *,
    checkpoints: Path,
    device: str = "auto",
    checkpoint_seconds: float = 60.0,
) -> Path:
    """Train a run to its end and seal it at `path`, from its last checkpoint if it was begun before.

    A sealed run is left alone. Everything random hangs on the config; the caller's generators are not touched.
    """
    mend(path)
    if is_sealed(path):
        (checkpoints / LAST).unlink(missing_ok=True)
        return path
    target = resolve_device(device)  # type: ignore[arg-type]
    trainer = Trainer(config, data, device=target, checkpoints=checkpoints, every=checkpoint_seconds)
    begun = (path / ROOT).exists()
    if not begun and checkpoint.load(checkpoints, LAST, trainer.run_id) is not None:
        (checkpoints / LAST).unlink()  # of a run that was removed: going on from it would leave out its beginning
    last = trainer.resume()
    if begun:
        check_that_run_is_not_older(path, checkpoints / LAST, last)
    try:
        with using_parts(config.parts):
            recorder = Recorder(
                path,
                {**config.to_plain(), "device": target},
                seeds=[config.seed],
                eval_sets=EVAL_SETS,
                eval_sizes=evaluation_sizes(trainer.experiment),
                tasks=TASKS,
                classes=trainer.experiment.class_names,
                probe_sets=trainer.snapshots.probe_sets,
                data_fingerprint=data.fingerprint,
                resume_at=last if begun else None,
                summary=False,
            )
    except WaterjarError:
        if is_sealed(path):  # by another process, since we looked
            return path
        raise
    with recorder:
        trainer.snapshots.describe(recorder, trainer.learner.network)
        describe_examples(recorder, trainer.experiment, config.recording)
        with stopping.heeded():
            trainer.go(recorder)
    (checkpoints / LAST).unlink(missing_ok=True)
    return path
