"""Reservoir sampling: the same as one by one, uniform, and of what was seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from lab.learning.contexts import batch_of, logits_of, rows_of, surroundings
from waterjar.errors import WaterjarError
from waterjar.lab.learning.memory import Memory
from waterjar.lab.learning.options import Rows

pytestmark = pytest.mark.torch


def fresh(size: int, repeats: int = 1, *, first: int = 0, rows: bool = True, logits: bool = True) -> Memory:
    return Memory(size, surroundings(repeats, first=first, rows=rows), logits=logits)


def shown(memory: Memory, stream: Rows, sizes: list[int]) -> Memory:
    """Show a stream (repeat, sample) in batches of the sizes, again and again."""
    start, k = 0, 0
    while start < stream.shape[1]:
        part = stream[:, start : start + sizes[k % len(sizes)]]
        memory.offer(batch_of(part), logits_of(part))
        start, k = start + part.shape[1], k + 1
    return memory


def contents(memory: Memory) -> Rows:
    """(repeat, place): the rows that stand in it."""
    if memory.rows is not None:
        return memory.rows[:, : len(memory)]
    assert memory.inputs is not None
    return rows_of(memory.inputs[:, : len(memory)])


many = hypothesis_settings(max_examples=40, deadline=None)
some_sizes = st.lists(st.integers(1, 25), min_size=1, max_size=4)


@many
@given(size=st.integers(1, 12), count=st.integers(1, 60), sizes=some_sizes, seed=st.integers(0, 99), rows=st.booleans())
def test_batches_of_any_size_do_what_single_examples_do(
    size: int, count: int, sizes: list[int], seed: int, rows: bool
) -> None:
    stream = np.arange(count)[None]
    one, whole = (shown(fresh(size, first=seed, rows=rows), stream, some) for some in ([1], sizes))
    assert one.offered == whole.offered == count and len(one) == min(count, size)
    assert (contents(one) == contents(whole)).all()


@many
@given(size=st.integers(1, 12), count=st.integers(1, 60), batch=st.integers(1, 25), rows=st.booleans())
def test_what_belongs_together_stays_together(size: int, count: int, batch: int, rows: bool) -> None:
    memory = shown(fresh(size, 2, rows=rows), np.arange(2 * count).reshape(2, count), [batch])
    kept, filled = contents(memory), min(count, size)
    assert all(len(set(row)) == filled for row in kept.tolist())  # no example twice
    assert (memory.labels[:, :filled] == kept % 2).all()
    assert memory.logits is not None and torch.equal(memory.logits[:, :filled], logits_of(kept))
    assert (kept[0] < count).all() and (kept[1] >= count).all()  # each repeat has its own


def test_while_there_is_room_all_are_kept_in_order() -> None:
    assert contents(shown(fresh(10), np.arange(10)[None], [4])).tolist() == [list(range(10))]


@pytest.mark.parametrize(("size", "count", "batch"), [(8, 40, 7), (5, 30, 30), (3, 20, 1)])
def test_every_example_is_in_with_probability_k_over_n(size: int, count: int, batch: int) -> None:
    seeds, p = 800, size / count
    kept = contents(shown(fresh(size, seeds, logits=False), np.tile(np.arange(count), (seeds, 1)), [batch]))
    inside = np.zeros((seeds, count), dtype=bool)
    inside[np.arange(seeds)[:, None], kept] = True
    # Exactly `size` are in: the counts are negatively correlated, by -1 / (n - 1).
    statistic = np.sum((inside.sum(0) - seeds * p) ** 2) / (seeds * p * (1 - p)) * (count - 1) / count
    assert stats.chi2(count - 1).sf(statistic) > 1e-3
    # Pairs, too: neighbours in a batch, and the first with the last.
    pair = size * (size - 1) / (count * (count - 1))
    for i, j in ((0, 1), (count - 2, count - 1), (0, count - 1)):
        assert stats.binomtest(int((inside[:, i] & inside[:, j]).sum()), seeds, pair).pvalue > 1e-3


def test_places_are_uniform_too() -> None:
    """The last example may stand anywhere, so that a draw from a part of the memory would be fair."""
    kept = contents(shown(fresh(6, 1500, logits=False), np.tile(np.arange(12), (1500, 1)), [5]))
    assert stats.chisquare(np.bincount(np.nonzero(kept == 11)[1], minlength=6)).pvalue > 1e-3


def test_replay_follows_the_balance_of_what_was_seen() -> None:
    """40 classes of 10 images, then 20 of 30: a class has the share of the memory that it had of the stream."""
    share = np.r_[np.full(40, 10.0), np.full(20, 30.0)]
    stream = np.repeat(np.arange(60), share.astype(int))
    kept = contents(shown(fresh(50, 300, logits=False), np.tile(stream, (300, 1)), [32]))
    totals = np.bincount(kept.ravel(), minlength=60)
    expected = totals.sum() * share / share.sum()
    # A draw without replacement from 1000: variances are smaller by (n - k) / (n - 1).
    statistic = np.sum((totals - expected) ** 2 / expected) * 999 / 950
    assert 1e-3 < stats.chi2(59).sf(statistic) < 1 - 1e-3


def test_draws_are_uniform_without_repetition() -> None:
    memory = shown(fresh(10, 2), np.arange(20).reshape(2, 10), [10])
    counts = np.zeros(20)
    for batch in range(1000):
        drawn = rows_of(memory.draw(4, "replay", batch).inputs)
        assert all(len(set(row)) == 4 for row in drawn.tolist())
        np.add.at(counts, drawn.ravel(), 1)
    statistic = np.sum((counts - 400) ** 2) / (1000 * 0.4 * 0.6) * 9 / 10
    assert stats.chi2(18).sf(statistic) > 1e-3


def test_a_draw_of_more_than_there_are_is_all() -> None:
    drawn = shown(fresh(10), np.arange(6)[None], [6]).draw(32, "replay")
    assert sorted(rows_of(drawn.inputs)[0].tolist()) == list(range(6))


def test_a_repeat_remembers_and_draws_the_same_alone_and_among_others() -> None:
    stream = np.random.default_rng(0).integers(0, 1000, (3, 50))
    among, alone = shown(fresh(7, 3), stream, [50]), shown(fresh(7, first=2), stream[2:], [50])
    both = [rows_of(one.draw(4, "replay", 3, 9).inputs) for one in (among, alone)]
    assert both[0][2].tolist() == both[1][0].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_it_keeps_copies_of_what_was_seen_and_hands_copies_out(dtype: str) -> None:
    memory = Memory(4, surroundings(1, rows=False), dtype=dtype, logits=True)  # type: ignore[arg-type]
    seen = torch.randn(1, 4, 1, 2, 2, generator=torch.Generator().manual_seed(0))
    batch, logits = batch_of(np.arange(4)[None])._replace(inputs=seen.clone().requires_grad_()), torch.ones(1, 4, 2)
    memory.offer(batch, logits.requires_grad_())
    with torch.no_grad():
        batch.inputs.zero_()
        logits.zero_()
    drawn = memory.draw(4, "replay")
    assert drawn.logits is not None and not drawn.logits.requires_grad and bool((drawn.logits == 1).all())
    kept = seen.to(getattr(torch, dtype)).float()  # a short type rounds, and nothing else does
    assert torch.equal(drawn.inputs, kept) and drawn.inputs.dtype == torch.float32
    drawn.inputs.zero_()
    assert torch.equal(memory.draw(4, "replay").inputs, kept)


def test_counted_in_bytes() -> None:
    seeds = 2
    assert fresh(100, seeds).n_bytes == seeds * 100 * (4 + 8 + 2 * 4)  # an image of 4 bytes, a label, two logits
    short = Memory(100, surroundings(seeds, rows=False), dtype="float16")
    assert short.n_bytes == seeds * 100 * (4 * 2 + 8)


@pytest.mark.parametrize("rows", [True, False])
def test_a_state_goes_on_with_the_same_bits(rows: bool) -> None:
    stream = np.arange(50)[None]
    memory = shown(fresh(6, rows=rows), stream[:, :20], [7])
    state = memory.state()
    shown(memory, stream[:, 20:], [4])
    again = fresh(6, rows=rows)
    again.load_state(state)
    assert (contents(shown(again, stream[:, 20:], [3])) == contents(memory)).all()


def test_wrong_use_is_one_clear_error() -> None:
    with pytest.raises(WaterjarError, match="a draw from an empty"):
        fresh(3).draw(1, "replay")
    with pytest.raises(WaterjarError, match="the state is of another replay memory"):
        fresh(3).load_state(fresh(4).state())
    with pytest.raises(WaterjarError, match="'logits'"):
        fresh(3).load_state(fresh(3, logits=False).state())
    with pytest.raises(WaterjarError, match="buffer_dtype 'float16': rows of the data set are kept here"):
        Memory(3, surroundings(1), dtype="float16")


def test_roles_draw_apart() -> None:
    where = surroundings(1)
    other = replace(where, role="expert 1")
    both = [shown(Memory(5, one), np.arange(200)[None], [50]) for one in (where, other)]
    assert (contents(both[0]) != contents(both[1])).any()
