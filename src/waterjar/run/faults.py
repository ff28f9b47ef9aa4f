"""What is wrong with settings, in words: where (`strategies[1].settings.lr`), what, and what was expected.

The one place where faults of pydantic models are told, whoever wrote the settings: a study file, --set, or a call.
Pydantic alone takes `true` for 1 and "3" for 3, reports a union once per member, and knows no nearest names. So the
types are looked over here first, by the models' own annotations; ranges and what fits together are left to pydantic,
which has the last word.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import numbers
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from waterjar.errors import WaterjarError, brief

Settings = TypeVar("Settings", bound=BaseModel)
_RANGES = ("greater_than", "less_than", "too_", "value_error")
_BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}


class Behind(NamedTuple):
    """What stands behind the name in a model such as {name: resnet18, settings: {width: 16}}.

    Such a model has a class method `behind(values, at)`, which looks the name up in its values.
    """

    faults: list[str]
    """What is wrong with the name itself."""
    settings: type[BaseModel] | None = None
    """What `settings` must be; None if the name is unknown."""
    preset: Mapping[str, object] = types.MappingProxyType({})
    """Settings that those given go before."""


@dataclass(frozen=True)
class Expected:
    """What a setting is expected to be, in words that stand beside its type: `Annotated[float, Expected("...")]`."""

    words: str


def parse_settings(model: type[Settings], values: Mapping[str, object], where: str, at: str = "") -> Settings:
    """Settings from what a person wrote; what is wrong with them is one `WaterjarError`, a line each."""
    found = faults(model, values, at)
    if found:
        raise WaterjarError("\n".join(f"{where}: {fault}" for fault in found))
    return model.model_validate(dict(values))


def faults(model: type[BaseModel], values: Mapping[str, object], at: str = "") -> list[str]:
    """All that is wrong with settings which stand at the path `at`; an empty list if nothing is."""
    try:
        model.model_validate(dict(values))
    except ValidationError as error:
        return of_pydantic(error, model, values, at)
    return _of_model(model, values, at)


def of_pydantic(
    error: ValidationError, model: type[BaseModel], values: Mapping[str, object], at: str = ""
) -> list[str]:
    """The faults of settings which pydantic has refused."""
    found = _of_model(model, values, at)
    every = error.errors(include_url=False)
    ranges = [fault for fault in every if fault["type"].startswith(_RANGES)]
    # Types are told in better words, and of a union pydantic tells those of its other members too; what was not found
    # there must still come out.
    for fault in ranges or ([] if found else every):
        path, line = _line(fault, model, values, at)
        if not any(f"setting '{path}' is" in known for known in found):
            found.append(line)
    return found


def unknown(
    what: str, path: str, name: object, options: Iterable[str], elsewhere: Mapping[str, str] | None = None
) -> str:
    """One wrong name: the nearest of `options`, or the right place if the name itself belongs `elsewhere`.

    >>> unknown("setting", "shortcut.rat", "rat", ["kind", "rate"])
    "setting 'shortcut.rat' is unknown: did you mean 'shortcut.rate'? Known: 'kind', 'rate'"
    """
    names, places = list(options), dict(elsewhere or {})
    before, path, name = path.removesuffix(str(name)), brief(path), brief(name)
    full = {**places, **{option: f"{before}{option}" for option in names}}
    if name in places:
        near = [name]
    else:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        near = near or difflib.get_close_matches(name, places, n=1, cutoff=0.6)
    guess = f": did you mean '{full[near[0]]}'?" if near else "."
    listing = ", ".join(f"'{option}'" for option in names) or "none"
    return f"{what} '{path}' is unknown{guess} Known: {listing}"


def _of_model(model: type[BaseModel], values: Mapping[str, object], at: str) -> list[str]:
    fields = model.model_fields
    elsewhere = _names_below(model, at)
    found: list[str] = []
    if hasattr(model, "behind"):
        there: Behind = model.behind(values, at)
        found += there.faults
        given = values.get("settings", {})
        if there.settings is not None:
            path = _below(at, "settings")
            elsewhere |= {name: f"{path}.{name}" for name in there.settings.model_fields}
            if isinstance(given, Mapping):
                found += faults(there.settings, {**there.preset, **given}, path)
    for name, value in values.items():
        path = _below(at, name)
        if name not in fields:
            found.append(unknown("setting", path, name, fields, elsewhere))
            continue
        field = fields[name]
        wrong, words = _of_value(field.annotation, _before(field.metadata, value), path), _expected(field)
        found += [_needs(path, value, words)] if wrong and words else wrong
    for name, field in fields.items():
        if field.is_required() and name not in values:
            found.append(f"setting '{_below(at, name)}' is missing")
    return found


def _of_value(annotation: Any, value: object, path: str) -> list[str]:
    """What is wrong with the type of a value, by its annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of_value(arguments[0], _before(arguments[1:], value), path)
    if origin in (Union, types.UnionType):
        return _of_union(arguments, value, path)
    if origin is Literal:
        return _of_literal(arguments, value, path)
    if origin is tuple:
        return _of_list(arguments, value, path)
    if _kind_of(annotation) == "mapping":
        return _of_mapping(annotation, value, path)
    judge = _SCALARS.get(annotation)  # what is none of ours (Any, say) is judged where it is used
    fault = None if judge is None else judge(value)
    return [] if fault is None else [_needs(path, value, fault)]


