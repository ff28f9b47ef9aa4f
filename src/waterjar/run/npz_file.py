"""Arrays of an .npz file that may be a stranger's: what unpacks to more than the file accounts for is not unpacked."""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

FAULTS = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    SyntaxError,
    MemoryError,
    RuntimeError,  # an encrypted member; NotImplementedError (a compression that zipfile lacks), RecursionError
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)
"""What NumPy and zipfile raise over files that are not what they say."""

LARGEST = 2**28
RATIO = 100
"""An archive unpacks to 256 MiB at most, or to a hundred times its own size."""


def read_npz(file: IO[bytes], only: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an archive by name, or `only` some; one of FAULTS where it is none of plain arrays. No pickles."""
    size = file.seek(0, 2)
    most = max(LARGEST, RATIO * size)
    found: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if only is not None and name not in only:
                continue
            most -= member.file_size
            if most < 0:
                raise ValueError(f"{name} would unpack to more than {RATIO} times the size of the file")
            with archive.open(member) as stored:
                found[name] = _read(stored, member.file_size, name)
    return found


def names_in_npz(file: IO[bytes]) -> list[str]:
    """The names of all arrays of an archive."""
    with zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _read(stored: IO[bytes], size: int, name: str) -> NDArray[Any]:
    """One array, if it has the bytes that its header calls for: memory is taken for those that are there."""
    header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(npy.read_magic(stored))
    if header is None:
        raise ValueError(f"{name} has another version of the .npy format than 1.0 and 2.0")
    shape, in_fortran_order, dtype = header(stored)
    if dtype.hasobject or not dtype.itemsize or dtype.names is not None:
        raise ValueError(f"{name} holds {dtype}, not plain numbers or text")
    if math.prod(shape) * dtype.itemsize != size - stored.tell():
        raise ValueError(f"{name} is {shape} {dtype} by its header, and has {size - stored.tell()} bytes")
    data = bytearray(size - stored.tell())
    view = memoryview(data)
    while view and (count := stored.readinto(view)):  # type: ignore[attr-defined]
        view = view[count:]
    if view or stored.read(1):
        raise ValueError(f"{name} does not have the bytes that the archive says")
    values = np.frombuffer(data, dtype)
    return values.reshape(shape[::-1]).T if in_fortran_order else values.reshape(shape)
