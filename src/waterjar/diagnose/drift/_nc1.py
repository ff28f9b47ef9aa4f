"""NC1: variability within classes collapses."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from waterjar.diagnose.drift.classes import Classes
from waterjar.diagnose.drift.inputs import NO_LABELS, LayerSnapshot
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


def within_class_variability(features: ArrayLike, labels: ArrayLike) -> Result:
    """NC1 = tr(S_W S_B^+) / C (Papyan, Han & Donoho 2020, fig. 6): 0 at collapse.

    S_B is the covariance of the C class means, S_W the mean over classes of the covariance within. Undefined with one
    class, with a class of a single sample (nothing varies within it), and where all class means are the same.

    Parameters
    ----------
    features : (sample, unit), labels : (sample), whole numbers.

    >>> float(within_class_variability([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]], [0, 0, 1, 1]))
    0.0
    """
    return of_classes(Classes.of(features, labels))


def of_classes(classes: Classes) -> Result:
    """The same, of class means at hand."""
    n = len(classes.members)
    if classes.missing:
        return classes.missing
    if classes.counts.min() < 2:
        return Result.missing("undefined", "a class has a single sample: nothing varies within it", n=n)
    # S_B^+ = C V s^-2 V^T with means = U s V^T; only the directions V of class means are ever looked at
    _, values, directions = linalg.svd(classes.means, full_matrices=False, check_finite=False)
    kept = values > max(classes.means.shape) * np.finfo(np.float64).eps * values[0]
    basis = (directions[kept] / values[kept, None]).T
    within = (classes.points - classes.means[classes.members]) @ basis
    per_sample = np.einsum("sk,sk->s", within, within)
    per_class = np.bincount(classes.members, per_sample) / classes.counts
    return Result(float(per_class.mean()), n=n)  # C of S_B^+ and 1/C of the definition cancel


@metric(
    "nc1",
    family="drift",
    long_name="neural collapse 1: variability within classes, measured by that between",
    formula="tr(S_W S_B^+) / C",
    direction="none",
    range=(0, np.inf),
    citation="Papyan, Han & Donoho 2020, fig. 6",
    needs=("features", "probe_samples/label"),
    summary="nc1_final",
    symbol="NC1",
)
def _measure(snapshot: LayerSnapshot) -> Result:
    return NO_LABELS if snapshot.classes is None else of_classes(snapshot.classes)
