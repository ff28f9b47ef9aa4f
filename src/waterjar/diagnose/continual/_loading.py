"""The few arrays that this family reads of a cell: curves are thin, but the groups they stand in need not be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from waterjar.diagnose.labelled import REASON
from waterjar.run.join import join
from waterjar.run.reader import Arrays, to_dataset
from waterjar.run.root import read_array, read_root

_COORDINATES = ("step", "epoch", "train_task_index", "eval_set", "eval_task", "repeat", "seed")


def read_roots(paths: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """Each run's root, read once."""
    return {path: read_root(path) for path in paths}


def load_cell(roots: dict[Path, dict[str, Any]], group: str, variable: str) -> xr.Dataset | None:
    """One variable of a group of the runs of a cell, joined along `repeat`; None if no run has the group.

    As `Study.load`, but class accuracies and whatever else stands in the group are not read. Runs that have the group
    and not the variable are there without it.
    """
    parts: dict[str, Arrays] = {}
    seeds: dict[str, list[int]] = {}
    for path, root in roots.items():
        nodes = root["consolidated_metadata"]["metadata"]
        if group not in nodes:
            continue
        found: Arrays = {}
        for name in (*_COORDINATES, variable, variable + REASON):
            node = nodes.get(f"{group}/{name}")
            if node is not None:
                values = read_array(path, f"{group}/{name}", node)
                found[name] = (tuple(node["dimension_names"]), values, node["attributes"])
        parts[path.name] = found
        seeds[path.name] = list(root["attributes"]["seeds"])
    return to_dataset(*join(parts, seeds, set(_COORDINATES))) if parts else None
