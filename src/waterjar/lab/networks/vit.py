"""A small vision transformer: Dosovitskiy et al., "An image is worth 16x16 words" (ICLR 2021), eqs. 1-4.

    z_0 = [class token; patches E] + positions
    z'_l = MSA(LN(z_{l-1})) + z_{l-1},    z_l = MLP(LN(z'_l)) + z'_l,    y = LN(z_L)[class token]

Patches of 4x4 fit 32x32 images (64 tokens and the class token). The network itself uses torch's fused attention,
which hands no weights out; `Attention.weights` computes the very same ones from the same input.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional

from waterjar.errors import WaterjarError
from waterjar.lab.networks._initialisation import xavier_uniform
from waterjar.lab.networks._network import ImageShape, Network

Positive = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """The size of the transformer."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    patch: Positive = 4
    """Side of a patch in pixels; it must divide height and width."""
    dim: Positive = 64
    """Units of a token; the heads share them out evenly."""
    depth: Positive = 4
    heads: Positive = 4
    mlp_ratio: Positive = 2
    """Hidden units of a block's MLP, in multiples of `dim`."""


class Embedding(nn.Module):
    """Images (batch, channel, height, width) to tokens (batch, token, unit); token 0 is the class token."""

    def __init__(self, settings: Settings, image_shape: ImageShape) -> None:
        super().__init__()
        channels, height, width = image_shape
        self.patch = settings.patch
        tokens = (height // self.patch) * (width // self.patch)
        self.project = nn.Linear(channels * self.patch**2, settings.dim)
        self.class_token = nn.Parameter(torch.empty(1, 1, settings.dim))
        self.positions = nn.Parameter(torch.empty(1, tokens + 1, settings.dim))

    def fill(self, generator: torch.Generator) -> None:
        """N(0, 0.02^2) for positions and class token, as in the authors' code."""
        self.class_token.normal_(0.0, 0.02, generator=generator)
        self.positions.normal_(0.0, 0.02, generator=generator)

    def forward(self, images: Tensor) -> Tensor:
        """Patches in rows from the top left."""
        patches = functional.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        token = self.class_token.expand(len(images), -1, -1)
        return torch.cat([token, self.project(patches)], dim=1) + self.positions


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al., 2017): softmax(q k^T / sqrt(unit of a head)) v."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def _split(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, count, dim = tokens.shape
        qkv = self.qkv(tokens).view(batch, count, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        return query, key, value

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, token, unit) to the same."""
        mixed = functional.scaled_dot_product_attention(*self._split(tokens))
        result: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return result

    def weights(self, tokens: Tensor) -> Tensor:
        """The attention (batch, head, token, token) that `forward` gives these tokens; rows sum to 1."""
        query, key, _ = self._split(tokens)
        return torch.softmax(query @ key.transpose(-2, -1) / key.shape[-1] ** 0.5, dim=-1)


class Block(nn.Module):
    """One layer of the transformer, normalised before each half ("pre-norm")."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        dim, hidden = settings.dim, settings.mlp_ratio * settings.dim
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, settings.heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, token, unit) to the same."""
        tokens = tokens + self.attention(self.norm1(tokens))
        result: Tensor = tokens + self.mlp(self.norm2(tokens))
        return result


class ClassToken(nn.Module):
    """The class token, normalised."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (batch, token, unit) to units (batch, unit)."""
        result: Tensor = self.norm(tokens[:, 0])
        return result


def assemble(settings: Settings, n_classes: int, image_shape: ImageShape) -> Network:
    """Layers `embedding`, `block1` ... (tokens) and `penultimate` (units of the class token)."""
    if any(side % settings.patch for side in image_shape[1:]):
        raise WaterjarError(
            f"network 'vit': patches of {settings.patch}x{settings.patch} do not tile images of "
            f"{image_shape[1]}x{image_shape[2]}: choose a divisor of both sides"
        )
    if settings.dim % settings.heads:
        raise WaterjarError(
            f"network 'vit': {settings.heads} heads cannot share {settings.dim} units evenly: "
            "choose a dim that is a multiple of heads"
        )
    stages: dict[str, nn.Module] = {"embedding": Embedding(settings, image_shape)}
    for number in range(1, settings.depth + 1):
        stages[f"block{number}"] = Block(settings)
    stages["penultimate"] = ClassToken(settings.dim)
    return Network(stages, nn.Linear(settings.dim, n_classes), image_shape=image_shape, rule=xavier_uniform)
