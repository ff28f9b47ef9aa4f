"""The run's schema: every group, dimension, coordinate, unit and reason, named once.

A run is one Zarr v3 group. Three kinds of groups live in it, told apart by their first dimension:

- `step` groups grow by one row with every `Recorder.log`;
- `snapshot` groups grow by one row with every snapshot;
- the `event` group grows by one row with every `Recorder.event`.

Arrays without one of these three dimensions are written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from waterjar.errors import WaterjarError, unknown_name

SCHEMA_VERSION = 1
"""Raised when a reader of the old schema would misread the new one."""

Direction = Literal["higher", "lower", "none"]

MEANINGS = {
    "present": "the value is there",
    "not_recorded": "the training loop did not log it",
    "not_a_number": "the training loop logged NaN",
    "empty_set": "the evaluation set had no sample",
    "run_ended": "another run of the cell is longer",
    "never_reached": "censored: the threshold was not reached within the run",
    "undefined": "the definition has no value here",
    "chance_unknown": "how many classes compete is not known: pass classes= or --set chance=0.5",
    "no_baseline": "there is no baseline to compare with",
    "no_run": "there is no run of this seed, of the learner or of its baseline",
    "no_eval_set": "no evaluation set belongs to the task: pass eval_sets={name: number of its task}",
    "inside_cone": "the points' cone holds more than 5 % of all directions: anchors are then the solver's choice",
    "unsolved": "more than 5 % of the projections could not be solved to a KKT residual of 1e-9",
    "not_unique": "in more than 5 % of the draws other anchors are as good: they are then the solver's choice",
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

    def __post_init__(self) -> None:
        if not self.dims or not all(isinstance(dim, str) and dim for dim in self.dims):
            raise WaterjarError(f"dims {self.dims!r}: expected names of dimensions, the first one step or snapshot")
        if "repeat" not in self.dims and self.dims[:1] == ("snapshot",):
            raise WaterjarError(f"dims {self.dims} lack 'repeat': a snapshot is kept per repeat")

    @property
    def attributes(self) -> dict[str, str]:
        """What every reader finds beside the array."""
        return {"long_name": self.long_name, "units": self.units, "direction": self.direction}


_EVAL = ("step", "eval_set", "repeat")
_BY_CLASS = ("step", "eval_set", "class", "repeat")
_STEP = ("step", "repeat")


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
        "loss": Variable(_STEP, "mean training loss since the step before", "nat", "lower"),
        "accuracy": _accuracy(_STEP, "training accuracy since the step before"),
        "learning_rate": Variable(_STEP, "learning rate"),
        "gradient_norm": Variable(_STEP, "norm of the gradient of the training loss"),
    },
    "expert": {
        **_PERFORMANCE,
        "train_accuracy": _accuracy(_STEP, "training accuracy of the task's fresh network"),
        "train_loss": Variable(_STEP, "training loss of the task's fresh network", "nat", "lower"),
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
    "events": {
        "patched_images": Variable(_STEP, "training images with the shortcut since the step before", "image"),
    },
    "features": {
        "features": Variable(("snapshot", "repeat", "eval_set", "sample", "unit"), "activations of a layer"),
    },
    "weights": {
        "weights": Variable(("snapshot", "repeat", "param"), "all parameters, flattened"),
        "initial": Variable(("repeat", "param"), "all parameters before any training"),
    },
    "attention": {
        "cls": Variable(
            ("snapshot", "repeat", "eval_set", "sample", "layer", "head", "token"),
            "attention of the class token to every token",
        ),
    },
    "streams": {
        "logits": Variable(("snapshot", "repeat", "stream", "sample", "class"), "logits of each stream"),
        "collective_logits": Variable(("snapshot", "repeat", "sample", "class"), "logits of the collective"),
        "routing": Variable(("snapshot", "repeat", "sample", "stream"), "weight of each stream"),
    },
    "probe_samples": {
        "label": Variable(("repeat", "eval_set", "sample"), "label of the sample"),
        "sample_index": Variable(("repeat", "eval_set", "sample"), "index of the sample in its data set"),
        "region": Variable(("repeat", "eval_set", "sample", "edge"), "box of the shortcut", "pixel"),
        "task_class": Variable(("repeat", "task", "task_label"), "class of the data set behind each label of a task"),
    },
    "probes": {},
}
"""The groups and what may stand in each; `Recorder(variables=...)` declares more."""

STEP_COORDINATES = {
    "train_task": "name of the task in training, or joint",
    "train_task_index": "position of that task in the order of training, -1 for joint",
    "epoch": "epochs of the task in training",
    "total_epoch": "epochs since the start",
    "effective_epoch": "samples of the last task consumed / its train size",
}

GROWING = ("step", "snapshot", "event")
"""First dimensions of arrays that grow."""

JOINT = "joint"
"""The `train_task` of steps in which all tasks are trained at once."""


def variables_of(group: str) -> dict[str, Variable]:
    """The variables of a group; every layer below `features/` has those of `features`."""
    top = group.split("/", maxsplit=1)[0] if isinstance(group, str) else ""
    if top not in GROUPS:
        raise unknown_name("group", group, GROUPS)
    return GROUPS[top]
