"""Listening to modules of a model, and letting others stand in for them; nothing stays behind, whatever is raised."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from waterjar.errors import WaterjarError

Calls = list[Any]
"""What a module gave, call by call, in one pass through the model."""

_NOTHING = object()


@contextlib.contextmanager
def replaced(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Inside, the module's forward is this one; afterwards it is what it was, also after an exception."""
    before = module.__dict__.get("forward", _NOTHING)
    module.forward = forward
    try:
        yield
    finally:
        if before is _NOTHING:
            del module.__dict__["forward"]
        else:
            module.__dict__["forward"] = before


@contextlib.contextmanager
def played(
    modules: Mapping[str, nn.Module], calls: Mapping[str, Calls], what: str, running: Collection[str] = ()
) -> Iterator[None]:
    """Inside, each module gives what stands in `calls` for it, call by call, instead of computing anything.

    Those that are `running` do compute: what they leave behind on the way, such as a message in a mailbox, is there,
    and only what they give in the end is another.
    A module that is not called inside is an error: what stands in for it would change nothing in silence.
    """
    at = dict.fromkeys(calls, 0)

    def player(name: str) -> Callable[..., Any]:
        own = modules[name].forward

        def forward(*given: Any, **named: Any) -> Any:
            if at[name] >= len(calls[name]):
                raise WaterjarError(
                    f"stream '{name}' is run more often {what} than with all streams: it cannot be replaced"
                )
            at[name] += 1
            if name in running:
                own(*given, **named)
            return calls[name][at[name] - 1]

        return forward

    with contextlib.ExitStack() as stack:
        for name in calls:
            stack.enter_context(replaced(modules[name], player(name)))
        yield
    idle = [name for name, count in at.items() if not count]
    if idle:
        raise WaterjarError(f"the model runs without calling the forward of stream {idle[0]!r}: {what} changes nothing")


@contextlib.contextmanager
def overheard(modules: Mapping[str, nn.Module], inputs: bool = False) -> Iterator[dict[str, Calls]]:
    """Inside, what each module gives (or, with `inputs`, its first argument) is written down, call by call."""
    heard: dict[str, Calls] = {name: [] for name in modules}
    handles = []

    def listener(name: str) -> Callable[..., None]:
        def hear(module: nn.Module, given: tuple[Any, ...], *out: Any) -> None:
            heard[name].append(given[0] if inputs else out[0])

        return hear

    try:
        for name, module in modules.items():
            if inputs:
                handles.append(module.register_forward_pre_hook(listener(name)))
            else:
                handles.append(module.register_forward_hook(listener(name)))
        yield heard
    finally:
        for handle in handles:
            handle.remove()


def zeros(value: Any) -> Any:
    """The same with every floating-point number zero; whole numbers, texts and the like stay.

    >>> zeros((torch.ones(2), {"route": torch.tensor([3])}))
    (tensor([0., 0.]), {'route': tensor([3])})
    """
    if isinstance(value, Tensor):
        return torch.zeros_like(value) if value.is_floating_point() else value
    if isinstance(value, Mapping):
        return {key: zeros(one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(zeros, value))
    if isinstance(value, list | tuple):
        return type(value)(zeros(one) for one in value)
    return 0.0 if isinstance(value, float) else value


def same(a: Any, b: Any) -> bool:
    """Whether two outputs hold the same numbers."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and torch.equal(a.isnan(), b.isnan()) and torch.allclose(a, b, equal_nan=True)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return True
