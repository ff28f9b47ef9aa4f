"""More than its parts? The finding of a study of collectives in words: against which control, and how sure.

Only what intervals carry is claimed; the numbers are those of `diagnose.collective`. The interval over seeds speaks of
the method, and decides; where there is one seed, the one over samples speaks of that network, and it is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.stats.intervals import UNBOUNDED
from waterjar.view.figures._collective import SHARE, Places, at_places, estimates, last_places, measured, own_last
from waterjar.view.numbers import counted, listed, no_width, number
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

TITLE = "Collectives"
ORDER = 15
CONTROLS = {
    "emergence_ratio": "the best stream among the others",
    "emergence_ratio_isolated": "the best stream alone",
    "emergence_ratio_probe": "the best stream under a trained linear probe",
}
"""Ratio -> what it divides by. The first two are the streams' own heads."""
_HEADS = ("emergence_ratio", "emergence_ratio_isolated")
ALL_FEATURES = "emergence_ratio_concatenated"
_WEAK = {"head_at_chance": "not above chance", "head_below_probe": "far below its probe"}


@dataclass(frozen=True)
class Estimate:
    """A number at the end of training, with its interval over seeds, and how far those over samples reach."""

    mean: float
    low: float
    high: float
    n: int
    samples: tuple[float, float]
    """From the lowest to the highest bound over samples of any seed; NaN where none was measured."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Over seeds; of one seed over samples."""
        return (self.low, self.high) if self.n > 1 else self.samples

    @property
    def text(self) -> str:
        """As "1.25 [1.10, 1.41]"."""
        low, high = self.bounds
        return (
            number(self.mean)
            if np.isnan(low) or no_width(low, high, 1.0)
            else f"{number(self.mean)} [{number(low)}, {number(high)}]"
        )


@dataclass(frozen=True)
class Judged:
    """What is to be said of one collective."""

    cell: str
    ratios: dict[str, Estimate]
    """Of those that have a value."""
    at_chance: tuple[int, int]
    """Seeds whose best head is not surely above one constant answer, of how many."""
    heads: tuple[int, int]
    """Streams whose head is not surely above it in some seed, of how many streams."""
    below_probe: tuple[int, int] = (0, 0)
    """Seeds whose best head is far below a linear probe of its own features, of how many."""

    @property
    def weak(self) -> bool:
        """Whether ratios by heads say how weak these are, and nothing of the collective."""
        return bool(self.at_chance[0] or self.below_probe[0])

    @property
    def fair(self) -> dict[str, Estimate]:
        """Ratios that say something: not those against heads that were never trained."""
        return {
            name: one for name, one in self.ratios.items()
            if name in CONTROLS and not (name in _HEADS and self.weak)
        }  # fmt: skip

    @property
    def closest(self) -> str:
        """The control that leaves least to the collective; empty where there is no fair one."""
        return min(self.fair, key=lambda name: self.fair[name].mean, default="")


def judged(model: Model) -> list[Judged]:
    """Every collective of a study."""
    return [_judge(model, cell, one) for cell, one in named_cells(model, "collective")]


def named_cells(model: Model, family: str) -> Iterator[tuple[str, xr.Dataset]]:
    """(name as the report shows it, result over (repeat, ...)) of every cell that a family was measured of."""
    return by_cell(measured(model.diagnosis, family, {}))


def _judge(model: Model, cell: str, one: xr.Dataset) -> Judged:
    places = last_places(one)
    found = {name: _estimate(model, cell, one, name, places) for name in (*CONTROLS, ALL_FEATURES)}
    best = at_places(one, "best_at_chance", places)[0]
    below = at_places(one, "best_below_probe", places)[0]
    heads = at_places(one, "head_at_chance", places, "stream")[0]
    known = np.isfinite(heads).any(0) if len(heads) else np.zeros(0, np.bool_)
    flagged = int((np.nan_to_num(heads) > 0).any(0).sum()) if len(heads) else 0
    return Judged(
        cell,
        {name: estimate for name, estimate in found.items() if estimate is not None},
        (int((best > 0).sum()), int(np.isfinite(best).sum())),
        (flagged, int(known.sum())),
        (int((below > 0).sum()), int(np.isfinite(below).sum())),
    )


def _estimate(model: Model, cell: str, one: xr.Dataset, name: str, places: Places) -> Estimate | None:
    line = mean_of(model, name, cell)
    if line is None or np.isnan(line["mean"]):
        return None
    lows, highs = (at_places(one, f"{name}_{end}", places)[0] for end in ("low", "high"))
    samples = (np.nan, np.nan)
    if np.isfinite(lows).any():
        known = highs[~np.isnan(highs)]
        samples = (float(np.nanmin(lows)), float(known.max()) if known.size else np.nan)
    mean, low, high = (float(line[key]) for key in ("mean", "low", "high"))
    return Estimate(mean, low, high, int(line["n"]), samples)


