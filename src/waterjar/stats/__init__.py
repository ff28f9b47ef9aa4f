"""Statistics over seeds: arrays in, results out, and honest about what few seeds can show.

The unit of replication is the seed. NaN is a missing seed: left out, and counted in the result. Every result is a
frozen dataclass with `as_row()`; tables are tidy pandas DataFrames. Parts of scipy are reached as `scipy.stats`, so
that the second they take is spent when one is first used.
"""

from __future__ import annotations

from waterjar.stats.comparisons import Comparison, compare, smallest_exact_p
from waterjar.stats.corrections import benjamini_hochberg, correct, holm
from waterjar.stats.correlation import (
    Correlation,
    cluster_order,
    correlate,
    correlate_pair,
    correlation_matrix,
    within_groups,
)
from waterjar.stats.crossed import CrossedInterval, crossed_interval
from waterjar.stats.effects import hedges_g, probability_of_improvement
from waterjar.stats.equivalence import Equivalence, tost
from waterjar.stats.interquartile import interquartile_mean
from waterjar.stats.intervals import Interval, Summary, mean_interval, summarise
from waterjar.stats.mcnemar import mcnemar_p
from waterjar.stats.power import SeedsNeeded, detectable_correlation, detectable_difference, power_of, seeds_needed
from waterjar.stats.samples import Pairs, pair_by_seed
from waterjar.stats.shares import mean_share_interval, paired_share_difference, share_interval
from waterjar.stats.survival import (
    RestrictedMean,
    RestrictedMeanDifference,
    kaplan_meier,
    restricted_mean,
    restricted_mean_difference,
)
from waterjar.stats.table import compare_many

__all__ = [
    "Comparison",
    "Correlation",
    "CrossedInterval",
    "Equivalence",
    "Interval",
    "Pairs",
    "RestrictedMean",
    "RestrictedMeanDifference",
    "SeedsNeeded",
    "Summary",
    "benjamini_hochberg",
    "cluster_order",
    "compare",
    "compare_many",
    "correct",
    "correlate",
    "correlate_pair",
    "correlation_matrix",
    "crossed_interval",
    "detectable_correlation",
    "detectable_difference",
    "hedges_g",
    "holm",
    "interquartile_mean",
    "kaplan_meier",
    "mcnemar_p",
    "mean_interval",
    "mean_share_interval",
    "pair_by_seed",
    "paired_share_difference",
    "power_of",
    "probability_of_improvement",
    "restricted_mean",
    "restricted_mean_difference",
    "seeds_needed",
    "share_interval",
    "smallest_exact_p",
    "summarise",
    "tost",
    "within_groups",
]
