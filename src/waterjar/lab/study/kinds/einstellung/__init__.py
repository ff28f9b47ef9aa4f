"""Studies of the Einstellung effect: strategies on T1, then on T2 with a shortcut, beside fresh learners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from waterjar.lab import networks
from waterjar.lab.augmentation import epoch_parameters
from waterjar.lab.config import RunConfig
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import run_id_of
from waterjar.lab.scenarios import phases
from waterjar.lab.shortcuts import random_region
from waterjar.lab.study.job import RunPlan
from waterjar.lab.study.kinds.einstellung.declaration import Declaration, declare, expand
from waterjar.lab.study.kinds.einstellung.estimate import cost, rehearse
from waterjar.lab.study.parts import Resources
from waterjar.lab.tasks import TASKS, arrange
from waterjar.run.root import read_array

__all__ = ["Declaration", "cost", "declare", "expand", "rehearse"]

HEADLINE = "t2_validation"


def plan(config: RunConfig, data: ImageData, _resources: Resources) -> RunPlan:
    """A config over the data."""
    stretches = phases(arrange(data, config), config)
    return RunPlan(
        name=f"{config.scenario}-{config.learner}-{config.backbone}-{config.seed}",
        run_id=run_id_of(config, data.fingerprint),
        images=sum(phase.epochs * len(phase.rows) for phase in stretches),
        epochs=sum(phase.epochs for phase in stretches),
    )


def check(configs: Sequence[RunConfig], data: ImageData) -> None:
    """Build what every kind of run is made of, so that a fault shows now and not in a worker an hour later."""
    tried = set()
    for config in configs:
        kind = repr(config.model_copy(update={"seed": 0}))
        if kind in tried:
            continue
        tried.add(kind)
        tasks = arrange(data, config)
        shape = (3, *data.image_size)
        network = networks.build(
            config.backbone, n_classes=tasks.n_classes, image_shape=shape, seed=0, **config.backbone_settings
        )
        network.check_layers(config.recording.features, "recording.features: layer")
        one = np.asarray(data.test_index)[:1]
        random_region(tasks.shortcut, one, "test")
        for task in TASKS:
            epoch_parameters(getattr(config.augmentation, task), 0, task, 0, one, image_size=data.image_size)


def train(
    config: Mapping[str, Any], data: ImageData, path: Path, checkpoints: Path, resources: Mapping[str, Any]
) -> Path:
    """Train a run to its end, from its last checkpoint if there is one."""
    from waterjar.lab.einstellung import train as train_run  # noqa: PLC0415
    from waterjar.lab.pictures import FOLDER, show_images  # noqa: PLC0415 - in the worker

    settings = RunConfig.model_validate(dict(config))
    if not (path.parent / FOLDER).exists():
        show_images(arrange(data, settings), path.parent / FOLDER, settings.shortcut.mask)
    return train_run(
        settings,
        data,
        path,
        checkpoints=checkpoints,
        device=resources["device"],
        checkpoint_seconds=resources["checkpoint_seconds"],
    )


def pace_key(config: RunConfig) -> tuple[str, str]:
    """Everything but the seed, the number of epochs and settings that only weigh.

    A learner's fractional numbers are weights and rates: only whether they are zero changes what is computed.
    """
    rest = config.model_dump(mode="json", exclude={"seed", "backbone", "backbone_settings"})
    rest["training"] = {key: value for key, value in rest["training"].items() if not key.startswith("epochs")}
    rest["shortcut"] = {key: value for key, value in rest["shortcut"].items() if not key.endswith("rate")}
    rest["learner_settings"] = {key: _weightless(value) for key, value in rest["learner_settings"].items()}
    network = {"name": config.backbone, "settings": config.backbone_settings}
    return json.dumps(network, sort_keys=True), json.dumps(rest, sort_keys=True)


def _weightless(value: Any) -> Any:
    return value != 0.0 if isinstance(value, float) else value


def headline(path: Path, root: Mapping[str, Any]) -> float | None:
    """The last accuracy on t2_validation."""
    node = root["consolidated_metadata"]["metadata"]["performance/accuracy"]
    accuracy = read_array(path, "performance/accuracy", node)
    names = list(root["attributes"]["eval_sets"])
    # A run that was resumed from its very beginning has its arrays, and no rows in them yet.
    return float(accuracy[-1, names.index(HEADLINE), 0]) if len(accuracy) else None
