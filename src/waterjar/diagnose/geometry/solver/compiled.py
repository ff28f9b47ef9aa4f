"""How the kernels of this package are compiled: without the interpreter's lock, kept on disk, with a word to who waits.

`inner`, `inlined` and `allocating` are for functions that other kernels call, `entry` for those that Python calls.
Only entries are kept on disk: they contain all they call. Numba would look at the time stamp of the entry's own file
and miss a change in another one; here the key holds a digest of every kernel file, so that what runs is always what
stands in the sources.

No `fastmath`. A process may hold several compilations of an inner function (its own, one in each entry, one from the
disk), and which of them runs depends on what was loaded first: where sums may be reordered, so do the last bits. The
arithmetic is therefore as written, loops are written so that they can be vectorised (element by element, no sums along
them), and `fma` says where a product is added without rounding in between.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba import types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic
from rich.console import Console

Function = TypeVar("Function", bound=Callable[..., Any])

U: Any = np.uint64
"""Indices that cannot be negative: numba tests all others for it, and does not vectorise loops with them."""
_jit: Any = functools.partial(numba.njit, nogil=True, error_model="numpy")


if TYPE_CHECKING:

    def fma(a: float, b: float, c: float) -> float:
        """A * b + c, rounded once. For compiled code only."""
        ...

    def fma32(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
        """The same in single precision."""
        ...

else:

    @intrinsic
    def fma(_context, a, b, c):
        """A * b + c, rounded once. For compiled code only."""
        return types.float64(*[types.float64] * 3), lambda _target, builder, _signature, given: builder.fma(*given)

    @intrinsic
    def fma32(_context, a, b, c):
        """The same in single precision."""
        return types.float32(*[types.float32] * 3), lambda _target, builder, _signature, given: builder.fma(*given)


def inner(function: Function) -> Function:
    """Compile a function that only kernels call and that allocates nothing: references are then not counted.

    Numba counts those to every array of a tuple at every call: in the smallest problems that took most of the time.
    """
    return cast("Function", _jit(_nrt=False)(function))


def inlined(function: Function) -> Function:
    """The same for one that is called often and from few places: handing over its arrays would take longer than it."""
    return cast("Function", _jit(_nrt=False, forceinline=True)(function))


def allocating(function: Function) -> Function:
    """Compile a function that only kernels call and that makes arrays."""
    return cast("Function", _jit()(function))


def entry(function: Function) -> Function:
    """Compile a function that Python calls, when it is first called, unless the disk has it."""
    dispatcher = _jit()(function)
    dispatcher._cache = _KeyedCache(function)  # type: ignore[no-untyped-call]
    return cast("Function", dispatcher)


@functools.cache
def _digest() -> str:
    """Of all kernel files, in the order of their names."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


@functools.cache
def _say_once() -> None:
    """Compiling takes seconds in which nothing seems to happen."""
    Console(stderr=True).print("compiling the kernels of manifold geometry: once, about a minute", style="dim")


class _KeyedCache(FunctionCache):
    """Numba's cache on disk, keyed also by what the kernel files say."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _digest())  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            _say_once()
        return found
