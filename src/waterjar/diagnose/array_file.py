"""Arrays in one file that knows whether it is whole: an npz whose comment is the SHA-256 of all before it.

A zip archive alone does not: its CRCs cover the arrays, not the directory that says which arrays there are.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.run.npz_file import FAULTS, read_npz
from waterjar.run.store import read_file

_NO_COMMENT = b"\0\0"
_LARGEST = 2**32
_LENGTH = 64
_COMMENT = _LENGTH.to_bytes(2, "little")
"""How a zip archive ends: the length of its comment in two bytes, and the comment."""


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of such a file; `np.load` reads it, too. Nothing is pickled."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    plain = buffer.getvalue()
    return plain.removesuffix(_NO_COMMENT) + _COMMENT + hashlib.sha256(plain).hexdigest().encode()


def read_whole(file: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays by name; None if there is no such file, or if it is not as it was written, to the bit."""
    try:
        data = read_file(file.parent, file.name, _LARGEST)
    except OSError:
        return None
    plain = data[: -_LENGTH - 2] + _NO_COMMENT
    if data[-_LENGTH - 2 :] != _COMMENT + hashlib.sha256(plain).hexdigest().encode():
        return None
    try:
        return read_npz(io.BytesIO(plain))
    except FAULTS:  # whole, but not of ours: objects, no archive
        return None
