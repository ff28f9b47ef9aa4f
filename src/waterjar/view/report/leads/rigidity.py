"""The finding of a rigidity study in three sentences: what the learners show, how far all lean on the shortcut, who got
there. Only what intervals carry is claimed; the numbers are those of `diagnose.rigidity`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import NEVER_REACHED
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.run.schema import REASONS
from waterjar.view.numbers import listed, number
from waterjar.view.report.model import Model
from waterjar.view.style import counted

TITLE = "Rigidity"
ORDER = 10
UNMEASURED = "unmeasured"
"""Not a pattern: no seed has any number of the triplet."""

SHORT = {
    patterns.CLASSICAL: "classical Einstellung",
    patterns.SHORTCUT: "shortcut rigidity",
    patterns.SLOW: "slow adaptation",
    patterns.BENIGN: "benign transfer",
    patterns.INCONCLUSIVE: "not settled",
    patterns.FLOOR: "bound by the floor",
    patterns.FLOOR_UNKNOWN: "floor not known",
    patterns.UNLEARNED: "nobody learned",
    patterns.BASELINE: "baseline",
    UNMEASURED: "not measured",
}
"""A pattern in two words."""

_FOUND = {
    patterns.CLASSICAL: "{who} {show} the classical Einstellung effect: slower, worse, and more on the shortcut",
    patterns.SHORTCUT: "{who} {show} shortcut-induced rigidity: quicker and better, because of the shortcut",
    patterns.SLOW: "{who} {adapt} slowly: later and worse, without leaning more on the shortcut",
    patterns.BENIGN: "{who} {show} benign transfer: neither a deficit nor added reliance beyond {margin:g}",
    patterns.INCONCLUSIVE: "{who} {are} not settled by {seeds}",
    patterns.FLOOR: "{who} {are} bound by the floor: with the shortcut masked neither {who_it} nor the baseline is "
    "clearly above chance, and SFR_rel says nothing beyond PD",
    patterns.FLOOR_UNKNOWN: "of {who} it is not known whether SFR_rel is bound by the floor: with the shortcut masked "
    "neither is shown to be above chance, nor both to be at it",
    patterns.UNLEARNED: "{who} {have} not learned the shortcut classes, nor has the baseline: there is no verdict",
    UNMEASURED: "{who} {are} not measured: no seed has the numbers of both",
}


def sentences(model: Model) -> list[str]:
    """What the learners show, and how far all lean on the shortcut; nothing where rigidity was not measured."""
    result = model.diagnosis.results.get("rigidity")
    return [] if result is None else headline(result, model.diagnosis.settings("rigidity"))


def seen(result: xr.Dataset) -> list[str]:
    """The pattern of every cell; `UNMEASURED` where it is inconclusive because there is no number at all."""
    return [
        UNMEASURED if str(pattern) == patterns.INCONCLUSIVE and n == 0 else str(pattern)
        for pattern, n in zip(result["pattern"].values, _counts(result), strict=True)
    ]


def _counts(result: xr.Dataset) -> Any:
    """(cell,): the seeds that verdicts rest on: the fewest of AD, as it is judged, PD and SFR_rel, where any are."""
    delay = np.where(result["ad_judged_by"].values == "ad", result["ad_n"].values, result["ad_restricted_n"].values)
    counts = np.array([delay, result["pd_n"].values, result["sfr_rel_n"].values])
    fewest = np.where(counts > 0, counts, np.inf).min(axis=0)
    return np.where(np.isfinite(fewest), fewest, 0).astype(int)


def headline(result: xr.Dataset, settings: Mapping[str, object]) -> list[str]:
    """A few sentences about a result of `rigidity.measure` over cells."""
    names = [str(name) for name in result["cell"].values]
    found = seen(result)
    learners = [i for i, pattern in enumerate(found) if pattern != patterns.BASELINE]
    said = [_patterns(names, found, result, settings)] if learners else []
    rest = _reliance(names, found, result), _threshold(names, result, settings), _left_out(names, result)
    return [*said, *(text for text in rest if text)]


def _patterns(names: list[str], found: list[str], result: xr.Dataset, settings: Mapping[str, object]) -> str:
    bases = {str(base) for base in result["baseline"].values if str(base)}
    if not bases:
        return "There is no baseline to compare with: neither delay nor deficit can be told."
    parts = []
    learners = [name for name, pattern in zip(names, found, strict=True) if pattern != patterns.BASELINE]
    for pattern in (*patterns.PATTERNS, patterns.FLOOR, patterns.FLOOR_UNKNOWN, patterns.UNLEARNED, UNMEASURED):
        who = [name for name, other in zip(names, found, strict=True) if other == pattern]
        if not who:
            continue
        every = f"all {len(who)} learners" if len(who) == len(learners) and len(who) > 2 else listed(who)
        one = len(who) == 1
        seeds = counted(_counts(result)[[name in who for name in names]], "seed")
        words = {
            "show": "shows" if one else "show",
            "adapt": "adapts" if one else "adapt",
            "are": "is" if one else "are",
            "have": "has" if one else "have",
            "who_it": "it" if one else "they",
        }
        parts.append(_FOUND[pattern].format(who=every, margin=settings.get("margin", math.nan), seeds=seeds, **words))
    return f"Compared with {listed(sorted(bases))}, " + ". ".join(parts) + "."


def _reliance(names: list[str], found: list[str], result: xr.Dataset) -> str:
    """How much masking the shortcut costs, learners and baseline alike.

    Who leans on it is clear where the interval lies above 0 and above what a mask of the same size elsewhere costs.
    """
    cost, other = result["sfr_mean"].values, result["random_mask_damage_mean"].values
    least = np.fmax(other, 0.0)  # 0 where the mask elsewhere was not measured
    clear = [i for i in range(len(names)) if float(result["sfr_low"].values[i]) > least[i]]
    if not np.isfinite(cost).any():
        return (
            "How far anybody relies on the shortcut is not known: no seed has an accuracy both with the shortcut "
            "visible and with it masked."
        )
    means = f"(means of {counted(result['sfr_n'].values, 'seed')})"
    if not clear:
        elsewhere = ", not clearly more than a mask elsewhere does" if np.isfinite(other).any() else ""
        return f"Nobody clearly leans on the shortcut: masking it costs {_span(cost)} of accuracy{elsewhere} {means}."
    elsewhere = ", more than a mask elsewhere does" if np.isfinite(other[clear]).all() else ""
    who = f"{listed([names[i] for i in clear])} clearly {'leans' if len(clear) == 1 else 'lean'}"
    if len(clear) == len(names):
        who = "All of them, the baseline included, lean" if patterns.BASELINE in found else "All of them lean"
    return f"{who} on the shortcut: masking it costs {_span(cost[clear])} of accuracy{elsewhere} {means}."


def _left_out(names: list[str], result: xr.Dataset) -> str:
    """The seeds without SFR or PD, of cells where others have it, and why: means are not over them."""
    said = []
    for i, name in enumerate(names):
        gone: dict[str, list[str]] = {}
        for key in ("sfr", "pd"):
            codes = reasons_of(result, key).values[i]
            if (codes == 0).any():
                for seed, code in zip(result["seed"].values, codes, strict=True):
                    if code and not any(str(seed) in seeds for seeds in gone.values()):
                        gone.setdefault(REASONS[code], []).append(str(seed))
        said += [f"{listed(seeds)} of {name} ({why})" for why, seeds in gone.items()]
    return f"Left out are seeds without a value: {listed(said)}." if said else ""


def _span(values: Any) -> str:
    """From the smallest to the largest."""
    low, high = (number(float(bound(values))) for bound in (np.nanmin, np.nanmax))
    return low if low == high else f"{low} to {high}"


def _threshold(names: list[str], result: xr.Dataset, settings: Mapping[str, object]) -> str:
    """Who reaches the threshold, where that is not everybody; never reached is one thing, not known another."""
    tau = settings.get("threshold")
    if not isinstance(tau, float):
        return ""
    seeds = np.isfinite(result["adaptation_epoch"].values).sum(axis=1)
    codes = reasons_of(result, "adaptation_epoch").values
    censored = (codes == NEVER_REACHED).any(axis=1)
    never = [name for name, n, late in zip(names, seeds, censored, strict=True) if n == 0 and late]
    unknown = [name for name, n, late in zip(names, seeds, censored, strict=True) if n == 0 and not late]
    level = f"{100 * tau:g} % on the shortcut classes"
    said = []
    if never:
        late = [name in never for name in names]
        budget = float(np.nanmax(result["learner_budget"].values[late]))
        within = f"within {budget:g} {'epoch' if budget == 1 else 'epochs'}"
        if len(never) == len(names):
            return f"Nobody reaches {level} {within}, so the delay AD is unknown at this threshold."
        said.append(f"{listed(never)} never {'reaches' if len(never) == 1 else 'reach'} {level} {within}.")
    if unknown:
        gone = codes[(seeds == 0) & ~censored]
        why = " or ".join(REASONS[code].replace("_", " ") for code in np.unique(gone[gone > 0])) or "not recorded"
        who = "anybody" if len(unknown) == len(names) else listed(unknown)
        reach = "reaches" if len(unknown) in (1, len(names)) else "reach"
        said.append(
            f"Whether {who} {reach} {100 * tau:g} % cannot be told, and the delay AD is unknown: accuracy on the "
            f"shortcut classes has no value in training ({why})."
        )
    return " ".join(said)
