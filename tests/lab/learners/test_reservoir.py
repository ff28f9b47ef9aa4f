"""Reservoir sampling: the same as one by one, and uniform."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.lab.learners import Reservoir

pytestmark = pytest.mark.torch


def stream(count, n_logits=0):
    """Example k has the input k, the label k and the logits (k, k + 0.5 ...)."""
    number = torch.arange(count)
    logits = number[:, None] + torch.arange(n_logits) / 2 if n_logits else None
    return number[:, None].float(), number, logits


def shown(memory, count, sizes):
    """Show the stream in batches of the sizes, again and again."""
    inputs, labels, logits = stream(count, 2)
    start, k = 0, 0
    while start < count:
        part = slice(start, start + sizes[k % len(sizes)])
        memory.add(inputs[part], labels[part], task=start, logits=logits[part])
        start, k = part.stop, k + 1
    return memory


def fresh(capacity, seed=0):
    return Reservoir(capacity, (1,), seed=seed, n_logits=2)


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(1, 12),
    count=st.integers(1, 60),
    sizes=st.lists(st.integers(1, 25), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_batches_of_any_size_do_what_single_examples_do(capacity, count, sizes, seed):
    one, many = shown(fresh(capacity, seed), count, [1]), shown(fresh(capacity, seed), count, sizes)
    assert one.seen == many.seen == count and len(one) == min(count, capacity)
    for a, b in zip(one.contents[:3], many.contents[:3], strict=True):
        assert torch.equal(a, b)


@hypothesis_settings(max_examples=40, deadline=None)
@given(capacity=st.integers(1, 12), count=st.integers(1, 60), size=st.integers(1, 25), seed=st.integers(0, 1000))
def test_what_belongs_together_stays_together(capacity, count, size, seed):
    contents = shown(fresh(capacity, seed), count, [size]).contents
    assert len(set(contents.labels.tolist())) == min(count, capacity)  # no example twice
    assert torch.equal(contents.inputs[:, 0], contents.labels.float())
    assert torch.equal(contents.logits[:, 0], contents.labels.float())
    assert torch.equal(contents.logits[:, 1], contents.labels + 0.5)
    assert torch.equal(contents.tasks, contents.labels // size * size)


def test_while_there_is_room_all_are_kept_in_order():
    assert shown(fresh(10), 10, [4]).contents.labels.tolist() == list(range(10))


def kept(capacity, count, size, seeds):
    """(seed, example): whether it is in."""
    out = np.zeros((seeds, count), dtype=bool)
    for seed in range(seeds):
        out[seed, shown(fresh(capacity, seed), count, [size]).contents.labels.numpy()] = True
    return out


@pytest.mark.parametrize(("capacity", "count", "size"), [(8, 40, 7), (5, 30, 30), (3, 20, 1)])
def test_every_example_is_in_with_probability_k_over_n(capacity, count, size):
    inside, seeds, p = kept(capacity, count, size, 800), 800, capacity / count
    counts = inside.sum(0)
    # Exactly `capacity` are in: the counts are negatively correlated, by -1 / (n - 1).
    statistic = np.sum((counts - seeds * p) ** 2) / (seeds * p * (1 - p)) * (count - 1) / count
    assert stats.chi2(count - 1).sf(statistic) > 1e-3
    # Pairs, too: neighbours in a batch, and the first with the last.
    pair = capacity * (capacity - 1) / (count * (count - 1))
    for i, j in ((0, 1), (count - 2, count - 1), (0, count - 1)):
        together = int((inside[:, i] & inside[:, j]).sum())
        assert stats.binomtest(together, seeds, pair).pvalue > 1e-3


def test_places_are_uniform_too():
    """The last example may stand anywhere, so that a draw from a part of the memory would be fair."""
    places = []
    for seed in range(1500):
        labels = shown(fresh(6, seed), 12, [5]).contents.labels
        places += (labels == 11).nonzero()[:, 0].tolist()
    assert stats.chisquare(np.bincount(places, minlength=6)).pvalue > 1e-3


def test_replay_follows_the_balance_of_what_was_seen():
    """40 classes of 10 images, then 20 of 30: a class has the share of the memory that it had of the stream."""
    totals, seeds = np.zeros(60), 300
    share = np.r_[np.full(40, 10.0), np.full(20, 30.0)]
    labels = torch.from_numpy(np.repeat(np.arange(60), share.astype(int)))
    for seed in range(seeds):
        memory = Reservoir(50, (1,), seed=seed)
        for start in range(0, len(labels), 32):
            part = labels[start : start + 32]
            memory.add(part[:, None].float(), part, task=int(start >= 400))
        assert memory.class_counts(60).sum() == 50
        totals += memory.class_counts(60).numpy()
    expected = totals.sum() * share / share.sum()
    # A draw without replacement from 1000: variances are smaller by (n - k) / (n - 1).
    statistic = np.sum((totals - expected) ** 2 / expected) * 999 / 950
    assert 1e-3 < stats.chi2(59).sf(statistic) < 1 - 1e-3


def test_draws_are_uniform_without_repetition():
    memory = shown(fresh(10), 10, [10])
    counts = np.zeros(10)
    for _ in range(2000):
        labels = memory.draw(4).labels.numpy()
        assert len(set(labels)) == 4
        counts[labels] += 1
    statistic = np.sum((counts - 800) ** 2) / (2000 * 0.4 * 0.6) * 9 / 10
    assert stats.chi2(9).sf(statistic) > 1e-3


def test_a_draw_of_more_than_there_are_is_all():
    memory = shown(fresh(10), 6, [6])
    assert sorted(memory.draw(32).labels.tolist()) == list(range(6))


def test_it_keeps_copies_and_hands_copies_out():
    memory = Reservoir(4, (2,), seed=0, n_logits=1)
    inputs, labels, logits = torch.ones(4, 2), torch.arange(4), torch.ones(4, 1)
    memory.add(inputs, labels, 0, logits)
    for tensor in (inputs, labels, logits):
        tensor.zero_()
    drawn = memory.draw(4)
    assert drawn.inputs.eq(1).all() and drawn.logits.eq(1).all() and sorted(drawn.labels.tolist()) == [0, 1, 2, 3]
    drawn.inputs.zero_()
    assert memory.contents.inputs.eq(1).all()


def test_it_keeps_no_graph():
    memory = Reservoir(4, (2,), seed=0, n_logits=2)
    weight = torch.ones(2, 2, requires_grad=True)
    inputs = torch.ones(4, 2) @ weight
    memory.add(inputs, torch.arange(4), 0, inputs)
    assert not memory.contents.inputs.requires_grad and not memory.contents.logits.requires_grad


def test_allocated_once_and_counted_in_bytes():
    memory = Reservoir(100, (3, 4, 4), seed=0, n_logits=7, dtype="float16")
    assert memory.n_bytes == 100 * (48 * 2 + 7 * 4 + 8 + 8)
    place = memory._inputs.data_ptr()
    for _ in range(5):
        memory.add(torch.zeros(60, 3, 4, 4), torch.zeros(60, dtype=torch.int64), 0, torch.zeros(60, 7))
    assert memory._inputs.data_ptr() == place and memory.n_bytes == 100 * (48 * 2 + 7 * 4 + 8 + 8)


def test_a_state_goes_on_with_the_same_bits():
    memory = shown(fresh(6, seed=1), 20, [7])
    state = memory.state()
    later = [memory.draw(3).labels.tolist(), shown(memory, 30, [4]).contents.labels.tolist()]
    other = fresh(6, seed=2)
    other.load_state(state)
    assert later == [other.draw(3).labels.tolist(), shown(other, 30, [4]).contents.labels.tolist()]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Reservoir(0, (1,), seed=0), "at least one"),
        (lambda: fresh(3).draw(1), "empty"),
        (lambda: fresh(3).add(torch.zeros(2, 5), torch.zeros(2), 0, torch.zeros(2, 2)), r"shown inputs \(5,\)"),
        (lambda: fresh(3).add(torch.zeros(2, 1), torch.zeros(2), 0), "and no logits"),
        (lambda: fresh(3).load_state(fresh(4).state()), "another replay memory"),
        (lambda: fresh(3).load_state(Reservoir(3, (1,), seed=0).state()), "'logits'"),
    ],
)
def test_wrong_use_is_one_clear_error(call, words):
    with pytest.raises(WaterjarError, match=words):
        call()
