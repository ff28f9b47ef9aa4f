"""What a fresh linear probe reads from each eval set."""

from __future__ import annotations

from waterjar.diagnose.drift.inputs import LayerSnapshot
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


@metric(
    "probe_accuracy",
    family="drift",
    long_name="accuracy of a fresh linear probe on each eval set",
    formula="leave-one-out accuracy of ridge regression from features to one-hot labels",
    direction="higher",
    range=(0, 1),
    citation="Alain & Bengio 2017; Davari et al. 2022",
    needs=("features", "probe_samples/label"),
    dims=("eval_set",),
    summary="probe_accuracy_final",
    matters=2,
)
def _measure(snapshot: LayerSnapshot) -> Result:
    return snapshot.probe_accuracy
