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
    if as_json:
        print_json({"waterjar": __version__, "python": platform.python_version(), "extras": extras, "tools": found})
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
