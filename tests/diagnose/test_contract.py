"""The contract of metrics: strangers add one to any family, in one file, and everything finds it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from waterjar import WaterjarError
from waterjar.diagnose.registry import Beside, Metric, families, find_metric, forget, metric, metrics
from waterjar.diagnose.result import Result
from waterjar.diagnose.study import diagnose
from waterjar.testing import ContractError, check_metric, small_study

HEAD = """
import numpy as np
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
"""
ABOUT = 'long_name="a number", formula="f", citation="a stranger", needs=(), '
FILES = {
    "continual": f"""
from waterjar.diagnose.continual import TaskCurves

@metric("last_gap", family="continual", {ABOUT} direction="lower", range=(0, 1))
def last_gap(curves: TaskCurves) -> Result:
    return Result.of(curves.final.max(-1) - curves.final.min(-1), curves.final_reasons.max(-1))
""",
    "cost": f"""
from waterjar.diagnose.cost import ResourceUse

@metric("steps_taken", family="cost", {ABOUT} range=(0, np.inf))
def steps_taken(used: ResourceUse) -> Result:
    return used.each(float(len(used.recorded["seconds"])))
""",
    "drift": f"""
from waterjar.diagnose.drift import LayerSnapshot

@metric("spread", family="drift", {ABOUT} range=(0, np.inf), summary="spread_final")
def spread(snapshot: LayerSnapshot) -> Result:
    if snapshot.cloud.missing:
        return snapshot.cloud.missing
    return Result(float(snapshot.cloud.features.std()), n=len(snapshot.cloud.features))
""",
    "geometry": f"""
from waterjar.diagnose.geometry import SnapshotGeometry

@metric("inverse_capacity", family="geometry", {ABOUT} range=(0, np.inf), summary="inverse_capacity_final")
def inverse_capacity(geometry: SnapshotGeometry) -> Result:
    capacity = geometry["capacity"]
    return Result.of(1 / np.asarray(capacity), capacity.code)
""",
    "plasticity": f"""
from waterjar.diagnose.plasticity import Representation

@metric("largest", family="plasticity", {ABOUT} summary="largest_final")
def largest(features: Representation) -> Result:
    return features.missing or Result(float(features.features.max()), n=len(features.features))
""",
    "rigidity": f"""
from waterjar.diagnose.rigidity import Pair

@metric("clean_gap", family="rigidity", {ABOUT} range=(-1, 1))
def clean_gap(pair: Pair) -> Result:
    own, other = pair.final("clean"), pair.final("clean", of_baseline=True)
    return Result.of(own.value - other.value, np.maximum(own.code, other.code))
