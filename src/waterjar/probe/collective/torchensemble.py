"""Models of torchensemble (Ensemble-PyTorch): `estimators_`, and a forward that gives probabilities.

Facts about it: voting, bagging, snapshot and fast geometric ensembles average the softmax of their estimators (or count
votes, where `voting_strategy` is hard); fusion averages logits; gradient boosting adds them up, times `shrinkage_rate`.
Which of these a model does is not read off its class, but found by comparing with what it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from waterjar.errors import WaterjarError
from waterjar.probe.collective.independent import Independent
from waterjar.probe.collective.live import check_names
from waterjar.probe.collective.rules import combine

_CLOSE = 1e-4
"""How far probabilities of the same rule may be apart in single precision."""


def fits(model: object) -> bool:
    """Whether this is a module with fitted estimators, as torchensemble and its kin have them."""
    return isinstance(model, nn.Module) and isinstance(getattr(model, "estimators_", None), nn.ModuleList)


def collective_of(model: nn.Module, names: Sequence[str] | None = None) -> Independent:
    """The estimators as streams, under the rule that the model itself goes by; known once it has seen a batch."""
    estimators: Any = model.estimators_
    if not len(estimators):
        raise WaterjarError(f"{type(model).__name__} has no estimators yet: fit it first")
    rate = float(getattr(model, "shrinkage_rate", 1.0))

    def call(network: nn.Module, x: Any) -> Tensor:
        out: Tensor = network(*x) if isinstance(x, tuple | list) else network(x)
        return (out if out.ndim == 2 else out[:, None]) * rate

    named = dict(zip(check_names(names, len(estimators), "estimator"), estimators, strict=True))
    found = Independent(named, "mean_probability", model, call=call, settle=_find_rule)
    found.are_logits = True  # the model takes the softmax of whatever its estimators give
    return found


def _find_rule(collective: Independent, x: Any) -> None:
    """Compare with what the model answers: which rule is it?"""
    own: Tensor = collective.module(*x) if isinstance(x, tuple | list) else collective.module(x)
    said = torch.stack(list(collective.each(x)[0].values()))
    boosts = hasattr(collective.module, "shrinkage_rate")
    apart: dict[str, float] = {}
    for rule in ("sum_logit",) if boosts else ("mean_probability", "mean_logit", "vote"):
        mixed = torch.softmax(combine(said, rule), dim=1)
        if rule == "vote":  # the model gives 1 to the winner: who that is has to agree
            mixed = functional.one_hot(mixed.argmax(dim=1), mixed.shape[1]).to(own.dtype)
        apart[rule] = float((mixed - own).detach().abs().max())
        if apart[rule] < _CLOSE:
            collective.rule = rule
            return
    raise WaterjarError(
        f"{type(collective.module).__name__} answers otherwise than the mean probability, mean logit, vote or sum of "
        f"its estimators (largest differences {apart}): write a LiveCollective of its own"
    )
