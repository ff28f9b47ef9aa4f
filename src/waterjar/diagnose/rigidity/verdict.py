"""What the numbers of a cell say, in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from waterjar.diagnose.over_seeds import CONFIDENCE
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.diagnose.rigidity.floor import Floor
from waterjar.diagnose.rigidity.pattern import Bounds

_MEANING = {
    patterns.CLASSICAL: "It is slower, ends lower and leans more on the shortcut: the classical Einstellung effect.",
    patterns.SHORTCUT: "It is quicker and ends higher because it leans on the shortcut: shortcut-induced rigidity.",
    patterns.SLOW: "It is slower and ends lower, and does not lean more on the shortcut: slow adaptation.",
    patterns.BENIGN: "Neither its deficit nor its added reliance exceeds the margin of {margin:g}: benign transfer.",
    patterns.INCONCLUSIVE: "{n} not settle the pattern{needed}.",
    patterns.FLOOR: "With the shortcut masked neither is clearly above chance ({masked}; chance is {chance:.3f}): "
    "SFR_rel is bound by the floor, it is -PD less the masked gap ({gap}) by arithmetic. No pattern is named.",
    patterns.FLOOR_UNKNOWN: "Whether SFR_rel is bound by the floor is not known: with the shortcut masked accuracy is "
    "{masked}, and {few} neither that one of them is above chance ({chance:.3f}) nor that both are at most {margin:g} "
    "above it{enough}. No pattern is named.",
}

MOST_SEEDS = 200
"""Where more would be needed, seeds are not the way: another design is."""
_SYMBOLS = {"ad": "AD", "pd": "PD", "sfr_rel": "SFR_rel"}


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its interval."""

    mean: float
    bounds: Bounds
    n: int

    def words(self, digits: int, sign: str = "+") -> str:
        """The mean and its interval: +1.2 [+0.3, +2.1]."""
        if math.isnan(self.mean):
            return "unknown"
        mean, low, high = (f"{value:{sign}.{digits}f}" for value in (self.mean, self.bounds.low, self.bounds.high))
        if math.isnan(self.bounds.low):
            return f"{mean}, no interval"
        if not self.bounds.flat:
            return f"{mean} [{low}, {high}]"
        return f"{mean} in each of {self.n} seeds" + ("" if self.bounds.known else ", spread unknown")


