"""`waterjar annotate`: what was forgotten while recording, added beside the sealed bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from waterjar.cli.output import AsJson, print_json
from waterjar.errors import WaterjarError
from waterjar.run.shown import visible, visible_lines

NAME = "annotate"


def command(
    path: Annotated[Path, typer.Argument(help="A run, or a study for all its runs.")],
    eval_task: Annotated[
        list[str] | None, typer.Option(help="EVAL_SET=TASK: the task that an eval set belongs to; repeat it.")
    ] = None,
    chance: Annotated[
        list[str] | None, typer.Option(help="Accuracy of guessing: 0.1, or TASK=0.1 for every task; repeat it.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="Names of the classes: a,b,c.")] = None,
    probe_labels: Annotated[
        Path | None, typer.Option(help="A .npy file: labels (eval_set, sample) or (repeat, eval_set, sample).")
    ] = None,
    note: Annotated[str | None, typer.Option(help="A sentence.")] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="Take away eval_task, chance, classes, probe_labels, note, or all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add what was forgotten while recording. Sealed bytes stay; what is told is named with every result."""
    from waterjar.run.annotated import other_chance  # noqa: PLC0415 - not for --help
    from waterjar.run.annotations import read_annotations, told  # noqa: PLC0415 - not for --help
    from waterjar.run.reader import Run  # noqa: PLC0415
    from waterjar.run.store import ROOT  # noqa: PLC0415
    from waterjar.run.study import Study, open_study  # noqa: PLC0415

    given: dict[str, Any] = {
        "eval_task": dict(_pair(one, "--eval-task") for one in eval_task) if eval_task else None,
        "chance": _chance(chance) if chance else None,
        "classes": [name.strip() for name in classes.split(",")] if classes else None,
        "probe_labels": _labels(probe_labels) if probe_labels else None,
        "note": note,
        "remove": remove or (),
    }
    if not any(value for value in given.values() if not hasattr(value, "shape")) and given["probe_labels"] is None:
        raise WaterjarError(
            "nothing to annotate: give at least one of --eval-task, --chance, --classes, --probe-labels, --note, "
            "--remove; 'waterjar show' tells what was annotated"
        )
    if (path / ROOT).exists():
        Run(path, annotated=False).annotate(**given)
    else:
        Study(path, []).annotate(**given)
    known = read_annotations(path)
    if as_json:
        print_json({"path": str(path), **(vars(known) if known else {"entries": {}, "digest": None})})
    else:
        said = f"annotated: {told(known)}\n  sha256 {known.digest}" if known else "has no annotations any more"
        runs = [Run(path)] if (path / ROOT).exists() else open_study(path)
        notes = dict.fromkeys(other_chance(run.attributes) for run in runs) if chance else {}
        said += "".join(f"\n  {note}" for note in notes if note)
        sys.stdout.write(f"{visible(str(path))} {visible_lines(said)}\n")


def _pair(text: str, option: str) -> tuple[str, str | int]:
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise WaterjarError(f"{option} {text}: expected NAME=VALUE, such as digits01=task0")
    return name, value


def _chance(given: list[str]) -> float | dict[str, float]:
    if len(given) == 1 and "=" not in given[0]:
        return _number(given[0])
    return {name: _number(str(value)) for name, value in (_pair(one, "--chance") for one in given)}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise WaterjarError(f"--chance {text}: expected a number such as 0.1, or TASK=0.1 for every task") from None


def _labels(file: Path) -> Any:
    import numpy as np  # noqa: PLC0415 - not for --help

    from waterjar.run.npz_file import FAULTS  # noqa: PLC0415

    try:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    except FAULTS as error:
        why = (
            "there is no such file"
            if isinstance(error, FileNotFoundError)
            else getattr(error, "strerror", None) or error
        )
        raise WaterjarError(f"--probe-labels {file}: {why}; expected a .npy file of whole numbers") from error
