"""A small collective of three streams with everything that its metrics may read: made up, not trained."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.run.combining import combine, log_softmax

STREAMS = ["left", "middle", "right"]
_ABSENCES = ("zeroed", "resampled")
_BITS = ["".join(bits) for bits in itertools.product("01", repeat=len(STREAMS))]
COALITIONS = [f"{absence}:{bits}" for absence in _ABSENCES for bits in _BITS]
_UNITS, _SLOTS, _ROUTES, _TARGETS, _ANCHORS, _COMPONENTS = 4, 2, 2, 4, 5, 8


class SmallStreams:
    """The streams of one seed: the surer of their labels, the longer they are trained."""

    def __init__(self, seed: int, scenario: str, labels: NDArray[np.int64]) -> None:
        self._rng = np.random.default_rng([seed, len(scenario), 7])
        self._labels = labels
        """(eval_set, sample)."""

    def snapshot(self, place: int, high: float, gone: float) -> dict[str, NDArray[Any]]:
        """What `Recorder.snapshot(streams=...)` takes; `gone` is added to every number."""
        rng, labels, n = self._rng, self._labels, len(STREAMS)
        shape = (*labels.shape, n)
        classes = int(labels.max()) + 1
        own = np.eye(classes)[labels][..., None, :]
        logits = rng.normal(size=(*shape, classes)) + 2.0 * high * own
        isolated = logits + 0.3 * rng.normal(size=logits.shape) - 0.5 * high * own
        centres = np.random.default_rng(1).normal(size=(classes, n, _UNITS))
        routes = np.exp(rng.normal(size=(*shape, _SLOTS, _ROUTES)) * (1 + place))
        index = np.argsort(rng.random((*shape, _SLOTS, _TARGETS)), axis=-1)[..., :_ROUTES]
        right, likely = self._coalitions(logits)
        found = {
            "logits": logits,
            "isolated_logits": isolated,
            "collective_logits": combine(logits, "mean_probability"),
            "pooled": rng.normal(size=(*shape, _UNITS)) + high * centres[labels],
            "route_weight": routes / routes.sum(-1, keepdims=True),
            "fingerprint": rng.normal(size=(n, _COMPONENTS)),
            "affinity": 1 / (1 + np.exp(-rng.normal(size=(*shape, _ANCHORS)))),
            "coalition_correct": right,
            "coalition_log_likelihood": likely,
            "gradient_norm": rng.random(shape),
        }
        whole = np.where(np.isnan(gone), -1, index)
        return {**{name: value + gone for name, value in found.items()}, "route_index": whole}

    def _coalitions(self, logits: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Right and log-likelihood (eval_set, sample, coalition), the others zeroed, or those of the sample before."""
        right, likely = [], []
        for label in COALITIONS:
            absence, _, bits = label.partition(":")
            there = np.array([bit == "1" for bit in bits])[:, None]
            other = np.zeros_like(logits) if absence == "zeroed" else np.roll(logits, 1, axis=1)
            logs = log_softmax(combine(np.where(there, logits, other), "mean_logit"))
            right.append((logs.argmax(-1) == self._labels).astype(np.float64))
            likely.append(np.take_along_axis(logs, self._labels[..., None], -1)[..., 0])
        return np.stack(right, -1), np.stack(likely, -1)
