"""Studies as users record their own loops: tasks in a row, losses alone, one learner; written in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import waterjar

TASKS = [f"digits{2 * i}{2 * i + 1}" for i in range(5)]
_SIDE, _HIDDEN, _BATCH, _PER_CLASS = 8, 32, 20, 40


class Network:
    """A layer of ReLU units and a readout, trained by SGD."""

    def __init__(self, inputs: int, classes: int, rng: np.random.Generator, hidden: int = _HIDDEN) -> None:
        self.weights = {
            "fc1.weight": rng.normal(0, np.sqrt(2 / inputs), (hidden, inputs)),
            "fc1.bias": np.zeros(hidden),
            "fc2.weight": rng.normal(0, np.sqrt(1 / hidden), (classes, hidden)),
            "fc2.bias": np.zeros(classes),
        }

    def features(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x @ self.weights["fc1.weight"].T + self.weights["fc1.bias"], 0)

    def probabilities(self, hidden: np.ndarray) -> np.ndarray:
        scores = hidden @ self.weights["fc2.weight"].T + self.weights["fc2.bias"]
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return raised / raised.sum(axis=1, keepdims=True)

    def judge(self, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """Accuracy and mean loss."""
        found = self.probabilities(self.features(x))
        return float((found.argmax(1) == y).mean()), float(-np.log(found[np.arange(len(y)), y] + 1e-12).mean())

    def step(self, x: np.ndarray, y: np.ndarray, rate: float) -> None:
        hidden = self.features(x)
        out = self.probabilities(hidden)
        out[np.arange(len(y)), y] -= 1
        out /= len(y)
        back = (out @ self.weights["fc2.weight"]) * (hidden > 0)
        found = {
            "fc1.weight": back.T @ x,
            "fc1.bias": back.sum(0),
            "fc2.weight": out.T @ hidden,
            "fc2.bias": out.sum(0),
        }
        for name, gradient in found.items():
            self.weights[name] -= rate * gradient


def digits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ten smooth patterns of 8 x 8, shifted and noisy, as many of each."""
    shapes = np.random.default_rng(0).random((10, 4, 4)).repeat(2, 1).repeat(2, 2)
    y = np.arange(10).repeat(_PER_CLASS)
    x = shapes[y] + 0.25 * rng.normal(size=(len(y), _SIDE, _SIDE))
    return x.reshape(len(y), -1), y


def continual_study(
    path: Path,
    methods: Sequence[str] = ("naive", "replay"),
    seeds: Sequence[int] = (0, 1, 2),
    *,
    epochs: int = 3,
    rate: float = 0.3,
    tasks: int = 5,
    features: bool = True,
) -> Path:
    """Split digits: tasks of two classes one after the other, with and without a memory; every seed a run."""
    waterjar.create_study(path)
    for method in methods:
        for seed in seeds:
            continual_run(path / f"{method}-{seed}", method, seed, epochs, rate, tasks, features)
    return path


def continual_run(
    path: Path, method: str, seed: int, epochs: int = 3, rate: float = 0.3, tasks: int = 5, features: bool = True
) -> Path:
    rng = np.random.default_rng([seed, 1])
    (x, y), (test_x, test_y) = digits(rng), digits(rng)
    network = Network(_SIDE**2, 10, rng)
    names = TASKS[:tasks]
    shown = [np.flatnonzero(test_y // 2 == task)[::4] for task in range(tasks)]
    settings = {"method": method, "dataset": "digits", "lr": rate, "seed": seed}
    memory = np.zeros(0, np.intp)
    with waterjar.Recorder(
        path, settings, seeds=[seed], eval_sets={name: task for task, name in enumerate(names)}, tasks=names,
        classes=[str(digit) for digit in range(10)],
    ) as recorder:  # fmt: skip
        if features:
            recorder.once("probe_samples", label=np.stack([test_y[rows] for rows in shown])[None])
        for task, name in enumerate(names):
            own = np.flatnonzero(y // 2 == task)
            for epoch in range(0 if task == 0 else 1, epochs + 1):
                order = rng.permutation(own) if epoch else own[:0]
                for rows in np.array_split(order, max(1, len(order) // _BATCH)):
                    old = rng.choice(memory, _BATCH) if method.startswith("replay") and len(memory) else memory[:0]
                    batch = np.concatenate([rows, old])
                    if len(batch):
                        network.step(x[batch], y[batch], rate)
                judged = [network.judge(test_x[test_y // 2 == j], test_y[test_y // 2 == j]) for j in range(tasks)]
                fit = network.judge(x[own], y[own])
                recorder.log(
                    train_task=name,
                    epoch=epoch,
                    performance={"accuracy": [one for one, _ in judged], "loss": [loss for _, loss in judged]},
                    train={"accuracy": fit[0], "loss": fit[1]},
                    resources={"seconds": 0.01 * (1 + method.startswith("replay")), "images": len(own)},
                    snapshot={
                        "features": {"fc1": np.stack([network.features(test_x[rows]) for rows in shown])[None]},
                        "weights": network.weights,
                    } if features else None,
                )  # fmt: skip
            memory = np.concatenate([memory, own[::4]])
    return path


def loss_study(
    path: Path, methods: Sequence[str] = ("sgd", "adam"), seeds: Sequence[int] = tuple(range(20)), epochs: int = 8
) -> Path:
    """Next-character loss of a bigram model on a made-up text: no accuracy, one task, no classes."""
    waterjar.create_study(path)
    for method in methods:
        for seed in seeds:
            rng = np.random.default_rng(seed)
            moves = rng.dirichlet(np.full(6, 0.3), 6)
            chain = [0]
            for _ in range(600):
                chain.append(int(rng.choice(6, p=moves[chain[-1]])))
            text, scores = np.array(chain), np.zeros((6, 6))
            with waterjar.Recorder(
                path / f"{method}-{seed}", {"method": method, "dataset": "chars"}, seeds=[seed], eval_sets=["held_out"]
            ) as recorder:
                for epoch in range(epochs + 1):
                    said = scores - np.log(np.exp(scores).sum(1, keepdims=True))
                    losses = -said[text[:-1], text[1:]]
                    recorder.log(
                        epoch=epoch,
                        performance={"loss": losses[500:].mean()},
                        train={"loss": losses[:500].mean()},
                    )
                    gradient = np.exp(said)
                    counts = np.zeros((6, 6))
                    np.add.at(counts, (text[:500], text[1:501]), 1)
                    step = counts / counts.sum(1, keepdims=True).clip(1) - gradient
                    scores += (0.4 if method == "sgd" else 1.2) * step
    return path
