"""Tidy timelines: method, seed, epoch_eff, split, acc[, top5, loss], one evaluation a line.

The layout in which results of the field are passed around. In and out again gives the same bits.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.disk import write_file
from waterjar.run.identity import digest
from waterjar.run.reader import Run
from waterjar.run.recorder import Recorder
from waterjar.run.schema import missing
from waterjar.run.shown import csv_cell, from_csv_cell
from waterjar.run.study import Study, create_study, method_of, open_study

SPLITS = (
    "t1_all",
    "t2_all_normal",
    "t2_shortcut_normal",
    "t2_shortcut_masked",
    "t2_nonshortcut_normal",
    "t2_validation",
    "t2_shortcut_clean",
    "t2_shortcut_random_mask",
    "t2_nonshortcut_masked",
    "t2_nonshortcut_patched",
)
"""The evaluation sets of the Einstellung experiment; other splits are named by the caller."""

_COLUMNS = {"acc": "accuracy", "top5": "top5_accuracy", "loss": "loss"}
_REQUIRED = ("method", "seed", "epoch_eff", "split", "acc")

Key = tuple[str, int, float, str]


def from_csv(file: str | os.PathLike[str], out: str | os.PathLike[str], *, splits: Sequence[str] = SPLITS) -> Study:
    """Turn a timeline into a study: one sealed run per method and seed, in the directory `out`.

    The lines of a run may come in any order. Duplicate keys, unknown splits and cells that are not numbers
    are errors with their line; nothing is written then. An empty cell is a missing value.
    """
    if isinstance(splits, str):
        raise WaterjarError(f"splits={splits!r}: expected a list of names")
    cells, columns = _parse(Path(file), splits)
    study = create_study(out, {"kind": "timeline", "source": Path(file).name})
    runs: dict[tuple[str, int], dict[float, dict[str, dict[str, float | None]]]] = {}
    for (method, seed, epoch, split), values in cells.items():
        runs.setdefault((method, seed), {}).setdefault(epoch, {})[split] = values
    for (method, seed), steps in runs.items():
        folder = study / f"{_folder(method)}-seed{seed}"
        present = {split for evaluations in steps.values() for split in evaluations}
        sets = {
            split: (0 if split.startswith("t1_") else -1 if split not in SPLITS else 1)
            for split in splits
            if split in present
        }
        tasks = ["t1", "t2"] if set(sets.values()) & {0, 1} else ["t1"]
        config = {"method": method, "source": "timeline"}
        with Recorder(folder, config, seeds=[seed], eval_sets=sets, tasks=tasks) as recorder:
            for step, epoch in enumerate(sorted(steps)):
                performance = {
                    _COLUMNS[column]: {
                        split: missing("not_recorded") if values[column] is None else values[column]
                        for split, values in steps[epoch].items()
                    }
                    for column in columns
                }
                recorder.log(
                    step=step,
                    epoch=epoch,
                    train_task=tasks[-1],
                    effective_epoch=epoch,
                    performance=performance,
                )
    return open_study(study)


def _folder(method: str) -> str:
    """A method as part of a directory's name; where signs had to go, a hash keeps two methods apart."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", method).lstrip(".")[:60]
    return plain if plain == method else f"{plain}-{digest(method)[:6]}"


