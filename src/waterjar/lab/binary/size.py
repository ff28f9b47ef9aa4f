"""How much a run will take on disk, before it starts."""

from __future__ import annotations

from waterjar.lab.binary.config import BinaryConfig
from waterjar.lab.binary.examples import count_examples
from waterjar.lab.binary.learner import first_network
from waterjar.lab.data import ImageData
from waterjar.lab.examples import STATIC_BYTES, STEP_BYTES
from waterjar.lab.networks import Network

FLOAT64, FLOAT32, REASON = 8, 4, 1


def logged_epochs(config: BinaryConfig) -> list[int]:
    """The epochs of a task at which it is evaluated, its start among them."""
    return list(range(0, config.training.epochs + 1, config.training.log_frequency))


def kept_epochs(config: BinaryConfig) -> list[int]:
    """Those of them at which features and weights are kept.

    >>> from waterjar.lab.binary.config import BinaryConfig
    >>> kept_epochs(BinaryConfig(data="x", repeats=1, tasks={"number": 1}, training={"epochs": 7},
    ...     recording={"every": 3, "weights": True}))
    [0, 3, 6, 7]
    """
    logged, every = logged_epochs(config), config.recording.every
    if not (config.recording.features or config.recording.weights):
        return []
    return [epoch for number, epoch in enumerate(logged) if number % every == 0 or epoch == logged[-1]]


def estimate_size(config: BinaryConfig, data: ImageData) -> dict[str, int]:
    """Bytes by group, and `total`. Before compression: what is written is never much more, and often less."""
    repeats, tasks = len(config.repeat_seeds), config.tasks.number
    steps, shots = tasks * len(logged_epochs(config)), tasks * len(kept_epochs(config))
    network = first_network(config, (config.channels, *data.image_size), 0)
    parameters = sum(weights.numel() for weights in network.parameters())
    curves = 2 * (1 + config.random_baseline + config.multitask)
    found = {
        "performance": steps * tasks * repeats * curves * FLOAT64,
        "expert": steps * tasks * repeats * 2 * (FLOAT64 + REASON) if config.experts else 0,
        "train": steps * repeats * 5 * FLOAT64,
        "resources": steps * 5 * FLOAT64,
        "examples": repeats * count_examples(config, data) * (STATIC_BYTES + steps * STEP_BYTES),
        "features": 0,
        "weights": (shots + 1) * repeats * parameters * FLOAT32 if config.recording.weights else 0,
    }
    for layer in config.recording.features:
        samples = len(config.probe_tasks) * config.recording.samples
        found["features"] += shots * repeats * samples * _units(network, layer) * FLOAT32
    return {**found, "total": sum(found.values())}


def _units(network: Network, layer: str) -> int:
    """Width of a layer as it is recorded."""
    import torch  # noqa: PLC0415

    with torch.no_grad():
        _, seen = network.forward_features(torch.zeros(1, *network.image_shape), [layer])
    return int(seen[layer].shape[1])
