"""Memory that is used again is never memory that somebody still looks at."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterjar.diagnose.geometry import manifolds, project, workspace
from waterjar.diagnose.geometry.workspace import room

LARGE = 2**17


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    workspace._kept.pieces.clear()


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_freed_memory_comes_again() -> None:
    first = address(room((LARGE // 64, 8)))
    assert address(room(LARGE // 8)) == first
    assert room(LARGE // 8, np.float32).dtype == np.float32


def test_memory_in_use_does_not() -> None:
    held = room((4, LARGE // 8))
    part = held[1:, ::2].T  # a view of a view keeps it too
    begin = address(held)
    del held
    assert address(room((4, LARGE // 8))) != begin
    del part
    assert begin in {address(one) for one in [room((4, LARGE // 8)), room((4, LARGE // 8))]}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=40))
def test_arrays_in_use_never_share(steps: list[tuple[int, int]]) -> None:
    held: dict[int, np.ndarray] = {}
    for name, size in steps:  # each holds its own number until it is let go
        held.pop(name, None)
        held[name] = room((size, LARGE // 8))
        held[name].fill(10 * name + size)
        for other, array in held.items():
            assert (array == 10 * other + len(array)).all()


def test_small_and_huge_arrays_are_not_kept() -> None:
    room(10)
    room((0, 0), np.float32)
    room(workspace._MOST // 8)
    assert workspace._kept.pieces == []


def test_no_more_than_a_little_is_kept() -> None:
    held = [room(workspace._MOST // 4, np.uint8) for _ in range(10)]
    assert sum(piece.nbytes for piece in workspace._kept.pieces) <= workspace._MOST
    assert len({address(one) for one in held}) == 10


def test_every_thread_has_its_own() -> None:
    mine = address(room(LARGE))
    theirs: list[int] = []

    def ask() -> None:
        theirs.append(len(workspace._kept.pieces))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert theirs == [0]
    assert address(room(LARGE)) == mine


def test_projections_that_are_kept_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 100)
    first = project(manifolds(rng.standard_normal((400, 64)), labels), rng.standard_normal((60, 64)), np.ones((60, 4)))
    before = [np.array(part) for part in (first.of.units, first.products, first.of.gram, first.beta, first.members)]
    for _ in range(3):
        project(manifolds(rng.standard_normal((400, 64)), labels), rng.standard_normal((60, 64)), np.ones((60, 4)))
    after = [first.of.units, first.products, first.of.gram, first.beta, first.members]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


def test_where_counts_do_not_tell_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workspace._count_of_free() == workspace._FREE > 0
    monkeypatch.setattr(workspace.sys, "getrefcount", lambda _: 5)
    assert workspace._count_of_free() == -1
    monkeypatch.undo()
    monkeypatch.setattr(workspace.sys, "_is_gil_enabled", lambda: False, raising=False)
    assert workspace._count_of_free() == -1
    monkeypatch.setattr(workspace, "_FREE", -1)
    assert room(LARGE).base is None and workspace._kept.pieces == []
