"""From means and intervals to a judgement: which signs are clear, which pattern they make, what would settle it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.result import NEVER_REACHED, UNDEFINED
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.diagnose.rigidity.curves import ROUNDING
from waterjar.diagnose.rigidity.floor import floor_of
from waterjar.diagnose.rigidity.guessing import equal_seeds_needed
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.pattern import Bounds, rigidity_pattern
from waterjar.diagnose.rigidity.remarks import nobody_learned, remarks
from waterjar.diagnose.rigidity.verdict import Estimate, sentence
from waterjar.run.schema import REASON
from waterjar.stats.power import seeds_needed

TRIPLET = ("ad", "pd", "sfr_rel")
_BESIDE = ("adaptation_epoch", "sfr", "random_mask_damage", "masked_accuracy", "masked_gap")
"""What the sentence also names."""


def judge(
    pair: Pair, found: Mapping[str, xr.Variable], is_baseline: bool
) -> tuple[dict[str, xr.Variable], dict[str, str]]:
    """The seeds that would settle each sign, as variables; and pattern, sentence and `ad_judged_by`, as text.

    `found` has the summaries of every metric of the cell.
    """
    confidence, power = pair.settings.confidence, pair.settings.power
    equal = equal_seeds_needed(confidence)
    estimates: dict[str, Estimate] = {}
    counts: dict[str, float] = {}
    for name in ("ad", "ad_restricted", "pd", "sfr_rel"):
        estimate = _estimate(found, name)
        blur = _spacing(pair) if name.startswith("ad") else 0.0
        bounds = estimate.bounds._replace(resolution=blur if estimate.n >= equal else math.inf)
        estimates[name] = dataclasses.replace(estimate, bounds=bounds)
        std = float(found[f"{name}_std"].values)
        answer = seeds_needed(estimate.mean, std, paired=True, power=power, alpha=1 - confidence)
        # beyond all that were tried the number is not known, but that it is too large for seeds alone
        beyond = math.isnan(answer.n) and answer.difference != 0 and answer.reached_power < power
        counts[name] = math.inf if beyond else answer.n
        if bounds.flat and abs(estimate.mean) > ROUNDING:
            # equal delays within the resolution stay there, however many: evaluations would have to be closer
            counts[name] = equal if abs(estimate.mean) > blur else math.nan
    judged_by = delay_judged_by(found)
    chosen = {"ad": estimates[judged_by], "pd": estimates["pd"], "sfr_rel": estimates["sfr_rel"]}
    settling = {"ad": counts[judged_by], "pd": counts["pd"], "sfr_rel": counts["sfr_rel"]}
    why = {name: _why_unknown(found, name) for name in counts}
    variables: dict[str, xr.Variable] = {}
    for name, count in counts.items():
        variables |= needed(name, count, power, why[name])
    variables |= _all_three(settling, [why[judged_by], why["pd"], why["sfr_rel"]])
    pattern = rigidity_pattern(**{name: chosen[name].bounds for name in TRIPLET}, margin=pair.settings.margin)
    unlearned, floor = nobody_learned(pair), floor_of(pair)
    if is_baseline:
        pattern = patterns.BASELINE
    elif pair.baseline is None:
        pattern = patterns.INCONCLUSIVE
    elif unlearned:
        pattern = patterns.UNLEARNED
    elif floor.bound is not False:
        pattern = patterns.FLOOR if floor.bound else patterns.FLOOR_UNKNOWN
    text = sentence(
        pair.learner.name,
        "" if pair.baseline is None else pair.baseline.name,
        pattern,
        {**chosen, **{name: _estimate(found, name) for name in _BESIDE}},
        settings=pair.settings,
        within=pair.budget if judged_by == "ad_restricted" else None,
        censored=(
            int(found["ad_n_censored_learner"].values),
            int(found["ad_n_censored_baseline"].values),
            pair.learner.seeds.size,
        ),
        seeds_needed=settling,
        chance=pair.learner.guessing.chance,
        floor=floor,
        unlearned=unlearned,
        remarks=remarks(pair),
    )
    return variables, {"ad_judged_by": judged_by, "pattern": pattern, "sentence": text}


def delay_judged_by(found: Mapping[str, xr.Variable]) -> str:
    """`ad` where no seed is censored on either side; else `ad_restricted`.

    With censoring, AD's own mean speaks of the seeds that got there alone. Without it nothing has to be cut off at
    the smaller budget, and AD's own interval is the one about AD.
    """
    reasons = found.get("ad" + REASON)
    return "ad" if reasons is None or not (reasons.values == NEVER_REACHED).any() else "ad_restricted"


def _spacing(pair: Pair) -> float:
    """How far apart evaluations are at most: what an epoch is known to."""
    sides = [side for side in (pair.learner, pair.baseline) if side is not None]
    return max((float(np.diff(side.epochs).max()) for side in sides if side.epochs.size > 1), default=0.0)


def _why_unknown(found: Mapping[str, xr.Variable], name: str) -> int:
    """Why nothing can be said of a mean over seeds: as it is missing itself, else because it has no spread."""
    reason = found.get(f"{name}_mean{REASON}")
    return UNDEFINED if reason is None else int(reason.values) or UNDEFINED


def needed(name: str, count: float, power: float, why: int) -> dict[str, xr.Variable]:
    """`<name>_seeds_needed`: seeds whose interval would be clear of 0, were mean and spread the true ones.

    NaN where they are not known, or beyond all that were tried (infinite).
    """
    known = math.isfinite(count)
    code = np.array(0 if known else why, np.uint8)
    words = f"seeds that show {name} to differ from 0 with a power of {100 * power:g} %"
    return variable(
        f"{name}_seeds_needed", [], np.array(count if known else np.nan), code, {"long_name": words, "units": "seed"}
    )


def _all_three(counts: Mapping[str, float], why: Sequence[int]) -> dict[str, xr.Variable]:
    unknown = [code for count, code in zip(counts.values(), why, strict=True) if not math.isfinite(count)]
    settle = np.array(np.nan if unknown else max(counts.values()))
    code = np.array(unknown[0] if unknown else 0, np.uint8)
    words = "seeds that would settle all three signs, were mean and spread the true ones"
    return variable("seeds_needed", [], settle, code, {"long_name": words, "units": "seed"})


def _estimate(found: Mapping[str, xr.Variable], name: str) -> Estimate:
    mean, low, high, n = (float(found[f"{name}_{part}"].values) for part in ("mean", "low", "high", "n"))
    return Estimate(mean, Bounds(low, high), int(n))
