"""Other layouts in and out of runs, one a file, found by module name.

A format is a module with a `TITLE`, one line, and one or both of

- `export_runs(study, out, settings) -> list[Made]`, which writes all runs of a study (a single run is a study of one);
- `import_runs(path, out) -> list[Made]`, which makes sealed runs of a stranger's file. Nothing in it is executed.
  Settings of an import are keyword arguments of it.

A pydantic model `Settings` has what can be set of an export (`--set key=value`); without it, `settings` is None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.shelf import SHELVES

if TYPE_CHECKING:
    from waterjar.run.study import Study

__all__ = ["SHELF", "Made", "export_as", "import_from", "names"]

SHELF = SHELVES["formats"]
names = SHELF.names


@dataclass(frozen=True)
class Made:
    """What was written, and what a person must know about it: what it does not hold, say."""

    path: Path
    notes: list[str] = field(default_factory=list)


def export_as(name: str, study: Study, out: Path, settings: Mapping[str, object] | None = None) -> list[Made]:
    """Write the runs of a study in a format."""
    write = _function(name, "export_runs", "written")
    if hasattr(SHELF.module(name), "Settings"):
        parsed = SHELF.parse(name, settings or {})
        with SHELF.calling(name):
            return _made(write(study, out, parsed))
    if settings:
        raise WaterjarError(f"format '{name}' has no settings, and {', '.join(settings)} is given")
    with SHELF.calling(name):
        return _made(write(study, out, None))


def import_from(name: str, path: Path, out: Path, settings: Mapping[str, Any] | None = None) -> list[Made]:
    """Make runs of a file, or a folder, in a format, with settings of its own."""
    read = _function(name, "import_runs", "read")
    known = [one.name for one in inspect.signature(read).parameters.values() if one.kind is one.KEYWORD_ONLY]
    for key in settings or ():
        if key not in known:
            raise unknown_name(f"setting of importing '{name}'", key, known)
    with SHELF.calling(name):
        return _made(read(path, out, **(settings or {})))


def _made(told: list[Made]) -> list[Made]:
    """What a format told, looked at where its package can be named."""
    if not isinstance(told, list) or not all(isinstance(one, Made) for one in told):
        raise TypeError(f"expected a list of Made, and it gave {told!r}")
    return told


def _function(name: str, function: str, done: str) -> Callable[..., list[Made]]:
    found: Any = getattr(SHELF.module(name), function, None)
    if found is None:
        able = [one for one, module in SHELF.modules()[0].items() if hasattr(module, function)]
        raise WaterjarError(f"format '{name}' cannot be {done}: expected {', '.join(able)}")
    return found  # type: ignore[no-any-return]
