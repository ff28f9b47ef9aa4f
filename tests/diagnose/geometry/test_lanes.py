"""Four numbers at a time: each operation against numpy, in a function compiled here."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest

from waterjar.diagnose.geometry.solver.lanes import WIDTH, add, lane, load, pack, product, scale, store, zero


@numba.njit
def every(given: Any, out: Any, row: int, column: int, r: float) -> float:
    x, y = load(given, row, column), load(given, row + 1, column)
    store(out, 0, 1, x)
    store(out, 1, 0, add(r, x, y))
    store(out, 2, 0, scale(r, x))
    store(out, 3, 0, product(x, y, x))
    store(out, 4, 0, pack(lane(x, 3), lane(x, 2), r, lane(y, 0)))
    store(out, 5, 1, zero())
    return lane(x, column)


def test_operations() -> None:
    given = np.random.default_rng(0).standard_normal((5, 9))
    out = np.full((6, 5), 7.0)
    x, y, r = given[2, 3 : 3 + WIDTH], given[3, 3 : 3 + WIDTH], 0.3
    assert every(given, out, 2, 3, r) == x[3]
    assert (out[0] == [7, *x]).all()
    np.testing.assert_allclose(out[1, :4], r * x + y, rtol=1e-14)
    assert (out[2, :4] == r * x).all() and (out[4, :4] == [x[3], x[2], r, y[0]]).all()
    np.testing.assert_allclose(out[3, :4], x * y + x, rtol=1e-14)
    assert (out[5] == [7, 0, 0, 0, 0]).all() and (out[1:5, 4] == 7).all()


def test_products_are_added_without_rounding_in_between() -> None:
    r = 1 + 2.0**-30
    given = np.array([[r] * 4, [-1.0] * 4])
    every(given, out := np.zeros((6, 5)), 0, 0, r)
    assert (out[1, :4] == float(Fraction(r) ** 2 - 1)).all() and float(Fraction(r) ** 2 - 1) != r * r - 1


def test_other_arrays_are_refused() -> None:
    with pytest.raises(numba.TypingError):
        every(np.zeros((4, 9)).T, np.zeros((6, 5)), 0, 0, 1.0)
    with pytest.raises(numba.TypingError):
        every(np.zeros((4, 9), np.float32), np.zeros((6, 5)), 0, 0, 1.0)
