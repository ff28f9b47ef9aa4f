"""What stands here for the names that numpy's pickles are made of. None of numpy's own functions is found or called.

A pickled array is `_reconstruct(ndarray, (0,), b"b")` followed by a state (version, shape, dtype, is_fortran, bytes);
a dtype is `dtype(code, False, True)` followed by one that has its byte order. Both states are read here, so that an
array is never larger than the bytes that are there for it.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Refused(Exception):
    """Something that is not admitted, by name."""


class Damaged(Exception):
    """What no pickle of ours, numpy's or Python's says, and why."""


class Budget:
    """Bytes that arrays may still take: made again and again of the same ones, a small file would fill the memory."""

    def __init__(self, size: int) -> None:
        self._left = 2 * size  # in a plain file no byte is in two arrays; protocol 2 makes them twice

    def spend(self, count: int) -> None:
        """Count bytes of an array."""
        self._left -= count
        if self._left < 0:
            raise Damaged("its arrays are larger than the file they are in")


class Placeholder:
    """Stands for something of numpy while a file is read. It has no hash, so it is no key of a dictionary."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ()


class Function(Placeholder):
    """An admitted name. It is no class, so no instruction makes an object of it."""

    __slots__ = ("_budget", "name")

    def __init__(self, name: str, budget: Budget) -> None:
        self.name = name
        self._budget = budget

    def __call__(self, *arguments: object) -> object:
        """What the calls stand for that pickled arrays make."""
        match self.name, arguments:
            case "numpy._reconstruct", (Function(name="numpy.ndarray"), (0,), _):
                return Array(self._budget)
            case "numpy.dtype", (code, _, _):
                return DType(code)
            case "numpy.scalar", (dtype, data):
                return array((), dtype, False, data, self._budget)[()]
            case "numpy._frombuffer", (data, dtype, shape, "C" | "F" as order):
                return Array(self._budget, array(shape, dtype, order == "F", data, self._budget))
            case "_codecs.encode", (text, "latin1"):
                return latin1(text, self._budget)
            case "bytes", ():
                return b""
        raise Refused(f"a call of {self.name} that no pickled array makes")

    def __setstate__(self, state: object) -> None:
        raise Refused(f"a state for {self.name}")


class Array(Placeholder):
    """An array, there as soon as it has its state."""

    __slots__ = ("_budget", "built")

    def __init__(self, budget: Budget, built: NDArray[Any] | None = None) -> None:
        self._budget = budget
        self.built = built

    def __setstate__(self, state: object) -> None:
        match state:
            case _ if self.built is not None:
                raise Refused("a second state for an array")
            case (1, shape, dtype, is_fortran, data):
                self.built = array(shape, dtype, is_fortran == 1, data, self._budget)
            case _:
                raise Damaged("the state of an array is not (1, shape, dtype, is_fortran, bytes)")


class DType(Placeholder):
    """A dtype, there as soon as its state has told the byte order."""

    __slots__ = ("_started", "built")

    def __init__(self, code: object) -> None:
        if not isinstance(code, str):
            raise Refused(f"a dtype made of a {type(code).__name__}")
        if not _CODE.fullmatch(code):
            word = _WORDS.get(code[:1], "an array")
            raise Refused(f"{word} (dtype '{shown(code)}'), which holds no numbers or text")
        self._started = np.dtype(code)
        self.built: np.dtype[Any] | None = None

    def __setstate__(self, state: object) -> None:
        match state:
            case (3 | 4, "<" | ">" | "|" | "=" as order, *parts, size, _, _) if len(parts) == 3:
                pass
            case (4, "<" | ">" | "|" | "=" as order, *parts, size, _, _, None) if len(parts) == 3:
                pass
            case _:
                raise Damaged("the state of a dtype is not (3, byte order, None, None, None, size, alignment, flags)")
        if any(part is not None for part in parts):
            raise Refused("a dtype with fields or sub-arrays")
        if size not in (-1, self._started.itemsize):
            raise Damaged(f"a dtype {self._started.str} of another size than its own")
        self.built = self._started.newbyteorder(order)


# numpy 1 says numpy.core, numpy 2 says numpy._core
_CORE = {("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer")}
_ADMITTED = {
    ("numpy", "ndarray"): "numpy.ndarray",
    ("numpy", "dtype"): "numpy.dtype",
    ("_codecs", "encode"): "_codecs.encode",  # how Python 3 writes bytes in protocol 2
    ("__builtin__", "bytes"): "bytes",  # and bytes of which there are none
    **{(f"numpy.{core}.{module}", name): f"numpy.{name}" for core in ("core", "_core") for module, name in _CORE},
}

_CODE = re.compile(r"b1|[iu][1248]|f[248]|c8|c16|[US][1-9][0-9]{0,6}")
_WORDS = {"O": "an array of Python objects", "V": "a structured array", "M": "an array of dates"}
_MOST_DIMENSIONS = 64
_LAST_CODE_POINT = 0x10FFFF


def admitted(module: str, name: str) -> str:
    """An admitted name, whichever numpy wrote it; any other is refused, and nothing is imported."""
    if (module, name) not in _ADMITTED:
        raise Refused(shown(f"{module}.{name}"))
    return _ADMITTED[module, name]


def shown(text: str) -> str:
    """A text from a file, short and without control characters.

    >>> shown("os" + chr(27) + ".system")
    'os\\\\x1b.system'
    """
    plain = text.encode("unicode_escape").decode("ascii")
    return plain if len(plain) <= 100 else f"{plain[:97]}..."


def array(shape: object, dtype: object, is_fortran: bool, data: object, budget: Budget) -> NDArray[Any]:
    """The array in `data`, not copied, read-only, and only if the bytes are exactly as many as its shape says."""
    if not isinstance(dtype, DType) or dtype.built is None:
        raise Damaged(f"an array whose dtype is a {type(dtype).__name__} without a state")
    if type(shape) is not tuple or len(shape) > _MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise Damaged("an array whose shape is not a tuple of whole numbers")
    if isinstance(data, list):
        raise Refused("an array of Python objects")
    held = latin1(data, budget) if isinstance(data, str) else data
    if not isinstance(held, bytes | bytearray):
        raise Damaged(f"an array whose bytes are a {type(data).__name__}")
    kind = dtype.built
    if math.prod(shape) * kind.itemsize != len(held):
        raise Damaged(f"an array of shape {shown(str(shape))} and dtype {kind.str} in {len(held)} bytes")
    budget.spend(len(held) if held is data else 0)
    try:
        flat = np.frombuffer(held, kind) if held else np.empty(0, kind)
        found = flat.reshape(shape, order="F" if is_fortran else "C")
    except ValueError as error:
        raise Damaged(f"an array of shape {shown(str(shape))}: {error}") from None
    found.flags.writeable = False
    if kind.kind == "b" and held and np.frombuffer(held, np.uint8).max() > 1:
        raise Damaged("an array of bool that holds neither True nor False")
    if kind.kind == "U" and held:
        points = np.frombuffer(held, np.dtype(np.uint32).newbyteorder(kind.byteorder))
        if points.max() > _LAST_CODE_POINT:
            raise Damaged("an array of text that is not Unicode")
    return found


def latin1(text: object, budget: Budget) -> bytes:
    """Bytes that a pickle holds as text."""
    if not isinstance(text, str):
        raise Damaged(f"bytes that are a {type(text).__name__}, not text")
    budget.spend(len(text))
    try:
        return text.encode("latin1")
    except UnicodeEncodeError:
        raise Damaged("bytes as text that is not latin-1") from None
