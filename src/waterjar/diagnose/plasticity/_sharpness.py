"""How curved the loss is; measured on the live network by `waterjar.probe.sharpness`, read here."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.plasticity.stepwise import Series, probed
from waterjar.diagnose.registry import metric
from waterjar.diagnose.snapshots import Recording


@metric(
    "sharpness",
    family="plasticity",
    long_name="largest eigenvalue of the Hessian of the loss",
    formula="max eigenvalue of the second derivative of the mean loss by all trained parameters, by Lanczos iteration",
    range=(-np.inf, np.inf),
    citation="Lewkowycz et al. 2020; Lyle et al. 2023",
    version=2,
    needs=("probes/sharpness",),
    summary="sharpness_final",
)
def _measure(recording: Recording) -> Series | None:
    return probed(recording, "sharpness")
