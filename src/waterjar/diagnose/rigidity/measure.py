"""The rigidity of every cell of a study: each beside its baseline, seed by seed, then over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose import labelled
from waterjar.diagnose.registry import families
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.diagnose.rigidity.baseline import DEFAULT, find_baselines
from waterjar.diagnose.rigidity.composite import WEIGHTS
from waterjar.diagnose.rigidity.curves import check_threshold, trailing_mean
from waterjar.diagnose.rigidity.injection import COUNT, patched_images
from waterjar.diagnose.rigidity.pair import THRESHOLDS, Pair, Rules, make_pair
from waterjar.diagnose.rigidity.pattern import Bounds, rigidity_pattern
from waterjar.diagnose.rigidity.side import Side, full_eval_sets, read_side
from waterjar.diagnose.rigidity.summary import needed, summary
from waterjar.diagnose.rigidity.verdict import Estimate, sentence
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.study import Study, method_of

CHECKPOINTS = ("best", "last")
Variables = dict[str, xr.Variable]
TRIPLET = {"ad": "ad_restricted", "pd": "pd", "sfr_rel": "sfr_rel"}
"""The index, and the variable whose interval tells each sign. That of AD is taken within the budget: without
censoring it is AD's own, and with it AD's own would speak of the quick seeds alone."""

WORDS = {
    "baseline": "name of the cell that this one is compared with; empty for none",
    "baseline_note": "what is to be said about that choice",
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
    settings = {name: value for name, value in locals().items() if name != "source"}  # before there are other names
    if checkpoint not in CHECKPOINTS:
        raise unknown_name("checkpoint", checkpoint, CHECKPOINTS)
    if len(weights) != 3:
        raise WaterjarError(f"weights={list(weights)}: one each of AD, PD and SFR_rel would be right")
    if not thresholds:
        raise WaterjarError("thresholds is empty: at least one accuracy to reach would be right")
    trailing_mean([0.0], window)
    rules = Rules(
        threshold=check_threshold(threshold),
        window=window,
        checkpoint=checkpoint,
        thresholds=tuple(check_threshold(level, "thresholds") for level in thresholds),
        confidence=confidence,
        weights=(float(weights[0]), float(weights[1]), float(weights[2])) if composite else None,
        rng_seed=rng_seed,
    )
    how = {"variable": variable, "eval_sets": full_eval_sets(eval_sets), "checkpoint": checkpoint}
    if isinstance(source, Run):
        result = _measure_run(source, rules, how, margin, power)
    else:
        result = _measure_study(source, baseline, rules, how, margin, power)
    return labelled.stamp(result, families()["rigidity"], settings, source)


def _measure_run(run: Run, rules: Rules, how: Mapping[str, Any], margin: float, power: float) -> xr.Dataset:
    if "performance" not in run.groups:
        raise WaterjarError(f"{run.path} has no group 'performance': it was not recorded")
    name = method_of(run.config) or run.path.name
    side = read_side(run.load("performance"), name, **how)
    events = run.load("events") if "events" in run.groups else None
    patched = patched_images(events, run.config, side.seeds, name)
    pair = make_pair(side, None, rules)
    note = "a single run has no baseline: measure the study"
    found = measure_pair(pair, note=note, is_baseline=False, margin=margin, power=power)
    result = xr.Dataset(found | patched, _repeats(side))
    return result.assign_attrs(shortcut_injected=_injected([patched]))


def _measure_study(
    study: Study, baseline: str | None, rules: Rules, how: Mapping[str, Any], margin: float, power: float
) -> xr.Dataset:
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
        found = measure_pair(pair, note=notes.get(cell, ""), is_baseline=other == cell, margin=margin, power=power)
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


def measure_pair(pair: Pair, *, note: str, is_baseline: bool, margin: float, power: float) -> Variables:
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
    about |= _verdict(pair, found, about["baseline"], is_baseline, margin, power)
    return found | {
        key: xr.Variable([], np.array(text, object), {"long_name": WORDS[key]}) for key, text in about.items()
    }


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


def _verdict(
    pair: Pair, found: Variables, baseline: str, is_baseline: bool, margin: float, power: float
) -> dict[str, str]:
    """Pattern and sentence; `found` gains the numbers of seeds needed."""
    names = {**TRIPLET, "sfr": "sfr", "random_mask_damage": "random_mask_damage"}
    estimates = {key: _estimate(found, name) for key, name in names.items()}
    counts = {}
    for key, name in TRIPLET.items():
        std = float(found[f"{name}_std"].values)
        found |= needed(name, estimates[key].mean, std, pair.rules.confidence, power)
        counts[key] = float(found[f"{name}_seeds_needed"].values)
    settle = np.array(np.max(list(counts.values())))  # NaN if one is
    words = {
        "long_name": "seeds that would settle all three signs, were mean and spread the true ones",
        "units": "seed",
    }
    code = np.array(labelled.UNDEFINED if np.isnan(settle) else 0, np.uint8)
    found |= labelled.variable("seeds_needed", [], settle, code, words)
    sides = [side for side in (pair.learner, pair.baseline) if side is not None]
    spacing = max((float(np.diff(side.epochs).max()) for side in sides if side.epochs.size > 1), default=0.0)
    ad = estimates["ad"]
    estimates["ad"] = dataclasses.replace(ad, bounds=ad.bounds._replace(resolution=spacing))
    bounds = {key: estimates[key].bounds for key in TRIPLET}
    pattern = patterns.BASELINE if is_baseline else rigidity_pattern(**bounds, margin=margin)
    if not baseline and not is_baseline:
        pattern = patterns.INCONCLUSIVE
    text = sentence(
        pair.learner.name,
        baseline,
        pattern,
        estimates,
        threshold=pair.rules.threshold,
        margin=margin,
        censored=(
            int(found["ad_n_censored_learner"].values),
            int(found["ad_n_censored_baseline"].values),
            pair.learner.seeds.size,
        ),
        seeds_needed=counts,
    )
    return {"pattern": pattern, "sentence": text}


def _estimate(found: Mapping[str, xr.Variable], name: str) -> Estimate:
    mean, low, high, n = (float(found[f"{name}_{part}"].values) for part in ("mean", "low", "high", "n"))
    return Estimate(mean, Bounds(low, high), int(n))
