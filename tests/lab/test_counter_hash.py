"""The counter hash against published SplitMix64 outputs and the laws that uniform numbers obey."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from waterjar.lab.counter_hash import (
    GAMMA,
    between,
    epoch_order,
    hash_words,
    integers,
    mix64,
    normal,
    permutation,
    uniform,
)

WORDS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)
MASK = 2**64 - 1


def test_mixer_gives_the_published_stream_of_splitmix64() -> None:
    # The first five outputs for seed 1234567, as in Vigna's public-domain reference and Rosetta Code.
    states = (1234567 + GAMMA * np.arange(1, 6, dtype=object)) % 2**64
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert mix64(states.astype(np.uint64)).tolist() == expected


def plain_mix(bits: int) -> int:
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


@given(WORDS, st.data())
def test_hash_is_the_stated_formula_whatever_is_a_number_and_what_an_array(
    words: list[int], data: st.DataObject
) -> None:
    state = GAMMA
    for position, word in enumerate(words, start=1):
        state = plain_mix(state ^ plain_mix((word + position * GAMMA) & MASK))
    as_array = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    mixed = [np.array([word]) if array else word for word, array in zip(words, as_array, strict=True)]
    assert hash_words(*mixed).item() == state
    assert hash_words(*(np.array(word) for word in words)).item() == state


def test_arrays_broadcast_and_no_neighbour_matters() -> None:
    rows, columns = np.arange(7)[:, None], np.arange(11)[None, :]
    table = hash_words("t", 3, rows, columns)
    assert table.shape == (7, 11)
    assert all(table[i, j] == hash_words("t", 3, i, j) for i in range(7) for j in range(11))


def test_numba_compiles_the_same_mixer() -> None:
    compiled = numba.njit(mix64)
    values = hash_words("numba", np.arange(100))
    assert [int(compiled(value)) for value in values] == mix64(values).tolist()


def test_the_same_in_another_process_with_another_string_hash() -> None:
    code = "from waterjar.lab.counter_hash import hash_words; print(int(hash_words('train', 42, 7)))"
    values = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert values == {f"{int(hash_words('train', 42, 7))}\n"}


def test_uniform_is_uniform_and_neighbouring_counters_are_independent() -> None:
    draws = uniform("test", 0, np.arange(100_000))
    assert draws.min() >= 0.0 and draws.max() < 1.0
    assert stats.kstest(draws, "uniform").pvalue > 1e-3
    pairs = np.histogram2d(draws[:-1], draws[1:], bins=16)[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-3
    other = uniform("test", 1, np.arange(100_000))
    assert abs(np.corrcoef(draws, other)[0, 1]) < 4 / np.sqrt(100_000)


def test_every_input_bit_flips_half_of_the_output_bits() -> None:
    base = np.arange(2000)
    for bit in range(0, 63, 7):
        flipped = hash_words(5, base) ^ hash_words(5, base ^ (1 << bit))
        share = np.unpackbits(flipped.view(np.uint8)).mean()
        assert abs(share - 0.5) < 0.01


@given(st.integers(1, 1000), st.integers(0, 2**32))
def test_integers_stay_in_range(count: int, seed: int) -> None:
    draws = integers(count, seed, np.arange(50))
    assert draws.dtype == np.int64 and draws.min() >= 0 and draws.max() < count


def test_integers_and_normal_have_their_distributions() -> None:
    counts = np.bincount(integers(9, "i", np.arange(90_000)), minlength=9)
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.kstest(normal("n", np.arange(50_000)), "norm").pvalue > 1e-3
    scaled = between(-2.0, 3.0, "b", np.arange(1000))
    assert np.array_equal(scaled, -2.0 + 5.0 * uniform("b", np.arange(1000)))


@given(st.integers(0, 200), st.integers(0, 2**32))
def test_permutation_is_one(count: int, seed: int) -> None:
    assert np.array_equal(np.sort(permutation(count, seed)), np.arange(count))


def test_first_place_of_a_permutation_is_uniform() -> None:
    firsts = [permutation(6, "p", repeat)[0] for repeat in range(6000)]
    assert stats.chisquare(np.bincount(firsts, minlength=6)).pvalue > 1e-3


@pytest.mark.parametrize("change", [(1, "t2", 3), (0, "t1", 3), (0, "t2", 4)])
def test_epoch_order_depends_on_seed_task_and_epoch(change: tuple[int, str, int]) -> None:
    order = epoch_order(0, "t2", 3, 500)
    assert np.array_equal(order, epoch_order(0, "t2", 3, 500))
    assert np.mean(order == epoch_order(*change, 500)) < 0.05
