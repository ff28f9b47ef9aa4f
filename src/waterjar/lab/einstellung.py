"""The Einstellung experiment: what a learner of two tasks with a shortcut is, evaluated on and recorded of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from waterjar.lab import learners, loop, networks
from waterjar.lab.checkpoint import Keep, Progress
from waterjar.lab.config import RunConfig, resolve_device
from waterjar.lab.data import ImageData, channel_statistics
from waterjar.lab.dead_networks import Flags, Signs, answers_alike, without_gradient
from waterjar.lab.evaluation import EVAL_SETS, Normalisation, Tally, evaluate, evaluation_sizes, performance
from waterjar.lab.examples import describe_examples, examples_of, outputs_of, train_sets
from waterjar.lab.loop import BACKWARD_COST, Experiment, Usage
from waterjar.lab.scenarios import Epoch, PooledPhase, batch_bounds, phases, plain_batches
from waterjar.lab.snapshots import Snapshots
from waterjar.lab.tasks import TASKS, arrange
from waterjar.run.identity import identify
from waterjar.run.recorder import Recorder
from waterjar.run.schema import JOINT


def run_id_of(config: RunConfig, fingerprint: str) -> str:
    """The identity of the run that a config and a data set make."""
    return identify(config.to_plain(), [config.seed], fingerprint, numerics=config.NUMERICS)[0]


class Einstellung(Experiment):
    """One run of it."""

    phases: Sequence[PooledPhase]

    def __init__(self, config: RunConfig, data: ImageData, *, device: str) -> None:
        self.config = config
        self.tasks = arrange(data, config)
        self.phases = phases(self.tasks, config)
        self._device = device
        rows = np.concatenate([self.tasks.train_rows[task] for task in TASKS])
        mean, std = channel_statistics(data.train_images, rows)
        self.scale = Normalisation(torch.tensor(mean), torch.tensor([value or 1.0 for value in std]))
        network = networks.build(
            config.backbone,
            n_classes=self.tasks.n_classes,
            image_shape=(3, *data.image_size),
            seed=config.seed,
            **config.full_backbone_settings,
        )
        self._flops = networks.flops(network)
        self.learner = learners.make(
            config.learner,
            network,
            seed=config.seed,
            device=device,
            precision=config.training.precision,
            options=config.chosen_options,
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
            "numerics": self.config.NUMERICS,
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
            seen = self.learner.observe(batch.inputs.to(self._device), batch.labels.to(self._device), at.epoch)
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

    def is_due(self, at: Progress) -> bool:
        """Every so many epochs, if anything of a snapshot is wanted."""
        wanted = self.config.recording
        return bool(wanted.features or wanted.weights or wanted.outputs) and not at.epoch % wanted.every

    def snapshot(self, at: Progress) -> dict[str, Any]:
        """Features and weights, and logits of examples."""
        return self.snapshots.take(self.learner.network) | outputs_of(self._tallies, self.config.recording)

    def score(self, at: Progress) -> float | None:
        """The T2 validation accuracy."""
        tally = self._tallies["t2_validation"]
        if not at.epoch or self.phases[at.phase].name not in ("t2", JOINT) or tally.broken:
            return None
        return float(tally.right.sum() / tally.count.sum())

    def weights(self) -> dict[str, torch.Tensor]:
        """The network's."""
        return self.learner.network.state_dict()

    def usage(self, at: Progress) -> Usage:
        """Images of the phase, and with them what was replayed."""
        images = len(self.phases[at.phase].rows) if at.epoch else 0
        return Usage(images, BACKWARD_COST * self._flops * (images + at.replayed), self.learner.buffer_bytes)

    def finish(self, at: Progress, recorder: Recorder) -> None:
        """Note the step with the best weights."""
        if at.best_step >= 0:
            loop.note_once(recorder, "best_validation", f"step {at.best_step}: accuracy {at.best!r}")

    def state(self) -> Any:
        """The learner's."""
        return self.learner.state()

    def load_state(self, state: Any) -> None:
        """Back to a state."""
        self.learner.load_state(state)


def train(
    config: RunConfig,
    data: ImageData,
    path: Path,
    *,
    checkpoints: Path,
    device: str = "auto",
    checkpoint_seconds: float = 60.0,
    keep: Keep = "best",
) -> Path:
    """Train a run to its end and seal it at `path`, from its last checkpoint if it was begun before.

    A sealed run is left alone. Everything random hangs on the config; the caller's generators are not touched.
    """
    target = resolve_device(device)  # type: ignore[arg-type]
    return loop.train(
        lambda _: Einstellung(config, data, device=target),
        path,
        run_id=run_id_of(config, data.fingerprint),
        checkpoints=checkpoints,
        device=target,
        checkpoint_seconds=checkpoint_seconds,
        keep=keep,
    )
