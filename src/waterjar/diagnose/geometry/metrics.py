"""The measures of manifold geometry, declared: they come out of one calculation, so they stand in one table."""

from __future__ import annotations

import math
from typing import Any

from waterjar.diagnose.geometry.capacity import simulated_capacity
from waterjar.diagnose.geometry.manifold import manifold_geometry
from waterjar.diagnose.geometry.measure import measure
from waterjar.diagnose.registry import Direction, Family, metric

_GLUE = "Chou, Le, Wang & Chung 2025 (GLUE)"
_INF = math.inf
_NEEDS = ("features/<layer>", "probe_samples/label")

_MEASURES: dict[str, tuple[str, str, Direction, tuple[float, float], str]] = {
    "capacity": ("manifold capacity", "P / E|p|^2, p the projection of t on the cone", "higher", (0, _INF), "alpha"),
    "capacity_approx": ("capacity by the formula without utility", "(1 + R^-2) / D", "higher", (0, _INF), ""),
    "dimension": ("effective dimension of the manifolds", "E[b] / P", "lower", (0, _INF), "D"),
    "radius": ("effective radius of the manifolds", "sqrt(E[c] / E[b - c])", "lower", (0, _INF), "R"),
    "utility": ("share of the projection that axes explain", "E[c] / E[a]", "none", (0, 1), ""),
    "center_alignment": ("cosine of centres, mean over pairs", "E cos(S0_mu, S0_nu), mu != nu", "lower", (-1, 1), ""),
    "axis_alignment": ("cosine of axes, mean over pairs", "E cos(S1_mu, S1_nu), mu != nu", "lower", (-1, 1), ""),
    "center_axis_alignment": (
        "cosine of centres and axes, mean over pairs", "E cos(S0_mu, S1_nu), mu != nu", "lower", (-1, 1), "",
    ),
    "center_alignment_inner": (
        "absolute inner product of centres, mean over pairs", "E |S0_mu . S0_nu|, mu != nu", "lower", (0, _INF), "",
    ),
    "axis_alignment_inner": (
        "absolute inner product of axes, mean over pairs", "E |S1_mu . S1_nu|, mu != nu", "lower", (0, _INF), "",
    ),
    "center_axis_alignment_inner": (
        "absolute inner product of centres and axes, mean over pairs", "E |S0_mu . S1_nu|, mu != nu", "lower",
        (0, _INF), "",
    ),
    "inactive_share": ("share of draws in which a manifold has no anchor", "P(sum lam = 0)", "none", (0, 1), ""),
}  # fmt: skip


def _declare(name: str, about: tuple[str, str, Direction, tuple[float, float], str], of: Any) -> None:
    long_name, formula, direction, bounds, symbol = about
    metric(
        name,
        family="geometry",
        long_name=long_name,
        formula=formula,
        direction=direction,
        range=bounds,
        citation=_GLUE,
        needs=_NEEDS,
        summary=f"{name}_final",
        symbol=symbol,
    )(of)


for _name, _about in _MEASURES.items():
    _declare(_name, _about, manifold_geometry)
_declare(
    "simulated_capacity",
    ("capacity by simulation", "P / n*, p_{n*} = 1/2 over random projections to n dimensions", "higher", (0, _INF), ""),
    simulated_capacity,
)
_declare(
    "capacity_relative_error",
    ("distance of simulated capacity from capacity", "|simulated - capacity| / capacity", "lower", (0, _INF), ""),
    simulated_capacity,
)

FAMILY = Family("geometry", "Manifold geometry", "run", ("features", "probe_samples"), measure, version=3)
