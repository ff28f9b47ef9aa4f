"""What was measured in the form of the seed's scripts: pickles of one run, one layer, nothing from before the training.

Arrays are (Steps, N_Repeats) there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.plain_pickle import dump_plain
from waterjar.run.reader import Run

if TYPE_CHECKING:
    from waterjar.diagnose.study import Diagnosis

Floats = NDArray[np.float64]
FAMILIES = ("continual", "plasticity", "geometry")
"""What the form has a place for."""


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
        raise WaterjarError(f"layer=None, but {len(layers)} were recorded: expected one of {', '.join(layers)}")
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


def seed_files(diagnosis: Diagnosis, run: Run, dataset: str, layer: str | None) -> tuple[dict[str, bytes], list[str]]:
    """File -> contents of what was measured of one run, in the seed's form; and what is to be known about it."""
    from waterjar.diagnose.continual.export import FILE as CONTINUAL  # noqa: PLC0415 - families import this module
    from waterjar.diagnose.continual.export import cl_metrics  # noqa: PLC0415
    from waterjar.diagnose.geometry.export import FILE as GEOMETRY  # noqa: PLC0415
    from waterjar.diagnose.geometry.export import manifold_metrics  # noqa: PLC0415
    from waterjar.diagnose.plasticity.export import file_name, history  # noqa: PLC0415

    makers: dict[str, tuple[str, Callable[[xr.Dataset], object]]] = {
        "continual": (CONTINUAL, cl_metrics),
        "plasticity": (file_name(dataset), lambda result: history(result, layer=layer)),
        "geometry": (GEOMETRY, lambda result: manifold_metrics(result, layer=layer)),
    }
    files: dict[str, bytes] = {}
    notes = []
    for family, (file, make) in makers.items():
        try:
            if family not in diagnosis.results:
                raise WaterjarError(diagnosis.passed_over[family])
            one = diagnosis.results[family].isel(cell=0, drop=True).sel(seed=run.seeds)
            one = one.assign_coords(repeat=("seed", range(len(run.seeds)))).swap_dims(seed="repeat")
            files[file] = dump_plain(make(one))
            used = {key: value for key, value in diagnosis.settings(family).items() if value is not None}
            notes.append(f"settings of {file}, which were {json.dumps(used)}")
        except WaterjarError as error:
            notes.append(f"{file}: {error}")
    return files, notes
