"""The contract of metrics: strangers add one to any family, in one file, and everything finds it."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import xarray as xr

from waterjar import WaterjarError
from waterjar.diagnose.analysis import analysis_of
from waterjar.diagnose.cost import ResourceUse
from waterjar.diagnose.measuring import Table, units_of
from waterjar.diagnose.plasticity import Representation, StepSeries
from waterjar.diagnose.registry import Beside, Metric, families, find_metric, forget, metric, metrics
from waterjar.diagnose.result import Result
from waterjar.diagnose.study import diagnose
from waterjar.testing import ContractError, check_metric, small_study

HEAD = """
import numpy as np
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
"""
ABOUT = 'long_name="a number", formula="f", citation="a stranger",'
FILES = {
    "collective": f"""
from waterjar.diagnose.collective import Fingerprints

@metric("longest", family="collective", {ABOUT} needs=("streams",), range=(0, np.inf), summary="longest_final")
def longest(prints: Fingerprints) -> Result:
    found = np.linalg.norm(prints.values, axis=1).max()
    return Result.missing("not_a_number") if np.isnan(found) else Result(float(found))
""",
    "continual": f"""
from waterjar.diagnose.continual import TaskCurves

@metric("last_gap", family="continual", {ABOUT} needs=("performance/accuracy",), direction="lower", range=(0, 1))
def last_gap(curves: TaskCurves) -> Result:
    return Result.of(curves.final.max(-1) - curves.final.min(-1), curves.final_reasons.max(-1))
""",
    "cost": f"""
from waterjar.diagnose.cost import ResourceUse

@metric("steps_taken", family="cost", {ABOUT} needs=("resources/seconds",), range=(0, np.inf))
def steps_taken(used: ResourceUse) -> Result:
    return used.each(float(len(used.recorded["seconds"])))
""",
    "drift": f"""
from waterjar.diagnose.drift import LayerSnapshot

@metric("spread", family="drift", {ABOUT} needs=("features",), range=(0, np.inf), summary="spread_final")
def spread(snapshot: LayerSnapshot) -> Result:
    if snapshot.cloud.missing:
        return snapshot.cloud.missing
    return Result(float(snapshot.cloud.features.std()), n=len(snapshot.cloud.features))
""",
    "examples": f"""
from waterjar.diagnose.examples import History

@metric("looks", family="examples", {ABOUT} needs=("examples/correct",), dims=("example",), summary="looks_mean")
def looks(history: History) -> Result:
    return Result.of(np.where(history.reasons > 0, np.nan, (history.answers < 2).sum(0)), history.reasons)
""",
    "geometry": f"""
from waterjar.diagnose.geometry import SnapshotGeometry

@metric("inverse", family="geometry", {ABOUT} needs=("features",), range=(0, np.inf), summary="inverse_final")
def inverse(geometry: SnapshotGeometry) -> Result:
    capacity = geometry["capacity"]
    return Result.of(1 / np.asarray(capacity), capacity.code)
""",
    "plasticity": f"""
from waterjar.diagnose.plasticity import Representation

@metric("largest", family="plasticity", {ABOUT} needs=("features",), summary="largest_final")
def largest(features: Representation) -> Result:
    return features.missing or Result(float(features.features.max()), n=len(features.features))
""",
    "robustness": f"""
from waterjar.diagnose.robustness import RobustnessProbe

@metric("clean_left", family="robustness", {ABOUT} needs=("probes/robustness",), summary="clean_left_final")
def clean_left(probe: RobustnessProbe) -> Result:
    return probe.clean
""",
    "rigidity": f"""
from waterjar.diagnose.rigidity import Pair

