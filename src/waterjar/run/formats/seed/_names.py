"""What things are called in the layout, and in a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from waterjar.errors import WaterjarError

INITIAL = "init_weights.npy"
REPRESENTATIONS = "representations.npy"
WEIGHTS = "weights.npy"
LABELS = "binary_labels.npy"
METRICS = "metrics.pkl"
EXPERT = "expert_metrics.pkl"
METADATA = "metadata.json"
TASK_FILES = (REPRESENTATIONS, WEIGHTS, LABELS, METRICS, EXPERT, METADATA)

TEST = {"test_acc": "accuracy", "test_loss": "loss"}
"""Keys of metrics.pkl and expert_metrics.pkl -> variables of /performance and /expert."""
TRAIN = {"train_acc": "accuracy", "train_loss": "loss"}
"""Keys of metrics.pkl -> variables of /train."""
EXPERT_TRAIN = {"train_acc": "train_accuracy", "train_loss": "train_loss"}
"""Keys of expert_metrics.pkl -> variables of /expert, over (step, repeat)."""
SHARES = ("test_acc", "train_acc")
"""Keys whose values are shares of samples."""

TASK_CLASS = "task_class"
"""In /probe_samples, (repeat, task, task_label): the classes that a task tells apart, in the order of its labels."""
UNHASHED = ((), ("engine",))
"""Settings that may have been left out of a run's identity: none, or how the laboratory computes."""
LAYER = "representations"
"""The layer of a layout that does not name it."""


def task_folder(task: int) -> str:
    """The folder of a task.

    >>> task_folder(7)
    'task_007'
    """
    return f"task_{task:03d}"


def dataset_of(config: Mapping[str, Any]) -> str:
    """The name of the data set in a run's settings; empty if they name none."""
    return _name_in(config, ("data", "dataset"))


def algorithm_of(config: Mapping[str, Any]) -> str:
    """The name of the algorithm in a run's settings, with the names of its options; empty if they name none.

    >>> algorithm_of({"learner": {"name": "sl", "lr": 0.1}, "options": [{"name": "replay"}]})
    'sl+replay'
    """
    whole = _name_in(config, ("method", "algorithm"))
    name = _name_in(config, ("strategy", "learner", "name"))
    options = config.get("options")
    more = [_name_in({"name": option}, ("name",)) for option in options] if isinstance(options, list) else []
    return whole or (name and "+".join([name, *filter(None, more)]))


def _name_in(config: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = config.get(key)
        found = value.get("name") if isinstance(value, Mapping) else value
        if isinstance(found, str) and found:
            return found
    return ""


def folder_name(given: str | None, found: str, what: str) -> str:
    """A name as one folder: as given, or as found in the settings with other signs than letters and digits replaced.

    >>> folder_name(None, "sl + replay", "algorithm")
    'sl-+-replay'
    """
    if given is not None:
        if not re.fullmatch(r"[^/\\\x00-\x1f\x7f.][^/\\\x00-\x1f\x7f]{0,99}", given):
            raise WaterjarError(f"{what}={given!r} is to be a folder: expected a short name without /")
        return given
    name = re.sub(r"[^A-Za-z0-9_.+-]+", "-", found).lstrip(".-")[:100]
    if not name:
        raise WaterjarError(f"the run's settings name no {what}: give {what}=..., which becomes a folder")
    return name
