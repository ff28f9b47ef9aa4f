"""Collectives: is it more than its parts, and which part does what?

measure(run)                                  over (repeat, snapshot, ...) of a run, or (cell, seed, ...) of a study
history(measure(run))                         emergence, collective_acc, individual_accs by snapshot: the seed's keys
emergence_ratio(collective_right, stream_right), routing_entropy(weights), shapley_values(values, n), ...      of arrays

A new metric is one new file here: a function of `StreamOutputs`, `Routing`, `Fingerprints`, `Affinities` or
`Coalitions` (one snapshot of one repeat each), or of a `Course` (one repeat: numbers over its snapshots).
"""

from __future__ import annotations

from typing import Literal

import xarray as xr

from waterjar.diagnose.baseline import DEFAULT
from waterjar.diagnose.collective._ambiguity import ambiguity
from waterjar.diagnose.collective._deep_ensemble_equivalent import deep_ensemble_equivalent
from waterjar.diagnose.collective._disagreement import disagreement
from waterjar.diagnose.collective._disagreement_error_ratio import disagreement_error_ratio
from waterjar.diagnose.collective._ece import expected_calibration_error
from waterjar.diagnose.collective._ensemble_improvement_rate import ensemble_improvement_rate
from waterjar.diagnose.collective._fingerprint_diversity import fingerprint_diversity, fingerprint_similarity
from waterjar.diagnose.collective._load_imbalance import load_imbalance
from waterjar.diagnose.collective._route_information import class_information, input_information
from waterjar.diagnose.collective._routing_entropy import routing_entropy
from waterjar.diagnose.collective._routing_overlap import routing_overlap
from waterjar.diagnose.collective.best import emergence_ratio, error_reduction
from waterjar.diagnose.collective.calibration import calibrated_nll, fit_temperature, negative_log_likelihood
from waterjar.diagnose.collective.feeds import feeds
from waterjar.diagnose.collective.history import history
from waterjar.diagnose.collective.inputs import (
    Affinities,
    Coalitions,
    Course,
    Fingerprints,
    Routing,
    StreamOutputs,
)
from waterjar.diagnose.collective.loaded import LoadedCell
from waterjar.diagnose.collective.seeds import ensemble_of_seeds
from waterjar.diagnose.collective.shapley import shapley_interactions, shapley_values
from waterjar.diagnose.collective.utilisation import anchor_entropy, anchor_utilisation, dead_anchors
from waterjar.diagnose.registry import Family
from waterjar.diagnose.settings import CellName, Count, Names, Positive, Share, Whole, settings_of
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "Affinities",
    "Coalitions",
    "Course",
    "Fingerprints",
    "Routing",
    "StreamOutputs",
    "ambiguity",
    "anchor_entropy",
    "anchor_utilisation",
    "calibrated_nll",
    "class_information",
    "dead_anchors",
    "deep_ensemble_equivalent",
    "disagreement",
    "disagreement_error_ratio",
    "emergence_ratio",
    "ensemble_improvement_rate",
    "ensemble_of_seeds",
    "error_reduction",
    "expected_calibration_error",
    "fingerprint_diversity",
    "fingerprint_similarity",
    "fit_temperature",
    "history",
    "input_information",
    "load_imbalance",
    "measure",
    "negative_log_likelihood",
    "routing_entropy",
    "routing_overlap",
    "shapley_interactions",
    "shapley_values",
]


@settings_of("collective")
def measure(
    source: Run | Study,
    *,
    test: Names | None = None,
    validation: str | None = None,
    probe_on: str | None = None,
    rule: Literal["auto", "mean_probability", "mean_logit", "vote"] = "auto",
    probe_ridge: Positive = 0.01,
    resamples: Count = 1000,
    confidence: Share = 0.95,
    resampling_seed: Whole = 0,
    shapley_samples: Count = 100,
    baseline: CellName | None = DEFAULT,
) -> xr.Dataset:
    """Every metric at every snapshot; `<name>_final` (repeat) for tables, `<name>_initial` before any training.

    `<name>_low` and `_high` beside a metric bound it over samples: they speak of this network. The spread over seeds,
    which tables and tests use, speaks of the method. A stream whose logits are NaN is passed over, and
    `collective_remarks` says so. `_initial` needs a snapshot at epoch 0.

    Parameters
    ----------
    test : the sets that are scored, stacked. Left out: all but `validation` and `train`; of a task with several sets
        the one called `..._all` or `..._all_normal`, whose parts the others are. Where there is no such set,
        `validation` is scored, and without that `train`: then `collective_remarks` says so.
    validation : the set on which the best stream is chosen and the temperature fitted. Left out: one called val, valid
        or validation; where there is none, the best stream is chosen anew in each resample, on the samples that it left
        out, and the temperature is fitted on one half of the samples and scored on the other.
    probe_on : the set on which linear probes are trained. Left out: train, else `validation`, else all scored samples
        but the one that is asked.
    rule : how outputs of streams make those of the collective: `auto` is the rule that reproduces the recorded ones, if
        one does. It makes the collective where none was recorded, and coalitions of streams; one that does not
        reproduce recorded logits of the collective makes no coalitions.
    probe_ridge : penalty of the linear probes.
    resamples : bootstrap resamples of the samples.
    confidence : of all intervals.
    resampling_seed : of resamples, halves and orders.
    shapley_samples : orders of streams that Shapley values are made of, where there are more than 8 streams.
    baseline : the control: a scenario, in which the cell with the same settings is looked for, or a cell's name; None
        for none. Its streams are the deep ensemble of `deep_ensemble_equivalent`.
    """
    raise AssertionError


FAMILY = Family(
    "collective",
    "Collectives",
    "cell",
    ("streams",),
    {
        StreamOutputs: ("repeat", "snapshot"),
        Routing: ("repeat", "snapshot"),
        Fingerprints: ("repeat", "snapshot"),
        Affinities: ("repeat", "snapshot"),
        Coalitions: ("repeat", "snapshot"),
        Course: ("repeat",),
    },
    LoadedCell,
    measure,
    feeds=feeds,
    dims=("stream", "other_stream", "anchor", "absence", "target"),
    compared=True,
)
