"""The random-label probe: what it measures, and that it leaves no trace."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe import random_label_probe, sharpness  # noqa: E402

pytestmark = pytest.mark.torch


def network(seed: int = 0) -> nn.Sequential:
    """With everything that a probe could disturb: batch statistics, dropout, gradients, a mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))


def inputs(count: int = 64) -> torch.Tensor:
    return torch.randn(count, 20, generator=torch.Generator().manual_seed(1))


def state_of(model: nn.Module, optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Every number of a training in progress."""
    found = [tensor.clone() for tensor in model.state_dict().values()]
    found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
    found += [v.clone() for s in optimiser.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    return [*found, torch.random.get_rng_state()]


def trained(model: nn.Module, steps: int = 2) -> torch.optim.Optimizer:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        model(inputs()).square().mean().backward()
        optimiser.step()
    return optimiser


class TestUntouched:
    @pytest.mark.parametrize("training", [True, False])
    def test_to_the_bit(self, training: bool) -> None:
        model = network()
        with torch.random.fork_rng():
            optimiser = trained(model)
        model.train(training)
        model[3].eval()  # a mode of its own
        modes = [module.training for module in model.modules()]
        before, numpy_state = state_of(model, optimiser), np.random.get_state()[1].copy()  # noqa: NPY002
        x = inputs()
        kept = x.clone()
        random_label_probe(model, x, n_classes=4, seed=3, max_epochs=3)
        for old, new in zip(before, state_of(model, optimiser), strict=True):
            assert torch.equal(old, new)
        assert [module.training for module in model.modules()] == modes
        assert torch.equal(x, kept)
        np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
        assert torch.is_grad_enabled()

    def test_training_goes_on_as_if_it_had_not_been(self) -> None:
        ends = []
        for probed in (False, True):
            model = network()
            with torch.random.fork_rng():
                torch.manual_seed(5)
                optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
                for step in range(4):
                    if probed and step == 2:
                        random_label_probe(model, inputs(), n_classes=4, seed=0, max_epochs=2)
                    optimiser.zero_grad()
                    model(inputs()).square().mean().backward()  # dropout draws from the global generator
                    optimiser.step()
            ends.append([p.detach().clone() for p in model.parameters()])
        for a, b in zip(*ends, strict=True):
            assert torch.equal(a, b)


class Draws(nn.Module):
    """A forward that draws from every global generator, as augmentations inside networks do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (1.0 + 0.1 * random.random() + 0.1 * float(np.random.randn()) + 0.1 * torch.rand(()))  # noqa: NPY002


@pytest.mark.parametrize("generator", ["MT19937", "PCG64"])
@pytest.mark.parametrize("probe", ["random_labels", "sharpness"])
def test_no_global_generator_moves(probe: str, generator: str) -> None:
    model, x = nn.Sequential(Draws(), network()), inputs()
    numpys_own = np.random.get_bit_generator()
    np.random.set_bit_generator(getattr(np.random, generator)(5))
    try:
        found = []
        for before in (1, 2):
            random.seed(before)
            np.random.randn()  # noqa: NPY002 - of a pair: the second one waits in the state
            states = random.getstate(), str(np.random.get_state(legacy=False))  # noqa: NPY002
            if probe == "sharpness":
                result = sharpness(model, x, torch.arange(64) % 4, seed=0, max_iterations=5)
                found.append((result.value, result.note))
            else:
                found.append(random_label_probe(model, x, n_classes=4, seed=0, max_epochs=2).accuracy.tolist())
            assert (random.getstate(), str(np.random.get_state(legacy=False))) == states  # noqa: NPY002
    finally:
        np.random.set_bit_generator(numpys_own)
    assert str(found[0]) == str(found[1])  # whatever the outside drew before


class TestMeasure:
    def test_the_same_seed_gives_the_same_bits_whatever_the_global_one(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(1)
            one = random_label_probe(network(), inputs(), n_classes=4, seed=7, max_epochs=4)
            torch.manual_seed(2)
            two = random_label_probe(network(), inputs(), n_classes=4, seed=7, max_epochs=4)
        np.testing.assert_array_equal(one.accuracy, two.accuracy)
        other = random_label_probe(network(), inputs(), n_classes=4, seed=8, max_epochs=4)
        assert one.accuracy.tolist() != other.accuracy.tolist()

    def test_a_fresh_network_learns_and_a_dead_one_does_not(self) -> None:
        fresh = random_label_probe(network(), inputs(), n_classes=4, seed=0, lr=0.1, target=0.9)
        assert 1 <= float(fresh.epochs) <= 60
        assert fresh.epochs.reason == "present"
        assert len(fresh.accuracy) == float(fresh.epochs) + 1
        assert fresh.accuracy[-1] >= 0.9 > fresh.accuracy[:-1].max()
        dead = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 4))
        with torch.no_grad():
            dead[0].bias.fill_(-1000.0)
        never = random_label_probe(dead, inputs(), n_classes=4, seed=0, lr=0.1, target=0.9, max_epochs=5)
        assert never.epochs.reason == "never_reached" and never.epochs.censored
        assert np.isnan(float(never.epochs))
        assert len(never.accuracy) == 6

    def test_labels_are_even_and_a_target_met_at_once_takes_no_epoch(self) -> None:
        constant = nn.Linear(20, 4)
        with torch.no_grad():
            constant.weight.zero_()
            constant.bias.copy_(torch.tensor([1.0, 0.0, 0.0, 0.0]))
        found = random_label_probe(constant, inputs(64), n_classes=4, seed=0, target=0.25)
        assert found.accuracy.tolist() == [0.25]  # a quarter of the labels, exactly
        assert float(found.epochs) == 0.0

    def test_divergence_has_its_own_reason(self) -> None:
        found = random_label_probe(network(), inputs(), n_classes=4, seed=0, lr=1e30, max_epochs=5)
        assert found.epochs.reason == "not_a_number"

    def test_inside_no_grad_and_inference_mode(self) -> None:
        plain = random_label_probe(network(), inputs(), n_classes=4, seed=0, max_epochs=2)
        model, x = network(), inputs()
        with torch.no_grad():
            np.testing.assert_array_equal(
                random_label_probe(model, x, n_classes=4, seed=0, max_epochs=2).accuracy, plain.accuracy
            )
        with torch.inference_mode():
            inside = inputs()
            np.testing.assert_array_equal(
                random_label_probe(model, inside, n_classes=4, seed=0, max_epochs=2).accuracy, plain.accuracy
            )

    def test_frozen_parameters_stay_frozen_and_a_single_sample_left_over_is_trained(self) -> None:
        model = network()
        model[0].weight.requires_grad_(False)
        found = random_label_probe(model, inputs(33), n_classes=4, seed=0, batch_size=16, max_epochs=2)
        assert len(found.accuracy) == 3  # 33 = 16 + 17: batch normalisation takes it


