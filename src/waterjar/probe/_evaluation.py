"""Evaluation sets of a torch loop: gone through batch by batch, without a trace in the network or any generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from waterjar.errors import WaterjarError, brief
from waterjar.probe.untouched import device_of
from waterjar.run.schema import Missing, missing

_AT_ONCE = 500
"""Samples of two tensors that go through the network at once."""
_EXPECTED = "expected batches of (inputs, labels)"


@dataclass(frozen=True)
class Samples:
    """Some samples: what goes into the network, and their labels."""

    inputs: Any
    labels: torch.Tensor | None
    kept: torch.Tensor | None = None
    """Of probes whose labels are of tokens: those whose features are kept, counted through all sequences."""

    def __len__(self) -> int:
        """How many."""
        return _count(self.inputs)

    def __getitem__(self, part: slice) -> Samples:
        """Some of them."""
        return Samples(_sliced(self.inputs, part), None if self.labels is None else self.labels[part])

    @property
    def probes(self) -> int:
        """Of how many the features are kept: of tokens, where labels are of tokens."""
        return len(self) if self.kept is None else len(self.kept)

    @property
    def probe_labels(self) -> torch.Tensor | None:
        """A label for each of them; none where labels are several numbers a sample."""
        if self.labels is None or (self.kept is None and self.labels.numel() != len(self)):
            return None
        return self.labels.flatten() if self.kept is None else self.labels.flatten()[self.kept]

    def as_probes(self, most: int | None) -> Samples:
        """At most so many, by shapes alone: the same at every look and in every run.

        Class numbers of more than one dimension are of tokens, and a token is a sample: they come from as many
        sequences as there are, from the i-th one its i-th token (from the start again, where it is shorter), and then
        those that stand as far apart as its length allows.
        """
        labels = self.labels
        if labels is None or labels.is_floating_point() or labels.numel() == len(self):
            return self if most is None else self[:most]
        count, length = len(self), labels[0].numel()
        number = torch.arange(count * length if most is None else min(most, count * length))
        apart = length // -(-len(number) // count)
        token = (number % count + number // count * apart) % length
        return Samples(self.inputs, labels, (number % count * length + token).sort().values)


class EvalSet:
    """One evaluation set: two tensors, or batches that come anew whenever they are asked for."""

    def __init__(self, name: str, given: Any) -> None:
        self.name = name
        self._whole = _pair(given)
        self._given = given
        if self._whole is None and isinstance(given, torch.Tensor):
            raise WaterjarError(f"{self._at}: a tensor alone; {_EXPECTED}, or one such pair")
        if self._whole is None and not hasattr(given, "__iter__"):
            raise WaterjarError(f"{self._at}: {brief(repr(given))}; expected a DataLoader, or (inputs, labels)")
        if self._whole is None and isinstance(given, Iterator):
            raise WaterjarError(f"{self._at}: an iterator is empty after one epoch; expected a DataLoader or a list")
        if self._whole is not None and len(self._whole[0]) != len(self._whole[1]):
            raise WaterjarError(f"{self._at}: {len(self._whole[0])} inputs and {len(self._whole[1])} labels")

    @property
    def _at(self) -> str:
        return f"eval_sets['{self.name}']"

    @property
    def size(self) -> int | None:
        """How many samples it has, if it says so: a DataLoader does that goes through all of its data."""
        if self._whole is not None:
            return len(self._whole[1]) if self._whole[1].ndim == 1 else None
        given = self._given
        if isinstance(given, torch.utils.data.DataLoader) and given.batch_size is not None and not given.drop_last:
            sampler: Any = given.sampler
            return len(sampler) if hasattr(sampler, "__len__") else None
        return None

    @property
    def generators(self) -> list[torch.Generator]:
        """Generators that going through it draws from, beside the global one."""
        given = self._given
        owners = [given, getattr(given, "sampler", None), getattr(given, "batch_sampler", None)]
        owners.append(getattr(owners[2], "sampler", None))
        found = [getattr(owner, "generator", None) for owner in owners]
        return [one for one in found if isinstance(one, torch.Generator)]

    def batches(self) -> Iterator[Samples]:
        """Its batches, from the first one on."""
        if self._whole is not None:
            whole = Samples(*self._whole)
            for start in range(0, len(whole), _AT_ONCE):
                yield whole[start : start + _AT_ONCE]
            return
        for batch in self._given:
            pair = _pair(batch)
            if pair is None:
                told = (
                    f"{type(batch).__name__} of {len(batch)}"
                    if isinstance(batch, list | tuple | dict)
                    else brief(type(batch).__name__)
                )
                raise WaterjarError(f"{self._at}: a batch is a {told} without labels; {_EXPECTED}")
            yield Samples(*pair)

    def first(self, most: int | None = None) -> Samples:
        """Its first samples, or all of them."""
        parts, count = [], 0
        for batch in self.batches():
            parts.append(batch)
            count += len(batch)
            if most is not None and count >= most:
                break
        if not count:
            raise WaterjarError(f"{self._at} is empty: expected samples")
        labels = [part.labels for part in parts if part.labels is not None]
        whole = Samples(_joined([part.inputs for part in parts]), torch.cat(labels))
        return whole[:most] if most is not None else whole

    def evaluate(
        self, model: nn.Module, forward: Callable[..., Any] | None, loss: Callable[..., Any] | None
    ) -> dict[str, float | Missing]:
        """Accuracy, where labels are class numbers, and the mean loss over samples (of sequences: over tokens).

        A network that gives NaN has no accuracy: the class that such a row would count for is none that it chose.
        """
        device = device_of(model)
        right, lost, count, classes, broken = 0, 0.0, 0, True, False
        with torch.no_grad():
            for batch in self.batches():
                inputs, labels = moved(batch.inputs, device), moved(batch.labels, device)
                outputs = model(inputs) if forward is None else forward(model, inputs, self.name)
                outputs, labels = self._checked(outputs, labels, loss)
                classes = classes and not labels.is_floating_point()
                if classes:
                    right += int((outputs.argmax(1) == labels).sum())
                    broken = broken or bool(outputs.isnan().any())
                value = functional.cross_entropy(outputs.float(), labels) if loss is None else loss(outputs, labels)
                lost += self._mean(value) * len(labels)
                count += len(labels)
        if not count:
            raise WaterjarError(f"{self._at} is empty: expected samples")
        accuracy = missing("not_a_number") if broken else right / count
        return {**({"accuracy": accuracy} if classes else {}), "loss": lost / count}

    def _mean(self, value: Any) -> float:
        """The mean loss of a batch, if that is what a loss gives."""
        if not isinstance(value, float | torch.Tensor) or (isinstance(value, torch.Tensor) and value.numel() != 1):
            told = f"the shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            raise WaterjarError(f"{self._at}: loss= gives {told}; expected one number, the mean loss of a batch")
        return float(value)

    def _checked(self, outputs: Any, labels: torch.Tensor, loss: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits (sample, class) with class numbers, tokens in a row; or anything that a loss of one's own takes."""
        if not isinstance(outputs, torch.Tensor):
            keys = f" with {', '.join(map(str, outputs))}" if isinstance(outputs, Mapping) else ""
            way = 'model(x)["logits"]' if keys else "model(x)[0]"
            raise WaterjarError(
                f"{self._at}: the network gives a {type(outputs).__name__}{keys}; expected logits: pass "
                f"forward=lambda model, x, name: {way}"
            )
        if labels.is_floating_point():
            if loss is None:
                raise WaterjarError(
                    f"{self._at}: labels are {str(labels.dtype).removeprefix('torch.')}; expected class numbers, or "
                    "for a regression loss=torch.nn.functional.mse_loss"
                )
            return outputs, labels
        labels = labels.long()
        if labels.ndim == 2 and labels.shape[1] == 1 and outputs.ndim == 2:
            labels = labels[:, 0]
        if outputs.ndim < 2 or outputs.shape[:-1] != labels.shape or outputs.shape[-1] < 2:
            raise WaterjarError(
                f"{self._at}: outputs have shape {tuple(outputs.shape)}, labels {tuple(labels.shape)}; expected "
                "(sample, class) and (sample), or (sample, token, class) and (sample, token). Else pass forward="
            )
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= outputs.shape[-1]:
            wrong = low if low < 0 else high
            raise WaterjarError(
                f"{self._at}: a label is {wrong}, and the network has {outputs.shape[-1]} outputs: expected 0 to "
                f"{outputs.shape[-1] - 1}"
            )
        return outputs.flatten(0, -2), labels.flatten()


