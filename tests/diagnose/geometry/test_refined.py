"""Twice the digits, against rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnose.geometry.problems import projected_exactly
from waterjar.diagnose.geometry import refined
from waterjar.diagnose.geometry.refined import refine, scaled
from waterjar.diagnose.geometry.solver.compiled import entry
from waterjar.diagnose.geometry.solver.layout import Floats, Integers
from waterjar.diagnose.geometry.solver.twofold import ACROSS, add, correct, times

NUMBERS = st.floats(-1e60, 1e60).filter(lambda x: x == 0 or abs(x) > 1e-60)


@entry
def added(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    return add(a, a_low, b, b_low)


@entry
def each_times(matrix: Floats, ids: Integers, first: int, count: int, pair: Floats, room: Floats) -> None:
    times(matrix, ids, 0, ids.shape[1], first, count, pair, room)


def products(matrix: Floats, pair: Floats) -> list[tuple[float, float]]:
    """Every row of the matrix times the pair; rows are asked for in parts, and numbers stand in another order."""
    rows, size = matrix.shape
    order = np.random.default_rng(0).permutation(size)
    columns, found = np.ascontiguousarray(matrix.T)[np.argsort(order)], []
    for first in range(0, rows, 2):
        room = np.empty((2, max(size, 1), ACROSS))
        each_times(columns, order[None], first, min(2, rows - first), pair, room)
        found += list(zip(*room[:, 0, : min(2, rows - first)].tolist(), strict=True))
    return found


@entry
def corrected(pair: Floats, by: Floats) -> None:
    correct(pair, by.shape[1], by, 0)


def rational(high: float, low: float) -> Fraction:
    return Fraction(high) + Fraction(low)


@given(NUMBERS, NUMBERS)
def test_sums_and_products_have_no_error(a: float, b: float) -> None:
    pair = np.array([[b], [0.0]])
    assert rational(*added(a, 0.0, b, 0.0)) == Fraction(a) + Fraction(b)
    assert rational(*products(np.array([[a]]), pair)[0]) == Fraction(a) * Fraction(b)
    corrected(pair, np.array([[a]]))
    assert rational(*pair[:, 0].tolist()) == Fraction(a) + Fraction(b)


@pytest.mark.parametrize("columns", [0, 1, 2, 7, 64, 129])
def test_products_have_twice_the_digits(columns: int) -> None:
    """Also where nearly all of it cancels."""
    rng = np.random.default_rng(columns)
    matrix, high = rng.standard_normal((3, columns)), 1e12 * rng.standard_normal(columns)
    if columns > 2:
        matrix[:, 1], high[1] = -matrix[:, 0], high[0]
    x = np.stack([high, 1e-17 * high * rng.standard_normal(columns)])
    for row, own in enumerate(products(matrix, x)):
        terms = [
            Fraction(float(m)) * (Fraction(float(h)) + Fraction(float(low)))
            for m, h, low in zip(matrix[row], *x, strict=True)
        ]
        size = sum((abs(term) for term in terms), Fraction(0))
        assert abs(rational(*own) - sum(terms, Fraction(0))) <= size * Fraction(1e-30)
    assert added(*x[:, 0], *-x[:, 0]) == (0.0, 0.0) if columns else True


@pytest.mark.parametrize("apart", [1e-3, 1e-9, 1e-12])
def test_coefficients_of_points_that_are_nearly_the_same(apart: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(8) / 3 + apart * rng.standard_normal((5, 8))
    t = rng.standard_normal(8)
    exact = projected_exactly(rows, t, np.arange(5))
    found = refine(scaled(rows), np.sign(exact.lam), t, np.arange(5))
    assert found is not None
    np.testing.assert_array_equal(found.members, np.arange(5))
    np.testing.assert_allclose(found.beta, np.abs(exact.lam) * np.linalg.norm(rows, axis=1), rtol=1e-14)
    np.testing.assert_allclose(found.p, exact.p, rtol=0, atol=1e-15)


def test_dependent_points_have_no_coefficients() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 8))
    for last in (rows[0], rows[0] + 1e-17):
        assert refine(scaled(np.array([*rows, last])), np.ones(5), rows[1], np.arange(5)) is None
    few = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])  # more of them than dimensions that are alive
    assert refine(scaled(few), np.ones(3), np.array([1.0, 2.0, 3.0]), np.arange(3)) is None


def test_dimensions_without_points_change_nothing() -> None:
    rng = np.random.default_rng(0)
    points, t, alive = rng.standard_normal((12, 6)), rng.standard_normal(9), np.arange(9) % 3 > 0
    wide = np.zeros((12, 9))
    wide[:, alive] = points
    one = refine(scaled(wide), np.ones(12), t, np.arange(2))
    other = refine(scaled(points), np.ones(12), t[alive], np.arange(2))
    assert one is not None and other is not None
    np.testing.assert_array_equal(one.p[alive], other.p)
    np.testing.assert_array_equal(one.beta, other.beta)
    assert not one.p[~alive].any()


def test_the_support_is_found_from_any_other() -> None:
    rng = np.random.default_rng(0)
    points, signs, t = rng.standard_normal((30, 10)), rng.choice([-1.0, 1.0], 30), rng.standard_normal(10)
    points[3] = 0
    starts = [np.array(start, np.int64) for start in ([], [0], [1, 2, 4, 5, 6, 7, 8, 9])]
    found = [refine(scaled(points), signs, t, start) for start in starts]
    for one in found:
        assert one is not None and one.residual < 1e-30
        exact = projected_exactly(signs[:, None] * points, t, one.members)
        assert min(exact.lam) > 0 and exact.gain <= 0
        np.testing.assert_allclose(one.p, exact.p, rtol=1e-14, atol=1e-15)
        norms = np.linalg.norm(points[one.members], axis=1)
        np.testing.assert_allclose(one.beta, exact.lam * norms, rtol=1e-14)
        np.testing.assert_array_equal(one.members, found[0].members)  # type: ignore[union-attr]


def test_what_has_no_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    points, signs, t = np.ones((3, 3)) + 2.3e-16 * np.eye(3), np.array([1.0, -1.0, 1.0]), np.array([1.0, 2.0, -3.0])
    assert refine(scaled(points), signs, t, np.array([0, 1])) is None  # the same but for the last bit
    rng = np.random.default_rng(0)
    few = scaled(rng.standard_normal((9, 5))), np.ones(9), rng.standard_normal(5), np.array([], np.int64)
    assert refine(*few) is not None
    monkeypatch.setattr(refined, "_ROUNDS", 1)
    assert refine(*few) is None
