"""The public geofractal RouterCollective (github.com/AbstractEyes/geofractal, router_depr).

Facts about it: `streams[name]` encodes the input into slots, `heads[name]` routes them and is given the fingerprint of
the next stream, `streams[name].pool` averages over slots, `fusion` takes what all streams pooled, `classifier` answers.
`stream_classifiers[name]` reads a stream's pooled features, but gets no gradient from the collective's loss: unless
somebody trains them, the published emergence ratio divides by heads at chance. No mailbox is passed on, so streams know
of each other by that fingerprint only, which gates what is routed; here, isolated means without it.

A head is a ComposedHead, which gives (features, info) when asked, or a GlobalFractalRouter, which gives (routes,
weights, features); the latter has to be wrapped to fit into the collective, and is found inside of what wraps it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.probe.collective.protocol import asking, first, part
from waterjar.probe.collective.stand_in import replaced
from waterjar.probe.collective.wired import Wired, Wiring


def fits(model: object) -> bool:
    """Whether this is a module with streams, heads, a fusion and stream classifiers by name."""
    inside = [getattr(model, name, None) for name in ("streams", "heads", "stream_classifiers")]
    return (
        isinstance(model, nn.Module)
        and all(isinstance(one, nn.ModuleDict) for one in inside)
        and isinstance(getattr(model, "fusion", None), nn.Module)
    )


def collective_of(model: nn.Module, names: Sequence[str] | None = None) -> Wired:
    """The model as a collective; its streams have names of their own."""
    streams, heads, classifiers = _dict(model, "streams"), _dict(model, "heads"), _dict(model, "stream_classifiers")
    if names is not None and list(names) != list(streams):
        raise WaterjarError(f"names={list(names)}, but the streams have names of their own: {list(streams)}")
    routers = {name: _router_in(head) for name, head in heads.items()}
    banks = {name: part(head, "anchors", "anchor_bank", "router.anchor_bank") for name, head in heads.items()}
    prints = {name: part(head, "fingerprint", "router.fingerprint") for name, head in heads.items()}
    wiring = Wiring(
        output=heads,
        encoder=streams,
        router=_all(routers),
        anchors=_all(banks),
        classifier=classifiers,
        parts={name: [streams[name], heads[name]] for name in streams},
    )
    return Wired(
        model,
        tuple(streams),
        wiring,
        plain=lambda x: first(model(x)),
        ask=asking(model, dict),
        prints=prints if all(isinstance(one, Tensor) for one in prints.values()) else None,
        alone=lambda: _alone(heads),
        reasons={
            "removed": f"its fusion ({type(model.fusion).__name__}) has weights for every stream and takes all of them"
        },
    )


def _dict(model: nn.Module, name: str) -> dict[str, nn.Module]:
    return dict(getattr(model, name).items())


def _all(found: Mapping[str, Any]) -> dict[str, nn.Module]:
    return dict(found.items()) if all(isinstance(one, nn.Module) for one in found.values()) else {}


def _router_in(head: nn.Module) -> nn.Module | None:
    """The module that gives (routes, weights, features): the head's own router."""
    found = part(head, "router")
    return found if isinstance(found, nn.Module) else None


@contextlib.contextmanager
def _alone(heads: Mapping[str, nn.Module]) -> Iterator[None]:
    """Inside, no head is told of another stream: neither its fingerprint nor a mailbox."""

    def deaf(forward: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            return forward(*given[:1], **{k: v for k, v in named.items() if k not in ("target_fingerprint", "mailbox")})

        return call

    with contextlib.ExitStack() as stack:
        for head in heads.values():
            stack.enter_context(replaced(head, deaf(head.forward)))
        yield
