"""A collective inside one model: its streams are found among the model's modules, and absent by standing in for them.

Streams may be coupled: a stream's features then depend on who else is there, by a mailbox or a gate. Whether they are
is found out on the first batch, by setting one output after the other to zero. Of independent streams all outputs are
kept, and a coalition costs the fusion alone; of coupled ones the encoders' outputs are, which depend on the input only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.probe.collective.live import LiveCollective, Outputs, Present, Streams, size_of
from waterjar.probe.collective.stand_in import Calls, overheard, played, same, zeros

Info = Mapping[str, Any]
_LOGITS = ("individual_logits", "isolated_logits")
"""What an info may tell of the streams' answers."""


@dataclass(frozen=True)
class Wiring:
    """Where the parts of the streams are: modules by the name of the stream; empty where there are none."""

    output: Mapping[str, nn.Module] = field(default_factory=dict)
    """What a stream hands to the others: its output is what becomes zero."""
    encoder: Mapping[str, nn.Module] = field(default_factory=dict)
    """Looks at the input and at nothing else."""
    router: Mapping[str, nn.Module] = field(default_factory=dict)
    """Gives (routes, weights, features)."""
    anchors: Mapping[str, nn.Module] = field(default_factory=dict)
    """Gives (features, affinities)."""
    classifier: Mapping[str, nn.Module] = field(default_factory=dict)
    """Takes the pooled features."""
    parts: Mapping[str, Sequence[nn.Module]] = field(default_factory=dict)
    """All that belongs to a stream, for counting parameters."""


@dataclass(frozen=True)
class Kept:
    """A batch with what its streams gave."""

    x: Any
    outputs: Mapping[str, Calls]
    encoded: Mapping[str, Calls]


