"""Training one run of the binary-task experiment: R repeats, T tasks, recorded, and resumable to the bit."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab import checkpoint, networks, stopping
from waterjar.lab.binary.class_tasks import draw_tasks
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.engines import ENGINES, Crew, choose, hire, is_stacked
from waterjar.lab.binary.examples import describe_examples, examples_by_set
from waterjar.lab.binary.probes import probe_labels, probe_rows
from waterjar.lab.binary.pupil import first_network
from waterjar.lab.binary.size import kept_epochs
from waterjar.lab.checkpoint import LAST, Position
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.memory import PeakMemory
from waterjar.lab.scenarios import batch_bounds
from waterjar.lab.trainer import BACKWARD_COST, check_that_run_is_not_older, is_sealed
from waterjar.run.identity import identify
from waterjar.run.provenance import using_parts
from waterjar.run.recorder import Recorder
from waterjar.run.resume import mend
from waterjar.run.root import read_root
from waterjar.run.schema import Missing, Variable, missing
from waterjar.run.store import ROOT

_EVAL = ("step", "eval_set", "repeat")
VARIABLES = {
    "performance/random_accuracy": Variable(
        _EVAL, "accuracy of random features with a learned readout", "1", "higher", accuracy=True
    ),
    "performance/random_loss": Variable(_EVAL, "mean loss of random features with a learned readout", "nat", "lower"),
    "performance/multitask_accuracy": Variable(
        _EVAL, "accuracy of a network trained on all tasks", "1", "higher", accuracy=True
    ),
    "performance/multitask_loss": Variable(_EVAL, "mean loss of a network trained on all tasks", "nat", "lower"),
    "train/reward": Variable(
        ("step", "repeat"), "share of the answers given in training that were right", "1", "higher"
    ),
}
"""What these runs have beside the schema."""

_TRAIN = ("loss", "accuracy", "reward", "gradient_norm")  # in /train, what is traced of the learner's batches


def run_id_of(config: BinaryConfig, fingerprint: str, *, stacked: bool = False) -> str:
    """The identity of the run that a config and a data set make, by an engine that stacks repeats or not."""
    plain = {**config.to_plain(), **({"engine": "vmap"} if stacked else {})}
    return identify(plain, config.repeat_seeds, fingerprint, _unhashed(stacked))[0]


def _unhashed(stacked: bool) -> tuple[str, ...]:
    """The engine identifies a run where it changes the numbers: those that train a repeat alone have the same bits."""
    return () if stacked else ("engine",)


class BinaryTrainer:
    """One run under way. `train_binary` below is the way in."""

    def __init__(
        self, config: BinaryConfig, data: ImageData, crew: Crew, *, run_id: str, engine: str, folder: Path, every: float
    ) -> None:
        self._memory = PeakMemory()
        self.config = config
        self.run_id = run_id
        self.tasks = draw_tasks(data, config)
        self._crew = crew
        self._engine = engine
        self._folder = folder
        self._every = every
        self._batches = len(batch_bounds(self.tasks.n_train, config.training.batch_size, at_least=1))
        network = first_network(config, (config.channels, *data.image_size), 0)
        for layer in config.recording.features:
            if layer not in network.layer_names:
                raise unknown_name("recording.features: layer", layer, network.layer_names)
        self._flops = networks.flops(network)
        self._kept = kept_epochs(config)
        self._at = Position()
        self._chunk = 1
        self._saved_at = self._step_began = time.monotonic()

    def resume(self, found: dict[str, Any] | None) -> int:
        """Take up a checkpoint; returns the last step it contains, -1 if there is none."""
        if found is not None:
            with checkpoint.understood(self._folder / LAST):
                self._at = checkpoint.position(self._folder, found)
                self._crew.load(found["cohorts"])
        return self._at.step

    def describe(self, recorder: Recorder) -> None:
        """Record once which classes and samples everything is about, and the first weights."""
        recorder.once("probe_samples", task_class=self.tasks.classes)
        if self.config.recording.features:
            rows = np.stack([probe_rows(self.tasks, self.config, r) for r in range(len(self.tasks.classes))])
            labels = np.broadcast_to(probe_labels(self.config), rows.shape).copy()
            ids = np.asarray(self.tasks.data.test_index)[rows]
            recorder.once("probe_samples", label=labels, sample_index=ids)
        describe_examples(recorder, self.tasks, self.config)
        if self.config.recording.weights:
            recorder.once("weights", initial=self._weights("first_weights"))

    def go(self, recorder: Recorder) -> None:
        """Train what is left, from wherever the training stands."""
        self._step_began = time.monotonic() - self._at.seconds
        names, epochs = self.tasks.names, self.config.training.epochs
        while self._at.phase < len(names):
            if not self._at.begun:
                self._crew.ask("begin_task", self._at.phase)
                self._log(recorder, names[self._at.phase])
                self._at.begun = True
                self._save_if_due(recorder)
            while self._at.epoch < epochs:
                self._train_some(recorder, names[self._at.phase])
            self._at = dataclasses.replace(self._at, phase=self._at.phase + 1, begun=False, epoch=0)

    def _train_some(self, recorder: Recorder, task: str) -> None:
        """A few batches: as many as fit between two checkpoints, and at most to the end of the epoch."""
        at = self._at
        began = time.monotonic()
        stop = min(at.batch + self._chunk, self._batches)
        answers = self._crew.ask("train", at.epoch, at.batch, stop)
        told = torch.from_numpy(np.concatenate([traced for traced, _ in answers], axis=1))
        for batch in told:  # one by one: how batches are cut into chunks must not show in the last bit
            at.trace = _added(at.trace, batch)
        at.replayed += sum(replayed for _, replayed in answers)
        at.batch = stop
        if time.monotonic() - began < self._every / 4:
            self._chunk = min(2 * self._chunk, self._batches)
        if at.batch == self._batches:
            at.epoch, at.batch = at.epoch + 1, 0
            if at.epoch % self.config.training.log_frequency == 0:
                self._log(recorder, task)
                at.trace, at.replayed = None, 0
        self._save_if_due(recorder)

    def _log(self, recorder: Recorder, task: str) -> None:
        """Record a step; at epoch 0 it is the evaluation at the start of a task."""
        at = self._at
        found = _joined(self._crew.ask("evaluate"))
        examples = examples_by_set(found, self.tasks)
        expert: dict[str, Any] = {
            name.removeprefix("expert_"): {task: found.pop(name)} for name in list(found) if name.startswith("expert_")
        }
        values: dict[str, Any] = {"performance": found, **({"expert": expert} if expert else {}), **examples}
        images = 0
        if at.epoch > 0 and at.trace is not None:
            per_repeat = self.config.training.log_frequency * self.tasks.n_train
            images = per_repeat * len(self.config.repeat_seeds)
            loss, correct, reward = (at.trace[:, :3] / per_repeat).permute(1, 2, 0).numpy()
            norm = (at.trace[:, 3] / at.trace[:, 4]).T.numpy()
            values["train"] = dict(zip(_TRAIN, (loss[0], correct[0], reward[0], norm[0]), strict=True))
            if expert:
                expert |= {"train_accuracy": correct[1], "train_loss": loss[1]}
            rate = self.config.training.lr_features
            values["train"]["learning_rate"] = np.full(len(self.config.repeat_seeds), rate)
        values["resources"] = self._resources(images)
        at.step = recorder.log(train_task=task, epoch=at.epoch, snapshot=self._snapshot(), **values)

    def _snapshot(self) -> dict[str, Any] | None:
        if self._at.epoch not in self._kept:
            return None
        found: dict[str, Any] = {}
        if self.config.recording.weights:
            found["weights"] = self._weights("current_weights")
        if self.config.recording.features:
            found["features"] = _stacked(self._crew.ask("features"))
        return found

    def _weights(self, which: str) -> dict[str, NDArray[Any]]:
        found = _stacked(self._crew.ask(which))
        return {name: values[0] for name, values in found.items()} if len(self.config.repeat_seeds) == 1 else found

    def _resources(self, images: int) -> dict[str, float | Missing]:
        """Seconds and memory of all that goes on; images, buffer and flops of the learner, without its companions."""
        now = time.monotonic()
        seconds, self._step_began = now - self._step_began, now
        return {
            "seconds": seconds,
            "images": images,
            "peak_memory": self._peak_memory() or missing("not_recorded"),
            "buffer_bytes": sum(self._crew.ask("memory")),
            "flops": BACKWARD_COST * self._flops * (images + self._at.replayed),
        }

    def _peak_memory(self) -> int:
        """Of all sessions of the run and of all its processes; 0 if the system does not tell."""
        own = self._memory.largest() or 0
        return max(own + self._crew.peak_memory(), self._at.peak_memory)

    def _save_if_due(self, recorder: Recorder) -> None:
        if time.monotonic() - self._saved_at < self._every and not stopping.requested():
            return
        recorder.sync()  # a checkpoint may not reach the disk before the step that it stands behind
        self._at.seconds = time.monotonic() - self._step_began
        self._at.peak_memory = self._peak_memory()
        position = {f.name: getattr(self._at, f.name) for f in dataclasses.fields(Position)}
        content = {"position": position, "engine": self._engine, "cohorts": self._crew.ask("state")}
        checkpoint.save(self._folder, LAST, self.run_id, _to_cpu(content))
        self._saved_at = time.monotonic()
        stopping.stop_if_requested()


def _to_cpu(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {key: _to_cpu(value) for key, value in state.items()}
    return [_to_cpu(value) for value in state] if isinstance(state, list) else state


def _added(trace: torch.Tensor | None, batch: torch.Tensor) -> torch.Tensor:
    """Sums (repeat, TRACED and how many norms, pupil) with one more batch; its norm may be missing."""
    there = ~torch.isnan(batch[:, 3:])
    row = torch.cat([batch[:, :3], batch[:, 3:].where(there, 0.0), there.double()], 1)
    return row if trace is None else trace + row


def _stacked(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Name -> (repeat, ...) of all cohorts."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _joined(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Name -> (..., repeat) of all cohorts."""
    return {name: np.concatenate([part[name] for part in parts], axis=-1) for name in parts[0]}


