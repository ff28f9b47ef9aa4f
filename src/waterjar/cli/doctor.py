"""`waterjar doctor`: what is installed, and how to get the rest; whether a device keeps what runs promise."""

from __future__ import annotations

import dataclasses
import platform
import re
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from waterjar._version import __version__
from waterjar.cli.output import AsJson, print_json, print_rich, row, table
from waterjar.errors import IN_CHECKOUT, to_install

NAME = "doctor"
_PIPED = 80


def command(
    device: Annotated[
        str | None, typer.Option(help="Train small runs on it (cpu, cuda, mps): are they equal, resumable, neutral?")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which extras are installed, and the command that brings the others; with --device, try that out."""
    if device is not None:
        _try_device(device, as_json)
        return
    extras = _extras()
    tools = {
        "git": "records the commit of your repository",
        "ssh-keygen": "signs and checks seals",
    }
    found = {name: shutil.which(name) is not None for name in tools}
    outside = parts_from_outside()
    if as_json:
        about = {"waterjar": __version__, "python": platform.python_version()}
        print_json({**about, "extras": extras, "tools": found, "parts": outside})
        return
    made = table(
        f"waterjar {__version__}, python {platform.python_version()}",
        ["extra", "packages"],
    )
    for name, extra in extras.items():
        have = ", ".join(f"{p} {v}" for p, v in extra["installed"].items())
        lack = f"missing: {', '.join(extra['missing'])}" if extra["missing"] else ""
        for i, packages in enumerate(filter(None, (have, lack))):
            row(made, "" if i else name, packages)
    commands = [extra["command"] for extra in extras.values() if extra["command"]]
    programs = table("", ["program", "there", "what for"])
    for name, purpose in tools.items():
        row(programs, name, "yes" if found[name] else "no", purpose)
    print_rich(
        made, *(f"to get what is missing, {IN_CHECKOUT}: {command}" for command in commands), programs, piped=_PIPED
    )
    if outside:
        others = table("parts from outside", ["shelf", "name", "package", "module", "state"])
        for part in outside:
            row(others, part["shelf"], part["name"], part["package"], part["module"], part["state"])
        print_rich(others, piped=_PIPED)


def parts_from_outside() -> list[dict[str, str]]:
    """Every part that another package brings, each tried: `usable`, or why it is not."""
    from waterjar.diagnose.registry import metrics  # noqa: PLC0415 - not for --help
    from waterjar.errors import unknown_name  # noqa: PLC0415
    from waterjar.run.shelf import SHELVES, found_parts  # noqa: PLC0415

    parts = found_parts()
    if any(part.shelf == "metrics" for part in parts):
        metrics()  # the registry imports them, and knows more of what is wrong with one
    made = []
    for part in parts:
        shelf = SHELVES.get(part.shelf)
        if shelf is None:
            state = str(unknown_name("shelf", part.shelf, SHELVES))
        else:
            state = shelf.refusals().get(part, "") or shelf.fault(part) or "usable"
        made.append(
            {
                "shelf": part.shelf,
                "name": part.name,
                "package": part.origin,
                "module": part.target,
                "state": state,
            }
        )
    return made


def _try_device(device: str, as_json: bool) -> None:
    """Resume, neutrality and equality, really trained; exit code 1 if one of them does not hold."""
    from waterjar.errors import missing_extra  # noqa: PLC0415 - not for --help

    try:
        from waterjar.lab.device_checks import check_device  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing_extra("torch", "lab", "runs of the laboratory") from error
    found = []
    with tempfile.TemporaryDirectory(prefix="waterjar-doctor-") as folder:
        for check in check_device(device, Path(folder)):
            found.append(check)
            if not as_json:
                said = "holds" if check.holds else "DOES NOT HOLD"
                sys.stderr.write(f"{check.promise} ({check.kind}): {said}: {check.told}\n")
    broken = [check for check in found if not check.holds]
    if as_json:
        print_json({"device": device, "checks": [dataclasses.asdict(check) for check in found]})
    elif not broken:
        print_rich(f"{len(found)} of {len(found)} promises hold on {device}")
    if broken:
        raise typer.Exit(1)


def _extras() -> dict[str, dict[str, Any]]:
    """Extra -> installed packages with versions, missing ones, and the command; from our own metadata."""
    needs: dict[str, list[str]] = {"core": []}
    for requirement in metadata.requires("waterjar") or []:
        package, _, marker = requirement.partition(";")
        name = re.split(r"[\s\[(<>=!~;]", package.strip(), maxsplit=1)[0]
        extra = marker.partition("extra ==")[2].strip(" '\"") or "core"
        if name != "waterjar":
            needs.setdefault(extra, []).append(name)
    return {extra: _extra(extra, names) for extra, names in needs.items()}


def _extra(extra: str, names: list[str]) -> dict[str, Any]:
    installed: dict[str, str] = {}
    for name in names:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    missing = [name for name in names if name not in installed]
    return {
        "installed": installed,
        "missing": missing,
        "command": to_install(extra) if missing else None,
    }
