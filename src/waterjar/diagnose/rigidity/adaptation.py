"""AD: how many epochs of the last task a learner needs beyond its baseline; censored where a side never gets there."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import NEVER_REACHED, Codes, Floats, Result
from waterjar.diagnose.rigidity.curves import (
    Crossing,
    check_curve,
    check_epochs,
    check_threshold,
    first_epoch_at,
    trailing_mean,
)
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

_NEEDS = ("performance[t2_shortcut_normal]",)
_SOURCE = "Gu & Shi, The Einstellung Rigidity Index"


def adaptation_delay(
    curve: ArrayLike,
    baseline: ArrayLike | None = None,
    *,
    epochs: ArrayLike | None = None,
    baseline_epochs: ArrayLike | None = None,
    threshold: float = 0.6,
    window: int = 3,
) -> Result:
    """Adaptation delay, AD = E_CL(tau) - E_S(tau): negative where the learner is faster than its baseline.

    E(tau) is the first epoch at which the trailing mean over `window` evaluations reaches `threshold`. Gu & Shi,
    "Diagnosing Shortcut-Induced Rigidity in Continual Learning: The Einstellung Rigidity Index".

    Parameters
    ----------
    curve, baseline : accuracies on the shortcut classes, (epoch,). Without a baseline the result is E(tau) itself,
        and its note says so.
    epochs, baseline_epochs : increasing; 1, 2, 3 ... by default. A baseline as long as the curve shares its epochs.

    A side that never reaches the threshold is right-censored: NaN, `never_reached`, `censored`, and the note names
    the side. NaN in a curve before it reaches the threshold leaves the epoch unknown: NaN, `not_a_number`.

    >>> float(adaptation_delay([0.1, 0.2, 0.7, 0.8], [0.7, 0.8, 0.8, 0.8], window=1))
    2.0
    >>> adaptation_delay([0.7, 0.7], [0.1, 0.2]).note
    'the baseline never reached 0.6 in 2 evaluations'
    """
    tau = check_threshold(threshold)
    values = check_curve(curve, "curve")
    own = _crossing(values, check_epochs(epochs, values.size, "epochs"), tau, window)
    if baseline is None:
        if baseline_epochs is not None:
            raise WaterjarError("baseline_epochs without a baseline: give baseline= too, or leave both out")
        return _result(own, own.reason, {"the curve": (own, values.size)}, tau, "no baseline: epochs to the threshold")
    other_values = check_curve(baseline, "baseline")
    if baseline_epochs is None and epochs is not None:
        if other_values.size != values.size:
            raise WaterjarError(
                f"epochs are given, the curve has {values.size} evaluations and the baseline {other_values.size}: "
                "give baseline_epochs too"
            )
        baseline_epochs = epochs
    axis = check_epochs(baseline_epochs, other_values.size, "baseline_epochs")
    other = _crossing(other_values, axis, tau, window)
    difference = delay(own, other)
    sides = {"the curve": (own, values.size), "the baseline": (other, other_values.size)}
    return _result(difference, difference.reason, sides, tau, "")


def _crossing(values: Floats, epochs: Floats, threshold: float, window: int) -> Crossing:
    return first_epoch_at(trailing_mean(values, window), threshold, epochs=epochs)


def _result(found: Crossing, code: Codes, sides: dict[str, tuple[Crossing, int]], tau: float, note: str) -> Result:
    n = next(iter(sides.values()))[1]
    reason = REASONS[int(code)]
    if reason == "present":
        return Result(float(found.epoch), n=n, note=note)
    if reason == "never_reached":
        which = [
            f"{side} never reached {tau:g} in {size} evaluations"
            for side, (crossing, size) in sides.items()
            if int(crossing.reason) == NEVER_REACHED
        ]
        return Result.missing(reason, "; ".join(which), n=n, censored=True)
    which = [side for side, (crossing, _) in sides.items() if int(crossing.reason) not in (0, NEVER_REACHED)]
    return Result.missing(reason, f"{' and '.join(which)}: NaN before {tau:g} is reached", n=n)


def delay(own: Crossing, other: Crossing) -> Crossing:
    """E_CL - E_S, vectorised. What was not measured comes before what was not reached: it is not censored."""
    unknown_own = np.where(own.reason == NEVER_REACHED, 0, own.reason)
    unknown_other = np.where(other.reason == NEVER_REACHED, 0, other.reason)
    unknown = np.where(unknown_own > 0, unknown_own, unknown_other)
    censored = (own.reason == NEVER_REACHED) | (other.reason == NEVER_REACHED)
    reason = np.where(unknown > 0, unknown, np.where(censored, NEVER_REACHED, 0)).astype(np.uint8)
    return Crossing(np.where(reason == 0, own.epoch - other.epoch, np.nan), reason)


def restricted(own: Crossing, budget: float) -> Crossing:
    """min(E, L): what never reached the threshold counts as L, the budget. What was not measured stays missing."""
    epoch = np.where(own.reason == NEVER_REACHED, budget, np.minimum(own.epoch, budget))
    return Crossing(epoch, np.where(own.reason == NEVER_REACHED, 0, own.reason).astype(np.uint8))


def flags(found: Crossing) -> Result:
    """1 where a side never reached the threshold, 0 where it did, missing where it was not measured."""
    known = (found.reason == 0) | (found.reason == NEVER_REACHED)
    return Result.of(np.where(known, found.reason == NEVER_REACHED, np.nan), found.reason)


FLAG = {"flag_values": [0, 1], "flag_meanings": "reached never_reached"}
_FLAGS = Beside((), "never reached the threshold", "", FLAG)


@metric(
    "adaptation_epoch",
    family="rigidity",
    long_name="first effective epoch of the last task at which the shortcut classes reach the threshold",
    formula="E(tau) = min {epoch : trailing mean of A(normal) >= tau}",
    units="epoch",
    direction="lower",
    range=(0.0, np.inf),
    citation=_SOURCE,
    needs=_NEEDS,
    symbol="E",
)
def _epoch(pair: Pair) -> Result:
    own, _ = pair.at_threshold
    return Result.of(*own)


@metric(
    "ad",
    family="rigidity",
    long_name="adaptation delay",
    formula="AD = E_CL(tau) - E_S(tau), paired by seed",
    units="epoch",
    citation=_SOURCE,
    version=2,
    needs=_NEEDS,
    symbol="AD",
    relative=True,
    beside={
        "baseline_adaptation_epoch": Beside((), "", "epoch"),
        "ad_censored_learner": _FLAGS,
        "ad_censored_baseline": _FLAGS,
    },
    made_of=("adaptation_epoch",),
)
def _delay(pair: Pair) -> tuple[Result, dict[str, Result]]:
    own, other = pair.at_threshold
    beside = {
        "baseline_adaptation_epoch": Result.of(*other),
        "ad_censored_learner": flags(own),
        "ad_censored_baseline": flags(other),
    }
    return Result.of(*delay(own, other)), beside  # without a baseline there is none: E alone is known
