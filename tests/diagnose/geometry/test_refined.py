"""Twice the digits, against rational numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnose.geometry.problems import projected_exactly
from waterjar.diagnose.geometry import refined
from waterjar.diagnose.geometry.refined import Pair, add, least_squares, product, refine, two_sum

NUMBERS = st.floats(-1e60, 1e60).filter(lambda x: x == 0 or abs(x) > 1e-60)


def rational(pair: Pair) -> Fraction:
    return Fraction(float(pair.high[0])) + Fraction(float(pair.low[0]))


@given(NUMBERS, NUMBERS)
def test_sums_and_products_have_no_error(a: float, b: float) -> None:
    x, y = np.array([a]), np.array([b])
    assert rational(two_sum(x, y)) == Fraction(a) + Fraction(b)
    assert rational(product(x[:, None], Pair(y, np.zeros(1)))) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("columns", [0, 1, 2, 7, 64, 129])
def test_products_have_twice_the_digits(columns: int) -> None:
    """Also where nearly all of it cancels."""
    rng = np.random.default_rng(columns)
    matrix, high = rng.standard_normal((3, columns)), 1e12 * rng.standard_normal(columns)
    if columns > 2:
        matrix[:, 1], high[1] = -matrix[:, 0], high[0]
    x = Pair(high, 1e-17 * high * rng.standard_normal(columns))
    found = product(matrix, x)
    for row in range(3):
        terms = [
            Fraction(float(m)) * (Fraction(float(h)) + Fraction(float(low)))
            for m, h, low in zip(matrix[row], x.high, x.low, strict=True)
        ]
        size = sum((abs(term) for term in terms), Fraction(0))
        own = Pair(found.high[row : row + 1], found.low[row : row + 1])
        assert abs(rational(own) - sum(terms, Fraction(0))) <= size * Fraction(1e-30)
    assert rational(add(Pair(x.high[:1], x.low[:1]), Pair(-x.high[:1], -x.low[:1]))) == 0 if columns else True


@pytest.mark.parametrize("apart", [1e-3, 1e-9, 1e-12])
def test_least_squares_of_columns_that_are_nearly_the_same(apart: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(8) / 3 + apart * rng.standard_normal((5, 8))
    t = rng.standard_normal(8)
    solved = least_squares(rows.T, t)
    assert solved is not None
    exact = projected_exactly(rows, t, np.arange(5))
    np.testing.assert_allclose(solved[0].high, exact.lam, rtol=1e-14)
    np.testing.assert_allclose(t - solved[1].high, exact.p, rtol=0, atol=1e-15)


def test_dependent_columns_have_no_coefficients() -> None:
    rows = np.random.default_rng(0).standard_normal((4, 8))
    assert least_squares(np.array([*rows, rows[0]]).T, rows[1]) is None
    assert least_squares(np.array([*rows, rows[0] + 1e-17]).T, rows[1]) is None


def test_the_support_is_found_from_any_other() -> None:
    rng = np.random.default_rng(0)
    points, signs, t = rng.standard_normal((30, 10)), rng.choice([-1.0, 1.0], 30), rng.standard_normal(10)
    points[3] = 0
    starts = [np.array(start, np.int64) for start in ([], [0], [1, 2, 4, 5, 6, 7, 8, 9])]
    found = [refine(points, signs, t, start) for start in starts]
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
    assert refine(points, signs, t, np.array([0, 1])) is None  # the same but for the last bit
    rng = np.random.default_rng(0)
    few = rng.standard_normal((9, 5)), np.ones(9), rng.standard_normal(5), np.array([], np.int64)
    assert refine(*few) is not None
    monkeypatch.setattr(refined, "_ROUNDS", 1)
    assert refine(*few) is None
