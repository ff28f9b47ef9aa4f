"""The kernels with every index tested: compiled without, a wrong one reads or writes other memory in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLUSTERS = """
import numpy as np
from waterjar.diagnose.geometry import manifold_geometry, simulated_capacity

# Clusters that collapsed, around one point: rounding decides which points depend on others. With the first seeds a list
# of points once grew longer than there are points.
for seed in (1456, 2112, 4058, 4526, 6643, 7307, 7764, 9701, *range(500)):
    rng = np.random.default_rng(seed)
    classes, dimension, spread = int(rng.integers(3, 12)), int(rng.choice([64, 300])), 10.0 ** -rng.uniform(1, 4)
    labels = np.repeat(np.arange(classes), rng.integers(5, 15, classes))
    points = rng.standard_normal((classes, dimension))[labels]
    points += spread * rng.standard_normal((len(labels), dimension))
    manifold_geometry(spread * points + rng.standard_normal(dimension), labels, n_t=10, rng=seed)
    if seed % 10 == 0:
        few = rng.integers(1, 5)
        manifold_geometry(np.maximum(points[:, :few], 0), labels, n_t=10, rng=seed, inactive="support")
        simulated_capacity(points, labels, n_trials=3, rng=seed)
print("done")
"""


@pytest.mark.slow
def test_no_index_is_out_of_bounds(tmp_path: Path) -> None:
    asked = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    found = subprocess.run([sys.executable, "-c", CLUSTERS], env=asked, capture_output=True, text=True, check=False)
    assert found.stdout == "done\n", found.stderr
