"""From a run to the layout: everything is checked first, then written beside its place, one task at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, given_as, unknown_name
from waterjar.run.disk import written_beside
from waterjar.run.formats import Made
from waterjar.run.formats.seed import _names as names
from waterjar.run.formats.seed._labels import check_labels, check_pairs
from waterjar.run.formats.seed._run_side import (
    Group,
    Steps,
    left_behind,
    one_reason,
    sets_of_tasks,
    step_group,
    steps_of_tasks,
)
from waterjar.run.plain_pickle import dump_plain
from waterjar.run.reader import Run
from waterjar.run.shown import json_text, shown_settings
from waterjar.run.study import Study

Array = NDArray[Any]
_FORMAT = 1


def export_seed_layout(
    run: Run,
    out: str | os.PathLike[str],
    *,
    dataset: str | None = None,
    algorithm: str | None = None,
    layer: str | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Made:
    """Write a run as `out/{dataset}/{algorithm}/`; nothing is left there if it fails.

    Parameters
    ----------
    dataset, algorithm : names of the folders; by default those in the run's settings.
    layer : whose features become representations.npy; may be left out where one layer was recorded.
    files : more files for that folder, such as cl_metrics.pkl.
    """
    plan = _plan(run, layer)
    target = Path(out) / layout_folder(run, dataset, algorithm)
    with written_beside(target) as draft:
        draft.mkdir()
        if plan.initial is not None:
            with (draft / names.INITIAL).open("wb") as file:
                np.save(file, plan.initial, allow_pickle=False)
        for task in range(len(plan.steps)):
            _write_task(plan, task, draft / names.task_folder(task))
        for name, contents in (files or {}).items():
            (draft / name).write_bytes(contents)
    return Made(target, list(dict.fromkeys(plan.notes)))


def layout_folder(run: Run, dataset: str | None = None, algorithm: str | None = None, *, named: str = "") -> Path:
    """{dataset}/{algorithm} of a run; `named` is what it goes by among others, where it has such a name."""
    return Path(
        names.folder_name(dataset, names.dataset_of(run.config), "dataset"),
        names.folder_name(algorithm, named or names.algorithm_of(run.config), "algorithm"),
    )


def layout_folders(study: Study, out: Path, dataset: str | None, algorithm: str | None) -> dict[Path, Run]:
    """{dataset}/{algorithm} of every run of a study; that two would share one, or that one is there, is an error."""
    shown = study.cell_names if len(study.entries) > 1 else {}
    places: dict[Path, Run] = {}
    for run in study:
        place = layout_folder(run, dataset, algorithm, named=shown.get(run.cell_id, ""))
        if place in places:
            both = f"{places[place].path.name} and {run.path.name}"
            raise WaterjarError(f"{both} would both become {place}: export them one by one, with --algorithm")
        if (out / place).exists():  # before anything is measured
            raise WaterjarError(f"{out / place} exists already: choose another place, or move it away first")
        places[place] = run
    return places


@dataclass
class _Plan:
    run: Run
    steps: list[Steps]
    sets: list[int]
    """Of each task, where its evaluation set stands in /performance."""
    performance: Group
    train: Group | None
    expert: Group | None
    features: str | None
    """The layer."""
    probe_order: list[int]
    weights: bool
    labels: Array | None
    pairs: Array
    initial: Array | None
    about: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def _plan(run: Run, layer: str | None) -> _Plan:
    performance = step_group(run, "performance")
    if performance is None:
        raise WaterjarError(f"{run.path} has no evaluations (/performance): there is nothing to export")
    steps, sets = steps_of_tasks(run, performance), sets_of_tasks(run)
    root = run.attributes
    notes: list[str] = []
    kept = [label for part in steps for label in part.labels]
    groups = {name: step_group(run, name) for name in ("train", "expert")}
    chosen = _layer(run, layer)
    features, weights = (
        _synchronised(run, group, kept, file, notes)
        for group, file in ((f"features/{chosen}", names.REPRESENTATIONS), ("weights", names.WEIGHTS))
    )
    used = {
        "performance": [*names.TEST.values()],
        "train": [*names.TRAIN.values()],
        "expert": [*names.TEST.values(), *names.EXPERT_TRAIN.values()],
        "probe_samples": ["label", names.TASK_CLASS],
        "weights": ["initial", *(["weights"] if weights else [])],
        f"features/{chosen}": ["features"] if features else [],
    }
    pairs = _pairs(run)
    probes = [int(root["eval_sets"][name]) for name in root["probe_sets"]]
    order = [place for place, task in sorted(enumerate(probes), key=lambda item: item[1]) if task >= 0]
    if len({probes[place] for place in order}) < len(order) or len(order) < len(probes):
        raise WaterjarError(
            f"{run.path}: snapshots cover {root['probe_sets']}; one set per task is what the layout holds"
        )
    plan = _Plan(
        run, steps, [list(root["eval_sets"]).index(name) for name in sets], performance, groups["train"],
        groups["expert"], chosen if features else None, order, weights, None, pairs, None,
        _about(run, sets, chosen, [probes[place] for place in order]),
    )  # fmt: skip
    if "probe_samples/label" in run.nodes:
        stored = run.array("probe_samples/label")
        plan.labels = check_labels(
            stored[:, order].transpose(1, 2, 0), pairs.shape[-1], f"{run.path}: probe_samples/label"
        )
    plan.initial = _initial(run, notes)
    notes += left_behind(run, steps, performance, used)
    notes += _of_other_steps(plan, kept)
    if shown_settings(run.config) != run.config:
        notes.append("secrets and home directories in the config: imported again, the run has another id")
    there = {
        names.REPRESENTATIONS: chosen is not None,
        names.WEIGHTS: "weights/weights" in run.nodes,
        names.INITIAL: plan.initial is not None,
        names.LABELS: plan.labels is not None,
        names.EXPERT: plan.expert is not None,
    }
    notes += [f"{name}: not recorded, so there is none" for name, is_there in there.items() if not is_there]
    plan.notes = notes
    return plan


def _layer(run: Run, layer: str | None) -> str | None:
    layers = [group.removeprefix("features/") for group in run.groups if group.startswith("features/")]
    if layer is not None and layer not in layers:
        raise unknown_name(f"{run.path}: layer", layer, layers)
    if layer is None and len(layers) > 1:
        raise WaterjarError(
            f"{run.path}: the layout holds one layer: choose one of {', '.join(layers)} "
            f"with {given_as('layer', 'NAME', option=True)}"
        )
    return layer if layer is not None else (layers[0] if layers else None)


def _synchronised(run: Run, group: str, kept: Sequence[int], file: str, notes: list[str]) -> bool:
    """Whether a group has a snapshot at every step that goes into the layout."""
    key = f"{group}/snapshot"
    if key not in run.nodes:
        return False
    labels = {int(label) for label in run.array(key)}
    more, without = labels - set(kept), set(kept) - labels
    if without:
        there = len(kept) - len(without)
        notes.append(f"/{group}: snapshots at {there} of the {len(kept)} steps that the layout has: no {file}")
    elif more:
        notes.append(f"/{group}: {len(more)} snapshots before the training of a task")
    return not without


def _pairs(run: Run) -> Array:
    """(repeat, task, task_label): which classes each task tells apart."""
    key = f"probe_samples/{names.TASK_CLASS}"
    if key not in run.nodes:
        raise WaterjarError(
            f"{run.path} does not say which classes its tasks tell apart ({key}): the layout needs them"
        )
    stored = run.array(key)
    shape = (len(run.seeds), len(run.attributes["tasks"]))
    return np.stack(
        [check_pairs(stored[:, task].tolist(), shape[0], f"{run.path}: {key}") for task in range(shape[1])], axis=1
    )


def _about(run: Run, sets: list[str], layer: str | None, probes: list[int]) -> dict[str, Any]:
    """What the layout has no place for, for who reads it back."""
    root = run.attributes
    found = {key: root[key] for key in ("run_id", "seeds", "tasks", "classes", "data_fingerprint", "storage")}
    found |= {"format": _FORMAT, "eval_sets": sets, "probe_tasks": probes, "layer": layer, "root_hash": run.root_hash}
    found |= {"annotations": run.annotations.digest} if run.annotations else {}
    if "weights/layer" in run.nodes:
        columns = [run.array(f"weights/{name}") for name in ("layer", "layer_shape")]
        found["parameters"] = [[str(name), str(shape)] for name, shape in zip(*columns, strict=True)]
    return found


def _initial(run: Run, notes: list[str]) -> Array | None:
    """(params,) where all repeats start alike, else (repeat, params)."""
    if "weights/initial" not in run.nodes:
        where = "weights/snapshot"
        if where not in run.nodes or not run.nodes[where]["shape"][0]:
            return None
        first = float(run.array("weights/total_epoch")[0])
        if first != 0:
            return None
        notes.append(f"{names.INITIAL} is the snapshot of step 0: weights before training were not recorded as such")
        values = run.row("weights/weights", 0)
    else:
        values = run.array("weights/initial")
    same = all(row.tobytes() == values[0].tobytes() for row in values)
    return values[0] if same else values


def _of_other_steps(plan: _Plan, kept: Sequence[int]) -> list[str]:
    """Values at steps that are no evaluation, and an expert's on sets of other tasks."""
    notes = []
    known = {*kept, *plan.performance.labels}
    for group in (plan.train, plan.expert):
        others = [] if group is None else [label for label in group.labels if label not in known]
        if group is not None and others:
            notes.append(f"/{group.name}: {len(others)} steps without an evaluation in /performance")
    if plan.expert is not None:
        for variable in names.TEST.values():
            for task, steps in enumerate(plan.steps):
                values, _ = plan.expert.at(variable, steps.labels, _inner(plan.expert, variable))
                other = np.delete(values, plan.sets[task], axis=1) if values.ndim == 3 else values[:0]
                if not np.isnan(other).all():
                    notes.append(f"/expert: {variable} on the sets of other tasks than the expert's own")
    return notes


