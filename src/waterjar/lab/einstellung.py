"""The Einstellung experiment: what a learner of two tasks with a shortcut is, evaluated on and recorded of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waterjar.lab import checkpoint, learners, loop, networks
from waterjar.lab.checkpoint import BEST, Progress
from waterjar.lab.config import RunConfig, resolve_device
from waterjar.lab.data import ImageData, channel_statistics
from waterjar.lab.dead_networks import Flags, Signs, answers_alike, without_gradient
from waterjar.lab.evaluation import EVAL_SETS, Normalisation, Tally, evaluate, evaluation_sizes, performance
from waterjar.lab.examples import describe_examples, examples_of, outputs_of, train_sets
from waterjar.lab.loop import BACKWARD_COST, Usage
from waterjar.lab.scenarios import Epoch, batch_bounds, phases, plain_batches
from waterjar.lab.snapshots import Snapshots
from waterjar.lab.tasks import TASKS, arrange
from waterjar.run.identity import identify
from waterjar.run.recorder import Recorder
from waterjar.run.root import read_array, read_root
from waterjar.run.schema import JOINT


def run_id_of(config: RunConfig, fingerprint: str) -> str:
    """The identity of the run that a config and a data set make."""
    return identify(config.to_plain(), [config.seed], fingerprint, numerics=config.numerics)[0]


class Einstellung:
    """One run of it, as an `Experiment` of the loop. `checkpoints` is where the best weights are kept."""

    epochs_a_step = 1
    asks_often = True

    def __init__(self, config: RunConfig, data: ImageData, *, device: str, checkpoints: Path) -> None:
        self.config = config
        self.tasks = arrange(data, config)
        self.phases = phases(self.tasks, config)
        self._device = device
        self._folder = checkpoints
        rows = np.concatenate([self.tasks.train_rows[task] for task in TASKS])
        mean, std = channel_statistics(data.train_images, rows)
        self.scale = Normalisation(torch.tensor(mean), torch.tensor([value or 1.0 for value in std]))
        network = networks.build(
            config.backbone,
            n_classes=self.tasks.n_classes,
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
        self.snapshots = Snapshots(self.tasks, config, self.scale, device)
        self._train_sets = train_sets(self.tasks, config.recording)
        self._epoch: tuple[int, int, Epoch] | None = None
        self._tallies: dict[str, Tally] = {}
        self._no_gradient: Flags | None = None

    def recorder(self) -> dict[str, Any]:
        """Its config, tasks and evaluation sets."""
        return {
            "config": {**self.config.to_plain(), "device": self._device},
            "seeds": [self.config.seed],
            "eval_sets": EVAL_SETS,
            "eval_sizes": evaluation_sizes(self.tasks),
            "tasks": TASKS,
            "classes": self.tasks.class_names,
            "probe_sets": self.snapshots.probe_sets,
            "data_fingerprint": self.tasks.data.fingerprint,
            "numerics": self.config.numerics,
        }

    def parts(self) -> Mapping[str, list[str]]:
        """Those of the config."""
        return self.config.parts

    def describe(self, recorder: Recorder) -> None:
        """What the samples of snapshots and examples are."""
        self.snapshots.describe(recorder, self.learner.network)
        describe_examples(recorder, self.tasks, self.config.recording)

    def begin(self, phase: int) -> None:
        """Tell the learner."""
        self.learner.begin_task(self.phases[phase].task)

    def train(self, at: Progress, stop: int) -> None:
        """Batches of an epoch; losses, right answers and gradient norms stay on the device until the epoch ends."""
        if self._epoch is None or self._epoch[:2] != (at.phase, at.epoch):
            epoch = Epoch(self.tasks, self.config, self.phases[at.phase], at.epoch, self.scale)
            self._epoch = at.phase, at.epoch, epoch
        epoch = self._epoch[2]
        trace = torch.zeros(3, len(epoch.bounds)) if at.trace is None else at.trace
        at.trace = trace = trace.to(self._device)
        for number in range(at.batch, stop):
            batch = epoch.batch(number)
            seen = self.learner.observe(batch.inputs.to(self._device), batch.labels.to(self._device))
            trace[:, number] = torch.stack([seen.loss, seen.correct.to(seen.loss.dtype), seen.gradient_norm])
            at.replayed += seen.replayed
            at.patched += batch.patched

    def end(self, at: Progress) -> None:
        """Let the learner measure what mattered in the task."""
        size, phase = self.config.training.batch_size, self.phases[at.phase]
        at.replayed += self.learner.end_task(plain_batches(self.tasks, phase, self.scale, size, self._device))

    def evaluate(self) -> dict[str, Tally]:
        """Show every evaluation set to the network as it is now."""
        network, fill = self.learner.network, self.config.shortcut.mask
        keep, train = self.config.recording.examples, self._train_sets
        return evaluate(network, self.tasks, self.scale, self._device, fill, keep=keep, train=train)

    def evaluated(self, at: Progress) -> dict[str, Any]:
        """Accuracies and losses of all evaluation sets, and what the batches of the epoch told."""
        self._tallies, self._no_gradient = self.evaluate(), None
        values: dict[str, Any] = {
            "performance": performance(self._tallies, list(EVAL_SETS), self.config.recording.class_accuracy),
            "examples": examples_of(self._tallies, self.config.recording),
        }
        if at.epoch and at.trace is not None:
            sizes = torch.tensor([stop - start for start, stop in self._bounds(at)], dtype=torch.float64)
            images = int(sizes.sum())
            loss, correct, norm = at.trace.cpu().double()
            values["train"] = told = {
                "loss": float(loss @ sizes) / images,
                "accuracy": float(correct.sum()) / images,
                "gradient_norm": float(norm.mean()),
                "learning_rate": self.learner.learning_rate,
                "patched_images": at.patched,
            }
            self._no_gradient = without_gradient([told["gradient_norm"]], [told["accuracy"]])
        return values

    def signs(self) -> Signs:
        """Of all evaluation sets with images, and of all batches of the epoch."""
        shown = {name: tally for name, tally in self._tallies.items() if tally.count.any()}
        alike = {
            name: answers_alike(np.atleast_2d(tally.lowest), np.atleast_2d(tally.highest), int(tally.count.sum()))
            for name, tally in shown.items()
        }
        return Signs(alike, self._no_gradient)

    def _bounds(self, at: Progress) -> list[tuple[int, int]]:
        return batch_bounds(len(self.phases[at.phase].rows), self.config.training.batch_size)

    def snapshot(self, at: Progress) -> dict[str, Any] | None:
        """Features and weights, and logits of examples."""
        snapshot = self.snapshots.take(self.learner.network, at.epoch) or {}
        snapshot |= outputs_of(self._tallies, self.config.recording, at.epoch)
        return snapshot or None

    def recorded(self, at: Progress) -> None:
        """Keep the weights with the highest T2 validation accuracy; the first of equals."""
        tally = self._tallies["t2_validation"]
        if not at.epoch or self.phases[at.phase].name not in ("t2", JOINT) or tally.broken:
            return
        accuracy = float(tally.right.sum() / tally.count.sum())
        if accuracy > at.best:
            at.best, at.best_step = accuracy, at.step
            weights = {key: value.cpu() for key, value in self.learner.network.state_dict().items()}
            checkpoint.save(self._folder, BEST, self._run_id, {"step": at.step, "network": weights})

    @property
    def _run_id(self) -> str:
        return run_id_of(self.config, self.tasks.data.fingerprint)

    def usage(self, at: Progress) -> Usage:
        """Images of the phase, and with them what was replayed."""
        images = len(self.phases[at.phase].rows) if at.epoch else 0
        return Usage(images, BACKWARD_COST * self._flops * (images + at.replayed), self.learner.buffer_bytes)

    def finish(self, at: Progress, recorder: Recorder) -> None:
        """Note the step with the best weights."""
        if at.best_step >= 0:
            _note_once(recorder, "best_validation", f"step {at.best_step}: accuracy {at.best!r}")

    def peak_memory(self) -> int:
        """There are no other processes."""
        return 0

    def state(self) -> Any:
        """The learner's."""
        return self.learner.state()

    def load_state(self, state: Any) -> None:
        """Back to a state."""
        self.learner.load_state(state)

    def close(self) -> None:
        """Nothing is held."""


def _note_once(recorder: Recorder, kind: str, message: str) -> None:
    """Record an event, unless a session that was killed before it could seal the run has done so."""
    nodes = read_root(recorder.path)["consolidated_metadata"]["metadata"]
    keys = ("events/kind", "events/message")
    columns = [read_array(recorder.path, key, nodes[key]).tolist() for key in keys if key in nodes]
    if (kind, message) not in zip(*columns, strict=True):
        recorder.event(kind, message)


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
    target = resolve_device(device)  # type: ignore[arg-type]
    return loop.train(
        lambda _: Einstellung(config, data, device=target, checkpoints=checkpoints),
        path,
        run_id=run_id_of(config, data.fingerprint),
        checkpoints=checkpoints,
        device=target,
        checkpoint_seconds=checkpoint_seconds,
    )
