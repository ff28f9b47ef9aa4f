"""Does emergence come to rest?"""

from __future__ import annotations

from waterjar.diagnose.collective.courses import change
from waterjar.diagnose.collective.inputs import Course
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result

LATE = 0.75


@metric(
    "emergence_plateau",
    family="collective",
    long_name="change of the emergence ratio over the last quarter of training: near 0 on a plateau",
    formula="rho(last) - rho(first snapshot from three quarters of the epochs on)",
    direction="zero",
    citation="the seed document, Metrics and Evaluation 3.2",
    needs=("streams/logits", "streams/collective_logits", "probe_samples/label"),
    made_of=("emergence_ratio",),
)
def _measure(course: Course) -> Result:
    first, last = float(course.epochs[0]), float(course.epochs[-1])
    return change(course.emergence, course.epochs, first + LATE * (last - first))
