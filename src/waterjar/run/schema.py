"""The run's schema: every group, dimension, coordinate, unit and reason, named once.

A run is one Zarr v3 group. Three kinds of groups live in it, told apart by their first dimension:

- `step` groups grow by one row with every `Recorder.log` that has something for them;
- `snapshot` groups grow by one row with every snapshot;
- the `event` group grows by one row with every `Recorder.event`.

Arrays without one of these three dimensions are written once. What an earlier schema had otherwise stands in
`_EARLIER`: its runs are read as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from waterjar.errors import WaterjarError, unknown_name

SCHEMA_VERSION = 2
"""Raised when a reader of the old schema would misread the new one."""

Direction = Literal["higher", "lower", "none"]

ABSENT = 255
"""In a flag per example: nobody looked."""

MOST_TARGETS = 2**16
"""Places that routes go to are counted from 0 on; a number beyond this one is no such count."""

MEANINGS = {
    "present": "the value is there",
    "not_recorded": "the training loop did not log it",
    "not_a_number": "the training loop logged NaN",
    "empty_set": "the evaluation set had no sample",
    "run_ended": "the run does not come this far: another of its cell is longer, or it is not sealed yet",
    "never_reached": "censored: the threshold was not reached within the run",
    "undefined": "the definition has no value here",
    "chance_unknown": "how many classes compete is not known: --set chance=0.5, or classes= of the Recorder",
    "no_baseline": "there is no baseline to compare with",
    "no_run": "there is no run of this seed, of the learner or of its baseline",
    "no_eval_set": "no evaluation set belongs to the task: Recorder(eval_sets={'test_a': 'a'}), a set and its task by "
    "name; of recorded runs, waterjar annotate DIR --eval-task test_a=a",
    "inside_cone": "the points' cone holds more than 5 % of all directions: anchors are then the solver's choice",
    "unsolved": "more than 5 % of the projections could not be solved to a KKT residual of 1e-9",
    "not_unique": "in more than 5 % of the draws other anchors are as good: they are then the solver's choice",
    "one_task": "it takes two tasks, trained one after the other, and one was trained",
    "not_asked": "it is measured on request alone, at the epochs asked for: --set geometry.simulate_every=1",
}
"""Why a value is missing, and what that means. New ones are appended: a code never changes."""
REASONS = tuple(MEANINGS)
"""The position is the code stored in `<name>_reason`."""
REASON = "_reason"
"""The end of the name of a companion array, which says why values are missing."""


def flags(name: str) -> dict[str, Any]:
    """The attributes of a companion array that says why values of `name` are missing."""
    return {
        "long_name": f"why {name} is missing",
        "flag_values": list(range(len(REASONS))),
        "flag_meanings": " ".join(REASONS),
    }


@dataclass(frozen=True)
class Missing:
    """Stands in for a value that is not there, and says why."""

    reason: str

    def __post_init__(self) -> None:
        if self.reason not in REASONS[1:]:
            raise unknown_name("reason", self.reason, REASONS[1:])

    @property
    def code(self) -> int:
        """The number stored in the companion array."""
        return REASONS.index(self.reason)


def missing(reason: str) -> Missing:
    """Log this instead of a number that is not there.

    >>> missing("empty_set").code
    3
    """
    return Missing(reason)


@dataclass(frozen=True)
class Variable:
    """One array of the schema: its dimensions and what its numbers mean."""

    dims: tuple[str, ...]
    long_name: str
    units: str = "1"
    direction: Direction = "none"
    accuracy: bool = False
    """Whether its numbers are accuracies, which lie in [0, 1]: a recorder refuses others."""
    is_flag: bool = False
    """Whether it is yes or no per example: kept in a byte, 255 where nobody looked."""

    def __post_init__(self) -> None:
        if not self.dims or not all(isinstance(dim, str) and dim for dim in self.dims):
            raise WaterjarError(f"dims {self.dims!r}: expected names of dimensions, the first one step or snapshot")
        if "repeat" not in self.dims and self.dims[:1] == ("snapshot",):
            raise WaterjarError(f"dims {self.dims} lack 'repeat': a snapshot is kept per repeat")

    @property
    def attributes(self) -> dict[str, Any]:
        """What every reader finds beside the array."""
        about: dict[str, Any] = {"long_name": self.long_name, "units": self.units, "direction": self.direction}
        if self.is_flag:
            about |= {"flag_values": [0, 1, ABSENT], "flag_meanings": "no yes nobody_looked"}
        return about


_EVAL = ("step", "eval_set", "repeat")
_BY_CLASS = ("step", "eval_set", "class", "repeat")
STEP = ("step", "repeat")
_SAMPLE = ("snapshot", "repeat", "eval_set", "sample")


def _accuracy(dims: tuple[str, ...], long_name: str) -> Variable:
    return Variable(dims, long_name, "1", "higher", accuracy=True)


_PERFORMANCE = {
    "accuracy": _accuracy(_EVAL, "accuracy over all samples, all classes competing"),
    "macro_accuracy": _accuracy(_EVAL, "mean over classes of the accuracy per class"),
    "top5_accuracy": _accuracy(_EVAL, "share of samples with the label among the five highest"),
    "loss": Variable(_EVAL, "mean loss", "nat", "lower"),
    "class_accuracy": _accuracy(_BY_CLASS, "accuracy per class, all classes competing"),
    "task_accuracy": _accuracy(_EVAL, "accuracy, only the classes of the set's task competing"),
    "task_macro_accuracy": _accuracy(_EVAL, "as macro_accuracy, only the task's classes competing"),
    "task_class_accuracy": _accuracy(_BY_CLASS, "as class_accuracy, only the task's classes competing"),
}

GROUPS: dict[str, dict[str, Variable]] = {
    "performance": _PERFORMANCE,
    "train": {
        "loss": Variable(STEP, "mean training loss since the step before", "nat", "lower"),
        "accuracy": _accuracy(STEP, "training accuracy since the step before"),
        "learning_rate": Variable(STEP, "learning rate"),
        "gradient_norm": Variable(STEP, "norm of the gradient of the training loss"),
        "patched_images": Variable(STEP, "training images with the shortcut since the step before", "image"),
    },
    "expert": {
        **_PERFORMANCE,
        "train_accuracy": _accuracy(STEP, "training accuracy of the task's fresh network"),
        "train_loss": Variable(STEP, "training loss of the task's fresh network", "nat", "lower"),
    },
    "resources": {
        "seconds": Variable(("step",), "wall time since the step before", "s", "lower"),
        "images": Variable(("step",), "training images since the step before", "image"),
        "peak_memory": Variable(
            ("step",),
            "largest resident memory of the process since it took up the run, sampled where the system keeps none",
            "byte",
            "lower",
        ),
        "peak_device_memory": Variable(
            ("step",), "largest accelerator memory since the process took up the run", "byte", "lower"
        ),
        "buffer_bytes": Variable(("step",), "bytes held by the learner beside its weights", "byte", "lower"),
        "flops": Variable(("step",), "floating-point operations since the step before", "1", "lower"),
    },
    "examples": {
        "correct": Variable(("step", "repeat", "example"), "whether the example is classified right", is_flag=True),
        "margin": Variable(
            ("step", "repeat", "example"), "logit of the label less the largest other; infinite beyond the dtype"
        ),
        "label": Variable(("repeat", "example"), "label of the example"),
        "sample_index": Variable(("repeat", "example"), "index of the example in its data set"),
        "task": Variable(("repeat", "example"), "position of the example's task in tasks=, -1 for none"),
    },
    "outputs": {
        "logits": Variable(("snapshot", "repeat", "example", "class"), "logits of the network, example by example"),
    },
    "monitor": {},
    "events": {},
    "features": {
        "features": Variable(("snapshot", "repeat", "eval_set", "sample", "unit"), "activations of a layer"),
    },
    "weights": {
        "weights": Variable(("snapshot", "repeat", "param"), "all parameters, flattened"),
        "initial": Variable(("repeat", "param"), "all parameters before any training"),
    },
    "attention": {
        "cls": Variable((*_SAMPLE, "layer", "head", "token"), "attention of the class token to every token"),
        "rollout": Variable((*_SAMPLE, "token"), "attention of the class token, rolled out over all layers"),
        "prefix_mass": Variable((*_SAMPLE, "layer", "head"), "attention of the class token to all prefix tokens"),
        "value_norm": Variable((*_SAMPLE, "layer", "head", "token"), "norm of the value of every token"),
        "token_share": Variable(("repeat", "eval_set", "sample", "token"), "share of a token that the shortcut covers"),
    },
    "attribution": {
        "map": Variable((*_SAMPLE, "row", "column"), "how much each place of the image counts"),
    },
    "streams": {
        "logits": Variable((*_SAMPLE, "stream", "class"), "logits of each stream, among the others"),
        "isolated_logits": Variable((*_SAMPLE, "stream", "class"), "logits of each stream with no other stream around"),
        "collective_logits": Variable((*_SAMPLE, "class"), "logits of the collective"),
        "pooled": Variable((*_SAMPLE, "stream", "unit"), "pooled features of each stream"),
        "route_index": Variable((*_SAMPLE, "stream", "slot", "route"), "which routes each slot takes, the first first"),
        "route_weight": Variable((*_SAMPLE, "stream", "slot", "route"), "weight of these routes"),
        "fingerprint": Variable(("snapshot", "repeat", "stream", "component"), "fingerprint of each stream"),
        "affinity": Variable((*_SAMPLE, "stream", "anchor"), "affinity of each stream to each anchor, by the input"),
        "anchor_affinity": Variable(("snapshot", "repeat", "stream", "anchor"), "the same where no input changes it"),
        "coalition_correct": Variable(
            (*_SAMPLE, "coalition"), "whether the sample is right with only some streams present", is_flag=True
        ),
        "coalition_log_likelihood": Variable(
            (*_SAMPLE, "coalition"), "log-likelihood of the label with only some streams present", "nat", "higher"
        ),
        "gradient_norm": Variable(
            (*_SAMPLE, "stream"), "norm of the gradient of the sample's loss by the pooled output of each stream"
        ),
        "parameters": Variable(("repeat",), "parameters of the whole collective"),
        "trainable_parameters": Variable(("repeat",), "parameters of the collective that are trained"),
        "stream_parameters": Variable(("repeat", "stream"), "parameters of each stream"),
        "coalition_order": Variable(
            ("repeat", "order", "stream"), "place at which each stream joins, in the orders that coalitions are of"
        ),
    },
    "probe_samples": {
        "label": Variable(("repeat", "eval_set", "sample"), "label of the sample"),
        "sample_index": Variable(("repeat", "eval_set", "sample"), "index of the sample in its data set"),
        "region": Variable(("repeat", "eval_set", "sample", "edge"), "box of the shortcut", "pixel"),
        "has_shortcut": Variable(("repeat", "eval_set", "sample"), "whether the sample carries the shortcut"),
        "task_class": Variable(("repeat", "task", "task_label"), "class of the data set behind each label of a task"),
    },
    "probes": {},
}
"""The groups and what may stand in each; `Recorder(variables=...)` declares more. Those without any take every name."""

_EARLIER: dict[int, dict[str, dict[str, Variable]]] = {
    1: {
        "train": {name: variable for name, variable in GROUPS["train"].items() if name != "patched_images"},
        "events": {"patched_images": GROUPS["train"]["patched_images"]},
        "streams": {
            "logits": Variable(("snapshot", "repeat", "stream", "sample", "class"), "logits of each stream"),
            "collective_logits": Variable(("snapshot", "repeat", "sample", "class"), "logits of the collective"),
            "routing": Variable(("snapshot", "repeat", "sample", "stream"), "weight of each stream"),
        },
        "examples": {},
        "outputs": {},
        "attribution": {},
    },
}
"""By schema, the groups that it had otherwise."""

BY_LAYER = ("features", "attention", "attribution")
"""Groups with a group below for every layer (or method): what stands there has no dimension `layer`."""

STEP_COORDINATES = {
    "train_task": "name of the task in training, or joint",
    "train_task_index": "position of that task in the order of training, -1 for joint",
    "visit": "stretch of training on one task, counted from 0: a task that is trained again has another one",
    "epoch": "epochs of the task in training",
    "total_epoch": "epochs since the start",
    "effective_epoch": "samples of the last task consumed / its train size",
}

EVENT_COLUMNS = {
    "event_step": "last step before it, -1 before the first",
    "time": "when it happened",
    "event_repeat": "repeat that it concerns, -1 for all",
    "level": "info, warning or error",
    "kind": "what kind of event",
    "message": "what happened",
}
LEVELS = ("info", "warning", "error")
TIME_UNITS = "seconds since 1970-01-01"

GROWING = ("step", "snapshot", "event")
"""First dimensions of arrays that grow."""

JOINT = "joint"
"""The `train_task` of steps in which all tasks are trained at once."""

TRAIN = "train"
"""The set of /examples that is a fixed choice of the training data; it need not be an evaluation set."""


def variables_of(group: str, schema: int = SCHEMA_VERSION) -> dict[str, Variable]:
    """The variables of a group; one below `features/` has those of `features`, one of a layer no dimension `layer`.

    >>> variables_of("attention/block3")["cls"].dims[-2:]
    ('head', 'token')
    """
    top, _, below = group.partition("/") if isinstance(group, str) else ("", "", "")
    if top not in GROUPS:
        raise unknown_name("group", group, GROUPS)
    found = _EARLIER.get(schema, {}).get(top, GROUPS[top])
    if not below or top not in BY_LAYER:
        return found
    return {name: replace(v, dims=tuple(dim for dim in v.dims if dim != "layer")) for name, v in found.items()}


def takes_every_name(group: str) -> bool:
    """Whether a group takes numbers per step that nobody declared: /monitor, and /probes by the name of the probe."""
    return group == "monitor" or group.startswith("probes/")
