"""Packages of other people's, installed for a test without pip: their files and metadata in a folder on the path."""

from __future__ import annotations

import importlib
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waterjar.diagnose import registry
from waterjar.run import shelf

PACKAGE = Path(__file__).with_name("parts_from_outside")


def install(site: Path, version: str | None = None) -> Path:
    """Put tests/parts_from_outside into the folder `site`, with the metadata that pip would write."""
    shutil.copytree(PACKAGE / "src", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return describe(site, tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"], version)


def describe(site: Path, project: Mapping[str, Any], version: str | None = None) -> Path:
    """Write the metadata of a package, as its pyproject.toml has it under [project]."""
    groups = {group: dict(entries) for group, entries in project["entry-points"].items()}
    return bring(site, project["name"], groups, version or project["version"])


def bring(site: Path, package: str, groups: Mapping[str, Mapping[str, str]], version: str = "1.0") -> Path:
    """Write the metadata of a package with entry points group -> name -> module; an earlier version is replaced."""
    for old in site.glob(f"{package.replace('-', '_')}-*.dist-info"):
        shutil.rmtree(old)
    folder = site / f"{package.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [f"[{group}]\n" + "".join(f"{n} = {t}\n" for n, t in parts.items()) for group, parts in groups.items()]
    (folder / "entry_points.txt").write_text("\n".join(lines))
    return site


def forget(site: Path) -> None:
    """As if nothing of a folder had ever been imported; and look at what is installed anew."""
    there = {file.name.removesuffix(".py") for file in site.iterdir()}
    for name in [name for name in sys.modules if name.partition(".")[0] in there]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for declared in list(registry._METRICS.values()):
        if declared.origin:
            registry.forget(declared.name)
    registry.families.cache_clear()
    shelf._found.cache_clear()
    shelf._FAULTS.clear()
    shelf._TOLD.clear()
