"""Coalitions of 8 streams: from kept outputs, beside running each of them through the model. Ratios of CPU seconds.

independent: 8 convolutional networks under the mean probability. Ours runs each network once and makes exact Shapley
values (accuracy and log-likelihood) of all 255 coalitions; the loop runs all networks for every coalition, as the seed
document's ablation does, and is given the same Shapley kernel. Both must agree. The floor is 20.

coupled: a model whose streams read each other's messages. Ours keeps what the encoders made of the input; the loop runs
the whole model. Both must agree to single precision, coalition by coalition; the ratio has no floor: it hangs on how
much of the model the encoders are.

uncoupled: the same model without messages: what streams gave is kept whole, and a coalition is the fusion alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from waterjar.diagnose.collective.shapley import shapley_of
from waterjar.probe.collective import LiveCollective, adapt, coalitions, coalitions_of
from waterjar.probe.collective.coalitions import judge
from waterjar.probe.collective.still import measured

STREAMS, CLASSES, SIDE, FLOOR = 8, 10, 16, 20.0
Game = tuple[NDArray[np.bool_], NDArray[np.float64]]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(),
    )  # fmt: skip


class Stream(nn.Module):
    """An encoder, and a head that reads what streams before it posted."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.encoder = name, nn.Sequential(network(), nn.Linear(512, 64))
        self.head = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))

    def forward(self, x: Tensor, mailbox: list[Tensor] | None) -> Tensor:
        features: Tensor = self.encoder(x)
        if mailbox:
            features = features + torch.stack(mailbox).mean(dim=0)
        out: Tensor = self.head(features)
        if mailbox is not None:
            mailbox.append(out)
        return out


class Messages(nn.Module):
    """The seed's protocol, with a mailbox or without."""

    def __init__(self, coupled: bool) -> None:
        super().__init__()
        self.streams = nn.ModuleList([Stream(f"s{i}") for i in range(STREAMS)])
        self.classifier = nn.Linear(64, CLASSES)
        self.coupled = coupled

    def forward(self, x: Tensor, return_individual: bool = False) -> tuple[Tensor, dict[str, Any]]:
        mailbox: list[Tensor] | None = [] if self.coupled else None
        pooled = torch.stack([stream(x, mailbox) for stream in self.streams])
        said = {f"s{i}": self.classifier(one) for i, one in enumerate(pooled)} if return_individual else {}
        return self.classifier(pooled.mean(dim=0)), {"individual_logits": said}


def mean_probability(networks: list[nn.Module], x: Tensor, there: NDArray[np.bool_]) -> Tensor:
    """The literal loop: the networks that are present are run for this coalition."""
    said = [torch.softmax(one(x), dim=1) for one, is_in in zip(networks, there, strict=True) if is_in]
    return torch.stack(said).mean(dim=0).log()


def zeroed(model: nn.Module, x: Tensor, there: NDArray[np.bool_]) -> Tensor:
    """The literal loop: all streams run and post, absent ones hand over zero. No adapter's help is used."""
    streams: Any = model.streams
    for stream, is_in in zip(streams, there, strict=True):
        if not is_in:
            stream.forward = lambda given, mailbox, own=stream.forward: torch.zeros_like(own(given, mailbox))
    try:
        out: Tensor = model(x)[0]
        return out
    finally:
        for stream in streams:
            stream.__dict__.pop("forward", None)


def loop(run: Callable[[Tensor, NDArray[np.bool_]], Tensor], data: Any, bits: NDArray[np.bool_], size: int) -> Game:
    x, y = data
    right, likely = np.zeros((len(x), len(bits)), np.bool_), np.zeros((len(x), len(bits)))
    with torch.no_grad():
        for column, there in enumerate(bits):
            for rows in torch.split(torch.arange(len(x)), size):
                right[rows, column], likely[rows, column] = judge(run(x[rows], there), y[rows])
    return right, likely


def values(game: Game, data: Any, bits: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Exact Shapley values in accuracy and in log-likelihood; what nobody answers is the share of the largest class."""
    counts = np.bincount(data[1].numpy(), minlength=CLASSES) / len(data[1])
    empty = [counts.max(), float((counts[counts > 0] * np.log(counts[counts > 0])).sum())]
    present = np.concatenate([np.zeros((1, STREAMS), np.bool_), bits])
    worth = np.array(
        [np.concatenate([[nobody], table.mean(axis=0)]) for table, nobody in zip(game, empty, strict=True)]
    )
    return shapley_of(present, worth.T)


def race(what: str, ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, floor: float | None) -> bool:
    ratios, seconds = [], []
    ours()  # fills caches of libraries, and finds out whether streams are coupled
    for _ in range(rounds):
        start = time.process_time()
        mine = ours()
        middle = time.process_time()
        other = theirs()
        end = time.process_time()
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        ratios.append((end - middle) / (middle - start))
        seconds.append((middle - start, end - middle))
    ratio = statistics.median(ratios)
    each = [statistics.median(one) for one in zip(*seconds, strict=True)]
    mark = "" if floor is None else f", floor {floor:g}, {'OVER' if ratio >= floor else 'UNDER - missed'}"
    print(f"{what}: {each[0]:.2f} / {each[1]:.2f} CPU s: ratio {ratio:.1f}{mark}", flush=True)
    return floor is None or ratio >= floor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one round of 128 samples")
    given = parser.parse_args()
    samples, rounds = (128, 1) if given.quick else (given.samples, given.rounds)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = (torch.rand(samples, 1, SIDE, SIDE), torch.randint(0, CLASSES, (samples,)))
    networks: list[nn.Module] = [nn.Sequential(network(), nn.Linear(512, CLASSES)).eval() for _ in range(STREAMS)]
    ensemble, bits = adapt(networks), coalitions_of(STREAMS, "removed")

    def ours() -> list[Any]:
        found = coalitions(ensemble, data, "removed")
        return [values((found.correct, found.log_likelihood), data, bits)]

    def theirs() -> list[Any]:
        return [values(loop(lambda x, there: mean_probability(networks, x, there), data, bits, 256), data, bits)]

    size = f"{STREAMS} streams, {samples} images"
    fine = race(
        f"exact Shapley values of independent streams ({size}) / loop of {len(bits)}", ours, theirs, rounds, FLOOR
    )
    everyone = coalitions_of(STREAMS, "zeroed")
    for coupled in (True, False):
        model = Messages(coupled).eval()
        live = adapt(model)

        def kept(live: LiveCollective = live) -> list[Any]:
            found = coalitions(live, data, "zeroed")
            return [found.correct, found.log_likelihood]

        def run_all(model: nn.Module = model) -> Game:
            with measured(model):
                return loop(lambda x, there: zeroed(model, x, there), data, everyone, 256)

        name = "coupled streams, encoders kept" if coupled else "uncoupled streams of one model, outputs kept"
        race(f"{name} ({size}) / loop of {len(everyone)}", kept, run_all, max(1, rounds - 1), None)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
