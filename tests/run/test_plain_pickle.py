"""The reader of plain pickles: what it reads, and what it refuses by name without running or allocating it."""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from waterjar.errors import WaterjarError
from waterjar.run.plain_pickle import dump_plain, load_plain, read_plain_pickle

PLAIN = {"data": np.arange(12, dtype=np.uint8).reshape(3, 4), "labels": [1, 2], "more": {"a": (None, 1.5, "x")}}
ARRAYS = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    np.arange(4, dtype=">f4"),
    np.array([True, False]),
    np.array(["a", "bcd\u00fc"]),
    np.array([b"x", b"yz"]),
    np.array(3.5),
    np.zeros((0, 4), np.float16),
    np.array([1 + 2j]),
]


def same(a: Any, b: Any) -> bool:
    """Equal, of the same types, bit by bit; NaN equals NaN."""
    if isinstance(a, np.ndarray):
        little = [x.astype(x.dtype.newbyteorder("<")) for x in (a, b)]
        return a.shape == b.shape and a.dtype.newbyteorder("<") == b.dtype.newbyteorder("<") and (
            little[0].tobytes() == little[1].tobytes()
        )  # fmt: skip
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or repr(a) == repr(b) == "nan")


class TestReading:
    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_containers_and_arrays_of_every_protocol(self, protocol: int) -> None:
        value = {**PLAIN, "arrays": ARRAYS, "text": "ü", "raw": b"\xff\x00", "none": b"", "key": {(1, "x"): True}}
        assert same(load_plain(pickle.dumps(value, protocol=protocol), "here"), value)
        if protocol > 3:  # before, a set is a call
            assert load_plain(pickle.dumps([{1, 2}, frozenset("a")], protocol=protocol), "here") == [{1, 2}, {"a"}]

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_numbers_of_numpy(self, protocol: int) -> None:
        found = load_plain(pickle.dumps([np.float64(0.1), np.int32(-3), np.bool_(True)], protocol=protocol), "here")
        assert same(found, [np.float64(0.1), np.int32(-3), np.bool_(True)])

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_a_file_that_is_all_array(self, protocol: int) -> None:
        array = np.arange(10**5) % 128  # below 128, protocol 2 takes one byte for one
        value = load_plain(pickle.dumps(array.astype(np.uint8), protocol=protocol), "here")
        assert same(value, array.astype(np.uint8))

    def test_both_names_of_numpys_core(self) -> None:
        new = pickle.dumps(np.arange(3.0), protocol=3)
        assert b"numpy._core.multiarray" in new
        old = new.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
        assert same(load_plain(new, "here"), np.arange(3.0)) and same(load_plain(old, "here"), np.arange(3.0))

    def test_python_2_wrote_bytes_as_text(self) -> None:
        program = b"\x80\x02}U\x06labels](K\x01I2\nL3L\nI01\nF0.5\ne."
        assert read_plain_pickle(
            program.replace(b"U\x06labels]", b"U\x06labelsq\x01]").replace(b"e.", b"es."), "h"
        ) == {"labels": [1, 2, 3, True, 0.5]}
        state = b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffK\x00K\x00tb"
        array = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R" + state
        assert same(load_plain(array + b"\x89U\x02\xff\x01tb.", "here"), np.array([255, 1], np.uint8))

    def test_an_array_that_is_met_twice_is_one(self) -> None:
        array = np.arange(3)
        found = load_plain(pickle.dumps([array, array, [array]]), "here")
        assert found[0] is found[1] is found[2][0]  # type: ignore[index]

    def test_keys_of_bytes_become_text(self) -> None:
        assert read_plain_pickle(pickle.dumps({b"fine_labels": [1]}), "here") == {"fine_labels": [1]}
        with pytest.raises(WaterjarError, match="here has the key '1' twice"):
            read_plain_pickle(pickle.dumps({"1": 1, 1: 2}), "here")

    def test_what_is_no_dictionary_is_refused(self) -> None:
        with pytest.raises(WaterjarError, match="here holds a list, not a dictionary"):
            read_plain_pickle(pickle.dumps([1, 2]), "here")

    def test_other_containers_and_instructions(self) -> None:
        assert load_plain(b"\x80\x02(K\x01K\x02l.", "h") == [1, 2]
        assert load_plain(b"\x80\x02(K\x01K\x02d.", "h") == {1: 2}
        assert load_plain(b"\x80\x04]p5\n0g5\nK\x07a.", "h") == [7]
        assert load_plain(b"\x80\x04(K\x011)r\x00\x00\x01\x000j\x00\x00\x01\x00.", "h") == ()
        assert load_plain(b"\x80\x04(K\x01K\x02\x91.", "h") == frozenset({1, 2})
        assert load_plain(pickle.dumps({(1, "a"): -5, None: 2**70}), "h") == {(1, "a"): -5, None: 2**70}
        assert load_plain(b"\x80\x04T\x01\x00\x00\x00\xfc.", "h") == "ü"


class TestWriting:
    @pytest.mark.filterwarnings("error")
    def test_plain_pickle_load_opens_it(self) -> None:
        value = {**PLAIN, "arrays": ARRAYS[:8], "numbers": [True, None, -1, 2**31, -(2**40), 0.1, float("inf")]}
        data = dump_plain(value)
        assert same(pickle.loads(data), value)  # noqa: S301 - written one line above
        assert same(load_plain(data, "here"), value)
        assert b"numpy._core" not in data  # unknown to numpy before 1.26
        pickletools.dis(data, out=io.StringIO())
        assert dump_plain(value) == data

    @pytest.mark.parametrize("value", [object(), {1, 2}, np.array([None]), np.float64(1), np.zeros(2, "V3"), 2**3000])
    def test_nothing_else_is_written(self, value: object) -> None:
        with pytest.raises(WaterjarError, match="pickle of plain values"):
            dump_plain([value])

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats() | st.text(max_size=5)
            | st_numpy.arrays(
                st_numpy.floating_dtypes(sizes=(16, 32, 64)) | st_numpy.integer_dtypes() | st.just(np.dtype(bool)),
                st_numpy.array_shapes(min_dims=0, min_side=0, max_side=3),
            ),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=8,
        )
    )  # fmt: skip
    @settings(max_examples=150)
    def test_what_is_written_is_read_by_both(self, value: object) -> None:
        data = dump_plain(value)
        assert same(load_plain(data, "here"), value)
        assert same(pickle.loads(data), value)  # noqa: S301


@given(st.data())
@settings(max_examples=400)
def test_whatever_is_done_to_the_bytes_it_is_read_or_one_clear_error(data: st.DataObject) -> None:
    value = {"labels": [1, 2, 3], "n": {"x": (1.5, None)}, "a": np.arange(3.0), "u": np.array(["a", "bc"])}
    contents = bytearray(pickle.dumps(value, protocol=data.draw(st.integers(2, 5))))
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    contents = contents[: data.draw(st.integers(0, len(contents)))]
    try:
        assert isinstance(read_plain_pickle(bytes(contents), "here"), dict)
    except WaterjarError as error:
        assert str(error).startswith("here ")


@given(st.lists(st.integers(0, 255), max_size=60).map(bytes))
@settings(max_examples=300)
def test_any_bytes_at_all(contents: bytes) -> None:
    try:
        load_plain(b"\x80\x04" + contents + b".", "here")
    except WaterjarError as error:
        assert str(error).startswith("here ")
