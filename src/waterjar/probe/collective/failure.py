"""Stream failure: what is left of the collective when a stream, or half of them, is gone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.probe.collective.adapt import adapt
from waterjar.probe.collective.coalitions import Ticks, coalitions
from waterjar.probe.collective.live import Present
from waterjar.stats.samples import check_between
from waterjar.stats.shares import share_interval

HALF, ALL = "half_streams", "all"


@dataclass(frozen=True)
class StreamFailure(Mapping[str, float]):
    """Accuracies under the seed's keys: `all`, `without_<name>` of each stream, `half_streams`.

    The interval of the first two is over samples (Wilson); that of `half_streams` is the middle 95 % (or `confidence`)
    of the accuracies over draws: what it hangs on is which half is gone. Where logits are NaN, so are all three.
    """

    failures: tuple[str, ...]
    accuracy: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    draws: int
    """Halves that were looked at; all of them where there are no more than were asked for."""
    how: str

    def __getitem__(self, key: str) -> float:
        if key not in self.failures:
            raise KeyError(key)
        return float(self.accuracy[self.failures.index(key)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.failures)

    def __len__(self) -> int:
        return len(self.failures)


def stream_failure(
    collective: Any,
    data: Any,
    how: str = "zeroed",
    *,
    draws: int = 100,
    confidence: float = 0.95,
    batch_size: int = 256,
    seed: int = 0,
    progress: Ticks | None = None,
) -> StreamFailure:
    """Accuracy with all streams, without each, and without a random half (rounded down), many times.

    `collective` is a `LiveCollective`, or a model that `adapt` takes.

    The seed document sets a failed stream's output to zero, which is the default here. The model is left as it was,
    bit for bit, also when evaluation raises.

    >>> import torch
    >>> from waterjar.probe.collective import adapt
    >>> trio = adapt([torch.nn.Linear(4, 2) for _ in range(3)], names=["a", "b", "c"])
    >>> found = stream_failure(trio, (torch.zeros(6, 4), [0, 1] * 3))
    >>> list(found), found.draws
    (['all', 'without_a', 'without_b', 'without_c', 'half_streams'], 3)
    """
    check_between(confidence, 0.0, 1.0, "confidence")
    collective = adapt(collective)
    count = len(collective.streams)
    halves = _halves(count, draws, seed)
    each = ~np.eye(count, dtype=np.bool_) if count > 1 or how != "removed" else np.zeros((0, count), np.bool_)
    present = np.concatenate([np.ones((1, count), np.bool_), each, halves])
    found = coalitions(collective, data, how, present=present, batch_size=batch_size, seed=seed, progress=progress)
    accuracy, samples = found.shares, len(found.correct)
    alone = len(each) + 1
    _, low, high = share_interval(found.correct[:, :alone].sum(axis=0), samples, confidence=confidence)
    low, high = (np.where(np.isnan(accuracy[:alone]), np.nan, end) for end in (low, high))
    names = [ALL, *(f"without_{name}" for name in collective.streams[: len(each)])]
    if len(halves):
        tail = (1 - confidence) / 2
        names.append(HALF)
        low = np.append(low, np.quantile(accuracy[alone:], tail))
        high = np.append(high, np.quantile(accuracy[alone:], 1 - tail))
        accuracy = np.append(accuracy[:alone], accuracy[alone:].mean())
    return StreamFailure(tuple(names), accuracy, low, high, len(halves), how)


def _halves(count: int, draws: int, seed: int) -> Present:
    """(draw, stream): half of the streams present, rounded up; all choices if there are no more than `draws`."""
    if draws < 1:
        raise WaterjarError(f"draws={draws}: expected 1 or more")
    gone = count // 2
    if not gone:
        return np.zeros((0, count), np.bool_)
    if math.comb(count, gone) <= draws:
        chosen = [list(one) for one in itertools.combinations(range(count), gone)]
    else:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(19,)))
        chosen = [rng.permutation(count)[:gone].tolist() for _ in range(draws)]
    present = np.ones((len(chosen), count), np.bool_)
    for row, names in zip(present, chosen, strict=True):
        row[names] = False
    return present
