"""The largest eigenvalue of a symmetric matrix of which only products with vectors are at hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SMALL = 64
"""Up to this size the matrix itself is made, column by column."""
_FEWEST = 12
"""Products before a bound is believed: a start that hardly contains the eigenvector may look settled at first."""
_MARGIN = 0.02
"""Of the tolerance, what the bound must meet: where eigenvalues crowd at the top, a looser one stops at the second."""
_ROOM = 2**30
"""Bytes that the vectors kept may take; never fewer than `_FEWEST` of them are."""
_ROUNDING = 16.0
"""A remainder below so many units of rounding, relative to the matrix, is nothing."""

Product = Callable[[Tensor], Tensor]
"""v -> A v, both (size), float64."""


@dataclass(frozen=True)
class Found:
    """What was found: `settled` if an eigenvalue is known to be within the tolerance of `value`."""

    value: float
    bound: float
    """An eigenvalue lies no farther than this from `value`."""
    products: int
    settled: bool


def largest_eigenvalue(
    product: Product,
    size: int,
    *,
    generator: torch.Generator,
    device: torch.device,
    tolerance: float,
    max_products: int,
    rounding: float,
    room: int | None = None,
) -> Found:
    """The largest (algebraic) eigenvalue by Lanczos iteration with full reorthogonalisation (Parlett 1998, ch. 13).

    Of the Ritz pair (theta, V s) of the largest theta after k products the residual is ||A V s - theta V s|| =
    beta_k |s_k|, and an eigenvalue lies within it: the iteration ends when that is at most 0.02 tolerance * |theta|,
    which leaves room for eigenvalues that crowd at the top. The start is random, so that its Krylov space holds every
    distinct eigenvalue; when that space is complete (beta = 0), a fresh start orthogonal to the vector found looks for
    what rounding may have hidden, until one changes nothing.
    When memory is full, the better half of the Ritz vectors is kept and the iteration goes on from them (thick restart,
    Wu & Simon 2000). Up to `SMALL` dimensions the matrix is made instead, and the answer is exact.

    Parameters
    ----------
    rounding : relative precision of the products; differences below it times the size of the matrix are nothing.
    room : how many vectors may be kept, 4 or more; by default as many as fit in 1 GB.
    """
    if size <= min(SMALL, max_products):
        return _exact(product, size, device)
    kept = min(max_products + 1, max(_FEWEST, _ROOM // (8 * size))) if room is None else room
    locked: list[Tensor] = []
    best, products, scale = Found(-math.inf, math.inf, 0, False), 0, 0.0
    while True:
        block = _Block(kept, locked, _fresh(size, generator, device, locked))
        while True:
            if products == max_products:
                return _better(best, Found(block.value, block.bound, products, False))
            products += 1
            if not block.extend(product):
                return Found(math.nan, math.nan, products, True)
            scale = max(scale, block.scale)
            nothing = _ROUNDING * rounding * scale
            complete = block.bound_of_all <= nothing or block.dimension + len(locked) >= size
            if complete:
                break
            aim = max(_MARGIN * tolerance * abs(block.value), nothing)
            if not locked and products >= min(_FEWEST, max_products) and block.bound <= aim:
                return Found(block.value, block.bound, products, True)
            if locked and block.value + block.bound <= best.value + max(tolerance * abs(best.value), nothing):
                return Found(best.value, best.bound, products, True)
        found = Found(block.value, block.bound, products, True)
        if block.value <= best.value + nothing or block.dimension + len(locked) >= size:
            return _better(best, found)
        best = found
        locked.append(block.vector())


def _better(a: Found, b: Found) -> Found:
    """The larger value, with what is known of it; settled only if the last word, b, is. NaN: there is none yet."""
    larger = b if b.value > a.value else a
    return Found(larger.value, larger.bound, b.products, b.settled)


def _exact(product: Product, size: int, device: torch.device) -> Found:
    columns = [product(row) for row in torch.eye(size, dtype=torch.float64, device=device)]
    matrix = torch.stack(columns).cpu().numpy()
    if not np.isfinite(matrix).all():
        return Found(math.nan, math.nan, size, True)
    return Found(float(np.linalg.eigvalsh((matrix + matrix.T) / 2.0)[-1]), 0.0, size, True)


def _fresh(size: int, generator: torch.Generator, device: torch.device, apart_from: list[Tensor]) -> Tensor:
    """A random direction, orthogonal to others."""
    vector = torch.randn(size, generator=generator, dtype=torch.float64).to(device)
    for _ in range(2):
        for other in apart_from:
            vector -= (other @ vector) * other
    return torch.nn.functional.normalize(vector, dim=0)


class _Block:
    """A Krylov space, orthogonal to what is locked, and the projection of the matrix on it."""

    def __init__(self, room: int, locked: list[Tensor], start: Tensor) -> None:
        self._locked = locked
        self._basis = torch.empty((room, len(start)), dtype=torch.float64, device=start.device)
        self._next = start
        self._projected = np.zeros((room, room))
        self._weights = np.zeros(0)
        self.dimension = 0
        """Of the space at hand: what restarts threw away may come again."""
        self.value, self.bound, self.bound_of_all = math.nan, math.inf, math.inf
        self.scale = 0.0
        """How large the matrix is, as far as it was seen."""

    def extend(self, product: Product) -> bool:
        """One product more; False if it is not finite."""
        if self.dimension == len(self._basis):
            self._restart()
        k = self.dimension
        self._basis[k] = self._next
        image = product(self._next)
        if not bool(torch.isfinite(image).all()):
            return False
        self.dimension = k + 1
        basis = self._basis[: k + 1]
        column = np.zeros(k + 1)
        for _ in range(2):  # twice is enough (Parlett 1998, sec. 6.9)
            along = basis @ image
            column += along.cpu().numpy()
            image = image - along @ basis
            for other in self._locked:
                image = image - (other @ image) * other
        self._projected[: k + 1, k] = self._projected[k, : k + 1] = column
        length = float(torch.linalg.vector_norm(image))
        values, vectors = np.linalg.eigh(self._projected[: k + 1, : k + 1])
        self.scale = max(self.scale, length, float(np.abs(values).max()))
        self.value, self._weights = float(values[-1]), vectors[:, -1]
        self.bound, self.bound_of_all = length * abs(float(vectors[-1, -1])), length
        if length > 0.0:
            self._next = image / length
        return True

    def vector(self) -> Tensor:
        """The Ritz vector of the largest value."""
        weights = torch.from_numpy(self._weights).to(self._basis.device)
        found: Tensor = weights @ self._basis[: self.dimension]
        return torch.nn.functional.normalize(found, dim=0)

    def _restart(self) -> None:
        values, vectors = np.linalg.eigh(self._projected)
        kept = len(values) // 2
        best = torch.from_numpy(np.ascontiguousarray(vectors[:, -kept:].T)).to(self._basis.device)
        self._basis[:kept] = best @ self._basis
        self._projected[:] = 0.0
        self._projected[:kept, :kept] = np.diag(values[-kept:])
        self.dimension = kept
