"""The course of a collective over training, under the keys of the seed document."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from waterjar.errors import WaterjarError


def history(found: xr.Dataset, repeat: int = 0) -> dict[str, list[Any]]:
    """emergence, collective_acc and individual_accs (stream -> accuracy), an entry per snapshot, NaN where missing.

    Parameters
    ----------
    found : what `measure` gives of a run.
    repeat : which of its repeats.
    """
    needed = ("emergence_ratio", "collective_accuracy", "individual_accuracy")
    lacking = [name for name in needed if name not in found]
    if lacking or "repeat" not in found.dims:
        raise WaterjarError(f"found lacks {', '.join(lacking) or 'repeats'}: expected what measure(run) gives of a run")
    if not 0 <= repeat < found.sizes["repeat"]:
        raise WaterjarError(f"repeat={repeat}: expected 0 to {found.sizes['repeat'] - 1}")
    own = found.isel(repeat=repeat)
    names = [str(name) for name in found["stream"].values]
    each = np.asarray(own["individual_accuracy"].transpose("snapshot", "stream").values, np.float64)
    return {
        "emergence": own["emergence_ratio"].values.tolist(),
        "collective_acc": own["collective_accuracy"].values.tolist(),
        "individual_accs": [dict(zip(names, row.tolist(), strict=True)) for row in each],
    }
