"""Was there a shortcut at all? An index of a run without one would be a number about nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import variable
from waterjar.diagnose.result import NOT_RECORDED, Codes, Floats
from waterjar.diagnose.rigidity.side import Side
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASON

COUNT = "patched_images"
COUNTED = {COUNT, COUNT + REASON, "step", "train_task_index", "repeat", "seed"}
"""What is read of the groups that may have the count."""


def patched_images(
    counted: Sequence[xr.Dataset | None], config: Mapping[str, Any], side: Side
) -> dict[str, xr.Variable]:
    """Training images of the task trained last that carried the shortcut, per seed; an error where there were none.

    `counted` are the groups that may have the count, as far as they were recorded.
    Runs of other laboratories may not have counted: then the number is missing as `not_recorded`.
    """
    name = side.name
    _check_config(config, name)
    values, codes = _counts(counted, side)
    empty = side.seeds[values == 0]
    if empty.size:
        raise WaterjarError(
            f"{name}: no training image of the last task carried the shortcut (seed {', '.join(map(str, empty))}: "
            "patched_images is 0). There is nothing to rely on, and no index of it. Leave these runs out with select()"
        )
    attributes = {"long_name": "training images of the last task that carried the shortcut", "units": "image"}
    return variable(COUNT, ["repeat"], values, codes, attributes)


def injected(result: xr.Dataset, seeds: int) -> str:
    """Of how many of so many seeds it is known that the shortcut was there, in words."""
    told = int(np.isfinite(result[COUNT].values).sum())
    if told == seeds:
        return "patched training images were counted in every run"
    return (
        f"patched training images were counted in {told} of {seeds} runs; of the others it is unknown whether "
        "the shortcut was there"
    )


def _check_config(config: Mapping[str, Any], name: str) -> None:
    shortcut = config.get("shortcut")
    if not isinstance(shortcut, Mapping):
        return
    where = {"rate": "no training image carries it", "eval_rate": "the evaluation sets do not show it"}
    for key, what in where.items():
        if shortcut.get(key) == 0:
            raise WaterjarError(
                f"{name}: shortcut.{key} is 0: {what}, so there is no index of rigidity. "
                f'Leave it out with select("shortcut.{key} > 0")'
            )


def _counts(counted: Sequence[xr.Dataset | None], side: Side) -> tuple[Floats, Codes]:
    values, codes = np.full(side.seeds.size, np.nan), np.full(side.seeds.size, NOT_RECORDED, np.uint8)
    entered = side.steps[side.epochs == 0].max(initial=-1)  # what was counted up to there is no training of it
    for group in counted:
        if group is None or COUNT not in group:
            continue
        rows = np.isin(group["train_task_index"].values, side.trained) & (group["step"].values > entered)
        counts = group[COUNT].transpose("repeat", "step").values[:, rows]
        of_seed = {int(seed): i for i, seed in enumerate(np.atleast_1d(group["seed"].values))}
        for place, seed in enumerate(side.seeds):
            told = counts[of_seed[int(seed)]] if int(seed) in of_seed else np.empty(0)
            told = told[~np.isnan(told)]
            if told.size:  # epochs that were not counted add nothing; one that was, and had a patch, settles it
                values[place], codes[place] = told.sum(), 0
    return values, codes
