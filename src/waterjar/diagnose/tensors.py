"""Where each weight tensor stands among the flattened parameters that a run has recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from waterjar.diagnose.snapshots import RunArrays
from waterjar.errors import WaterjarError


@dataclass(frozen=True)
class Tensor:
    """A stretch of the flattened parameters."""

    name: str
    place: slice
    shape: tuple[int, ...]


def tensors_of(arrays: RunArrays, buffers: Sequence[str]) -> tuple[Tensor, ...]:
    """The table of the recorded parameters without buffers; one tensor of all where there is no table.

    A state_dict also holds what is not trained: statistics of batch normalisation, and the number of batches seen,
    which alone would outweigh all parameters.
    """
    count = arrays.shape("weights/weights")[2]
    if "weights/layer" not in arrays:
        return (Tensor("all", slice(0, count), (count,)),)
    columns = (arrays.whole(f"weights/{name}") for name in ("layer", "layer_start", "layer_stop", "layer_shape"))
    found = []
    for name, start, stop, shape in zip(*columns, strict=True):
        if str(name).rpartition(".")[2] not in buffers:
            sizes = tuple(int(size) for size in str(shape).split("x") if size.isdecimal())
            if not 0 <= start <= stop <= count or math.prod(sizes) != stop - start:
                raise WaterjarError(
                    f"{arrays.run.path}: '{name}' of shape {shape} is said to be parameters {start} to {stop} of "
                    f"{count}: the table of its weights does not fit them"
                )
            found.append(Tensor(str(name), slice(int(start), int(stop)), sizes))
    return tuple(found)
