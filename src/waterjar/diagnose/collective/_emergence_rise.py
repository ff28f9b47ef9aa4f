"""Does emergence rise over training?"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.collective.courses import change
from waterjar.diagnose.collective.inputs import Course
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result

_START = "emergence_start"


@metric(
    "emergence_rise",
    family="collective",
    long_name="emergence rise: change of the emergence ratio from the first to the last snapshot",
    formula="rho(last) - rho(first)",
    citation="the seed document, Metrics and Evaluation 3.2",
    needs=("streams/logits", "streams/collective_logits", "probe_samples/label"),
    version=2,
    beside={_START: Beside((), "emergence ratio at the first snapshot; near 1 is expected")},
    made_of=("emergence_ratio",),
)
def _measure(course: Course) -> tuple[Result, dict[str, Result]]:
    first = Result.of(course.emergence.value[0], course.emergence.reason[0])
    return change(course.emergence, course.epochs, -np.inf), {_START: first}
