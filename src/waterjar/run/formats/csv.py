"""Tidy timelines as CSV: method, seed, epoch_eff, split, acc[, top5, loss, ...], one evaluation a line.

The layout in which results of the field are passed around. It knows no tasks: `epoch_eff` counts epochs of the last
one, and the names of the splits of the Einstellung experiment say the rest. Where that does not hold a study, columns
are added: step, task, epoch, total_epoch, eval_task (the task that the split belongs to), tasks (all of a run, as JSON,
on its first line); visit, where a task is trained again at once, so that the tasks do not tell. What a run knows of
guessing has columns too: eval_size (samples of the split), classes (as tasks). Out and in again gives the same
performance, to the bit.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError, brief, given_as, unknown_name
from waterjar.run.cells import method_of
from waterjar.run.disk import write_file
from waterjar.run.formats import Made
from waterjar.run.formats._timeline import MEASURES, SPLITS, Step, Timeline, Value, seed_form, timelines
from waterjar.run.identity import digest
from waterjar.run.reader import Run
from waterjar.run.schema import REASONS, variables_of
from waterjar.run.shown import csv_cell, from_csv_cell
from waterjar.run.study import Study, create_study, open_study
from waterjar.run.visits import VISIT, count_visits

TITLE = "a tidy timeline: method, seed, epoch_eff, split, acc, top5, loss; tasks and more where it needs them"
_REQUIRED = ("method", "seed", "epoch_eff", "split", "acc")
_PLACES = ("step", "task", "epoch", "total_epoch", "eval_task", "tasks")
_KNOWN = ("eval_size", "classes")
_TEXTS = ("method", "split", "task", "eval_task", "tasks", "classes")
_SHARES = tuple(column for column in MEASURES if column != "loss")

Line = tuple[str, dict[str, str]]
"""Where it stands, and its cells by column."""


def export_runs(study: Study, out: Path, settings: None = None) -> list[Made]:
    """Write the runs of a study as one file."""
    return [Made(to_csv(study, out), left_out(study))]


def import_runs(path: Path, out: Path, *, splits: Sequence[str] | None = None) -> list[Made]:
    """Make a study of a file."""
    return [Made(from_csv(path, out, splits=splits).path)]


def from_csv(
    file: str | os.PathLike[str], out: str | os.PathLike[str], *, splits: Sequence[str] | None = None
) -> Study:
    """Turn a timeline into a study: one sealed run per method and seed, in the directory `out`.

    The lines of a run may come in any order. Duplicate keys, unknown splits and cells that are not numbers are errors
    with their line; nothing is written then. An empty cell is a value that was not recorded; the name of another
    reason (`empty_set`, say) is one that is missing for that reason. `splits` are the names to expect: by default those
    of the Einstellung experiment, or, where the table says which task a split belongs to, any.
    """
    if isinstance(splits, str):
        raise WaterjarError(f"splits={splits!r}: expected a list of names")
    runs: dict[tuple[str, int], list[Line]] = {}
    has_places = False
    for where, cells in _lines(Path(file)):
        has_places = "step" in cells
        known = splits if splits is not None else None if has_places else SPLITS
        if known is not None and cells["split"] not in known:
            raise unknown_name(
                f"{where}: split", cells["split"], known, f"Give others with {given_as('splits', '[...]')}"
            )
        runs.setdefault(_owner(where, cells), []).append((where, cells))
    if not runs:
        raise WaterjarError(f"{file} has a header and no line below it")
    read = _with_places if has_places else _without_places
    found = {owner: replace(read(lines), **_known(lines)) for owner, lines in runs.items()}
    configs = {owner: {"method": owner[0], "source": "timeline"} for owner in found}
    for owner, timeline in found.items():
        try:
            timeline.check(configs[owner], owner[1])
        except WaterjarError as error:
            raise WaterjarError(f"{runs[owner][0][0]} and below: {error}") from None
    is_new = not Path(out).exists()
    try:
        study = create_study(out, {"kind": "timeline", "source": Path(file).name})
        for (method, seed), timeline in found.items():
            timeline.record(study / f"{_folder(method)}-seed{seed}", configs[method, seed], seed)
    except BaseException:  # a full disk, say: the same call can be made again
        if is_new:
            shutil.rmtree(out, ignore_errors=True)
        raise
    return open_study(study)


def _folder(method: str) -> str:
    """A method as part of a directory's name; where signs had to go, a hash keeps two methods apart."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", method).lstrip(".")[:60]
    return plain if plain == method else f"{plain}-{digest(method)[:6]}"


