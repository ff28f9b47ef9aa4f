"""The protocol of the seed document: `forward(x, return_individual=True) -> (logits, info)`.

`info["individual_logits"]` maps stream -> logits. All else is optional, and is found where it is:

| what | in the info (each a mapping by stream, or in `stream_infos[stream]`) | or among the modules of a stream |
|---|---|---|
| routes, weights | `routes`, `route_weights` | `router`, if it gives (routes, weights, features) |
| affinities | `anchor_affinities` | `anchor_bank`, or `router.anchor_bank`, if it gives (features, affinities) |
| pooled features | `pooled` | the input of its `classifier`, or of `stream_classifiers[stream]` of the model |
| isolated logits | `isolated_logits` | the others' outputs set to zero |
| fingerprint | | `fingerprint`, `router.fingerprint` or `head.fingerprint` |

The streams are `streams` of the model: a ModuleDict, a ModuleList or a list of modules with a `name`. Its `encoder` is
what is kept of it where streams are coupled. `without(names)` of the model, if it has one, gives the collective
that lacks these streams, out of the same modules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError
from waterjar.probe.collective.live import check_names
from waterjar.probe.collective.wired import Info, Wired, Wiring

ASKS = ("return_individual", "return_info")
"""Arguments of a forward that make it tell more."""


def fits(model: object) -> bool:
    """Whether this is a module whose forward takes `return_individual`."""
    return isinstance(model, nn.Module) and "return_individual" in inspect.signature(model.forward).parameters


def collective_of(model: nn.Module, names: Sequence[str] | None = None) -> Wired:
    """The model as a collective."""
    found = streams_of(model, names)
    modules = {name: one for name, one in found.items() if isinstance(one, nn.Module)}
    reasons: dict[str, str] = {}
    if len(modules) < len(found):
        modules = {}
        reasons["zeroed"] = reasons["resampled"] = (
            f"{type(model).__name__} has no `streams` that are modules by these names: nothing can be set to zero"
        )
    heads: Any = getattr(model, "stream_classifiers", {})
    wiring = Wiring(
        output=modules,
        encoder=parts_of(modules, "encoder"),
        router=parts_of(modules, "router"),
        anchors=parts_of(modules, "anchor_bank", "router.anchor_bank"),
        classifier={name: heads[name] for name in found if name in heads} or parts_of(modules, "classifier"),
        parts={name: [one] for name, one in modules.items()},
    )
    prints = {name: part(one, "fingerprint", "router.fingerprint", "head.fingerprint") for name, one in found.items()}
    return Wired(
        model,
        tuple(found),
        wiring,
        plain=lambda x: first(model(x)),
        ask=asking(model, affinities_of(modules, prints)),
        prints=prints if all(isinstance(one, Tensor) for one in prints.values()) else None,
        without=_without(model),
        reasons=reasons,
    )


def streams_of(model: nn.Module, names: Sequence[str] | None) -> dict[str, Any]:
    """Name -> stream, as the model has them; a stream that is only a name is None."""
    given: Any = getattr(model, "streams", None)
    if isinstance(given, Mapping | nn.ModuleDict):
        return dict(given.items())
    if isinstance(given, nn.ModuleList | list | tuple) and len(given):
        told = [str(getattr(one, "name", "")) for one in given]
        own = told if all(told) and len(set(told)) == len(told) else None
        return dict(zip(check_names(names or own, len(given), "stream"), given, strict=True))
    listed = names or getattr(model, "stream_names", None)
    if not listed:
        raise WaterjarError(f"{type(model).__name__} has neither streams nor stream_names: adapt(model, names=[...])")
    return dict.fromkeys(map(str, listed))


def part(owner: object, *paths: str) -> Any:
    """The first attribute of these paths that is there, else None."""
    for path in paths:
        found = owner
        for step in path.split("."):
            found = getattr(found, step, None)
        if found is not None:
            return found
    return None


def parts_of(modules: Mapping[str, nn.Module], *paths: str) -> dict[str, nn.Module]:
    """Such a part of every stream; none at all if one stream has none."""
    found = {name: part(one, *paths) for name, one in modules.items()}
    return found if found and all(isinstance(one, nn.Module) for one in found.values()) else {}


def first(given: Any) -> Tensor:
    """The logits of what a model gives: itself, or the first of several."""
    out: Tensor = given[0] if isinstance(given, tuple | list) else given
    return out


def asking(model: nn.Module, more: Callable[[], Info]) -> Callable[[Any], tuple[Tensor, Info]]:
    """Call the model so that it tells all that it can; `more` is what can be told without an input."""
    takes = inspect.signature(model.forward).parameters
    asked = {key: True for key in ASKS if key in takes}

    def ask(x: Any) -> tuple[Tensor, Info]:
        given: Any = model(x, **asked)
        if not isinstance(given, tuple) or len(given) != 2:
            raise WaterjarError(
                f"{type(model).__name__}(x, return_individual=True) is {type(given).__name__}: expected (logits, info)"
            )
        logits, info = given
        if not isinstance(info, Mapping | None):
            raise WaterjarError(
                f"{type(model).__name__}(x, return_individual=True): its info is a {type(info).__name__}, expected a "
                "mapping such as {'individual_logits': {stream: logits}}"
            )
        return logits, {**more(), **{key: one for key, one in (info or {}).items() if one is not None}}

    return ask


def affinities_of(modules: Mapping[str, nn.Module], prints: Mapping[str, Any]) -> Callable[[], Info]:
    """The seed's own formula, sigmoid(fp_to_anchor(fingerprint)), for streams that have such an anchor bank."""
    maps = {
        name: part(one, "router.anchor_bank.fp_to_anchor", "anchor_bank.fp_to_anchor") for name, one in modules.items()
    }

    def tell() -> Info:
        if not maps or not all(callable(one) for one in maps.values()):
            return {}
        return {"static_affinities": {name: torch.sigmoid(one(prints[name])) for name, one in maps.items()}}

    return tell


def _without(model: nn.Module) -> Callable[[Sequence[str]], Callable[[Any], Tensor]] | None:
    less: Any = getattr(model, "without", None)
    if not callable(less):
        return None

    def run(names: Sequence[str]) -> Callable[[Any], Tensor]:
        other = less(list(names))
        return lambda x: first(other(x))

    return run
