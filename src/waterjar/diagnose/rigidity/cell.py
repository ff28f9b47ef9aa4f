"""What is read of a cell and its baseline, and what the metrics of the cell come to over seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.measuring import Loaded, Unit, Variables
from waterjar.diagnose.over_seeds import seed_variables
from waterjar.diagnose.registry import find_family
from waterjar.diagnose.result import NEVER_REACHED, NO_BASELINE, NOT_RECORDED, UNDEFINED
from waterjar.diagnose.rigidity.injection import COUNTED, patched_images
from waterjar.diagnose.rigidity.judgement import judge
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.remarks import budget_note
from waterjar.diagnose.rigidity.restricted_delay import restricted_interval
from waterjar.diagnose.rigidity.side import read_side
from waterjar.diagnose.rigidity.threshold_grid import grid_over_seeds
from waterjar.diagnose.rigidity.worst_group import GROUPS, worst_groups
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASON

WORDS = {
    "baseline": "name of the cell that this one is compared with; empty for none",
    "baseline_note": "what is to be said about that choice",
    "budget_note": "where learner and baseline were trained for different lengths, as recorded: how long; else empty",
    "order_note": "where tasks were trained in another order than declared: what counts",
    "ad_judged_by": "variable whose interval tells the sign of AD: ad, or ad_restricted where a seed is censored",
    "pattern": "pattern of (AD, PD, SFR_rel), each sign by an interval clear of 0; or why none is looked for",
    "sentence": "what the numbers say",
}


def check_power(settings: Any) -> None:
    """Refuse a power below the level of the test: it would ask for no seeds at all."""
    level = round(1 - settings.confidence, 12)
    if settings.power <= level:
        raise WaterjarError(f"rigidity: power={settings.power!r}: expected a number between {level:g} and 1")


class Cell(Loaded):
    """A cell beside its baseline."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        about = {"long_name": "accuracy to reach", "units": "1"}
        grid = ("threshold", np.asarray(settings.thresholds, np.float64), about)
        groups = ("group", np.array(list(GROUPS), object), {"long_name": "classes by cue"})
        super().__init__(unit, {"threshold": grid, "group": groups})
        own = read_side(unit, settings)
        counted = [unit.load(group, COUNTED) for group in ("train", "events")]  # the second in runs of schema 1
        self.patched = patched_images(counted, unit.runs[0].config, own)
        self.pair = Pair(own, None if unit.baseline is None else read_side(unit.baseline, settings), settings)

    def inputs(self, wanted: Collection[type]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """The pair, of all repeats at once."""
        yield self.pair, ()

    def close(self, found: Variables) -> Variables:
        """The checkpoint, every metric over seeds, and what they mean together."""
        made = self.patched | self._checkpoint()
        for metric in find_family("rigidity").metrics.values():
            if metric.scalar in found:
                values, codes = found[metric.scalar], _codes(found, metric.scalar)
                made |= seed_variables(metric, values, codes, self.pair.settings.confidence)
        made |= grid_over_seeds(found["ad_by_threshold"].values, _codes(found, "ad_by_threshold"))
        worst = worst_groups(found["group_accuracy"].values)
        made["worst_group"] = xr.Variable(["repeat"], worst, {"long_name": "which group is the worst"})
        made |= self._delays(found)
        if "eri_composite" in found:
            weights = self.pair.settings.weights
            terms = zip(weights, ("AD/budget", "PD", "SFR_rel"), strict=True)
            said = ", ".join(f"{weight:g} {name}" for weight, name in terms)
            found["eri_composite"].attrs |= {"weights": list(weights), "comment": f"{said}; signed"}
        judged, texts = judge(self.pair, {**found, **made}, self.unit.is_baseline)
        other = self.pair.baseline
        lengths = budget_note(self.pair)
        note = "; ".join(part for part in (self.unit.note, lengths) if part)
        texts |= {"baseline": "" if other is None else other.name, "baseline_note": note, "budget_note": lengths}
        texts["order_note"] = self.pair.learner.order_note
        words = {key: xr.Variable([], np.array(texts[key], object), {"long_name": WORDS[key]}) for key in WORDS}
        return made | judged | words

    def _checkpoint(self) -> Variables:
        """Which evaluation the final accuracies are from, and how long the learner was trained."""
        pair = self.pair
        rows, codes = pair.checkpoints[0]
        there = codes == 0
        rows = np.where(there, rows, 0)
        steps = np.where(there, pair.learner.steps[rows], np.nan).astype(np.float64)
        epochs = np.where(there, pair.learner.epochs[rows], np.nan)
        about = {"comment": f"rule: {pair.settings.checkpoint}"}
        at = {"long_name": "effective epoch of the checkpoint", "units": "epoch", **about}
        sides = {"learner_budget": pair.learner, "baseline_budget": pair.baseline}
        budgets = {name: _budget(None if side is None else side.budget) for name, side in sides.items()}
        lengths: Variables = {}
        for name, (value, code) in budgets.items():
            words = f"effective epochs that the {name.partition('_')[0]} was trained, as recorded"
            lengths |= variable(name, [], value, code, {"long_name": words, "units": "epoch"})
        budget = np.array(pair.budget if np.isfinite(pair.budget) else 0.0)
        return {
            **lengths,
            **variable("checkpoint_step", ["repeat"], steps, codes, {"long_name": "step of the checkpoint", **about}),
            **variable("checkpoint_epoch", ["repeat"], epochs, codes, at),
            "budget": xr.Variable([], budget, {"long_name": "effective epochs, of the shorter side", "units": "epoch"}),
        }

    def _delays(self, found: Variables) -> Variables:
        """How many seeds never got there, on either side, and the interval of the restricted delay."""
        made: Variables = {}
        for side, crossing in zip(("learner", "baseline"), self.pair.at_threshold, strict=True):
            count = np.array(float((crossing.reason == NEVER_REACHED).sum()))
            about = {"long_name": f"seeds whose {side} never got there"}
            made[f"ad_n_censored_{side}"] = xr.Variable([], count, about)
        low, high, note = restricted_interval(self.pair)
        codes = _codes(found, "ad_restricted")
        nobody = int(np.bincount(codes).argmax()) if (codes > 0).all() else UNDEFINED
        code = np.array(nobody if np.isnan(low) else 0, np.uint8)
        # the names are from when it was a bootstrap whatever the number of seeds; the note says what it is
        words = {"long_name": "bound of the mean of ad_restricted, t or bootstrap: see its note", "units": "epoch"}
        made |= variable("ad_restricted_bootstrap_low", [], np.array(low), code, words)
        made |= variable("ad_restricted_bootstrap_high", [], np.array(high), code, words)
        about = {"long_name": "how it was made"}
        made["ad_restricted_bootstrap_note"] = xr.Variable([], np.array(note, object), about)
        return made


def _budget(epochs: float | None) -> tuple[Any, Any]:
    """A budget and why there is none: no baseline, or a last task that has not begun."""
    if epochs is None:
        return np.array(np.nan), np.array(NO_BASELINE, np.uint8)
    known = np.isfinite(epochs)
    return np.array(epochs if known else np.nan), np.array(0 if known else NOT_RECORDED, np.uint8)


def _codes(found: Variables, name: str) -> Any:
    reasons = found.get(name + REASON)
    return np.zeros(found[name].shape, np.uint8) if reasons is None else reasons.values
