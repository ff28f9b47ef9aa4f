"""Pickles that are after something else than our numbers, one by one: refused by name, nothing run or allocated."""

from __future__ import annotations

import os
import pickle
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from waterjar.errors import WaterjarError
from waterjar.run.plain_pickle import load_plain

PLAIN = {"data": np.arange(12, dtype=np.uint8).reshape(3, 4), "labels": [1, 2], "more": {"a": (None, 1.5, "x")}}


def refusal(contents: bytes) -> str:
    with pytest.raises(WaterjarError) as error:
        load_plain(contents, "here")
    assert str(error.value).startswith("here ")
    return str(error.value)


class Hostile:
    def __init__(self, call: object, *arguments: object) -> None:
        self.made_of = (call, arguments)

    def __reduce__(self) -> Any:
        return self.made_of


def array_program(
    *, shape: bytes = b"K\x02\x85", dtype: bytes = b"", data: bytes = b"C\x02ab", order: bytes = b"\x89"
) -> bytes:
    """An array of two bytes, instruction by instruction, with parts to be exchanged."""
    dtype = (
        dtype
        or b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffK\x00K\x00tb"
    )
    start = b"\x80\x04cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
    return start + shape + dtype + order + data + b"tb."


def dtype_program(code: str, state: bytes) -> bytes:
    return b"cnumpy\ndtype\nX" + struct.pack("<I", len(code)) + code.encode() + b"\x89\x88\x87R(" + state + b"tb"