def _before(metadata: Iterable[Any], value: object) -> object:
    """A value as pydantic would judge it: what stands beside a type may make one name a list of names."""
    for one in metadata:
        if isinstance(one, BeforeValidator):
            with contextlib.suppress(ValueError):  # what it refuses is judged as it is
                value = one.func(value)  # type: ignore[call-arg]
    return value


def _of_mapping(annotation: Any, value: object, path: str) -> list[str]:
    if get_origin(annotation) is dict:
        if isinstance(value, Mapping):
            part = get_args(annotation)[1]
            return [fault for key, item in value.items() for fault in _of_value(part, item, _below(path, key))]
    elif isinstance(value, annotation):
        return []
    elif isinstance(value, Mapping):
        return _of_model(annotation, value, path)
    return [_needs(path, value, f"expected {describe(annotation)}")]


def _of_union(members: tuple[Any, ...], value: object, path: str) -> list[str]:
    """Judge a value by the member that it was meant to be, so that one fault is told once."""
    if value is None and types.NoneType in members:
        return []
    given = [member for member in members if member is not types.NoneType]
    meant = [member for member in given if _kind_of(member) == _kind(value)] if len(given) > 1 else given
    if not meant:
        return [_needs(path, value, "expected " + " or ".join(map(describe, members)))]
    judged = [_of_value(member, value, path) for member in meant]
    return min(judged, key=len)


