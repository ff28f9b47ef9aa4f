"""Every array of a run as one .npy file, in a folder for each group, for programs that read neither Zarr nor xarray.

`<out>/<run>/<group>/<array>.npy`, and `about.json` beside the groups: dimensions, units, meaning and flags of each
array, and what the run says of itself. Nothing that was recorded is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file
from waterjar.run.formats import Made
from waterjar.run.reader import Run
from waterjar.run.shown import json_text, shown_settings
from waterjar.run.study import Study

TITLE = "a folder per run: every array of every group as .npy, and about.json"

_SAID = (
    "run_id",
    "cell_id",
    "status",
    "seeds",
    "tasks",
    "eval_sets",
    "eval_sizes",
    "classes",
    "labels",
    "waterjar_schema",
)


def export_runs(study: Study, out: Path, settings: None = None) -> list[Made]:
    """Write all runs of a study, each into a folder of its own."""
    taken = [out / entry.name for entry in study.entries if (out / entry.name).exists()]
    if taken:
        raise WaterjarError(f"{taken[0]} is there already: choose another place")
    return [Made(_export(run, out / run.path.name)) for run in study]


def _export(run: Run, place: Path) -> Path:
    arrays: dict[str, Any] = {}
    try:
        for key, node in run.nodes.items():
            if node["node_type"] == "array":
                _write(run, key, place / f"{key}.npy")
                arrays[key] = {"dims": node["dimension_names"], "shape": node["shape"], **node["attributes"]}
    except OSError as error:
        raise WaterjarError(f"could not write to {place}: {error.strerror or error}") from error
    about = {key: run.attributes[key] for key in _SAID if key in run.attributes}
    about |= {"root_hash": run.root_hash, "config": shown_settings(run.config), "arrays": arrays}
    about |= {"annotations": run.annotations.digest} if run.annotations else {}
    write_file(place / "about.json", json_text(about))
    return place


def _write(run: Run, key: str, file: Path) -> None:
    """One array; what grows by snapshots is copied one by one, since all together may be larger than memory."""
    node = run.nodes[key]
    file.parent.mkdir(parents=True, exist_ok=True)
    if node["dimension_names"][:1] != ["snapshot"] or len(node["shape"]) == 1:
        values = run.array(key)
        with file.open("wb") as target:
            npy.write_array(target, values.astype(str) if values.dtype.kind == "O" else values, allow_pickle=False)
        return
    count, *inner = node["shape"]
    header = {
        "descr": npy.dtype_to_descr(np.dtype(node["data_type"])),
        "fortran_order": False,
        "shape": (count, *inner),
    }
    with file.open("wb") as target:
        npy.write_array_header_1_0(target, header)
        for place in range(count):
            row = run.array(key, [(place, place + 1), *((0, size) for size in inner)])
            target.write(np.ascontiguousarray(row).tobytes())
