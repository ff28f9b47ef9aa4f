"""Several groups and metrics in one table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from waterjar.errors import WaterjarError
from waterjar.stats import compare, compare_many, holm, mean_interval

SEEDS = [1, 2, 3, 4]
VALUES = {
    ("ad", "scratch"): [4.0, 5.0, 6.5, 5.5],
    ("ad", "er"): [2.0, 3.5, 4.0, 3.0],
    ("ad", "ewc"): [4.5, 5.0, 6.0, 7.5],
    ("pd", "scratch"): [0.5, 0.6, 0.55, 0.52],
    ("pd", "er"): [0.7, 0.72, 0.71, 0.75],
    ("pd", "ewc"): [0.5, 0.61, 0.57, 0.5],
}


def tidy() -> pd.DataFrame:
    rows = [
        (metric, group, seed, value)
        for (metric, group), values in VALUES.items()
        for seed, value in zip(SEEDS, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["metric", "group", "seed", "value"])


def cell(table: pd.DataFrame, metric: str, group: str) -> pd.Series:
    return table[(table["metric"] == metric) & (table["group"] == group)].iloc[0]


@pytest.mark.parametrize("paired", [True, False])
def test_each_row_is_one_comparison(paired: bool) -> None:
    table = compare_many(tidy(), baseline="scratch", paired=paired)
    assert list(zip(table["metric"], table["group"], strict=True)) == list(VALUES)
    for (metric, group), values in VALUES.items():
        row = cell(table, metric, group)
        interval = mean_interval(values)
        assert (row["mean"], row["low"], row["high"], row["n"]) == (interval.estimate, interval.low, interval.high, 4)
        if group == "scratch":
            assert row["is_baseline"] and math.isnan(row["difference"]) and math.isnan(row["p_value"])
            continue
        expected = compare(values, VALUES[metric, "scratch"], paired=paired)
        assert row["difference"] == expected.difference and row["p_value"] == expected.p_value
        assert (row["difference_low"], row["difference_high"]) == (expected.low, expected.high)
        assert (row["effect_size"], row["effect_low"], row["effect_high"]) == (
            expected.effect_size,
            expected.effect_low,
            expected.effect_high,
        )
        assert row["effect_name"] == ("g_av" if paired else "g_s")
        assert (row["smallest_p"], row["smallest_exact_p"]) == (0.0, expected.smallest_exact_p)


def test_one_family_corrected_once() -> None:
    table = compare_many(tidy(), baseline="scratch")
    tested = table[~table["is_baseline"]]
    assert tested["p_corrected"].tolist() == holm(tested["p_value"]).tolist()
    assert set(table["family"]) == {"all"} and set(table["family_size"]) == {4}
    assert tested["significant"].tolist() == (tested["p_corrected"] <= 0.05).tolist()
    assert not table.loc[table["is_baseline"], "significant"].any()


def test_a_family_per_metric() -> None:
    table = compare_many(tidy(), baseline="scratch", family=["metric"], correction="benjamini_hochberg")
    assert set(table["family"]) == {"metric=ad", "metric=pd"} and set(table["family_size"]) == {2}


def test_the_order_of_rows_does_not_matter() -> None:
    frame = tidy()
    shuffled = frame.sample(frac=1, random_state=3)
    first = compare_many(frame, baseline="scratch").sort_values(["metric", "group"]).reset_index(drop=True)
    second = compare_many(shuffled, baseline="scratch").sort_values(["metric", "group"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(first, second, check_exact=True)
    pd.testing.assert_frame_equal(frame, tidy())


def test_nan_in_one_seed_touches_its_cell_only() -> None:
    frame = tidy()
    frame.loc[(frame["metric"] == "ad") & (frame["group"] == "er") & (frame["seed"] == 2), "value"] = np.nan
    table, before = compare_many(frame, baseline="scratch"), compare_many(tidy(), baseline="scratch")
    row = cell(table, "ad", "er")
    assert (row["n"], row["n_missing"], row["n_compared"]) == (3, 1, 3)
    raw = ["mean", "low", "high", "difference", "p_value", "effect_size"]
    others = ~((table["metric"] == "ad") & (table["group"] == "er"))
    pd.testing.assert_frame_equal(table.loc[others, raw], before.loc[others, raw], check_exact=True)


def test_seeds_without_a_partner_are_counted() -> None:
    frame = tidy()
    frame = frame[~((frame["group"] == "scratch") & (frame["seed"] == 4) & (frame["metric"] == "ad"))]
    row = cell(compare_many(frame, baseline="scratch"), "ad", "er")
    assert (row["n"], row["n_compared"], row["n_unmatched"]) == (4, 3, 1)


def test_a_metric_that_the_baseline_lacks_says_so() -> None:
    frame = tidy()
    frame = frame[~((frame["group"] == "scratch") & (frame["metric"] == "ad"))]
    table = compare_many(frame, baseline="scratch")
    row = cell(table, "ad", "er")
    assert math.isnan(row["p_value"]) and row["reason"] == "baseline 'scratch' has no value of ad"
    assert row["mean"] == np.mean(VALUES["ad", "er"])
    assert not math.isnan(cell(table, "pd", "er")["p_value"])


def test_one_seed_only() -> None:
    frame = tidy()
    table = compare_many(frame[frame["seed"] == 1], baseline="scratch")
    row = cell(table, "ad", "er")
    assert (row["mean"], row["difference"], row["n"]) == (2.0, -2.0, 1)
    assert math.isnan(row["low"]) and math.isnan(row["p_corrected"]) and "one pair of seeds" in row["reason"]
    assert set(table["family_size"]) == {0}


def test_exact_tests_bring_their_floor() -> None:
    table = compare_many(tidy(), baseline="scratch", paired=False, test="permutation")
    assert cell(table, "ad", "er")["smallest_p"] == 2 / 70
    assert "exact over 70" in cell(table, "ad", "er")["note"]


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({}, {"baseline": "scratsh"}, "did you mean 'scratch'"),
        ({}, {"baseline": "scratch", "correction": "hom"}, "did you mean 'holm'"),
        ({}, {"baseline": "scratch", "family": ["seed"]}, "family column 'seed' is unknown"),
        ({"drop": "seed"}, {"baseline": "scratch"}, "column 'seed' is unknown"),
        ({"twice": True}, {"baseline": "scratch"}, "two values of ad for group 'scratch' and seed 1"),
    ],
)
def test_what_cannot_be(change: dict[str, object], settings: dict[str, object], words: str) -> None:
    frame = tidy()
    if "drop" in change:
        frame = frame.drop(columns=["seed"])
    if "twice" in change:
        frame = pd.concat([frame, frame.iloc[:1]])
    with pytest.raises(WaterjarError, match=words):
        compare_many(frame, **settings)  # type: ignore[arg-type]


def test_two_pairs_have_a_p_and_no_star() -> None:
    """Differences 1 and 1.001 have p = 0.0003, from two numbers; with a third pair, or unpaired, there is a star."""
    rows = [("acc", group, seed, value) for group, values in (("a", (0, 0, 0)), ("b", (1, 1.001, 1.002)))
            for seed, value in enumerate(values)]  # fmt: skip
    tidy = pd.DataFrame(rows, columns=["metric", "group", "seed", "value"])
    two = cell(compare_many(tidy[tidy["seed"] < 2], baseline="a"), "acc", "b")
    assert two["p_corrected"] < 0.001 and not two["significant"] and "at least 3 are needed" in two["reason"]
    assert not compare([1, 1.001], [0.0, 0.0], paired=True).significant
    assert cell(compare_many(tidy, baseline="a"), "acc", "b")["significant"]
    assert cell(compare_many(tidy[tidy["seed"] < 2], baseline="a", paired=False), "acc", "b")["significant"]
