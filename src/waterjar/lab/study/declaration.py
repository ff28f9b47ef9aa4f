"""The declaration of a study: a YAML file, validated by its kind, and expanded into runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.lab.study import kinds
from waterjar.lab.study.kinds import Declared
from waterjar.run.yaml_text import read_yaml_file


def read(path: Path) -> Declared:
    """Read a declaration from a YAML file."""
    settings = read_yaml_file(path)
    if not isinstance(settings, dict):
        raise WaterjarError(f"{path} is not a mapping of settings: `waterjar new` writes one to start from")
    return declare(settings, str(path))


def declare(content: Mapping[str, Any], where: str = "study") -> Declared:
    """Validate a declaration, and every run that it expands to; a wrong one is a `WaterjarError`, a fault a line."""
    kind = content.get("kind")
    if kind is None:
        raise WaterjarError(f"{where}: kind is missing: expected kind: {' or kind: '.join(kinds.names())}")
    try:
        kinds.SHELF.check(str(kind), "kind: name")
        known = kinds.of(str(kind))
    except WaterjarError as error:
        raise WaterjarError(f"{where}: {error}") from error
    return known.declare(content, where)


def expand(declaration: Declared, where: str = "study") -> list[Any]:
    """The configs of all runs of a study."""
    return kinds.of(declaration.kind).expand(declaration, where)
