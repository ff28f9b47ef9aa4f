"""Continual metrics in the form of the seed's scripts: `cl_metrics.pkl`.

    {"transfer": (N_Eval_Tasks, N_Repeats), "remembering": (N_Eval_Tasks, N_Train_Tasks, N_Repeats),
     "stats": {"rem_mean", "rem_std", "trans_mean", "trans_std"}}

`stats` is over repeats: of each the mean over tasks first, then mean and standard deviation (ddof 1). The scripts that
the form comes from averaged over repeats first, and had no `_std`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.seed_form import of_one_run
from waterjar.errors import WaterjarError

FILE = "cl_metrics.pkl"


def cl_metrics(result: xr.Dataset) -> dict[str, Any]:
    """That dictionary, of one run's result. Repeats of which a mean is missing are left out of `stats`."""
    of_one_run(result)
    if "eval_visit" in result.coords:
        raise WaterjarError("a task is trained again, and the seed's form has one row per task: visits are not merged")
    stats: dict[str, float] = {}
    for key, name in (("rem", "remembering_mean"), ("trans", "forward_transfer_mean")):
        stats[f"{key}_mean"], stats[f"{key}_std"] = _over_repeats(np.asarray(result[name].values, np.float64))
    return {
        "transfer": result["forward_transfer"].transpose("eval_task", "repeat").values,
        "remembering": result["remembering"].transpose("eval_task", "train_task", "repeat").values,
        "stats": stats,
    }


def _over_repeats(values: NDArray[np.float64]) -> tuple[float, float]:
    there = values[~np.isnan(values)]
    mean = float(there.mean()) if there.size else float("nan")
    return mean, float(there.std(ddof=1)) if there.size > 1 else float("nan")
