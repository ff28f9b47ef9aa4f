"""How curved the loss is; measured on the live network by `waterjar.probe.sharpness`, read here."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.plasticity.step_series import StepSeries
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


@metric(
    "sharpness",
    family="plasticity",
    long_name="largest eigenvalue of the Hessian of the loss",
    formula="max eigenvalue of the second derivative of the mean loss by all trained parameters, by Lanczos iteration",
    range=(-np.inf, np.inf),
    citation="Lewkowycz et al. 2020; Lyle et al. 2023",
    version=2,
    needs=("probes/sharpness",),
    dims=("snapshot",),
    summary="sharpness_final",
    beside={"sharpness_final": Beside()},
)
def _measure(series: StepSeries) -> tuple[Result, dict[str, Result]]:
    return series.read("probes/sharpness")
