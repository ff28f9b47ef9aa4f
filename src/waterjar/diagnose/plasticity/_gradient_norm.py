"""How strongly the loss still pulls."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.plasticity.magnitude import scaled_back
from waterjar.diagnose.plasticity.parameters import root_mean_square
from waterjar.diagnose.plasticity.stepwise import Series, logged
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.snapshots import Recording


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
    summary="gradient_norm_final",
)
def _measure(recording: Recording) -> Series | None:
    return logged(recording, "train", "gradient_norm")
