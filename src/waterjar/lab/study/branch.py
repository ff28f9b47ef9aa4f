"""Twins: a run of a study that goes on from the end of one of its tasks with something changed, beside it in the study.

A kind of study whose runs can be branched says in `BRANCHABLE` which settings may differ behind a branch, since nothing
that was trained before depends on them, and makes the config with `branched(plain, changes)`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab import loop
from waterjar.lab.branch import Branch
from waterjar.lab.config import cores, resolve_device
from waterjar.lab.data import ImageData
from waterjar.lab.loop import Experiment
from waterjar.lab.study import kinds
from waterjar.lab.study.job import checkpoints_of
from waterjar.lab.study.kinds import Declared
from waterjar.lab.study.reproduce import data_of, declaration_of
from waterjar.lab.study.runner import threads
from waterjar.run.branching import KEY
from waterjar.run.coordinates import describe
from waterjar.run.provenance import using_parts
from waterjar.run.reader import Run, open_run
from waterjar.run.yaml_text import read_yaml

_BESIDE = ("method", "device", "engine", KEY)
"""In a run's config, what its kind has not declared."""


@dataclass(frozen=True)
class Twin:
    """A branch that can be trained."""

    path: Path
    run_id: str
    branch: Branch
    declaration: Declared
    data: ImageData
    config: dict[str, Any]

    def train(self) -> Path:
        """To its end, in this process; if it was begun before, from where it stands."""
        resources = self.declaration.resources
        folder, kind = checkpoints_of(self.path), kinds.of(self.declaration.kind)
        plain = resources.model_dump(mode="json") | {"workers": 1}
        with using_parts({"kinds": [self.declaration.kind]}), threads(resources.threads):
            return loop.train(
                lambda begun: kind.experiment(
                    self.config, self.data, plain, folder / "data", self.path if begun else None
                ),
                self.path,
                run_id=self.run_id,
                checkpoints=folder,
                device=resolve_device(resources.device),
                checkpoint_seconds=resources.checkpoint_seconds,
                keep=resources.checkpoint_frequency,
                branch=self.branch,
            )


def branch(path: Path, at: str, settings: Sequence[str] = ()) -> Twin:
    """The twin of the run at `path` that goes off at `at` (such as t2:0) with `settings` (such as learner=derpp).

    Whatever is wrong with it is an error now. Nothing is written.
    """
    source = open_run(path)
    if source.root_hash is None:
        raise WaterjarError(f"{path} is {source.status}: expected a sealed run, which changes no more")
    if KEY in source.config:
        raise WaterjarError(f"{path} is a branch itself: expected the run that it went off from")
    folder = path.resolve().parent
    declaration = declaration_of(folder)
    kind: Any = kinds.of(declaration.kind)
    able = getattr(kind, "BRANCHABLE", None)
    if able is None:
        raise WaterjarError(f"runs of kind '{declaration.kind}' have no branches")
    task = _task(source, at)
    plain = {key: value for key, value in source.config.items() if key not in _BESIDE}
    changes = _changes(settings, plain, able, at)
    data = data_of(folder, declaration, [source], None)
    config, before = kind.branched(plain, changes), kind.branched(plain, {})
    planned = kind.plan(before, data, declaration.resources)
    if planned.run_id != source.run_id:
        raise WaterjarError(f"{path} cannot be gone on with: its settings, or what trains by them, have changed since")
    kind.check([config], data)
    alone = declaration.resources.model_dump(mode="json") | {"workers": cores()}

    def experiment(of: Any) -> Experiment:
        made: Experiment = kind.experiment(of.model_dump(mode="json"), data, alone, folder)
        return made

    said = shlex.join(settings)
    found = Branch(source, checkpoints_of(path.resolve()), task, said, lambda: experiment(before))
    new = experiment(config)
    try:
        run_id = describe(**found.described(new))["run_id"]
        found.taken_over(new)
    finally:
        new.close()
    name = kind.plan(config, data, declaration.resources).name
    return Twin(folder / f"{name}-{run_id[:8]}", run_id, found, declaration, data, config.model_dump(mode="json"))


def _task(source: Run, at: str) -> str:
    task, _, epoch = at.partition(":")
    tasks = list(dict.fromkeys(source.load("performance").train_task.values.tolist()))
    if task not in tasks:
        raise unknown_name("--at: task", task, tasks)
    if epoch not in ("", "0"):
        raise WaterjarError(f"--at {at}: expected {task}:0, since states are kept between tasks, not within them")
    if task == tasks[0]:
        raise WaterjarError(f"--at {at}: nothing was trained before it, so that this is a run of its own")
    return str(task)


def _changes(settings: Sequence[str], plain: Mapping[str, Any], able: Sequence[str], at: str) -> dict[str, Any]:
    """Dotted key -> value, each of a setting that may differ."""
    found = {}
    for given in settings:
        key, sign, text = given.partition("=")
        if not sign:
            raise WaterjarError(f"--set {given}: expected a setting and its value, such as learner=derpp")
        if key.split(".")[0] not in plain:
            raise unknown_name("--set: setting", key, dict.fromkeys([*able, *plain]))
        if not any(key == one or key.startswith(f"{one}.") for one in able):
            raise WaterjarError(
                f"--set {given} would make untrue what was trained before {at}: expected one of {', '.join(able)}"
            )
        found[key] = read_yaml(text, f"--set {given}")
    return found
