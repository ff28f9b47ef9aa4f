"""Several groups, several metrics, one tidy table, corrected once over the family that is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from waterjar.errors import WaterjarError, unknown_name
from waterjar.stats.comparisons import Comparison, compare
from waterjar.stats.corrections import METHODS as CORRECTIONS
from waterjar.stats.corrections import correct
from waterjar.stats.intervals import summarise
from waterjar.stats.samples import MIN_PAIRS, Rng, check_between, pair_by_seed

COLUMNS = ("metric", "group", "seed", "value")
_NAN = float("nan")
_ONE = "one seed: a mean has an interval from 2 seeds on"
_ONE_PAIR = "one pair of seeds: an interval and a test take 2 pairs, an effect size and a star 3"
# Columns of the result that come from the comparison, under the names they have there.
_COMPARED = (
    "difference",
    "p_value",
    "effect_size",
    "effect_low",
    "effect_high",
    "effect_name",
    "improvement",
    "improvement_low",
    "improvement_high",
    "test",
    "test_statistic",
    "smallest_p",
    "smallest_exact_p",
)


def compare_many(
    tidy: pd.DataFrame,
    *,
    baseline: str,
    paired: bool = True,
    test: str | None = None,
    correction: str = "holm",
    family: Sequence[str] = (),
    alpha: float = 0.05,
    bounding: Mapping[str, Mapping[str, Any]] | None = None,
    n_resamples: int = 9999,
    rng: Rng = 0,
) -> pd.DataFrame:
    """Compare every group with the baseline on every metric.

    Parameters
    ----------
    tidy:
        Columns metric, group, seed, value; one row per value.
    baseline:
        The group that the others are compared with.
    paired:
        Pair by seed; seeds that only one side has are counted in `n_unmatched`, and the group's own mean keeps them.
    correction, family:
        `holm` or `benjamini_hochberg`, over all tests of the table, or within the values of the columns named
        (`family=["metric"]`: one family per metric).
    bounding:
        Metric -> settings of `mean_interval` for a group's own mean, such as {"acc": {"within": (0, 1)}}; differences
        have t intervals throughout.

    Returns
    -------
    One row per metric and group, in the order of first appearance: metric, group, mean, low, high, interval (how they
    were made), std, n, n_missing, is_baseline; difference to the baseline with difference_low and difference_high,
    n_compared (pairs, or the smaller group), n_unmatched; effect size and probability of improvement with bounds; test,
    p_value, p_corrected, significant (after correction), correction, family, family_size, family_missing; smallest_p,
    smallest_exact_p; reason, note. Rows of the baseline have NaN where a comparison would stand.

    >>> rows = [("acc", group, seed, value + 0.01 * seed)
    ...         for group, value in (("sgd", 0.5), ("er", 0.8)) for seed in (1, 2, 3)]
    >>> table = compare_many(pd.DataFrame(rows, columns=["metric", "group", "seed", "value"]), baseline="sgd")
    >>> table[["group", "mean", "difference", "n"]].round(3).values.tolist()
    [['sgd', 0.52, nan, 3], ['er', 0.82, 0.3, 3]]
    """
    check_between(alpha, 0.0, 1.0, "alpha")
    if correction not in CORRECTIONS:
        raise unknown_name("correction", correction, CORRECTIONS)
    for column in family:
        if column not in ("metric", "group"):
            raise unknown_name("family column", column, ("metric", "group"))
    _check(tidy, baseline)
    rows = []
    for (metric, group), cell in tidy.groupby(["metric", "group"], sort=False):
        own = (bounding or {}).get(str(metric), {})
        summary = summarise(cell["value"], confidence=1 - alpha, **own)
        row: dict[str, Any] = {"metric": metric, "group": group, "mean": summary.mean}
        row["low"], row["high"] = summary.confidence_interval
        row["interval"] = summary.method
        row |= {"std": summary.std, "n": summary.n_seeds, "n_missing": summary.n_missing}
        row["is_baseline"] = group == baseline
        against = tidy[(tidy["metric"] == metric) & (tidy["group"] == baseline)]
        alone = _ONE if summary.n_seeds == 1 else summary.reason
        if group == baseline or against.empty:
            reason = "" if group == baseline else f"baseline '{baseline}' has no value of {metric}"
            row |= _not_compared(reason or alone, summary.note)
        else:
            result, unmatched = _compared(cell, against, paired, test, alpha, n_resamples, rng)
            row |= _columns(result, unmatched, "" if summary.n_seeds == 1 else alone, summary.note)
            row["reason"] = _named(row["reason"], a=group, b=baseline)
        rows.append(row)
    table = correct(pd.DataFrame(rows), family=family, method=correction)
    table["significant"] = significant(table, alpha, paired)
    ends = ["reason", "note"]
    return table[[column for column in table.columns if column not in ends] + ends]


def significant(table: pd.DataFrame, alpha: float, paired: bool) -> pd.Series:
    """Whether a difference may be called so: by its corrected p, and never by two pairs of seeds."""
    enough = table["n_compared"] >= MIN_PAIRS if paired else True
    return (table["p_corrected"] <= alpha) & enough


def _compared(
    cell: pd.DataFrame, against: pd.DataFrame, paired: bool, test: str | None, alpha: float, n_resamples: int, rng: Rng
) -> tuple[Comparison, int]:
    a, b, unmatched = cell["value"].to_numpy(), against["value"].to_numpy(), 0
    if paired:
        pairs = pair_by_seed(a, cell["seed"], b, against["seed"])
        a, b, unmatched = pairs.a, pairs.b, pairs.n_unmatched_a + pairs.n_unmatched_b
    found = compare(a, b, paired=paired, test=test, alpha=alpha, n_resamples=n_resamples, rng=rng)
    nothing = _nothing_in_common(cell, against, paired)
    if paired and not nothing and min(found.n_a, found.n_b) == 1:
        nothing = _ONE_PAIR
    return (replace(found, reason=nothing) if nothing else found), unmatched


def _nothing_in_common(cell: pd.DataFrame, against: pd.DataFrame, paired: bool) -> str:
    """Why there is nothing to compare, in one sentence; empty where there is something."""
    sides = [(one["group"].iloc[0], one["seed"], one.loc[one["value"].notna(), "seed"]) for one in (cell, against)]
    empty = [f"{name} has no value" for name, _, there in sides if there.empty]
    (_, own, there), (_, theirs, others) = sides
    if empty or not paired:
        return " and ".join(empty)
    if not set(own) & set(theirs):
        return no_pairs(*((name, seeds) for name, seeds, _ in sides))
    return "" if set(there) & set(others) else "no pairs: no seed has a value in both"


def no_pairs(*sides: tuple[object, Iterable[object]]) -> str:
    """Why two groups without a common seed are not compared in pairs, and what would change it.

    >>> print(no_pairs(("er", [3, 4]), ("sgd", [1, 2])).partition(" Train")[0])
    no pairs: er has the seeds 3, 4, and sgd has 1, 2.
    """
    (one, own), (other, theirs) = ((name, ", ".join(map(str, seeds))) for name, seeds in sides)
    return (
        f"no pairs: {one} has the seeds {own}, and {other} has {theirs}. Train both with the same seeds, or compare "
        "without pairs: waterjar compare --unpaired, or tests: {paired: false} in the study's analysis"
    )


def _columns(result: Comparison, unmatched: int, *said: str) -> dict[str, Any]:
    fields = result.as_row()
    row = {name: fields[name] for name in _COMPARED}
    row |= {"difference_low": result.low, "difference_high": result.high}
    row |= {"n_compared": min(result.n_a, result.n_b), "n_unmatched": unmatched}
    row["reason"], row["note"] = (
        "; ".join(dict.fromkeys(text for text in (own, other) if text))
        for own, other in zip(said, (result.reason, result.note), strict=True)
    )
    return row


def _named(reason: str, **sides: object) -> str:
    """A reason that speaks of the sides a and b, with their names."""
    parts = [part.partition(": ") for part in reason.split("; ")]
    return "; ".join(f"{sides.get(side, side)}{colon}{text}" for side, colon, text in parts)


def _not_compared(reason: str, note: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COMPARED, _NAN)
    row |= {"effect_name": "", "test": "", "difference_low": _NAN, "difference_high": _NAN}
    return row | {"n_compared": 0, "n_unmatched": 0, "reason": reason, "note": note}


def _check(tidy: pd.DataFrame, baseline: str) -> None:
    for column in COLUMNS:
        if column not in tidy.columns:
            raise unknown_name("column", column, tidy.columns, f"A tidy table has {', '.join(COLUMNS)}")
    if not (tidy["group"] == baseline).any():
        raise unknown_name("baseline", baseline, dict.fromkeys(tidy["group"]))
    twice = tidy[tidy.duplicated(["metric", "group", "seed"])]
    if len(twice):
        first = twice.iloc[0]
        raise WaterjarError(
            f"two values of {first['metric']} for group '{first['group']}' and seed {first['seed']}: "
            "the seed is the unit of replication, so one value each is needed"
        )
