"""From the arrays of a metric to a labelled Dataset: (repeat, ...) of a cell, (cell, seed, ...) of a study."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel

from waterjar.diagnose.registry import Family
from waterjar.diagnose.result import NO_RUN, NOT_A_NUMBER, NOT_RECORDED
from waterjar.diagnose.settings import dump
from waterjar.errors import WaterjarError
from waterjar.run.join import codes_of, stacked
from waterjar.run.reader import Arrays
from waterjar.run.schema import REASON, flags
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
    reasons, values = dataset.variables.get(name + REASON), dataset[name]
    found = values.copy(deep=False, data=codes_of(values.values, None if reasons is None else reasons.values))
    found.attrs = flags(name)
    return found


def side_by_side(parts: Mapping[str, xr.Dataset], study: Study) -> xr.Dataset:
    """Cells over (repeat, ...) -> one Dataset over (cell, seed, ...). Of seeds that a cell lacks there is `no_run`.

    Cells go by their names, which are unique; their hash (`cell_id`) and scenario stand beside.
    """
    if not parts:
        raise WaterjarError(f"{study.path}: there is nothing to measure")
    names, cells = study.cell_names, study.cells
    aligned = []
    for cell, part in parts.items():
        by_seed = part.swap_dims(repeat="seed").drop_vars(["repeat", "directory"], errors="ignore")
        aligned.append(by_seed.expand_dims(cell=[names[cell]]))
    scenarios = [str(cells[cell][0].config.get("scenario", "")) for cell in parts]
    joined = concatenate(aligned, "cell")
    _say_no_run(joined, aligned)
    return joined.assign_coords(
        cell_id=("cell", list(parts), {"long_name": "hash of the cell's settings and data"}),
        scenario=("cell", scenarios, {"long_name": "scenario"}),
    )


def _say_no_run(joined: xr.Dataset, parts: Sequence[xr.Dataset]) -> None:
    """Of seeds that a cell never ran, say that; that the loop did not log it would not be true."""
    ran = np.array([np.isin(joined["seed"].values, part["seed"].values) for part in parts])
    if ran.all():
        return
    lacking = xr.DataArray(~ran, dims=("cell", "seed"))
    for name, codes in joined.data_vars.items():
        if str(name).endswith(REASON) and {"cell", "seed"} <= set(codes.dims):
            gone = lacking.broadcast_like(codes.drop_vars(list(codes.coords))).transpose(*codes.dims).values
            codes.values[gone & (codes.values == NOT_RECORDED)] = NO_RUN


def stamp(dataset: xr.Dataset, family: Family, settings: BaseModel, study: Study) -> None:
    """Say in a result what it was made of: family, versions, settings, the root hashes of the runs; and the metrics.

    Each metric's declaration stands beside its numbers.
    """
    for metric in family.metrics.values():
        for name in {metric.name, metric.scalar} & set(dataset.variables):
            found = dataset.variables[name]  # the very one that the Dataset holds; `dataset[name]` takes its time
            found.attrs = {**metric.attributes, **found.attrs}
    dataset.attrs = {
        **dataset.attrs,
        "family": family.name,
        "versions": family.versions,
        "settings": json.dumps(dump(settings), sort_keys=True),
        "root_hashes": json.dumps({entry.name: entry.root_hash for entry in (*study.entries, *study.probe_runs)}),
    }
    told = {name: known.digest for name, known in study.annotations.items()}
    if told:
        dataset.attrs["annotations"] = json.dumps(told)


def join_runs(parts: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Results of the runs of one cell, over (repeat, ...), put one after the other along `repeat`."""
    joined = concatenate(list(parts.values()), "repeat")
    return joined.assign_coords(repeat=np.arange(joined.sizes["repeat"]))


def concatenate(parts: Sequence[xr.Dataset], dim: str) -> xr.Dataset:
    """Put Datasets one after the other along `dim`, with the union of the labels of every other dimension.

    What one part lacks and others have is NaN and `not_recorded`; words are empty there, flags are off. A data
    variable without `dim` gets it; so does a coordinate without it about which the parts disagree (the epoch of
    a snapshot, say), while one about which they agree is shared. A comment that not all
    parts have is no comment on all of them, and is left out.
    """
    variables: list[Arrays] = [
        {str(name): (tuple(map(str, item.dims)), item.values, item.attrs) for name, item in part.variables.items()}
        for part in parts
    ]
    coordinates = {str(name) for part in parts for name in part.coords}
    widths = [part.sizes[dim] for part in parts]
    labels = _labels(variables, [dict(part.sizes) for part in parts], dim)
    templates: Arrays = {}
    for part in variables:
        for name, item in part.items():
            if name not in templates or len(item[0]) > len(templates[name][0]):
                templates[name] = item
    joined: Arrays = {}
    for name, (own, _, about) in templates.items():
        comments = {part[name][2].get("comment") for part in variables if name in part}
        attributes = {key: value for key, value in about.items() if key != "comment" or len(comments) == 1}
        if own == (name,) and name != dim:
            joined[name] = own, labels[name], attributes
        elif not (name.endswith(REASON) and name.removesuffix(REASON) in templates):
            complete = dim in own or (name in coordinates and _agree(name, variables, labels))
            dims = own if complete else (dim, *own)
            values, codes = stacked(name, dims, variables, widths, labels, dim)
            joined[name] = dims, values, attributes
            if codes.any() and values.dtype.kind == "f" and name not in coordinates:
                joined[name + REASON] = dims, codes, flags(name)
    return xr.Dataset(
        {name: item for name, item in joined.items() if name not in coordinates},
        {name: item for name, item in joined.items() if name in coordinates},
        dict(parts[0].attrs),
    )


def _agree(name: str, variables: Sequence[Arrays], labels: Mapping[str, NDArray[Any]]) -> bool:
    """Whether all parts that have a coordinate give the same value to the same labels."""
    seen: dict[tuple[Any, ...], Any] = {}
    for part in variables:
        if name not in part:
            continue
        dims, values, _ = part[name]
        named = [part[d][1].tolist() if d in part else range(len(labels[d])) for d in dims]
        for place, value in zip(itertools.product(*named), values.ravel().tolist(), strict=True):
            known = seen.setdefault(place, value)
            if known != value and not (known != known and value != value):  # noqa: PLR0124 - NaN agrees with NaN
                return False
    return True


def _labels(variables: Sequence[Arrays], sizes: Sequence[Mapping[Any, int]], dim: str) -> dict[str, NDArray[Any]]:
    """The union of labels per dimension: as they are where all agree, else numbers sorted, words in order."""
    found: dict[str, NDArray[Any]] = {}
    for other in dict.fromkeys(str(d) for size in sizes for d in size if d != dim):
        own = [
            part[other][1] if other in part else np.arange(size[other])
            for part, size in zip(variables, sizes, strict=True)
            if other in size
        ]
        if all(np.array_equal(labels, own[0]) for labels in own):
            found[other] = own[0]
        elif all(labels.dtype.kind in "iuf" for labels in own):
            found[other] = np.unique(np.concatenate(own))
        else:
            found[other] = np.array(list(dict.fromkeys(label for labels in own for label in labels)), object)
    return found
