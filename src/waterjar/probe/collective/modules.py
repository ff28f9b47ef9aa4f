"""A list or a dict of torch modules as a collective: the deep ensemble of whoever trained them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from waterjar.errors import WaterjarError
from waterjar.probe.collective.independent import Independent
from waterjar.probe.collective.live import check_names
from waterjar.probe.collective.rules import RULES, check_rule


def fits(model: object) -> bool:
    """Whether this is a list, a tuple or a mapping of torch modules and nothing else."""
    if isinstance(model, nn.ModuleList | nn.ModuleDict):
        return True
    inside = model.values() if isinstance(model, Mapping) else model if isinstance(model, list | tuple) else ()
    return bool(inside) and all(isinstance(one, nn.Module) for one in inside)


def collective_of(
    model: Any,
    names: Sequence[str] | None = None,
    rule: str = "mean_probability",
    features: Mapping[str, nn.Module] | None = None,
) -> Independent:
    """The modules as streams of one collective.

    >>> import torch
    >>> pair = collective_of({"wide": nn.Linear(4, 3), "deep": nn.Linear(4, 3)}, rule="vote")
    >>> pair.streams, pair.outputs(torch.zeros(2, 4)).collective.shape
    (('wide', 'deep'), torch.Size([2, 3]))
    """
    if rule not in RULES:
        check_rule(rule)
        raise WaterjarError(f"rule '{rule}': expected one of {', '.join(RULES)}")
    if isinstance(model, Mapping | nn.ModuleDict):
        networks = dict(model.items())
        if names is not None and list(names) != list(networks):
            raise WaterjarError(f"names={list(names)}, but the streams have names of their own: {list(networks)}")
    else:
        networks = dict(zip(check_names(names, len(model), "stream"), model, strict=True))
    return Independent(networks, rule, model if isinstance(model, nn.Module) else None, features)
