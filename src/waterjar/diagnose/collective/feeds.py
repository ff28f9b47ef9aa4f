"""What a run needs so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.collective.inputs import Affinities, Coalitions, Fingerprints, Routing, StreamOutputs
from waterjar.diagnose.collective.reading import COALITIONS, OUTPUTS
from waterjar.diagnose.feeds import Lack, how_to_record
from waterjar.diagnose.registry import find_family
from waterjar.run.reader import Run

_LABEL = "probe_samples/label"
_ARRAYS = {
    StreamOutputs: OUTPUTS,
    Routing: ("route_weight",),
    Fingerprints: ("fingerprint",),
    Affinities: ("affinity", "anchor_affinity"),
    Coalitions: COALITIONS,
}
"""Input -> the arrays of /streams, one of which it is made of."""
_LABELLED = (StreamOutputs, Coalitions)


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """Arrays of /streams for each input, and labels for whatever is scored."""
    metrics = find_family("collective").metrics
    told: set[str] = set()
    for kind, arrays in _ARRAYS.items():
        if not any(f"streams/{name}" in run.nodes for name in arrays):
            names = tuple(name for name, metric in metrics.items() if metric.input is kind)
            told |= set(names)
            what = " or ".join(f"streams/{name}" for name in arrays)
            yield Lack(f"no {what}", how_to_record(f"streams/{arrays[0]}"), names, is_telling=False)
    scored = [n for n, metric in metrics.items() if metric.input in _LABELLED or _LABEL in metric.needs]
    if _LABEL not in run.nodes and any(f"streams/{name}" in run.nodes for name in (*OUTPUTS, *COALITIONS)):
        names = tuple(name for name in scored if name not in told)
        yield Lack(f"no {_LABEL}", how_to_record(_LABEL), names, "--probe-labels FILE.npy")
