"""Archives of arrays that lie about their size, or are none."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from waterjar.run.npz_file import FAULTS, read_npz


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file


def test_what_numpy_writes_is_read(tmp_path: Path) -> None:
    given = {
        "plain": np.arange(12, dtype=np.uint8).reshape(3, 4),
        "fortran": np.asfortranarray(np.random.default_rng(0).random((3, 4, 5))),
        "text": np.array(["a", "", "ü"]),
        "scalar": np.array(1.5),
        "empty": np.zeros((0, 3)),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **given)
        with (tmp_path / "x.npz").open("rb") as file:
            found = read_npz(file)
            assert read_npz(file, ["text"]).keys() == {"text"}
        assert found.keys() == given.keys()
        for name, values in given.items():
            np.testing.assert_array_equal(found[name], values, strict=True)
            assert found[name].flags.writeable


HEADER = "{'descr': '|u1', 'fortran_order': False, 'shape': (%s,)}"
HOSTILE = {
    "a header of 1e12 bytes": archive({"x.npy": npy(HEADER % 10**12, b"1234")}),
    "a header of 4 bytes less": archive({"x.npy": npy(HEADER % 4, b"12345678")}),
    "a bomb": archive({"x.npy": npy(HEADER % 1_900_000_000, bytes(2**22))}, zipfile.ZIP_DEFLATED),
    "a header that is not one": archive({"x.npy": npy("{'descr': '|u1', 'shape': (((")}),
    "a header of brackets": archive({"x.npy": npy("(" * 117)}),
    "objects": archive({"x.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"x" * 8)}),
    "nothing, often": archive({"x.npy": npy("{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,)}")}),
    "another version": archive({"x.npy": npy(HEADER % 1, b"1", b"\x09\x00")}),
    "no array": archive({"x.npy": b"hello"}),
    "no archive": io.BytesIO(b"PK\x03\x04 hello"),
    "nothing": io.BytesIO(),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_not_what_it_says_is_refused_within_little_memory(what: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FAULTS):
            read_npz(HOSTILE[what])
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_a_real_bomb_is_refused_unread() -> None:
    """1.9 GB of zeros in 1.9 MB, as `np.savez_compressed` makes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made, made.open("x.npy", "w") as member:
        member.write(npy(HEADER % (300 * 2**20)))
        for _ in range(300):
            member.write(bytes(2**20))
    assert file.tell() < 3e6
    with pytest.raises(ValueError, match="would unpack to more than 100 times the size of the file"):
        read_npz(file)


def test_a_compression_that_is_not_known_is_refused() -> None:
    file = archive({"x.npy": npy(HEADER % 4, b"1234")})
    data = bytearray(file.getvalue())
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.index(mark) + offset] = 99
    with pytest.raises(NotImplementedError):
        read_npz(io.BytesIO(bytes(data)))
