"""Against torch.optim, with a rate for the features and one for the readout."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from waterjar.lab.learning import optimisers

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("name", "settings", "theirs", "arguments"),
    [
        ("sgd", {}, torch.optim.SGD, {}),
        ("sgd", {"momentum": 0.9, "weight_decay": 0.1}, torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
        ("adam", {}, torch.optim.Adam, {}),
        ("adam", {"beta1": 0.5, "beta2": 0.8, "eps": 1e-4, "weight_decay": 0.1}, torch.optim.AdamW,
         {"betas": (0.5, 0.8), "eps": 1e-4, "weight_decay": 0.1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rates", [(0.1, 0.02), (0.05, 0.05)])
def test_as_torch(
    name: str, settings: dict[str, float], theirs: Any, arguments: dict[str, Any], rates: tuple[float, float]
) -> None:
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(3, 7, generator=draw)
    parts = [values[:, :4].clone().requires_grad_(), values[:, 4:].clone().requires_grad_()]
    reference = theirs([{"params": [part], "lr": rate} for part, rate in zip(parts, rates, strict=True)], **arguments)
    ours = optimisers.make(name, settings, values)
    for step in range(6):
        if step == 3:  # a state that is loaded is the state that was
            kept, again = ours.state(), optimisers.make(name, settings, values)
            again.load_state(kept)
            ours = again
        gradients = torch.randn(3, 7, generator=draw)
        parts[0].grad, parts[1].grad = gradients[:, :4].clone(), gradients[:, 4:].clone()
        reference.step()
        ours.step(values, gradients, rates, 4)
        torch.testing.assert_close(values, torch.cat([part.detach() for part in parts], 1))


@pytest.mark.parametrize(("name", "settings"), [("sgd", {"momentum": 0.9}), ("sgd", {}), ("adam", {})])
def test_a_new_task_begins_without_memories(name: str, settings: dict[str, float]) -> None:
    values = torch.ones(2, 3)
    used, fresh = (optimisers.make(name, settings, values) for _ in range(2))
    used.step(values.clone(), torch.ones(2, 3), (0.1, 0.1), 1)
    used.begin_task()
    after = values.clone(), values.clone()
    for optimiser, own in zip((used, fresh), after, strict=True):
        optimiser.step(own, torch.full((2, 3), 0.5), (0.1, 0.1), 1)
    assert torch.equal(*after)
    assert optimisers.names() == ("adam", "sgd")