def train_binary(
    config: BinaryConfig,
    data: ImageData,
    path: Path,
    *,
    checkpoints: Path,
    device: str = "auto",
    engine: str = "auto",
    workers: int | None = None,
    checkpoint_seconds: float = 60.0,
) -> Path:
    """Train a run to its end and seal it at `path`, from its last checkpoint if it was begun before.

    A sealed run is left alone. Everything random hangs on the config; the caller's generators are not touched. Workers
    are those of `processes`: as many as there are cores, unless told.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    mend(path)
    if is_sealed(path):
        (checkpoints / LAST).unlink(missing_ok=True)
        return path
    target = resolve_device(device)  # type: ignore[arg-type]
    stacked = is_stacked(engine, len(config.repeat_seeds), target)
    run_id = run_id_of(config, data.fingerprint, stacked=stacked)
    begun = (path / ROOT).exists()
    found = checkpoint.load(checkpoints, LAST, run_id)
    if found is not None and not begun:
        (checkpoints / LAST).unlink()  # of a run that was removed: going on from it would leave out its beginning
        found = None
    if begun and not stacked:
        _check_that_it_was_not_stacked(path, engine)
    chosen = choose(config, data, device=target, workers=workers) if engine == "auto" else engine
    crew = hire(chosen, config, data, device=target, scratch=checkpoints / "data", workers=workers)
    try:
        trainer = BinaryTrainer(
            config, data, crew, run_id=run_id, engine=chosen, folder=checkpoints, every=checkpoint_seconds
        )
        last = trainer.resume(found)
        if begun:
            check_that_run_is_not_older(path, checkpoints / LAST, last)
        names = trainer.tasks.names
        with (
            using_parts(config.parts),
            Recorder(
                path,
                {**config.to_plain(), "device": target, "engine": chosen},
                seeds=config.repeat_seeds,
                eval_sets={name: task for task, name in enumerate(names)},
                eval_sizes=dict.fromkeys(names, trainer.tasks.n_test),
                tasks=names,
                classes=[f"label_{label}" for label in range(config.tasks.classes_per_task)],
                probe_sets=[names[task] for task in config.probe_tasks],
                variables=VARIABLES,
                data_fingerprint=data.fingerprint,
                unhashed=_unhashed(stacked),
                resume_at=last if begun else None,
                summary=False,
            ) as recorder,
        ):
            trainer.describe(recorder)
            with stopping.heeded():
                trainer.go(recorder)
    finally:
        crew.close()
    (checkpoints / LAST).unlink(missing_ok=True)
    return path


def _check_that_it_was_not_stacked(path: Path, engine: str) -> None:
    """Refuse a run that an earlier waterjar began: there `vmap` had the identity of the others, and not their bits."""
    begun = read_root(path)["attributes"]
    if begun["config"].get("engine") == "vmap" and len(begun["seeds"]) > 1:
        raise WaterjarError(
            f"{path} was begun with engine 'vmap' by an earlier version, and '{engine}' would not give the same bits: "
            "move it away to train it anew"
        )
