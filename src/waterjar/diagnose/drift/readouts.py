"""The recorded weights of a network's last linear map, read when asked for."""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.drift.inputs import NO_READOUT, Readout
from waterjar.diagnose.result import Result
from waterjar.diagnose.snapshots import RunArrays
from waterjar.diagnose.tensors import tensors_of
from waterjar.errors import unknown_name

OTHER_LAYER = Result.missing("undefined", "the readout does not read this layer")


class Readouts:
    """The readout of a run: the tensor of that name, else the last matrix among the recorded parameters.

    It reads the one recorded layer of its width; of several, the one called penultimate.
    """

    def __init__(self, arrays: RunArrays, name: str | None) -> None:
        self._arrays = arrays
        self._labels = arrays.labels("weights")
        tensors = {t.name: t for t in tensors_of(arrays, ())} if self._labels else {}
        matrices = [t.name for t in tensors.values() if len(t.shape) == 2]
        if name is not None and self._labels and name not in matrices:
            raise unknown_name(f"{arrays.path}: readout", name, matrices)
        chosen = name if name in matrices else matrices[-1] if matrices else ""
        self._weights = tensors.get(chosen)
        self._bias = tensors.get(chosen.removesuffix("weight") + "bias")
        units = self._weights.shape[1] if self._weights else -1
        fitting = [x for x in arrays.layers if arrays.shape(f"features/{x}/features")[-1] == units]
        self._layer = fitting[0] if len(fitting) == 1 else "penultimate" if "penultimate" in fitting else None

    def of(self, layer: str, label: int, repeat: int) -> Readout | Result:
        """The readout of a layer at a snapshot, or why there is none."""
        if self._weights is None or label not in self._labels:
            return NO_READOUT
        if layer != self._layer:
            return OTHER_LAYER
        row = self._arrays.row("weights/weights", self._labels.index(label), slice(repeat, repeat + 1))[0]
        weights = row[self._weights.place].reshape(self._weights.shape)
        bias = np.zeros(len(weights)) if self._bias is None else row[self._bias.place]
        return Readout(weights.astype(np.float64), bias.astype(np.float64))
