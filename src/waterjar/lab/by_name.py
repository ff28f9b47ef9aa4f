"""One new file is one new data set, shortcut, network or learner: its module name is its name.

A module whose name starts with an underscore is shared by the others and is not found. Every module found
has a pydantic model `Settings`; `parse_settings` turns what a person wrote into it, or into one clear error.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from waterjar.errors import WaterjarError, unknown_name

SettingsType = TypeVar("SettingsType", bound=BaseModel)


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


def parse_settings(model: type[SettingsType], values: Mapping[str, object], where: str) -> SettingsType:
    """Validate settings; all faults in one `WaterjarError`: where, what, and the nearest valid name."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [_describe(model, dict(fault), where) for fault in error.errors()]
        raise WaterjarError("\n".join(faults)) from None


def _describe(model: type[BaseModel], fault: Mapping[str, object], where: str) -> str:
    """One fault of pydantic in our words."""
    location = fault["loc"]
    path = ".".join(str(part) for part in location) if isinstance(location, tuple) else str(location)
    if fault["type"] == "extra_forbidden" and isinstance(location, tuple):
        owner = _model_at(model, location[:-1])
        if owner is not None:
            return str(unknown_name(f"{where}: setting", path, [*_prefixed(path, owner)]))
    if fault["type"] == "missing":
        return f"{where}: setting '{path}' is missing"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if isinstance(fault["input"], Mapping | BaseModel):  # about several settings at once, which it names
        return f"{where}: {path}: {message}" if path else f"{where}: {message}"
    at = f"{where}: setting '{path}'" if path else where
    return f"{at} is {fault['input']!r}: {message}"


def _prefixed(path: str, owner: type[BaseModel]) -> list[str]:
    """The names that are expected in the place of `path`."""
    before, dot, _ = path.rpartition(".")
    return [f"{before}{dot}{name}" for name in owner.model_fields]


def _model_at(model: type[BaseModel], location: tuple[object, ...]) -> type[BaseModel] | None:
    """The model that a fault's location leads to, through nested settings; None where it leads elsewhere."""
    for part in location:
        field = model.model_fields.get(str(part))
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return None
        model = field.annotation
    return model
