"""Settings of a family: the keyword arguments of its `measure`, as a pydantic model, and faults in words.

    @settings_of("plasticity")
    def measure(source: Run | Study, *, tau: Real = 0.1, eval_sets: Names | None = None) -> xr.Dataset: ...

The signature is the only place where a setting stands: its name, its type (a `Literal` where it is a choice) and its
default. `Annotated[..., Expected("an accuracy in (0, 1]")]` says in words what was expected.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ParamSpec, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from waterjar.errors import WaterjarError
from waterjar.run import faults
from waterjar.run.faults import Expected

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def each_once(names: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse what stands twice."""
    if len(set(names)) < len(names):
        raise ValueError("one of them stands twice")
    return names


def _one_is_a_list(names: Any) -> Any:
    return (names,) if isinstance(names, str) else names


Real = Annotated[float, Field(allow_inf_nan=False), Expected("a number")]
Whole = Annotated[int, Field(ge=0), Expected("a whole number from 0 on")]
Count = Annotated[int, Field(ge=1), Expected("a whole number, at least 1")]
Share = Annotated[float, Field(gt=0.0, lt=1.0), Expected("a number between 0 and 1")]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False), Expected("a number above 0")]
_Chance = Annotated[float, Field(ge=0.0, lt=1.0)]
Chance = Annotated[
    _Chance | tuple[_Chance, ...] | None,
    Expected("a number in [0, 1), as 1 / (number of classes), or a list of one for every task"),
]
CellName = Annotated[str, Expected("a scenario, or the name of a cell")]
Names = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_one_is_a_list),
    AfterValidator(each_once),
    Expected("a list of names, each once"),
]


def check_chance(chance: object, tasks: int, where: str) -> None:
    """Refuse a list of chances that is not one for every task that a run declares."""
    if isinstance(chance, tuple) and len(chance) != tasks:
        raise WaterjarError(
            f"chance={list(chance)}: expected one number, or one for every task of {where}, which has {tasks}"
        )


def settings_of(family: str) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Make a function whose signature has the settings of a family measure that family.

    Settings that are not given are those of the study's declaration, or else the defaults.
    """

    def decorate(signature: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        @functools.wraps(signature)
        def measure(source: Any, **given: Any) -> Any:
            from waterjar.diagnose.registry import find_family  # noqa: PLC0415 - the registry imports us

            return find_family(family).measure(source, **given)

        return measure  # type: ignore[return-value]

    return decorate


def model_of(signature: Callable[..., Any], family: str) -> type[BaseModel]:
    """The keyword arguments of a function as a pydantic model, frozen, which takes nothing else."""
    hints = typing.get_type_hints(signature, include_extras=True)
    parameters = [p for p in inspect.signature(signature).parameters.values() if p.kind is p.KEYWORD_ONLY]
    fields: dict[str, Any] = {p.name: (hints[p.name], p.default) for p in parameters}
    config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())
    return create_model(f"{family.capitalize()}Settings", __config__=config, **fields)


def parse(model: type[BaseModel], given: Mapping[str, Any], family: str) -> BaseModel:
    """Settings from what a person wrote; what is wrong with them is one error, a line each."""
    found = faults.parse_settings(model, {name: plain(value) for name, value in given.items()}, family)
    try:
        json.dumps(dump(found))  # a result says in JSON how it was made
    except (TypeError, ValueError) as error:
        raise WaterjarError(f"{family}: settings are numbers, text, lists and the like: {error}") from None
    return found


def dump(settings: BaseModel) -> dict[str, Any]:
    """Settings as plain data for JSON."""
    return {name: _listed(getattr(settings, name)) for name in type(settings).model_fields}


def plain(value: Any) -> Any:
    """Numpy's numbers and arrays as Python's, lists as tuples.

    Narrow floats are read by their shortest digits: np.float32(0.6) was meant as 0.6 and not as 0.6000000238.

    >>> plain([np.float32(0.6), np.arange(2)])
    (0.6, (0, 1))
    """
    if isinstance(value, np.ndarray):
        value = list(value) if value.ndim else value[()]
    if isinstance(value, np.floating):
        return float(str(value))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(plain(item) for item in value)
    return value


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def finite(values: tuple[float, ...]) -> tuple[float, ...]:
    """Refuse numbers that are not finite."""
    if not all(math.isfinite(value) for value in values):
        raise ValueError("finite numbers are needed")
    return values
