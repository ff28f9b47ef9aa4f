"""A mixture of experts: experts, and a gate that weighs them sample by sample.

Answer = sum over experts of weight x what the expert says. Its routing is the gate's choice: one slot per sample, the
experts as routes; every stream has the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError, unknown_name
from waterjar.probe.collective.gate import Gate
from waterjar.probe.collective.independent import Independent
from waterjar.probe.collective.live import check_names
from waterjar.probe.collective.rules import combine

_CLOSE = 1e-4
_WEIGHED = ("mean_logit", "mean_probability")


def fits(model: object) -> bool:
    """Whether this is a module with `experts` and a `gate` (or `router`, or `gating`)."""
    experts = getattr(model, "experts", None)
    return (
        isinstance(model, nn.Module)
        and isinstance(experts, nn.ModuleList | nn.ModuleDict)
        and _gate_of(model) is not None
    )


def _gate_of(model: nn.Module) -> nn.Module | None:
    found = (getattr(model, name, None) for name in ("gate", "router", "gating"))
    return next((one for one in found if isinstance(one, nn.Module)), None)


def collective_of(
    model: nn.Module, names: Sequence[str] | None = None, rule: str | None = None, top_k: int | None = None
) -> Independent:
    """The experts as streams, weighed by the gate.

    `rule` says what is weighed: mean_logit or mean_probability; without it, whichever makes the model's own answer.
    `top_k` experts are kept per sample and their weights scaled to sum to 1; by default the model's `top_k` or `k`.
    """
    experts: Any = model.experts
    if rule is not None and rule not in _WEIGHED:
        raise unknown_name("rule of a mixture of experts", rule, _WEIGHED)
    if isinstance(experts, nn.ModuleDict):
        networks = dict(experts.items())
    else:
        networks = dict(zip(check_names(names, len(experts), "expert"), experts, strict=True))
    gate = _gate_of(model)
    if gate is None or not networks:
        raise WaterjarError(f"{type(model).__name__}: expected experts, and a module called gate, router or gating")
    told = top_k if top_k is not None else next((getattr(model, n) for n in ("top_k", "k") if hasattr(model, n)), None)
    kept = Gate(gate, min(len(networks), len(networks) if told is None else int(told)))

    def find_rule(collective: Independent, x: Any) -> None:
        _find_rule(collective, x, kept, _WEIGHED if rule is None else (rule,))

    return Independent(networks, rule or _WEIGHED[0], model, gate=kept, settle=find_rule)


def _find_rule(collective: Independent, x: Any, gate: Gate, candidates: Sequence[str]) -> None:
    """Compare with what the model answers: does the gate weigh logits or probabilities?"""
    given: Any = collective.module(x)
    own: Tensor = given[0] if isinstance(given, tuple) else given
    said = torch.stack(list(collective.each(x)[0].values()))
    weights = gate.chosen(gate.weights(x, len(said)))
    apart: dict[str, float] = {}
    for rule in candidates:
        mixed = combine(said, rule, weights)
        apart[rule] = min(float((one - own).detach().abs().max()) for one in (mixed, torch.softmax(mixed, dim=1)))
        if apart[rule] < _CLOSE * max(1.0, float(own.detach().abs().max())):
            collective.rule = rule
            return
    raise WaterjarError(
        f"{type(collective.module).__name__} answers otherwise than its experts weighed by the gate (largest "
        f"differences {apart}): name top_k=, or write a LiveCollective of its own"
    )
