"""The range that is declared of utility is the one it has."""

from __future__ import annotations

import math

import numpy as np

from waterjar.diagnose.geometry import manifold_geometry
from waterjar.diagnose.registry import find_metric


def test_it_may_exceed_1() -> None:
    """E[c] / E[a], two means that are not negative: single points that work against their centres give more than 1."""
    rng = np.random.default_rng(0)
    found = [
        float(manifold_geometry(rng.normal(size=(4, 6)), np.arange(4), n_t=100)["utility"].value) for _ in range(10)
    ]
    assert min(found) >= 0 and max(found) > 1
    assert find_metric("utility").range == (0, math.inf)