def _lines(file: Path) -> Iterator[Line]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.reader(handle, strict=True)
            header = next(reader, [])
            _check_header(file, header)
            blank = ""
            for row in reader:
                where = f"{file}, line {reader.line_num}"
                if not any(cell.strip() for cell in row) and len(row) < 2:
                    blank = blank or where
                    continue
                if blank:
                    raise WaterjarError(f"{blank} is blank, and others follow: expected blank lines at the end only")
                if len(row) != len(header):
                    raise WaterjarError(f"{where}: {len(row)} cells, the header has {len(header)}")
                record = dict(zip(header, row, strict=True))
                yield where, {name: from_csv_cell(cell) if name in _TEXTS else cell for name, cell in record.items()}
    except OSError as error:
        raise WaterjarError(f"could not read {file}: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise WaterjarError(f"{file} is not a CSV file in UTF-8: {error}") from error


def _check_header(file: Path, header: list[str]) -> None:
    allowed = (*_REQUIRED, *(name for name in MEASURES if name not in _REQUIRED), *_PLACES, VISIT, *_KNOWN)
    for name in header:
        if name not in allowed:
            raise unknown_name(f"{file}, line 1: column", name, allowed)
    needed = [*_REQUIRED, *(_PLACES if {*_PLACES, VISIT} & set(header) else ())]
    if set(needed) - set(header) or len(set(header)) < len(header):
        raise WaterjarError(
            f"{file}, line 1: columns {header}: expected each of {needed} once, and {', '.join(MEASURES)} as there are"
        )


def _owner(where: str, cells: dict[str, str]) -> tuple[str, int]:
    if not cells["method"]:
        raise WaterjarError(f"{where}: method is empty")
    return cells["method"], _whole(cells["seed"], "seed", where)


def _whole(text: str, column: str, where: str) -> int:
    if not re.fullmatch(r"-?\d{1,19}", text):
        raise WaterjarError(f"{where}: {column} {text!r} is not a whole number")
    return int(text)


def _epoch(cells: dict[str, str], column: str, where: str) -> float:
    value = _number(cells[column], column, where) if cells[column].strip() else -1.0
    if not 0 <= value < math.inf:
        raise WaterjarError(f"{where}: {column} {cells[column]!r} is not a number from 0 on")
    return value


def _values(cells: dict[str, str], where: str) -> dict[str, Value]:
    """The measures of a line that are there, or missing for another reason than that nobody recorded them."""
    found: dict[str, Value] = {}
    for column in MEASURES:
        text = cells.get(column, "").strip()
        if not text or text == REASONS[1]:
            continue
        if text in REASONS[2:]:
            found[column] = text
            continue
        value = found[column] = _number(text, column, where)
        if column in _SHARES and not -1e-6 <= value <= 1 + 1e-6:  # as a Recorder has it
            raise WaterjarError(f"{where}: {column} {text!r} is not a share between 0 and 1")
    return found


def _number(text: str, column: str, where: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        number = float(text)
    except ValueError:
        raise WaterjarError(f"{where}: {column} {text!r} is not a number") from None
    if math.isnan(number) or (math.isinf(number) and column != "loss"):  # a diverged loss is a value
        raise WaterjarError(f"{where}: {column} {text!r} is not finite; leave the cell empty if there is no value")
    return number


def _once(seen: dict[Any, str], key: Any, where: str) -> None:
    if key in seen:
        raise WaterjarError(f"{where}: {key} stands already in {seen[key].rpartition(', ')[2]}: expected it once")
    seen[key] = where


def _without_places(lines: list[Line]) -> Timeline:
    seen: dict[tuple[float, str], str] = {}
    found: dict[tuple[float, str], dict[str, Value]] = {}
    for where, cells in lines:
        key = _epoch(cells, "epoch_eff", where), cells["split"]
        _once(seen, key, where)
        found[key] = _values(cells, where)
    return seed_form(found)


def _with_places(lines: list[Line]) -> Timeline:
    seen: dict[tuple[int, str], str] = {}
    steps: dict[int, Step] = {}
    sets: dict[str, str] = {}
    tasks: list[str] = []
    found: dict[tuple[int, str, str], Value] = {}
    for where, cells in lines:
        number, split = _whole(cells["step"], "step", where), cells["split"]
        _once(seen, (number, split), where)
        epochs = [_epoch(cells, column, where) for column in ("epoch", "total_epoch", "epoch_eff")]
        visit = _whole(cells[VISIT], VISIT, where) if VISIT in cells else -1
        step = (number, cells["task"], visit, epochs[0], epochs[1], epochs[2])
        if steps.setdefault(number, step) != step or sets.setdefault(split, cells["eval_task"]) != cells["eval_task"]:
            raise WaterjarError(f"{where}: another line of the run has other epochs or tasks for this step or split")
        if cells["tasks"]:
            tasks = _names(cells["tasks"], "tasks", where)
        found |= {(number, split, column): value for column, value in _values(cells, where).items()}
    for split, task in sets.items():
        if task and task not in tasks:
            raise unknown_name(f"{lines[0][0]}: eval_task of split '{split}'", task, tasks, "Column tasks names them")
    places = {split: tasks.index(task) if task else -1 for split, task in sets.items()}
    ordered = [steps[number] for number in sorted(steps)]
    if VISIT not in lines[0][1]:
        counted = count_visits([step[1] for step in ordered]).tolist()
        ordered = [(*step[:2], visit, *step[3:]) for step, visit in zip(ordered, counted, strict=True)]
    return Timeline(tuple(tasks), places, tuple(ordered), found)


def _known(lines: list[Line]) -> dict[str, Any]:
    """Classes, and sizes of splits, of a run."""
    sizes: dict[str, int] = {}
    classes: tuple[str, ...] = ()
    for where, cells in lines:
        text = cells.get("eval_size", "").strip()
        if text:
            size = _whole(text, "eval_size", where)
            if sizes.setdefault(cells["split"], size) != size:
                raise WaterjarError(f"{where}: another line of the run has another eval_size for this split")
        if cells.get("classes"):
            classes = tuple(_names(cells["classes"], "classes", where))
    return {"sizes": sizes, "classes": classes}


def _names(text: str, column: str, where: str) -> list[str]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise WaterjarError(f'{where}: {column} {brief(text)!r}: expected a JSON list of names, such as ["a", "b"]')
    return names


def to_csv(runs: Run | Study | Iterable[Run], file: str | os.PathLike[str]) -> Path:
    """Write the performance of runs as a timeline, one line per evaluation.

    The method is the name of the run's cell. What a timeline has no place for is told by `left_out`.
    """
    found = _by_method(runs)
    if not found:
        raise WaterjarError("there is no performance to write: none of the runs has evaluations")
    is_enough = all(map(_is_enough, found.values()))
    used = {column for timeline in found.values() for column in timeline.columns}
    measures = [column for column in MEASURES if column == "acc" or column in used]
    known = {
        VISIT: not all(one.tells_visits for one in found.values()),
        "eval_size": any(one.sizes for one in found.values()),
        "classes": any(one.classes for one in found.values()),
    }
    header = [*_REQUIRED[:-1], *measures, *(() if is_enough else _PLACES), *(name for name in known if known[name])]
    text = io.StringIO()
    writer = csv.DictWriter(text, header, restval="", lineterminator="\n")
    writer.writeheader()
    for (method, seed), timeline in found.items():
        for line in _written(timeline, is_enough, known[VISIT]):
            cells = {"method": method, "seed": seed, **line}
            writer.writerow({name: csv_cell(cell) if name in _TEXTS else cell for name, cell in cells.items()})
    return write_file(file, text.getvalue())


def left_out(runs: Run | Study | Iterable[Run]) -> list[str]:
    """What of these runs a timeline does not hold, in words."""
    found: dict[str, None] = {}
    for run in [runs] if isinstance(runs, Run) else runs:
        if not any(True for _ in timelines(run)):
            found[f"{run.path.name}: it has evaluated nothing"] = None
            continue
        own = {str(name) for name in run.load("performance").data_vars} - set(MEASURES.values())
        names = sorted(name for name in own if not name.endswith("_reason"))
        known = variables_of("performance")
        found |= {f"{name} ({'per class' if name in known else 'of your own'})": None for name in names}
        found |= {f"group {group}": None for group in run.groups if group != "performance"}
        told = run.annotations.digest.split() if run.annotations else []
        found |= {f"that annotations counted, of sha256 {digest}": None for digest in told}
    return [*found, "settings, provenance and seals: the method and the seed stand for a run"]


def _by_method(runs: Run | Study | Iterable[Run]) -> dict[tuple[str, int], Timeline]:
    names = runs.cell_names if isinstance(runs, Study) else {}
    owner: dict[tuple[str, int], Path] = {}
    found: dict[tuple[str, int], Timeline] = {}
    for run in [runs] if isinstance(runs, Run) else runs:
        method = names.get(run.cell_id) or method_of(run.config) or run.cell_id
        for seed, timeline in timelines(run):
            if (method, seed) in owner:
                raise WaterjarError(
                    f"{owner[method, seed]} and {run.path} are both method {method!r}, seed {seed}: "
                    "give a study, which tells its cells apart"
                )
            owner[method, seed] = run.path
            found[method, seed] = timeline
    return found


def _is_enough(timeline: Timeline) -> bool:
    """Whether the columns without tasks hold a timeline: would it be read from them as it is?"""
    epochs = {step: effective for step, *_, effective in timeline.steps}
    lines: dict[tuple[float, str], dict[str, Value]] = {}
    for (step, split, column), value in timeline.cells.items():
        lines.setdefault((epochs[step], split), {})[column] = value
    read = seed_form(lines)
    return (
        read == replace(timeline, sizes={}, classes=())
        and list(read.sets) == list(timeline.sets)
        and set(read.sets) <= set(SPLITS)
    )


def _written(timeline: Timeline, is_enough: bool, with_visits: bool) -> Iterator[dict[str, Any]]:
    first = {"tasks": json.dumps(timeline.tasks, ensure_ascii=False)} if not is_enough else {}
    if timeline.classes:
        first["classes"] = json.dumps(timeline.classes, ensure_ascii=False)
    for number, task, visit, epoch, total, effective in timeline.steps:
        for split, place in timeline.sets.items():
            values = {column: timeline.cells.get((number, split, column), "") for column in timeline.columns}
            cells = {column: value if isinstance(value, str) else repr(value) for column, value in values.items()}
            if is_enough and not any(cells.values()):
                continue
            line = {"epoch_eff": repr(effective), "split": split, **cells, **first}
            if split in timeline.sizes:
                line["eval_size"] = str(timeline.sizes[split])
            if not is_enough:
                of = "" if place < 0 else timeline.tasks[place]
                epochs = {"epoch": repr(epoch), "total_epoch": repr(total)}
                line |= {"step": str(number), "task": task, **epochs, "eval_task": of}
            if with_visits:
                line[VISIT] = str(visit)
            yield line
            first = {}
