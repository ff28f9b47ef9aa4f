"""Any array goes in: numpy, torch (with or without grad, on any device), jax, lists. None is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, brief

Array = NDArray[Any]

_STORABLE = "fiub"


@contextmanager
def fitting(name: str) -> Iterator[None]:
    """Around what takes memory for values of this name: where there is not enough, the error says for which."""
    try:
        yield
    except MemoryError as error:
        raise WaterjarError(f"{name} does not fit into memory: {error or 'it is too large'}") from error


def to_numpy(value: object, name: str) -> Array:
    """Turn what a training loop has at hand into a numpy array of numbers.

    bfloat16, which no file format of the field stores, becomes float32 (exact). Nothing else is cast.

    >>> to_numpy([1, 2.5], "loss")
    array([1. , 2.5])
    """
    given: Any = value
    try:
        if isinstance(given, np.ma.MaskedArray):
            raise ValueError("a masked array: log waterjar.masked(values, where, reason), which says why")
        if hasattr(given, "detach"):  # torch; .numpy() refuses bfloat16 and the wish for a gradient
            tensor = given.detach()
            given = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).cpu().numpy()
        elif isinstance(given, list | tuple):
            given = [to_numpy(item, name) for item in given]
        with fitting(name):
            array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise WaterjarError(
            f"{name} = {brief(repr(value))} is not an array of numbers ({type(value).__name__}: {error})"
        ) from error
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind not in _STORABLE or array.dtype.itemsize > 8:
        raise WaterjarError(
            f"{name} has dtype {array.dtype}; numbers of at most 64 bits (float, int, bool) can be recorded"
        )
    return array


def cast(array: Array, dtype: str, name: str) -> Array:
    """Cast to the storage dtype; a finite number that would become infinite is an error, not an inf.

    >>> cast(np.array([70000.0]), "float16", "features")
    Traceback (most recent call last):
    ...
    waterjar.errors.WaterjarError: features holds 70000.0, too large for float16: choose a wider storage dtype
    """
    target = array.dtype if dtype == "keep" else np.dtype(dtype)
    with np.errstate(over="ignore"):
        stored = np.asarray(array, dtype=target.newbyteorder("<"), order="C")
    if target.kind == "f" and array.dtype.kind == "f" and target.itemsize < array.dtype.itemsize:
        lost = np.isinf(stored) & np.isfinite(array)
        if lost.any():
            raise WaterjarError(
                f"{name} holds {array[lost].flat[0]}, too large for {target.name}: choose a wider storage dtype"
            )
    return stored
