"""The curves behind the rigidity index, seed by seed beside the baseline, as rows of `eri_dynamics`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.labelled import NOT_A_NUMBER
from waterjar.diagnose.rigidity.adaptation import crossings
from waterjar.diagnose.rigidity.curves import NEVER_REACHED, Codes, Crossing, Floats, trailing_mean
from waterjar.diagnose.rigidity.restricted_delay import restricted_delays
from waterjar.diagnose.rigidity.side import Side, for_seeds, full_eval_sets, read_side
from waterjar.run.schema import REASONS
from waterjar.run.study import Study
from waterjar.view.curves import mean_table


def eri_rows(study: Study, result: xr.Dataset, band: str) -> pd.DataFrame:
    """Rows of `eri_dynamics.data`, by the settings that the result was measured with."""
    how = json.loads(result.attrs["settings"])
    read = {key: how[key] for key in ("variable", "checkpoint")}
    sets = full_eval_sets(how["eval_sets"])
    names = {str(c): str(n) for c, n in zip(result["cell"].values, result["name"].values, strict=True)}
    recorded = study.load("performance")
    sides = {names[c]: read_side(recorded[c], names[c], eval_sets=sets, **read) for c in names if c in recorded}
    base = {str(n): str(b) for n, b in zip(result["name"].values, result["baseline"].values, strict=True)}
    parts = []
    for cell, side in sides.items():
        other = None if base[cell] in ("", cell) else for_seeds(sides[base[cell]], side.seeds)
        rows = [*_accuracy(side, how["window"], band), *_crossing(side, other, how)]
        if other is not None:
            rows += [_delay(side, other, how, band), _deficit(side, other, how["window"], band)]
        parts += [part.assign(cell=cell, baseline=base[cell]) for part in rows]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    first = ["panel", "cell", "baseline", "quantity", "seed", "effective_epoch"]
    return table[[*first, *(column for column in table.columns if column not in first)]]


def _smooth(side: Side, role: str, window: int) -> tuple[Floats, Codes]:
    values = trailing_mean(side.values[role], window)
    codes = side.reasons[role]
    return values, np.where(np.isnan(values) & (codes == 0), NOT_A_NUMBER, codes).astype(np.uint8)


def _rows(panel: str, quantity: str, epochs: Floats, values: Floats, codes: Codes, band: str) -> pd.DataFrame:
    about: dict[str, Any] = {"panel": panel, "quantity": quantity, "effective_epoch": epochs}
    return pd.DataFrame(about).join(mean_table(values, codes, band=band))


def _accuracy(side: Side, window: int, band: str) -> list[pd.DataFrame]:
    patched, masked = (_smooth(side, role, window) for role in ("normal", "masked"))
    gap, why = patched[0] - masked[0], np.maximum(patched[1], masked[1])
    return [
        _rows("accuracy", "patched", side.epochs, *patched, band),
        _rows("accuracy", "masked", side.epochs, *masked, band),
        _rows("sfr", "sfr", side.epochs, gap, why, band),
    ]


def _both(side: Side, other: Side | None, how: dict[str, Any]) -> tuple[Crossing, Crossing]:
    found = [crossings(one, side, how["threshold"], how["window"]) for one in (side, other)]
    own, theirs = (Crossing(one.epoch[:, 0], one.reason[:, 0]) for one in found)
    return own, theirs


def _crossing(side: Side, other: Side | None, how: dict[str, Any]) -> list[pd.DataFrame]:
    own, theirs = _both(side, other, how)
    both = [("learner", own)] if other is None else [("learner", own), ("baseline", theirs)]
    return [
        pd.DataFrame({
            "panel": "crossing", "quantity": quantity, "seed": side.seeds, "effective_epoch": found.epoch,
            "threshold": how["threshold"], "censored": found.reason == NEVER_REACHED,
            "reason": ["" if code == 0 else REASONS[code] for code in found.reason],
        })
        for quantity, found in both
    ]  # fmt: skip


def _delay(side: Side, other: Side, how: dict[str, Any], band: str) -> pd.DataFrame:
    """AD within L epochs, for every L at which either was evaluated; it ends in `ad_restricted`."""
    own, theirs = _both(side, other, how)
    budget = min(side.budget, other.budget)
    limits = np.unique(np.concatenate([side.epochs, other.epochs]))
    limits = limits[limits <= budget]
    found = [restricted_delays(own, theirs, limit) for limit in limits]
    values = np.stack([one.epoch for one in found], axis=1) if found else np.empty((side.seeds.size, 0))
    codes = np.stack([one.reason for one in found], axis=1) if found else np.empty((side.seeds.size, 0), np.uint8)
    return _rows("ad", "ad_within", limits, values, codes, band)


def _deficit(side: Side, other: Side, window: int, band: str) -> pd.DataFrame:
    """PD at every epoch at which both were evaluated."""
    (own, why), (theirs, their_why) = (_smooth(one, "normal", window) for one in (side, other))
    epochs, i, j = np.intersect1d(np.round(side.epochs, 9), np.round(other.epochs, 9), return_indices=True)
    return _rows("pd", "pd", epochs, theirs[:, j] - own[:, i], np.maximum(why[:, i], their_why[:, j]), band)
