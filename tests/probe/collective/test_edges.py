"""What strangers bring: adapters of their own, odd shapes, wrong settings; right, or one clear sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
import waterjar  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import (  # noqa: E402
    LiveCollective,
    Outputs,
    adapt,
    coalitions,
    coalitions_of,
    collective_labels,
    full_evaluation,
    gradient_contributions,
    record_collective,
    stream_failure,
)
from waterjar.probe.collective.gate import Gate  # noqa: E402
from waterjar.probe.collective.gathered import gathered  # noqa: E402
from waterjar.probe.collective.live import place_of  # noqa: E402
from waterjar.probe.collective.rules import combine_some  # noqa: E402
from waterjar.probe.collective.samples import samples_of  # noqa: E402
from waterjar.probe.collective.stand_in import played, replaced, same, zeros  # noqa: E402

pytestmark = pytest.mark.torch


class Product(LiveCollective):
    """A stranger's adapter in one small class, which can be run without a stream."""

    streams, absences = ("a", "b", "c"), ("removed",)

    def __init__(self) -> None:
        self.module = nn.ModuleList(tiny.networks())
        self._gone: tuple[str, ...] = ()

    def outputs(self, x: Any) -> Outputs:
        said = {name: net(x) for name, net in zip(self.streams, self.module, strict=True)}
        return Outputs(sum(one for name, one in said.items() if name not in self._gone), individual=said)

    @contextlib.contextmanager
    def absent(self, names: Any, how: str, donors: Any = None) -> Iterator[None]:
        self.check(how, names)
        self._gone = tuple(names)
        try:
            yield
        finally:
            self._gone = ()


def test_a_strangers_adapter_gets_coalitions_for_nothing() -> None:
    mine, (x, y) = Product(), tiny.data()
    found = coalitions(mine, (x, y), "removed")
    with torch.no_grad():
        logits = mine.module.eval()[0](x) + mine.module[2](x)
    np.testing.assert_array_equal(
        found.correct[:, list(found.labels).index("removed:101")], (logits.argmax(1) == y).numpy()
    )
    assert stream_failure(mine, (x, y), "removed")["all"] == found.accuracy()["removed:111"]
    assert mine.fingerprints() is None and mine.stream_parameters() is None
    torch.testing.assert_close(mine.stream_logits(x, "b"), mine.module[1](x))


def test_affinities_that_depend_on_the_input(tmp_path: Path) -> None:
    class Attentive(tiny.Anchors):
        def forward(self, x: Any, fingerprint: Any) -> Any:
            near = torch.sigmoid(self.fp_to_anchor(fingerprint)) * x.mean(dim=(1, 2), keepdim=True)[:, 0].sigmoid()
            return self.out(near)[:, None].expand_as(x), near

    model = tiny.RouterCollective()
    model.heads["b"].anchors = Attentive()
    samples = samples_of(tiny.data(9))
    found = gathered(adapt(model), samples, batch_size=4)
    assert found.arrays["affinity"].shape == (9, 3, tiny.ANCHORS) and not found.static
    assert (
        np.ptp(found.arrays["affinity"][:, 0], axis=0).max() == 0 < np.ptp(found.arrays["affinity"][:, 1], axis=0).max()
    )


def test_half_precision_is_read() -> None:
    class Half(LiveCollective):
        streams = ("a",)
        module = nn.Linear(tiny.FEATURES, 2)

        def outputs(self, x: Any) -> Outputs:
            return Outputs(self.module(x).to(torch.bfloat16))

    found = gathered(Half(), samples_of(tiny.data(4)))
    assert found.arrays["collective_logits"].dtype == np.float32
    assert found.passed_over["logits"] == "the model does not tell the logits of single streams"


def sets() -> list[Any]:
    return [tiny.data(10)] * 3


def lone(logits: Any = None, individual: Any = None) -> LiveCollective:
    class Lone(LiveCollective):
        streams = ("a",)
        module = nn.Linear(tiny.FEATURES, tiny.CLASSES)

        def outputs(self, x: Any) -> Outputs:
            return Outputs(self.module(x) if logits is None else logits(x), individual=individual and individual(x))

    return Lone()


