"""A linear softmax classifier: small enough that all there is to know about it has a closed form in numpy."""

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from torch import nn

from waterjar.lab.networks._initialisation import fan_in_uniform
from waterjar.lab.networks._network import Network


def network(n_inputs=3, n_classes=4, seed=0):
    """float64, logits = W x + b."""
    linear = nn.utils.skip_init(nn.Linear, n_inputs, n_classes, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        linear.weight.normal_(generator=generator)
        linear.bias.normal_(generator=generator)
    return Network({"penultimate": nn.Flatten()}, linear, image_shape=(1, 1, n_inputs), rule=fan_in_uniform)


def batch(count, n_inputs=3, n_classes=4, seed=0):
    """Inputs (batch, 1, 1, unit) float64 that float32 holds exactly, labels (batch,)."""
    generator = torch.Generator().manual_seed(1000 + seed)
    inputs = torch.randn(count, 1, 1, n_inputs, generator=generator).double()
    return inputs, torch.randint(n_classes, (count,), generator=generator)


def design(inputs):
    """Inputs (batch, unit + 1) with a last column of ones, for the bias."""
    x = inputs.numpy().reshape(len(inputs), -1)
    return np.hstack([x, np.ones((len(x), 1))])


def matrix(net):
    """[W b], (class, unit + 1)."""
    return np.hstack([net.head.weight.detach().numpy(), net.head.bias.detach().numpy()[:, None]]).copy()


def joined(tensors):
    """[weight, bias] tensors as one matrix (class, unit + 1)."""
    weight, bias = tensors
    return np.hstack([weight.numpy(), bias.numpy()[:, None]])


def logits(theta, inputs):
    return design(inputs) @ theta.T


def cross_entropy(theta, inputs, labels):
    """Per example, (batch,)."""
    return -log_softmax(logits(theta, inputs), axis=1)[np.arange(len(labels)), labels.numpy()]


def residual(theta, inputs, labels):
    """p - e_y, (batch, class): the gradient of the cross-entropy with respect to the logits."""
    p = softmax(logits(theta, inputs), axis=1)
    p[np.arange(len(labels)), labels.numpy()] -= 1.0
    return p


def cross_entropy_gradient(theta, inputs, labels):
    """Of the mean, (class, unit + 1)."""
    return residual(theta, inputs, labels).T @ design(inputs) / len(labels)


def finite_difference(function, theta, h=1e-6):
    """Central differences of a scalar function at theta."""
    out = np.zeros_like(theta)
    for at in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[at] = h
        out[at] = (function(theta + step) - function(theta - step)) / (2 * h)
    return out
