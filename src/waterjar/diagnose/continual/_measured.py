"""What a metric of this family hands back, and how it is labelled, summed up and counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.continual._arrays import Bools, Floats
from waterjar.diagnose.labelled import UNDEFINED, variable
from waterjar.diagnose.registry import Direction, Metric

_OTHER_WAY: dict[Direction, Direction] = {"higher": "lower", "lower": "higher", "zero": "zero", "none": "none"}


@dataclass(frozen=True)
class Measured:
    """A metric's values over (repeat, *dims), and what is to be known about them."""

    values: Floats
    dims: tuple[str, ...]
    """Those after `repeat`."""
    reasons: NDArray[np.uint8]
    """Why what the value is made of is missing, 0 where it is there. A NaN made of what is there is `undefined`."""
    defined: Bools | None = None
    """(*dims): where the definition has a value at all; everywhere if None."""
    loss_flips: bool = False
    """Of a loss, the other direction is the better one."""
    loss_units: str = ""
    """Units of a loss, where the metric has those of what it is made of."""
    over_all_tasks: bool = False
    """It asks for no task's own training: a run that never trained some of its tasks has it all the same."""


def label(declared: Metric, measured: Measured, lacking: NDArray[np.uint8], *, is_loss: bool) -> dict[str, xr.Variable]:
    """The variables of a metric: its values and, if it has more than one a repeat, their mean and what that leaves out.

    `<name>_mean` is over what the definition covers. What is undefined there (both at chance, say) is left out and
    counted in `<name>_n_undefined`; anything else that is missing makes the mean missing, for the same reason.
    `<name>_n` counts what is there.

    `lacking` (repeat,) is not 0 where some tasks of the run were never trained. One number per repeat is then missing
    for that reason, not taken over fewer tasks than elsewhere; values of single tasks and pairs stay.
    """
    if not measured.dims and not measured.over_all_tasks:
        values = np.where(lacking > 0, np.nan, measured.values)
        measured = replace(measured, values=values, reasons=np.where(lacking > 0, lacking, measured.reasons))
    gone = np.isnan(measured.values)
    blamed = np.where(measured.reasons > 0, measured.reasons, UNDEFINED)
    defined = np.ones(measured.values.shape[1:], np.bool_) if measured.defined is None else measured.defined
    codes = np.where(gone, np.where(defined, blamed, UNDEFINED), 0).astype(np.uint8)
    attributes = _of_loss(declared, measured) if is_loss else {}
    found = variable(declared.name, ("repeat", *measured.dims), measured.values, codes, attributes)
    if declared.summary:
        flat, why = measured.values[:, defined], codes[:, defined]  # (repeat, what is covered)
        kept = why == 0
        missing = np.where(why == UNDEFINED, 0, why).max(-1, initial=0).astype(np.uint8)
        missing = np.where(lacking > 0, lacking, missing)
        count = kept.sum(-1)
        total = np.where(kept, flat, 0.0).sum(-1)
        known = (count > 0) & (missing == 0)
        mean = np.where(known, total / np.maximum(count, 1), np.nan)
        reasons = np.where(known, 0, np.where(missing > 0, missing, UNDEFINED)).astype(np.uint8)
        found |= variable(declared.summary, ("repeat",), mean, reasons, attributes)
        about = {"long_name": f"values of {declared.name} left out of its mean, being undefined", "units": "1"}
        found[f"{declared.name}_n_undefined"] = xr.Variable(("repeat",), (why == UNDEFINED).sum(-1), about)
        about = {"long_name": f"values of {declared.name} that are there, which its mean is over", "units": "1"}
        found[f"{declared.name}_n"] = xr.Variable(("repeat",), count, about)
    return found


def _of_loss(declared: Metric, measured: Measured) -> dict[str, Any]:
    """Where a metric of a loss differs from its declaration, which is that of an accuracy."""
    changed: dict[str, Any] = {}
    if measured.loss_flips:
        changed["direction"] = _OTHER_WAY[declared.direction]
    if measured.loss_units:
        low = 0.0 if declared.range[0] == 0 else -np.inf
        changed |= {"units": measured.loss_units, "valid_min": low, "valid_max": np.inf}
    return changed
