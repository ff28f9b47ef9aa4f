"""What a collective answers with only some of its streams: which samples are right, and how likely it finds the label.

Streams are run once. A coalition then costs a row of a matrix product (independent streams under a rule), the fusion
(streams of a model that do not depend on each other), or all but the encoders (coupled streams).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.probe.collective.adapt import adapt
from waterjar.probe.collective.live import LiveCollective, Present, refuse_probabilities
from waterjar.probe.collective.samples import samples_of
from waterjar.probe.collective.still import measured

MOST_EXACT = 8
"""Up to so many streams all coalitions are run; beyond, those of random orders in which streams join."""
USUAL = 512
"""About as many coalitions of more streams, unless it is said how many orders."""
FEWEST = 32
"""As many orders at least: the error of Shapley values is told by how they differ."""

Ticks = Callable[[int, int], None]
"""Told after every batch: how many are done, of how many."""


@dataclass(frozen=True)
class Coalitions:
    """Who was present, and what the collective then answered."""

    labels: tuple[str, ...]
    """`<absence>:<bits>` of each coalition, a bit per stream in order, 1 = present."""
    correct: NDArray[np.bool_]
    """(sample, coalition)."""
    log_likelihood: NDArray[np.float64]
    """(sample, coalition): log of the probability of the label, in nats; -inf where it is 0."""

    def accuracy(self) -> dict[str, float]:
        """Of each coalition, by its label; NaN where a logit is."""
        return dict(zip(self.labels, self.shares.tolist(), strict=True))

    @property
    def shares(self) -> NDArray[np.float64]:
        """(coalition,): share of samples that are right; NaN where a logit is."""
        return np.where(np.isnan(self.log_likelihood).any(axis=0), np.nan, self.correct.mean(axis=0))


def coalitions(
    collective: Any,
    data: Any,
    how: str = "removed",
    *,
    present: Present | None = None,
    orders: int | None = None,
    batch_size: int = 256,
    seed: int = 0,
    progress: Ticks | None = None,
) -> Coalitions:
    """Run the collective with every coalition of its streams.

    Of up to 8 streams, all coalitions. Of more, streams join one by one in `orders` random orders, each also backwards,
    and everybody who is there so far is run; so is each stream alone, and all but it. The empty coalition of `removed`
    is left out: nobody is left to answer. resampled takes what all absent streams say about one other sample, a random
    cycle through all samples.
    The model is left as it was (see `still.measured`).

    Parameters
    ----------
    collective : a `LiveCollective`, or a model that `adapt` takes.
    data : (inputs, labels), a data set or a loader.
    how : removed, zeroed or resampled.
    present : (coalition, stream), to run these and no others.
    orders : of more than 8 streams; rounded up to pairs. By default at least 32, and so many that there are about 512
        coalitions.

    >>> from waterjar.probe.collective import adapt
    >>> sure = torch.nn.Linear(2, 2, bias=False)
    >>> _ = torch.nn.init.eye_(sure.weight)
    >>> pair = adapt({"right": sure, "silent": torch.nn.Linear(2, 2)}, rule="mean_logit")
    >>> found = coalitions(pair, (5 * torch.eye(2), [0, 1]), "removed")
    >>> found.labels, found.correct[:, 1]
    (('removed:01', 'removed:10', 'removed:11'), array([ True,  True]))
    """
    collective = adapt(collective)
    collective.check(how)
    samples = samples_of(data)
    bits = (
        coalitions_of(len(collective.streams), how, orders, seed) if present is None else _checked(present, collective)
    )
    if how == "removed" and not bits.any(axis=1).all():
        raise WaterjarError("removed: the empty coalition has nobody to answer")
    others = samples.others(seed) if how == "resampled" else None
    correct = np.zeros((len(samples), len(bits)), np.bool_)
    likelihood = np.zeros((len(samples), len(bits)))
    batches = list(samples.batches(batch_size))
    with measured(collective.module, seed) as device:
        for done, rows in enumerate(batches, start=1):
            kept = collective.prepare(samples.rows(rows, device))
            donors = None if others is None else collective.prepare(samples.rows(others[rows], device))
            targets = torch.from_numpy(samples.labels[rows]).to(device)
            for column, logits in enumerate(collective.answers(kept, bits, how, donors)):
                if done == 1 and bits[column].all() and not collective.are_logits:
                    refuse_probabilities("the collective", logits.cpu())
                correct[rows, column], likelihood[rows, column] = judge(logits, targets)
            if progress is not None:
                progress(done, len(batches))
    return Coalitions(tuple(label_of(how, row) for row in bits), correct, likelihood)


def judge(logits: Tensor, targets: Tensor) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Whether each sample is right, and the log-likelihood of its label; NaN logits are never right.

    >>> judge(torch.tensor([[0.0, 0.0]]), torch.tensor([0]))
    (array([ True]), array([-0.69314718]))
    """
    if int(targets.max()) >= logits.shape[1]:
        raise WaterjarError(f"label {int(targets.max())}, but the collective has {logits.shape[1]} classes")
    wide = logits.double()
    said = torch.log_softmax(wide, dim=1).gather(1, targets[:, None])[:, 0]
    right = (wide.argmax(dim=1) == targets) & ~wide.isnan().any(dim=1)
    return right.cpu().numpy(), said.cpu().numpy()


def label_of(how: str, bits: NDArray[np.bool_]) -> str:
    """`removed:101`, as in the coordinate `coalition` of a run.

    >>> label_of("zeroed", np.array([True, False]))
    'zeroed:10'
    """
    return f"{how}:{''.join('1' if bit else '0' for bit in bits)}"


def coalitions_of(streams: int, how: str, orders: int | None = None, seed: int = 0) -> Present:
    """(coalition, stream): all of them up to 8 streams, else a sample; without the empty one where nobody could answer.

    >>> coalitions_of(2, "zeroed").astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if streams <= MOST_EXACT:
        found = [row for row in itertools.product((False, True), repeat=streams) if any(row) or how != "removed"]
        return np.array(found, np.bool_)
    alone = np.eye(streams, dtype=np.bool_)
    rows = [alone, ~alone, np.ones((1, streams), np.bool_)]
    if how != "removed":
        rows.append(np.zeros((1, streams), np.bool_))
    rows += [places_of(streams, orders, seed) < size for size in range(2, streams - 1)]
    return np.unique(np.concatenate(rows), axis=0)


def places_of(streams: int, orders: int | None = None, seed: int = 0) -> NDArray[np.int64]:
    """(order, stream): the place at which each stream joins, in random orders, each followed by itself backwards.

    None at all up to 8 streams, of which all coalitions are run.

    >>> forth, back = places_of(10, orders=1)
    >>> sorted(forth.tolist()), (forth + back).tolist()
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [9, 9, 9, 9, 9, 9, 9, 9, 9, 9])
    """
    if orders is not None and orders < 1:
        raise WaterjarError(f"orders={orders}: expected 1 or more")
    if streams <= MOST_EXACT:
        return np.zeros((0, streams), np.int64)
    count = max(FEWEST, round((USUAL - 2 * streams) / (streams - 3))) if orders is None else orders
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(18,)))
    forth = np.array([rng.permutation(streams) for _ in range(-(-count // 2))])
    return np.stack([forth, streams - 1 - forth], 1).reshape(-1, streams)


def _checked(present: Sequence[Any] | Present, collective: LiveCollective) -> Present:
    bits = np.asarray(present, np.bool_)
    if bits.ndim != 2 or bits.shape[1] != len(collective.streams):
        raise WaterjarError(f"present has shape {bits.shape}: expected (coalition, {len(collective.streams)} streams)")
    return bits
