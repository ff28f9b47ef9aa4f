"""Each network written out once more, in numpy or with bare functions, from its weights."""

import math

import numpy as np
import pytest
import torch
from scipy.special import erf, softmax
from torch.nn import functional

from waterjar.lab import networks

pytestmark = pytest.mark.torch


def double(name, **settings):
    network = networks.build(name, n_classes=5, seed=1, **settings).double().eval()
    weights = {key: value.numpy() for key, value in network.state_dict().items()}
    return network, weights


def images(count, shape, seed=0):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def logits_of(network, x):
    with torch.no_grad():
        return network(x).numpy()


def test_mlp():
    network, w = double("mlp", image_shape=(2, 3, 3), hidden=(6, 4))
    x = images(3, (2, 3, 3))
    z = x.numpy().transpose(0, 2, 3, 1).reshape(3, -1)  # pixel after pixel
    z = np.maximum(z @ w["hidden1.1.weight"].T + w["hidden1.1.bias"], 0)
    z = np.maximum(z @ w["penultimate.0.weight"].T + w["penultimate.0.bias"], 0)
    np.testing.assert_allclose(logits_of(network, x), z @ w["head.weight"].T + w["head.bias"], rtol=1e-12)


def convolve(x, weight, bias, stride):
    """3x3, padding 1, by the definition."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = (math.ceil(side / stride) for side in x.shape[2:])
    out = np.zeros((len(x), len(weight), height, width))
    for i in range(height):
        for j in range(width):
            window = padded[:, :, i * stride : i * stride + 3, j * stride : j * stride + 3]
            out[:, :, i, j] = np.einsum("bchw,ochw->bo", window, weight) + bias
    return out


def group_norm(maps, groups, scale, shift):
    """Over the channels of a group and all pixels of one image."""
    parts = maps.reshape(len(maps), groups, -1)
    normal = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    return normal.reshape(maps.shape) * scale[:, None, None] + shift[:, None, None]


@pytest.mark.parametrize(("settings", "groups"), [({"norm": "none"}, None), ({}, {3: 1, 6: 2, 12: 4})])
def test_small_cnn(settings, groups):
    network, w = double("small_cnn", image_shape=(3, 9, 12), width=3, **settings)
    x = images(2, (3, 9, 12))
    z = x.numpy()
    for stage in ("conv1", "conv2", "conv3"):
        z = convolve(z, w[f"{stage}.0.weight"], w.get(f"{stage}.0.bias", np.zeros(1)), 2)
        if groups is not None:  # eight groups, or as many as share the channels out
            z = group_norm(z, groups[z.shape[1]], w[f"{stage}.1.weight"], w[f"{stage}.1.bias"])
        z = np.maximum(z, 0)
    units = np.stack([[z[b, :, i, j] for i in range(2) for j in range(2)] for b in range(2)]).reshape(2, -1)
    assert units.shape == (2, 2 * 2 * 12)  # pixel after pixel
    np.testing.assert_allclose(
        logits_of(network, x), units @ w["head.weight"].T + w["head.bias"], rtol=1e-10, atol=1e-12
    )


def layer_norm(x, scale, shift):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


def attention_of(z, w, heads):
    """Weights (batch, head, token, token) and values (batch, head, token, unit), one head after the other."""
    dim = z.shape[-1]
    size = dim // heads
    query, key, value = np.split(z @ w["qkv.weight"].T + w["qkv.bias"], 3, axis=-1)
    parts = [slice(h * size, (h + 1) * size) for h in range(heads)]
    scores = [query[..., p] @ key[..., p].transpose(0, 2, 1) / math.sqrt(size) for p in parts]
    return np.stack([softmax(s, -1) for s in scores], 1), np.stack([value[..., p] for p in parts], 1)


def test_vit_and_its_attention_weights():
    heads = 2
    network, w = double("vit", image_shape=(3, 8, 8), patch=4, dim=8, depth=2, heads=heads, mlp_ratio=3)
    # zero biases and unit scales would hide a swapped or forgotten one
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    x = images(2, (3, 8, 8))
    patches = np.stack(
        [[image[:, i : i + 4, j : j + 4].ravel() for i in (0, 4) for j in (0, 4)] for image in x.numpy()]
    )
    tokens = patches @ w["embedding.project.weight"].T + w["embedding.project.bias"]
    z = np.concatenate([np.repeat(w["embedding.class_token"], 2, 0), tokens], 1) + w["embedding.positions"]
    for block in ("block1", "block2"):
        inner = {key.removeprefix(f"{block}."): value for key, value in w.items() if key.startswith(block)}
        normed = layer_norm(z, inner["norm1.weight"], inner["norm1.bias"])
        attention = {k.removeprefix("attention."): v for k, v in inner.items() if k.startswith("attention")}
        weights, values = attention_of(normed, attention, heads)
        given = getattr(network, block).attention.weights(torch.from_numpy(normed)).detach().numpy()
        np.testing.assert_allclose(given, weights, rtol=1e-9)
        mixed = np.concatenate(list((weights @ values).transpose(1, 0, 2, 3)), -1)
        z = z + mixed @ attention["out.weight"].T + attention["out.bias"]
        normed = layer_norm(z, inner["norm2.weight"], inner["norm2.bias"])
        hidden = normed @ inner["mlp.0.weight"].T + inner["mlp.0.bias"]
        hidden = 0.5 * hidden * (1 + erf(hidden / math.sqrt(2)))
        z = z + hidden @ inner["mlp.2.weight"].T + inner["mlp.2.bias"]
    top = layer_norm(z[:, 0], w["penultimate.norm.weight"], w["penultimate.norm.bias"])
    np.testing.assert_allclose(logits_of(network, x), top @ w["head.weight"].T + w["head.bias"], rtol=1e-9, atol=1e-12)


def test_resnet18_wired_by_hand():
    network, _ = double("resnet18", image_shape=(3, 16, 16), width=3)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if tensor.is_floating_point() and ("running" in name or "norm" in name):
                tensor.uniform_(0.5, 1.5, generator=generator)
    w = network.state_dict()

    def norm(z, name):
        return functional.batch_norm(
            z, w[f"{name}.running_mean"], w[f"{name}.running_var"], w[f"{name}.weight"], w[f"{name}.bias"]
        )

    x = images(2, (3, 16, 16))
    z = norm(functional.conv2d(x, w["stem.0.weight"], padding=1), "stem.1").relu()
    sizes = []
    for layer, stride in ((1, 1), (2, 2), (3, 2), (4, 2)):
        for block in (0, 1):
            at, step = f"layer{layer}.{block}", stride if block == 0 else 1
            f = norm(functional.conv2d(z, w[f"{at}.conv1.weight"], stride=step, padding=1), f"{at}.norm1").relu()
            f = norm(functional.conv2d(f, w[f"{at}.conv2.weight"], padding=1), f"{at}.norm2")
            projected = layer > 1 and block == 0
            assert (f"{at}.shortcut.1.weight" in w) == projected
            skip = (
                norm(functional.conv2d(z, w[f"{at}.shortcut.1.weight"], stride=2), f"{at}.shortcut.2")
                if projected
                else z
            )
            z = (f + skip).relu()
        sizes.append(tuple(z.shape[1:]))
    assert sizes == [(3, 16, 16), (6, 8, 8), (12, 4, 4), (24, 2, 2)]
    expected = z.mean((2, 3)) @ w["head.weight"].T + w["head.bias"]
    np.testing.assert_allclose(logits_of(network, x), expected.numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", ["resnet18", "small_cnn"])
def test_gradients_of_narrow_networks(name):
    """oneDNN computes the float32 convolutions, but not the float64 ones; it has been wrong below 8 channels."""
    narrow = networks.build(name, n_classes=5, image_shape=(3, 16, 16), seed=1, width=4)
    reference, _ = double(name, image_shape=(3, 16, 16), width=4)
    x = images(4, (3, 16, 16))
    narrow.train()(x.float()).square().sum().backward()
    reference.train()(x).square().sum().backward()
    for (key, given), expected in zip(narrow.named_parameters(), reference.parameters(), strict=True):
        scale = float(expected.grad.abs().max())
        assert float((given.grad - expected.grad).abs().max()) < 1e-3 * scale, key