def weak_heads(one: xr.Dataset, places: Places) -> list[str]:
    """Why the head of each stream is no control: "not above chance, far below its probe in some seeds"; else empty."""
    found: list[list[str]] = [[] for _ in range(one.sizes["stream"])]
    for name, words in _WEAK.items():
        for said, flags in zip(found, at_places(one, name, places, "stream")[0].T, strict=False):
            known = flags[np.isfinite(flags)]
            if (known > 0).any():
                said.append(words if (known > 0).all() else f"{words} in some seeds")
    return [", ".join(said) for said in found]


def distrusted(one: xr.Dataset) -> list[str]:
    """Signs, in any seed, that attacks fail for another reason than robustness."""
    if "attack_flag_raised" not in one:
        return []
    raised = at_places(one, "attack_flag_raised", own_last(one, "attack_flag_raised"), "flag")[0]
    names = [str(flag).replace("_", " ") for flag in one["flag"].values]
    return [name for i, name in enumerate(names) if len(raised) and (raised[:, i] > 0).any()]


def mean_of(model: Model, metric: str, cell: str) -> Any:
    """The line of a metric and a cell in the table over seeds; None where it has no value."""
    rows = model.means[(model.means["metric"] == metric) & (model.means["cell"] == cell)]
    return rows.iloc[0] if len(rows) and rows["n"].iloc[0] > 0 else None


def sentences(model: Model, *, brief: bool = True) -> list[str]:
    """What was found of every collective: heads that say nothing come before any number.

    `brief`: against the closest control alone.
    """
    if "collective" not in model.diagnosis.results:
        return []
    found = judged(model)
    return [*warnings(found), *(_sentence(one, model, brief) for one in found)]


def warnings(found: list[Judged]) -> list[str]:
    """Why ratios by heads are set aside, where they are; not a number among it."""
    chance = [one.cell for one in found if one.at_chance[0]]
    below = [one.cell for one in found if one.below_probe[0] and not one.at_chance[0]]
    said = []
    if chance:
        said.append(
            f"Of {listed(chance)} the best stream's own head is not surely above one constant "
            "answer: a ratio against such heads says nothing of the collective, and is set aside."
        )
    if below:
        said.append(
            f"Of {listed(below)} the best stream's own head tells far less than a linear probe reads of the same "
            "features (less than half as far above one constant answer, intervals apart): a ratio against such heads "
            "says how weak they are, and is set aside."
        )
    return said


def _sentence(one: Judged, model: Model, brief: bool) -> str:
    name = one.cell
    if not one.closest:
        if one.weak:
            return (
                f"Whether {name} is more than its parts cannot be told: there is no control but these heads. Linear "
                "probes of its streams' features (streams/pooled) would tell."
            )
        return f"Whether {name} is more than its parts cannot be told: nothing of it can be scored against its streams."
    ratio = one.fair[one.closest]
    low, high = ratio.bounds
    verdict = "is not shown to be more than its parts"
    if low > 1:
        verdict = "is more than its parts"
    elif high < 1:
        verdict = "is less than its best part"
    how = f"{name} {verdict}: against {CONTROLS[one.closest]} its accuracy is {ratio.text} times as high"
    if brief:
        return f"{how} ({_sure(ratio, model)})."
    return f"{how} ({_sure(ratio, model)}).{_others(one)}{_features(one)}"


def _sure(ratio: Estimate, model: Model) -> str:
    level = level_words(model, "collective")
    if ratio.n < 2:
        return f"{level} interval over samples, of one network: other seeds may differ"
    text = f"{level} interval over {counted(ratio.n, 'seed')}"
    if np.isfinite(ratio.samples[0]):
        low, high = (number(bound) for bound in ratio.samples)
        text += f"; over samples, single networks reach from {low} to {high}"
    return text


def _others(one: Judged) -> str:
    """The fair controls that leave more."""
    rest = [f"{CONTROLS[name]} {ratio.text}" for name, ratio in one.fair.items() if name != one.closest]
    if rest:
        return f" Against {' and '.join(rest)}."
    return "" if one.weak else " No other control was recorded."


def _features(one: Judged) -> str:
    """Whether the collective is more than all features at once."""
    ratio = one.ratios.get(ALL_FEATURES)
    if ratio is None:
        return ""
    low, high = ratio.bounds
    verdict = "as good, as far as is known"
    if low > 1:
        verdict = "surely worse than the collective"
    elif high < 1:
        verdict = "surely better than the collective"
    return f" A linear probe of all streams' features at once is {verdict} ({ratio.text})."


def level_words(model: Model, family: str) -> str:
    """The level of a family's intervals over seeds: "95 %"."""
    return f"{100 * model.diagnosis.confidence(family):g} %"


def end_estimates(one: xr.Dataset, name: str, *dims: str) -> pd.DataFrame:
    """Of a variable at the end of training, see `figures._collective.estimates`; accuracies stay within 0 and 1."""
    return estimates(one, name, last_places(one), *dims, within=SHARE if "accuracy" in name else UNBOUNDED)
