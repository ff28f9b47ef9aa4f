"""Correlations against scipy, by enumeration, by simulation, and at the edges."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.stats import (
    cluster_order,
    correlate,
    correlate_pair,
    correlation_matrix,
    detectable_correlation,
    within_groups,
)


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


def grouped(seed: int, sizes: tuple[int, ...] = (4, 5, 3)) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Groups far apart along a falling line, with a rise inside of each."""
    generator = np.random.default_rng(seed)
    labels = [name for name, size in zip("abcdef", sizes, strict=False) for _ in range(size)]
    place = np.array([5.0 * "abcdef".index(label) for label in labels])
    inner = generator.normal(size=len(labels))
    return place + inner, -place + inner + 0.5 * generator.normal(size=len(labels)), labels


def test_within_groups_is_the_ancova_with_one_slope() -> None:
    x, y, groups = grouped(3)
    found = within_groups(x, y, groups)
    dummies = np.array([[label == name for name in "abc"] for label in groups], float)
    with_x = np.column_stack([dummies, x])
    rest = [float(np.linalg.lstsq(design, y, rcond=None)[1][0]) for design in (dummies, with_x)]
    slope = np.linalg.lstsq(with_x, y, rcond=None)[0][-1]
    assert found.r == pytest.approx(np.sign(slope) * math.sqrt(1 - rest[1] / rest[0]))
    free = len(x) - 3 - 1
    f = (rest[0] - rest[1]) / (rest[1] / free)
    assert found.p_value == pytest.approx(stats.f.sf(f, 1, free))
    half = stats.norm.isf(0.025) / math.sqrt(free - 1)
    assert (found.low, found.high) == pytest.approx(
        (math.tanh(math.atanh(found.r) - half), math.tanh(math.atanh(found.r) + half))
    )
    assert found.r > 0.5 > -0.5 > correlate_pair(x, y, method="pearson").r  # pooled it is one of groups


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # pingouin uses what pandas is about to drop
def test_within_groups_is_that_of_pingouin() -> None:
    pingouin = pytest.importorskip("pingouin")
    for seed in range(5):
        x, y, groups = grouped(seed, (4, 5, 3, 6))
        theirs = pingouin.rm_corr(pd.DataFrame({"x": x, "y": y, "s": groups}), x="x", y="y", subject="s").iloc[0]
        ours = within_groups(x, y, groups)
        bounds = theirs["CI95"] if "CI95" in theirs else theirs["CI95%"]
        p = theirs["p_val"] if "p_val" in theirs else theirs["pval"]
        assert (ours.r, ours.p_value) == pytest.approx((theirs["r"], p), rel=1e-9)
        assert (ours.low, ours.high) == pytest.approx(tuple(bounds), abs=0.0051)  # they round to two decimals


def test_within_groups_holds_its_level_where_groups_differ() -> None:
    generator = np.random.default_rng(0)
    groups = [name for name in "abcd" for _ in range(3)]
    p_within, p_pooled = [], []
    for _ in range(600):
        shift = np.repeat(generator.normal(size=(2, 4)) * 3, 3, axis=1)
        x, y = shift + generator.normal(size=(2, 12))
        p_within.append(within_groups(x, y, groups).p_value)
        p_pooled.append(correlate_pair(x, y, method="pearson").p_value)
    assert np.mean(np.array(p_within) <= 0.05) <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 600)
    assert np.mean(np.array(p_pooled) <= 0.05) > 0.2  # which is why


def test_within_groups_at_the_edges() -> None:
    nan = float("nan")
    alone = within_groups([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], ["a", "b", "c"])
    assert math.isnan(alone.r) and "too few to correlate within them" in alone.reason and alone.n == 0
    same = within_groups([1.0, 1.0, 2.0, 2.0, 2.0], [1.0, 3.0, 2.0, 4.0, 5.0], list("aabbb"))
    assert same.reason == "x is the same in all runs of each group"
    missing = within_groups([1.0, 2.0, nan, 4.0, 5.0, 7.0], [2.0, 1.0, 1.0, 5.0, 5.5, 4.0], list("aaabbb"))
    assert (missing.n, missing.n_missing) == (5, 1) and np.isfinite(missing.r)
    exact = within_groups([1, 2, 3, 11, 12, 13], [3, 2, 1, 9, 8, 7], list("aaabbb"))
    assert exact.r == -1.0 and "±1" in exact.reason
    with pytest.raises(WaterjarError, match="one x, one y and one group a run"):
        within_groups([1.0, 2.0], [1.0, 2.0], ["a"])


