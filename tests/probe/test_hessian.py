"""Sharpness against Hessians that are known, or computed in full by torch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe import sharpness  # noqa: E402

pytestmark = pytest.mark.torch


class Quadratic(nn.Module):
    """w' A w / 2 for every sample: its Hessian is A."""

    def __init__(self, eigenvalues: list[float]) -> None:
        super().__init__()
        n = len(eigenvalues)
        rotation = torch.linalg.qr(torch.randn(n, n, generator=torch.Generator().manual_seed(0)).double())[0]
        self.register_buffer("a", rotation @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ rotation.T)
        self.w = nn.Parameter(torch.arange(1.0, n + 1).double())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (0.5 * self.w @ self.a @ self.w).expand(len(x))


def mean(outputs: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    return outputs.mean()


ONE = torch.zeros(1, 1)


def whole_hessian(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, loss: Callable[..., torch.Tensor]
) -> torch.Tensor:
    names = [name for name, _ in model.named_parameters()]
    shapes = [p.shape for p in model.parameters()]
    sizes = [p.numel() for p in model.parameters()]

    def of(flat: torch.Tensor) -> torch.Tensor:
        parts = [part.reshape(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)]
        return loss(torch.func.functional_call(model, dict(zip(names, parts, strict=True)), (x,)), y)

    return torch.autograd.functional.hessian(of, torch.cat([p.detach().reshape(-1) for p in model.parameters()]))


class TestKnown:
    @pytest.mark.parametrize(
        ("eigenvalues", "largest"),
        [
            ([3.0, 1.0, 0.1], 3.0),
            ([-5.0, 2.0, 1.0], 2.0),  # the largest in magnitude is not the largest
            ([-5.0, -2.0, -1.0], -1.0),
            ([-4.0, -4.0], -4.0),
            ([0.0, 0.0], 0.0),
            ([7.0], 7.0),
        ],
    )
    def test_quadratic(self, eigenvalues: list[float], largest: float) -> None:
        found = sharpness(Quadratic(eigenvalues), ONE, ONE, seed=0, loss=mean, tolerance=1e-9, max_iterations=500)
        assert float(found) == pytest.approx(largest, abs=1e-6)

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("more", [0, 80])  # made in full, and by iteration
    @pytest.mark.parametrize(
        "eigenvalues", [[1.0, -1.0], [1.0, -0.9999], [1.0, -0.99, 0.5], [0.5, -1.0], [1.0, 0.999, -0.998], [1e-3, -5.0]]
    )
    def test_as_large_below_zero_as_above(self, eigenvalues: list[float], more: int, seed: int) -> None:
        model = Quadratic([*eigenvalues, *np.linspace(-0.4, 0.0, more).tolist()])
        found = sharpness(model, ONE, ONE, seed=seed, loss=mean)
        assert float(found) == pytest.approx(max(eigenvalues), rel=2e-4)

    @pytest.mark.parametrize("scale", [0.0, 0.01, 0.1, 1.0])
    @pytest.mark.parametrize("hidden", [4, 16])  # 32 and 128 parameters
    @pytest.mark.parametrize("kind", ["linear", "tanh", "classes"])
    def test_random_networks_against_their_whole_hessian(self, kind: str, hidden: int, scale: float) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            middle = [nn.Tanh()] if kind == "tanh" else []
            model = nn.Sequential(nn.Linear(5, hidden, bias=False), *middle, nn.Linear(hidden, 3, bias=False))
            x, wide = torch.randn(64, 5), torch.randn(64, 3)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(scale)
        loss, y = (functional.cross_entropy, wide.argmax(dim=1)) if kind == "classes" else (functional.mse_loss, wide)
        largest = float(torch.linalg.eigvalsh(whole_hessian(model, x, y, loss).double())[-1])
        for seed in range(5):
            assert float(sharpness(model, x, y, loss=loss, seed=seed)) == pytest.approx(largest, rel=2e-4)

    @pytest.mark.parametrize("batch_size", [100, 7])
    def test_a_small_network_against_its_whole_hessian(self, batch_size: int) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = nn.Sequential(
                nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 3)
            ).double()
        generator = torch.Generator().manual_seed(1)
        x, y = torch.randn(20, 5, generator=generator).double(), torch.arange(20) % 3
        model.eval()
        largest = float(torch.linalg.eigvalsh(whole_hessian(model, x, y, functional.cross_entropy))[-1])
        model.train()
        found = sharpness(model, x, y, seed=0, tolerance=1e-8, max_iterations=2000, batch_size=batch_size)
        assert float(found) == pytest.approx(largest, rel=1e-4)
        assert found.n == 20

    def test_attention_has_a_second_derivative(self) -> None:
        class Attends(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.project = nn.Linear(4, 4)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.project(x)[:, None]
                return functional.scaled_dot_product_attention(y, y, y).mean(dim=(1, 2))

        with torch.random.fork_rng():
            torch.manual_seed(0)
            model, x = Attends(), torch.randn(6, 3, 4)
        assert float(sharpness(model, x, torch.arange(6) % 4, seed=0, tolerance=1e-3)) > 0


class TestMissing:
    def test_not_settled(self) -> None:
        spread = np.linspace(-1.0, 1.0, 90).tolist()
        found = sharpness(Quadratic(spread), ONE, ONE, seed=0, loss=mean, tolerance=1e-9, max_iterations=15)
        assert found.reason == "never_reached" and found.censored
        assert "after 15 iterations" in found.note

    def test_nan(self) -> None:
        model = Quadratic([1.0, 2.0])
        with torch.no_grad():
            model.w[0] = np.nan
        found = sharpness(model, ONE, ONE, seed=0, loss=lambda o, _: o.mean() ** 2)
        assert found.reason == "not_a_number"

    def test_a_loss_that_is_linear_has_no_curvature(self) -> None:
        found = sharpness(nn.Linear(2, 1), torch.ones(3, 2), torch.ones(3), seed=0, loss=mean)
        assert float(found) == 0.0

    def test_refused(self) -> None:
        model = nn.Linear(2, 1)
        with pytest.raises(WaterjarError, match="as many of each"):
            sharpness(model, torch.ones(3, 2), torch.ones(2), seed=0)
        with pytest.raises(WaterjarError, match="max_iterations"):
            sharpness(model, torch.ones(3, 2), torch.ones(3), seed=0, max_iterations=1)
        with pytest.raises(WaterjarError, match="no Hessian"):
            sharpness(model.requires_grad_(False), torch.ones(3, 2), torch.ones(3), seed=0)


def test_nothing_is_touched() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3))
        x, y = torch.randn(12, 5), torch.arange(12) % 3
        functional.cross_entropy(model(x), y).backward()
    before = [t.clone() for t in model.state_dict().values()] + [p.grad.clone() for p in model.parameters()]
    state, modes = torch.random.get_rng_state(), [m.training for m in model.modules()]
    with torch.inference_mode():
        inside = sharpness(model, x, y, seed=4)
    again = sharpness(model, x, y, seed=4)
    assert float(inside) == float(again)  # the same seed, the same bits
    after = [t.clone() for t in model.state_dict().values()] + [p.grad.clone() for p in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [m.training for m in model.modules()] == modes
