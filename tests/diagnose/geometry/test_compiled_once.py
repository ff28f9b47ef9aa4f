"""A kernel's parts are compiled once for their types, and become machine code in the entry alone."""

from __future__ import annotations

from typing import Any

import numba.core.event as events
import numpy as np
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary

from waterjar.diagnose.geometry.solver.compiled import _PartLibrary, allocating, entry, inlined, inner


@inlined
def _twice(x: Any, k: int) -> Any:
    return x[k] * 2.0


@inner
def _sum(x: Any, k: int) -> float:
    total = 0.0
    for i in range(k, x.size):
        total += _twice(x, i)
    return total + _twice(x, 0)


@allocating
def _room(n: int) -> Any:
    return np.zeros(n)


@entry
def _kernel(x: Any) -> float:
    k = 0  # at first a literal
    for _ in range(2):
        k += 1
    room = _room(3)
    room[0] = _sum(x, 1)
    return float(_sum(x, k) + _sum(x, 0) + room.sum())


class Compiled(events.Listener):  # type: ignore[misc]
    """Which functions were compiled, one after the other."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: Any) -> None:
        """Its name."""
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        """Nothing."""


def test_parts_are_compiled_once_and_not_by_themselves() -> None:
    kernel: Any = _kernel
    kernel._cache = NullCache()  # type: ignore[no-untyped-call]
    heard = Compiled()
    with events.install_listener("numba:compile", heard):
        found = kernel(np.arange(4.0))
    assert found == 10.0 + 12.0 + 12.0  # 2 (2 + 3) + 0, 2 (0 + 1 + 2 + 3), 2 (1 + 2 + 3)
    ours = [name for name in heard.names if name in ("_twice", "_sum", "_room", "_kernel")]
    assert sorted(ours) == ["_kernel", "_room", "_sum", "_twice"]
    for part in (_twice, _sum, _room):
        dispatcher: Any = part
        (signature,) = dispatcher.signatures
        library = dispatcher.overloads[signature].library
        assert isinstance(library, _PartLibrary) and library.get_pointer_to_function("any") == 0
    whole = kernel.overloads[kernel.signatures[0]].library
    assert isinstance(whole, JITCodeLibrary) and not isinstance(whole, _PartLibrary)
    left = [function.name for function in whole.get_defined_functions()]
    assert not any("_twice" in name for name in left) and any("_sum" in name for name in left)
