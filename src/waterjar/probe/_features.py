"""What comes out of some layers of a network, by forward hooks that are gone again afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.probe._evaluation import Samples, moved
from waterjar.probe.untouched import device_of

After = Callable[[torch.Tensor], torch.Tensor]


def layers_of(model: nn.Module, layers: str | Sequence[str] | Mapping[str, After | None]) -> dict[str, After | None]:
    """Layer -> what is done to its output; a name that the model does not have is an error with the nearest one."""
    given = [layers] if isinstance(layers, str) else layers
    wanted: dict[str, After | None] = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    known = [name for name, _ in model.named_modules() if name]
    for name, after in wanted.items():
        if name not in known:
            raise unknown_name("layer", name, known)
        if after is not None and not callable(after):
            raise WaterjarError(f"layers[{name!r}]={brief(repr(after))}: expected a function of the layer's output")
    return wanted


def features_of(
    model: nn.Module,
    layers: Mapping[str, After | None],
    samples: Samples,
    run: Callable[[Any], Any],
) -> dict[str, torch.Tensor]:
    """Layer -> (sample, unit) on the CPU; what a layer gives per sample in more dimensions is flattened.

    Where labels are of tokens, a token is a sample, and `samples.kept` says which ones count.
    """
    modules = dict(model.named_modules())
    seen: dict[str, list[Any]] = {name: [] for name in layers}

    def keep(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:  # it gives nothing back: the output stays
            seen[name].append(output.detach().clone() if isinstance(output, torch.Tensor) else output)

        return hook

    hooks = [modules[name].register_forward_hook(keep(name)) for name in layers]
    try:
        with torch.no_grad():
            run(moved(samples.inputs, device_of(model)))
    finally:
        for one in hooks:
            one.remove()
    return {name: _rows(name, outputs, samples, layers[name]) for name, outputs in seen.items()}


def _rows(name: str, outputs: Sequence[Any], samples: Samples, after: After | None) -> torch.Tensor:
    if len(outputs) != 1:
        times = "does not run" if not outputs else f"runs {len(outputs)} times"
        raise WaterjarError(f"layer '{name}' {times} in a pass of the network: expected a layer that runs once")
    output = outputs[0]
    if not isinstance(output, torch.Tensor):
        raise WaterjarError(f"layer '{name}' gives a {type(output).__name__}: watch a layer that gives one tensor")
    if after is not None:
        with torch.no_grad():
            output = after(output)
        if not isinstance(output, torch.Tensor):
            raise WaterjarError(f"layers['{name}'] gives a {type(output).__name__}: expected a tensor")
    if output.ndim < 2 or len(output) != len(samples):
        raise WaterjarError(
            f"layer '{name}' gives the shape {tuple(output.shape)} for {len(samples)} samples: expected "
            "(sample, unit, ...)"
        )
    if samples.kept is None or samples.labels is None:
        kept = output.detach().flatten(1).cpu()
    elif output.shape[:-1] == samples.labels.shape:
        kept = output.detach().flatten(0, -2).cpu()[samples.kept]
    else:
        tokens = tuple(samples.labels.shape)
        raise WaterjarError(
            f"layer '{name}' gives the shape {tuple(output.shape)}, and labels {tokens} are of tokens: expected "
            "(sample, token, unit) of every layer; watch others, give a function that brings its output to that shape "
            f"(layers={{{name!r}: function}}), or probe=(inputs, one label a sample)"
        )
    return kept.float() if kept.dtype in (torch.bfloat16, torch.float16) else kept
