"""The curves behind the rigidity index, seed by seed beside the baseline, over effective epochs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.analysis import Analysis
from waterjar.diagnose.measuring import units_of
from waterjar.diagnose.result import NOT_A_NUMBER, Codes, Floats
from waterjar.diagnose.rigidity import FAMILY
from waterjar.diagnose.rigidity.curves import Crossing, trailing_mean
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.restricted_delay import restricted_delays
from waterjar.diagnose.rigidity.side import Side, read_side
from waterjar.run.study import Study


class Course(NamedTuple):
    """A quantity over effective epochs: values and codes (repeat, epoch)."""

    panel: str
    """accuracy, sfr, ad or pd."""
    quantity: str
    """patched or masked, of accuracy; else what is measured."""
    epochs: Floats
    values: Floats
    codes: Codes


class Dynamics(NamedTuple):
    """How the index of one cell comes about."""

    cell: str
    baseline: str
    """The name of its baseline, which may be itself; empty where it has none."""
    seeds: NDArray[np.int64]
    courses: list[Course]
    crossings: dict[str, Crossing]
    """`learner`, and where it is compared `baseline` -> when every seed reaches the threshold."""


def dynamics(study: Study, result: xr.Dataset) -> Iterator[Dynamics]:
    """Every cell of a result of `rigidity.measure`, by the settings that it was measured with.

    Curves are trailing means over `window` evaluations, by which crossings are found.
    """
    settings = FAMILY.settings(json.loads(result.attrs["settings"]))
    cells = {str(name): str(cell) for name, cell in zip(result["cell"].values, result["cell_id"].values, strict=True)}
    units = units_of(FAMILY, study, Analysis(settings={"rigidity": {"baseline": None}}))  # which one, the result says
    sides = {unit.name: read_side(unit, settings) for unit in units if unit.name in cells.values()}
    bases = [str(name) for name in result["baseline"].values]
    for (name, cell), base in zip(cells.items(), bases, strict=True):
        if cell in sides:
            other = None if base in ("", name) else sides.get(cells.get(base, ""))
            yield _of_pair(cell, base, Pair(sides[cell], other, settings))


def _of_pair(cell: str, baseline: str, pair: Pair) -> Dynamics:
    side, window = pair.learner, pair.settings.window
    own, masked = (_smooth(side, role, window) for role in ("normal", "masked"))
    courses = [
        Course("accuracy", "patched", side.epochs, *own),
        Course("accuracy", "masked", side.epochs, *masked),
        Course("sfr", "sfr", side.epochs, own[0] - masked[0], np.maximum(own[1], masked[1])),
    ]
    crossings = dict(zip(("learner", "baseline"), pair.at_threshold, strict=True))
    if pair.baseline is None:
        del crossings["baseline"]
    else:
        courses += [_delay(pair, pair.baseline), _deficit(pair, pair.baseline)]
    return Dynamics(cell, baseline, side.seeds, courses, crossings)


def _smooth(side: Side, role: str, window: int) -> tuple[Floats, Codes]:
    values = trailing_mean(side.values[role], window)
    codes = side.reasons[role]
    return values, np.where(np.isnan(values) & (codes == 0), NOT_A_NUMBER, codes).astype(np.uint8)


def _delay(pair: Pair, other: Side) -> Course:
    """AD within L epochs, for every L at which either was evaluated; it ends in `ad_restricted`."""
    limits = np.unique(np.concatenate([pair.learner.epochs, other.epochs]))
    limits = limits[limits <= pair.budget]
    found = [restricted_delays(*pair.at_threshold, limit) for limit in limits]
    shape = (pair.learner.seeds.size, limits.size)
    values = np.array([one.epoch for one in found], np.float64).T.reshape(shape)
    codes = np.array([one.reason for one in found], np.uint8).T.reshape(shape)
    return Course("ad", "ad_within", limits, values, codes)


def _deficit(pair: Pair, other: Side) -> Course:
    """PD at every epoch at which both were evaluated."""
    side, window = pair.learner, pair.settings.window
    (own, why), (theirs, their_why) = (_smooth(one, "normal", window) for one in (side, other))
    epochs, i, j = np.intersect1d(np.round(side.epochs, 9), np.round(other.epochs, 9), return_indices=True)
    return Course("pd", "pd", epochs, theirs[:, j] - own[:, i], np.maximum(why[:, i], their_why[:, j]))
