"""`waterjar doctor`: what is installed, and how to get the rest."""

from __future__ import annotations

import platform
import re
import shutil
from importlib import metadata
from typing import Any

from waterjar._version import __version__
from waterjar.cli.output import AsJson, print_json, print_rich, row, table

NAME = "doctor"


def command(as_json: AsJson = False) -> None:
    """Say which extras are installed, and the command that brings the others."""
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
        ["extra", "installed", "missing", "to get it"],
    )
    for name, extra in extras.items():
        have = ", ".join(f"{p} {v}" for p, v in extra["installed"].items())
        row(made, name, have or "–", ", ".join(extra["missing"]) or "–", extra["command"] or "–")
    programs = table("", ["program", "there", "what for"])
    for name, purpose in tools.items():
        row(programs, name, "yes" if found[name] else "no", purpose)
    print_rich(made, programs)
    if outside:
        others = table("parts from outside", ["shelf", "name", "package", "module", "state"])
        for part in outside:
            row(others, part["shelf"], part["name"], part["package"], part["module"], part["state"])
        print_rich(others)


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
    target = "waterjar" if extra == "core" else f"'waterjar[{extra}]'"
    return {
        "installed": installed,
        "missing": missing,
        "command": f"pip install {target}" if missing else None,
    }
