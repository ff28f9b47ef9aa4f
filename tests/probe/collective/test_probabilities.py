"""Models that end in a softmax: refused, or their logs are taken; never softmaxed again in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe import robustness  # noqa: E402
from waterjar.probe.collective import (  # noqa: E402
    LiveCollective,
    Outputs,
    adapt,
    coalitions,
    full_evaluation,
    gradient_contributions,
    stream_failure,
)
from waterjar.probe.collective.still import measured  # noqa: E402

pytestmark = pytest.mark.torch

LIKE = "look like probabilities"


class Softened(nn.Module):
    """A model of the seed's protocol whose answers are all probabilities."""

    def __init__(self, inner: tiny.Protocol) -> None:
        super().__init__()
        self.inner, self.streams = inner, inner.streams

    def without(self, names: list[str]) -> Any:
        run = self.inner.without(names)
        return lambda x: (run(x)[0].softmax(1), None)

    def forward(self, x: Any, return_individual: bool = False) -> Any:
        logits, info = self.inner(x, return_individual)
        each = (info or {}).get("individual_logits", {})
        return logits.softmax(1), {"individual_logits": {name: one.softmax(1) for name, one in each.items()}}


def softened(nets: list[nn.Module]) -> list[nn.Module]:
    return [nn.Sequential(net, nn.Softmax(1)) for net in nets]


def test_every_question_refuses_them(tmp_path: Path) -> None:
    data = tiny.data()
    for model in (softened(tiny.networks()), tiny.seeded(0, lambda: Softened(tiny.Protocol()))):
        with pytest.raises(WaterjarError, match=LIKE):
            coalitions(adapt(model), data)
        with pytest.raises(WaterjarError, match=LIKE):
            stream_failure(adapt(model), data)
        with pytest.raises(WaterjarError, match=f"stream '.*': these {LIKE}.*probabilities=True"):
            full_evaluation(model, data, data, data, tmp_path / "run", progress=False)
    with pytest.raises(WaterjarError, match=LIKE):
        gradient_contributions(adapt(softened(tiny.networks())), data)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rule", ["mean_probability", "mean_logit", "vote"])
def test_their_logs_are_what_was_softened(rule: str) -> None:
    nets, data = tiny.networks(), tiny.data()
    plain, soft = adapt(nets, rule=rule), adapt(softened(nets), rule=rule, probabilities=True)
    for how in plain.absences:
        one, other = coalitions(plain, data, how), coalitions(soft, data, how)
        if rule != "mean_logit" or how == "removed":  # logits that differ by a constant are the same answer
            np.testing.assert_allclose(one.log_likelihood, other.log_likelihood, atol=1e-5)
    assert adapt(softened(nets), probabilities=False).are_logits


def test_of_a_model_of_the_protocol() -> None:
    inner, (x, y) = tiny.seeded(0, tiny.Protocol), tiny.data()
    soft = adapt(Softened(inner), probabilities=True)
    with measured(soft.module):
        found, told = adapt(inner).outputs(x), soft.outputs(x)
    for name in soft.streams:
        expected = torch.log_softmax(found.individual[name], 1)
        torch.testing.assert_close(told.individual[name], expected)
    for how in soft.absences:
        expected = coalitions(adapt(inner), (x, y), how).log_likelihood
        np.testing.assert_allclose(coalitions(soft, (x, y), how).log_likelihood, expected, atol=1e-5)


def test_a_collective_of_your_own_gives_logits() -> None:
    class Own(LiveCollective):
        streams, module = ("a",), nn.Identity()

        def outputs(self, x: Any) -> Outputs:
            return Outputs(x)

    with pytest.raises(WaterjarError, match="outputs of Own have to be logits"):
        adapt(Own(), probabilities=True)


def test_a_control_that_is_attacked() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.Softmax(1))
    with pytest.raises(WaterjarError, match=f"'control': these {LIKE}"):
        robustness({"control": net}, torch.rand(4, 1, 8, 8), [0, 1, 2, 0], shifts=[], attacks=["fgsm"])


def test_what_is_softmaxed_anyway_stays() -> None:
    """torchensemble's voting takes the softmax of whatever its estimators give: so does the suite."""
    model, (x, y) = tiny.Voting(softened(tiny.networks())), tiny.data()
    found = coalitions(adapt(model), (x, y), "removed")
    with torch.no_grad():
        own = model.eval()(x).log().gather(1, y[:, None])[:, 0]
    np.testing.assert_allclose(found.log_likelihood[:, -1], own, atol=1e-5)
