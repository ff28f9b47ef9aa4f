"""Standard errors against derivatives taken by differences: what a little more weight of one draw does to a measure."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from diagnose.geometry.test_manifold import measured, relu_points
from waterjar.diagnose.geometry import cone, manifold_geometry, manifolds
from waterjar.diagnose.geometry import points as points_module
from waterjar.diagnose.geometry.draws import dichotomies, directions
from waterjar.diagnose.geometry.estimates import SCALARS
from waterjar.diagnose.geometry.manifold import geometry_of

Floats = NDArray[np.float64]
STEP = 1e-5
JACKKNIFE = ("center_alignment", "center_alignment_inner")  # one draw left out: no derivative


def anchors_of(found: cone.Projections) -> tuple[Floats, NDArray[np.bool_]]:
    """(draw, manifold, dimension), zero where there is none, and (draw, manifold) where there is one."""
    lam = np.abs(found.weights()) / found.of.norms
    share = np.stack([lam * (found.of.owner == m) for m in range(found.of.count)], axis=1)
    total = share.sum(axis=2, keepdims=True)
    share = np.divide(share, total, out=np.zeros_like(share), where=total > 0)
    return share @ (found.of.units * found.of.norms[:, None]), total[:, :, 0] > 0


def weighted(s: Floats, used: NDArray[np.bool_], active: NDArray[np.bool_], a: Floats, t: Floats, w: Floats) -> Floats:
    """Measures in which draw q counts w_q times, in S0 as in all means over draws; in the order of NAMES."""
    counts = w @ used
    s0 = np.einsum("q,qmd->md", w, s * used[:, :, None]) / counts[:, None]
    b, c, aligned = np.zeros(len(w)), np.zeros(len(w)), np.zeros((4, len(w)))
    for q in range(len(w)):
        rows = np.flatnonzero(used[q])
        s1, center = s[q, rows] - s0[rows], s0[rows]
        v = s1 @ t[q]
        b[q] = v @ np.linalg.pinv(s1 @ s1.T) @ v
        c[q] = v @ np.linalg.pinv(s1 @ s1.T + center @ center.T) @ v
        unit, unit_center = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (s1, center))
        off = ~np.eye(len(rows), dtype=bool)
        matrices = unit @ unit.T, unit_center @ unit.T, np.abs(s1 @ s1.T), np.abs(center @ s1.T)
        aligned[:, q] = [matrix[off].mean() for matrix in matrices]
    n, per_draw = w.sum(), used.sum(axis=1)
    means = aligned @ w / n
    numbers = [len(s0) * n / (w @ a), (w @ per_draw) / (w @ c), (w @ b) / (w @ per_draw), (w @ c) / (w @ a)]
    return np.array([*numbers, np.sqrt((w @ c) / (w @ (b - c))), 1 - (w @ active.mean(axis=1)) / n, *means])


NAMES = (
    "capacity",
    "capacity_approx",
    "dimension",
    "utility",
    "radius",
    "inactive_share",
    "axis_alignment",
    "center_axis_alignment",
    "axis_alignment_inner",
    "center_axis_alignment_inner",
)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("inactive", ["zero", "active_only"])
def test_errors_are_those_of_derivatives(inactive: str, paired: bool) -> None:
    assert {*NAMES, *JACKKNIFE} == set(SCALARS)
    points, labels = relu_points(manifolds=4, size=5, dimension=12)
    n = 24
    t, y = directions(n, 12, 5), dichotomies("uniform", n, 4, 5)
    found = cone.project(manifolds(points, labels), t, y, margin=True, anchors=True)
    told = geometry_of(found, inactive=inactive, paired=paired)  # type: ignore[arg-type]
    s, active = anchors_of(found)
    assert not active.all() and (active.sum(axis=1) > 1).all()
    used = active if inactive == "active_only" else np.ones_like(active)
    given = s, used, active, found.square, t
    one = np.ones(n)
    np.testing.assert_allclose([float(told[name]) for name in NAMES], weighted(*given, one), rtol=1e-9)
    influence = np.empty((len(NAMES), n))
    for q in range(n):
        up, down = (weighted(*given, one + sign * STEP * np.eye(n)[q]) for sign in (1, -1))
        influence[:, q] = n * (up - down) / (2 * STEP)
    if paired:
        influence = influence.reshape(len(NAMES), -1, 2).mean(axis=2)
    count = influence.shape[1]
    expected = np.sqrt((influence**2).sum(axis=1) / (count * (count - 1)))
    np.testing.assert_allclose([told[name].standard_error for name in NAMES], expected, rtol=1e-6)


@pytest.mark.parametrize("inactive", ["zero", "active_only", "support"])
def test_errors_without_a_gram_matrix(inactive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points, labels = relu_points(manifolds=3, size=7)  # 21 points: not a multiple of four
    expected = manifold_geometry(points, labels, n_t=20, inactive=inactive)  # type: ignore[arg-type]
    monkeypatch.setattr(points_module, "GRAM_POINTS", 0)
    found = manifold_geometry(points, labels, n_t=20, inactive=inactive)  # type: ignore[arg-type]
    for name in SCALARS:
        np.testing.assert_allclose(
            found[name].standard_error, expected[name].standard_error, rtol=1e-9, atol=1e-13, err_msg=name
        )


def test_centres_are_left_out_one_draw_at_a_time() -> None:
    points, labels = relu_points(manifolds=4, size=5, dimension=12)
    n = 15
    t, y = directions(n, 12, 2), dichotomies("uniform", n, 4, 2)
    told = measured(points, labels, t, y)
    without = [np.delete(np.arange(n), q) for q in range(n)]
    for name in JACKKNIFE:
        values = [float(measured(points, labels, t[rest], y[rest])[name]) for rest in without]
        expected = np.sqrt((n - 1) / n * ((values - np.mean(values)) ** 2).sum())
        np.testing.assert_allclose(told[name].standard_error, expected, rtol=1e-9)
