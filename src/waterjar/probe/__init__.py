"""Probes: what can only be measured on a live torch network. Results are recorded into a run, and diagnosed there.

A probe works on a copy: the network it is given keeps its weights, gradients, batch statistics and mode to the bit, and
no global random number is drawn.
"""

try:
    import torch as _torch  # noqa: F401 - asked for here, so that what is missing is named
except ModuleNotFoundError as _error:
    from waterjar.errors import missing_extra

    raise missing_extra("torch", "lab", "probes of live networks") from _error

from waterjar.diagnose.robustness import ROBUSTNESS_VARIABLES, record_robustness, robustness_labels
from waterjar.probe.attacks import attack, attack_flags, worst
from waterjar.probe.hessian import sharpness
from waterjar.probe.log import VARIABLES, record_probe
from waterjar.probe.random_labels import RandomLabelFit, random_label_probe
from waterjar.probe.robust import robustness
from waterjar.probe.shifts import shift

__all__ = [
    "ROBUSTNESS_VARIABLES",
    "VARIABLES",
    "RandomLabelFit",
    "attack",
    "attack_flags",
    "random_label_probe",
    "record_probe",
    "record_robustness",
    "robustness",
    "robustness_labels",
    "sharpness",
    "shift",
    "worst",
]
