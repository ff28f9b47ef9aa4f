"""The binary-task experiment: R repeats of T tasks, what they are evaluated on and what is recorded of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab import loop, networks
from waterjar.lab.binary.class_tasks import ClassTasks, draw_tasks
from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.engines import ENGINES, Engine, choose, is_stacked, start
from waterjar.lab.binary.examples import describe_examples, examples_by_set
from waterjar.lab.binary.learner import first_network
from waterjar.lab.binary.probes import probe_labels, probe_rows
from waterjar.lab.checkpoint import Keep, Progress
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.dead_networks import Signs, without_gradient
from waterjar.lab.loop import BACKWARD_COST, Experiment, Phase, Usage
from waterjar.lab.scenarios import batch_bounds
from waterjar.run.identity import identify
from waterjar.run.recorder import Recorder
from waterjar.run.root import read_root
from waterjar.run.schema import Variable

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
    return identify(plain, config.repeat_seeds, fingerprint, _unhashed(stacked), config.NUMERICS)[0]


def _unhashed(stacked: bool) -> tuple[str, ...]:
    """The engine identifies a run where it changes the numbers: those that train a repeat alone have the same bits."""
    return () if stacked else ("engine",)


def phases(tasks: ClassTasks, config: BinaryConfig) -> list[Phase]:
    """The tasks, one after the other."""
    batches = len(batch_bounds(tasks.n_train, config.training.batch_size, at_least=1))
    return [Phase(name, config.training.epochs, batches) for name in tasks.names]


def kept_epochs(config: BinaryConfig) -> list[int]:
    """The epochs of a task at which features and weights are kept, of those at which it is evaluated.

    >>> kept_epochs(BinaryConfig(data="x", repeats=1, tasks={"number": 1}, training={"epochs": 7},
    ...     recording={"every": 3, "weights": True}))
    [0, 3, 6, 7]
    """
    logged = range(0, config.training.epochs + 1, config.training.log_frequency)
    if not (config.recording.features or config.recording.weights):
        return []
    return [epoch for k, epoch in enumerate(logged) if k % config.recording.every == 0 or epoch == logged[-1]]


class BinaryTasks(Experiment):
    """One run of it."""

    asks_often = False  # its groups may be in other processes

    def __init__(
        self,
        config: BinaryConfig,
        data: ImageData,
        engine: Engine,
        *,
        engine_name: str,
        device: str,
        unhashed: tuple[str, ...],
    ) -> None:
        self.config = config
        self.tasks = draw_tasks(data, config)
        self.epochs_a_step = config.training.log_frequency
        self.phases = phases(self.tasks, config)
        self._engine = engine
        self._named = {"device": device, "engine": engine_name}
        self._unhashed = unhashed
        network = first_network(config, (config.channels, *data.image_size), 0)
        network.check_layers(config.recording.features, "recording.features: layer")
        self._flops = networks.flops(network)
        self._kept = kept_epochs(config)
        self._signs = Signs()
        self._between = True

    def recorder(self) -> dict[str, Any]:
        """Its config, tasks and test sets."""
        names = self.tasks.names
        return {
            "config": {**self.config.to_plain(), **self._named},
            "seeds": self.config.repeat_seeds,
            "eval_sets": {name: task for task, name in enumerate(names)},
            "eval_sizes": dict.fromkeys(names, self.tasks.n_test),
            "tasks": names,
            "classes": [f"label_{label}" for label in range(self.config.tasks.classes_per_task)],
            "probe_sets": [names[task] for task in self.config.probe_tasks],
            "variables": VARIABLES,
            "data_fingerprint": self.tasks.data.fingerprint,
            "unhashed": self._unhashed,
            "numerics": self.config.NUMERICS,
        }

    def parts(self) -> Mapping[str, list[str]]:
        """Those of the config."""
        return self.config.parts

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

    def begin(self, phase: int) -> None:
        """Fetch the images of a task, and tell the learners."""
        self._between = False
        self._engine.ask("begin_task", phase)

    def train(self, at: Progress, stop: int) -> None:
        """Batches of all repeats."""
        answers = self._engine.ask("train", at.epoch, at.batch, stop)
        traces = torch.from_numpy(np.concatenate([trace for trace, _ in answers], axis=1))
        for batch in traces:  # one by one: how batches are cut into chunks must not show in the last bit
            at.trace = _added(at.trace, batch)
        at.replayed += sum(replayed for _, replayed in answers)

    def end(self, at: Progress) -> None:
        """Let the learners measure what mattered in the task; its expert is done with."""
        at.replayed += sum(self._engine.ask("end_task"))
        self._between = True

    def evaluated(self, at: Progress) -> dict[str, Any]:
        """Accuracies and losses of everybody on all test sets, and what the batches since the last step told."""
        found = _joined(self._engine.ask("evaluate"))
        self._signs = Signs(dict(zip(self.tasks.names, found.pop("alike"), strict=True)))
        examples = examples_by_set(found, self.tasks)
        task = self.tasks.names[at.phase]
        expert: dict[str, Any] = {
            name.removeprefix("expert_"): {task: found.pop(name)} for name in list(found) if name.startswith("expert_")
        }
        values: dict[str, Any] = {"performance": found, **({"expert": expert} if expert else {}), **examples}
        if at.epoch > 0 and at.trace is not None:
            loss, correct, reward = (at.trace[:, :3] / self._images_a_repeat).permute(1, 2, 0).numpy()
            norm = (at.trace[:, 3] / at.trace[:, 4]).T.numpy()
            values["train"] = dict(zip(_TRAIN, (loss[0], correct[0], reward[0], norm[0]), strict=True))
            self._signs = Signs(self._signs.alike, without_gradient(norm[0], correct[0]))
            if expert:
                expert |= {"train_accuracy": correct[1], "train_loss": loss[1]}
            rate = self.config.training.lr_features
            values["train"]["learning_rate"] = np.full(len(self.config.repeat_seeds), rate)
        return values

    def signs(self) -> Signs:
        """Of the learner on all test sets, and of the batches that tell the norm of their gradient."""
        return self._signs

    def is_due(self, at: Progress) -> bool:
        """At the epochs that are kept."""
        return at.epoch in self._kept

    def snapshot(self, at: Progress) -> dict[str, Any]:
        """Weights and features."""
        found: dict[str, Any] = {}
        if self.config.recording.weights:
            found["weights"] = self._weights("current_weights")
        if self.config.recording.features:
            found["features"] = _stacked(self._engine.ask("features"))
        return found

    def weights(self) -> dict[str, torch.Tensor]:
        """Those of all repeats, by name (repeat, ...)."""
        found = _stacked(self._engine.ask("current_weights"))
        return {name: torch.from_numpy(values) for name, values in found.items()}

    def _weights(self, which: str) -> dict[str, NDArray[Any]]:
        found = _stacked(self._engine.ask(which))
        return {name: values[0] for name, values in found.items()} if len(self.config.repeat_seeds) == 1 else found

    @property
    def _images_a_repeat(self) -> int:
        """Between two steps."""
        return self.config.training.log_frequency * self.tasks.n_train

    def usage(self, at: Progress) -> Usage:
        """Of the learner, over all repeats."""
        images = self._images_a_repeat * len(self.config.repeat_seeds) if at.epoch else 0
        return Usage(images, BACKWARD_COST * self._flops * (images + at.replayed), sum(self._engine.ask("memory")))

    def peak_memory(self) -> int:
        """Of the workers."""
        return self._engine.peak_memory()

    def state(self) -> Any:
        """Those of all groups; between two tasks there is no expert."""
        groups = self._engine.ask("state")
        return [{**group, "task": -1} for group in map(_without_expert, groups)] if self._between else groups

    def load_state(self, state: Any) -> None:
        """Back to a state."""
        self._between = all(group["task"] < 0 for group in state)
        self._engine.load(state)

    def close(self) -> None:
        """Let the workers end."""
        self._engine.close()


def _without_expert(group: dict[str, Any]) -> dict[str, Any]:
    return {who: part for who, part in group.items() if who != "expert"}


def _added(trace: torch.Tensor | None, batch: torch.Tensor) -> torch.Tensor:
    """Sums (repeat, TRACED and how many norms, learner) with one more batch; its norm may be missing."""
    there = ~torch.isnan(batch[:, 3:])
    row = torch.cat([batch[:, :3], batch[:, 3:].where(there, 0.0), there.double()], 1)
    return row if trace is None else trace + row


def _stacked(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Name -> (repeat, ...) of all groups."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _joined(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Name -> (..., repeat) of all groups."""
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
    keep: Keep = "best",
) -> Path:
    """Train a run to its end and seal it at `path`, from its last checkpoint if it was begun before.

    A sealed run is left alone. Everything random hangs on the config; the caller's generators are not touched. Workers
    are those of `processes`: as many as there are cores, unless told.
    """
    target = resolve_device(device)  # type: ignore[arg-type]
    stacked = is_stacked(engine, len(config.repeat_seeds), target)
    return loop.train(
        lambda begun: assemble(
            config,
            data,
            device=target,
            engine=engine,
            workers=workers,
            scratch=checkpoints / "data",
            begun=path if begun else None,
        ),
        path,
        run_id=run_id_of(config, data.fingerprint, stacked=stacked),
        checkpoints=checkpoints,
        device=target,
        checkpoint_seconds=checkpoint_seconds,
        keep=keep,
    )


