"""What the numbers of a cell say, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.diagnose.rigidity.pattern import Bounds

_MEANING = {
    patterns.CLASSICAL: "It is slower, ends lower and leans more on the shortcut: the classical Einstellung effect.",
    patterns.SHORTCUT: "It is quicker and ends higher because it leans on the shortcut: shortcut-induced rigidity.",
    patterns.SLOW: "It is slower and ends lower, and does not lean more on the shortcut: slow adaptation.",
    patterns.BENIGN: "Neither its deficit nor its added reliance exceeds the margin of {margin:g}: benign transfer.",
    patterns.INCONCLUSIVE: "{n} not settle the pattern{needed}.",
}

_SYMBOLS = {"ad": "AD", "pd": "PD", "sfr_rel": "SFR_rel"}


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its interval."""

    mean: float
    bounds: Bounds
    n: int

    def words(self, digits: int) -> str:
        """The mean and its interval: +1.2 [0.3, 2.1]."""
        if math.isnan(self.mean):
            return "unknown"
        if not self.bounds.known:
            return f"{self.mean:+.{digits}f}, no interval"
        return f"{self.mean:+.{digits}f} [{self.bounds.low:+.{digits}f}, {self.bounds.high:+.{digits}f}]"


def sentence(
    name: str,
    baseline: str,
    pattern: str,
    estimates: Mapping[str, Estimate],
    *,
    threshold: float,
    margin: float,
    censored: tuple[int, int, int],
    seeds_needed: Mapping[str, float],
) -> str:
    """A few sentences about one cell.

    `estimates` has ad (restricted to the budget), pd, sfr_rel, sfr and random_mask_damage; `censored` is how many
    learners, how many baselines never reached the threshold, and of how many seeds; `seeds_needed` has how many would
    show each sign of the triplet, NaN where that is unknown.
    """
    reliance = _reliance(name, estimates["sfr"], estimates["random_mask_damage"])
    if pattern == patterns.BASELINE:
        return f"{name} is the baseline. {reliance}"
    if not baseline:
        return f"{name} has no baseline to be compared with: neither delay nor deficit is known. {reliance}"
    ad, pd, sfr_rel = (estimates[key] for key in ("ad", "pd", "sfr_rel"))
    speed = _clear(ad, "needs more epochs than", "needs fewer epochs than", "is not clearly slower or quicker than")
    end = _clear(pd, "ends lower", "ends higher", "ends neither clearly lower nor higher")
    more = _clear(
        sfr_rel,
        "leans on the shortcut more",
        "leans on the shortcut less",
        "does not clearly lean on the shortcut more or less",
    )
    settled = _MEANING[pattern].format(margin=margin, n=_seeds(ad.n or pd.n), needed=_needed(seeds_needed))
    delay = f"{name} {speed} {baseline} to reach {threshold:.0%} on the shortcut classes"
    if math.isnan(ad.mean):
        delay = f"Whether {name} adapts more slowly than {baseline} cannot be told at {threshold:.0%}"
    return (
        f"{delay} (AD {ad.words(1)}{_never(censored)}); it {end} (PD {pd.words(3)}), and {more} "
        f"(SFR_rel {sfr_rel.words(3)}). {settled} {reliance}"
    )


def _clear(estimate: Estimate, above: str, below: str, unclear: str) -> str:
    return above if estimate.bounds.above else below if estimate.bounds.below else unclear


def _reliance(name: str, sfr: Estimate, elsewhere: Estimate) -> str:
    if math.isnan(sfr.mean):
        return "How much it relies on the shortcut is unknown."
    other = "" if math.isnan(elsewhere.mean) else f"; a mask elsewhere costs {elsewhere.mean:.3f}"
    return f"Masking the shortcut costs {name} {sfr.mean:.3f} of accuracy{other}."


def _never(censored: tuple[int, int, int]) -> str:
    learner, baseline, n = censored
    parts = [f"by it in {learner}"] * (learner > 0) + [f"by the baseline in {baseline}"] * (baseline > 0)
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    return f", within the budget: never reached {' and '.join(parts)} of {seeds}" if parts else ""


def _needed(seeds: Mapping[str, float]) -> str:
    known = {key: count for key, count in seeds.items() if not math.isnan(count)}
    if not known:
        return ""
    if len(known) == len(seeds):
        return f"; about {max(known.values()):.0f} would show all three signs, if means and spreads hold"
    parts = " and ".join(f"{count:.0f} that of {_SYMBOLS[key]}" for key, count in known.items())
    return f"; about {parts.replace(' that of', ' would show the sign of', 1)}, if means and spreads hold"


def _seeds(n: int) -> str:
    return "One seed does" if n == 1 else f"{n} seeds do"
