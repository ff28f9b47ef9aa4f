"""From the layout to a run: written beside its place, one logged epoch of one task at a time."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run import ledger
from waterjar.run.disk import written_beside
from waterjar.run.formats.seed import _names as names
from waterjar.run.formats.seed._folder_side import (
    Layout,
    Values,
    open_array,
    read_expert,
    read_layout,
    read_metrics,
)
from waterjar.run.identity import identify, plain
from waterjar.run.reader import Run, open_run
from waterjar.run.recorder import Recorder
from waterjar.run.rows import masked

Array = NDArray[Any]


Step = tuple[int, float, float | None, float | None]


@dataclass(frozen=True)
class Imported:
    """The run, and what a reader of it must know."""

    run: Run
    notes: list[str]


def import_seed_layout(folder: str | os.PathLike[str], out: str | os.PathLike[str]) -> Imported:
    """Make a sealed run at `out` of `results/{dataset}/{algorithm}`; nothing is left there if it fails.

    Every file is checked before anything is written; pickles are read without running anything of them. A layout that
    `export_seed_layout` wrote comes back as the run it was, steps, seeds and names included. Of any other, seeds are 0
    to R - 1, tasks and sets are called task_000 and so on, and epochs are multiples of the config's log_frequency.
    """
    source, target = Path(folder), Path(out)
    layout = read_layout(source)
    about = _about(layout, source)
    notes = ["step 0 (before any training) is not in the layout: what needs it is missing", *about.notes]
    with written_beside(target) as draft:
        try:
            opened = Recorder(draft, about.config, summary=False, **about.settings)
        except WaterjarError as error:
            raise WaterjarError(f"{layout.folders[0] / names.METADATA}: {error}") from error
        with opened as recorder:
            _record(recorder, layout, about)
            recorder.event("import", f"from the layout of the seed's scripts; {'; '.join(dict.fromkeys(notes))}")
        run_id = recorder.run_id
    ledger.ensure(target, run_id)
    if about.run_id not in (None, run_id):
        notes.append(f"the run has the id {run_id}; the one that was exported had {about.run_id}")
    return Imported(open_run(target), list(dict.fromkeys([*notes, *layout.notes])))


@dataclass
class _About:
    config: dict[str, Any]
    settings: dict[str, Any]
    """Of the recorder."""
    sets: list[str]
    layer: str
    parameters: list[tuple[str, tuple[int, ...]]] | None
    steps: list[list[Step]]
    """Per task: label, epoch, total and effective epoch of every logged epoch; None follows from the others."""
    run_id: str | None
    notes: list[str]


def _about(layout: Layout, folder: Path) -> _About:
    ours = [metadata["waterjar"] for metadata in layout.metadata]
    file = layout.folders[0] / names.METADATA
    try:
        config = plain(layout.metadata[0]["config"])
    except WaterjarError as error:
        raise WaterjarError(f"{file}: {error}") from error
    if all(part is not None for part in ours):
        try:
            return _own(layout, config, ours, file)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WaterjarError(
                f"{file}: what waterjar wrote is damaged ({type(error).__name__}: {error}). Remove the key 'waterjar' "
                "from metadata.json of every task to import it as any other layout"
            ) from error
    return _foreign(layout, config, folder)


def _own(layout: Layout, config: dict[str, Any], ours: list[dict[str, Any]], file: Path) -> _About:
    """What `export_seed_layout` noted."""
    first, count = ours[0], len(layout.folders)
    if not isinstance(first["format"], int) or first["format"] > 1:
        raise WaterjarError(f"{file} is of a later waterjar (format {first['format']}): pip install --upgrade waterjar")
    sets, probes = [str(name) for name in first["eval_sets"]], [int(task) for task in first["probe_tasks"]]
    if len(sets) != count or len(first["tasks"]) != count or len(first["seeds"]) != layout.repeats:
        raise ValueError("tasks, eval_sets and seeds are not as many as there are")
    if not all(0 <= task < count for task in probes):
        raise ValueError(f"probe_tasks {probes} are not all there")
    steps: list[list[Step]] = []
    for part in ours:
        columns = [part[key] for key in ("steps", "epochs", "total_epochs", "effective_epochs")]
        if any(len(column) != layout.logged for column in columns):
            raise ValueError(f"steps are not L={layout.logged}")
        steps.append([(int(a), float(b), float(c), float(d)) for a, b, c, d in zip(*columns, strict=True)])
    _check_eval(layout, len(probes))
    table = first.get("parameters")
    settings = {
        "seeds": first["seeds"],
        "tasks": first["tasks"],
        "eval_sets": {name: task for task, name in enumerate(sets)},
        "probe_sets": [sets[task] for task in probes],
        "classes": first["classes"],
        "data_fingerprint": first["data_fingerprint"],
        "storage": dict(first["storage"]),
    }
    for left_out in names.UNHASHED:
        if identify(config, first["seeds"], first["data_fingerprint"], left_out)[0] == first["run_id"]:
            settings["unhashed"] = left_out
    return _About(
        config, settings, sets, str(first["layer"] or names.LAYER),
        None if table is None else _parameters(layout, table), steps, str(first["run_id"]), [],
    )  # fmt: skip


def _foreign(layout: Layout, config: dict[str, Any], folder: Path) -> _About:
    """What is known of a layout by anybody else."""
    place = folder.resolve()
    kept = {"data": place.parent.name or "unknown", "learner": place.name or "unknown", **config}
    for key in ("seed", "seeds"):  # ours would be one a repeat
        if key in kept:
            kept[f"source_{key}"] = kept.pop(key)
    notes = [f"seeds of the repeats are not in the layout: 0 to {layout.repeats - 1} stand for them"]
    frequency = kept.get("log_frequency", kept.get("log_freq"))
    if isinstance(frequency, bool) or not isinstance(frequency, int | float) or not frequency > 0:
        notes.append("the config has no log_frequency: epochs are counted by logged ones")
        frequency = 1
    _check_eval(layout, len(layout.folders))
    sets = [place.name for place in layout.folders]
    settings = {
        "seeds": range(layout.repeats),
        "tasks": sets,
        "eval_sets": {name: task for task, name in enumerate(sets)},
        "classes": [str(number) for number in range(layout.pairs.shape[-1])],
    }
    count = layout.logged
    steps: list[list[Step]] = [
        [(1 + task * count + i, (i + 1) * float(frequency), None, None) for i in range(count)]
        for task in range(len(sets))
    ]
    return _About(kept, settings, sets, names.LAYER, None, steps, None, notes)


def _check_eval(layout: Layout, count: int) -> None:
    for name, axis in ((names.REPRESENTATIONS, 2), (names.LABELS, 0)):
        shape = (
            layout.files[name][0] if name in layout.files
            else layout.labels.shape if name == names.LABELS and layout.labels is not None else None
        )  # fmt: skip
        if shape is not None and shape[axis] != count:
            raise WaterjarError(
                f"{layout.folders[0] / name} has shape {shape}: {shape[axis]} evaluated tasks, expected {count}"
            )


def _parameters(layout: Layout, table: list[list[str]]) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the tensors that a row of weights is made of."""
    found = [(str(name), tuple(int(size) for size in str(shape).split("x") if size)) for name, shape in table]
    total = sum(math.prod(shape) for _, shape in found)
    known = layout.files[names.WEIGHTS][0][2] if names.WEIGHTS in layout.files else total
    if total != known:
        raise ValueError(f"parameters are {total}, weights.npy has {known}")
    return found