""",
}
"""A family -> the whole file of a new metric of it."""


ON_REQUEST = {
    "eri_composite": {"composite": True},
    "simulated_capacity": {"simulate_every": 1, "n_trials": 10},
    "capacity_relative_error": {"simulate_every": 1, "n_trials": 10},
}
"""Metrics that are measured on request alone -> the settings that ask for them."""


def load(name: str, text: str, folder: Path) -> ModuleType:
    file = folder / f"{name}.py"
    file.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=FILES)
def stranger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Metric]:
    """A metric from outside, one file, for each of the families in turn."""
    families()
    before = set(metrics())
    load(f"stranger_{request.param}", FILES[request.param], tmp_path)
    (name,) = set(metrics()) - before
    yield find_metric(name)
    forget(name)
    del sys.modules[f"stranger_{request.param}"]


def test_every_family_has_a_stranger() -> None:
    assert set(FILES) == set(families())


def test_a_metric_from_outside_is_measured_like_our_own(stranger: Metric, tmp_path: Path) -> None:
    study = small_study(tmp_path / "study", seeds=(1, 2))
    found = diagnose(study, only=[stranger.family])
    rows = found.table([stranger.name])
    assert set(rows.seed) == {1, 2} and rows.value.notna().any()
    assert found.results[stranger.family][stranger.scalar].attrs["citation"] == "a stranger"
    check_metric(stranger.name)


@pytest.mark.parametrize("name", sorted(metrics()))
def test_ours_keep_the_contract(name: str) -> None:
    check_metric(name, settings=ON_REQUEST.get(name))


class TestWhatIsRefused:
    @pytest.fixture(autouse=True)
    def _forget(self) -> Iterator[None]:
        families()
        yield
        forget("mine")

    def declare(self, function: object, **about: object) -> None:
        told = {"family": "continual", "long_name": "l", "formula": "f", "citation": "c", "needs": (), **about}
        metric("mine", **told)(function)  # type: ignore[arg-type]

    def test_an_input_that_the_family_cannot_build(self) -> None:
        def mine(x: np.ndarray) -> Result: ...

        with pytest.raises(
            WaterjarError, match="'mine' reads ndarray, which continual cannot build: it has TaskCurves"
        ):
            self.declare(mine)
        assert "mine" not in metrics()

    def test_a_setting_that_the_family_has_not(self) -> None:
        from waterjar.diagnose.continual import TaskCurves

        def mine(curves: TaskCurves, *, treshold: float = 1.0) -> Result: ...

        mine.__annotations__["curves"] = TaskCurves
        with pytest.raises(WaterjarError, match="continual's setting 'treshold' is unknown"):
            self.declare(mine)

    def test_an_argument_without_a_type(self) -> None:
        def mine(curves) -> Result: ...  # type: ignore[no-untyped-def]

        with pytest.raises(WaterjarError, match="its first argument has no type"):
            self.declare(mine)

    @pytest.mark.parametrize(
        ("about", "message"),
        [
            ({"summary": "forgetting"}, "'forgetting' is of the metric 'forgetting'"),
            ({"beside": {"max_dip": Beside()}}, "'max_dip' is of the metric 'max_dip'"),
            ({"beside": {"mine_reason": Beside()}}, "'mine_reason': expected a name of small letters"),
            ({"beside": {"a, b": Beside()}}, "'a, b': expected a name of small letters"),
            ({"beside": {"seed": Beside()}}, "'seed' is the name of something else"),
            ({"beside": {"rigidity": Beside()}}, "'rigidity' is the name of something else"),
            ({"version": 0}, "version=0: expected 1 or a higher number"),
        ],
    )
    def test_names_that_stand_for_something_else(self, about: dict[str, object], message: str) -> None:
        from waterjar.diagnose.continual import TaskCurves

        def mine(curves: TaskCurves) -> Result: ...

        mine.__annotations__["curves"] = TaskCurves
        with pytest.raises(WaterjarError, match=message):
            self.declare(mine, **about)
        assert "mine" not in metrics()

    def test_a_second_argument(self) -> None:
        from waterjar.diagnose.continual import TaskCurves

        def mine(curves: TaskCurves, tau: float) -> Result: ...

        mine.__annotations__["curves"] = TaskCurves
        with pytest.raises(WaterjarError, match="'tau' is a second argument"):
            self.declare(mine)


class TestWhatTheCheckFinds:
    """Each breach of the contract, made on purpose."""

    @pytest.fixture(autouse=True)
    def _forget(self) -> Iterator[None]:
        families()
        yield
        forget("mine")

    def declare(self, compute: object, **about: object) -> None:
        from waterjar.diagnose.continual import TaskCurves

        compute.__annotations__ = {"curves": TaskCurves}  # type: ignore[attr-defined]
        told = {"family": "continual", "long_name": "l", "formula": "f", "citation": "c", "needs": (), **about}
        metric("mine", **told)(compute)  # type: ignore[arg-type]

    def test_a_value_outside_of_its_range(self) -> None:
        self.declare(lambda curves: Result.of(curves.final.max(-1) + 5, curves.final_reasons.max(-1)), range=(0, 1))
        with pytest.raises(ContractError, match="outside of"):
            check_metric("mine")

    def test_an_input_that_it_changes(self) -> None:
        def mine(curves: object) -> Result:
            curves.final[:] *= 0.5  # type: ignore[attr-defined]
            return Result.of(curves.final.max(-1), curves.final_reasons.max(-1))  # type: ignore[attr-defined]

        self.declare(mine)
        with pytest.raises(ContractError, match="changes its input"):
            check_metric("mine")

    def test_a_value_that_depends_on_other_seeds(self) -> None:
        def mine(curves: object) -> Result:
            values = curves.final.max(-1)  # type: ignore[attr-defined]
            return Result.of(values - np.nanmean(values), curves.final_reasons.max(-1))  # type: ignore[attr-defined]

        self.declare(mine)
        with pytest.raises(ContractError, match="where another seed is broken"):
            check_metric("mine")

    @pytest.mark.parametrize(
        ("gives", "message"),
        [
            (lambda curves: 0.5, "expected a Result, and it gave float"),
            (lambda curves: curves.final.max(-1), "expected a Result, and it gave ndarray"),
            (lambda curves: None, "expected a Result, and it gave NoneType"),
            (lambda curves: Result(0.5), r"a result of shape \(\) where \(3,\) is expected"),
            (lambda curves: Result.of(curves.final), "a result of shape"),
            (lambda curves: (Result.of(curves.final.max(-1)), {"other": Result(1.0)}), "what it gives beside 'other'"),
            (
                lambda curves: Result(np.full(len(curves.final), np.nan), np.zeros(len(curves.final))),
                "NaN has a reason",
            ),
            (lambda curves: curves.nothing, "no attribute 'nothing'"),
            (lambda curves: Result.of(np.full(len(curves.final), np.nan)), "no number"),
            (lambda curves: Result.of(np.full(len(curves.final), np.inf)), "infinite"),
        ],
    )
    def test_what_it_gives_is_told_in_a_sentence(self, gives: object, message: str) -> None:
        self.declare(gives)
        with pytest.raises(ContractError, match=message):
            check_metric("mine")

    def test_a_group_that_no_run_has(self) -> None:
        self.declare(
            lambda curves: Result.of(curves.final.max(-1), curves.final_reasons.max(-1)), needs=("perfomance",)
        )
        with pytest.raises(ContractError, match="needs 'perfomance'"):
            check_metric("mine")

    def test_another_value_every_time(self) -> None:
        rng = np.random.default_rng()
        self.declare(lambda curves: Result.of(rng.random(len(curves.final))))
        with pytest.raises(ContractError, match="measured alone, or again"):
            check_metric("mine")

    def test_dimensions_that_it_does_not_declare(self) -> None:
        self.declare(lambda curves: Result.of(curves.final.max(-1)), dims=("eval_task",))
        with pytest.raises(ContractError, match="no summary"):
            check_metric("mine")

    def test_a_direction_that_is_the_wrong_way_round(self) -> None:
        self.declare(lambda curves: Result.of(np.asarray(curves)), direction="lower")
        with pytest.raises(ContractError, match="says 'lower'"):
            from waterjar.testing import _check_direction

            _check_direction(find_metric("mine"), [0.9], [0.1])

    def test_a_declaration_without_a_source(self) -> None:
        self.declare(lambda curves: Result.of(curves.final.max(-1)), citation=" ")
        with pytest.raises(ContractError, match="its citation is empty"):
            check_metric("mine")

    def test_a_function_that_is_no_metric(self) -> None:
        with pytest.raises(WaterjarError, match="is no metric"):
            check_metric(len)
