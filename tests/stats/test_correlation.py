"""Correlations against scipy, by enumeration, by simulation, and at the edges."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import cluster_order, correlate, correlate_pair, correlation_matrix


def test_pearson_is_that_of_scipy() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 20))
    ours, theirs = correlate_pair(x, y, method="pearson"), stats.pearsonr(x, y)
    bounds = theirs.confidence_interval(0.95)
    assert (ours.r, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert (ours.low, ours.high) == pytest.approx((bounds.low, bounds.high))
    assert float(ours) == ours.r


def test_spearman_of_many_is_that_of_scipy_with_bonett_and_wright() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 20))
    ours, theirs = correlate_pair(x, y), stats.spearmanr(x, y)
    assert (ours.r, ours.p_value, ours.p_method) == (
        pytest.approx(theirs.statistic),
        pytest.approx(theirs.pvalue),
        "t",
    )
    half = 1.959964 * math.sqrt((1 + ours.r**2 / 2) / 17)
    assert ours.low == pytest.approx(math.tanh(math.atanh(ours.r) - half), abs=1e-6)
    assert ours.high == pytest.approx(math.tanh(math.atanh(ours.r) + half), abs=1e-6)


def test_spearman_of_few_is_exact() -> None:
    x, y = np.array([1.0, 2.0, 2.0, 5.0, 7.0]), np.array([3.0, 1.0, 4.0, 4.0, 9.0])
    seen = stats.spearmanr(x, y).statistic
    all_r = np.array([stats.spearmanr(x, y[list(order)]).statistic for order in itertools.permutations(range(5))])
    expected = 2 * min(np.mean(all_r >= seen - 1e-12), np.mean(all_r <= seen + 1e-12))
    ours = correlate_pair(x, y)
    assert (ours.p_value, ours.p_method) == (pytest.approx(expected), "exact")
    # Four runs in perfect order: the t approximation says 0, the 24 orders say 2/24.
    assert correlate_pair([1, 2, 3, 4], [10, 20, 30, 50]).p_value == pytest.approx(2 / 24)


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_intervals_cover(method: str) -> None:
    # Fisher's and Bonett & Wright's at n = 15, rho = 0.6; the true Spearman is (6/π) asin(0.3).
    generator = np.random.default_rng(3)
    truth = 0.6 if method == "pearson" else 6 / math.pi * math.asin(0.3)
    inside = 0
    for _ in range(900):
        x, e = generator.normal(size=(2, 15))
        result = correlate_pair(x, 0.6 * x + 0.8 * e, method=method)
        inside += result.low <= truth <= result.high
    assert 0.93 <= inside / 900 <= 0.97


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, 2.0], [2.0, 1.0], "x: 2 values, at least 3"),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "x is the same in all 3 runs"),
        ([1.0, 2.0, 3.0], [0.3, 0.1 + 0.2, 0.3], "y is the same in all 3 runs"),
        ([1.0, 2.0, np.inf], [1.0, 2.0, 3.0], "infinite"),
    ],
)
def test_no_correlation_comes_with_a_reason(x: list[float], y: list[float], reason: str) -> None:
    result = correlate_pair(x, y)
    assert math.isnan(result.r) and math.isnan(result.p_value) and reason in result.reason


def test_bounds_that_do_not_exist() -> None:
    three = correlate_pair([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert three.r == pytest.approx(0.5) and math.isnan(three.low) and "needs four" in three.reason
    perfect = correlate_pair([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0], method="pearson")
    assert perfect.r == pytest.approx(1.0) and math.isnan(perfect.high) and "±1" in perfect.reason


def runs() -> pd.DataFrame:
    generator = np.random.default_rng(5)
    a, b = generator.normal(size=(2, 30))
    noise = generator.normal(size=(3, 30)) * 0.2
    frame = pd.DataFrame({"a": a, "b": b, "near_a": a + noise[0], "against_b": -b + noise[1], "near_b": b + noise[2]})
    return frame.assign(learner="sgd")


def test_the_table_of_pairs() -> None:
    frame = runs()
    frame.loc[3, "b"] = np.nan
    table = correlate(frame)
    assert len(table) == 10 and table.attrs["columns"] == ["a", "b", "near_a", "against_b", "near_b"]
    touched = (table["x"] == "b") | (table["y"] == "b")
    assert set(table.loc[touched, "n"]) == {29} and set(table.loc[touched, "n_missing"]) == {1}
    assert set(table.loc[~touched, "n"]) == {30}
    assert table["p_corrected"].to_numpy() == pytest.approx(stats.false_discovery_control(table["p_value"]))
    one = correlate_pair(frame["a"], frame["near_a"])
    assert table.iloc[1]["r"] == one.r and table.iloc[1]["low"] == one.low


def test_clusters_stand_together() -> None:
    order = cluster_order(correlate(runs()))
    assert sorted(order) == sorted(["a", "b", "near_a", "against_b", "near_b"])
    assert abs(order.index("a") - order.index("near_a")) == 1
    places = sorted(order.index(name) for name in ("b", "against_b", "near_b"))
    assert places[2] - places[0] == 2


def test_a_column_without_correlations_is_ordered_too() -> None:
    frame = runs().assign(flat=1.0)
    table = correlate(frame, ["a", "flat", "near_a"])
    matrix = correlation_matrix(table)
    assert math.isnan(matrix.loc["a", "flat"]) and matrix.loc["a", "a"] == 1.0
    assert matrix.loc["a", "near_a"] == matrix.loc["near_a", "a"] > 0.9
    assert set(cluster_order(table)) == {"a", "flat", "near_a"}
    assert set(table["family_size"]) == {1} and set(table["family_missing"]) == {2}


@pytest.mark.parametrize(
    ("columns", "settings", "words"),
    [
        (["a", "c"], {}, "column 'c' is unknown"),
        (["a"], {}, "two different columns"),
        (["a", "a"], {}, "two different columns"),
        (["a", "learner"], {}, "column 'learner' holds"),
        (["a", "b"], {"method": "kendall"}, "method 'kendall' is unknown"),
        (["a", "b"], {"correction": "none"}, "correction 'none' is unknown"),
    ],
)
def test_settings_that_cannot_be(columns: list[str], settings: dict[str, str], words: str) -> None:
    with pytest.raises(WaterjarError, match=words):
        correlate(runs(), columns, **settings)  # type: ignore[arg-type]