def _inner(group: Group, variable: str) -> tuple[int, ...]:
    return tuple(group.arrays[variable][1].shape[1:]) if variable in group.arrays else ()


def _write_task(plan: _Plan, task: int, place: Path) -> None:
    place.mkdir()
    steps = plan.steps[task]
    why: dict[str, dict[str, str]] = {}
    (place / names.METRICS).write_bytes(dump_plain(_metrics(plan, task, why.setdefault(names.METRICS, {}))))
    if plan.expert is not None:
        (place / names.EXPERT).write_bytes(dump_plain(_expert(plan, task, why.setdefault(names.EXPERT, {}))))
    if plan.labels is not None:
        np.save(place / names.LABELS, plan.labels, allow_pickle=False)
    if plan.features is not None:
        _stream(plan, f"features/{plan.features}", "features", steps, place / names.REPRESENTATIONS, plan.probe_order)
    if plan.weights:
        _stream(plan, "weights", "weights", steps, place / names.WEIGHTS, None)
    about = {
        **plan.about,
        "steps": steps.labels,
        "epochs": steps.epochs,
        "total_epochs": steps.total_epochs,
        "effective_epochs": steps.effective_epochs,
        "missing": why,
    }
    metadata = {
        "task_id": task,
        "class_pairs": plan.pairs[:, task].tolist(),
        "config": shown_settings(plan.run.config),
        "waterjar": about,
    }
    (place / names.METADATA).write_bytes(f"{json_text(metadata, indent=1)}\n".encode())


