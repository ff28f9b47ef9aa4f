"""From a model to a collective: the first adapter that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from waterjar.errors import WaterjarError
from waterjar.probe.collective import experts, geofractal, modules, protocol, torchensemble
from waterjar.probe.collective.live import LiveCollective


def adapt(
    model: Any,
    names: Sequence[str] | None = None,
    rule: str | None = None,
    *,
    features: Mapping[str, nn.Module] | None = None,
    top_k: int | None = None,
    probabilities: bool | None = None,
) -> LiveCollective:
    """Make a collective of a model that has streams inside, or of several models.

    | model | streams |
    |---|---|
    | a list or dict of torch modules | each of them, under `rule`: mean_probability (default), mean_logit or vote |
    | a torchensemble classifier | its estimators, under the rule that it goes by |
    | a mixture: `experts` and a `gate` | the experts, weighed by the gate |
    | geofractal's RouterCollective | its streams |
    | `forward(x, return_individual=True) -> (logits, info)` | those of the info: see `protocol` |
    | a `LiveCollective` | its own: a model of another kind needs one small class |

    Parameters
    ----------
    names : of the streams, where the model has none.
    features : of a list or dict, stream -> the layer whose output counts as its pooled features.
    top_k : of a mixture, how many experts are used per sample; by default what the model says, else all.
    probabilities : whether the model's outputs are probabilities, whose logs are taken. Left out, outputs that look
        like some are refused when they are measured; False takes them for logits all the same.

    >>> import torch
    >>> trio = adapt([nn.Linear(4, 3) for _ in range(3)], names=["a", "b", "c"], rule="mean_logit")
    >>> with trio.absent(["b"], "removed"):
    ...     trio.logits(torch.ones(2, 4)).shape
    torch.Size([2, 3])
    """
    found = _adapted(model, names, rule, features, top_k)
    if probabilities:
        found.take_logs()
    if probabilities is False:
        found.are_logits = True
    return found


def _adapted(
    model: Any,
    names: Sequence[str] | None,
    rule: str | None,
    features: Mapping[str, nn.Module] | None,
    top_k: int | None,
) -> LiveCollective:
    if isinstance(model, LiveCollective):
        return model
    if features is not None and not modules.fits(model):
        raise WaterjarError("features= names layers of a list or dict of modules: this model is of another kind")
    if modules.fits(model):
        return modules.collective_of(model, names, rule or "mean_probability", features)
    weighed = rule is not None or top_k is not None
    for adapter in (geofractal, protocol, torchensemble):
        if adapter.fits(model) and not weighed:
            found: LiveCollective = adapter.collective_of(model, names)
            return found
    if experts.fits(model):
        return experts.collective_of(model, names, rule, top_k)
    if weighed:
        raise WaterjarError("rule= and top_k= are for lists of modules and mixtures of experts: this model is neither")
    raise WaterjarError(
        f"{type(model).__name__} is no collective that is known: expected modules in a list or dict, `estimators_`, "
        "`experts` and a `gate`, or forward(x, return_individual=True) -> (logits, info); else write a LiveCollective"
    )
