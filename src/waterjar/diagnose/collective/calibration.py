"""Negative log-likelihood, as it is and after temperature scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.collective.answers import label_log_likelihood
from waterjar.diagnose.result import Floats, Result
from waterjar.run.combining import log_softmax

_REACH = 7.0
"""How far temperatures are looked for, in nats."""
NO_TEMPERATURE = Result.missing("undefined", "a label has no probability where the temperature is fitted")


def negative_log_likelihood(logits: ArrayLike, labels: ArrayLike) -> float:
    """Mean over samples of - log softmax(logits)[label]; logits (sample, class).

    >>> round(negative_log_likelihood([[0.0, 0.0], [0.0, 0.0]], [0, 1]), 6)
    0.693147
    """
    return float(0.0 - label_log_likelihood(logits, labels).mean())  # 0, not -0, where all is sure and right


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """The T with the lowest negative log-likelihood of logits / T (Guo et al. 2017); NaN where none is finite.

    The log-likelihood is concave in 1 / T: there is one such T, looked for from exp(-7) to exp(7) times the largest
    distance of two logits of a sample, or 1 if that is less. Where every answer is right T would vanish, and the first
    mistake elsewhere be infinitely bad. Only there, of n samples the label counts for n + 1 parts of n + 2, and all
    classes with a finite logit share the last one (Platt 1999).

    >>> round(fit_temperature([[2.0, 0.0]] * 3000 + [[0.0, 2.0]] * 1000, [0] * 4000), 2)
    1.82
    """
    values, wanted = np.asarray(logits, np.float64), np.asarray(labels)
    own = -label_log_likelihood(values, wanted)
    if not len(own) or not np.isfinite(own).all():
        return float("nan")
    from scipy import optimize  # noqa: PLC0415 - it takes its time

    known = np.isfinite(values)
    values = np.where(known, values - values.max(-1, keepdims=True), values)
    rest = 1.0 / (len(wanted) + 2) if (values[np.arange(len(wanted)), wanted] == 0.0).all() else 0.0
    span = max(1.0, -float(values[known].min()))

    def loss(log_inverse: float) -> float:
        logs = log_softmax(values * np.exp(log_inverse))
        told = np.take_along_axis(logs, wanted[:, None], -1)[:, 0]
        even = np.where(known, logs, 0.0).sum(-1) / known.sum(-1)
        return float(-((1 - rest) * told + rest * even).mean())

    bounds = (-_REACH - np.log(span), _REACH)
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(-found.x))


def calibrated_nll(
    logits: ArrayLike,
    labels: ArrayLike,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    seed: int = 0,
) -> tuple[float, float]:
    """Negative log-likelihood after temperature scaling, and the temperature (Ashukha et al. 2020).

    The temperature is fitted on `validation` (logits, labels). Where there is none, the samples are cut into two random
    halves, each scored with the temperature of the other; the temperature told is their geometric mean. Where a label
    has no probability at all, the likelihood is infinite at any temperature, and the temperature NaN; where only none
    can be fitted, both are.

    >>> logits, labels = np.array([[9.0, 0.0]] * 50 + [[0.0, 9.0]] * 50), np.array([0, 1, 1, 0, 0] * 20)
    >>> nll, temperature = calibrated_nll(logits, labels)
    >>> bool(nll < negative_log_likelihood(logits, labels)), bool(temperature > 1)
    (True, True)
    """
    values, wanted = np.asarray(logits, np.float64), np.asarray(labels)
    if np.isinf(label_log_likelihood(values, wanted)).any():
        return float("inf"), float("nan")
    if validation is not None:
        temperature = fit_temperature(*validation)
        return negative_log_likelihood(values / temperature, wanted), temperature
    order = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(len(wanted), 2))).permutation(len(wanted))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    losses: Floats = np.empty(len(wanted))
    temperatures = []
    for one, other in (halves, halves[::-1]):
        temperatures.append(fit_temperature(values[one], wanted[one]) if len(one) else 1.0)
        losses[other] = 0.0 - label_log_likelihood(values[other] / temperatures[-1], wanted[other])
    return float(losses.mean()), float(np.exp(np.mean(np.log(temperatures))))
