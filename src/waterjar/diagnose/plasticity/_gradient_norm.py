"""How strongly the loss still pulls."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.magnitude import scaled_back
from waterjar.diagnose.plasticity.parameters import root_mean_square
from waterjar.diagnose.plasticity.step_series import StepSeries
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


def gradient_norm(gradient: ArrayLike) -> Result:
    """L2 norm of a gradient of any shape.

    >>> float(gradient_norm([3.0, 4.0, 0.0, 0.0]))
    5.0
    """
    found = root_mean_square(gradient)
    if found.reason != "present":
        return found
    share, exponent = math.frexp(float(found))
    return scaled_back(share * math.sqrt(found.n), exponent, n=found.n)


@metric(
    "gradient_norm",
    family="plasticity",
    long_name="norm of the gradient of the training loss, as recorded at the step of the snapshot",
    formula="||gradient||_2",
    range=(0, np.inf),
    citation="recorded by the training loop",
    needs=("train/gradient_norm",),
    dims=("snapshot",),
    summary="gradient_norm_final",
    beside={"gradient_norm_final": Beside()},
)
def _measure(series: StepSeries) -> tuple[Result, dict[str, Result]]:
    return series.read("train/gradient_norm")
