"""Draw docs/figures/geometry_cost.png: what a projection costs over N = 64 ... 4096 and M = 20 ... 500.

Five manifolds of M points, spread in 16 directions each and turned into N dimensions: the same geometry at every
N, as features of wider and wider layers. CPU time of one core; the Gram matrix, once per snapshot, apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np

from waterjar.diagnose.geometry import cone, manifolds
from waterjar.diagnose.geometry.draws import dichotomies, directions

MANIFOLDS, INSIDE, DRAWS = 5, 16, 40
DIMENSIONS = (64, 128, 256, 512, 1024, 2048, 4096)
SIZES = (20, 50, 100, 200, 500)
KERNEL = cone.project_many  # type: ignore[attr-defined]


class Timed:
    """A kernel, and the CPU seconds spent in it."""

    def __init__(self, kernel: Callable[..., None]) -> None:
        self.kernel, self.seconds = kernel, 0.0

    def __call__(self, *given: object) -> None:
        """Run it."""
        begin = time.process_time()
        self.kernel(*given)
        self.seconds += time.process_time() - begin


def cost(size: int, dimension: int) -> tuple[float, float, float]:
    """Microseconds per projection once products are there, the same for the products, and the mean support."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(MANIFOLDS), size)
    flat = np.zeros((len(labels), MANIFOLDS * (INSIDE + 1)))
    for m in range(MANIFOLDS):
        columns = slice(m * (INSIDE + 1), (m + 1) * (INSIDE + 1))
        flat[labels == m, columns] = np.concatenate([np.ones((size, 1)), rng.standard_normal((size, INSIDE))], axis=1)
    width = min(dimension, flat.shape[1])
    turned = flat[:, :width] @ np.linalg.qr(rng.standard_normal((dimension, width)))[0].T
    of = manifolds(turned, labels)
    t, y = directions(DRAWS, dimension, 0), dichotomies("uniform", DRAWS, MANIFOLDS, 0)
    searches, products = [], []
    for _ in range(5):
        cone.project_many = timed = Timed(KERNEL)  # type: ignore[attr-defined, assignment]
        found = cone.project(of, t, y)
        searches.append(timed.seconds)
        begin = time.process_time()
        _ = of.units @ of.units.T, t @ of.units.T
        products.append(time.process_time() - begin)
    return 1e6 * min(searches) / DRAWS, 1e6 * min(products) / DRAWS, float(found.count.mean())


def main() -> None:
    """Measure and draw."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # after the backend is chosen

    table = np.array([[cost(size, dimension) for dimension in DIMENSIONS] for size in SIZES])
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(SIZES)))
    for row, (size, color) in enumerate(zip(SIZES, colors, strict=True)):
        search, products, support = table[row].T
        axes[0].plot(DIMENSIONS, search, "o-", color=color, label=f"M = {size}, support {support.mean():.0f}")
        axes[1].plot(MANIFOLDS * size * support, search, "o", color=color)
        axes[2].plot(DIMENSIONS, products, "o-", color=color)
    axes[0].set(xlabel="dimension N", ylabel="µs of CPU time per projection", title="search: not with N ...")
    axes[1].set(xlabel="points × mean size of the support", title="... but with the support")
    axes[2].set(xlabel="dimension N", title=f"products u·u and u·t, shared by {DRAWS} draws")
    axes[0].set_yscale("log")
    axes[1].set_xscale("log")
    for ax in axes[[0, 2]]:
        ax.set_xscale("log", base=2)
        ax.set_xticks(DIMENSIONS, [str(n) for n in DIMENSIONS])
    axes[0].legend(frameon=False, fontsize=7, loc="upper left")
    axes[0].set_ylim(top=5 * table[:, :, :2].max())
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
