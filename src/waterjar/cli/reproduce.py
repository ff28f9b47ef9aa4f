"""`waterjar reproduce`: does training again give what was sealed?"""

from __future__ import annotations

import secrets
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.output import AsJson, print_json, print_rich, row, table

if TYPE_CHECKING:
    from waterjar.run.sameness import Sameness

NAME = "reproduce"


def command(
    path: Annotated[Path, typer.Argument(help="A sealed run of the laboratory, or a study of them with --audit.")],
    audit: Annotated[str | None, typer.Option(help="Share of a study's runs to draw, such as 10% or 0.1.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draws the same runs of an audit again.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where to train; by default inside the study.")] = None,
    data: Annotated[str | None, typer.Option(help="Path of the data, where the study has no copy of them.")] = None,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Share of an array's largest number that other machines may differ by.")
    ] = 0.01,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of torch; as declared, unless told.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a run again from its declaration and compare every number with the seal. Exit code 1 if one differs."""
    from waterjar.cli.run import stoppable, watched  # noqa: PLC0415 - not for --help
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.lab.study.reproduce import PLACE, chosen, declaration_of, reproduce  # noqa: PLC0415
    from waterjar.run.reader import open_run  # noqa: PLC0415
    from waterjar.run.store import ROOT  # noqa: PLC0415
    from waterjar.run.study import open_study  # noqa: PLC0415

    if not path.is_dir():
        raise WaterjarError(f"{path} is not a directory: expected a run, or a study")
    single = (path / ROOT).exists()
    if single == (audit is not None):
        raise WaterjarError(
            f"--audit says nothing to a single run: {path} is one"
            if single
            else f"{path} is a study: expected --audit 10% (or 100%), or one of its runs"
        )
    folder = path.resolve().parent if single else path
    drawn = secrets.randbelow(10**6) if seed is None else seed
    runs = [open_run(path)] if single else chosen(_sealed(open_study(folder)), _share(str(audit)), drawn)
    if not runs:
        raise WaterjarError(f"{folder} holds no sealed runs: there is nothing to reproduce")
    declared = declaration_of(folder)
    changed = {key: value for key, value in (("workers", workers), ("threads", threads)) if value is not None}
    declared = declared.model_copy(update={"resources": declared.resources.model_copy(update=changed)})
    place = out or folder / PLACE
    words = {"--audit": audit, "--seed": None if single else drawn, "--out": out, "--data": data}
    words |= {"--workers": workers, "--threads": threads}
    again = ["waterjar", "reproduce", str(path)]
    again += [text for word, value in words.items() if value is not None for text in (word, str(value))]
    with stoppable(shlex.join(again)), watched(declared, quiet=as_json) as watch:
        found = reproduce(runs, declared, place, path=data, tolerance=tolerance, watch=watch)
    for name, one in found.items():
        if one.verdict == "equal" and out is None:
            shutil.rmtree(place / name, ignore_errors=True)
    _tell(found, None if single else (len(runs), drawn), place, as_json)
    if any(one.verdict == "differs" for one in found.values()):
        raise typer.Exit(1)


def _sealed(study: Any) -> list[Any]:
    return [study.open(entry) for entry in study.entries if entry.status == "sealed"]


def _share(text: str) -> float:
    """A share of runs: 10%, or 0.1."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 < number <= 1:
        raise WaterjarError(f"--audit {text}: expected a share of the runs, such as 10% or 0.1")
    return number


def _tell(found: dict[str, Sameness], audit: tuple[int, int] | None, place: Path, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "runs": {name: _plain(one) for name, one in found.items()},
                "audit": None if audit is None else {"runs": audit[0], "seed": audit[1]},
            }
        )
        return
    made = table("", ["run", "verdict"])
    for name, one in found.items():
        row(made, name, one.verdict)
    kept = [name for name, one in found.items() if one.verdict != "equal"]
    lines = [f"{name}: {one}" for name, one in found.items()]
    if audit is not None:
        lines.append(f"drawn at random: {audit[0]} runs; --seed {audit[1]} draws the same ones")
    if kept:
        lines.append(f"what was trained now is in {place}")
    print_rich(made, *lines)
    sys.stdout.flush()


def _plain(one: Sameness) -> dict[str, Any]:
    return {
        "verdict": one.verdict,
        "said": str(one),
        "differences": [vars(difference) for difference in one.differences],
        "surroundings": {name: {"then": then, "now": now} for name, (then, now) in one.surroundings.items()},
    }
