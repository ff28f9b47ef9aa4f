"""What a metric may declare: its names, words and needs, and what its family has to be able to do."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.schema import GROUPS

if TYPE_CHECKING:
    from waterjar.diagnose.registry import Family, Metric

_TAKEN = ("repeat", "seed", "cell", "cell_id", "scenario", "run", "directory", "step", "snapshot", "layer", "group")
"""Names of dimensions and labels of results."""


def refuse_names(declared: Metric, metrics: Iterable[Metric], families: Collection[str]) -> None:
    """Refuse names that stand for something else already: another metric's numbers must not be written over."""
    own = {declared.name, declared.scalar, *declared.beside}
    for name in sorted(own):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.endswith(("_reason", "_se")):
            raise WaterjarError(
                f"metric '{declared.name}': {name!r}: expected a name of small letters, digits and _, which does not "
                "end in _reason or _se"
            )
        if name in _TAKEN or name in families:
            raise WaterjarError(f"metric '{declared.name}': '{name}' is the name of something else; expected another")
    for other in metrics:
        shared = own & {other.name, other.scalar, *other.beside}
        if other.name != declared.name and other.family == declared.family and shared:
            raise WaterjarError(f"metric '{declared.name}': '{min(shared)}' is of the metric '{other.name}'")


@functools.cache
def _words() -> dict[str, tuple[Any, ...]]:
    """Field of a metric -> the words that it may have, of those that are `Literal`."""
    from waterjar.diagnose.registry import Metric  # noqa: PLC0415 - it imports us

    hints = typing.get_type_hints(Metric)
    return {key: typing.get_args(hint) for key, hint in hints.items() if typing.get_origin(hint) is typing.Literal}


def refuse_words(declared: Metric) -> None:
    """Refuse a word that means nothing, and needs that no run records."""
    where = f"metric '{declared.name}'"
    for key, known in _words().items():
        if getattr(declared, key) not in known:
            raise unknown_name(f"{where}: {key}", getattr(declared, key), known)
    if not declared.needs or not isinstance(declared.needs, tuple):
        raise WaterjarError(
            f"{where}: needs={declared.needs!r}: expected a tuple of what a run must have recorded, such as "
            "('performance/accuracy',)"
        )
    for need in declared.needs:
        shape = re.fullmatch(r"(\w+)(?:/(\w+)|\[.+\])?", str(need))
        group, variable = shape.groups() if shape else (need, None)
        if group not in GROUPS:
            raise unknown_name(f"{where}: needs", need, GROUPS)
        if variable and GROUPS[group] and variable not in GROUPS[group]:
            hint = f"What Recorder(variables=...) declares stands in its group: '{group}'"
            raise unknown_name(f"{where}: needs", need, [f"{group}/{known}" for known in GROUPS[group]], hint)


def refuse_parts(declared: Metric, metrics: Iterable[Metric]) -> None:
    """Refuse to be `made_of` what no metric is, gives or is made of: it would be coupled with nothing."""
    if not declared.made_of:
        return
    others = [one for one in metrics if one.name != declared.name]
    known = {name for one in others for name in (one.name, one.scalar, *one.beside, *one.made_of)}
    for part in declared.made_of:
        if part not in known:
            raise unknown_name(f"metric '{declared.name}': made_of", part, sorted(known))


def refuse_unfit(declared: Metric, family: Family) -> None:
    """Refuse a metric that its family would never compute, or not as it asks."""
    if not isinstance(declared.version, int) or declared.version < 1:
        raise WaterjarError(f"metric '{declared.name}': version={declared.version!r}: expected 1 or a higher number")
    if declared.input not in family.inputs:
        has = ", ".join(kind.__name__ for kind in family.inputs)
        raise WaterjarError(
            f"metric '{declared.name}' reads {declared.input.__name__}, which {family.name} cannot build: it has {has}"
        )
    known = [p.name for p in inspect.signature(family.signature).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for setting in declared.takes:
        if setting not in known:
            raise unknown_name(f"metric '{declared.name}': {family.name}'s setting", setting, known)
    own = family.inputs[declared.input]
    able = dict.fromkeys((*(dim for dims in family.inputs.values() for dim in dims), *family.dims))
    for dims in (declared.dims, *(about.dims for about in declared.beside.values())):
        for place, dim in enumerate(dims):
            if dim not in able:
                raise unknown_name(
                    f"metric '{declared.name}': {family.name}'s dimension", dim, [one for one in able if one not in own]
                )
            if dim in (*own, *dims[:place]):
                raise WaterjarError(
                    f"metric '{declared.name}': dims={dims}: '{dim}' stands there twice: a "
                    f"{declared.input.__name__} has its place along {', '.join(own)}, which are left out"
                )


def reads(name: str, function: Callable[..., Any]) -> tuple[type, tuple[str, ...]]:
    """The type of a metric's first argument, and the names of those by keyword."""
    parameters = list(inspect.signature(function).parameters.values())
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise WaterjarError(f"metric '{name}': the type of its input cannot be looked up: {error}") from None
    takes = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    more = [p.name for p in parameters[1:] if p.kind is not p.KEYWORD_ONLY and p.default is p.empty]
    if more:
        raise WaterjarError(f"metric '{name}': '{more[0]}' is a second argument: expected one input, settings after *")
    first = hints.get(parameters[0].name) if parameters else None
    own = [kind for kind in (typing.get_args(first) or (first,)) if isinstance(kind, type) and kind is not type(None)]
    if not own:
        raise WaterjarError(f"metric '{name}': its first argument has no type, which names the input that it reads")
    return own[-1], takes
