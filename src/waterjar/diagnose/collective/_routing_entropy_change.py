"""Does routing sharpen over training?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.courses import change
from waterjar.diagnose.collective.inputs import Course
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result


@metric(
    "routing_entropy_change",
    family="collective",
    long_name="change of the normalised routing entropy from the first to the last snapshot; below 0 is expected",
    formula="H(last) / log K - H(first) / log K",
    range=(-1, 1),
    citation="the seed document, Metrics and Evaluation 2.1",
    needs=("streams/route_weight",),
    version=2,
    made_of=("routing_entropy",),
)
def _measure(course: Course) -> Result:
    return change(course.routing_entropy, course.epochs, -np.inf)
