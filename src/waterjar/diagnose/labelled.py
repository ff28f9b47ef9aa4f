"""From the arrays of a metric to a labelled Dataset: (repeat, ...) of a cell, (cell, seed, ...) of a study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel

from waterjar.diagnose.joining import REASON, codes_of, concatenate, flags
from waterjar.diagnose.registry import Family, Metric
from waterjar.diagnose.result import NOT_A_NUMBER
from waterjar.diagnose.settings import dump
from waterjar.errors import WaterjarError
from waterjar.run.study import Study


def variable(
    name: str,
    dims: Sequence[str],
    values: NDArray[Any],
    reasons: NDArray[np.uint8] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> dict[str, xr.Variable]:
    """A variable and, where anything is missing, its companion. NaN without a reason is `not_a_number`.

    >>> import numpy as np
    >>> sorted(variable("pd", ["repeat"], np.array([0.1, np.nan])))
    ['pd', 'pd_reason']
    """
    found = {name: xr.Variable(dims, values, dict(attributes or {}))}
    if values.dtype.kind != "f":
        return found
    gone = np.isnan(values)
    codes = np.zeros(values.shape, np.uint8) if reasons is None else np.broadcast_to(reasons, values.shape).copy()
    if (codes[~gone] != 0).any():
        raise ValueError(f"{name}: a reason stands beside a number that is there")
    codes[gone & (codes == 0)] = NOT_A_NUMBER
    if gone.any():
        found[name + REASON] = xr.Variable(dims, codes, flags(name))
    return found


def reasons_of(dataset: xr.Dataset, name: str) -> xr.DataArray:
    """Why values of a variable are missing, as codes; 0 where they are there."""
    found = dataset[name].copy(data=codes_of(dataset.variables, name))  # type: ignore[arg-type]
    found.attrs = flags(name)
    return found


def declare(dataset: xr.Dataset, metrics: Iterable[Metric]) -> xr.Dataset:
    """Write each metric's declaration beside its numbers."""
    for metric in metrics:
        for name in {metric.name, metric.scalar} & set(dataset.variables):
            dataset[name].attrs = {**metric.attributes, **dataset[name].attrs}
    return dataset


def side_by_side(parts: Mapping[str, xr.Dataset], study: Study) -> xr.Dataset:
    """Cells over (repeat, ...) -> one Dataset over (cell, seed, ...). Seeds that a cell lacks are `not_recorded`."""
    if not parts:
        raise WaterjarError(f"{study.path}: there is nothing to measure")
    aligned = []
    for cell, part in parts.items():
        by_seed = part.swap_dims(repeat="seed").drop_vars(["repeat", "directory"], errors="ignore")
        aligned.append(by_seed.expand_dims(cell=[cell]))
    return concatenate(aligned, "cell")


def label_cells(dataset: xr.Dataset, study: Study) -> xr.Dataset:
    """Give every cell its name, method and scenario."""
    cells = [str(cell) for cell in dataset["cell"].values]
    names, first = study.cell_names, {cell: entries[0].config for cell, entries in study.cells.items()}
    return dataset.assign_coords(
        name=("cell", [names[cell] for cell in cells], {"long_name": "name of the cell"}),
        scenario=("cell", [str(first[cell].get("scenario", "")) for cell in cells], {"long_name": "scenario"}),
    )


def stamp(dataset: xr.Dataset, family: Family, settings: BaseModel, study: Study) -> xr.Dataset:
    """Say in the result what it was made of: family, versions, settings, and the root hashes of the runs."""
    declared = declare(dataset, family.metrics.values())
    declared.attrs = {
        **declared.attrs,
        "family": family.name,
        "versions": family.versions,
        "settings": json.dumps(dump(settings), sort_keys=True),
        "root_hashes": json.dumps({entry.name: entry.root_hash for entry in study.entries}),
    }
    return declared


def join_runs(parts: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Results of the runs of one cell, over (repeat, ...), put one after the other along `repeat`."""
    joined = concatenate(list(parts.values()), "repeat")
    return joined.assign_coords(repeat=np.arange(joined.sizes["repeat"]))
