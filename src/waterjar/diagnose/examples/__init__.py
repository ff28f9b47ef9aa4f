"""Examples: what became of every single sample, evaluation by evaluation.

measure(run)                                  over (repeat, ...) of a run, or (cell, seed, ...) of a study
forgetting_events(correct), first_learned(correct, epochs), area_under_margin(margin), error_consistency(a, b)

A new metric is one new file here: a function of a `History` (one repeat: all examples, all evaluations), of the
`LastAnswers` of all seeds, or of an `AnswerPair` (a seed beside the same seed of the baseline).
"""

from __future__ import annotations

from typing import Literal

import xarray as xr

from waterjar.diagnose.baseline import DEFAULT
from waterjar.diagnose.examples.agreement import Agreement, error_consistency
from waterjar.diagnose.examples.feeds import feeds
from waterjar.diagnose.examples.inputs import AnswerPair, History, LastAnswers
from waterjar.diagnose.examples.kernels import area_under_margin, first_learned, forgetting_events
from waterjar.diagnose.examples.loaded import LoadedCell
from waterjar.diagnose.registry import Family
from waterjar.diagnose.settings import CellName, Names, Share, settings_of
from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.stats.mcnemar import McNemar

__all__ = [
    "FAMILY",
    "Agreement",
    "AnswerPair",
    "History",
    "LastAnswers",
    "area_under_margin",
    "error_consistency",
    "first_learned",
    "forgetting_events",
    "measure",
]


@settings_of("examples")
def measure(
    source: Run | Study,
    *,
    eval_sets: Names | None = None,
    since: Literal["trained", "start", "all"] = "trained",
    learned: Literal["first", "for_good"] = "first",
    aum_over: Literal["task", "all"] = "task",
    mcnemar: McNemar = "mid_p",
    baseline: CellName | None = DEFAULT,
    confidence: Share = 0.95,
) -> xr.Dataset:
    """Every metric of the family. Those per example stand at (repeat, example), and have `<name>_by_set`.

    The one number per seed is over the evaluation sets that are looked at, `judged_sets`; over `train` only where that
    alone is looked at. Examples that were never learned have no forgetting events (`never_reached`) and are left out of
    their mean, and `<name>_n_left_out` counts what is. Where the task of an example was never trained, nothing can be
    said of it (`undefined`), nor of all together. A run that is shorter than the longest of its cell, or is not sealed,
    is `run_ended`. A margin that is NaN makes its example `not_a_number`, an infinite one its area `undefined`.

    Parameters
    ----------
    eval_sets : which sets are looked at. Left out: one of every task, as in continual learning, and `train`.
    since : from when on an evaluation counts for an example: once its own task was `trained` for a while (being wrong
        before is no forgetting, and being right is luck or transfer), from the `start` of that training on, or `all`.
        Joint training is that of every task. With `all`, `first_learned` counts the epochs of the run.
    learned : an example is learned when it is right for the `first` time, or `for_good`: never wrong from then on.
    aum_over : the area under the margin is over evaluations while its own `task` is trained, or over `all` that count.
    mcnemar : `mid_p`, `exact` or `chi2`.
    baseline : a scenario, in which the cell with the same settings is looked for, or a cell's name; None for none.
        Compared are the last answers to the same examples of tasks that both have trained, seed by seed.
    confidence : of the interval of the accuracy over seeds and samples.
    """
    raise AssertionError


FAMILY = Family(
    "examples",
    "Single examples",
    "cell",
    ("examples",),
    {History: ("repeat",), LastAnswers: ("repeat",), AnswerPair: ("repeat",)},
    LoadedCell,
    measure,
    dims=("example", "eval_set"),
    compared=True,
    feeds=feeds,
)
