"""Continual metrics in the form of the seed's scripts: `cl_metrics.pkl`.

    {"transfer": (N_Eval_Tasks, N_Repeats), "remembering": (N_Eval_Tasks, N_Train_Tasks, N_Repeats),
     "stats": {"rem_mean", "rem_std", "trans_mean", "trans_std"}}

`stats` is over repeats: of each the mean over tasks first, then mean and standard deviation (ddof 1). The scripts that
the form comes from averaged over repeats first, and had no `_std`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.labelled import declare, variable
from waterjar.diagnose.registry import families
from waterjar.diagnose.seed_form import numbers, of_one_run, part, read, write
from waterjar.errors import WaterjarError

FILE = "cl_metrics.pkl"


def cl_metrics(result: xr.Dataset) -> dict[str, Any]:
    """That dictionary, of one run's result. Repeats of which a mean is missing are left out of `stats`."""
    of_one_run(result)
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


def write_pickle(result: xr.Dataset, folder: str | os.PathLike[str]) -> Path:
    """Write `cl_metrics.pkl` into a folder; only plain containers, numbers and numpy arrays are in it."""
    return write(cl_metrics(result), Path(folder) / FILE)


def read_pickle(file: str | os.PathLike[str]) -> xr.Dataset:
    """Read such a file: `remembering` (repeat, train_task, eval_task), `forward_transfer` (repeat, eval_task).

    The numbers of `stats` become attributes. Nothing of the file is run.
    """
    stored, where = read(file), str(file)
    transfer, remembering = numbers(stored, "transfer", 2, where), numbers(stored, "remembering", 3, where)
    if remembering.shape[::2] != transfer.shape:
        raise WaterjarError(
            f"{where}: transfer has shape {transfer.shape}, remembering {remembering.shape}; (eval, repeat) and (eval, "
            "train, repeat) of the same ones would be right"
        )
    found = variable("forward_transfer", ("repeat", "eval_task"), transfer.T)
    found |= variable("remembering", ("repeat", "train_task", "eval_task"), remembering.transpose(2, 1, 0))
    evaluated, trained, repeats = remembering.shape
    labels = {"repeat": np.arange(repeats), "train_task": np.arange(trained), "eval_task": np.arange(evaluated)}
    stats = {str(key): value for key, value in part(stored, "stats", where).items() if isinstance(value, int | float)}
    attributes = {key: float(value) for key, value in stats.items()}
    return declare(xr.Dataset(found, labels, attributes), families()["continual"].metrics.values())