def _of_list(arguments: tuple[Any, ...], value: object, path: str) -> list[str]:
    if not isinstance(value, list | tuple):
        return [_needs(path, value, f"expected a list, such as [{_shown(value)}]")]
    if arguments[-1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        return [_needs(path, value, f"expected {len(arguments)} values, not {len(value)}")]
    pairs = enumerate(zip(arguments, value, strict=True))
    return [fault for place, (kind, part) in pairs for fault in _of_value(kind, part, f"{path}[{place}]")]


def _of_literal(options: tuple[Any, ...], value: object, path: str) -> list[str]:
    if any(type(value) is type(option) and value == option for option in options):
        return []
    if not isinstance(value, str):
        return [_needs(path, value, f"expected one of {', '.join(map(str, options))}")]
    return [f"{path}: {unknown('name', value, value, [str(option) for option in options])}"]


def _whole(value: object) -> str | None:
    if not isinstance(value, bool) and isinstance(value, numbers.Integral):
        return None
    number = _number(value)
    if number is not None and number.is_integer():
        return f"expected a whole number: write {int(number)}"
    return "expected a whole number"


def _real(value: object) -> str | None:
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        is_whole = isinstance(value, numbers.Integral)  # one of 400 digits is no float
        return None if is_whole or math.isfinite(value) else "expected a finite number"
    number = _number(value)
    return "expected a number" + (f": write {number!r}, without quotes" if number is not None else "")


def _number(value: object) -> float | None:
    """The finite number that somebody meant by a float or by text, if it is one."""
    if isinstance(value, bool) or not isinstance(value, str | float):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _truth(value: object) -> str | None:
    return None if isinstance(value, bool) else "expected true or false"


def _words(value: object) -> str | None:
    if isinstance(value, str):
        return None
    return "expected text" + (f': write "{_shown(value)}"' if isinstance(value, bool | int | float) else "")


def _place(value: object) -> str | None:
    return None if isinstance(value, str | Path) else "expected a path"


_SCALARS: dict[Any, Callable[[object], str | None]] = {
    int: _whole,
    float: _real,
    bool: _truth,
    str: _words,
    Path: _place,
}


def describe(annotation: Any) -> str:
    """What a value of this type looks like, for the person who writes it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"a mapping ({', '.join(annotation.model_fields)})"
    plain = {int: "a whole number", float: "a number", bool: "true or false", str: "a name", types.NoneType: "null"}
    if annotation in plain:
        return plain[annotation]
    return "a mapping" if get_origin(annotation) is dict else "a list" if get_origin(annotation) is tuple else "a value"


def _kind(value: object) -> str:
    if isinstance(value, Mapping | BaseModel):
        return "mapping"
    return "list" if isinstance(value, list | tuple) else "text" if isinstance(value, str) else "scalar"


def _kind_of(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind_of(get_args(annotation)[0])
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "mapping"
    return "list" if origin is tuple else "text" if annotation in (str, Path) or origin is Literal else "scalar"


def _names_below(model: type[BaseModel], at: str) -> dict[str, str]:
    """name -> path of the settings one level further down: where a name that stands too high belongs."""
    found = {}
    for section, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found.update({name: f"{_below(at, section)}.{name}" for name in field.annotation.model_fields})
    return found


def _path(fault: Mapping[str, Any], values: object, at: str) -> str:
    """Where a fault of pydantic stands; which member of a union it is about, which pydantic tells too, is left out."""
    last = len(fault["loc"]) - 1
    for place, part in enumerate(fault["loc"]):
        if isinstance(part, int):
            at = f"{at}[{part}]"
            values = values[part] if isinstance(values, list | tuple) else None
        elif isinstance(values, list | tuple) or (isinstance(values, Mapping) and part not in values and place < last):
            continue
        else:
            at = _below(at, part)
            values = values.get(part) if isinstance(values, Mapping) else None
    return at


def _line(fault: Mapping[str, Any], model: type[BaseModel], values: Mapping[str, object], at: str) -> tuple[str, str]:
    """One fault of pydantic: where it stands, and in our words."""
    field = model.model_fields.get(str(fault["loc"][0])) if fault["loc"] else None
    words = _expected(field) if field is not None else ""
    if words:
        path = _below(at, fault["loc"][0])
        return path, _needs(path, values.get(str(fault["loc"][0])), words)
    path = _path(fault, values, at)
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] in _BOUNDS:
        message = f"expected {_BOUNDS[fault['type']]} {next(iter(fault['ctx'].values()))}"
    if isinstance(fault["input"], Mapping | BaseModel):  # about several settings at once, which it names
        return path, f"{path}: {message}" if path else message
    return path, _needs(path, fault["input"], message)


def _expected(field: FieldInfo) -> str:
    """The words of a field that has some."""
    members = [field.annotation, *get_args(field.annotation)]
    parts = [*field.metadata, *(part for member in members for part in getattr(member, "__metadata__", ()))]
    words = next((part.words for part in parts if isinstance(part, Expected)), "")
    return f"expected {words}{', or null' if types.NoneType in members else ''}" if words else ""


def _needs(path: str, value: object, what: str) -> str:
    return f"setting '{brief(path)}' is {_shown(value)}: {what}"


def _shown(value: object) -> str:
    """A value the way YAML would have it, not too long."""
    if value is None:
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else repr(list(value) if isinstance(value, tuple) else value)
    return brief(text)


def _below(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)
