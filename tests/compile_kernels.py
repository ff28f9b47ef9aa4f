"""Compile the kernels of manifold geometry, or load them: beside the tests, so that not every worker does it itself."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose import geometry


def main() -> None:
    """Every way through the kernels, as small as it gets."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 4)
    points = rng.standard_normal((12, 6))
    for inactive in ("zero", "active_only", "support"):
        geometry.manifold_geometry(np.maximum(points, 0), labels, n_t=6, inactive=inactive)
    geometry.simulated_capacity(points, labels, n_trials=4)


if __name__ == "__main__":
    main()
