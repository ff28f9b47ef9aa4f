"""Calling a metric: what it is given is read-only, and what goes wrong in it is one error that names it.

All metrics of a family get the same inputs. Were one of them to write into its own, the others would measure what it
wrote, and their numbers would be kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.run.shelf import PartError, blamed

if TYPE_CHECKING:
    from waterjar.diagnose.registry import Metric

T = TypeVar("T")
_CHANGES = "it changes its input, which other metrics get, too"


class worked_out(functools.cached_property[T]):
    """What several metrics need of an input, computed when one first asks for it; nobody writes into it, nor that one.

    >>> class Input:
    ...     @worked_out
    ...     def squares(self):
    ...         return np.arange(3) ** 2
    >>> Input().squares.flags.writeable
    False
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        def locked(given: Any) -> T:
            made = function(given)
            Lock().close(made)
            return made

        super().__init__(functools.update_wrapper(locked, function))


class Lock:
    """Keeps arrays of inputs from being written to, also those worked out of them later, and watches what holds them.

    It goes into dataclasses, tuples, lists and mappings, however deep: everything else (a reader of files, say) is not
    an input's own. Only the arrays handed out are locked; what a family has under them, a buffer, stays its own.
    """

    def __init__(self) -> None:
        self._fields: list[tuple[dict[str, Any], int]] = []
        """What dataclasses hold, and how much: more may come, of cached properties."""
        self._parts: list[tuple[Any, list[int]]] = []
        """Lists and mappings, and the ids of what is in them."""
        self._seen: set[int] = set()

    def check(self) -> None:
        """Lock what has come since, and refuse what is not what it was: called after each metric."""
        for held, ids in self._parts:
            if _ids(held) != ids:
                raise WaterjarError(_CHANGES)
        for i, (held, count) in enumerate(self._fields):
            if len(held) != count:
                self._fields[i] = held, len(held)
                for new in list(held.values())[count:]:
                    self.close(new)

    def close(self, given: Any) -> None:
        """Nobody writes into an input from now on."""
        sort = _sort(type(given))  # type: ignore[arg-type] # every type is hashable
        if sort == "array":
            given.setflags(write=False)
        elif sort != "" and id(given) not in self._seen:
            self._seen.add(id(given))
            parts = given
            if sort == "dataclass":
                parts = vars(given)
                self._fields.append((parts, len(parts)))
            elif sort != "tuple":
                self._parts.append((given, _ids(given)))
            for part in list(parts.values()) if sort in ("dataclass", "mapping") else parts:
                self.close(part)


@functools.cache
def _sort(kind: type) -> str:
    """What is done with objects of a type; nothing where it is empty."""
    if issubclass(kind, np.ndarray):
        return "array"
    if dataclasses.is_dataclass(kind):
        return "dataclass" if not hasattr(kind, "__slots__") else ""
    return next(
        (name for name, one in {"mapping": Mapping, "tuple": tuple, "list": list}.items() if issubclass(kind, one)), ""
    )


def _ids(held: Any) -> list[int]:
    return list(map(id, held.values() if isinstance(held, Mapping) else held))


def with_settings(metric: Metric, settings: Any) -> Callable[[Any], Any]:
    """The function of a metric that is left when it has the settings that it takes: of an input alone."""
    return functools.partial(metric.compute, **{name: getattr(settings, name) for name in metric.takes})


@contextlib.contextmanager
def named(metric: Metric) -> Iterator[None]:
    """Name the metric that an error comes from: in its words where they are for a person, else in a note on it.

    Of a metric from outside every error is one in words, and names its package, too.
    """
    note = note_of(metric)
    try:
        with blamed(note, metric.origin):
            yield
    except Exception as error:
        error.add_note(note)
        first = error.__cause__ if isinstance(error, PartError) else error
        if isinstance(first, ValueError) and "read-only" in str(first):
            raise _in_words(metric, f"{_CHANGES} ({first})") from first
        if type(error) is not WaterjarError:  # of the others the type says more, as of a run that is damaged
            raise
        raise _in_words(metric, str(error)) from error


def _in_words(metric: Metric, why: str) -> WaterjarError:
    note = note_of(metric)
    made = PartError(f"{note}: {why}") if metric.origin else WaterjarError(f"{note}: {why}")
    made.add_note(note)
    return made


def note_of(metric: Metric) -> str:
    """What stands as a note on every error that comes from a metric."""
    return f"metric '{metric.name}'" + (f" of {metric.origin}" if metric.origin else "")
