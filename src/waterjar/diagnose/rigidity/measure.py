"""The rigidity of every cell of a study: each beside its baseline, seed by seed, then over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose import labelled
from waterjar.diagnose.registry import families
from waterjar.diagnose.rigidity.baseline import DEFAULT, find_baselines
from waterjar.diagnose.rigidity.composite import WEIGHTS
from waterjar.diagnose.rigidity.injection import COUNT, patched_images
from waterjar.diagnose.rigidity.judgement import judge
from waterjar.diagnose.rigidity.pair import THRESHOLDS, Pair, Rules, make_pair
from waterjar.diagnose.rigidity.settings import checked
from waterjar.diagnose.rigidity.side import Side, full_eval_sets, read_side
from waterjar.diagnose.rigidity.summary import summary
from waterjar.errors import WaterjarError
from waterjar.run.reader import Run
from waterjar.run.study import Study, method_of

Variables = dict[str, xr.Variable]

WORDS = {
    "baseline": "name of the cell that this one is compared with; empty for none",
    "baseline_note": "what is to be said about that choice",
    "ad_judged_by": "variable whose interval tells the sign of AD: ad, or ad_restricted where a seed is censored",
    "pattern": "pattern of (AD, PD, SFR_rel), each sign by an interval clear of 0",
    "sentence": "what the numbers say",
}


def measure(
    source: Run | Study,
    *,
    threshold: float = 0.6,
    window: int = 3,
    variable: str = "macro_accuracy",
    checkpoint: str = "best",
    baseline: str | None = DEFAULT,
    eval_sets: Mapping[str, str] | None = None,
    thresholds: Sequence[float] = THRESHOLDS,
    margin: float = 0.05,
    confidence: float = 0.95,
    power: float = 0.8,
    composite: bool = False,
    weights: Sequence[float] = WEIGHTS,
    rng_seed: int = 0,
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
    margin : below it, by upper bounds, deficit and added reliance count as `benign_transfer`.
    confidence, power : of intervals, and of the number of seeds that would settle it.
    composite, weights : also one signed number, 0.4 AD/budget + 0.4 PD + 0.2 SFR_rel.
    rng_seed : of the bootstrap of the restricted-mean difference.

    Returns
    -------
    Dataset over (cell, seed, ...); of one run, which has no baseline, over (repeat, ...). Every number per seed
    `x` also has `x_mean`, `x_std`, `x_low`, `x_high`, `x_n`; `pattern` and `sentence` say what they show.
    """
    given = {name: value for name, value in locals().items() if name != "source"}  # before there are other names
    if not isinstance(source, Run | Study):
        raise WaterjarError(f"{source!r} is neither a run nor a study: open it with open_run or open_study")
    settings = checked(given)
    rules = Rules(
        threshold=settings["threshold"],
        window=settings["window"],
        checkpoint=settings["checkpoint"],
        thresholds=tuple(settings["thresholds"]),
        confidence=settings["confidence"],
        weights=tuple(settings["weights"]) if settings["composite"] else None,
        rng_seed=settings["rng_seed"],
        margin=settings["margin"],
        power=settings["power"],
    )
    how = {
        "variable": settings["variable"],
        "eval_sets": full_eval_sets(settings["eval_sets"]),
        "checkpoint": settings["checkpoint"],
    }
    if isinstance(source, Run):
        result = _measure_run(source, rules, how)
    else:
        result = _measure_study(source, settings["baseline"], rules, how)
    return labelled.stamp(result, families()["rigidity"], settings, source)


def _measure_run(run: Run, rules: Rules, how: Mapping[str, Any]) -> xr.Dataset:
    if "performance" not in run.groups:
        raise WaterjarError(f"{run.path} has no group 'performance': it was not recorded")
    name = method_of(run.config) or run.path.name
    side = read_side(run.load("performance"), name, **how)
    events = run.load("events") if "events" in run.groups else None
    patched = patched_images(events, run.config, side.seeds, name)
    pair = make_pair(side, None, rules)
    note = "a single run has no baseline: measure the study"
    found = measure_pair(pair, note=note, is_baseline=False)
    result = xr.Dataset(found | patched, _repeats(side))
    return result.assign_attrs(shortcut_injected=_injected([patched]))