def test_coupled_pairs_leave_the_family() -> None:
    generator = np.random.default_rng(2)
    table = pd.DataFrame(generator.normal(size=(12, 3)), columns=["a", "b", "c"]).assign(d=lambda t: t["a"] - t["b"])
    plain = correlate(table[["a", "b", "c"]])
    told = correlate(table, coupled=lambda x, y: "d" in (x, y) and "c" not in (x, y), groups=["u", "v"] * 6)
    assert told.loc[told["coupled"], ["x", "y"]].to_numpy().tolist() == [["a", "d"], ["b", "d"]]
    assert told.loc[told["coupled"], "p_corrected"].isna().all() and told["p_value"].notna().all()
    assert set(told["family_size"]) == {4}
    assert told.loc[told["coupled"], "p_within_corrected"].isna().all()
    kept = told[~told["coupled"] & (told["y"] != "d")].reset_index(drop=True)
    assert kept["p_value"].equals(plain["p_value"])


@pytest.mark.parametrize(
    ("method", "n"),
    [("pearson", 9), ("pearson", 12), ("pearson", 30), *(("spearman", n) for n in (5, 6, 7, 8, 12, 30, 31))],
)
def test_the_detectable_correlation_has_its_power_by_simulation(method: str, n: int) -> None:
    rho, trials = detectable_correlation(n, method=method), 2000 if method == "pearson" else 4000
    generator = np.random.default_rng(100 + n)
    # Spearman's of a normal pair is (6/pi) asin(rho/2): take the Pearson's that gives the rank correlation asked for
    linear = rho if method == "pearson" else 2 * math.sin(math.pi * rho / 6)
    cov = [[1.0, linear], [linear, 1.0]]
    x, y = np.moveaxis(generator.multivariate_normal([0.0, 0.0], cov, size=(trials, n)), -1, 0)
    if method == "spearman":
        x, y = stats.rankdata(x, axis=1), stats.rankdata(y, axis=1)
    both = [v - v.mean(1, keepdims=True) for v in (x, y)]
    r = np.prod(both, axis=0).sum(1) / np.sqrt(np.prod([(v**2).sum(1) for v in both], axis=0))
    places, kinds = np.unique(r.round(9), return_index=True)[1], np.unique(r.round(9), return_inverse=True)[1]
    p = np.array([correlate_pair(x[i], y[i], method=method).p_value for i in places])[kinds]  # one of each r
    assert np.mean(p <= 0.05) == pytest.approx(0.8, abs=0.025)


def test_what_few_runs_cannot_show() -> None:
    assert math.isnan(detectable_correlation(3))
    assert math.isnan(detectable_correlation(4, method="spearman"))  # a perfect order has p = 2/24
    assert math.isnan(detectable_correlation(5, method="spearman", alpha=0.01))  # and 2/120
    assert 0.9 < detectable_correlation(4, method="spearman", alpha=0.1) < 1
    assert detectable_correlation(12, method="spearman", power=0.9) > detectable_correlation(12, method="spearman")
    assert detectable_correlation(84) == pytest.approx(0.3, abs=5e-4)  # pwr.r.test(r = 0.3, power = 0.8): n = 84.07
    assert detectable_correlation(28) == pytest.approx(0.5, abs=5e-3)  # pwr.r.test(r = 0.5, power = 0.8): n = 28.25
    with pytest.raises(WaterjarError, match="method 'kendall' is unknown"):
        detectable_correlation(10, method="kendall")
