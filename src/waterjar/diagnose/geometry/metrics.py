"""The measures of manifold geometry as metrics: they come out of one calculation, so they stand in one table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from waterjar.diagnose.geometry.snapshot import SnapshotGeometry
from waterjar.diagnose.registry import Beside, Direction, metric
from waterjar.diagnose.result import Result

_GLUE = "Chou, Le, Wang & Chung 2025 (GLUE)"
_INF = math.inf
_NEEDS = ("features", "probe_samples/label")


class _Measure(NamedTuple):
    long_name: str
    formula: str
    direction: Direction
    range: tuple[float, float]
    symbol: str = ""
    matters: int = 0
    made_of: tuple[str, ...] = ()


_FACTORS = ("utility", "dimension", "radius")
_MEASURES = {
    "capacity": _Measure(
        "manifold capacity", "P / E|p|^2, p the projection of t on the cone", "higher", (0, _INF), "alpha", 1, _FACTORS
    ),
    "capacity_approx": _Measure(
        "capacity by the formula without utility", "(1 + R^-2) / D", "higher", (0, _INF), made_of=_FACTORS[1:]
    ),
    "dimension": _Measure("effective dimension of the manifolds", "E[b] / P", "lower", (0, _INF), "D", 2, ("E[b]",)),
    "radius": _Measure(
        "effective radius of the manifolds", "sqrt(E[c] / E[b - c])", "lower", (0, _INF), "R", 3, ("E[b]", "E[c]")
    ),
    "utility": _Measure(
        "projection that axes explain, relative to all of it; above 1 where centres work against axes", "E[c] / E[a]",
        "none", (0, _INF), made_of=("E[c]",),
    ),
    "center_alignment": _Measure(
        "cosine of centres, mean over pairs", "E cos(S0_mu, S0_nu), mu != nu", "lower", (-1, 1),
        made_of=("S0 . S0",),
    ),
    "axis_alignment": _Measure(
        "cosine of axes, mean over pairs", "E cos(S1_mu, S1_nu), mu != nu", "lower", (-1, 1), made_of=("S1 . S1",)
    ),
    "center_axis_alignment": _Measure(
        "cosine of centres and axes, mean over pairs", "E cos(S0_mu, S1_nu), mu != nu", "lower", (-1, 1),
        made_of=("S0 . S1",),
    ),
    "center_alignment_inner": _Measure(
        "absolute inner product of centres, mean over pairs", "E |S0_mu . S0_nu|, mu != nu", "lower", (0, _INF),
        made_of=("S0 . S0",),
    ),
    "axis_alignment_inner": _Measure(
        "absolute inner product of axes, mean over pairs", "E |S1_mu . S1_nu|, mu != nu", "lower", (0, _INF),
        made_of=("S1 . S1",),
    ),
    "center_axis_alignment_inner": _Measure(
        "absolute inner product of centres and axes, mean over pairs", "E |S0_mu . S1_nu|, mu != nu", "lower",
        (0, _INF), made_of=("S0 . S1",),
    ),
    "inactive_share": _Measure(
        "share of draws in which a manifold has no anchor", "P(sum lam = 0)", "none", (0, 1)
    ),
}  # fmt: skip
_BESIDE = {
    "capacity": {
        "nonunique_share": Beside(
            long_name="share of draws in which the anchors are not unique",
            attributes={"comment": "capacity is the same for all of them; above 5 % what is made of them is missing"},
        ),
        "inside_share": Beside(
            long_name="share of draws in which the anchors are not unique because t is inside the cone",
            attributes={"comment": "counted in nonunique_share, too"},
        ),
        "left_out_draws": Beside(
            long_name="draws that count in no mean",
            attributes={"comment": "not solved to a KKT residual of 1e-9: above 5 % everything is missing"},
        ),
        "dropped_directions": Beside(
            long_name="directions that only the rounding of the recorded numbers made",
            attributes={"comment": "left out of the points where a draw depends on them"},
        ),
        "doubtful_directions": Beside(
            long_name="directions that may be rounding of the recorded numbers",
            attributes={"comment": "not left out: there is no gap between them and the others"},
        ),
    },
    "dimension": {"manifold_dimension": Beside(("manifold",), "effective dimension of each manifold")},
    "radius": {"manifold_radius": Beside(("manifold",), "effective radius of each manifold")},
    "inactive_share": {
        "manifold_inactive_share": Beside(("manifold",), "share of draws in which the manifold has no anchor")
    },
}


def _declare(name: str, about: _Measure, beside: Mapping[str, Beside]) -> None:
    @metric(
        name,
        family="geometry",
        long_name=about.long_name,
        formula=about.formula,
        direction=about.direction,
        range=about.range,
        citation=_GLUE,
        needs=_NEEDS,
        summary=f"{name}_final",
        symbol=about.symbol,
        matters=about.matters,
        beside=beside,
        made_of=about.made_of,
    )
    def measured(geometry: SnapshotGeometry) -> tuple[Result, dict[str, Result]]:
        more = {
            other: geometry.over_manifolds(other) if item.dims else geometry[other] for other, item in beside.items()
        }
        return geometry[name], more


for _name, _about in _MEASURES.items():
    _declare(_name, _about, _BESIDE.get(_name, {}))


@metric(
    "simulated_capacity",
    family="geometry",
    long_name="capacity by simulation",
    formula="P / n*, p_{n*} = 1/2 over random projections to n dimensions",
    direction="higher",
    range=(0, _INF),
    citation=_GLUE,
    version=2,
    needs=_NEEDS,
    summary="simulated_capacity_final",
    beside={
        "simulated_capacity_low": Beside(long_name="lower end of the 95 % interval of simulated capacity over trials"),
        "simulated_capacity_high": Beside(long_name="upper end of the 95 % interval of simulated capacity over trials"),
    },
)
def _simulated_capacity(geometry: SnapshotGeometry) -> tuple[Result, dict[str, Result]]:
    bounds = {f"simulated_{name}": geometry.simulated[name] for name in ("capacity_low", "capacity_high")}
    return geometry.simulated["capacity"], bounds


@metric(
    "capacity_relative_error",
    family="geometry",
    long_name="distance of simulated capacity from capacity",
    formula="|simulated - capacity| / capacity",
    direction="lower",
    range=(0, _INF),
    citation=_GLUE,
    version=2,
    needs=_NEEDS,
    summary="capacity_relative_error_final",
    made_of=("capacity", "simulated_capacity"),
)
def _capacity_relative_error(geometry: SnapshotGeometry) -> Result:
    simulated, capacity = geometry.simulated["capacity"], geometry["capacity"]
    for one in (simulated, capacity):
        if one.is_missing:
            return Result.missing(one.reason, one.note)
    return Result(abs(simulated.value - capacity.value) / capacity.value, n=simulated.n)
