"""How the kernels of this package are compiled: without the interpreter's lock, kept on disk, with a word to who waits.

`inner`, `inlined` and `allocating` are for functions that other kernels call, the parts; `entry` is for those that
Python calls. An entry contains all that it calls, and its code is optimised and translated once, as a whole. Numba
would do that with every part by itself, again in every part that calls it, and again in the entry.

Only entries are kept on disk. Numba would look at the time stamp of the entry's own file and miss a change in another
one; here the key holds a digest of every kernel file, so that what runs is always what stands in the sources.

No `fastmath`. A part is compiled into each entry that calls it, and not always in the same way: where sums may be
reordered, their last bits would differ. The arithmetic is therefore as written, loops are written so that they can be
vectorised (element by element, no sums along them); `fma` says where a product is added without rounding in between.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from llvmlite.binding import Linkage  # type: ignore[import-untyped]
from numba import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

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


class _PartLibrary(JITCodeLibrary):
    """The code of a part, linked with that of its own parts, but neither optimised nor translated: its entry is, once.

    Numba would do both at every level of calls, for code that then runs in the entry alone.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0

    @property
    def codegen(self) -> Any:
        """Whom numba asks to set the environment of machine code."""
        return self

    def set_env(self, *_environment: Any) -> None:
        """Nothing to set."""


class _EntryLibrary(JITCodeLibrary):
    """The code of an entry and of all its parts, which nobody else calls: what they do not use is not handed over."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()  # type: ignore[no-untyped-call]


class _Callable(Lower):
    """A function that stays one: inlined wherever it is called, the code would be several times as long."""

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)  # type: ignore[no-untyped-call]
        self.function.attributes.add("noinline")


def _pipeline(library: type[JITCodeLibrary], lower: type[Lower], *, inline: bool = False) -> type[CompilerBase]:
    """Numba's way from Python to machine code, with another end.

    What the pass says could be said to `njit`, but there it would make another set of flags, and numba keeps what it
    has found out of arrays for each set by itself.
    """

    @register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
    class Lowering(NativeLowering):
        _name = f"{library.__name__}, {'inlined' if inline else lower.__name__}"
        lowering_class = lower

        def run_pass(self, state: Any) -> Any:
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            state.flags.forceinline, state.flags.no_cfunc_wrapper = inline, True
            state.flags.no_cpython_wrapper = library is _PartLibrary
            return super().run_pass(state)  # type: ignore[no-untyped-call]

    class Pipeline(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
            passes.passes = [(Lowering if one is NativeLowering else one, why) for one, why in passes.passes]
            passes.finalize()
            return [passes]

    return Pipeline


_ENTRY = _pipeline(_EntryLibrary, Lower)
_CALLED, _INLINED = _pipeline(_PartLibrary, _Callable), _pipeline(_PartLibrary, Lower, inline=True)


def _part(function: Function, pipeline: type[CompilerBase], **options: bool) -> Function:
    """Compile a function that only kernels call, for types alone: numba would do it again for every 0 and False."""
    part = _jit(pipeline_class=pipeline, **options)(function)
    template = part.get_call_template
    part.get_call_template = lambda given, named: template(tuple(map(types.unliteral, given)), named)
    return cast("Function", part)


def inner(function: Function) -> Function:
    """Compile a function that only kernels call and that allocates nothing: references are then not counted.

    Numba counts those to every array of a tuple at every call: in the smallest problems that took most of the time.
    """
    return _part(function, _CALLED, _nrt=False)


def inlined(function: Function) -> Function:
    """The same for one that is called often and from few places: handing over its arrays would take longer than it."""
    return _part(function, _INLINED, _nrt=False)


def allocating(function: Function) -> Function:
    """Compile a function that only kernels call and that makes arrays."""
    return _part(function, _CALLED)


def entry(function: Function) -> Function:
    """Compile a function that Python calls, when it is first called, unless the disk has it."""
    dispatcher = _jit(pipeline_class=_ENTRY)(function)
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
    # Not by rich: its import draws from Python's global generator, and this may be the middle of somebody's training.
    print("compiling the kernels of manifold geometry: once, some 20 seconds", file=sys.stderr)


class _KeyedCache(FunctionCache):
    """Numba's cache on disk, keyed also by what the kernel files say."""

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _digest())  # type: ignore[no-untyped-call]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            _say_once()
        return found
