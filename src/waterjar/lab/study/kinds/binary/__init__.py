"""Studies of continual binary tasks: one run per algorithm, with all repeats in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from waterjar.lab.binary import BinaryConfig, draw_tasks, run_id_of
from waterjar.lab.binary.engines import is_stacked, processes_a_run
from waterjar.lab.binary.learner import first_network, try_options
from waterjar.lab.binary.probes import probe_rows
from waterjar.lab.config import resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.study.job import RunPlan
from waterjar.lab.study.kinds.binary.declaration import Declaration, Resources, declare, expand
from waterjar.lab.study.kinds.binary.estimate import cost, rehearse
from waterjar.run.root import read_array

__all__ = ["Declaration", "cost", "declare", "expand", "rehearse"]

HEADLINE = "task in training"


def plan(config: BinaryConfig, data: ImageData, resources: Resources) -> RunPlan:
    """A config over the data."""
    training = config.training
    stacked = is_stacked(resources.engine, len(config.repeat_seeds), resolve_device(resources.device))
    epochs = config.tasks.number * training.epochs
    return RunPlan(
        name=f"{config.method}-{config.network}",
        run_id=run_id_of(config, data.fingerprint, stacked=stacked),
        images=epochs * draw_tasks(data, config).n_train * len(config.repeat_seeds),
        epochs=epochs,
        epochs_a_step=training.log_frequency,
    )


def check(configs: Sequence[BinaryConfig], data: ImageData) -> None:
    """Build what every run learns with and records, so that a fault shows now and not in a worker an hour later."""
    for config in configs:
        network = first_network(config, (config.channels, *data.image_size), 0)
        network.check_layers(config.recording.features, "recording.features: layer")
        if config.recording.features:
            probe_rows(draw_tasks(data, config), config, 0)
        try_options(config, network)


def train(
    config: Mapping[str, Any], data: ImageData, path: Path, checkpoints: Path, resources: Mapping[str, Any]
) -> Path:
    """Train a run to its end, from its last checkpoint if there is one."""
    from waterjar.lab.binary import train_binary  # noqa: PLC0415 - in the worker

    return train_binary(
        BinaryConfig.model_validate(dict(config)),
        data,
        path,
        checkpoints=checkpoints,
        device=resources["device"],
        engine=resources["engine"],
        workers=processes_a_run(int(resources["workers"])),
        checkpoint_seconds=resources["checkpoint_seconds"],
    )


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