@metric("clean_gap", family="rigidity", {ABOUT} needs=("performance",), range=(-1, 1))
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
        told = {
            "family": "continual",
            "long_name": "l",
            "formula": "f",
            "citation": "c",
            "needs": ("performance",),
            **about,
        }
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
            ({"direction": "up"}, "direction 'up' is unknown. Known: 'higher', 'lower', 'zero', 'none'"),
            ({"on_loss": "flip"}, "on_loss 'flip' is unknown: did you mean 'flipped'"),
            ({"interval": "bca"}, "interval 'bca' is unknown. Known: 't', 'auto'"),
            ({"needs": ()}, r"needs=\(\): expected a tuple of what a run must have recorded"),
            ({"needs": "performance"}, "needs='performance': expected a tuple"),
            ({"needs": ("perfomance",)}, "needs 'perfomance' is unknown: did you mean 'performance'"),
            ({"needs": ("performance[",)}, r"needs 'performance\[' is unknown"),
            ({"needs": ("resources/imagse",)}, "needs 'resources/imagse' is unknown: did you mean 'resources/images'"),
            ({"made_of": ("sceonds",)}, "made_of 'sceonds' is unknown: did you mean 'seconds'"),
            ({"made_of": ("mine",)}, "made_of 'mine' is unknown"),
            (
                {"dims": ("unit_foo",), "summary": "mine_s"},
                "'mine': continual's dimension 'unit_foo' is unknown. Known: 'train_task', 'eval_task'",
            ),
            ({"beside": {"more": Beside(("eval_tsk",))}}, "dimension 'eval_tsk' is unknown: did you mean 'eval_task'"),
            ({"dims": ("eval_task", "eval_task")}, "'eval_task' stands there twice"),
            ({"dims": ("repeat",)}, "'repeat' stands there twice: a TaskCurves has its place along repeat"),
        ],
    )
    def test_what_it_declares(self, about: dict[str, object], message: str) -> None:
        from waterjar.diagnose.continual import TaskCurves

        def mine(curves: TaskCurves) -> Result: ...

        mine.__annotations__["curves"] = TaskCurves
        with pytest.raises(WaterjarError, match=message):
            self.declare(mine, **about)
        assert "mine" not in metrics()

    def test_needs_and_parts_that_there_are(self) -> None:
        from waterjar.diagnose.continual import TaskCurves

        def mine(curves: TaskCurves) -> Result: ...

        mine.__annotations__["curves"] = TaskCurves
        needs = ("performance[t1, all]", "probes/of_my_own", "probe_samples/label", "weights")
        self.declare(mine, needs=needs, made_of=("pd", "final_accuracies", "group_accuracy", "capacity_final"))
        assert find_metric("mine").needs == needs

    @pytest.mark.parametrize("name", sorted(families()))
    def test_dimensions_of_a_family_are_those_of_its_results(self, name: str, tmp_path: Path) -> None:
        family, study = families()[name], small_study(tmp_path / "study", seeds=(1,))
        settings = family.settings({})
        unit = units_of(family, study, analysis_of(study, families=[name]))[0]
        coordinates = family.load(unit, settings).coordinates
        own = {*family.dims, *(dim for dims in family.inputs.values() for dim in dims)}
        beside = ("moment", "other_moment")  # of whole matrices, on request
        with_labels = xr.Dataset(coords=coordinates).dims
        assert own == set(with_labels) - set(beside)

    def test_a_dimension_that_a_unit_has_not(self) -> None:
        with pytest.raises(WaterjarError, match="dimension 'unit_foo' is unknown. Known: 'repeat'"):
            Table(("repeat", "unit_foo"), {"repeat": 3})

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

    def declare(
        self, compute: object, reads: str = "continual:TaskCurves", name: str = "mine", **about: object
    ) -> None:
        family, _, kind_name = reads.partition(":")
        kind = getattr(importlib.import_module(f"waterjar.diagnose.{family}"), kind_name)
        compute.__annotations__ = {next(iter(inspect.signature(compute).parameters)): kind}  # type: ignore[attr-defined, arg-type]
        told = {"family": family, "long_name": "l", "formula": "f", "citation": "c", "needs": ("performance",), **about}
        metric(name, **told)(compute)  # type: ignore[arg-type]

    def test_a_value_outside_of_its_range(self) -> None:
        self.declare(lambda curves: Result.of(curves.final.max(-1) + 5, curves.final_reasons.max(-1)), range=(0, 1))
        with pytest.raises(ContractError, match="outside of"):
            check_metric("mine")

    @pytest.mark.parametrize(
        ("reads", "number", "change"),
        [
            ("continual:TaskCurves", lambda x: x.final.max(-1), lambda x: x.final.fill(0.5)),
            ("continual:TaskCurves", lambda x: x.final.max(-1), lambda x: x.ends.fill(0)),
            ("continual:TaskCurves", lambda x: x.final.max(-1), lambda x: x.eval_sets.clear()),
            ("cost:ResourceUse", lambda x: np.full(x.repeats, 1.0), lambda x: x.recorded.pop("seconds")),
            ("cost:ResourceUse", lambda x: np.full(x.repeats, 1.0), lambda x: x.recorded["seconds"].fill(0)),
            ("plasticity:Representation", lambda x: x.features.max(), lambda x: x.singular_values.fill(1)),
            ("plasticity:Representation", lambda x: x.features.max(), lambda x: x.features.fill(1)),
            ("plasticity:Parameters", lambda x: x.now.max(), lambda x: x.initial.fill(0)),
            ("drift:LayerSnapshot", lambda x: x.cloud.features.max(), lambda x: x.labels.fill(0)),
            ("rigidity:Pair", lambda x: x.final("normal").value, lambda x: x.learner.values["masked"].fill(0.5)),
            ("geometry:SnapshotGeometry", lambda x: float(x["capacity"]), lambda x: x.geometry.n_points.fill(1)),
            ("geometry:SnapshotGeometry", lambda x: float(x["capacity"]), lambda x: x.geometry.numbers.clear()),
        ],
    )
    def test_an_input_that_it_changes(self, reads: str, number: object, change: object) -> None:
        """What it was built with, what was worked out of it, and of every second input only."""
        calls = iter(range(10**6))

        def mine(x: object) -> Result:
            made = number(x)  # type: ignore[operator]
            if next(calls) % 2:
                change(x)  # type: ignore[operator]
            return Result.of(made)

        of_all_repeats = reads.startswith(("continual", "cost", "rigidity"))
        self.declare(mine, reads, summary="" if of_all_repeats else "mine_final")
        with pytest.raises(ContractError, match="it changes its input"):
            check_metric("mine")

    @pytest.mark.parametrize("name", ["a_first", "z_last"])
    def test_numbers_of_others_that_it_changes(self, name: str) -> None:
        """By what no input holds in the open."""

        def mine(series: StepSeries) -> Result:
            made = Result.of(np.full(len(series.arrays.seeds), 1.0))
            series.arrays.nodes = {}
            return made

        about = {"long_name": "l", "formula": "f", "citation": "c", "needs": ("train",)}
        metric(name, family="plasticity", **about)(mine)  # type: ignore[arg-type]
        try:
            with pytest.raises(ContractError, match="it changes .*, which is another one where it is measured after"):
                check_metric(name)
            check_metric("active_units")  # which is not to blame
        finally:
            forget(name)

    @pytest.mark.parametrize(
        ("beside", "message"),
        [
            (lambda curves: np.full(len(curves.final), np.inf), "more of .* is infinite"),
            (lambda curves: np.arange(len(curves.final), dtype=float), "more of seed . is another one where runs"),
        ],
    )
    def test_what_it_gives_beside(self, beside: object, message: str) -> None:
        def mine(curves: object) -> object:
            own = Result.of(curves.final.max(-1), curves.final_reasons.max(-1))  # type: ignore[attr-defined]
            return own, {"more": Result.of(beside(curves))}  # type: ignore[operator]

        self.declare(mine, beside={"more": Beside()})
        with pytest.raises(ContractError, match=message):
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

    @pytest.mark.parametrize(
        "reads",
        [
            ("rigidity:Pair", lambda x: np.nan_to_num(x.learner.values["normal"]).mean(1)),
            ("rigidity:Pair", lambda x: (x.learner.values["normal"] > 0.5).mean(1)),
            ("continual:TaskCurves", lambda x: np.nan_to_num(x.final).mean(-1)),
            ("cost:ResourceUse", lambda x: np.full(x.repeats, np.nansum(x.recorded["seconds"]))),
            ("plasticity:Representation", lambda x: np.nan_to_num(x.features).mean()),
            ("drift:LayerSnapshot", lambda x: 0.0 if x.cloud.missing else x.cloud.features.mean()),
        ],
        ids=lambda case: case[0],
    )
    def test_nan_that_counts_as_a_number(self, reads: tuple[str, object]) -> None:
        kind, number = reads
        of_all_repeats = kind.startswith(("continual", "cost", "rigidity"))
        self.declare(lambda x: Result.of(number(x)), kind, summary="" if of_all_repeats else "mine_final")  # type: ignore[operator]
        with pytest.raises(ContractError, match="has a number of seed 2 where all .* is NaN: it takes NaN as a number"):
            check_metric("mine")

    def test_a_mean_of_nothing_is_nan_and_no_fault(self) -> None:
        self.declare(lambda pair: Result.of(np.nanmean(pair.learner.values["normal"], axis=1)), "rigidity:Pair")
        check_metric("mine")

    def test_a_count_of_what_is_nan_is_none_of_its_numbers(self) -> None:
        self.declare(
            lambda x: Result.of(np.full(len(x.learner.seeds), x.learner.values["normal"].shape[1])), "rigidity:Pair"
        )
        check_metric("mine")

    @pytest.mark.parametrize(
        ("reads", "fault", "message"),
        [
            (
                "rigidity:Pair",
                lambda pair: Result.of(np.zeros((2, 7))),
                "WaterjarError: metric 'a_bad': a result of shape",
            ),
            ("rigidity:Pair", lambda pair: pair.nothing, "AttributeError: .*nothing"),
            (
                "plasticity:Representation",
                lambda shot: Result(np.full(3, np.nan), np.zeros(3)),
                "WaterjarError: metric 'a_bad': NaN has a reason",
            ),
        ],
    )
    def test_the_fault_of_another_metric_is_told_as_its_own(self, reads: str, fault: object, message: str) -> None:
        family = reads.partition(":")[0]
        summary = "" if family == "rigidity" else "a_bad_final"
        self.declare(fault, reads, name="a_bad", summary=summary)
        try:
            mine = min(families()[family].metrics.keys() - {"a_bad"})
            with pytest.raises(
                ContractError, match=f"metric 'a_bad' of {family}: it could not be .*: {message}"
            ) as told:
                check_metric(mine)
            assert f"'{mine}' can be looked at when that is put right" in str(told.value)
            with pytest.raises(ContractError, match=f"metric 'a_bad' of {family}: it could not be") as told:
                check_metric("a_bad")
            assert "can be looked at" not in str(told.value)
        finally:
            forget("a_bad")

    def test_an_error_that_is_no_word_for_a_person_has_the_name_in_a_note(self, tmp_path: Path) -> None:
        self.declare(lambda curves: curves.nothing)
        with pytest.raises(AttributeError) as told:
            diagnose(small_study(tmp_path / "study", seeds=(1,)), only=["continual"])
        assert told.value.__notes__ == ["metric 'mine'"]

    def test_another_value_every_time(self) -> None:
        rng = np.random.default_rng()
        self.declare(lambda curves: Result.of(rng.random(len(curves.final))))
        with pytest.raises(ContractError, match="measured alone, or again"):
            check_metric("mine")

    def test_dimensions_that_it_does_not_declare(self) -> None:
        self.declare(lambda curves: Result.of(curves.final.max(-1)), dims=("eval_task",))
        with pytest.raises(ContractError, match="no summary"):
            check_metric("mine")

    def test_a_declaration_without_a_source(self) -> None:
        self.declare(lambda curves: Result.of(curves.final.max(-1)), citation=" ")
        with pytest.raises(ContractError, match="its citation is empty"):
            check_metric("mine")

    def test_a_function_that_is_no_metric(self) -> None:
        with pytest.raises(WaterjarError, match="is no metric"):
            check_metric(len)


