"""What the code before the redesign made of three short studies, and how it is kept.

Of each study there are `<name>.yaml` (its declaration), `<name>.tar.xz` (its runs as they were recorded) and
`<name>.npz` (every number that was measured of them, to the last bit). `freeze.py` made them.
"""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
MEASURED_HERE = os.environ.get("WATERJAR_BEFORE")
"""A folder with the .npz that the old code made on this very machine, if there is one: `freeze.py --measure FOLDER`."""
STUDIES = ("einstellung_seed", "einstellung_paper", "binary_cifar100")
FAMILIES = ("continual", "cost", "drift", "geometry", "plasticity", "rigidity")
META = "meta"


def cases(name: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The settings that were given, by case and family; what is not given is a default."""
    return {
        "default": {family: {} for family in FAMILIES},
        "changed": {
            "continual": {"integrator": "auc", "forgetting_reference": "learned"},
            "drift": {"ridge": 0.1, "matrix": 4},
            "geometry": {"n_t": 30, "simulate_every": 4 if name.startswith("binary") else 2, "n_trials": 30},
            "plasticity": {"tau": 0.2},
            "rigidity": {"threshold": 0.3, "window": 2, "composite": True},
        },
        "loss": {"continual": {"metric_type": "loss"}},
    }


def unpack(name: str, folder: Path) -> Path:
    """The recorded study, as a folder of its own in `folder`."""
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        archive.extractall(folder / name, filter="data")
    return folder / name


def load(name: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays by `<case>/<family>/<variable>`, and what is told beside them; see `freeze.frozen_results`."""
    with np.load(Path(MEASURED_HERE or HERE, f"{name}.npz"), allow_pickle=False) as stored:
        arrays = {key: stored[key] for key in stored.files}
    meta = json.loads(arrays.pop(META).tobytes())
    arrays |= {key: arrays[about["same_as"]] for key, about in meta["variables"].items() if "same_as" in about}
    return arrays, meta
