"""Rigidity: the Einstellung Rigidity Index (AD, PD, SFR_rel), its controls and what they mean together.

Arrays: `adaptation_delay`, `performance_deficit`, `shortcut_reliance`. A study: `measure`. A new metric is one new
file here: a function of a `Pair` under `@metric`, which gives a `Result` over (repeat, *dims).
"""

from __future__ import annotations

from typing import Annotated, Literal

import xarray as xr
from pydantic import AfterValidator, Field

from waterjar.diagnose.baseline import DEFAULT
from waterjar.diagnose.registry import Family
from waterjar.diagnose.rigidity.adaptation import adaptation_delay
from waterjar.diagnose.rigidity.cell import Cell, check_power
from waterjar.diagnose.rigidity.composite import WEIGHTS, rigidity_composite
from waterjar.diagnose.rigidity.curves import first_epoch_at, trailing_mean
from waterjar.diagnose.rigidity.deficit import performance_deficit
from waterjar.diagnose.rigidity.export import export
from waterjar.diagnose.rigidity.feeds import feeds
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.pattern import Bounds, rigidity_pattern
from waterjar.diagnose.rigidity.reliance import shortcut_reliance
from waterjar.diagnose.rigidity.side import EvalSets
from waterjar.diagnose.rigidity.worst_group import worst_group_accuracy
from waterjar.diagnose.settings import CellName, Chance, Count, Share, Whole, each_once, finite, settings_of
from waterjar.run.faults import Expected
from waterjar.run.reader import Run
from waterjar.run.study import Study

__all__ = [
    "FAMILY",
    "Bounds",
    "Pair",
    "adaptation_delay",
    "export",
    "first_epoch_at",
    "measure",
    "performance_deficit",
    "rigidity_composite",
    "rigidity_pattern",
    "shortcut_reliance",
    "trailing_mean",
    "worst_group_accuracy",
]

THRESHOLDS = (0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80)
Threshold = Annotated[float, Field(gt=0.0, le=1.0), Expected("an accuracy in (0, 1]")]
Grid = Annotated[
    tuple[Threshold, ...],
    Field(min_length=1),
    AfterValidator(each_once),
    Expected("accuracies in (0, 1], each once, such as [0.5, 0.6]"),
]
Weights = Annotated[
    tuple[float, float, float], AfterValidator(finite), Expected("three numbers, one each of AD, PD and SFR_rel")
]
Margin = Annotated[float, Field(ge=0.0, le=1.0), Expected("a difference of accuracies in [0, 1]")]


@settings_of("rigidity")
def measure(
    source: Run | Study,
    *,
    threshold: Threshold = 0.6,
    window: Count = 3,
    variable: str = "macro_accuracy",
    checkpoint: Literal["best", "last"] = "best",
    baseline: CellName | None = DEFAULT,
    eval_sets: EvalSets = None,
    thresholds: Grid = THRESHOLDS,
    margin: Margin = 0.05,
    confidence: Share = 0.95,
    power: Share = 0.8,
    chance: Chance = None,
    composite: bool = False,
    weights: Weights = WEIGHTS,
    rng_seed: Whole = 0,
) -> xr.Dataset:
    """The Einstellung Rigidity Index (AD, PD, SFR_rel) with its controls, per seed and over seeds.

    Parameters
    ----------
    threshold, window : of the adaptation delay: the accuracy to reach, by a trailing mean over so many evaluations.
    variable : `macro_accuracy` (all classes compete) or `task_macro_accuracy` (those of the task).
    checkpoint : where final accuracies are taken: `best` T2 validation accuracy, or the `last` evaluation.
    baseline : a scenario, in which the cell with the same settings is looked for, or a cell's name; None for none.
    eval_sets : role -> evaluation set, where they have other names than the laboratory's (see `side.EVAL_SETS`).
    thresholds : the grid of `ad_by_threshold`.
    margin : below it, by upper bounds, deficit and added reliance count as `benign_transfer`; a masked accuracy that is
        above chance by no more is at the floor.
    confidence, power : of intervals, and of the number of seeds that would settle it.
    chance : accuracy of guessing, one number or one per task (that of the last counts). Left out: as annotated, else
        1 / classes of the run; where neither is known (and of task_macro_accuracy) `reliance_share` is
        `chance_unknown`.
    composite, weights : also one signed number, 0.4 AD/budget + 0.4 PD + 0.2 SFR_rel.
    rng_seed : of the bootstrap of the restricted-mean difference, from ten seeds on.

    Returns
    -------
    Dataset over (cell, seed, ...); of one run, which has no baseline, over (repeat, ...). Every number per seed
    `x` also has `x_mean`, `x_std`, `x_low`, `x_high`, `x_n`, and `x_interval`, how its mean is bounded; `pattern` and
    `sentence` say what they show.
    """
    raise AssertionError


FAMILY = Family(
    name="rigidity",
    title="Rigidity: the Einstellung Rigidity Index",
    scope="cell",
    needs=("performance",),
    inputs={Pair: ("repeat",)},
    load=Cell,
    signature=measure,
    dims=("threshold", "group"),
    version=7,
    compared=True,
    check=check_power,
    feeds=feeds,
)
