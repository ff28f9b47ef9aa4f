"""Write plain values as a pickle, instruction by instruction.

The pickle module would write whatever names the installed numpy has for its functions, and numpy 2's are unknown to
numpy before 1.26. numpy.core.multiarray._reconstruct is known to all of them. The same value gives the same bytes.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError

_FOUR_BYTES = 2**32


def dump_plain(value: object) -> bytes:
    """A pickle (protocol 4) of None, bool, int, float, str, lists, tuples, dicts and arrays of numbers or text.

    >>> import pickle, numpy as np
    >>> pickle.loads(dump_plain({"accuracy": np.array([0.5, 1.0])}))
    {'accuracy': array([0.5, 1. ])}
    """
    parts: list[bytes] = [b"\x80\x04"]
    _write(value, parts)
    return b"".join([*parts, b"."])


def _write(value: object, parts: list[bytes]) -> None:
    if value is None:
        parts.append(b"N")
    elif isinstance(value, bool):
        parts.append(b"\x88" if value else b"\x89")
    elif type(value) is int:
        parts.append(_integer(value))
    elif type(value) is float:
        parts.append(b"G" + struct.pack(">d", value))
    elif type(value) is str:
        raw = value.encode("utf-8", "surrogatepass")
        parts.append(b"X" + len(raw).to_bytes(4, "little") + raw)
    elif type(value) is list:
        parts.append(b"](")
        for item in value:
            _write(item, parts)
        parts.append(b"e")
    elif type(value) is tuple:
        parts.append(b"(")
        for item in value:
            _write(item, parts)
        parts.append(b"t")
    elif type(value) is dict:
        parts.append(b"}(")
        for key, item in value.items():
            _write(key, parts)
            _write(item, parts)
        parts.append(b"u")
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUS" and value.dtype.itemsize:
        _write_array(value, parts)
    else:
        about = f"array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise WaterjarError(f"a pickle of plain values holds no {about}: numbers, text, containers, arrays of those")


def _integer(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if len(raw) > 255:
        raise WaterjarError(f"a whole number of {len(raw)} bytes is too large for a pickle of plain values")
    return b"\x8a" + bytes([len(raw)]) + raw


def _write_array(array: NDArray[Any], parts: list[bytes]) -> None:
    kept = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(array.shape)
    made_of: tuple[Any, ...]
    state: tuple[Any, ...]
    _, made_of, state = tuple(kept.dtype.__reduce__())
    sizes = [int(kept.shape[axis]) for axis in range(kept.ndim)]
    data = kept.tobytes()
    parts.append(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01")
    _write(tuple(sizes), parts)
    parts.append(b"cnumpy\ndtype\n")
    _write(made_of, parts)
    parts.append(b"R")
    _write(state, parts)
    parts.append(b"b\x89")  # the dtype is complete; not in Fortran's order
    wide = len(data) >= _FOUR_BYTES
    parts += [b"\x8e" if wide else b"B", len(data).to_bytes(8 if wide else 4, "little"), data, b"tb"]
