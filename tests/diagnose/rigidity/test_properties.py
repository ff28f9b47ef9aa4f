"""What holds for any study: seeds in any order, holes, and inputs left as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diagnose.rigidity.einstellung_runs import SETS, in_memory, measured_in_memory
from waterjar.diagnose.registry import families

SEEDS = [4, 8, 15, 16]
EPOCHS = [0.0, 1.0, 2.0, 3.0, 4.0]
SHAPE = (len(EPOCHS), len(SETS), len(SEEDS))
ACCURACIES = arrays(np.float64, SHAPE, elements=st.floats(0, 1, width=16))
FEW = settings(max_examples=15, deadline=None)


def cell_of(values: np.ndarray[Any, Any]) -> xr.Dataset:
    return in_memory({name: values[:, i] for i, name in enumerate(SETS)}, SEEDS, EPOCHS)


def measured(own: xr.Dataset, other: xr.Dataset) -> xr.Dataset:
    found = measured_in_memory(own, other, ("learner", "base"), threshold=0.5, window=2)
    return found.swap_dims(repeat="seed").drop_vars("repeat")


@FEW
@given(ACCURACIES, ACCURACIES, st.permutations(range(len(SEEDS))), st.permutations(range(len(SEEDS))))
def test_the_order_of_seeds_changes_nothing(
    own: np.ndarray[Any, Any], other: np.ndarray[Any, Any], one: list[int], two: list[int]
) -> None:
    plain = measured(cell_of(own), cell_of(other))
    turned = measured(cell_of(own).isel(repeat=one), cell_of(other).isel(repeat=two))
    xr.testing.assert_identical(plain, turned.sel(seed=SEEDS))


@FEW
@given(ACCURACIES, ACCURACIES, st.integers(0, 3), st.integers(0, 4), st.integers(0, len(SETS) - 1), st.booleans())
def test_a_hole_in_one_seed_touches_that_seed_only(
    own: np.ndarray[Any, Any], other: np.ndarray[Any, Any], seed: int, epoch: int, which: int, in_baseline: bool
) -> None:
    plain = measured(cell_of(own), cell_of(other))
    (other if in_baseline else own)[epoch, which, seed] = np.nan
    holed = measured(cell_of(own), cell_of(other))
    rest = [s for i, s in enumerate(SEEDS) if i != seed]
    for metric in families()["rigidity"].metrics.values():
        if metric.scalar in plain and metric.name != "ad_restricted":
            before, after = plain[metric.scalar].sel(seed=rest), holed[metric.scalar].sel(seed=rest)
            np.testing.assert_array_equal(before.values, after.values, err_msg=metric.name)


@FEW
@given(ACCURACIES, ACCURACIES)
def test_nothing_is_mutated_and_ranges_hold(own: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> None:
    one, two = cell_of(own), cell_of(other)
    copies = one.copy(deep=True), two.copy(deep=True)
    result = measured(one, two)
    xr.testing.assert_identical(one, copies[0])
    xr.testing.assert_identical(two, copies[1])
    for metric in families()["rigidity"].metrics.values():
        if metric.scalar in result:
            values = result[metric.scalar].values
            known = values[~np.isnan(values)]
            assert ((known >= metric.range[0]) & (known <= metric.range[1])).all(), metric.name


@FEW
@given(ACCURACIES)
def test_a_cell_beside_itself_is_no_different(own: np.ndarray[Any, Any]) -> None:
    result = measured(cell_of(own), cell_of(own))
    for name in ("ad", "pd", "sfr_rel", "ad_over_thresholds"):
        values = result[name].values
        assert (values[~np.isnan(values)] == 0).all(), name
    assert np.isnan(result["ad"].values).sum() == int(result["ad_n_censored_learner"])


@FEW
@given(ACCURACIES, ACCURACIES)
def test_the_restricted_delay_is_the_delay_where_nothing_is_censored(
    own: np.ndarray[Any, Any], other: np.ndarray[Any, Any]
) -> None:
    result = measured(cell_of(own), cell_of(other))
    there = ~np.isnan(result["ad"].values)
    np.testing.assert_array_equal(result["ad"].values[there], result["ad_restricted"].values[there])
    if there.all():
        assert float(result["ad_low"]) == pytest.approx(float(result["ad_restricted_low"]), nan_ok=True)
