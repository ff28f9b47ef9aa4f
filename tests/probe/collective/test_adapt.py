"""Adapters: what each kind of model tells, and that it is what the model itself says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import LiveCollective, Outputs, adapt  # noqa: E402
from waterjar.probe.collective.still import measured  # noqa: E402

pytestmark = pytest.mark.torch


def asked(model: Any, x: Any, **settings: Any) -> tuple[LiveCollective, Outputs]:
    collective = adapt(model, **settings)
    with measured(collective.module):
        return collective, collective.outputs(x)


class TestModules:
    @pytest.mark.parametrize("rule", ["mean_probability", "mean_logit", "vote"])
    def test_rules_by_hand(self, rule: str) -> None:
        nets, (x, _) = tiny.networks(), tiny.data()
        _, found = asked(nets, x, rule=rule)
        for net in nets:
            net.eval()
        said = torch.stack([net(x) for net in nets]).detach()
        share = torch.softmax(said, dim=2).mean(dim=0)
        if rule == "mean_logit":
            torch.testing.assert_close(found.collective, said.mean(dim=0))
        elif rule == "mean_probability":
            torch.testing.assert_close(torch.softmax(found.collective, dim=1), share)
        else:
            votes = torch.stack([(said.argmax(dim=2) == k).float().mean(dim=0) for k in range(tiny.CLASSES)], dim=1)
            torch.testing.assert_close(found.collective.exp(), votes)

    def test_names_and_parameters(self) -> None:
        nets = tiny.networks(2)
        collective = adapt(nets, names=["left", "right"])
        assert collective.streams == ("left", "right")
        assert collective.stream_parameters() == {
            name: sum(p.numel() for p in net.parameters()) for name, net in zip(["left", "right"], nets, strict=True)
        }
        assert adapt(nn.ModuleDict({"a": nets[0]})).streams == ("a",)

    def test_fewer_classes_have_no_probability(self) -> None:
        narrow, (x, _) = nn.Linear(tiny.FEATURES, 2), tiny.data()
        _, found = asked({"wide": nn.Linear(tiny.FEATURES, 3), "narrow": narrow}, x)
        assert found.individual is not None
        assert torch.isneginf(found.individual["narrow"][:, 2]).all()
        share = torch.softmax(found.collective, dim=1)
        torch.testing.assert_close(share.sum(dim=1), torch.ones(len(x)))
        alone = torch.softmax(found.individual["wide"], dim=1)
        torch.testing.assert_close(share[:, 2], alone[:, 2] / 2)

    def test_features_of_a_named_layer(self) -> None:
        nets, (x, _) = tiny.networks(2), tiny.data()
        collective, found = asked(nets, x, names=["a", "b"], features={"a": nets[0][2], "b": nets[1][2]})
        assert found.pooled is not None
        torch.testing.assert_close(found.pooled["a"], nets[0].eval()[:3](x))
        assert collective.hands_over == "individual"
        assert not nets[0][2]._forward_hooks

    def test_features_of_the_last_linear_layer(self) -> None:
        nets, (x, _) = tiny.networks(2), tiny.data()
        _, found = asked(nets, x)
        assert found.pooled is not None
        torch.testing.assert_close(found.pooled["stream_1"], nets[1].eval()[:4](x))
        _, found = asked([nn.Sequential(net, nn.Tanh()) for net in nets], x)  # the layer does not give the logits
        assert found.pooled is None

    def test_forty_streams_and_one(self) -> None:
        x, _ = tiny.data()
        for count in (1, 40):
            collective, found = asked(tiny.networks(count), x)
            assert len(collective.streams) == count
            assert found.collective.shape == (len(x), tiny.CLASSES)

    def test_wrong_settings_are_said(self) -> None:
        nets = tiny.networks(2)
        with pytest.raises(WaterjarError, match="rule 'mean'"):
            adapt(nets, rule="mean")
        with pytest.raises(WaterjarError, match="expected 2 different ones"):
            adapt(nets, names=["a", "a"])
        with pytest.raises(WaterjarError, match="no collective that is known"):
            adapt(nets[0])


def test_a_mixture_that_wants_gradients_warns_of_nothing() -> None:
    model = tiny.seeded(0, tiny.Mixture).eval()
    assert adapt(model).outputs(tiny.data()[0]).collective.requires_grad  # warnings are errors here


class TestTorchensemble:
    @pytest.mark.parametrize("strategy", ["soft", "hard"])
    def test_rule_is_found_out(self, strategy: str) -> None:
        model, (x, _) = tiny.Voting(tiny.networks(), strategy), tiny.data()
        collective, found = asked(model, x)
        assert collective.rule == {"soft": "mean_probability", "hard": "vote"}[strategy]
        own = model.eval()(x)
        if strategy == "soft":
            torch.testing.assert_close(torch.softmax(found.collective, dim=1), own)
        assert torch.equal(found.collective.argmax(dim=1), own.argmax(dim=1))

    def test_boosting_adds_up(self) -> None:
        model, (x, _) = tiny.Boosting(tiny.networks()), tiny.data()
        collective, found = asked(model, x)
        assert collective.rule == "sum_logit"
        torch.testing.assert_close(torch.softmax(found.collective, dim=1), model.eval()(x))

    def test_not_fitted_yet(self) -> None:
        with pytest.raises(WaterjarError, match="fit it first"):
            adapt(tiny.Voting([]))

    def test_another_rule_is_refused(self) -> None:
        class Odd(tiny.Voting):
            def forward(self, *x: Any) -> Any:
                return super().forward(*x) ** 2

        with pytest.raises(WaterjarError, match="answers otherwise"):
            asked(Odd(tiny.networks()), tiny.data()[0])


class TestMixture:
    def test_the_models_own_answer(self) -> None:
        model, (x, _) = tiny.Mixture(), tiny.data()
        collective, found = asked(model, x)
        torch.testing.assert_close(found.collective, model.eval()(x))
        assert collective.rule == "mean_logit"
        assert found.route_weight is not None and found.route_index is not None
        weight, index = found.route_weight["expert_0"], found.route_index["expert_0"]
        assert weight.shape == index.shape == (len(x), 1, 2)
        torch.testing.assert_close(weight.sum(dim=2), torch.ones(len(x), 1))
        assert torch.equal(index[:, 0, 0], torch.softmax(model.gate(x), dim=1).argmax(dim=1))

    def test_without_an_expert_the_gate_chooses_among_the_rest(self) -> None:
        model, (x, _) = tiny.Mixture(), tiny.data()
        collective = adapt(model)
        with measured(model), collective.absent(["expert_1"], "removed"):
            found = collective.logits(x)
        model.eval()
        less = tiny.Mixture(2)
        less.experts = nn.ModuleList([model.experts[0], model.experts[2]])
        less.gate.weight.data, less.gate.bias.data = model.gate.weight[[0, 2]].data, model.gate.bias[[0, 2]].data
        torch.testing.assert_close(found, less.eval()(x))

    def test_another_mixture_is_refused(self) -> None:
        with pytest.raises(WaterjarError, match="name top_k="):
            asked(tiny.Mixture(), tiny.data()[0], top_k=1)


class TestProtocol:
    def test_all_that_it_tells(self) -> None:
        model, (x, _) = tiny.Protocol(), tiny.data()
        collective, found = asked(model, x)
        logits, info = model(x, return_individual=True)
        torch.testing.assert_close(found.collective, logits)
        assert info is not None and found.individual is not None and found.pooled is not None
        assert collective.streams == ("a", "b", "c")
        for name in "abc":
            torch.testing.assert_close(found.individual[name], info["individual_logits"][name])
            torch.testing.assert_close(
                model.stream_classifiers[name](found.pooled[name]), info["individual_logits"][name]
            )
        assert found.route_index is not None and found.route_weight is not None and found.affinity is not None
        assert found.route_index["b"].shape == (len(x), tiny.SLOTS, tiny.ROUTES)
        torch.testing.assert_close(found.route_weight["b"].sum(dim=-1), torch.ones(len(x), tiny.SLOTS))
        assert found.affinity["c"].shape == (tiny.ANCHORS,)
        prints = collective.fingerprints()
        assert prints is not None and torch.equal(prints[1], model.streams[1].fingerprint)

    def test_isolated_hears_nobody(self) -> None:
        model, (x, _) = tiny.Protocol(), tiny.data()
        _, found = asked(model, x)
        assert found.isolated is not None and found.individual is not None
        for stream in model.streams:
            alone = model.stream_classifiers[stream.name](stream(x, []))
            torch.testing.assert_close(found.isolated[stream.name], alone)
        torch.testing.assert_close(found.isolated["a"], found.individual["a"])  # the first reads an empty mailbox
        assert not torch.allclose(found.isolated["c"], found.individual["c"])

    def test_coupling_is_found_out(self) -> None:
        x, _ = tiny.data()
        for coupled in (True, False):
            collective = adapt(tiny.Protocol(coupled=coupled))
            with measured(collective.module):
                collective.prepare(x)
            assert collective.independent is not coupled  # type: ignore[attr-defined]

    def test_a_model_that_tells_little(self) -> None:
        class Bare(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = nn.Linear(tiny.FEATURES, tiny.CLASSES)

            def forward(self, x: Any, return_individual: bool = False) -> Any:
                return self.net(x), {"individual_logits": {"a": self.net(x), "b": -self.net(x)}}

        with pytest.raises(WaterjarError, match="names="):
            adapt(Bare())
        collective, found = asked(Bare(), tiny.data()[0], names=["a", "b"])
        assert found.individual is not None
        assert found.route_index is None and found.affinity is None and collective.fingerprints() is None
        assert collective.absences == ()
        with pytest.raises(WaterjarError, match="nothing can be set to zero"), collective.absent(["a"], "zeroed"):
            pass

    def test_a_stream_that_is_never_called_is_said(self) -> None:
        class Aside(tiny.Protocol):
            def _answer(self, x: Any, streams: Any) -> Any:
                pooled = {
                    one.name: one.router(one.encoder(x).view(len(x), tiny.SLOTS, -1))[2].mean(1) for one in streams
                }
                return self.classifier(sum(pooled.values())), pooled

        collective = adapt(Aside())
        told = pytest.raises(WaterjarError, match="without calling the forward of stream 'a'")
        with measured(collective.module), collective.absent(["a"], "zeroed"), told:
            collective.logits(tiny.data()[0])


class TestGeofractal:
    @pytest.mark.parametrize("head", [tiny.Head, tiny.FractalHead])
    def test_both_heads(self, head: type[nn.Module]) -> None:
        model, (x, _) = tiny.RouterCollective(head=head), tiny.data()
        collective, found = asked(model, x)
        model.eval()
        logits, info = model(x, return_individual=True)
        torch.testing.assert_close(found.collective, logits)
        for field in (found.individual, found.isolated, found.pooled, found.route_index, found.route_weight):
            assert field is not None and list(field) == ["a", "b", "c"]
        assert found.individual is not None and found.isolated is not None and found.affinity is not None
        torch.testing.assert_close(found.individual["b"], info["individual_logits"]["b"])
        encoded = model.streams["b"](x)
        alone = model.stream_classifiers["b"](model.heads["b"](encoded).mean(dim=1))
        torch.testing.assert_close(found.isolated["b"], alone)
        assert not torch.allclose(found.isolated["b"], found.individual["b"])
        prints = collective.fingerprints()
        assert prints is not None and prints.shape == (3, tiny.PRINT)
        assert found.affinity["a"].shape == (tiny.ANCHORS,)

    def test_what_it_cannot_do(self) -> None:
        collective = adapt(tiny.RouterCollective())
        assert collective.absences == ("zeroed", "resampled")
        told = pytest.raises(WaterjarError, match="its fusion \\(Fusion\\) has weights for every stream")
        with told, collective.absent(["a"], "removed"):
            pass

    def test_an_input_for_each_stream(self) -> None:
        model, (x, _) = tiny.RouterCollective(), tiny.data()
        _, both = asked(model, dict.fromkeys("abc", x))
        _, one = asked(model, x)
        torch.testing.assert_close(both.collective, one.collective)


def test_a_small_class_of_ones_own() -> None:
    class Sum(LiveCollective):
        streams = ("a", "b")

        def __init__(self) -> None:
            self.module = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

        def outputs(self, x: Any) -> Outputs:
            said = {name: net(x) for name, net in zip(self.streams, self.module, strict=True)}
            return Outputs(said["a"] + said["b"], individual=said)

    collective = Sum()
    assert adapt(collective) is collective
    with pytest.raises(WaterjarError, match="it can do none of the three"):
        list(collective.answers(torch.zeros(1, 2), np.array([[True, False]]), "removed"))
