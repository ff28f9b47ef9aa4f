"""A small made-up study of collectives for the gallery: four streams that each know some classes, and a deep ensemble.

Nothing is trained: logits are noise and a share of the label that grows, so that every figure has something to show in
seconds. `narrow` streams know some classes each, an `ensemble` has streams that know all; of the third collective the
streams' own heads were never trained.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np

import waterjar
from waterjar.diagnose.robustness import ROBUSTNESS_VARIABLES, Robustness, record_robustness, robustness_labels
from waterjar.diagnose.robustness.conditions import condition_of
from waterjar.run.combining import combine

KINDS = ("narrow", "ensemble", "untrained_heads")
SEEDS, EPOCHS = (1, 2, 3), (0, 1, 2, 4, 7, 10)
STREAMS = ["edges", "colour", "texture", "shape"]
CLASSES, SAMPLES, UNITS, SLOTS, ROUTES, TARGETS, ANCHORS, COMPONENTS = 10, 160, 12, 6, 4, 8, 8, 16
KNOWS = np.array([[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7], [5, 6, 7, 8, 9, 0], [8, 9, 0, 1, 4, 7]])
SHIFTS = {"gaussian_noise": 0.16, "contrast": 0.07, "blur": 0.10, "rotation": 0.12}
ATTACKS = {"noise/0.03": 0.08, "fgsm/0.03": 0.45, "pgd/0.03": 0.6, "worst/0.03": 0.66}
CONDITIONS = ["clean", *(f"seed/{name}/{k}" for name in SHIFTS for k in range(1, 6)), *ATTACKS]
MODELS = ("collective", "best_stream", "ensemble")
FAILURES = ["all", *(f"without_{name}" for name in STREAMS), "half_streams"]
LABELS = np.tile(np.arange(CLASSES), (2, SAMPLES // CLASSES))
"""(eval_set, sample), of val and test."""


@functools.cache
def collective_study() -> waterjar.Study:
    """The study, recorded once a process in a folder of its own that goes away at the end."""
    keep = tempfile.TemporaryDirectory(prefix="waterjar-gallery-")
    collective_study.folder = keep  # type: ignore[attr-defined]  # alive as long as we are
    folder = waterjar.create_study(
        Path(keep.name) / "study", {"analysis": {"lead": "collective", "baseline": "ensemble"}}
    )
    for kind in KINDS:
        for seed in SEEDS:
            record(folder / f"{kind}-{seed}", kind, seed)
    return waterjar.open_study(folder)


def record(path: Path, kind: str, seed: int) -> None:
    """One run: outputs of streams, routing, fingerprints and anchors over epochs, robustness at the end."""
    rng = np.random.default_rng([seed, len(kind)])
    found = robustness(rng, kind)
    labels = {"stream": STREAMS, "failure": FAILURES, **robustness_labels(found)}
    config = {"method": kind, "data": "made-up logits", "seed": seed}
    with waterjar.Recorder(
        path, config, seeds=[seed], eval_sets=["val", "test"], labels=labels, variables=ROBUSTNESS_VARIABLES,
        provenance=False, summary=False,
    ) as recorder:  # fmt: skip
        recorder.once("probe_samples", label=LABELS[None])
        sizes = np.full((1, len(STREAMS)), 240_000)
        recorder.once("streams", parameters=np.array([1_100_000]), trainable_parameters=np.array([980_000]),
                      stream_parameters=sizes)  # fmt: skip
        print_, turned = rng.normal(size=(2, len(STREAMS), COMPONENTS))
        for epoch in EPOCHS:
            grown = 1 - np.exp(-epoch / 3)
            streams = outputs(rng, kind, grown)
            streams["fingerprint"] = print_ + 0.8 * grown * turned
            recorder.log(epoch=epoch, snapshot={"streams": {name: one[None] for name, one in streams.items()}})
        record_robustness(recorder, found)
        recorder.probe("stream_failure", failure(rng, kind))


def outputs(rng: np.random.Generator, kind: str, grown: float) -> dict[str, np.ndarray]:
    """What streams say at a time of training; `grown` goes from 0 to 1."""
    known = np.array([np.isin(LABELS, own) for own in KNOWS]).transpose(1, 2, 0)  # (eval_set, sample, stream)
    sure = np.full(known.shape, 0.8) if kind == "ensemble" else np.where(known, 1.0, 0.15)
    right = np.eye(CLASSES)[LABELS][..., None, :] * sure[..., None]
    own, shared = (0.7, 1.1) if kind == "ensemble" else (1.2, 0.3)
    logits = own * rng.normal(size=(*known.shape, CLASSES)) + shared * rng.normal(size=(*LABELS.shape, 1, CLASSES))
    told = logits + 4.2 * grown * right
    logits = logits if kind == "untrained_heads" else told
    centres = np.random.default_rng(3).normal(size=(CLASSES, len(STREAMS), UNITS))
    weights = np.exp((0.3 + 2.5 * grown) * rng.normal(size=(1, 1, len(STREAMS), SLOTS, ROUTES)))
    weights = weights * np.exp(0.3 * rng.normal(size=(*known.shape, SLOTS, ROUTES)))
    index = np.argsort(rng.random((*known.shape, SLOTS, TARGETS)), axis=-1)[..., :ROUTES]
    return {
        "logits": logits,
        "isolated_logits": logits
        - 0.7 * grown * right * (kind != "untrained_heads")
        + 0.3 * rng.normal(size=logits.shape),
        "collective_logits": combine(told, "mean_probability"),
        "pooled": rng.normal(size=(*known.shape, UNITS)) + 1.1 * grown * sure[..., None] * centres[LABELS],
        "route_weight": weights / weights.sum(-1, keepdims=True),
        "route_index": index,
        "anchor_affinity": 1 / (1 + np.exp(-rng.normal(size=(len(STREAMS), ANCHORS)) * (0.2 + 2 * grown))),
        "gradient_norm": rng.random(known.shape) * (1.2 - grown),
    }


def robustness(rng: np.random.Generator, kind: str) -> Robustness:
    """Which samples are right under shifts and attacks: the fewer, the more of a threshold is taken away."""
    ease = rng.random(SAMPLES)
    levels = dict(zip(MODELS, (0.84, 0.7, 0.84) if kind == "ensemble" else (0.9, 0.62, 0.86), strict=True))
    right = np.empty((len(MODELS), len(CONDITIONS), SAMPLES), np.bool_)
    for i, level in enumerate(levels.values()):
        for j, one in enumerate(map(condition_of, CONDITIONS)):
            cost = {"clean": 0.0, "attack": ATTACKS.get(one.label, 0.0)}.get(one.kind, 0.0)
            cost += SHIFTS.get(one.name, 0.0) * one.severity * (0.8 if i == 0 else 1.0)
            right[i, j] = ease + 0.05 * rng.normal(size=SAMPLES) < level * np.exp(-2 * cost)
    return Robustness(MODELS, tuple(CONDITIONS), right)


def failure(rng: np.random.Generator, kind: str) -> dict[str, np.ndarray]:
    """Accuracy with all streams, without each, and with half of them, with bounds."""
    lost = np.array([0.0, 0.09, 0.05, 0.12, 0.03, 0.2]) * (0.3 if kind == "ensemble" else 1.0)
    accuracy = (0.88 - lost + 0.01 * rng.normal(size=lost.shape))[None]
    half = np.array([0.05, 0.05, 0.05, 0.05, 0.05, 0.12])
    return {"accuracy": accuracy, "accuracy_low": accuracy - half, "accuracy_high": np.minimum(accuracy + half, 1.0)}