def moved(value: Any, device: torch.device) -> Any:
    """A tensor on another device; so are all in a mapping, list or tuple."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: moved(one, device) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(moved(one, device) for one in value)
    return value


def _pair(given: Any) -> tuple[Any, torch.Tensor] | None:
    """(inputs, labels), if that is what it is: labels are a tensor with a place per sample."""
    if not isinstance(given, list | tuple) or len(given) != 2:
        return None
    inputs, labels = given
    tensors = all(not isinstance(one, list | tuple) or hasattr(one, "_fields") for one in (inputs, labels))
    if not tensors or labels is None:
        return None
    labels = torch.as_tensor(labels) if hasattr(labels, "__array__") or isinstance(labels, torch.Tensor) else None
    if labels is None or not labels.ndim:
        return None
    return (torch.as_tensor(inputs) if hasattr(inputs, "__array__") else inputs), labels


def _count(value: Any) -> int:
    if isinstance(value, Mapping):
        return _count(next(iter(value.values())))
    return _count(value[0]) if isinstance(value, list | tuple) else len(value)


def _sliced(value: Any, part: slice) -> Any:
    if isinstance(value, Mapping):
        return {key: _sliced(one, part) for key, one in value.items()}
    return type(value)(_sliced(one, part) for one in value) if isinstance(value, list | tuple) else value[part]


def _joined(parts: list[Any]) -> Any:
    first = parts[0]
    if isinstance(first, Mapping):
        return {key: _joined([part[key] for part in parts]) for key in first}
    if isinstance(first, list | tuple):
        return type(first)(_joined(list(own)) for own in zip(*parts, strict=True))
    return torch.cat(parts)