def _metrics(plan: _Plan, task: int, why: dict[str, str]) -> dict[str, Array]:
    """test_* (L, R, eval) and train_* (L, R)."""
    labels, repeats = plan.steps[task].labels, len(plan.run.seeds)
    found = {}
    for key, variable in names.TEST.items():
        values, codes = plan.performance.at(variable, labels, (len(plan.run.attributes["eval_sets"]), repeats))
        found[key] = _kept(plan, names.METRICS, key, values[:, plan.sets].transpose(0, 2, 1), codes[:, plan.sets], why)
    for key, variable in names.TRAIN.items():
        found[key] = _kept(plan, names.METRICS, key, *_at(plan.train, variable, labels, (repeats,)), why)
    return found


def _expert(plan: _Plan, task: int, why: dict[str, str]) -> dict[str, Array]:
    """All four (L, R), on the expert's own task."""
    labels, repeats = plan.steps[task].labels, len(plan.run.seeds)
    found = {}
    for key, variable in names.EXPERT_TRAIN.items():
        found[key] = _kept(plan, names.EXPERT, key, *_at(plan.expert, variable, labels, (repeats,)), why)
    for key, variable in names.TEST.items():
        values, codes = _at(plan.expert, variable, labels, (len(plan.run.attributes["eval_sets"]), repeats))
        own = plan.sets[task]
        found[key] = _kept(plan, names.EXPERT, key, values[:, own], codes[:, own], why)
    return found


def _at(group: Group | None, variable: str, labels: Sequence[int], inner: tuple[int, ...]) -> tuple[Array, Array]:
    return (group or Group("", {})).at(variable, labels, inner)


def _kept(plan: _Plan, file: str, key: str, values: Array, codes: Array, why: dict[str, str]) -> Array:
    """The values; where some are missing, the one reason that stands for them is noted."""
    reason, several = one_reason(codes)
    if reason is not None:
        why[key] = reason
        if np.isnan(values).all():
            plan.notes.append(f"{key} is all NaN in {file}: {reason}")
    if several:
        plan.notes.append(f"{key}: several reasons why values are missing, of which the most frequent is kept per task")
    return np.ascontiguousarray(values)


def _stream(plan: _Plan, group: str, variable: str, steps: Steps, file: Path, order: list[int] | None) -> None:
    """Write an .npy of one snapshot after the other: in memory is one at a time."""
    stored = [int(label) for label in plan.run.array(f"{group}/snapshot")]
    place = {label: position for position, label in enumerate(stored)}
    with file.open("wb") as handle:
        rows = (plan.run.row(f"{group}/{variable}", place[label]) for label in steps.labels)
        for number, row in enumerate(rows):
            kept = row if order is None else row[:, order]
            if not number:
                _write_header(handle, (len(steps.labels), *kept.shape), kept.dtype)
            handle.write(np.ascontiguousarray(kept).tobytes())


def _write_header(handle: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(handle, header)
