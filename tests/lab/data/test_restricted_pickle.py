"""The pickle reader that knows three names: what it reads, and what it refuses without running it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waterjar.errors import WaterjarError
from waterjar.lab.data._restricted_pickle import read_plain_pickle

PLAIN = {"data": np.arange(12, dtype=np.uint8).reshape(3, 4), "labels": [1, 2], "more": {"a": (None, 1.5, "x")}}


@pytest.mark.parametrize("protocol", [3, 4])
def test_containers_and_arrays_are_read(protocol: int) -> None:
    value = read_plain_pickle(pickle.dumps(PLAIN, protocol=protocol), "here")
    assert np.array_equal(value["data"], PLAIN["data"]) and value["data"].dtype == np.uint8
    assert value["labels"] == [1, 2] and value["more"] == {"a": (None, 1.5, "x")}


def test_keys_of_bytes_become_text() -> None:
    assert read_plain_pickle(pickle.dumps({b"fine_labels": [1]}), "here") == {"fine_labels": [1]}


class Hostile:
    def __init__(self, call: object, *arguments: object) -> None:
        self.made_of = (call, arguments)

    def __reduce__(self) -> object:
        return self.made_of


def test_a_call_of_the_system_is_refused_and_not_run(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    for call, arguments in (
        (os.system, (f"touch {victim}",)),
        (eval, (f"open({str(victim)!r}, 'w')",)),
        (getattr, ("text", "upper")),
        (np.load, (str(victim),)),
        (Path, (str(victim),)),
    ):
        for contents in (Hostile(call, *arguments), {"data": [Hostile(call, *arguments)]}):
            with pytest.raises(WaterjarError, match="only plain containers and numpy arrays are admitted"):
                read_plain_pickle(pickle.dumps(contents), "here")
    assert not victim.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(S'echo hello'\ntR.",
        b"c__builtin__\neval\n(S'1+1'\ntR.",
        b"cnumpy\nload\n(S'/etc/passwd'\ntR.",
        b"cnumpy.core.multiarray\nscalar\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.dumps\x93.",  # a dotted name must not reach an attribute
        b"\x80\x02\x82\x01.",  # the registry of extensions
        b"P1\n.",  # an object from outside
    ],
)
def test_hand_written_programs_are_refused(program: bytes) -> None:
    with pytest.raises(WaterjarError, match=r"admitted|damaged"):
        read_plain_pickle(program, "here")


def test_what_is_no_dictionary_is_refused() -> None:
    with pytest.raises(WaterjarError, match="here holds a list, not a dictionary"):
        read_plain_pickle(pickle.dumps([1, 2]), "here")


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_whatever_is_done_to_the_bytes_it_is_read_or_one_clear_error(data: st.DataObject) -> None:
    contents = bytearray(pickle.dumps({"labels": [1, 2, 3], "names": ["a", "b"], "n": {"x": 1.5}}, protocol=2))
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    contents = contents[: data.draw(st.integers(0, len(contents)))]
    try:
        assert isinstance(read_plain_pickle(bytes(contents), "here"), dict)
    except WaterjarError as error:
        assert str(error).startswith("here ")