def in_order(*steps: Callable[[], Any]) -> None:
    for step in steps:
        step()


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: adapt(tiny.RouterCollective(), features={}), "features= names layers"),
        (lambda: adapt(nn.Linear(2, 2), rule="vote"), "this model is neither"),
        (lambda: adapt(tiny.RouterCollective(), names=["x"]), "names of their own"),
        (lambda: adapt({"a": nn.Linear(2, 2)}, names=["b"]), "names of their own"),
        (lambda: adapt(tiny.networks(), rule="sum_logit"), "expected one of mean_probability"),
        (lambda: adapt(tiny.Mixture(), rule="vote"), "rule of a mixture of experts"),
        (lambda: adapt(nn.ModuleList()), "no stream"),
        (lambda: LiveCollective().outputs(None), "has no outputs"),
        (lambda: adapt(tiny.networks()).check("asleep"), "absence 'asleep' is unknown"),
        (lambda: adapt(tiny.networks()).check("zeroed", ["x"]), "stream 'x' is unknown"),
        (lambda: adapt(tiny.networks(1)).check("removed", ["stream_0"]), "nobody is left to answer"),
        (lambda: coalitions(adapt(tiny.networks()), tiny.data(), present=[[False] * 3]), "nobody to answer"),
        (lambda: coalitions(adapt(tiny.networks()), tiny.data(), present=[[True]]), "expected \\(coalition, 3 streams"),
        (lambda: coalitions(adapt([nn.Linear(6, 2)]), tiny.data()), "label 2, but the collective has 2 classes"),
        (lambda: coalitions_of(9, "removed", orders=0), "orders=0"),
        (lambda: stream_failure(adapt(tiny.networks()), tiny.data(), draws=0), "draws=0"),
        (lambda: Gate(nn.Identity(), 1).weights(torch.zeros(2, 3), 4), "with 4 experts"),
        (lambda: combine_some(torch.zeros(1, 1, 2), "vote", torch.ones(1, 1), "resampled"), "other samples"),
        (lambda: combine_some(torch.zeros(1, 1, 2), "vote", torch.zeros(1, 1), "removed"), "a coalition is empty"),
        (lambda: gathered(lone(lambda x: x[:, 0]), samples_of(tiny.data())), "expected logits"),
        (lambda: gradient_contributions(lone(), tiny.data()), "neither pooled features nor logits"),
        (
            lambda: gradient_contributions(lone(individual=lambda x: {"a": x * 2}), tiny.data()),
            "tells no pooled features .* not made of the logits that it tells of 'a'",
        ),
        (lambda: lone().stream_logits(torch.zeros(1, 6), "a"), "does not tell the logits of stream 'a'"),
        (lambda: full_evaluation(tiny.networks(), *sets(), "nowhere", absences=["gone"]), "absence 'gone'"),
    ],
)
def test_what_is_wrong_is_said(act: Callable[[], Any], told: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    error = NotImplementedError if told == "has no outputs" else WaterjarError
    with pytest.raises(error, match=told):
        act()


def test_resampled_without_donors() -> None:
    collective = adapt(tiny.RouterCollective())
    with pytest.raises(WaterjarError, match="give donors="), collective.absent(["a"], "resampled"):
        pass
    kept = collective.prepare(tiny.data()[0])
    with pytest.raises(WaterjarError, match="give the donors"):
        list(collective.answers(kept, np.array([[False, True, True]]), "resampled"))


def test_outputs_of_a_collective_that_lacks_a_stream() -> None:
    collective, (x, _) = adapt(tiny.Protocol()), tiny.data()
    with collective.absent(["a"], "zeroed"):
        found = collective.outputs(x)
        torch.testing.assert_close(collective.logits(x), found.collective)
    assert found.isolated is None and found.individual is not None
    with pytest.raises(WaterjarError, match="gives logits only"), collective.absent(["a"], "removed"):
        collective.outputs(x)


def test_a_forward_of_ones_own_is_put_back() -> None:
    layer = nn.Linear(2, 2)

    def own(x: Any) -> Any:
        return x

    layer.forward = own  # type: ignore[method-assign]
    with replaced(layer, lambda x: x + 1):
        assert float(layer(torch.zeros(1))) == 1
    assert layer.forward is own
    with pytest.raises(WaterjarError, match="more often"), played({"a": layer}, {"a": [1]}, "zeroed"):
        in_order(lambda: layer(1), lambda: layer(1))


def test_zeros_and_sameness_of_whatever_a_stream_gives() -> None:
    from typing import NamedTuple

    class Pair(NamedTuple):
        x: Any
        note: str

    given = [Pair(torch.ones(2), "kept"), {"entropy": 0.5}]
    made = zeros(given)
    assert made[0].note == "kept" and float(made[0].x.sum()) == 0 and made[1]["entropy"] == 0.0
    assert same(given, given) and not same(given, made) and not same([1], [1, 2])


def test_fingerprints_of_different_sizes(tmp_path: Path) -> None:
    model = tiny.RouterCollective()
    model.heads["a"].fingerprint = nn.Parameter(torch.zeros(3))
    with pytest.raises(WaterjarError, match="expected the same for all streams"):
        adapt(model).fingerprints()


def test_a_place_without_parameters() -> None:
    assert place_of(nn.Identity()).type == "cpu"


def test_repeats_with_other_streams(tmp_path: Path) -> None:
    each = [adapt(tiny.networks(2), names=["a", "b"]), adapt(tiny.networks(2), names=["a", "c"])]
    labels = collective_labels(each[0])
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[1, 2], eval_sets=["test"], labels=labels) as recorder:
        recorder.log(epoch=0, train={"loss": [1.0, 1.0]})
        with pytest.raises(WaterjarError, match="expected the same in all"):
            record_collective(recorder, each, {"test": tiny.data()})
        with pytest.raises(WaterjarError, match="sets is empty"):
            record_collective(recorder, [each[0]] * 2, {})
