"""Whether a network can still learn anything; measured by `waterjar.probe.random_label_probe`, read here."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.plasticity.step_series import StepSeries
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


@metric(
    "random_label_epochs",
    family="plasticity",
    long_name="epochs that a copy of the network takes to fit fresh random labels",
    formula="first epoch at which the accuracy on random labels reaches the target; never_reached where it does not",
    units="epoch",
    direction="lower",
    range=(0, np.inf),
    citation="Lyle et al. 2023, sec. 3",
    needs=("probes/random_label_epochs",),
    dims=("snapshot",),
    summary="random_label_epochs_final",
    beside={"random_label_epochs_final": Beside(units="epoch")},
)
def _measure(series: StepSeries) -> tuple[Result, dict[str, Result]]:
    return series.read("probes/random_label_epochs")
