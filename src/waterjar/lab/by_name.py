"""One new file is one new data set, shortcut, network or learner: its module name is its name.

A module whose name starts with an underscore is shared by the others and is not found. Every module found
has a pydantic model `Settings`, which `waterjar.run.faults.parse_settings` makes of what a person wrote.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from waterjar.errors import unknown_name
from waterjar.run.faults import Behind, unknown


def names_in(package: ModuleType) -> tuple[str, ...]:
    """The names that stand in a package's folder, sorted."""
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


def module_in(package: ModuleType, what: str, name: str) -> ModuleType:
    """Import the module `name` of a package, or say which there are. `what` is the kind, for the error."""
    known = names_in(package)
    if name not in known:
        raise unknown_name(what, name, known)
    return importlib.import_module(f"{package.__name__}.{name}")


def behind_name(package: ModuleType, what: str, name: object, at: str) -> Behind:
    """The settings of a module of a package; `what` is the kind of thing it is, for the error."""
    if not isinstance(name, str):
        return Behind([])  # told where the types are judged
    known = names_in(package)
    if name not in known:
        return Behind([f"{at}: {unknown(what, name, name, known)}"])
    return Behind([], module_in(package, what, name).Settings)