class TestDirection:
    """Two inputs, of which one is better."""

    @pytest.fixture(autouse=True)
    def _forget(self) -> Iterator[None]:
        yield
        forget("mine")

    def check(self, direction: str, better: object, worse: object) -> tuple[str, ...]:
        def mine(used: ResourceUse) -> Result:
            return used.each(used.total("images"))

        about = {"family": "cost", "long_name": "l", "formula": "f", "citation": "c", "needs": ("resources/images",)}
        metric("mine", direction=direction, **about)(mine)  # type: ignore[arg-type]
        return check_metric(mine, better=better, worse=worse)

    MANY, FEW = (ResourceUse({"images": np.array([number])}, 2) for number in (5.0, 1.0))

    def test_the_right_way_round(self) -> None:
        assert self.check("higher", self.MANY, self.FEW) == ()

    def test_what_was_not_looked_at_is_said(self) -> None:
        (told,) = self.check("lower", None, None)
        assert told == "direction 'lower' was not looked at: give better= and worse=, two inputs of it"
        forget("mine")
        assert self.check("none", None, None) == ()

    @pytest.mark.parametrize("direction", ["lower", "zero", "none"])
    def test_the_wrong_way_round(self, direction: str) -> None:
        with pytest.raises(ContractError, match=f"it is 5 of the better and 1 of the worse, and says '{direction}'"):
            self.check(direction, self.MANY, self.FEW)

    def test_one_alone_tells_nothing(self) -> None:
        with pytest.raises(WaterjarError, match="expected both, or neither"):
            self.check("lower", self.MANY, None)

    def test_an_input_without_a_number(self) -> None:
        with pytest.raises(ContractError, match="no number of the worse input"):
            self.check("higher", self.MANY, ResourceUse({}, 2))

    def test_an_input_that_is_none(self) -> None:
        with pytest.raises(ContractError, match="could not be measured: AttributeError"):
            self.check("higher", 5.0, 1.0)

    def test_settings_without_a_default_are_those_of_the_family(self) -> None:
        def mine(shot: Representation, *, tau: float) -> Result:
            return shot.missing or Result(float((np.abs(shot.features) > tau).mean()))

        about = {"long_name": "l", "formula": "f", "citation": "c", "needs": ("features",), "summary": "mine_final"}
        metric("mine", family="plasticity", direction="higher", **about)(mine)  # type: ignore[arg-type]
        check_metric(mine, better=Representation.of(np.ones((4, 3))), worse=Representation.of(np.zeros((4, 3))))
