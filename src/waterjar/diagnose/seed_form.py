"""What the pickles of the seed's scripts have in common: one run, one layer, nothing from before the training.

Arrays are (Steps, N_Repeats) there; `read` checks them, and gives (repeat, snapshot) back.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.plain_pickle import dump_plain, read_plain_pickle

Floats = NDArray[np.float64]


def of_one_run(result: xr.Dataset) -> None:
    """Refuse the result of a study."""
    if "repeat" not in result.dims:
        raise WaterjarError("the seed's form holds one run: give the result of measure(run), not of a study")


def of_one_layer(result: xr.Dataset, layer: str | None) -> xr.Dataset:
    """The result of one run and one layer, at the snapshots that follow training: step 0 is not in that form.

    Where no layer was recorded, what is per layer keeps an empty `layer`.
    """
    of_one_run(result)
    layers = [str(name) for name in result["layer"].values]
    if layer is None and len(layers) > 1:
        raise WaterjarError(f"layer=None, but {len(layers)} were recorded: one of {', '.join(layers)} would be right")
    if layer is not None and layer not in layers:
        raise unknown_name("layer", layer, layers)
    trained = result.isel(snapshot=np.flatnonzero(result["epoch"].values > 0))
    if not layers:
        return trained
    return trained.isel(layer=0 if layer is None else layers.index(layer), drop=True)


def steps_by_repeats(result: xr.Dataset, name: str) -> Floats:
    """(Steps, N_Repeats) of a variable; NaN where there is no layer."""
    values = result[name]
    if "layer" in values.dims:
        return np.full((result.sizes["snapshot"], result.sizes["repeat"]), np.nan)
    return np.asarray(values.transpose("snapshot", "repeat").values, np.float64)


def write(value: object, file: Path) -> Path:
    """Write plain values as a pickle that any numpy opens; whole or not at all."""
    data = dump_plain(value)
    draft: Path | None = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{file.name[:50]}-", dir=file.parent)
        draft = Path(name)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        draft.chmod(0o644)
        draft.replace(file)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise WaterjarError(f"could not write {file}: {error.strerror}") from error
    return file


def read(file: str | os.PathLike[str]) -> dict[str, object]:
    """The dictionary in a pickle, of which nothing is run."""
    try:
        contents = Path(file).read_bytes()
    except OSError as error:
        raise WaterjarError(f"could not read {file}: {error.strerror}") from error
    return read_plain_pickle(contents, str(file))


def part(stored: object, key: str, where: str) -> dict[Any, object]:
    """A dictionary within the dictionary."""
    found = stored.get(key) if isinstance(stored, dict) else None
    if not isinstance(found, dict):
        raise WaterjarError(f"{where} has no dictionary '{key}'")
    return found


def numbers(stored: dict[Any, object], key: str, ndim: int, where: str) -> Floats:
    """An array of this many dimensions."""
    if key not in stored:
        raise WaterjarError(f"{where} has no '{key}': its keys are {', '.join(map(str, list(stored)[:10]))}")
    try:
        array = np.asarray(stored[key])
        if array.dtype.kind not in "biuf" or array.ndim != ndim:
            raise ValueError(f"it has the shape {array.shape} and holds {array.dtype}")
    except ValueError as error:
        raise WaterjarError(f"{where}: '{key}' is not an array of numbers with {ndim} dimensions ({error})") from error
    return array.astype(np.float64)


def columns(stored: dict[Any, object], names: dict[str, str], where: str) -> dict[str, Floats]:
    """Our name -> (snapshot, repeat) of every key; all of one shape."""
    found = {ours: numbers(stored, key, 2, where) for key, ours in names.items()}
    shapes = {array.shape for array in found.values()}
    if len(shapes) > 1:
        raise WaterjarError(f"{where}: arrays of different shapes {sorted(shapes)}; one (Steps, N_Repeats) is right")
    return found
