"""The few arrays that this family reads of a cell: curves are thin, but the groups they stand in need not be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
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
    and not the variable are there without it. Beside it, over `repeat`: `last_row`, where along `step` its run ends (-1
    of one without a step), and `is_open`, whether that run is not sealed, so that more may come.
    """
    parts: dict[str, Arrays] = {}
    seeds: dict[str, list[int]] = {}
    last: dict[str, tuple[int, bool]] = {}
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
        steps = found["step"][1] if "step" in found else np.empty(0)
        last[path.name] = int(steps[-1]) if len(steps) else -1, root["attributes"]["status"] != "sealed"
    if not parts:
        return None
    joined, coordinates = join(parts, seeds, set(_COORDINATES))
    owners = [str(run) for run in joined["directory"][1]]
    steps = np.asarray(joined["step"][1])
    joined["last_row"] = ("repeat",), np.searchsorted(steps, [last[run][0] for run in owners], side="right") - 1, {}
    joined["is_open"] = ("repeat",), np.array([last[run][1] for run in owners], np.bool_), {}
    return to_dataset(joined, coordinates | {"last_row", "is_open"})
