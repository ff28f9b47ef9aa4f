"""What all networks have in common."""

import copy

import numpy as np
import pytest
import torch

from waterjar.errors import WaterjarError
from waterjar.lab import networks

pytestmark = pytest.mark.torch

SMALL = {
    "cnn": {"channels": (4, 6), "dense": (7,)},
    "mlp": {"hidden": (12, 7)},
    "resnet18": {"width": 4},
    "small_cnn": {"width": 4},
    "vit": {"dim": 8, "depth": 2, "heads": 2},
}


def images(count=3, shape=(3, 32, 32), seed=0):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def small(name, seed=0, n_classes=10, **settings):
    return networks.build(name, n_classes=n_classes, seed=seed, **(SMALL[name] | settings))


def test_all_are_found_by_their_module_names():
    assert networks.names() == ("cnn", "mlp", "resnet18", "small_cnn", "vit") == tuple(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_features_and_logits_are_one_pass(name):
    network = small(name).eval()
    x = images()
    logits, features = network.forward_features(x, network.layer_names, readout="raw")
    assert logits.shape == (3, 10)
    assert torch.equal(logits, network(x))
    assert tuple(features) == network.layer_names
    assert network.layer_names[-1] == "penultimate" and features["penultimate"].ndim == 2
    assert torch.equal(network.head(features["penultimate"]), logits)


@pytest.mark.parametrize("name", SMALL)
def test_every_readout_is_what_the_table_says(name):
    network = small(name).eval()
    x = images()
    with torch.no_grad():
        raw = network.forward_features(x, readout="raw")[1]
        pooled = network.forward_features(x)[1]
        flat = network.forward_features(x, readout="flat")[1]
    for layer, value in raw.items():
        assert pooled[layer].ndim == flat[layer].ndim == 2
        assert np.array_equal(flat[layer].numpy(), value.numpy().reshape(3, -1))
        if value.ndim == 4:
            expected = value.numpy().astype(np.float64).mean((2, 3))
            np.testing.assert_allclose(pooled[layer].numpy(), expected, rtol=1e-5, atol=1e-6)
        else:
            assert torch.equal(pooled[layer], value[:, 0] if value.ndim == 3 else value)


def test_only_the_layers_asked_for_in_the_order_asked_for():
    _, features = small("small_cnn").forward_features(images(), ["conv3", "conv1"])
    assert list(features) == ["conv3", "conv1"]
    assert features["conv3"].shape == (3, 16) and features["conv1"].shape == (3, 4)


@pytest.mark.parametrize("name", SMALL)
def test_weights_are_a_function_of_the_seed_alone(name):
    first = small(name, seed=5)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(99)  # another global state must not matter
        again = small(name, seed=5)
    other = small(name, seed=6)
    for key, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[key])
    assert any(not torch.equal(value, other.state_dict()[key]) for key, value in first.state_dict().items())
    assert first.head.weight.abs().sum() > 0


@pytest.mark.parametrize("name", SMALL)
def test_another_number_of_classes_changes_only_the_head(name):
    ten, sixty = small(name, n_classes=10).state_dict(), small(name, n_classes=60).state_dict()
    differing = {key for key in ten if not torch.equal(ten[key], sixty[key])}
    assert differing == {"head.weight", "head.bias"}


@pytest.mark.parametrize(("name", "settings"), [("resnet18", {}), ("small_cnn", {"norm": "batch"})])
def test_in_eval_mode_an_image_does_not_see_its_neighbours(name, settings):
    """Mistake 12: evaluating with train-mode batch norm. The last line shows that this test can tell."""
    network = small(name, **settings)
    x = images(6)
    with torch.no_grad():
        network(x)  # running statistics away from their first values
        network.eval()
        assert torch.allclose(network(x)[:1], network(x[:1]), atol=1e-5)
        network.train()
        assert not torch.allclose(network(x)[:1], network(x[:2])[:1], atol=1e-2)


@pytest.mark.parametrize("settings", [{}, {"norm": "group"}])
def test_without_batch_norm_it_never_does(settings):
    network = small("small_cnn", **settings)
    assert not networks.normalises_by_batch(network)
    x = images(6)
    with torch.no_grad():
        assert torch.allclose(network(x)[:1], network(x[:1]), atol=1e-5)


def test_who_normalises_by_batch():
    assert networks.normalises_by_batch(small("resnet18"))
    assert networks.normalises_by_batch(small("small_cnn", norm="batch"))
    assert not networks.normalises_by_batch(small("vit")) and not networks.normalises_by_batch(small("mlp"))


@pytest.mark.parametrize(("name", "settings"), [("resnet18", {}), ("small_cnn", {"norm": "batch"})])
def test_running_averages_are_refused_where_weights_are_all_there_is(name, settings):
    with pytest.raises(WaterjarError, match=f"network '{name}' normalises over the batch and keeps running averages"):
        networks.check_without_averages(small(name, **settings), name)


@pytest.mark.parametrize("name", ["cnn", "mlp", "small_cnn", "vit"])
def test_others_have_none(name):
    networks.check_without_averages(small(name), name)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 20, 24)])
def test_other_image_shapes(name, shape):
    network = networks.build(name, n_classes=5, image_shape=shape, seed=0, **SMALL[name])
    assert network.image_shape == shape and network.n_classes == 5
    assert network(images(2, shape)).shape == (2, 5)


@pytest.mark.parametrize("name", SMALL)
def test_a_loss_reaches_every_parameter(name):
    network = small(name)
    network(images()).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in network.parameters())


class ZeroTo(torch.nn.Module):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def forward(self, x):
        return x.new_zeros(len(x), self.units)


def test_a_replaced_stage_is_the_one_that_runs():
    network = small("mlp")
    changed = copy.deepcopy(network)
    changed.hidden1 = torch.nn.Sequential(torch.nn.Flatten(), ZeroTo(12))
    assert not torch.equal(network(images()), changed(images()))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: networks.build("resnet", n_classes=2, seed=0), "did you mean 'resnet18'"),
        (lambda: networks.build("resnet18", n_classes=2, seed=0, widht=3), "did you mean 'width'"),
        (lambda: networks.build("resnet18", n_classes=2, seed=0, width=0), "expected at least 1"),
        (lambda: networks.build("mlp", n_classes=2, seed=0, hidden=()), "hidden"),
        (lambda: networks.build("mlp", n_classes=0, seed=0), "at least one class"),
        (lambda: networks.build("mlp", n_classes=2, image_shape=(3, 0, 8), seed=0), "at least one class"),
        (lambda: networks.build("vit", n_classes=2, image_shape=(3, 30, 32), seed=0), "do not tile images of 30x32"),
        (lambda: networks.build("vit", n_classes=2, seed=0, dim=10, heads=4), "multiple of heads"),
        (
            lambda: networks.build("small_cnn", n_classes=2, image_shape=(3, 8, 8), seed=0, width=2),
            "of images of 8x8 conv3 has one pixel, and with width 2 one channel a group",
        ),
        (lambda: small("mlp").forward_features(images(), ["hiden1"]), "did you mean 'hidden1'"),
        (lambda: small("mlp").forward_features(images(), readout="pool"), "did you mean 'pooled'"),
    ],
)
def test_wrong_requests_are_one_clear_error(call, words):
    with pytest.raises(WaterjarError, match=words):
        call()
