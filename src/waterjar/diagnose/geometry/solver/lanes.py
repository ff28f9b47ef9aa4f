"""Four numbers at a time, in compiled code.

The compiler vectorises loops, but not straight code that does the same with four neighbours. A short loop over columns
that wait for nothing but the row before is therefore written with these: `Four` is one register of the machine, or two.
Arithmetic is as written, as everywhere in this package.

    load(array, row, column)      four columns from there on
    store(array, row, column, x)  the same, written
    pack(a, b, c, d), zero()      these, and nothing
    add(r, p, x)                  r p + x, rounded once
    scale(r, p)                   r p
    product(p, q, x)              p q + x, one by one
    lane(p, j)                    one of the four
"""

# ruff: noqa: D103 - the table above says what each does

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 4


class Four:
    """Four float64, in compiled code only."""


if TYPE_CHECKING:

    def load(array: NDArray[np.float64], row: Any, column: Any) -> Four: ...
    def store(array: NDArray[np.float64], row: Any, column: Any, x: Four) -> None: ...
    def pack(a: float, b: float, c: float, d: float) -> Four: ...
    def add(r: float, p: Four, x: Four) -> Four: ...
    def scale(r: float, p: Four) -> Four: ...
    def product(p: Four, q: Four, x: Four) -> Four: ...
    def lane(p: Four, j: int) -> float: ...
    def zero() -> Four: ...

else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, models, register_model

    _VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
    _INDEX = ir.IntType(32)
    _NUMBER = types.float64

    class _FourType(types.Type):
        def __init__(self):
            super().__init__(name="Four")

    _FOUR = _FourType()

    @register_model(_FourType)
    class _FourModel(models.PrimitiveModel):
        def __init__(self, manager, kind):
            super().__init__(manager, kind, _VECTOR)

    def _repeated(builder, number):
        empty = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(empty, number, _INDEX(0))
        return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(_INDEX, WIDTH), [0] * WIDTH))

    def _place(context, builder, signature, given):
        """Where they are. Columns of C-contiguous arrays stand side by side."""
        array = context.make_array(signature.args[0])(context, builder, given[0])
        stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
        begin = builder.bitcast(array.data, ir.IntType(8).as_pointer())
        row = builder.bitcast(builder.gep(begin, [builder.mul(given[1], stride)]), ir.DoubleType().as_pointer())
        return builder.bitcast(builder.gep(row, [given[2]]), _VECTOR.as_pointer())

    def _is_matrix(array):
        return isinstance(array, types.Array) and array.ndim == 2 and array.layout == "C" and array.dtype == _NUMBER

    @intrinsic
    def load(_context, array, row, column):
        def generate(context, builder, signature, given):
            return builder.load(_place(context, builder, signature, given), align=8)

        return (_FOUR(array, types.uint64, types.uint64), generate) if _is_matrix(array) else None

    @intrinsic
    def store(_context, array, row, column, x):
        def generate(context, builder, signature, given):
            builder.store(given[3], _place(context, builder, signature, given), align=8)
            return context.get_dummy_value()

        return (types.void(array, types.uint64, types.uint64, _FOUR), generate) if _is_matrix(array) else None

    @intrinsic
    def pack(_context, a, b, c, d):
        def generate(_target, builder, _signature, given):
            packed = ir.Constant(_VECTOR, ir.Undefined)
            for j, number in enumerate(given):
                packed = builder.insert_element(packed, number, _INDEX(j))
            return packed

        return _FOUR(*[_NUMBER] * WIDTH), generate

    def _fma(builder, p, q, x):
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{WIDTH}f64"), [p, q, x])

    @intrinsic
    def add(_context, r, p, x):
        def generate(_target, builder, _signature, given):
            return _fma(builder, _repeated(builder, given[0]), given[1], given[2])

        return _FOUR(_NUMBER, _FOUR, _FOUR), generate

    @intrinsic
    def product(_context, p, q, x):
        def generate(_target, builder, _signature, given):
            return _fma(builder, *given)

        return _FOUR(_FOUR, _FOUR, _FOUR), generate

    @intrinsic
    def scale(_context, r, p):
        def generate(_target, builder, _signature, given):
            return builder.fmul(_repeated(builder, given[0]), given[1])

        return _FOUR(_NUMBER, _FOUR), generate

    @intrinsic
    def lane(_context, p, j):
        def generate(_target, builder, _signature, given):
            return builder.extract_element(given[0], builder.trunc(given[1], _INDEX))

        return _NUMBER(_FOUR, types.int64), generate

    @intrinsic
    def zero(_context):
        def generate(_target, _builder, _signature, _given):
            return ir.Constant(_VECTOR, [0.0] * WIDTH)

        return _FOUR(), generate