def assemble(
    config: BinaryConfig,
    data: ImageData,
    *,
    device: str,
    engine: str,
    workers: int | None,
    scratch: Path,
    begun: Path | None = None,
) -> BinaryTasks:
    """The experiment with its engine, for the run `begun`, if it was; `scratch` is where processes find the images."""
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    stacked = is_stacked(engine, len(config.repeat_seeds), device)
    if engine == "processes" and workers == 1:
        engine = "loop"  # which has the same bits, and none to start
    if begun is not None and not stacked:
        _check_that_it_was_not_stacked(begun, engine)
    chosen = choose(config, data, device=device, workers=workers) if engine == "auto" else engine
    started = start(chosen, config, data, device=device, scratch=scratch, workers=workers)
    try:
        return BinaryTasks(config, data, started, engine_name=chosen, device=device, unhashed=_unhashed(stacked))
    except BaseException:
        started.close()
        raise


def _check_that_it_was_not_stacked(path: Path, engine: str) -> None:
    """Refuse a run that an earlier waterjar began: there `vmap` had the identity of the others, and not their bits."""
    begun = read_root(path)["attributes"]
    if begun["config"].get("engine") == "vmap" and len(begun["seeds"]) > 1:
        raise WaterjarError(
            f"{path} was begun with engine 'vmap' by an earlier version, and '{engine}' would not give the same bits: "
            "move it away to train it anew"
        )
