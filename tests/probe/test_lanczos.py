"""The iteration against matrices whose eigenvalues numpy gives."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from waterjar.probe.lanczos import Found, largest_eigenvalue  # noqa: E402

pytestmark = pytest.mark.torch


def find(matrix: np.ndarray, seed: int = 0, tolerance: float = 1e-6, most: int = 400, room: int | None = None) -> Found:
    a = torch.from_numpy(matrix)
    return largest_eigenvalue(
        lambda v: a @ v,
        len(matrix),
        generator=torch.Generator().manual_seed(seed),
        device=torch.device("cpu"),
        tolerance=tolerance,
        max_products=most,
        rounding=float(np.finfo(np.float64).eps),
        room=room,
    )


def symmetric(eigenvalues: np.ndarray, seed: int = 0) -> np.ndarray:
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(eigenvalues),) * 2))[0]
    return turn @ np.diag(eigenvalues) @ turn.T


@pytest.mark.parametrize("room", [None, 12, 30])
@pytest.mark.parametrize("seed", range(5))
def test_random_matrices(seed: int, room: int | None) -> None:
    a = np.random.default_rng(seed).standard_normal((150, 150))
    a = a + a.T
    largest = np.linalg.eigvalsh(a)[-1]
    found = find(a, seed, room=room)
    assert found.settled
    assert abs(found.value - largest) <= found.bound + 1e-9 <= 1e-6 * largest + 2e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "eigenvalues",
    [
        [1.0] * 70 + [-1.0] * 80,  # two steps make the space complete
        [0.0] * 149 + [2.0],
        [0.0] * 149 + [-2.0],
        [-3.0] * 150,
        [0.0] * 150,
        [5.0] * 3 + [-5.0] * 3 + [0.0] * 144,
        [1e-30] * 75 + [-1e-30] * 75,
    ],
)
def test_few_distinct_eigenvalues(eigenvalues: list[float], seed: int) -> None:
    found = find(symmetric(np.array(eigenvalues)), seed)
    assert found.settled
    assert found.value == pytest.approx(max(eigenvalues), abs=1e-13 * max(map(abs, eigenvalues)))


def test_a_start_without_the_eigenvector_starts_again() -> None:
    size = 100
    blind = torch.randn(size, generator=torch.Generator().manual_seed(3), dtype=torch.float64).numpy()
    blind /= np.linalg.norm(blind)
    other = np.random.default_rng(0).standard_normal(size)
    other -= (other @ blind) * blind
    other /= np.linalg.norm(other)
    # the first start is an eigenvector of 1; the largest eigenvalue has one orthogonal to it
    found = find(np.outer(blind, blind) + 7.0 * np.outer(other, other), seed=3)
    assert found.settled
    assert found.value == pytest.approx(7.0)


def test_out_of_products() -> None:
    a = symmetric(np.linspace(-1.0, 1.0, 300))
    found = find(a, tolerance=1e-12, most=20)
    assert not found.settled and found.products == 20
    assert found.value < 1.0 and found.bound > 1e-12
    again = find(symmetric(np.array([3.0] + [0.0] * 99)), most=2)  # complete with the last product, not confirmed
    assert not again.settled and again.value == pytest.approx(3.0)


def test_not_finite() -> None:
    for size in (10, 100):
        a = np.eye(size)
        a[3, 4] = np.nan
        assert np.isnan(find(a).value)