class Wired(LiveCollective):
    """A model that is asked for logits and for what it knows about its streams.

    Parameters
    ----------
    plain : batch -> (sample, class), nothing else computed.
    ask : batch -> (logits, info), with all that the model tells.
    without : names -> a callable batch -> logits of the collective that lacks these streams, if it can be run so.
    alone : a context in which nothing of one stream reaches another, if there is one; else others are set to zero.
    reasons : what it cannot tell -> why, where the adapter knows better.
    """

    def __init__(
        self,
        module: nn.Module,
        streams: tuple[str, ...],
        wiring: Wiring,
        plain: Callable[[Any], Tensor],
        ask: Callable[[Any], tuple[Tensor, Info]],
        *,
        prints: Mapping[str, Tensor] | None = None,
        without: Callable[[Sequence[str]], Callable[[Any], Tensor]] | None = None,
        alone: Callable[[], contextlib.AbstractContextManager[None]] | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        self.module, self.streams, self.wiring = module, streams, wiring
        self._plain, self._ask, self._prints = plain, ask, prints
        self._without, self._alone, self._reasons = without, alone, dict(reasons or {})
        self._absent: tuple[tuple[str, ...], str, Any] | None = None
        self._independent: bool | None = None if len(streams) > 1 else True
        able = ("zeroed", "resampled") if set(wiring.output) == set(streams) else ()
        self.absences = (*(("removed",) if without else ()), *able)

    def take_logs(self) -> None:
        """Of the whole, and of the streams in its info."""
        plain, ask = self._plain, self._ask

        def told(x: Any) -> tuple[Tensor, Info]:
            logits, info = ask(x)
            found = {key: _by_stream(info, (key,), self.streams) for key in _LOGITS}
            return logits.log(), {**info, **{key: _logs(one) for key, one in found.items() if one is not None}}

        self._plain, self._ask = (lambda x: plain(x).log()), told
        if self._without is not None:
            without = self._without

            def less(names: Sequence[str]) -> Callable[[Any], Tensor]:
                run = without(names)
                return lambda x: run(x).log()

            self._without = less

    def outputs(self, x: Any) -> Outputs:
        """What the model tells about its streams, and what is overheard of their modules."""
        wiring = self.wiring
        with (
            self._presence(x, self._ask),
            overheard(wiring.router) as routed,
            overheard(wiring.anchors) as near,
            overheard(wiring.classifier, inputs=True) as pooled,
        ):
            logits, info = self._ask(x)
        index, weight = _routes(info, routed, self.streams)
        said = _by_stream(info, ("individual_logits",), self.streams)
        return Outputs(
            logits,
            individual=said,
            isolated=None if said is None or self._absent else self._isolated(x, said, info),
            pooled=_by_stream(info, ("pooled", "pooled_features"), self.streams) or _whole(pooled, self.streams),
            route_index=index,
            route_weight=weight,
            affinity=_affinities(info, near, self.streams),
        )

    def logits(self, x: Any) -> Tensor:
        """What the model answers."""
        if self._absent and self._absent[1] == "removed" and self._without:
            return self._lacking(self._absent[0])(x)
        with self._presence(x, self._plain):
            return self._plain(x)

    def stream_logits(self, x: Any, name: str) -> Tensor:
        """What the model tells of this stream, with no more computed than it computes itself."""
        with self._presence(x, self._ask):
            said = _by_stream(self._ask(x)[1], ("individual_logits",), self.streams)
        if said is None or name not in said:
            raise WaterjarError(self._untold())
        return said[name]

    def _untold(self) -> str:
        return (
            f"the model does not tell the logits of single streams: info['individual_logits'] (or individual_logits of "
            f"each of info['stream_infos']) has no tensor for each of {', '.join(self.streams)}"
        )

    def fingerprints(self) -> Tensor | None:
        """One under the other, as they are now."""
        if not self._prints:
            return None
        sizes = {name: tuple(one.shape) for name, one in self._prints.items()}
        if len(set(sizes.values())) > 1:
            raise WaterjarError(f"fingerprints have the shapes {sizes}: expected the same for all streams")
        return torch.stack([self._prints[name].detach().flatten() for name in self.streams])

    def stream_parameters(self) -> Mapping[str, int] | None:
        """Of the modules that belong to each stream."""
        parts = self.wiring.parts
        return {name: size_of(nn.ModuleList(parts[name])) for name in self.streams} if parts else None

    def cannot(self) -> dict[str, str]:
        """As the adapter says, and what follows from the wiring."""
        told = dict(self._reasons)
        if not self._without:
            told.setdefault("removed", "its fusion takes all streams, and it has no method without(names)")
        if "zeroed" not in self.absences:
            for how in ("zeroed", "resampled"):
                told.setdefault(how, "no module of the model is the output of a stream")
        told.setdefault("logits", self._untold())
        if not self._prints:
            told.setdefault("fingerprint", "its streams have no fingerprints")
        return told

    @contextlib.contextmanager
    def absent(self, names: Sequence[str], how: str, donors: Any = None) -> Iterator[None]:
        """Modules stand in for these streams whenever the collective is asked, and only then."""
        self.check(how, names)
        if how == "resampled" and names and donors is None:
            raise WaterjarError("resampled: give donors=, the inputs whose stream outputs stand in")
        before, self._absent = self._absent, (tuple(names), how, donors) if names else None
        try:
            yield
        finally:
            self._absent = before

    def prepare(self, x: Any) -> Kept:
        """Run the batch once and keep what its streams gave."""
        with overheard(self.wiring.output) as outputs, overheard(self.wiring.encoder) as encoded:
            self._plain(x)
        kept = Kept(x, outputs, {name: calls for name, calls in encoded.items() if calls})
        if self._independent is None:
            self._independent = self._looks_independent(kept)
        return kept

    def answers(self, kept: Kept, present: Present, how: str, donors: Kept | None = None) -> Iterator[Tensor]:
        """Streams that were run before are not run again."""
        self.check(how)
        for there in present:
            names = [name for name, is_in in zip(self.streams, there, strict=True) if not is_in]
            if how == "removed":
                with played(self.wiring.encoder, self._encoded(kept, names), "removed"):
                    answer = self._lacking(names)(kept.x) if names else self._plain(kept.x)
            else:
                with self._standing_in(kept, names, how, donors):
                    answer = self._plain(kept.x)
            yield answer  # here, and not inside: the model is as it was whenever somebody else is at work

    @property
    def independent(self) -> bool | None:
        """Whether no stream changes another one's output; None before the first batch."""
        return self._independent

    @contextlib.contextmanager
    def _standing_in(self, kept: Kept, names: Sequence[str], how: str, donors: Kept | None) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            calls = self._stand_ins(kept.outputs, names, how, None if donors is None else donors.outputs)
            if self._independent:
                calls |= {name: kept.outputs[name] for name in self.streams if name not in names}
            else:
                stack.enter_context(played(self.wiring.encoder, self._encoded(kept, ()), "with encoders kept"))
            stack.enter_context(played(self.wiring.output, calls, how, () if self._independent else names))
            yield

    def _lacking(self, names: Sequence[str]) -> Callable[[Any], Tensor]:
        """The collective without these streams; who reads the message of one of them by its name fails, and is told."""
        if self._without is None:
            raise self._unable("removed")
        run = self._without(names)

        def call(x: Any) -> Tensor:
            try:
                return run(x)
            except LookupError as error:
                raise WaterjarError(
                    f"{type(self.module).__name__} cannot be run without {', '.join(names)}: something of it looks for "
                    f"{error}, which is not there"
                ) from error

        return call

    def _encoded(self, kept: Kept, names: Sequence[str]) -> dict[str, Calls]:
        return {name: calls for name, calls in kept.encoded.items() if name not in names}

    def _stand_ins(
        self, outputs: Mapping[str, Calls], names: Sequence[str], how: str, others: Mapping[str, Calls] | None
    ) -> dict[str, Calls]:
        if how == "resampled" and others is None and names:
            raise WaterjarError("resampled: give the donors, the inputs whose stream outputs stand in")
        return {name: others[name] if how == "resampled" and others else zeros(outputs[name]) for name in names}

    @contextlib.contextmanager
    def _presence(self, x: Any, call: Callable[[Any], Any]) -> Iterator[None]:
        """Inside `absent`: run once to know what the streams give, then let zeros or others stand in."""
        if self._absent is None:
            yield
            return
        names, how, donors = self._absent
        if how == "removed":
            raise WaterjarError("a collective without a stream gives logits only: ask for logits(x)")
        heard = []
        for batch in (x, donors) if how == "resampled" else (x,):
            with overheard({name: self.wiring.output[name] for name in names}) as outputs:
                call(batch)
            heard.append(outputs)
        with played(self.wiring.output, self._stand_ins(heard[0], names, how, heard[-1]), how, names):
            yield

    def _looks_independent(self, kept: Kept) -> bool:
        if "zeroed" not in self.absences:
            return False
        for name in self.streams:
            others = {other: self.wiring.output[other] for other in self.streams if other != name}
            silent = played(self.wiring.output, {name: zeros(kept.outputs[name])}, "zeroed")
            try:
                with overheard(others) as heard, silent:
                    self._plain(kept.x)
            except LookupError:  # somebody reads its message by its name
                return False
            if not same(heard, {other: kept.outputs[other] for other in others}):
                return False
        return True

    def _isolated(self, x: Any, said: Streams, info: Info) -> Streams | None:
        """Each stream's logits with nothing of the others: as told, or overheard alone, or with others at zero."""
        told = _by_stream(info, ("isolated_logits",), self.streams)
        if told is not None:
            return told
        if self._alone is not None:
            with self._alone():
                return _by_stream(self._ask(x)[1], ("individual_logits",), self.streams)
        if self._independent is None and "zeroed" in self.absences:
            self.prepare(x)
        if self._independent:
            return said
        if "zeroed" not in self.absences:
            return None
        with overheard(self.wiring.output) as outputs:
            self._ask(x)
        found = {}
        for name in self.streams:
            silent = {other: zeros(calls) for other, calls in outputs.items() if other != name}
            try:
                with played(self.wiring.output, silent, "zeroed"):
                    alone = _by_stream(self._ask(x)[1], ("individual_logits",), self.streams) or {}
            except LookupError as error:
                self._reasons["isolated_logits"] = (
                    f"something of the model looks for {error}, which is not there where all streams but one are silent"
                )
                return None
            found[name] = alone[name]
        return found


def _by_stream(info: Info, keys: Sequence[str], streams: Sequence[str]) -> Streams | None:
    """A mapping of the info that has all streams, by the first key that is there."""
    for key in keys:
        found = info.get(key)
        if isinstance(found, Mapping) and all(isinstance(found.get(name), Tensor) for name in streams):
            return {name: found[name] for name in streams}
    inner = info.get("stream_infos")
    for key in keys if isinstance(inner, Mapping) else ():
        each = {name: (inner or {}).get(name) or {} for name in streams}
        if all(isinstance(one.get(key), Tensor) for one in each.values()):
            return {name: one[key] for name, one in each.items()}
    return None


def _logs(probabilities: Streams) -> Streams:
    return {name: one.log() for name, one in probabilities.items()}


def _whole(heard: Mapping[str, Calls], streams: Sequence[str]) -> Streams | None:
    """What was overheard, if each stream gave a tensor."""
    found = {name: heard[name][-1] for name in streams if heard.get(name)}
    return found if len(found) == len(streams) and all(isinstance(one, Tensor) for one in found.values()) else None


def _routes(info: Info, heard: Mapping[str, Calls], streams: Sequence[str]) -> tuple[Streams | None, Streams | None]:
    """Routes and weights (sample, slot, route), as the info has them or a router module gave them."""
    index = _by_stream(info, ("routes", "route_index"), streams)
    weight = _by_stream(info, ("route_weights", "route_weight", "weights"), streams)
    if index is None and all(_is_routing(heard.get(name)) for name in streams):
        index = {name: heard[name][-1][0] for name in streams}
        weight = {name: heard[name][-1][1] for name in streams}
    return (index, weight) if index is not None and weight is not None else (None, None)


def _is_routing(calls: Calls | None) -> bool:
    """Whether a module gave (routes, weights, features), as a GlobalFractalRouter does."""
    if not calls or not isinstance(calls[-1], tuple) or len(calls[-1]) < 2:
        return False
    index, weight = calls[-1][:2]
    return (
        isinstance(index, Tensor) and isinstance(weight, Tensor) and not index.is_floating_point() and index.ndim == 3
    )


def _affinities(info: Info, heard: Mapping[str, Calls], streams: Sequence[str]) -> Streams | None:
    """(sample, anchor) or (anchor): as the info has them, as an anchor bank gave them, or as fingerprints make them."""
    told = _by_stream(info, ("anchor_affinities", "affinities", "affinity"), streams)
    if told is not None:
        return told
    found = {name: heard[name][-1][1] for name in streams if heard.get(name) and isinstance(heard[name][-1], tuple)}
    if len(found) == len(streams) and all(isinstance(one, Tensor) for one in found.values()):
        return found
    return _by_stream(info, ("static_affinities",), streams)
