"""Streams that know nothing of each other, and a rule (and perhaps a gate) that makes one answer of theirs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.probe.collective.gate import Gate
from waterjar.probe.collective.live import LiveCollective, Outputs, Present, refuse_probabilities, same_batch, size_of
from waterjar.probe.collective.rules import combine, combine_some
from waterjar.probe.collective.stand_in import overheard

AT_ONCE = 2**24
"""Numbers that the answers of all coalitions may take at once; more go in groups."""

Kept = tuple[Tensor, Tensor | None]
"""(stream, sample, class) logits, and (stream, sample) weights of a gate: all that coalitions need of a batch."""


class Independent(LiveCollective):
    """Networks by name, each of which takes the batch and gives (sample, class), under a rule.

    A network with fewer classes than another knows nothing of those that it lacks: its logits there are -inf. Of a
    mixture with a gate, removed scales the weights of those who are left to sum to 1; zeroed and resampled leave them.

    Parameters
    ----------
    networks : name -> network.
    module : what holds the parameters of all; a list of the networks by default.
    features : name -> the layer whose output is the stream's pooled features; by default what its last linear layer is
        given, if that layer gives the logits.
    call : how a network is called with a batch.
    settle : finds the rule out of the first batch, where the model does not say it.
    """

    absences = ("removed", "zeroed", "resampled")
    hands_over = "individual"

    def __init__(
        self,
        networks: Mapping[str, nn.Module],
        rule: str,
        module: nn.Module | None = None,
        features: Mapping[str, nn.Module] | None = None,
        gate: Gate | None = None,
        call: Callable[[nn.Module, Any], Tensor] | None = None,
        settle: Callable[[Independent, Any], None] | None = None,
    ) -> None:
        if not networks:
            raise WaterjarError("the collective has no stream: expected at least one network")
        self.streams, self.rule = tuple(networks), rule
        self.networks = dict(networks)
        self.module = nn.ModuleList(networks.values()) if module is None else module
        self.gate = gate
        self._features = dict(features or {})
        self._call = call or (lambda network, x: network(x))
        self._settle = settle
        self._absent: tuple[tuple[str, ...], str, Any] | None = None

    def take_logs(self) -> None:
        """Of the networks."""
        call = self._call
        self._call = lambda network, x: call(network, x).log()

    def each(self, x: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Logits of every stream, and pooled features of those that a layer was named for."""
        said: dict[str, Tensor] = {}
        pooled: dict[str, Tensor] = {}
        for name, network in self.networks.items():
            layer = self._features.get(name)
            last = None if layer is not None else _last_linear(network)
            with (
                overheard({} if layer is None else {name: layer}) as kept,
                overheard({} if last is None else {name: last}) as told,
                overheard({} if last is None else {name: last}, inputs=True) as given,
            ):
                said[name] = self._logits(name, network, x)
            if kept.get(name):
                pooled[name] = _flat(kept[name][-1])
            elif told.get(name) and _equal(told[name][-1], said[name]):
                pooled[name] = _flat(given[name][-1])
        same_batch(said, "the streams' logits")
        for name, one in said.items() if not self.are_logits else ():
            refuse_probabilities(f"stream '{name}'", one.detach().cpu())
        self.are_logits = True  # they are: one look at the first batch is enough
        widest = max(one.shape[1] for one in said.values())
        for name, one in said.items():
            if one.shape[1] < widest:
                said[name] = torch.cat([one, one.new_full((len(one), widest - one.shape[1]), -torch.inf)], dim=1)
        return said, pooled

    def _logits(self, name: str, network: nn.Module, x: Any) -> Tensor:
        found = self._call(network, x)
        if not isinstance(found, Tensor):
            raise WaterjarError(
                f"stream '{name}' ({type(network).__name__}) gives a {type(found).__name__}: expected its logits "
                "(sample, class) alone; wrap it in a module that gives these"
            )
        return found

    def outputs(self, x: Any) -> Outputs:
        """The collective's answer, and each stream's: the same in context and alone."""
        self._settled(x)
        said, pooled = self.each(x)
        logits, weights = torch.stack(list(said.values())), self._weights(x)
        if self._absent is None:
            collective = combine(logits, str(self.rule), self._chosen(weights))
        else:
            names, how, donors = self._absent
            there = np.array([[name not in names for name in self.streams]])
            others = None if donors is None else self.prepare(donors)[0]
            (collective,) = self._some((logits, weights), there, how, others)
        index, weight = (None, None) if self.gate is None or weights is None else self.gate.routes(weights)
        return Outputs(
            collective,
            individual=said,
            isolated=said,
            pooled=pooled if len(pooled) == len(self.streams) else None,
            route_index=None if index is None else dict.fromkeys(self.streams, index),
            route_weight=None if weight is None else dict.fromkeys(self.streams, weight),
        )

    def stream_parameters(self) -> Mapping[str, int]:
        """Of each network."""
        return {name: size_of(network) for name, network in self.networks.items()}

    def cannot(self) -> dict[str, str]:
        """Plain networks have no fingerprints and no anchors, and without a gate no routes."""
        told = {"fingerprint": "its streams have no fingerprints", "affinity": "its streams have no anchors"}
        if self.gate is None:
            told["routing"] = "independent networks route nothing"
        told["pooled"] = (
            "a stream does not end in a linear layer: adapt(..., features={stream: layer}) names its features"
        )
        return told

    @contextlib.contextmanager
    def absent(self, names: Sequence[str], how: str, donors: Any = None) -> Iterator[None]:
        """The rule is used without these streams; no network is touched."""
        self.check(how, names)
        before, self._absent = self._absent, (tuple(names), how, donors) if names else None
        try:
            yield
        finally:
            self._absent = before

    def prepare(self, x: Any) -> Kept:
        """Each stream is run once, whatever the number of coalitions."""
        self._settled(x)
        said, _ = self.each(x)
        return torch.stack(list(said.values())), self._weights(x)

    def answers(self, kept: Kept, present: Present, how: str, donors: Kept | None = None) -> Iterator[Tensor]:
        """All coalitions as one product, in groups that fit into memory."""
        self.check(how)
        others = None if donors is None else donors[0]
        group = max(1, AT_ONCE // kept[0][0].numel())
        for start in range(0, len(present), group):
            yield from self._some(kept, present[start : start + group], how, others)

    def _some(self, kept: Kept, present: Present, how: str, others: Tensor | None) -> Tensor:
        logits, weights = kept
        there = torch.from_numpy(np.ascontiguousarray(present)).to(logits.device)
        if self.gate is None or weights is None or how != "removed":
            return combine_some(logits, str(self.rule), there, how, others, self._chosen(weights))
        answers = [combine(logits[row], str(self.rule), self._chosen(weights[row])) for row in there]
        return torch.stack(answers)  # without an expert, the gate chooses among those who are left

    def _weights(self, x: Any) -> Tensor | None:
        return None if self.gate is None else self.gate.weights(x, len(self.streams))

    def _chosen(self, weights: Tensor | None) -> Tensor | None:
        return None if self.gate is None or weights is None else self.gate.chosen(weights)

    def _settled(self, x: Any) -> None:
        if self._settle is not None:
            self._settle(self, x)
            self._settle = None


def _last_linear(network: nn.Module) -> nn.Linear | None:
    """The last linear layer that a network has; whether it gives the logits is seen when it is run."""
    return next((one for one in reversed(list(network.modules())) if isinstance(one, nn.Linear)), None)


def _equal(a: Tensor, b: Tensor) -> bool:
    """Whether these are the same numbers; NaN is the same as NaN."""
    return a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def _flat(features: Tensor) -> Tensor:
    """(sample, unit): averaged over all but samples and channels."""
    return features if features.ndim == 2 else features.flatten(2).mean(dim=2)