class TestRefused:
    def test_in_words(self) -> None:
        with pytest.raises(WaterjarError, match="at least 2 classes"):
            random_label_probe(network(), inputs(), n_classes=1, seed=0)
        with pytest.raises(WaterjarError, match="an input of each"):
            random_label_probe(network(), inputs(3), n_classes=4, seed=0)
        with pytest.raises(WaterjarError, match="target=0"):
            random_label_probe(network(), inputs(), n_classes=4, seed=0, target=0.0)
        with pytest.raises(WaterjarError, match="max_epochs=0"):
            random_label_probe(network(), inputs(), n_classes=4, seed=0, max_epochs=0)
        with pytest.raises(WaterjarError, match="no parameters"):
            random_label_probe(nn.Identity(), inputs(), n_classes=4, seed=0)
        frozen = copy.deepcopy(network()).requires_grad_(False)
        with pytest.raises(WaterjarError, match="nothing to fit"):
            random_label_probe(frozen, inputs(), n_classes=4, seed=0)
        tied = nn.Linear(20, 4)
        tied.extra = tied.weight * 2  # a tensor in the middle of a graph
        with pytest.raises(WaterjarError, match="between training steps"):
            random_label_probe(tied, inputs(), n_classes=4, seed=0)

    def test_more_classes_than_outputs(self) -> None:
        with pytest.raises(WaterjarError, match="n_classes=5, but the network gives"):
            random_label_probe(network(), inputs(), n_classes=5, seed=0)
        with pytest.raises(WaterjarError, match="with an output of each class"):
            random_label_probe(nn.Sequential(network(), nn.Flatten(0)), inputs(), n_classes=4, seed=0)

    def test_a_seed_below_zero(self) -> None:
        with pytest.raises(WaterjarError, match="seed=-1"):
            random_label_probe(network(), inputs(), n_classes=4, seed=-1)
        with pytest.raises(WaterjarError, match="seed=-1"):
            sharpness(network(), inputs(), torch.arange(64) % 4, seed=-1)
