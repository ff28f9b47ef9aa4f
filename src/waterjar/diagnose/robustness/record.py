"""Recording robustness into a run: /probes/robustness, /probes/robustness_pairs and /probes/attack_flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from waterjar.diagnose.result import NOT_RECORDED, UNDEFINED, Floats
from waterjar.diagnose.robustness.flags import FLAGS
from waterjar.diagnose.robustness.found import Robustness
from waterjar.errors import WaterjarError
from waterjar.run.recorder import Recorder
from waterjar.run.rows import Reasoned
from waterjar.run.schema import Variable
from waterjar.stats.shares import Bounded

OWN, PAIRS, FLAG_GROUP, FAILURE = "robustness", "robustness_pairs", "attack_flags", "stream_failure"
_MODEL = ("step", "repeat", "model")
_OTHER = ("step", "repeat", "other_model")
_SHARE = "of samples that all models had right when clean"
_TABLES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "accuracy": (OWN, (*_MODEL, "condition"), "accuracy"),
    "retained": (OWN, (*_MODEL, "condition"), f"share still right {_SHARE}"),
    "effective_robustness": (OWN, (*_MODEL, "condition"), "accuracy less what clean accuracy predicts"),
    "average_accuracy": (OWN, (*_MODEL, "average"), "accuracy averaged over shifts"),
    "average_effective_robustness": (OWN, (*_MODEL, "average"), "average accuracy less what clean accuracy predicts"),
    "difference": (PAIRS, (*_OTHER, "condition"), "accuracy less that of the other model"),
    "retained_difference": (PAIRS, (*_OTHER, "condition"), f"share still right less that of the other model, {_SHARE}"),
    "average_retained_difference": (
        PAIRS, (*_OTHER, "average"), f"share still right less that of the other model, averaged over shifts, {_SHARE}",
    ),
}  # fmt: skip
_ENDS = {"": "", "_low": ": lower bound, over samples", "_high": ": upper bound, over samples"}
_FAILED = ("step", "repeat", "failure")

ROBUSTNESS_VARIABLES: dict[str, Variable] = {
    **{
        f"probes/{group}/{name}{end}": Variable(dims, f"{words}{more}", "1", "higher")
        for name, (group, dims, words) in _TABLES.items()
        for end, more in _ENDS.items()
    },
    f"probes/{OWN}/n": Variable(("step", "repeat"), "samples", "sample"),
    f"probes/{OWN}/n_retained": Variable(("step", "repeat"), "samples that all models had right when clean", "sample"),
    **{f"probes/{FLAG_GROUP}/{name}": Variable(_MODEL, flag.meaning, "1", "lower") for name, flag in FLAGS.items()},
    **{
        f"probes/{FAILURE}/accuracy{end}": Variable(_FAILED, f"accuracy with streams that fail{more}", "1", "higher")
        for end, more in _ENDS.items()
    },
}
"""What `record_robustness` writes: `Recorder(..., variables=ROBUSTNESS_VARIABLES, labels=robustness_labels(found))`."""


def robustness_labels(found: Robustness) -> dict[str, list[str]]:
    """The names along the dimensions of what `record_robustness` writes, for `Recorder(labels=...)`."""
    names = {
        "model": found.models,
        "other_model": found.others,
        "condition": found.conditions,
        "average": tuple(found.averages),
    }
    return {dim: list(own) for dim, own in names.items() if own}


def record_robustness(recorder: Recorder, found: Robustness | Sequence[Robustness]) -> None:
    """Record what was found at the last logged step: one for each repeat of the run.

    >>> import tempfile
    >>> right = np.array([[[1, 1], [1, 0]], [[1, 0], [0, 0]]], bool)
    >>> found = Robustness(("collective", "ensemble"), ("clean", "seed/blur/3"), right)
    >>> path = tempfile.mkdtemp() + "/run"
    >>> with Recorder(path, {}, variables=ROBUSTNESS_VARIABLES, labels=robustness_labels(found)) as recorder:
    ...     step = recorder.log(epoch=0, train={"loss": 1.0})
    ...     record_robustness(recorder, found)
    """
    each = [found] if isinstance(found, Robustness) else list(found)
    if len(each) != recorder.repeats:
        raise WaterjarError(f"robustness of {len(each)}: expected one for each of {recorder.repeats} repeats")
    for probe, arrays in robustness_arrays(each).items():
        recorder.probe(probe, arrays)


def robustness_arrays(each: Sequence[Robustness]) -> dict[str, dict[str, Reasoned]]:
    """Probe -> variable -> (repeat, ...), of one for each repeat; what was not asked for is not there at all."""
    first = each[0]
    for one in each[1:]:
        if robustness_labels(one) != robustness_labels(first):
            raise WaterjarError("repeats have other models or conditions: expected the same of all")
    made = {OWN: _own(each)}
    if first.others:
        made[PAIRS] = _bounded(each, _PAIRED)
    if first.flags:
        values = {name: np.stack([np.asarray(one.flags[name], np.float64) for one in each]) for name in first.flags}
        made[FLAG_GROUP] = {name: _reasoned(value, NOT_RECORDED) for name, value in values.items()}
    return made


Parts = Mapping[str, tuple[Callable[[Robustness], Bounded], int]]
_OF_MODELS: Parts = {
    "accuracy": (lambda one: one.accuracy, UNDEFINED),
    "retained": (lambda one: one.retained, UNDEFINED),
}
_AVERAGES: Parts = {"average_accuracy": (lambda one: one.average_accuracy, UNDEFINED)}
_EFFECTIVE: Parts = {"effective_robustness": (lambda one: one.effective, NOT_RECORDED)}
_AVERAGE_EFFECTIVE: Parts = {"average_effective_robustness": (lambda one: one.average_effective, NOT_RECORDED)}
_PAIRED: Parts = {
    "difference": (lambda one: one.difference, UNDEFINED),
    "retained_difference": (lambda one: one.retained_difference, UNDEFINED),
    "average_retained_difference": (lambda one: one.average_retained_difference, UNDEFINED),
}


def _own(each: Sequence[Robustness]) -> dict[str, Reasoned]:
    """What stands in /probes/robustness."""
    parts = dict(_OF_MODELS)
    with_shifts, with_references = bool(each[0].averages), all(one.references is not None for one in each)
    parts |= _AVERAGES if with_shifts else {}
    parts |= _EFFECTIVE if with_references else {}
    parts |= _AVERAGE_EFFECTIVE if with_shifts and with_references else {}
    counts = {"n": [one.n for one in each], "n_retained": [int(one.kept.sum()) for one in each]}
    return {
        **_bounded(each, parts),
        **{name: _reasoned(np.array(value, np.float64), 0) for name, value in counts.items()},
    }


def _bounded(each: Sequence[Robustness], parts: Parts) -> dict[str, Reasoned]:
    """Variable -> (repeat, ...), of estimates and their bounds."""
    made: dict[str, Reasoned] = {}
    for name, (take, reason) in parts.items():
        rows = [take(one) for one in each]
        for place, end in enumerate(_ENDS):
            table = np.stack([row[place] for row in rows])
            if table.size:
                made[name + end] = _reasoned(table, reason)
    return made


def _reasoned(values: Floats, reason: int) -> Reasoned:
    return Reasoned(values, np.where(np.isnan(values), reason, 0).astype(np.uint8))
