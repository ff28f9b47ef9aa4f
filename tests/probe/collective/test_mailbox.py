"""Streams with a mailbox: who is zeroed or resampled still posts, and only what it hands over is another."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import adapt, coalitions, coalitions_of, full_evaluation, stream_failure  # noqa: E402
from waterjar.probe.collective.gathered import gathered  # noqa: E402
from waterjar.probe.collective.samples import samples_of  # noqa: E402
from waterjar.probe.collective.still import measured  # noqa: E402

pytestmark = pytest.mark.torch

NAMES = ("first", "second", "third")


class Posting(nn.Module):
    """Reads what its neighbour posted, by name, and posts what it made."""

    def __init__(self, name: str, neighbour: str | None) -> None:
        super().__init__()
        self.name, self.neighbour = name, neighbour
        self.encoder = nn.Linear(tiny.FEATURES, 5)

    def forward(self, x: Any, box: dict[str, Any]) -> Any:
        made = self.encoder(x)
        if self.neighbour is not None:
            made = made + torch.tanh(box[self.neighbour])
        box[self.name] = made
        return made * 2


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.streams = nn.ModuleList(map(Posting, NAMES, (None, *NAMES[:-1])))
        self.out = nn.Linear(5, 3)

    def _answer(self, x: Any, there: Any) -> tuple[Any, dict[str, Any]]:
        box: dict[str, Any] = {}
        handed = {one.name: one(x, box) for one in self.streams if one.name in there}
        return self.out(torch.stack(list(handed.values())).mean(0)), handed

    def forward(self, x: Any, return_individual: bool = False) -> Any:
        logits, handed = self._answer(x, NAMES)
        return logits, {"individual_logits": {name: self.out(one) for name, one in handed.items()}}


class Squared(Chain):
    """No rule makes its logits of its streams'."""

    def _answer(self, x: Any, there: Any) -> tuple[Any, dict[str, Any]]:
        logits, handed = super()._answer(x, there)
        return logits**2, handed


class Lacking(Chain):
    def without(self, names: list[str]) -> Any:
        return lambda x: self._answer(x, [name for name in NAMES if name not in names])


def by_hand(model: Chain, x: Any, present: Any, donors: Any) -> Any:
    """The messages of all, then the outputs of those who are there, and zero or a donor's of the others."""
    handed = []
    for inputs in (x, donors):
        message, outputs = None, []
        for stream in model.streams:
            message = stream.encoder(inputs) + (0 if message is None else torch.tanh(message))
            outputs.append(2 * message)
        handed.append(outputs)
    own, others = handed
    return model.out(torch.stack([a if there else b for there, a, b in zip(present, own, others, strict=True)]).mean(0))


@pytest.mark.parametrize("how", ["zeroed", "resampled"])
def test_the_message_stays_and_the_output_goes(how: str) -> None:
    model, (x, y) = tiny.seeded(0, Chain), tiny.data()
    collective, bits = adapt(model), coalitions_of(3, how)
    before = copy.deepcopy(model.state_dict())
    found = coalitions(collective, (x, y), how, batch_size=17)
    assert collective.independent is False
    donors = x[torch.from_numpy(samples_of((x, y)).others(0))]
    with torch.no_grad():
        for column, there in enumerate(bits):
            logits = by_hand(model, x, there, donors)
            if how == "zeroed":
                kept = [out if is_in else 0 * out for is_in, out in zip(there, handed(model, x), strict=True)]
                logits = model.out(torch.stack(kept).mean(0))
            likely = torch.log_softmax(logits.double(), 1).gather(1, y[:, None])[:, 0]
            np.testing.assert_allclose(found.log_likelihood[:, column], likely, atol=1e-5)
    assert all(torch.equal(one, model.state_dict()[name]) for name, one in before.items())
    assert all("forward" not in vars(one) for one in model.modules())


def handed(model: Chain, x: Any) -> list[Any]:
    return list(model._answer(x, NAMES)[1].values())


def test_inside_absent_it_is_the_same() -> None:
    model, (x, y) = tiny.seeded(0, Chain), tiny.data()
    collective = adapt(model)
    found = coalitions(collective, (x, y), "zeroed", present=[[False, True, True]])
    with measured(model), collective.absent(["first"], "zeroed"):
        likely = torch.log_softmax(collective.logits(x).double(), 1).gather(1, y[:, None])[:, 0]
    np.testing.assert_allclose(found.log_likelihood[:, 0], likely, atol=1e-5)


def test_a_message_that_is_looked_up_by_name_costs_isolation_alone(tmp_path: Path) -> None:
    model, data = tiny.seeded(0, Chain), tiny.data()
    assert not math.isnan(stream_failure(model, data)["without_first"])
    told = gathered(adapt(model), samples_of(data))
    assert "isolated_logits" not in told.arrays
    assert "looks for 'first', which is not there" in told.passed_over["isolated_logits"]
    found = full_evaluation(model, data, data, data, tmp_path / "run", progress=False)
    assert not math.isnan(found["test_acc"]) and set(found["stream_contributions"]) == set(NAMES)
    assert "isolated_logits" in found.passed_over


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Chain, "streams are left out of the rule that makes the collective of their outputs, and still run"),
        (Squared, "streams are zeroed, since none can be removed"),
    ],
)
def test_contributions_say_that_messages_still_pass(kind: type[Chain], why: str, tmp_path: Path) -> None:
    data = tiny.data()
    found = full_evaluation(tiny.seeded(0, kind), data, data, data, tmp_path / "run", progress=False)
    assert found.passed_over["stream_contributions"] == (
        f"{why}; they hear of each other, and what an absent stream leaves for the others beside its output (a message "
        "in a mailbox, say) still passes: what it is worth through that does not count"
    )


def test_removed_is_not_run_and_who_looks_for_it_is_told() -> None:
    with pytest.raises(WaterjarError, match="Lacking cannot be run without first.*: something of it looks for 'first'"):
        coalitions(tiny.seeded(0, Lacking), tiny.data(), "removed", present=[[False, True, True]])
    found = coalitions(tiny.seeded(0, Lacking), tiny.data(), "removed", present=[[True, True, False]])
    assert np.isfinite(found.log_likelihood).all()  # nobody reads what the last one posts
