"""Studies of continual binary tasks: one run per algorithm, with all repeats in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from waterjar.lab.binary import BinaryConfig, draw_tasks, parse_config, run_id_of
from waterjar.lab.binary.engines import choose, is_stacked, processes_a_run
from waterjar.lab.binary.experiment import BinaryTasks, assemble, phases
from waterjar.lab.binary.learner import first_network, rule_of
from waterjar.lab.binary.probes import probe_rows
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.learning.learner import try_options
from waterjar.lab.study.job import RunPlan
from waterjar.lab.study.kinds.binary.declaration import Declaration, Resources, declare, expand
from waterjar.lab.study.parts import with_changes
from waterjar.run.root import read_array

__all__ = ["Declaration", "declare", "expand"]

HEADLINE = "task in training"
BRANCHABLE = (
    "learner",
    "learner_settings",
    "options",
    "training.batch_size",
    "training.lr_features",
    "training.lr_readout",
    "training.optimiser",
    "training.fresh_optimiser",
)


def plan(config: BinaryConfig, data: ImageData, resources: Resources) -> RunPlan:
    """A config over the data."""
    device, repeats = resolve_device(resources.device), len(config.repeat_seeds)
    stacked = is_stacked(resources.engine, repeats, device)
    tasks = draw_tasks(data, config)
    trained = phases(tasks, config)
    shared = min(repeats, processes_a_run(resources.workers))
    engine: str = resources.engine
    if engine == "auto" and shared > 1:
        engine = choose(config, data, device=device, workers=shared)
    return RunPlan(
        name=f"{config.method}-{config.network}",
        run_id=run_id_of(config, data.fingerprint, stacked=stacked),
        images=sum(phase.epochs for phase in trained) * tasks.n_train * repeats,
        phases=tuple(trained),
        epochs_a_step=config.training.log_frequency,
        processes=shared if engine == "processes" else 1,
    )


def check(configs: Sequence[BinaryConfig], data: ImageData) -> None:
    """Build what every run learns with and records, so that a fault shows now and not in a worker an hour later."""
    for config in configs:
        network = first_network(config, (config.channels, *data.image_size), 0)
        network.check_layers(config.recording.features, "recording.features: layer")
        if config.recording.features:
            probe_rows(draw_tasks(data, config), config, 0)
        try_options(rule_of(config), network)


def experiment(
    config: Mapping[str, Any],
    data: ImageData,
    resources: Mapping[str, Any],
    scratch: Path,
    begun: Path | None = None,
) -> BinaryTasks:
    """What is trained."""
    return assemble(
        BinaryConfig.model_validate(dict(config)),
        data,
        device=resolve_device(resources["device"]),
        engine=resources["engine"],
        workers=processes_a_run(int(resources["workers"])),
        scratch=scratch,
        begun=begun,
    )


def fitted(config: BinaryConfig, data: ImageData) -> BinaryConfig:
    """The same with as many images of a class, and samples of a task, as there are."""
    asked, tasks, recording = config.tasks, {}, config.recording
    for split, labels in (("train", data.train_labels), ("test", data.test_labels)):
        there, wanted = int(np.unique(labels, return_counts=True)[1].min()), getattr(asked, f"{split}_per_class")
        tasks[f"{split}_per_class"] = None if wanted is None else min(wanted, there)
        if split == "test":
            samples = min(recording.samples, asked.classes_per_task * min(wanted or there, there))
            recording = recording.model_copy(update={"samples": samples})
    return config.model_copy(update={"tasks": asked.model_copy(update=tasks), "recording": recording})


def branched(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> BinaryConfig:
    """The config of a run with some settings changed; options and optimisers may be bare names."""
    found = with_changes({**plain, **({"learner_settings": {}} if "learner" in changes else {})}, changes)
    training = found["training"]
    found["training"] = {**training, "optimiser": _named(training["optimiser"])}
    found["options"] = [_named(one) for one in found["options"]]
    return parse_config(found, "--set")


def _named(given: Any) -> Any:
    return {"name": given} if isinstance(given, str) else given


def pace_key(config: BinaryConfig) -> tuple[str, str]:
    """Everything but the seeds, the numbers of tasks and epochs, and the rates."""
    rest = config.model_dump(mode="json", exclude={"seed", "seeds", "network", "network_settings"})
    rest["repeats"] = len(config.repeat_seeds)
    left_out = ("epochs", "log_frequency", "lr_features", "lr_readout")
    rest["training"] = {key: value for key, value in rest["training"].items() if key not in left_out}
    network = {"name": config.network, "settings": config.full_network_settings}
    return json.dumps(network, sort_keys=True), json.dumps(rest, sort_keys=True)


def headline(path: Path, root: Mapping[str, Any]) -> float | None:
    """The last accuracy on the task in training, mean over repeats."""
    nodes = root["consolidated_metadata"]["metadata"]
    accuracy, task = (
        read_array(path, f"performance/{name}", nodes[f"performance/{name}"])
        for name in ("accuracy", "train_task_index")
    )
    # A run that was resumed from its very beginning has its arrays, and no rows in them yet.
    return float(accuracy[-1, int(task[-1])].mean()) if len(accuracy) else None
