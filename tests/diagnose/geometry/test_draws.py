from __future__ import annotations

import numpy as np
import pytest

from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.errors import WaterjarError


def test_uniform() -> None:
    y = dichotomies("uniform", 20000, 3, 0)
    assert set(np.unique(y)) == {-1.0, 1.0}
    patterns, counts = np.unique(y, axis=0, return_counts=True)
    assert len(patterns) == 8
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(20000 / 8)


@pytest.mark.parametrize("manifolds", [2, 4, 5, 7])
def test_balanced(manifolds: int) -> None:
    y = dichotomies("balanced", 4000, manifolds, 0)
    assert set(np.unique(y.sum(axis=1))) == ({0.0} if manifolds % 2 == 0 else {-1.0, 1.0})
    assert np.abs(y.mean(axis=0)).max() < 5 / np.sqrt(4000)


def test_one_vs_rest() -> None:
    y = dichotomies("one_vs_rest", 3000, 3, 0)
    assert (y.sum(axis=1) == -1).all()
    assert np.abs((y > 0).mean(axis=0) - 1 / 3).max() < 0.05


def test_opposite_pairs() -> None:
    y = dichotomies("opposite_pairs", 100, 4, 0)
    assert (y[::2] == -y[1::2]).all()
    assert len(np.unique(y, axis=0)) == 16
    with pytest.raises(WaterjarError, match="even"):
        dichotomies("opposite_pairs", 3, 4, 0)


def test_given() -> None:
    given = np.array([[1, -1], [-1, -1]])
    assert (dichotomies(given, 2, 2, 0) == given).all()
    with pytest.raises(WaterjarError, match=r"must be \(3, 2\)"):
        dichotomies(given, 3, 2, 0)
    with pytest.raises(WaterjarError, match="-1 and .1 only"):
        dichotomies(given * 2, 2, 2, 0)


def test_unknown_kind() -> None:
    with pytest.raises(WaterjarError, match="did you mean 'balanced'"):
        dichotomies("ballanced", 2, 2, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["uniform", "balanced", "one_vs_rest", "opposite_pairs"])
def test_same_seed_same_bits_and_more_draws_begin_the_same(kind: str) -> None:
    assert (dichotomies(kind, 10, 5, 7) == dichotomies(kind, 20, 5, 7)[:10]).all()  # type: ignore[arg-type]
    assert (dichotomies(kind, 20, 5, 7) != dichotomies(kind, 20, 5, 8)).any()  # type: ignore[arg-type]
    assert (directions(10, 5, 7) == directions(20, 5, 7)[:10]).all()


def test_a_seed_sequence_is_not_used_up() -> None:
    rng = np.random.SeedSequence(3, spawn_key=(1, 2))
    first = directions(2, 3, rng)
    rng.spawn(4)
    assert (directions(2, 3, rng) == first).all()
    assert (directions(2, 3, np.random.SeedSequence(3)) == directions(2, 3, 3)).all()
    assert (directions(2, 3, 3) != first).any()


def test_directions_are_standard_normal() -> None:
    t = directions(2000, 50, 0)
    assert abs(t.mean()) < 5 / np.sqrt(t.size)
    assert abs(t.var() - 1) < 5 * np.sqrt(2 / t.size)
