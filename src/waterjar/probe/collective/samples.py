"""Evaluation sets as a collective is measured on them: the same samples in the same order at every epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from waterjar.errors import WaterjarError

Labels = NDArray[np.int64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Samples:
    """Inputs (a tensor, or a tuple or mapping of tensors, samples first) and the label of each."""

    inputs: Any
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, indices: Indices, device: torch.device, *, gradients: bool = False) -> Any:
        """The inputs of some samples, where the model lives; with `gradients`, also through a frozen model."""

        def taken(one: Tensor) -> Tensor:
            found = one.detach()[torch.from_numpy(indices).to(one.device)].to(device)
            return found.requires_grad_() if gradients and found.is_floating_point() else found

        return _each(self.inputs, taken)

    def batches(self, size: int) -> Iterator[Indices]:
        """Positions of all samples, in order, `size` at a time."""
        if size < 1:
            raise WaterjarError(f"batch_size={size}: expected 1 or more")
        for start in range(0, len(self), size):
            yield np.arange(start, min(start + size, len(self)))

    def first(self, most: int | None) -> Samples:
        """No more than the first `most` samples."""
        if most is None or most >= len(self):
            return self
        return Samples(_each(self.inputs, lambda one: one[:most]), self.labels[:most])

    def others(self, seed: int) -> Indices:
        """For each sample another one, and each is another's: one random cycle through all of them.

        >>> found = Samples(torch.zeros(5, 2), np.arange(5)).others(seed=0)
        >>> sorted(found.tolist()), bool((found == np.arange(5)).any())
        ([0, 1, 2, 3, 4], False)
        """
        if len(self) < 2:
            raise WaterjarError("resampled: there is 1 sample, and no other one whose outputs could stand in")
        cycle = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(17,))).permutation(len(self))
        found = np.empty(len(self), np.int64)
        found[cycle] = np.roll(cycle, -1)
        return found


def samples_of(given: Any, name: str = "data") -> Samples:
    """Samples of a pair (inputs, labels), a data set, a loader, or what is samples already.

    A loader is read in the order of its data set, shuffled or not: sample 7 is the same one at every epoch.

    >>> samples_of((torch.zeros(4, 3), [0, 1, 1, 0])).labels
    array([0, 1, 1, 0])
    """
    if isinstance(given, Samples):
        return given
    if isinstance(given, DataLoader):
        return _read(_in_order(given), name)
    if isinstance(given, tuple | list) and len(given) == 2 and not isinstance(given[0], tuple | list):
        return _checked(given[0], given[1], name)
    if isinstance(given, IterableDataset):
        return _read(DataLoader(given, batch_size=256), name)
    if isinstance(given, Dataset) or (hasattr(given, "__getitem__") and hasattr(given, "__len__")):
        return _read(DataLoader(given, batch_size=256), name)
    raise WaterjarError(f"{name} is a {type(given).__name__}: expected (inputs, labels), a torch data set or a loader")


def _in_order(loader: DataLoader[Any]) -> DataLoader[Any]:
    if isinstance(loader.dataset, IterableDataset):
        return loader
    return DataLoader(loader.dataset, batch_size=loader.batch_size or 256, collate_fn=loader.collate_fn)


def _read(loader: DataLoader[Any], name: str) -> Samples:
    inputs: list[Any] = []
    labels: list[Tensor] = []
    with torch.random.fork_rng(devices=[]):  # a loader draws a seed for its workers, even without any
        for batch in loader:
            x, y = _unpacked(batch, name)
            inputs.append(x)
            labels.append(torch.as_tensor(y).reshape(-1))
    if not inputs:
        raise WaterjarError(f"{name} has no sample")
    return _checked(_joined(inputs), torch.cat(labels), name)


def _unpacked(batch: Any, name: str) -> tuple[Any, Any]:
    if isinstance(batch, Mapping):
        rest = dict(batch)
        key = next((key for key in ("labels", "label", "y") if key in rest), None)
        if key is not None:
            labels = rest.pop(key)
            return (rest.popitem()[1] if len(rest) == 1 else rest), labels
    elif isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    raise WaterjarError(
        f"a batch of {name} is a {type(batch).__name__}: expected (inputs, labels), or a mapping with labels"
    )


def _joined(parts: list[Any]) -> Any:
    one = parts[0]
    if isinstance(one, Tensor):
        return torch.cat(parts)
    if isinstance(one, Mapping):
        return {key: torch.cat([part[key] for part in parts]) for key in one}
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))


def _each(inputs: Any, change: Any) -> Any:
    if isinstance(inputs, Tensor):
        return change(inputs)
    if isinstance(inputs, Mapping):
        return {key: change(one) for key, one in inputs.items()}
    return tuple(change(one) for one in inputs)


def _checked(inputs: Any, labels: Any, name: str) -> Samples:
    if isinstance(inputs, np.ndarray):
        inputs = torch.from_numpy(np.ascontiguousarray(inputs))
    tensors = (
        [inputs] if isinstance(inputs, Tensor) else list(inputs.values() if isinstance(inputs, Mapping) else inputs)
    )
    told = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if told.ndim != 1 or told.dtype.kind not in "iu":
        raise WaterjarError(f"labels of {name} are {told.dtype} of shape {told.shape}: expected whole numbers (sample)")
    sizes = [len(one) for one in tensors]
    if not len(told) or set(sizes) != {len(told)}:
        raise WaterjarError(f"{name} has {sizes} inputs and {len(told)} labels: expected as many, and at least one")
    if told.min() < 0:
        raise WaterjarError(f"labels of {name} go down to {told.min()}: expected 0 and above")
    return Samples(inputs, told.astype(np.int64))
