"""Worst-group accuracy: an average over T2 hides the group that a shortcut fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result
from waterjar.errors import WaterjarError

GROUPS = {
    "shortcut classes, cue present": "normal",
    "shortcut classes, cue absent": "clean",
    "other classes, cue absent": "nonshortcut",
    "other classes, cue present": "nonshortcut_patched",
}
"""Classes by attribute, as in Sagawa et al.; the evaluation set that holds each."""


def worst_group_accuracy(groups: Mapping[str, Number]) -> Result:
    """min over groups of the accuracy; `note` names the group. A group without a number leaves the worst unknown.

    Sagawa et al., "Distributionally Robust Neural Networks for Group Shifts" (ICLR 2020), with the groups
    {shortcut classes, others} x {cue present, cue absent}.

    >>> worst_group_accuracy({"cue present": 0.8, "cue absent": 0.3}).note
    'cue absent'
    """
    if not isinstance(groups, Mapping) or not groups:
        raise WaterjarError(f"groups={groups!r}: expected an accuracy for each group, by name")
    found = {name: as_result(value, name) for name, value in groups.items()}
    for name, result in found.items():
        if result.reason != "present":
            return Result.missing(result.reason, f"no accuracy of '{name}'")
    worst = min(found, key=lambda name: found[name].value)
    return Result(found[worst].value, n=len(found), note=worst)


@metric(
    "worst_group_accuracy",
    family="rigidity",
    long_name="accuracy of the worst group: shortcut or other classes, cue present or absent",
    formula="min over groups of A*(group)",
    direction="higher",
    range=(0.0, 1.0),
    citation="Sagawa et al. 2020, Distributionally Robust Neural Networks for Group Shifts",
    needs=(
        "performance[t2_shortcut_normal]",
        "performance[t2_shortcut_clean]",
        "performance[t2_nonshortcut_normal]",
        "performance[t2_nonshortcut_patched]",
    ),
    symbol="WGA",
    beside={"group_accuracy": Beside(("group",), "", "")},
    made_of=("patched_accuracy", "clean_accuracy", "nonshortcut_accuracy"),
)
def _worst(pair: Pair) -> tuple[Result, dict[str, Result]]:
    finals = [pair.final(role) for role in GROUPS.values()]
    values, codes = np.stack([one.value for one in finals], -1), np.stack([one.code for one in finals], -1)
    first = np.take_along_axis(codes, (codes > 0).argmax(-1)[:, None], -1)[:, 0]  # of the first that is missing
    worst = Result.of(np.where(first > 0, np.nan, values.min(-1, initial=np.inf)), first)
    return worst, {"group_accuracy": Result.of(values, codes)}


def worst_groups(accuracies: NDArray[np.float64]) -> NDArray[Any]:
    """(repeat, group) -> (repeat,): the name of the worst group; empty where one is missing."""
    names = np.array(list(GROUPS), object)
    complete = ~np.isnan(accuracies).any(-1)
    found = np.where(complete, names[np.where(complete, accuracies.argmin(-1), 0)], "")
    return np.asarray(found, object)
