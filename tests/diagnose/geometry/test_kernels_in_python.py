"""The kernels as Python runs them: the same numbers as compiled, and lines that a coverage report can see."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

import numba
import numba.extending
import numpy as np
import pytest
from numpy.typing import NDArray

from diagnose.geometry.problems import KINDS, Case, case, kkt
from waterjar.diagnose import registry

PACKAGE = "waterjar.diagnose.geometry"
Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def plain() -> Iterator[ModuleType]:
    """The package imported a second time, with a numba that compiles nothing."""
    kept = {name: module for name, module in sys.modules.items() if name.startswith(PACKAGE)}
    for name in kept:
        del sys.modules[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba, "njit", lambda **_: _Plain)
        patch.setattr(numba.extending, "intrinsic", lambda _: lambda a, b, c: a * b + c)
        for kept_there in ("_METRICS", "_FAMILIES"):  # of a package that is there twice
            others = {key: one for key, one in getattr(registry, kept_there).items() if _family(one) != "geometry"}
            patch.setattr(registry, kept_there, others)
        patch.setitem(sys.modules, f"{PACKAGE}.solver.lanes", _lanes())
        yield importlib.import_module(PACKAGE)
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]
    sys.modules.update(kept)
    sys.modules["waterjar.diagnose"].geometry = kept[PACKAGE]


def _family(declared: Any) -> str:
    return str(getattr(declared, "family", declared.name))


def _lanes() -> ModuleType:
    """Four numbers at a time, as arrays."""

    def store(array: Floats, row: int, column: int, x: Floats) -> None:
        array[row, column : column + 4] = x

    module: Any = ModuleType(f"{PACKAGE}.solver.lanes")
    module.WIDTH, module.Four, module.store = 4, np.ndarray, store
    module.load = lambda array, row, column: array[row, column : column + 4].copy()
    module.pack = lambda *numbers: np.array(numbers)
    module.add = module.product = lambda r, p, x: r * p + x
    module.scale = lambda r, p: r * p
    module.lane = lambda p, j: p[j]
    module.zero = lambda: np.zeros(4)
    return cast("ModuleType", module)


class _Plain:
    """A function that looks like a dispatcher."""

    def __init__(self, function: object) -> None:
        self.function, self._cache, self.get_call_template = function, None, None

    def __call__(self, *given: object) -> object:
        return self.function(*given)  # type: ignore[operator]


@pytest.mark.parametrize("kind", KINDS)
def test_projections(plain: ModuleType, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from waterjar.diagnose import geometry as compiled  # this is `plain`, too, while the fixture lasts

    assert compiled is plain
    for gram_points in (8192, 0):
        monkeypatch.setattr(sys.modules[f"{PACKAGE}.points"], "GRAM_POINTS", gram_points)
        problem = case(3, kind=kind)
        found = plain.project(plain.manifolds(problem.points, problem.labels), problem.t, problem.y, nearest=True)
        assert kkt(problem, found.coefficients()).max() <= 1e-9
        again = plain.project(found.of, problem.t, problem.y, start=found)
        np.testing.assert_allclose(again.points(), found.points(), atol=1e-9 * np.linalg.norm(problem.t))


def test_hard_projections(plain: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for spread in (1e-5, 1e-8, 1e-10):
        points = rng.standard_normal(6) + spread * rng.standard_normal((12, 6))
        problem = Case("", points, np.repeat([0, 1], 6), rng.standard_normal((4, 6)), np.tile([1.0, -1.0], (4, 1)))
        monkeypatch.setattr(sys.modules[f"{PACKAGE}.cone"], "refine", lambda *_: None)
        found = plain.project(plain.manifolds(points, problem.labels), problem.t, problem.y)
        of_sums = 1e-16 * found.size / found.scale  # what rounding leaves of the sums that `kkt` takes
        assert (kkt(problem, found.coefficients()) <= 10 * found.residual + of_sums + 1e-12).all()


@pytest.mark.parametrize("inactive", ["zero", "active_only", "support"])
def test_geometry(plain: ModuleType, inactive: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 3)
    found = plain.manifold_geometry(np.maximum(rng.standard_normal((9, 5)), 0), labels, n_t=12, inactive=inactive)
    assert float(found["kkt"]) < 1e-12 and np.isfinite(found["capacity"])
    line = plain.manifold_geometry(rng.standard_normal((9, 1)) * np.ones(5), labels, n_t=6, inactive=inactive)
    assert not float(line["kkt"]) > 1e-9


def test_capacity(plain: ModuleType) -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.standard_normal((8, 7)), np.repeat(np.arange(4), 2)
    for bias in (False, True):
        found = plain.simulated_capacity(points, labels, n_trials=12, bias=bias)
        assert 1 <= float(found["n_star"]) <= 7
    shared = plain.simulated_capacity(points[[0, 0, 1, 1]], [0, 1, 2, 3], n_trials=4, bias=True)
    assert float(shared["censored_share"]) > 0
