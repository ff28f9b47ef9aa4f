"""What probes of robustness would have found, made up: for the small study that metrics are tried on."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.robustness.flags import FLAGS
from waterjar.diagnose.robustness.found import Robustness
from waterjar.diagnose.robustness.record import FAILURE, ROBUSTNESS_VARIABLES, robustness_arrays, robustness_labels
from waterjar.run.recorder import Recorder
from waterjar.run.rows import Reasoned
from waterjar.run.schema import Variable

_MODELS = ("collective", "best_stream", "ensemble")
_LADDERS = {"seed": ("blur", "contrast", "gaussian_noise", "rotation"), "cifar_c": ("blur", "contrast")}
_SHIFTS = [f"{ladder}/{name}/{level}" for ladder, names in _LADDERS.items() for name in names for level in (1, 3, 5)]
_ATTACKS = [f"{attack}/{eps}" for eps in ("0.03", "8:255") for attack in ("fgsm", "pgd", "worst")]
_CONDITIONS = ("clean", *_SHIFTS, *_ATTACKS)
_FAILURES = ("all", "without_left", "without_right", "half_streams")
_SAMPLES = 40

VARIABLES: dict[str, Variable] = ROBUSTNESS_VARIABLES


def probe_labels() -> dict[str, list[str]]:
    """Names along the dimensions of what is recorded."""
    return {**robustness_labels(_made_up(np.random.default_rng(0))), "failure": list(_FAILURES)}


def record_probes(recorder: Recorder, rng: np.random.Generator, gone: float) -> None:
    """Record what all probes of robustness would have found; `gone` is added to every number, and may be NaN."""
    for probe, arrays in robustness_arrays([_made_up(rng)]).items():
        recorder.probe(probe, {name: Reasoned(one.values + gone, one.codes) for name, one in arrays.items()})
    middle = np.sort(rng.uniform(0.4, 0.9, len(_FAILURES)))[None, ::-1] + gone
    recorder.probe(FAILURE, {"accuracy": middle, "accuracy_low": middle - 0.1, "accuracy_high": middle + 0.05})


def _made_up(rng: np.random.Generator) -> Robustness:
    """Answers that get worse by severity, of models that are not equally good."""
    ease = rng.uniform(0, 1, _SAMPLES)
    hard = np.array([0.1, *(0.15 + 0.08 * int(label[-1]) for label in _SHIFTS), *(0.5 for _ in _ATTACKS)])
    skill = np.array([0.0, 0.1, 0.05])[:, None, None]
    correct = ease > hard[None, :, None] + skill + rng.normal(0, 0.05, (len(_MODELS), len(hard), _SAMPLES))
    natural = 1 + len(_SHIFTS)
    references = ease > hard[None, :natural, None] + np.array([0.05, 0.2, 0.3, 0.4])[:, None, None]
    flags = {name: rng.uniform(0, 0.04, len(_MODELS)) for name in FLAGS}
    return Robustness(_MODELS, _CONDITIONS, correct, flags, references, resamples=50)