def _record(recorder: Recorder, layout: Layout, about: _About) -> None:
    static: dict[str, object] = {names.TASK_CLASS: layout.pairs}
    if layout.labels is not None:
        static["label"] = np.ascontiguousarray(layout.labels.transpose(2, 0, 1))
    recorder.once("probe_samples", **static)
    if layout.initial is not None:
        recorder.once("weights", initial=_tensors(layout.initial, about))
    test, train, fresh = _recorded(layout)
    for task, place in enumerate(layout.folders):
        metrics = read_metrics(layout, task)
        expert = read_expert(layout, task) if layout.has_expert else {}
        arrays = {name: open_array(place / name) for name in layout.files}
        for i, (label, epoch, total, effective) in enumerate(about.steps[task]):
            shot: dict[str, object] = {}
            if names.REPRESENTATIONS in arrays:
                shot["features"] = {about.layer: _row(layout, arrays, names.REPRESENTATIONS, i)}
            if names.WEIGHTS in arrays:
                shot["weights"] = _tensors(_row(layout, arrays, names.WEIGHTS, i), about)
            own = _rows(expert, names.TEST, fresh, i)
            try:
                recorder.log(
                    step=label,
                    epoch=epoch,
                    train_task=task,
                    total_epoch=total,
                    effective_epoch=effective,
                    performance={
                        variable: _known(metrics, key, i) for key, variable in names.TEST.items() if key in test
                    },
                    train=_rows(metrics, names.TRAIN, train, i),
                    expert={
                        **{variable: {about.sets[task]: row} for variable, row in own.items()},
                        **_rows(expert, names.EXPERT_TRAIN, fresh, i),
                    },
                    snapshot=shot,
                )
            except WaterjarError as error:
                raise WaterjarError(f"{place}: {error}") from error


def _rows(values: Values, variables: dict[str, str], recorded: set[str], i: int) -> dict[str, object]:
    """Variable -> what was recorded of it at a logged epoch."""
    return {
        variable: _known(values, key, i)
        for key, variable in variables.items()
        if key in recorded and _there(values, key, i)
    }


def _recorded(layout: Layout) -> tuple[set[str], set[str], set[str]]:
    """Keys of metrics.pkl, test and train, and of expert_metrics.pkl that hold anything in any task."""
    found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for task in range(len(layout.folders)):
        metrics = read_metrics(layout, task)
        fresh = read_expert(layout, task) if layout.has_expert else {}
        parts: list[tuple[Values, list[str]]] = [(metrics, [*names.TEST]), (metrics, [*names.TRAIN]), (fresh, [*fresh])]
        for kept, (values, keys) in zip(found, parts, strict=True):
            kept |= {key for key in keys if any(_there(values, key, i) for i in range(layout.logged))}
    return found


def _there(values: Values, key: str, i: int) -> bool:
    """Whether a logged epoch has anything but what was never recorded."""
    array, reason = values[key]
    return reason != "not_recorded" or not bool(np.isnan(array[i]).all())


def _known(values: Values, key: str, i: int) -> object:
    """One logged epoch, (eval, R) or (R,); what is missing says why."""
    array, reason = values[key]
    row = np.ascontiguousarray(array[i].T)
    return row if reason is None else masked(row, np.isnan(row), reason)


def _row(layout: Layout, arrays: dict[str, Array], name: str, i: int) -> Array:
    row = np.array(arrays[name][i])
    if row.dtype.kind == "f" and not np.isfinite(row).all():
        layout.notes.append(f"{name}: values that are NaN or infinite, kept as they are")
    return row


def _tensors(flat: Array, about: _About) -> object:
    """(repeat, param) as it is, or by tensor where their names are known."""
    if about.parameters is None:
        return flat
    stops = np.cumsum([math.prod(shape) for _, shape in about.parameters])
    parts = np.split(flat, stops[:-1], axis=1)
    lead = (len(flat),) if len(flat) > 1 else ()
    return {name: part.reshape(*lead, *shape) for (name, shape), part in zip(about.parameters, parts, strict=True)}
