"""Absent streams: equal to what is computed by hand, and the model is as it was, whatever is raised."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
from waterjar.diagnose.collective.shapley import shapley_of_orders  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import adapt, coalitions, coalitions_of, gradient_contributions, stream_failure  # noqa: E402
from waterjar.probe.collective.coalitions import places_of  # noqa: E402
from waterjar.probe.collective.live import LiveCollective  # noqa: E402
from waterjar.probe.collective.samples import samples_of  # noqa: E402
from waterjar.probe.collective.still import measured  # noqa: E402

pytestmark = pytest.mark.torch

KINDS: dict[str, Any] = {
    "modules": lambda: nn.ModuleList(tiny.networks()),
    "voting": lambda: tiny.Voting(tiny.networks()),
    "boosting": lambda: tiny.Boosting(tiny.networks()),
    "mixture": tiny.Mixture,
    "coupled": tiny.Protocol,
    "uncoupled": lambda: tiny.Protocol(coupled=False),
    "geofractal": tiny.RouterCollective,
    "fractal_heads": lambda: tiny.RouterCollective(head=tiny.FractalHead),
}


def made(kind: str) -> nn.Module:
    model: nn.Module = tiny.seeded(3, KINDS[kind])
    return model


def state_of(model: nn.Module) -> list[Any]:
    """Every number, mode, attribute, hook and forward of a model."""
    found: list[Any] = [tensor.clone() for tensor in model.state_dict().values()]
    found += [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    for module in model.modules():
        own = {k: v for k, v in module.__dict__.items() if not k.startswith("_") and k != "runs"}
        found += [module.training, dict(own), list(module._buffers), dict(module._forward_hooks)]
        found.append(dict(module._forward_pre_hooks))
    return [*found, torch.random.get_rng_state(), np.random.get_state()[1].copy()]  # noqa: NPY002


def same_state(before: list[Any], after: list[Any]) -> bool:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor):
            return isinstance(b, torch.Tensor) and torch.equal(a, b)
        return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else a == b

    return len(before) == len(after) and all(map(same, before, after))


def literal(collective: LiveCollective, x: Any, y: Any, how: str, bits: Any, donors: Any = None) -> Any:
    """The loop of the seed document: the whole model for every coalition."""
    right = []
    with measured(collective.module):
        for row in bits:
            gone = [name for name, there in zip(collective.streams, row, strict=True) if not there]
            with collective.absent(gone, how, donors):
                right.append(collective.logits(x))
    said = torch.stack(right, dim=1)
    likely = torch.log_softmax(said.double(), dim=2).gather(2, y[:, None, None].expand(-1, len(bits), 1))[..., 0]
    return (said.argmax(dim=2) == y[:, None]).numpy(), likely.numpy()


@pytest.mark.parametrize("how", ["removed", "zeroed", "resampled"])
@pytest.mark.parametrize("kind", KINDS)
class TestEqualToTheLiteralLoop:
    def test_every_coalition(self, kind: str, how: str) -> None:
        collective, (x, y) = adapt(made(kind)), tiny.data()
        if how not in collective.absences:
            with pytest.raises(WaterjarError, match="cannot be run"):
                coalitions(collective, (x, y), how)
            return
        bits = coalitions_of(3, how)
        found = coalitions(collective, (x, y), how, seed=5)
        donors = x[torch.from_numpy(samples_of((x, y)).others(5))] if how == "resampled" else None
        right, likely = literal(collective, x, y, how, bits, donors)
        np.testing.assert_allclose(found.log_likelihood, likely, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found.correct, right)
        assert found.labels[-1] == f"{how}:111" and len(found.labels) == len(bits) == (7 if how == "removed" else 8)

    def test_batches_change_nothing(self, kind: str, how: str) -> None:
        collective, data = adapt(made(kind)), tiny.data()
        if how not in collective.absences:
            return
        one = coalitions(collective, data, how)
        several = coalitions(collective, data, how, batch_size=7)
        np.testing.assert_allclose(one.log_likelihood, several.log_likelihood, rtol=1e-4, atol=1e-5)


class TestByHand:
    def test_zeroed_stream_of_the_protocol(self) -> None:
        model, (x, y) = made("uncoupled"), tiny.data()
        found = coalitions(adapt(model), (x, y), "zeroed", present=[[True, False, True]])
        with torch.no_grad():
            pooled = [stream(x, None) for stream in model.streams]
            logits = model.classifier((pooled[0] + pooled[2]) / 3)
        np.testing.assert_array_equal(found.correct[:, 0], (logits.argmax(dim=1) == y).numpy())

    def test_all_resampled_is_the_answer_to_another_sample(self) -> None:
        model, (x, y) = made("geofractal"), tiny.data()
        found = coalitions(adapt(model), (x, y), "resampled", present=[[False] * 3], seed=2)
        with torch.no_grad():
            other = model.eval()(x[torch.from_numpy(samples_of((x, y)).others(2))])[0]
        np.testing.assert_array_equal(found.correct[:, 0], (other.argmax(dim=1) == y).numpy())

    def test_removed_is_the_ensemble_of_the_rest(self) -> None:
        nets, (x, y) = tiny.networks(), tiny.data()
        found = coalitions(adapt(nets), (x, y), "removed", present=[[True, False, True]])
        rest = coalitions(adapt([nets[0], nets[2]]), (x, y), "removed", present=[[True, True]])
        np.testing.assert_allclose(found.log_likelihood, rest.log_likelihood, rtol=1e-6)

    def test_a_stream_of_nan_spoils_only_its_coalitions(self) -> None:
        class Broken(nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.full((len(x), tiny.CLASSES), torch.nan)

        for rule in ("mean_probability", "mean_logit"):
            found = coalitions(adapt([*tiny.networks(2), Broken()], rule=rule), tiny.data(), "removed")
            by_label = dict(zip(found.labels, found.log_likelihood.T, strict=True))
            assert np.isfinite(by_label["removed:110"]).all()
            assert np.isnan(by_label["removed:111"]).all()
            assert not found.correct[:, list(found.labels).index("removed:001")].any()

    def test_streams_are_run_once(self) -> None:
        model, data = made("uncoupled"), tiny.data()
        collective = adapt(model)
        coalitions(collective, data, "zeroed")
        before = model.streams[0].runs
        coalitions(collective, data, "zeroed")
        assert model.streams[0].runs == before + 1

    def test_encoders_of_coupled_streams_are_run_once(self) -> None:
        model, data, runs = made("coupled"), tiny.data(), []
        collective = adapt(model)
        coalitions(collective, data, "removed")
        handle = model.streams[0].encoder[0].register_forward_hook(lambda *_: runs.append(1))
        for how in ("removed", "zeroed"):
            runs.clear()
            coalitions(collective, data, how)
            assert len(runs) == 1
        handle.remove()


class TestManyStreams:
    def test_everybody_who_is_there_so_far(self) -> None:
        bits = coalitions_of(12, "zeroed", orders=40, seed=1)
        sizes = bits.sum(axis=1)
        assert len(np.unique(bits, axis=0)) == len(bits)
        assert (sizes == 1).sum() == (sizes == 11).sum() == 12 and (sizes == 0).sum() == (sizes == 12).sum() == 1
        assert len(bits) <= 40 * 9 + 2 * 12 + 2
        np.testing.assert_array_equal(bits, coalitions_of(12, "zeroed", orders=40, seed=1))
        there = {tuple(row) for row in bits.tolist()}
        for places in places_of(12, 40, seed=1):
            assert all(tuple((places < size).tolist()) in there for size in range(13))
        assert 200 < len(coalitions_of(9, "removed")) < 511

    @pytest.mark.parametrize("orders", [1, 4, 20])
    def test_sampled_shapley_values_of_an_additive_game_are_exact(self, orders: int) -> None:
        bits, worth = coalitions_of(11, "zeroed", orders=orders), np.arange(11.0)
        found = shapley_of_orders(bits, (bits @ worth)[:, None], places_of(11, orders))
        assert found is not None
        np.testing.assert_allclose(found[0][:, 0], worth, atol=1e-12)

    def test_those_of_equal_streams_are_equal(self) -> None:
        bits = coalitions_of(11, "zeroed", orders=4)
        found = shapley_of_orders(bits, np.sqrt(bits.sum(1))[:, None], places_of(11, 4))
        assert found is not None
        np.testing.assert_allclose(found[0][:, 0], np.sqrt(11) / 11, atol=1e-12)
        np.testing.assert_allclose(found[1], 0, atol=1e-12)

    def test_forty_streams_and_one(self) -> None:
        found = coalitions(adapt(tiny.networks(40)), tiny.data(10), orders=1)
        assert len(found.labels[0].partition(":")[2]) == 40
        alone = coalitions(adapt(tiny.networks(1)), tiny.data(10))
        assert alone.labels == ("removed:1",)


@pytest.mark.parametrize("kind", KINDS)
class TestRestored:
    def test_to_the_bit(self, kind: str) -> None:
        model, (x, y) = made(kind), tiny.data()
        loss = (model[0] if kind == "modules" else model)(x)
        (loss[0] if isinstance(loss, tuple) else loss).sum().backward()
        model.train()
        next(iter(model.children())).eval()  # a mode of its own
        before = copy.deepcopy(state_of(model))
        collective = adapt(model)
        for how in collective.absences:
            coalitions(collective, (x, y), how)
        stream_failure(collective, (x, y))
        gradient_contributions(collective, (x, y))
        assert same_state(before, state_of(model))

    def test_also_when_evaluation_raises(self, kind: str) -> None:
        model, (x, y) = made(kind), tiny.data()
        model.train()
        before = copy.deepcopy(state_of(model))
        collective = adapt(model)

        def interrupt(done: int, of: int) -> None:
            raise KeyboardInterrupt

        for how in collective.absences:
            with pytest.raises(KeyboardInterrupt):
                coalitions(collective, (x, y), how, progress=interrupt)
            assert same_state(before, state_of(model))
        with pytest.raises(RuntimeError):
            stream_failure(collective, (torch.zeros(4, tiny.FEATURES + 1), y[:4]))
        with pytest.raises(ZeroDivisionError), measured(model), collective.absent([collective.streams[0]], "zeroed"):
            collective.logits(x)
            raise ZeroDivisionError
        assert same_state(before, state_of(model))


class TestFailure:
    def test_keys_of_the_seed(self) -> None:
        model, (x, y) = made("uncoupled"), tiny.data()
        found = stream_failure(adapt(model), (x, y))
        assert list(found) == ["all", "without_a", "without_b", "without_c", "half_streams"]
        by_coalition = coalitions(adapt(model), (x, y), "zeroed").accuracy()
        assert found["all"] == by_coalition["zeroed:111"]
        assert found["without_b"] == by_coalition["zeroed:101"]
        expected = np.mean([by_coalition[f"zeroed:{bits}"] for bits in ("011", "101", "110")])
        assert found["half_streams"] == pytest.approx(expected)
        assert (found.low <= found.accuracy).all() and (found.accuracy <= found.high).all()

    def test_many_draws_of_half(self) -> None:
        found = stream_failure(adapt(tiny.networks(12)), tiny.data(), draws=50, seed=1)
        again = stream_failure(adapt(tiny.networks(12)), tiny.data(), draws=50, seed=1)
        assert found.draws == 50 and found["half_streams"] == again["half_streams"]

    def test_one_stream_has_no_half(self) -> None:
        assert list(stream_failure(adapt(tiny.networks(1)), tiny.data())) == ["all", "without_stream_0"]


class TestGradients:
    def test_closed_form_of_the_mean_logit(self) -> None:
        nets, (x, y) = tiny.networks(), tiny.data()
        found = gradient_contributions(adapt(nets, rule="mean_logit"), (x, y), batch_size=16)
        with torch.no_grad():
            said = torch.stack([net.eval()(x) for net in nets]).mean(dim=0)
        error = torch.softmax(said, dim=1) - nn.functional.one_hot(y, tiny.CLASSES)
        expected = (error / 3).norm(dim=1).double().numpy()
        np.testing.assert_allclose(found, np.repeat(expected[:, None], 3, axis=1), rtol=1e-5)

    def test_finite_differences_of_the_pooled_output(self) -> None:
        model, (x, y) = made("geofractal").double().eval(), tiny.data(5)
        x = x.double()
        found = gradient_contributions(adapt(model), (x, y))
        with torch.no_grad():
            pooled = {n: model.heads[n](model.streams[n](x), target_fingerprint=model.heads[m].fingerprint).mean(dim=1)
                      for n, m in zip("abc", "bca", strict=True)}  # fmt: skip
            slopes = np.zeros((5, tiny.WIDTH))
            for unit in range(tiny.WIDTH):
                losses = []
                for step in (1e-5, -1e-5):
                    moved = {n: one.clone() for n, one in pooled.items()}
                    moved["b"][:, unit] += step
                    logits = model.classifier(model.fusion(moved)[0])
                    losses.append(nn.functional.cross_entropy(logits, y, reduction="none").numpy())
                slopes[:, unit] = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose(found[:, 1], np.linalg.norm(slopes, axis=1), rtol=1e-5)

    def test_of_a_frozen_collective(self) -> None:
        model, data = made("geofractal"), tiny.data()
        expected = gradient_contributions(adapt(model), data)
        model.requires_grad_(False)
        np.testing.assert_array_equal(gradient_contributions(adapt(model), data), expected)

    def test_a_vote_has_no_gradient(self) -> None:
        with pytest.raises(WaterjarError, match="cut off"):
            gradient_contributions(adapt(tiny.networks(), rule="vote"), tiny.data())