def _parse(file: Path, splits: Sequence[str]) -> tuple[dict[Key, dict[str, float | None]], list[str]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.reader(handle, strict=True)
            header = next(reader, [])
            columns = _check_header(file, header)
            cells: dict[Key, dict[str, float | None]] = {}
            lines: dict[Key, int] = {}
            for row in reader:
                where = f"{file}, line {reader.line_num}"
                if len(row) != len(header):
                    raise WaterjarError(f"{where}: {len(row)} cells, the header has {len(header)}")
                record = dict(zip(header, row, strict=True))
                record |= {name: from_csv_cell(record[name]) for name in ("method", "split")}
                key, values = _parse_record(record, columns, splits, where)
                if key in cells:
                    raise WaterjarError(
                        f"{where}: {key} stands already in line {lines[key]}; each evaluation once is right"
                    )
                cells[key], lines[key] = values, reader.line_num
    except OSError as error:
        raise WaterjarError(f"could not read {file}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise WaterjarError(f"{file} is not a CSV file in UTF-8: {error}") from error
    if not cells:
        raise WaterjarError(f"{file} has a header and no line below it")
    return cells, columns


def _check_header(file: Path, header: list[str]) -> list[str]:
    allowed = (*_REQUIRED, "top5", "loss")
    for name in header:
        if name not in allowed:
            raise unknown_name(f"{file}, line 1: column", name, allowed)
    absent = [name for name in _REQUIRED if name not in header]
    if absent or len(set(header)) < len(header):
        raise WaterjarError(
            f"{file}, line 1: columns {header}; each of {list(_REQUIRED)} once (and top5, loss) is right"
        )
    return [name for name in _COLUMNS if name in header]


def _parse_record(
    record: dict[str, str], columns: list[str], splits: Sequence[str], where: str
) -> tuple[Key, dict[str, float | None]]:
    if record["split"] not in splits:
        raise unknown_name(f"{where}: split", record["split"], splits, "Give others with splits=[...]")
    if not record["method"]:
        raise WaterjarError(f"{where}: method is empty")
    if not re.fullmatch(r"-?\d{1,18}", record["seed"]):
        raise WaterjarError(f"{where}: seed {record['seed']!r} is not a whole number")
    epoch = _number(record["epoch_eff"], "epoch_eff", where)
    if epoch is None or epoch < 0:
        raise WaterjarError(f"{where}: epoch_eff {record['epoch_eff']!r} is not a number from 0 on")
    values = {column: _number(record[column], column, where) for column in columns}
    for column in ("acc", "top5"):
        value = values.get(column)
        if value is not None and not 0 <= value <= 1:
            raise WaterjarError(f"{where}: {column} {record[column]!r} is not a share between 0 and 1")
    return (record["method"], int(record["seed"]), epoch, record["split"]), values


def _number(text: str, column: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        if "_" in text:
            raise ValueError
        number = float(text)
    except ValueError:
        raise WaterjarError(f"{where}: {column} {text!r} is not a number") from None
    if math.isnan(number) or (math.isinf(number) and column != "loss"):  # a diverged loss is a value
        raise WaterjarError(f"{where}: {column} {text!r} is not finite; leave the cell empty if there is no value")
    return number


def to_csv(runs: Run | Study | Iterable[Run], file: str | os.PathLike[str]) -> Path:
    """Write the performance of runs as a timeline, one line per evaluation that was recorded.

    The method is the name of the run's cell. `epoch_eff` is the effective epoch; in the tasks before the last one it
    stands still, so of steps with the same one the last is kept: what the network knew when the last task began.
    """
    names = runs.cell_names if isinstance(runs, Study) else {}
    lines: list[dict[str, Any]] = []
    owner: dict[tuple[str, int], Path] = {}
    for run in [runs] if isinstance(runs, Run) else runs:
        method = names.get(run.cell_id) or method_of(run.config) or run.cell_id
        for seed in run.seeds:
            if (method, seed) in owner:
                raise WaterjarError(
                    f"{owner[method, seed]} and {run.path} are both method {method!r}, seed {seed}: "
                    "give a study, which tells its cells apart"
                )
            owner[method, seed] = run.path
        lines += _lines(run, method)
    if not lines:
        raise WaterjarError("there is no performance to write: none of the runs has accuracies")
    header = [*_REQUIRED, *(column for column in ("top5", "loss") if any(column in line for line in lines))]
    text = io.StringIO()
    writer = csv.DictWriter(text, header, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return write_file(file, text.getvalue())


def _lines(run: Run, method: str) -> list[dict[str, Any]]:
    if "performance" not in run.groups:
        return []
    data = run.load("performance")
    values = {column: data[name].values for column, name in _COLUMNS.items() if name in data}
    if "acc" not in values:
        return []
    last_of_epoch = {float(epoch): position for position, epoch in enumerate(data["effective_epoch"].values)}
    lines = []
    for repeat, seed in enumerate(run.seeds):
        for epoch, position in last_of_epoch.items():
            for j, split in enumerate(data["eval_set"].values):
                found = {column: float(array[position, j, repeat]) for column, array in values.items()}
                cells = {column: "" if math.isnan(value) else repr(value) for column, value in found.items()}
                if any(cells.values()):
                    key = {
                        "method": csv_cell(method),
                        "seed": seed,
                        "epoch_eff": repr(epoch),
                        "split": csv_cell(str(split)),
                    }
                    lines.append({**key, **cells})
    return lines
