"""What is fed wrongly, or is not there, is one clear sentence, told first; what can be measured all the same is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
from waterjar.diagnose.robustness import Robustness, attack_result, shift_result  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import (  # noqa: E402
    adapt,
    coalitions,
    full_evaluation,
    gradient_contributions,
    stream_failure,
)
from waterjar.probe.collective.gathered import gathered  # noqa: E402
from waterjar.probe.collective.samples import samples_of  # noqa: E402

pytestmark = pytest.mark.torch


class Told(tiny.Protocol):
    """A model of the protocol whose info is as given, made of the plain one."""

    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: Any, return_individual: bool = False) -> Any:
        logits, info = super().forward(x, return_individual)
        return logits, self.change(info, x) if return_individual else None


def told(change: Any) -> Any:
    return tiny.seeded(0, lambda: Told(change))


def nets(count: int = 2, channels: int = 1) -> list[nn.Module]:
    return [tiny.seeded(i, lambda: nn.Sequential(nn.Flatten(), nn.Linear(36 * channels, 3))) for i in range(count)]


def images(count: int, channels: int = 1) -> tuple[Any, Any]:
    return torch.rand(count, channels, 6, 6), torch.arange(count) % 3


@pytest.mark.parametrize(
    ("normalise", "match"),
    [
        ("imagenet", r"normalise='imagenet': expected \(mean, std\)"),
        (lambda x: x, r"normalise is a function.*expected \(mean, std\)"),
        (([0.5] * 3, [0.2] * 3), "normalise has 3 numbers for images of 1 channels"),
        ((0.5, 0.0), "std above 0"),
    ],
)
def test_a_normalisation_that_cannot_be_is_told_first(
    normalise: Any, match: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WaterjarError, match=match):
        full_evaluation(nets(), *[images(9)] * 3, tmp_path / "run", normalise=normalise)
    assert not capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_network_that_gives_more_than_logits() -> None:
    class Pair(nn.Linear):
        def forward(self, x: Any) -> Any:
            return super().forward(x), x

    with pytest.raises(WaterjarError, match=r"stream 'b' \(Pair\) gives a tuple: expected its logits"):
        coalitions({"a": nn.Linear(4, 3), "b": Pair(4, 3)}, (torch.zeros(5, 4), [0, 1, 2, 0, 1]))


def test_an_info_that_is_no_mapping() -> None:
    model = told(lambda info, x: list(info.values()))
    with pytest.raises(WaterjarError, match="its info is a list, expected a mapping"):
        gathered(adapt(model), samples_of(tiny.data()))


def test_shapes_that_no_metric_takes_cost_nothing_else() -> None:
    def more(info: Any, x: Any) -> Any:
        def each(*shape: int) -> Any:
            return {name: torch.rand(len(x), *shape) for name in ("a", "b", "c")}

        return {
            **info,
            "anchor_affinities": each(2, 5),
            "pooled": each(2, 5),
            "routes": each(3),
            "route_weights": each(3),
        }

    found = gathered(adapt(told(more)), samples_of(tiny.data()))
    assert set(found.arrays) == {"collective_logits", "logits", "isolated_logits"} and not found.static
    for name, dims in (
        ("affinity", "sample, anchor"),
        ("pooled", "sample, unit"),
        ("route_index", "sample, slot, route"),
    ):
        assert f"expected ({dims})" in found.passed_over[name]
    assert "'a': (40, 2, 5)" in found.passed_over["affinity"]


def test_single_questions_adapt_the_model() -> None:
    pair, data = tiny.networks(2), tiny.data()
    assert dict(stream_failure(pair, data)) == dict(stream_failure(adapt(pair), data))
    np.testing.assert_array_equal(coalitions(pair, data).correct, coalitions(adapt(pair), data).correct)
    np.testing.assert_array_equal(gradient_contributions(pair, data), gradient_contributions(adapt(pair), data))


def test_one_sample_costs_resampling_alone(tmp_path: Path) -> None:
    few = {"ladders": ["seed"], "severities": [3], "attacks": ["fgsm"], "flags": False}
    sets = (images(9), images(9), images(1))
    found = full_evaluation(nets(), *sets, tmp_path / "run", robust=few, progress=False)
    assert "one sample" in found.passed_over["resampled"]
    assert "head is not surely above one constant answer" in repr(found)  # right or wrong, of one sample
    labels = found.run["streams"].coalition.values.tolist()
    assert {label.partition(":")[0] for label in labels} == {"removed", "zeroed"}
    assert set(found["stream_failure"]) == {"all", "without_stream_0", "without_stream_1", "half_streams"}
    with pytest.raises(WaterjarError, match="there is 1 sample"):
        full_evaluation(nets(), *sets, tmp_path / "asked", absences=["resampled"], progress=False)


def test_a_network_of_nan_keeps_the_features_of_all() -> None:
    trio, (x, y) = [nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)) for _ in range(3)], tiny.data()
    with torch.no_grad():
        trio[1][2].bias.fill_(float("nan"))
    found = gathered(adapt(trio), samples_of((x[:, :4], y)))
    assert found.arrays["pooled"].shape == (len(x), 3, 5) and "pooled" not in found.passed_over


def test_why_there_is_no_gradient() -> None:
    class Side(nn.Module):
        """Streams whose side logits are no part of the answer, and no classifier that is given their features."""

        def __init__(self) -> None:
            super().__init__()
            self.streams = nn.ModuleDict({name: nn.Linear(tiny.FEATURES, 3) for name in ("a", "b")})

        def forward(self, x: Any, return_individual: bool = False) -> Any:
            said = {name: net(x) for name, net in self.streams.items()}
            return sum(said.values()), {"individual_logits": {name: 2 * one for name, one in said.items()}}

    with pytest.raises(WaterjarError, match=r"tells no pooled features .*not made of the logits that it tells of 'a'"):
        gradient_contributions(Side(), tiny.data())


def test_which_logits_are_looked_for() -> None:
    model = adapt(told(lambda info, x: {"stream_logits": info["individual_logits"]}))
    why = gathered(model, samples_of(tiny.data())).passed_over["logits"]
    assert "info['individual_logits']" in why and "a, b, c" in why
    with pytest.raises(WaterjarError, match=r"info\['individual_logits'\]"):
        model.stream_logits(tiny.data()[0], "a")


def test_conditions_that_nobody_asked_for() -> None:
    other = Robustness(("m",), ("clean", "seed/blur/5", "pgd/0.03", "worst/0.03"), np.ones((1, 4, 5), bool))
    with pytest.raises(WaterjarError, match="ladder 'seed' at severity 3: asked for were seed/5$"):
        shift_result(other)
    with pytest.raises(WaterjarError, match="of fgsm/0.03: asked for were pgd/0.03"):
        attack_result(other)
    nothing = Robustness(("m",), ("clean",), np.ones((1, 1, 5), bool))
    with pytest.raises(WaterjarError, match="no shift was asked for"):
        shift_result(nothing)
    with pytest.raises(WaterjarError, match="no attack was asked for"):
        attack_result(nothing)
