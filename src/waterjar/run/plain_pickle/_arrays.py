"""The names that numpy's pickles are made of, and what stands for them here. None of numpy's own functions is called.

A pickled array is `_reconstruct(ndarray, (0,), b"b")` followed by a state (version, shape, dtype, is_fortran, bytes);
a dtype is `dtype(code, False, True)` followed by one that has its byte order. Both states are read here, so that an
array is never larger than the bytes that are there for it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Refused(Exception):
    """Something that is not admitted, by name."""


class Damaged(Exception):
    """What no pickle of ours, numpy's or Python's says, and why."""


@dataclass(frozen=True)
class Name:
    """An admitted name, which stands for itself: there is nothing behind it."""

    full: str


@dataclass(eq=False)
class Unbuilt:
    """An array (dtype None) or a dtype whose state is still to come."""

    dtype: np.dtype[Any] | None
    keys: list[int] = field(default_factory=list)
    """Where the memo has it."""


NDARRAY = Name("numpy.ndarray")
DTYPE = Name("numpy.dtype")
RECONSTRUCT = Name("numpy.core.multiarray._reconstruct")
SCALAR = Name("numpy.core.multiarray.scalar")
FROMBUFFER = Name("numpy.core.numeric._frombuffer")
ENCODE = Name("_codecs.encode")
BYTES = Name("bytes")

ADMITTED: dict[tuple[str, str], Name] = {
    ("numpy", "ndarray"): NDARRAY,
    ("numpy", "dtype"): DTYPE,
    ("_codecs", "encode"): ENCODE,  # how Python 3 writes bytes in protocol 2
    ("__builtin__", "bytes"): BYTES,  # and bytes of which there are none
    # numpy 1 says numpy.core, numpy 2 says numpy._core
    ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy.core.multiarray", "scalar"): SCALAR,
    ("numpy._core.multiarray", "scalar"): SCALAR,
    ("numpy.core.numeric", "_frombuffer"): FROMBUFFER,
    ("numpy._core.numeric", "_frombuffer"): FROMBUFFER,
}

_CODE = re.compile(r"b1|[iu][1248]|f[248]|c8|c16|[US][1-9][0-9]{0,6}")
_WORDS = {"O": "an array of Python objects", "V": "a structured array", "M": "an array of dates"}
_MOST_DIMENSIONS = 64
_LAST_CODE_POINT = 0x10FFFF


def lookup(module: object, name: object) -> Name:
    """An admitted name; any other is refused, and nothing is imported."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise Damaged(f"a name made of {type(module).__name__} and {type(name).__name__}")
    found = ADMITTED.get((module, name))
    if found is None:
        raise Refused(shown(f"{module}.{name}"))
    return found


def shown(text: str) -> str:
    """A text from a file, short and without control characters.

    >>> shown("os" + chr(27) + ".system")
    'os\\\\x1b.system'
    """
    plain = text.encode("unicode_escape").decode("ascii")
    return plain if len(plain) <= 100 else f"{plain[:97]}..."


def called(function: object, arguments: object) -> object:
    """What an admitted call stands for."""
    if not isinstance(function, Name) or type(arguments) is not tuple:
        raise Damaged(f"a call of a {type(function).__name__} with a {type(arguments).__name__}")
    if function is RECONSTRUCT and len(arguments) == 3 and arguments[0] is NDARRAY and _is_empty_shape(arguments[1]):
        return Unbuilt(None)
    if function is DTYPE and len(arguments) == 3:
        return Unbuilt(_dtype(arguments[0]))
    if function is SCALAR and len(arguments) == 2:
        return array((), arguments[0], False, arguments[1])[()]
    if function is FROMBUFFER and len(arguments) == 4 and _one_of(arguments[3], "C", "F"):
        data, dtype, shape, order = arguments
        return array(shape, dtype, order == "F", data)
    if function is ENCODE and len(arguments) == 2 and _one_of(arguments[1], "latin1"):
        return latin1(arguments[0])
    if function is BYTES and not arguments:
        return b""
    raise Refused(f"a call of {function.full} that no pickled array makes")


def _one_of(value: object, *options: str | int) -> bool:
    """Whether a value is one of these; an array would compare element by element."""
    return type(value) in (str, int) and value in options


def _is_empty_shape(shape: object) -> bool:
    return type(shape) is tuple and len(shape) == 1 and _one_of(shape[0], 0)


def built(started: object, state: object) -> NDArray[Any] | np.dtype[Any]:
    """The array or dtype that a state completes."""
    if not isinstance(started, Unbuilt) or type(state) is not tuple:
        raise Refused(f"a state for a {type(started).__name__}")
    if started.dtype is None:
        if len(state) != 5 or not _one_of(state[0], 1):
            raise Damaged("the state of an array is not (1, shape, dtype, is_fortran, bytes)")
        return array(state[1], state[2], state[3] is True or _one_of(state[3], 1), state[4])
    if len(state) not in (8, 9) or not _one_of(state[0], 3, 4) or not _one_of(state[1], "<", ">", "|", "="):
        raise Damaged("the state of a dtype is not (3, byte order, None, None, None, size, alignment, flags)")
    if any(part is not None for part in (*state[2:5], *state[8:])):
        raise Refused("a dtype with fields or sub-arrays")
    if not _one_of(state[5], -1, started.dtype.itemsize):
        raise Damaged(f"a dtype {started.dtype.str} of another size than its own")
    return started.dtype.newbyteorder(state[1])


def _dtype(code: object) -> np.dtype[Any]:
    if not isinstance(code, str):
        raise Refused(f"a dtype made of a {type(code).__name__}")
    if not _CODE.fullmatch(code):
        word = _WORDS.get(code[:1], "an array")
        raise Refused(f"{word} (dtype '{shown(code)}'), which holds no numbers or text")
    return np.dtype(code)


def array(shape: object, dtype: object, is_fortran: bool, data: object) -> NDArray[Any]:
    """The array in `data`, not copied, and only if the bytes are exactly as many as its shape says."""
    if not isinstance(dtype, np.dtype):
        raise Damaged(f"an array whose dtype is a {type(dtype).__name__}")
    if type(shape) is not tuple or len(shape) > _MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise Damaged("an array whose shape is not a tuple of whole numbers")
    if isinstance(data, list):
        raise Refused("an array of Python objects")
    held = latin1(data) if isinstance(data, str) else data
    if not isinstance(held, bytes):
        raise Damaged(f"an array whose bytes are a {type(data).__name__}")
    needed = math.prod(shape) * dtype.itemsize
    if needed != len(held):
        raise Damaged(f"an array of shape {shown(str(shape))} and dtype {dtype.str} in {len(held)} bytes")
    try:
        flat = np.frombuffer(held, dtype) if held else np.empty(0, dtype)
        found = flat.reshape(shape, order="F" if is_fortran else "C")
    except ValueError as error:
        raise Damaged(f"an array of shape {shown(str(shape))}: {error}") from None
    if dtype.kind == "b" and held and np.frombuffer(held, np.uint8).max() > 1:
        raise Damaged("an array of bool that holds neither True nor False")
    if dtype.kind == "U" and held:
        points = np.frombuffer(held, np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if points.max() > _LAST_CODE_POINT:
            raise Damaged("an array of text that is not Unicode")
    return found


def latin1(text: object) -> bytes:
    """Bytes that a pickle holds as text."""
    try:
        return text.encode("latin1")  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, UnicodeEncodeError):
        raise Damaged(f"bytes that are a {type(text).__name__}, not latin-1") from None
