"""Studies of the Einstellung effect: strategies on T1, then on T2 with a shortcut, beside fresh learners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.lab import learners, networks
from waterjar.lab.augmentation import epoch_parameters
from waterjar.lab.config import RunConfig, resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import Einstellung, run_id_of
from waterjar.lab.loop import Phase
from waterjar.lab.scenarios import phases
from waterjar.lab.shortcuts import random_region
from waterjar.lab.study.job import RunPlan
from waterjar.lab.study.kinds.einstellung.declaration import Declaration, declare, expand
from waterjar.lab.study.parts import Resources, with_changes
from waterjar.lab.tasks import TASKS, arrange
from waterjar.run.faults import parse_settings
from waterjar.run.root import read_array

__all__ = ["Declaration", "declare", "expand"]

HEADLINE = "t2_validation"
BRANCHABLE = (
    "learner",
    "learner_settings",
    "shortcut",
    "augmentation.t2",
    "training.epochs_t2",
    "training.batch_size",
    "training.precision",
)


def plan(config: RunConfig, data: ImageData, _resources: Resources) -> RunPlan:
    """A config over the data."""
    stretches = phases(arrange(data, config), config)
    return RunPlan(
        name=f"{config.scenario}-{config.learner_with_options}-{config.backbone}-{config.seed}",
        run_id=run_id_of(config, data.fingerprint),
        images=sum(phase.epochs * len(phase.rows) for phase in stretches),
        phases=tuple(Phase(phase.name, phase.epochs, phase.batches) for phase in stretches),
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
            config.backbone, n_classes=tasks.n_classes, image_shape=shape, seed=0, **config.full_backbone_settings
        )
        network.check_layers(config.recording.features, "recording.features: layer")
        learners.make(config.learner, network, seed=0, options=config.chosen_options, **config.learner_settings)
        one = np.asarray(data.test_index)[:1]
        random_region(tasks.shortcut, one, "test")
        for task in TASKS:
            epoch_parameters(getattr(config.augmentation, task), 0, task, 0, one, image_size=data.image_size)


def experiment(
    config: Mapping[str, Any],
    data: ImageData,
    resources: Mapping[str, Any],
    scratch: Path,
    begun: Path | None = None,
) -> Einstellung:
    """What is trained."""
    return Einstellung(RunConfig.model_validate(dict(config)), data, device=resolve_device(resources["device"]))


def illustrate(config: Mapping[str, Any], data: ImageData, folder: Path) -> None:
    """Draw a few images as a network sees them, unless that was done."""
    from waterjar.lab.pictures import FOLDER, show_images  # noqa: PLC0415 - in the worker

    if not (folder / FOLDER).exists():
        settings = RunConfig.model_validate(dict(config))
        show_images(arrange(data, settings), folder / FOLDER, settings.shortcut.mask)


def branched(plain: Mapping[str, Any], changes: Mapping[str, Any]) -> RunConfig:
    """The config of a run with some settings changed; another learner keeps those of the former that it has as well."""
    settings = dict(plain["learner_settings"])
    if "learner" in changes:
        there = learners.SHELF.module(str(changes["learner"])).Settings.model_fields
        settings = {key: value for key, value in settings.items() if key in there}
    found = with_changes({**plain, "learner_settings": settings}, changes)
    if found["learner"] == "joint":
        raise WaterjarError("--set learner=joint: it trains all tasks at once, and here they are one after the other")
    parsed = learners.parse(found["learner"], found["learner_settings"]).model_dump(mode="json")
    return parse_settings(RunConfig, {**found, "learner_settings": parsed}, "--set")


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
