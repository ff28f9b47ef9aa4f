"""Manifold capacity and geometry of labelled points (GLUE), and capacity by simulation.

`manifold_geometry` and `simulated_capacity` take arrays, `measure` takes a run or a study. A new metric is one new file
here: a function under `@metric` that takes a `SnapshotGeometry` and gives a `Result`.

>>> import numpy as np
>>> found = manifold_geometry(np.eye(4), [0, 0, 1, 1], n_t=50)
>>> found["capacity"].n, sorted(found)[:2]
(50, ['axis_alignment', 'axis_alignment_inner'])
"""

from __future__ import annotations

from typing import Annotated

import xarray as xr
from pydantic import Field

from waterjar.diagnose.geometry.capacity import SimulatedCapacity, simulated_capacity
from waterjar.diagnose.geometry.cone import Projections, project
from waterjar.diagnose.geometry.draws import DichotomyKind
from waterjar.diagnose.geometry.feeds import feeds
from waterjar.diagnose.geometry.loaded import RunSnapshots
from waterjar.diagnose.geometry.manifold import Geometry, Inactive, geometry_of, manifold_geometry
from waterjar.diagnose.geometry.points import Manifolds, manifolds
from waterjar.diagnose.geometry.snapshot import DrawKind, ManifoldKind, SnapshotGeometry
from waterjar.diagnose.registry import Family
from waterjar.diagnose.settings import Count, Names, Positive, Whole, settings_of
from waterjar.run.faults import Expected
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "Geometry",
    "Manifolds",
    "Projections",
    "SimulatedCapacity",
    "SnapshotGeometry",
    "geometry_of",
    "manifold_geometry",
    "manifolds",
    "measure",
    "project",
    "simulated_capacity",
]

Draws = Annotated[int, Field(ge=2), Expected("a whole number, at least 2 draws: a mean with an error needs them")]


@settings_of("geometry")
def measure(
    source: Run | Study,
    *,
    n_t: Draws = 100,
    seed: Whole = 0,
    manifolds: ManifoldKind = "class",
    eval_sets: Names | None = None,
    layers: Names | None = None,
    subsamples: Count | None = 50,
    dichotomies: DichotomyKind = "uniform",
    inactive: Inactive = "zero",
    center: bool = False,
    draws: DrawKind = "independent",
    simulate_every: Positive | None = None,
    n_trials: Count = 100,
    bias: bool = False,
) -> xr.Dataset:
    """Capacity, dimension, radius and alignments at every snapshot, over (repeat, snapshot, layer).

    Parameters
    ----------
    n_t : draws of t per snapshot.
    seed : of all randomness. A snapshot and repeat has its own stream: the same bits alone or among others.
    manifolds : `class` pools the eval sets under their labels; `task_class` takes every class of every eval set apart.
    eval_sets : whose samples; by default those called `..._all` or `..._normal`, so that masked and patched copies
        of images do not enter beside them, or all where none is called so.
    layers : which; all that were recorded by default.
    subsamples : points per manifold, drawn once per repeat and the same at every snapshot; None for all.
    dichotomies, inactive, center : see `manifold_geometry`.
    draws : `independent` per snapshot, or `common`: the same t and y at all of them, so that differences over time are
        less noisy.
    simulate_every : also simulated capacity, at snapshots whose total epoch is a multiple of this, and at the last one;
        None for never.
    n_trials, bias : of the simulation.

    Returns
    -------
    Each measure with its standard error over draws (`<name>_se`), `simulated_capacity` with bounds,
    `capacity_relative_error` = |simulated - capacity| / capacity; over (repeat, snapshot, layer, manifold) per manifold
    its dimension, radius, share of inactive draws; `nonunique_share` and `inside_share`, the shares of draws with other
    anchors as good and of those with t inside the cone, `left_out_draws`, how many were not solved, and
    `dropped_directions` and `doubtful_directions`, how many are or may be rounding: see `Geometry`.
    `<name>_final` (repeat): at the last snapshot, the mean over layers.
    """
    raise AssertionError


FAMILY = Family(
    "geometry",
    "Manifold geometry",
    "run",
    ("features", "probe_samples"),
    {SnapshotGeometry: ("repeat", "snapshot", "layer")},
    RunSnapshots,
    measure,
    dims=("manifold",),
    version=7,
    in_pieces=True,
    feeds=feeds,
)
