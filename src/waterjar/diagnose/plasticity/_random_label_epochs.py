"""Whether a network can still learn anything; measured by `waterjar.probe.random_label_probe`, read here."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.plasticity.stepwise import Series, probed
from waterjar.diagnose.registry import metric
from waterjar.diagnose.snapshots import Recording


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
    summary="random_label_epochs_final",
)
def _measure(recording: Recording) -> Series | None:
    return probed(recording, "random_label_epochs")
