"""Snapshots on request: features of a fixed choice of images, and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.lab.config import RunConfig
from waterjar.lab.counter_hash import fixed_choice
from waterjar.lab.evaluation import EvaluationSet, Normalisation, evaluation_sets, treated
from waterjar.lab.networks import Network
from waterjar.lab.tasks import Rows, TwoTasks
from waterjar.run.recorder import Recorder


class Snapshots:
    """Which images are probed, and what is kept of them."""

    def __init__(self, tasks: TwoTasks, config: RunConfig, scale: Normalisation, device: str) -> None:
        self._tasks = tasks
        self._wanted = config.recording
        self._fill = config.shortcut.mask
        self._scale = scale
        self._device = device
        self._sets = [chosen for chosen in evaluation_sets(tasks) if len(chosen.rows)]
        count = min([self._wanted.samples, *(len(chosen.rows) for chosen in self._sets)])
        self._rows = {chosen.name: self._choice(chosen, count) for chosen in self._sets}

    @property
    def probe_sets(self) -> list[str]:
        """The evaluation sets whose features are kept."""
        return [chosen.name for chosen in self._sets]

    def _choice(self, chosen: EvaluationSet, count: int) -> Rows:
        """The rows with the smallest hashes of their sample ids: sets of the same images share their choice."""
        return fixed_choice(chosen.rows, self._tasks.ids(chosen.split, chosen.rows), count, "probe samples")

    def describe(self, recorder: Recorder, network: Network) -> None:
        """Record once what the features are features of; and the weights before any training."""
        network.check_layers(self._wanted.features, "recording.features: layer")
        if self._wanted.features:
            labels, ids, boxes = [], [], []
            for chosen in self._sets:
                rows = self._rows[chosen.name]
                labels.append(self._tasks.labels[chosen.split][rows])
                ids.append(self._tasks.ids(chosen.split, rows))
                boxes.append(self._tasks.shortcut.region(ids[-1], chosen.split))
            recorder.once(
                "probe_samples",
                label=np.stack(labels)[None],
                sample_index=np.stack(ids)[None],
                region=np.stack(boxes)[None],
            )

    def take(self, network: Network) -> dict[str, Any]:
        """What is wanted of the network as it is now."""
        found: dict[str, Any] = {}
        if self._wanted.weights:
            found["weights"] = network.state_dict()
        if self._wanted.features:
            found["features"] = self._features(network)
        return found

    def _features(self, network: Network) -> dict[str, dict[str, NDArray[np.float32]]]:
        was_training = network.training
        network.eval()
        features: dict[str, dict[str, NDArray[np.float32]]] = {layer: {} for layer in self._wanted.features}
        try:
            with torch.inference_mode():
                for chosen in self._sets:
                    images = treated(self._tasks, chosen, self._rows[chosen.name], self._scale, self._fill)
                    _, found = network.forward_features(images.to(self._device), self._wanted.features)
                    for layer, values in found.items():
                        features[layer][chosen.name] = values.float().cpu().numpy()
        finally:
            network.train(was_training)
        return features