class TestHostile:
    """One by one. `Damaged` and `Refused` are raised before anything is imported, called or allocated."""

    def test_the_arrays_that_the_others_are_made_from(self) -> None:
        assert load_plain(array_program(), "here").tolist() == [97, 98]  # type: ignore[attr-defined]

    @pytest.mark.parametrize("protocol", range(6))
    def test_os_system(self, tmp_path: Path, protocol: int) -> None:
        victim = tmp_path / "victim"
        for contents in (Hostile(os.system, f"touch {victim}"), {1: [Hostile(os.system, f"touch {victim}")]}):
            assert "asks for posix.system" in refusal(pickle.dumps(contents, protocol=protocol))
        assert not victim.exists()

    @pytest.mark.parametrize("protocol", range(6))
    def test_builtins_eval(self, tmp_path: Path, protocol: int) -> None:
        victim = tmp_path / "victim"
        said = refusal(pickle.dumps([Hostile(eval, f"open({str(victim)!r}, 'w')")], protocol=protocol))
        assert "asks for builtins.eval" in said or "asks for __builtin__.eval" in said
        assert not victim.exists()

    @pytest.mark.parametrize(
        ("call", "name"),
        [
            ((getattr, "text", "upper"), "builtins.getattr"),
            ((np.load, "x"), "numpy.load"),
            ((Path, "x"), "pathlib"),
            ((exec, "1"), "builtins.exec"),
            ((np.frombuffer, b"x"), "frombuffer"),
        ],
    )
    def test_other_calls(self, call: tuple[Any, ...], name: str) -> None:
        assert name in refusal(pickle.dumps(Hostile(*call)))

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_numpy_object_arrays(self, protocol: int) -> None:
        said = refusal(pickle.dumps({"a": np.array([1, "x", None], object)}, protocol=protocol))
        assert "an array of Python objects (dtype 'O8')" in said

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    @pytest.mark.parametrize("dtype", ["V8", "M8[s]", "i4,f8", "2f4"])
    def test_arrays_of_other_things(self, protocol: int, dtype: str) -> None:
        array = np.zeros(2, dtype) if dtype != "2f4" else np.zeros(2, np.dtype([("a", "f4", 2)]))
        assert "asks for" in refusal(pickle.dumps(array, protocol=protocol))

    @pytest.mark.parametrize(
        "program",
        [
            b"\x80\x04\x8e\x00\x00\x00\x00\x00\x01\x00\x00x.",  # bytes, a tebibyte
            b"\x80\x04\x96\x00\x00\x00\x00\x00\x01\x00\x00x.",
            b"\x80\x04\x8d\x00\x00\x00\x00\x00\x01\x00\x00x.",
            b"\x80\x04B\xff\xff\xff\xffx.",
            b"\x80\x04X\xff\xff\xff\xffx.",
            b"\x80\x04T\xff\xff\xff\x7fx.",
            b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x01\x00N.",  # a frame
            b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",  # a whole number
            array_program(shape=b"J\x00\x00\x00\x40\x85"),
            array_program(shape=b"\x8a\x06\x00\x00\x00\x00\x00\x01\x85"),
            b"\x80\x04cnumpy\nndarray\n\x8a\x06\x00\x00\x00\x00\x00\x01\x85\x85R.",
            b"\x80\x04cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nJ\x00\x00\x00\x40\x85C\x01b\x87R.",
            array_program(dtype=dtype_program("S9999999", b"K\x03X\x01\x00\x00\x00|NNNJ\x7f\x96\x98\x00K\x01K\x00")),
        ],
    )
    def test_a_huge_allocation(self, program: bytes) -> None:
        tracemalloc.start()
        try:
            refusal(program)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 200_000

    def test_a_number_for_the_memo_that_is_huge(self) -> None:
        tracemalloc.start()
        try:
            assert "after only 0 others" in refusal(b"\x80\x04Nr\xff\xff\xff\x7f.")
            assert "after only 0 others" in refusal(b"\x80\x04Np99999999999999999999\n.")
            assert tracemalloc.get_traced_memory()[1] < 100_000
        finally:
            tracemalloc.stop()

    def test_many_arrays_of_the_same_bytes(self) -> None:
        data = b"B" + struct.pack("<I", 10**6) + bytes(10**6) + b"\x940"
        dtype = dtype_program("u1", b"K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffK\x00K\x00") + b"\x940"
        head = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
        one = head + b"(K\x01J\x40\x42\x0f\x00\x85h\x01\x89h\x00tb"
        assert load_plain(b"\x80\x04" + data + dtype + one + b".", "here").shape == (10**6,)  # type: ignore[attr-defined]
        assert "its arrays are larger than the file" in refusal(b"\x80\x04" + data + dtype + b"(" + one * 50 + b"l.")
        text = b"T" + struct.pack("<I", 10**6) + bytes(10**6) + b"\x940"
        call = b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"
        assert "its arrays are larger than the file" in refusal(b"\x80\x04" + text + b"(" + call * 50 + b"l.")

    @pytest.mark.parametrize("protocol", [2, 4, 5])
    def test_truncation_at_every_byte(self, protocol: int) -> None:
        whole = pickle.dumps(PLAIN, protocol=protocol)
        for end in range(len(whole)):
            refusal(whole[:end])
        assert "bytes stand behind its end" in refusal(whole + b"x")

    @pytest.mark.parametrize("depth", [101, 10_000, 50_000])
    @pytest.mark.parametrize(
        ("opening", "closing"),
        [(b"]", b"a"), (b"", b"\x85"), (b"(", b"t"), (b"(", b"l"), (b"}K\x01", b"s")],
    )
    def test_nested_deep(self, depth: int, opening: bytes, closing: bytes) -> None:
        said = refusal(b"\x80\x04" + opening * depth + b"N" + closing * depth + b".")
        assert "nested more than 100 levels deep" in said

    def test_nested_not_too_deep(self) -> None:
        load_plain(b"\x80\x04" + b"]" * 100 + b"a" * 99 + b".", "here")

    def test_references_that_unfold_exponentially(self) -> None:
        bomb = b"\x80\x04N" + b"\x94" + b"".join(b"0(h%ch%cl\x94" % (i, i) for i in range(60)) + b"."
        start = time.perf_counter()
        assert "unfold to more than" in refusal(bomb)
        keys = b"\x80\x04N\x94" + b"".join(b"0h%ch%c\x86\x94" % (i, i) for i in range(60)) + b"0}h\x3cK\x01s."
        assert "a key that holds a tuple" in refusal(keys)  # its hash would take 2**60 steps
        assert time.perf_counter() - start < 1

    def test_what_contains_itself(self) -> None:
        for program in (b"\x80\x04]\x94h\x00a.", b"\x80\x04]\x94h\x00\x85a.", b"\x80\x04}\x94K\x01h\x00s."):
            assert "contains itself" in refusal(program)

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("numpy", "ndarray.dumps"),
            ("numpy.core.multiarray", "_reconstruct.__globals__"),
            ("numpy.core", "multiarray._reconstruct"),
            ("numpy.core.multiarray\x00", "_reconstruct"),
            ("os", "system"),
            ("", ""),
            ("builtins", "__import__"),
            ("numpy._core.multiarray", "fromfile"),
            ("x" * 10_000, "\x1b[31m"),
        ],
    )
    def test_crafted_names_on_the_stack(self, module: str, name: str) -> None:
        parts = [b"X" + struct.pack("<I", len(text.encode())) + text.encode() for text in (module, name)]
        said = refusal(b"\x80\x04" + b"".join(parts) + b"\x93.")
        assert "asks for" in said and len(said) < 400 and "\x1b" not in said and "\x00" not in said
        assert "STACK_GLOBAL takes a str, and finds a int" in refusal(b"\x80\x04K\x01N\x93.")

    @pytest.mark.parametrize(
        ("program", "why"),
        [
            (array_program(data=b"C\x01a"), "in 1 bytes"),
            (array_program(data=b"C\x03abc"), "in 3 bytes"),
            (array_program(data=b"]"), "an array of Python objects"),
            (array_program(data=b"N"), "whose bytes are a NoneType"),
            (array_program(data=b"X\x02\x00\x00\x00a\xc4\x80"[:1] + b"\x03\x00\x00\x00a\xc4\x80"), "not latin-1"),
            (array_program(shape=b"J\xfe\xff\xff\xff\x85"), "tuple of whole numbers"),
            (array_program(shape=b"(" + b"K\x01" * 65 + b"t"), "tuple of whole numbers"),
            (array_program(shape=b"G\x40\x00\x00\x00\x00\x00\x00\x00\x85"), "tuple of whole numbers"),
            (array_program(shape=b"N"), "tuple of whole numbers"),
            (
                array_program(shape=b"K\x00J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x87\x86", data=b"C\x00"),
                "whole",
            ),
            (
                array_program(shape=b"(K\x00J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7ft", data=b"C\x00"),
                "shape",
            ),
            (array_program(dtype=b"N"), "dtype is a NoneType"),
            (
                array_program(dtype=b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R"),
                "dtype is a DType without a state",
            ),
            (
                array_program(dtype=dtype_program("b1", b"K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffK\x00K\x00")),
                "bool",
            ),
            (
                array_program(
                    shape=b"K\x01\x85",
                    dtype=dtype_program("U1", b"K\x03X\x01\x00\x00\x00<NNNK\x04K\x04K\x08"),
                    data=b"C\x04\xff\xff\xff\xff",
                ),
                "not Unicode",
            ),
        ],
    )
    def test_states_of_arrays(self, program: bytes, why: str) -> None:
        assert why in refusal(program)

    @pytest.mark.parametrize(
        ("code", "state", "why"),
        [
            ("f8", b"K\x03X\x01\x00\x00\x00|NNNK\x08", "the state of a dtype is not"),
            ("f8", b"K\x03X\x01\x00\x00\x00|N(X\x01\x00\x00\x00at}K\x08K\x00K\x00", "fields or sub-arrays"),
            ("f8", b"K\x03X\x01\x00\x00\x00|NN}K\x08K\x00K\x00", "fields or sub-arrays"),
            ("f8", b"K\x03X\x01\x00\x00\x00|cnumpy\ndtype\nK\x02\x86NNK\x08K\x00K\x00", "fields or sub-arrays"),
            ("f8", b"K\x03X\x01\x00\x00\x00|NNNK\x01K\x00K\x00", "another size"),
            ("f8", b"K\x03X\x01\x00\x00\x00ONNNK\x08K\x00K\x00", "the state of a dtype is not"),
            ("f8", b"K\x09X\x01\x00\x00\x00|NNNK\x08K\x00K\x00", "the state of a dtype is not"),
            ("O8", b"K\x03X\x01\x00\x00\x00|NNNK\x08K\x00K\x3f", "an array of Python objects"),
            ("O", b"K\x03X\x01\x00\x00\x00|NNNK\x08K\x00K\x3f", "an array of Python objects"),
            ("V4", b"K\x03X\x01\x00\x00\x00|NNNK\x08K\x00K\x00", "a structured array"),
            ("f16", b"K\x03X\x01\x00\x00\x00|NNNK\x08K\x00K\x00", "dtype 'f16'"),
            ("f8,O", b"K\x03X\x01\x00\x00\x00|NNNK\x08K\x00K\x00", "dtype 'f8,O'"),
            ("U0", b"K\x03X\x01\x00\x00\x00|NNNK\x00K\x00K\x00", "dtype 'U0'"),
        ],
    )
    def test_states_of_dtypes(self, code: str, state: bytes, why: str) -> None:
        said = refusal(array_program(dtype=dtype_program(code, state)))
        assert why in said

    @pytest.mark.parametrize(
        ("program", "why"),
        [
            (b"\x80\x04]Nb.", "asks for a state for a list"),
            (b"\x80\x04]}b.", "asks for a state for a list"),
            (b"\x80\x04cnumpy\nndarray\n}b.", "asks for a state for numpy.ndarray"),
            (b"\x80\x04" + array_program()[2:-1] + b"(K\x01K\x01\x85NNNtb.", "asks for a second state for an array"),
            (b"\x80\x04cnumpy\nndarray\n.", "asks for numpy.ndarray, as a value of its own"),
            (b"cnumpy.core.multiarray\nscalar\n.", "asks for numpy.scalar, as a value of its own"),
            (b"\x80\x04cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R.", "asks for a DType, as a value of its own"),
            (
                b"\x80\x04" + dtype_program("u1", b"K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffK\x00K\x00") + b".",
                "asks for a",
            ),
            (b"\x80\x04cnumpy\nndarray\n)\x81.", "NEWOBJ class argument"),
            (b"\x80\x04cnumpy\nndarray\n)}\x92.", "NEWOBJ_EX class argument"),
            (b"\x80\x04(cnumpy\nndarray\no.", "asks for a call of numpy.ndarray"),
            (b"(ios\nsystem\n.", "asks for os.system"),
            (b"\x80\x04cnumpy\ndtype\n(N\x89\x88tR.", "asks for a dtype made of a NoneType"),
            (
                b"\x80\x04c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
                "asks for a call of _codecs.encode",
            ),
            (b"\x80\x04c_codecs\nencode\nNX\x06\x00\x00\x00latin1\x86R.", "bytes that are a NoneType"),
            (b"\x80\x02c__builtin__\nbytes\nJ\x00\x00\x00\x40\x85R.", "asks for a call of bytes"),
            (b"\x80\x04N)R.", "'NoneType' object is not callable"),
            (b"\x80\x04cnumpy\nndarray\n]R.", "must be a tuple"),
            (b"c\\Rx\nsystem\n.", "asks for"),  # pickletools would warn
            (b"P1\n.", "an object from outside the file (PERSID)"),
            (b"\x80\x02K\x01Q.", "an object from outside the file (BINPERSID)"),
            (b"\x80\x02\x82\x01.", "extension registry (EXT1)"),
            (b"\x80\x02\x83\x01\x00.", "extension registry (EXT2)"),
            (b"\x80\x02\x84\x01\x00\x00\x00.", "extension registry (EXT4)"),
            (b"\x80\x05\x97.", "a buffer outside the file"),
            (b"\x80\x05N\x98.", "a buffer outside the file"),
            (b"S'text'\n.", "protocol 0"),
            (b"Vtext\n.", "protocol 0"),
            (b"\x80\x04]2.", "twice, which no pickle does (DUP)"),
            (b"\x80\x06N.", "unsupported pickle protocol: 6"),
            (b"\x80\x04\xff.", "at position 2"),
            (b"\x80\x04.", "STOP takes a value where there is none"),
            (b"\x80\x04NN.", "more than one value"),
            (b"\x80\x04(N.", "more than one value"),
            (b"\x80\x04t.", "never began"),
            (b"\x80\x04h\x05.", "never kept"),
            (b"\x80\x04N(q\x05.", "remembers a value where there is none"),
            (b"\x80\x04](N\x910}\x94(N\x91Ns.", "a frozenset"),
            (b"\x80\x04(]a.", "APPEND takes a list, and finds a mark"),
            (b"\x80\x04}(K\x01s.", "takes a"),
            (b"\x80\x04q\x05.", "remembers a value where there is none"),
            (b"\x80\x04a.", "takes a value where there is none"),
            (b"\x80\x04NNa.", "APPEND takes a list, and finds a None"),
            (b"\x80\x04NNNs.", "SETITEM takes a dict, and finds a None"),
            (b"\x80\x04](N\x90.", "ADDITEMS takes a set, and finds a list"),
            (b"\x80\x04}(Nu.", "a key that has no value"),
            (b"\x80\x04}]Ns.", "unhashable type: 'list'"),
            (b"\x80\x04Iabc\n.", "invalid literal for int()"),
            (b"\x80\x04I" + b"1" * 5000 + b"\n.", "4300 digits"),
            (b"\x80\x04X\x01\x00\x00\x00\xff.", "'utf-8' codec can't decode"),
        ],
    )
    def test_other_programs(self, program: bytes, why: str) -> None:
        assert why in refusal(program)

    def test_arrays_where_a_number_belongs_are_not_compared(self) -> None:
        """numpy compares element by element, and an array has no truth: every comparison is by type first."""
        two = array_program()[2:-1]
        for program in (
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + two + b"C\x01b\x87R",
            b"cnumpy.core.numeric\n_frombuffer\n(C\x01aNN" + two + b"tR",
            array_program(order=two)[2:-1],
            b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R(" + two + b"X\x01\x00\x00\x00|NNNK\x01K\x00K\x00tb",
            b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R(K\x03" + two + b"NNNK\x01K\x00K\x00tb",
            b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R(K\x03X\x01\x00\x00\x00|NNN" + two + b"K\x00K\x00tb",
            b"}" + two + b"Ns",
        ):
            try:
                load_plain(b"\x80\x04" + program + b".", "here")
            except WaterjarError:
                continue
            assert program == array_program(order=two)[2:-1]  # anything but True is C's order
