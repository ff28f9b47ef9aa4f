"""Worst-group accuracy: an average over T2 hides the group that a shortcut fails."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import Number, as_result, per_seed
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
        raise WaterjarError(f"groups={groups!r}: an accuracy for each group, by name, would be right")
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
)
def _worst(pair: Pair) -> dict[str, xr.Variable]:
    finals = {name: pair.final(role) for name, role in GROUPS.items()}
    worst = [worst_group_accuracy(dict(zip(finals, row, strict=True))) for row in zip(*finals.values(), strict=True)]
    values = np.array([[result.value for result in row] for row in finals.values()], np.float64).T
    codes = np.array([[result.code for result in row] for row in finals.values()], np.uint8).T
    names = np.array([result.note if result.reason == "present" else "" for result in worst], object)
    return {
        **per_seed("worst_group_accuracy", worst),
        "worst_group": xr.Variable(["repeat"], names, {"long_name": "which group is the worst"}),
        "group": xr.Variable(["group"], np.array(list(GROUPS), object), {"long_name": "classes by cue"}),
        **variable(
            "group_accuracy", ["repeat", "group"], values.reshape(len(worst), -1), codes.reshape(len(worst), -1)
        ),
    }
