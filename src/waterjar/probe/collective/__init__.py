"""Live collectives: any model with streams inside is measured stream by stream, with all of them and with some.

`adapt` makes a `LiveCollective` of a model. `record_collective` writes what its streams say into a run, at any epoch of
a training loop of your own; `waterjar.diagnose.collective` reads it there. `coalitions`, `stream_failure` and
`gradient_contributions` ask what each stream is worth. docs/collectives.md shows all of it on one page.
"""

from waterjar.probe.collective.adapt import adapt
from waterjar.probe.collective.coalitions import Coalitions, coalitions, coalitions_of
from waterjar.probe.collective.evaluation import Evaluation
from waterjar.probe.collective.failure import StreamFailure, stream_failure
from waterjar.probe.collective.full import full_evaluation
from waterjar.probe.collective.gradients import gradient_contributions
from waterjar.probe.collective.live import ABSENCES, LiveCollective, Outputs
from waterjar.probe.collective.record import Recorded, collective_labels, record_collective

__all__ = [
    "ABSENCES",
    "Coalitions",
    "Evaluation",
    "LiveCollective",
    "Outputs",
    "Recorded",
    "StreamFailure",
    "adapt",
    "coalitions",
    "coalitions_of",
    "collective_labels",
    "full_evaluation",
    "gradient_contributions",
    "record_collective",
    "stream_failure",
]