def sentence(
    name: str,
    baseline: str,
    pattern: str,
    estimates: Mapping[str, Estimate],
    *,
    settings: Any,
    within: float | None,
    censored: tuple[int, int, int],
    seeds_needed: Mapping[str, float],
    chance: float,
    floor: Floor,
    unlearned: str,
    remarks: str,
) -> str:
    """A few sentences about one cell.

    `estimates` has ad, pd, sfr_rel, adaptation_epoch, sfr, random_mask_damage, masked_accuracy and masked_gap;
    `within` is the budget where ad is the restricted one, else None; `censored` is how many learners, how many
    baselines never reached the threshold, and of how many seeds; `seeds_needed` has how many would show each sign of
    the triplet, NaN where that is unknown; `floor` is what is known of the masked accuracies. `unlearned` says that
    nobody learned, which takes the place of a verdict; `remarks` go behind it.
    """
    level = _percent(settings.threshold)
    usual = math.isclose(settings.confidence, CONFIDENCE)
    intervals = "" if usual else f"; {_percent(settings.confidence)} intervals"
    reliance = _reliance(name, estimates["sfr"], estimates["random_mask_damage"])
    told = f"{unlearned} " if unlearned else ""
    if pattern == patterns.BASELINE:
        return f"{name} is the baseline. {told}{reliance}{remarks}"
    if not baseline:
        reached = _reached(estimates["adaptation_epoch"], level, censored, intervals)
        alone = f"{name} has no baseline to be compared with: neither delay nor deficit is known."
        return f"{alone} {told}{reached} {reliance}{remarks}"
    if pattern == patterns.UNLEARNED:
        return f"{unlearned} There is no verdict on rigidity.{remarks}"
    ad, pd, sfr_rel = (estimates[key] for key in ("ad", "pd", "sfr_rel"))
    speed = _clear(ad, "needs more epochs than", "needs fewer epochs than", "is not clearly slower or quicker than")
    n = min((one.n for one in (ad, pd, sfr_rel) if one.n), default=0)  # the fewest that it rests on
    triplet = {"ad": ad, "pd": pd, "sfr_rel": sfr_rel}
    masked, gap = estimates["masked_accuracy"].mean, estimates["masked_gap"]
    settled = _MEANING[pattern].format(
        margin=settings.margin,
        n=_seeds(n),
        needed=_needed(seeds_needed, triplet),
        masked=f"{masked:.3f} and {masked - gap.mean:.3f}",
        gap=gap.words(3),
        chance=chance,
        few=_few(floor),
        enough=_enough(floor),
    )
    if n == 0:
        settled = "No seed has the numbers of both: there is no pattern to be seen."
    delay = f"{name} {speed} {baseline} to reach {level} on the shortcut classes"
    if math.isnan(ad.mean):
        delay = f"Whether {name} adapts more slowly than {baseline} cannot be told at {level}"
    bound = pattern in (patterns.FLOOR, patterns.FLOOR_UNKNOWN)
    lean = "what it adds in reliance cannot be told" if bound else _lean(pd, sfr_rel, estimates["sfr"])
    limit = "" if within is None or math.isnan(ad.mean) else f"within {within:g} epochs "
    return (
        f"{delay} (AD {limit}{ad.words(1)}{_never(censored)}); {_end(pd)} (PD {pd.words(3)}), and "
        f"{lean} (SFR_rel {sfr_rel.words(3)}{intervals}). {settled} {reliance}{remarks}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _reached(epoch: Estimate, level: str, censored: tuple[int, int, int], intervals: str) -> str:
    """What is known of the delay without a baseline: E itself."""
    never, _, n = censored
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    if math.isnan(epoch.mean):
        known = f"never, in {never} of {seeds}" if never else "unknown"
        return f"The epoch E at which it reaches {level} on the shortcut classes: {known}."
    rest = f"; never reached in {never} of {seeds}" if never else ""
    return f"It reaches {level} on the shortcut classes at epoch E = {epoch.words(1, '')}{rest}{intervals}."


def _clear(estimate: Estimate, above: str, below: str, unclear: str) -> str:
    return above if estimate.bounds.above else below if estimate.bounds.below else unclear


def _end(pd: Estimate) -> str:
    if math.isnan(pd.mean):
        return "whether it ends lower cannot be told"
    return _clear(pd, "it ends lower", "it ends higher", "it ends neither clearly lower nor higher")


def _lean(pd: Estimate, sfr_rel: Estimate, sfr: Estimate) -> str:
    """Goes on where `_end` stopped: after a clause about `it`, or after one that cannot be told.

    Where its own reliance is known (the sentence ends with it), only the comparison cannot be told.
    """
    if math.isnan(sfr_rel.mean):
        return f"whether it leans on the shortcut{'' if math.isnan(sfr.mean) else ' more'} cannot be told"
    words = _clear(
        sfr_rel,
        "leans on the shortcut more",
        "leans on the shortcut less",
        "does not clearly lean on the shortcut more or less",
    )
    return f"it {words}" if math.isnan(pd.mean) else words


def _reliance(name: str, sfr: Estimate, elsewhere: Estimate) -> str:
    if math.isnan(sfr.mean):
        return "How much it relies on the shortcut is unknown."
    other = "" if math.isnan(elsewhere.mean) else f"; a mask elsewhere costs {elsewhere.mean:.3f}"
    return f"Masking the shortcut costs {name} {sfr.mean:.3f} of accuracy{other}."


def _never(censored: tuple[int, int, int]) -> str:
    learner, baseline, n = censored
    parts = [f"by it in {learner}"] * (learner > 0) + [f"by the baseline in {baseline}"] * (baseline > 0)
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    return f"; never reached {' and '.join(parts)} of {seeds}" if parts else ""


def _needed(seeds: Mapping[str, float], estimates: Mapping[str, Estimate]) -> str:
    """What more seeds would show, and what these show already."""
    known = {key: count for key, count in seeds.items() if not math.isnan(count)}
    more = {key: count for key, count in known.items() if count > estimates[key].n}
    clear = [key for key in known if key not in more and (estimates[key].bounds.above or estimates[key].bounds.below)]
    if more and len(known) == len(seeds):
        if max(more.values()) > MOST_SEEDS:
            return f"; all three signs would take more than {MOST_SEEDS}: not with seeds alone"
        return f"; about {max(more.values()):.0f} would show all three signs, if means and spreads hold"
    told = ""
    if clear:
        names = " and ".join(_SYMBOLS[key] for key in clear)
        told = (
            f"; the sign of {names} is clear already"
            if len(clear) == 1
            else f"; the signs of {names} are clear already"
        )
    beyond = " and ".join(_SYMBOLS[key] for key, count in more.items() if count > MOST_SEEDS)
    if beyond:
        told += f"; the sign of {beyond} would take more than {MOST_SEEDS}: not with seeds alone"
    able = {key: count for key, count in more.items() if count <= MOST_SEEDS}
    if not able:
        return told
    parts = " and ".join(f"{count:.0f} that of {_SYMBOLS[key]}" for key, count in able.items())
    return f"{told}; about {parts.replace(' that of', ' would show the sign of', 1)}, if means and spreads hold"


def _few(floor: Floor) -> str:
    if floor.images is None:
        return "these seeds show"
    return "1 image shows" if floor.images == 1 else f"{floor.images} images show"


def _enough(floor: Floor) -> str:
    """What would tell whether it is bound."""
    if floor.images is None:
        return "; more seeds would, or the sizes of the sets, which were not recorded"
    return "" if floor.needed is None else f"; sets of about {floor.needed:,} images would, if these accuracies hold"


def _seeds(n: int) -> str:
    return "One seed does" if n == 1 else f"{n} seeds do"