def _measure_study(study: Study, baseline: str | None, rules: Rules, how: Mapping[str, Any]) -> xr.Dataset:
    names, configs = study.cell_names, {cell: entries[0].config for cell, entries in study.cells.items()}
    recorded = study.load("performance")
    events = study.load("events") if any("events" in run.groups for run in study) else {}
    sides: dict[str, Side] = {}
    patched: dict[str, Variables] = {}
    for cell, dataset in recorded.items():
        sides[cell] = read_side(dataset, names[cell], **how)
        patched[cell] = patched_images(events.get(cell), configs[cell], sides[cell].seeds, names[cell])
    of_cell, notes = find_baselines(study, baseline)
    parts = {}
    for cell, side in sides.items():
        other = of_cell[cell]
        pair = make_pair(side, sides.get(other) if other is not None else None, rules)
        found = measure_pair(pair, note=notes.get(cell, ""), is_baseline=other == cell)
        parts[cell] = patched[cell] | found
    result = labelled.side_by_side(
        {cell: xr.Dataset(part, _repeats(sides[cell])) for cell, part in parts.items()}, study
    )
    return result.assign_attrs(shortcut_injected=_injected(list(patched.values())))


def _repeats(side: Side) -> dict[str, Any]:
    return {"repeat": np.arange(side.seeds.size), "seed": ("repeat", side.seeds)}


def _injected(patched: list[Variables]) -> str:
    counts = np.concatenate([part[COUNT].values for part in patched])
    told = int(np.isfinite(counts).sum())
    if told == counts.size:
        return "patched training images were counted in every run"
    return (
        f"patched training images were counted in {told} of {counts.size} runs; of the others it is unknown whether "
        "the shortcut was there"
    )


def measure_pair(pair: Pair, *, note: str, is_baseline: bool) -> Variables:
    """Every metric of one cell, over (repeat, ...), and what they come to over seeds."""
    found = _checkpoint(pair)
    for metric in families()["rigidity"].metrics.values():
        made: Variables = metric.compute(pair)
        found |= made
        if metric.scalar in made:
            values = made[metric.scalar].values
            reasons = made.get(metric.scalar + labelled.REASON)
            codes = np.zeros(values.shape, np.uint8) if reasons is None else reasons.values
            found |= summary(metric.scalar, values, codes, pair.rules.confidence, metric.units)
    about = {"baseline": pair.baseline.name if pair.baseline is not None else "", "baseline_note": note}
    judged, said = judge(pair, found, is_baseline)
    about |= said
    return (
        found
        | judged
        | {key: xr.Variable([], np.array(text, object), {"long_name": WORDS[key]}) for key, text in about.items()}
    )


def _checkpoint(pair: Pair) -> Variables:
    """Which evaluation the final accuracies are from, and how long the learner was trained."""
    there = pair.learner_codes == 0
    rows = np.where(there, pair.learner_rows, 0)
    steps = np.where(there, pair.learner.steps[rows], np.nan).astype(np.float64)
    epochs = np.where(there, pair.learner.epochs[rows], np.nan)
    about = {"comment": f"rule: {pair.rules.checkpoint}"}
    budget = np.array(pair.budget if np.isfinite(pair.budget) else 0.0)
    return {
        **labelled.variable(
            "checkpoint_step", ["repeat"], steps, pair.learner_codes, {"long_name": "step of the checkpoint", **about}
        ),
        **labelled.variable(
            "checkpoint_epoch",
            ["repeat"],
            epochs,
            pair.learner_codes,
            {"long_name": "effective epoch of the checkpoint", "units": "epoch", **about},
        ),
        "budget": xr.Variable([], budget, {"long_name": "effective epochs, of the shorter side", "units": "epoch"}),
    }
