"""From recorded runs to labelled metrics."""

import numpy as np
import pytest

import waterjar
from diagnose.continual.by_hand import EPOCHS, EXPERT, NAN, A, record
from waterjar.diagnose import continual
from waterjar.diagnose.continual import FAMILY, measure
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

BY_HAND = {
    "remembering_mean": (-1 / 3 - 1 + 1 / 7) / 3,
    "zero_shot_mean": (-0.5 - 1 - 3 / 7) / 3,
    "forward_transfer_mean": (0.0 + 0.1 / 1.3 - 0.1 / 1.9) / 3,  # experts end at P = .8, .7, .9
    "learning_time_mean": (4 / 3 + 25 / 14 + 1) / 3,
    "forgetting_rate_mean": (-0.1 - 0.2 + 0.1) / 3,
    "max_dip_mean": (0.6 + 0.8 + 0.2) / 3,
    "average_accuracy": 2.4 / 3,
    "average_anytime_accuracy": 2.3 / 3,
    "learning_accuracy": 0.9,
    "backward_transfer": -0.15,
    "forward_transfer_gem": (0.6 - 0.5 + 0.7 - 0.5) / 2,
    "forgetting_mean": 0.15,
    "intransigence_mean": (0.0 + 0.05 - 0.05) / 3,
    "min_accuracy": 0.7,
    "worst_case_accuracy": 0.8,
}
IN_PAIRS = ("remembering", "zero_shot", "forgetting_rate", "max_dip")


def why(result, name):
    """The reasons of a variable, in words."""
    return np.vectorize(lambda code: REASONS[code])(reasons_of(result, name).values).ravel().tolist()


@pytest.fixture
def run(tmp_path):
    return record(tmp_path / "run")


class TestOneRun:
    def test_every_metric_by_hand(self, run):
        found = measure(run)
        for name, expected in BY_HAND.items():
            np.testing.assert_allclose(found[name], [expected], atol=1e-8, err_msg=name)
        assert found.attrs["eval_sets"] == "set 0, set 1, set 2"
        np.testing.assert_allclose(found["chance"], 0.5)

    def test_pairs_are_addressed_by_name(self, run):
        found = measure(run)
        pair = found["remembering"].sel(train_task=1, eval_task=0, repeat=0)
        assert float(pair) == pytest.approx(-1 / 3)
        assert float(found["zero_shot"].sel(train_task=0, eval_task=1, repeat=0)) == pytest.approx(-0.5)
        assert float(found["forgetting_rate"].sel(train_task=2, eval_task=0, repeat=0)) == pytest.approx(-0.2)
        assert float(found["max_dip"].sel(train_task=2, eval_task=1, repeat=0)) == pytest.approx(0.2)
        for name in IN_PAIRS:
            assert found[name].dims == ("repeat", "train_task", "eval_task")
            assert set(why(found, name)) == {"present", "undefined"}

    def test_what_is_declared_stands_beside_the_numbers(self, run):
        found = measure(run)
        for metric in FAMILY.metrics.values():
            for name in {metric.name, metric.scalar}:
                attributes = found[name].attrs
                assert attributes["direction"] == metric.direction and attributes["units"] == metric.units
                values = found[name].values
                there = values[~np.isnan(values)]
                assert ((there >= metric.range[0]) & (there <= metric.range[1])).all()
        assert found["forward_transfer"].attrs["direction"] == "lower"
        assert '"integrator": "final"' in found.attrs["settings"]

    def test_integrator_is_that_of_the_expert_too(self, run):
        found = measure(run, integrator="auc")
        # P of experts: (.2, .6, .8) at 0, 1, 2; (.2, .6, .7) at 0, 1, 3; (.5, .9) at 0, 2
        experts = np.array([(0.4 + 0.7) / 2, (0.4 + 2 * 0.65) / 3, 0.7])
        own = np.array([0.4, 1.3 / 3, 0.7])
        expected = (experts - own) / (experts + own)
        np.testing.assert_allclose(found["forward_transfer"][0], expected, atol=1e-7)
        assert float(found["remembering"].sel(train_task=2, eval_task=0)[0]) == pytest.approx((0.2 - 0.4) / 0.6)

    def test_chance_and_its_floor(self, run):
        told = measure(run, chance=0.2)
        own, after = (0.9 - 0.2) / 0.8, (0.7 - 0.2) / 0.8
        assert float(told["remembering"][0, 1, 0]) == pytest.approx((after - own) / (after + own))
        each = measure(run, chance=[0.2, 0.5, 0.5])
        assert float(each["remembering"][0, 1, 0]) == pytest.approx((after - own) / (after + own))
        assert float(each["remembering"][0, 2, 1]) == pytest.approx(1 / 7)
        low = measure(run, chance=0.6)  # task 0 ends at .5, below
        kept, floored = (0.5 - 0.6) / 0.4, 0.0
        assert float(low["max_dip"][0, 2, 0]) == pytest.approx(0.75 - kept)
        low = measure(run, chance=0.6, floor_at_chance=True)
        assert float(low["max_dip"][0, 2, 0]) == pytest.approx(0.75 - floored)
        for wrong in ([0.5] * 2, [0.5] * 4, []):
            with pytest.raises(WaterjarError, match="one for every task of .*, which has 3"):
                measure(run, chance=wrong)

    def test_unbounded_ratio_and_references(self, run):
        below = measure(run, chance=0.6, bounded=False)
        own, after = 0.75, -0.25
        assert float(below["remembering"][0, 2, 0]) == pytest.approx((after - own) / (after + own))
        for reference, expected in {"learned": 0.15, "max": 0.15, "max_or_last": 0.2}.items():
            assert float(measure(run, forgetting_reference=reference)["forgetting_mean"][0]) == pytest.approx(expected)

    def test_both_at_chance_is_left_out_and_counted(self, run):
        found = measure(run, eps=0.9)  # leaves out |.| + |.| <= .9: .8 with 0
        assert int(found["remembering_n_undefined"][0]) == 1
        assert float(found["remembering_mean"][0]) == pytest.approx((-1 / 3 + 1 / 7) / 2)
        none = measure(run, eps=5.0)
        assert int(none["remembering_n_undefined"][0]) == 3
        assert why(none, "remembering_mean") == ["undefined"]

    def test_loss(self, tmp_path):
        run = record(tmp_path / "run", loss=True)  # loss = 1 - accuracy
        found = measure(run, metric_type="loss")
        assert float(found["remembering"][0, 1, 0]) == pytest.approx((0.3 - 0.1) / 0.4)
        assert float(found["forgetting_rate"][0, 2, 0]) == pytest.approx(0.1)
        assert float(found["max_dip"][0, 2, 0]) == pytest.approx(0.4)
        assert float(found["learning_time_mean"][0]) == pytest.approx(BY_HAND["learning_time_mean"])
        for name in ("backward_transfer", "forward_transfer_gem", "forgetting_mean", "intransigence_mean"):
            np.testing.assert_allclose(found[name], [BY_HAND[name]], atol=1e-12)
        np.testing.assert_allclose(found["forward_transfer"][0, 1], (0.15 - 0.2) / 0.35, atol=1e-7)
        for name in ("remembering", "zero_shot", "forgetting_rate"):
            assert found[name].attrs["direction"] == "lower"
        assert found["forward_transfer"].attrs["direction"] == "higher"
        assert found["backward_transfer"].attrs["direction"] == "higher"
        assert found["max_dip"].attrs["direction"] == "lower"
        assert found["backward_transfer"].attrs["units"] == "nat"
        assert found["forgetting_rate"].attrs["units"] == "nat/epoch"
        for name in ("average_accuracy", "average_anytime_accuracy", "learning_accuracy", "min_accuracy"):
            assert why(found, name) == ["undefined"]
        assert why(found, "worst_case_accuracy") == ["undefined"]
        assert why(found, "chance") == ["undefined"] * 3

    def recorded_by_task(self, path):
        with waterjar.Recorder(path, {}, eval_sets={"a": 0, "b": 1}, tasks=2, classes=["x", "y", "z"]) as recorder:
            for task in (0, 1):
                recorder.log(train_task=task, epoch=1, performance={"task_accuracy": [0.8 - 0.2 * task, 0.9]})
        return waterjar.open_run(path)

    def test_task_accuracy_has_a_chance_of_its_own(self, tmp_path):
        run = self.recorded_by_task(tmp_path / "run")
        found = measure(run, variable="task_accuracy", chance=[0.5, 1 / 3])
        assert float(found["remembering_mean"][0]) == pytest.approx((0.2 - 0.6) / 0.8)
        np.testing.assert_allclose(found["chance"], [[0.5, 1 / 3]])
        unknown = measure(run, variable="task_accuracy")  # three classes, but not all of them compete
        assert why(unknown, "remembering_mean") == ["chance_unknown"]
        assert "a list has one number per task" in str(unknown["chance_note"].values[0])
        assert float(unknown["backward_transfer"][0]) == pytest.approx(-0.2)

    def test_without_classes_only_what_is_above_chance_is_missing(self, tmp_path):
        found = measure(record(tmp_path / "run", classes=None))
        corrected = {"remembering", "zero_shot", "forward_transfer", "forgetting_rate", "max_dip"}
        for name, expected in BY_HAND.items():
            if name.removesuffix("_mean") in corrected:
                assert set(why(found, name)) == {"chance_unknown"}
            else:
                np.testing.assert_allclose(found[name], [expected], atol=1e-12, err_msg=name)
        pairs = [code for name in IN_PAIRS for code in why(found, name)]
        assert (
            pairs.count("chance_unknown") == 4 * 3 and pairs.count("undefined") == 4 * 6
        )  # not covered: not looked for
        assert why(found, "chance") == ["chance_unknown"] * 3
        said = str(found["chance_note"].values[0])
        assert 'tell chance, 1 / classes, with --set chance=0.5 (Python: settings={"chance": 0.5}), or for good' in said
        assert measure(record(tmp_path / "other"))["chance_note"].values.tolist() == [""]

    def test_refusals(self, run, tmp_path):
        for wrong in ("metric_type", "variable", "integrator", "forgetting_reference"):
            with pytest.raises(WaterjarError, match=f"{wrong}.* 'nonsense' is unknown"):
                measure(run, **{wrong: "nonsense"})
        with pytest.raises(WaterjarError, match="eps.*-1"):
            measure(run, eps=-1)
        with pytest.raises(WaterjarError, match="has not recorded macro_accuracy: choose another"):
            measure(run, variable="macro_accuracy")
        with waterjar.Recorder(tmp_path / "bare", {}) as recorder:
            recorder.log(epoch=1, train={"loss": 1.0})
        with pytest.raises(WaterjarError, match="bare has recorded no performance: there is nothing to measure"):
            measure(waterjar.open_run(tmp_path / "bare"))


SETS = {"t1_all": 0, "t2_all_normal": 1, "t2_masked": 1, "other": -1}


class TestEvalSets:
    def recorded(self, path, sets):
        with waterjar.Recorder(path, {}, eval_sets=sets, tasks=["t1", "t2"], classes=["a", "b"]) as recorder:
            for task in (0, 1):
                values = [0.9 - 0.2 * task, 0.6 + 0.2 * task, *[0.1] * (len(sets) - 2)]
                recorder.log(train_task=task, epoch=1, performance={"accuracy": values})
        return waterjar.open_run(path)

    def test_the_one_of_all_samples_is_taken(self, tmp_path):
        found = measure(self.recorded(tmp_path / "run", SETS))
        assert found.attrs["eval_sets"] == "t1_all, t2_all_normal"
        assert float(found["average_accuracy"][0]) == pytest.approx((0.7 + 0.8) / 2)

    def test_or_the_one_that_is_named(self, tmp_path):
        run = self.recorded(tmp_path / "run", SETS)
        found = measure(run, eval_sets=["t2_masked", "t1_all"])
        assert float(found["average_accuracy"][0]) == pytest.approx((0.7 + 0.1) / 2)
        with pytest.raises(WaterjarError, match="has 2 sets of task 1: expected one"):
            measure(run, eval_sets=["t1_all", "t2_masked", "t2_all_normal"])
        with pytest.raises(WaterjarError, match="has 0 sets of task 1.*'t2_all_normal', 't2_masked'"):
            measure(run, eval_sets="t1_all")
        with pytest.raises(WaterjarError, match="did you mean 't2_masked'"):
            measure(run, eval_sets=["t1_all", "t2_maskd"])

    def test_several_are_a_question(self, tmp_path):
        run = self.recorded(tmp_path / "run", {"t1": 0, "t2 seen": 1, "t2 unseen": 1})
        with pytest.raises(WaterjarError, match=r"several eval sets, 't2 seen', 't2 unseen': say which"):
            measure(run)

    def test_a_task_without_one_says_so(self, tmp_path):
        found = measure(self.recorded(tmp_path / "run", {"first": 0, "none": -1}))
        assert why(found, "average_accuracy") == ["no_eval_set"]
        assert float(found["backward_transfer"][0]) == pytest.approx(-0.2)
        assert why(found, "remembering_mean") == ["present"]
        assert why(found, "zero_shot_mean") == ["no_eval_set"]

    def test_a_run_that_knows_no_tasks_has_nothing_to_tell(self, tmp_path):
        run = record(tmp_path / "run", eval_sets=["a", "b", "c"], classes=None)
        found = measure(run)
        for metric in FAMILY.metrics.values():
            assert set(why(found, metric.scalar)) == {"no_eval_set"}


class TestWhatIsMissing:
    def test_no_expert(self, tmp_path):
        found = measure(record(tmp_path / "run", expert=None))
        for name in ("forward_transfer_mean", "intransigence_mean"):
            assert why(found, name) == ["not_recorded"]
        assert float(found["remembering_mean"][0]) == pytest.approx(BY_HAND["remembering_mean"])

    def test_nan_of_one_repeat_stays_there(self, tmp_path):
        curves = np.stack([A, A, A])
        curves[1, 1, 0, 1] = NAN  # diverged for a moment: this curve has no integral, but it has an end
        found = measure(record(tmp_path / "run", curves))
        healthy = measure(record(tmp_path / "healthy"))
        for metric in FAMILY.metrics.values():
            np.testing.assert_array_equal(found[metric.scalar][[0, 2]], [healthy[metric.scalar].values[0]] * 2)
        touched = {name for name in BY_HAND if np.isnan(found[name][1])}
        whole = {"max_dip_mean", "forgetting_rate_mean", "min_accuracy", "worst_case_accuracy"}
        assert touched == {*whole, "average_anytime_accuracy"}
        assert why(found, "max_dip_mean") == ["present", "not_a_number", "present"]
        for how in ("auc", "mean", "min", "max", "median"):
            reasons = why(measure(record(tmp_path / how, curves), integrator=how), "remembering_mean")
            assert reasons == ["present", "not_a_number", "present"]

    def test_nan_in_mid_curve_leaves_what_needs_the_end_alone(self, tmp_path):
        curves = A[None].copy()
        curves[0, :, :, 1] = NAN  # of tasks 0 and 1 the second of three evaluations, of task 2 the last
        curves[0, 2, :, 1] = A[2, :, 1]
        found = measure(record(tmp_path / "run", curves))
        ends = continual.integrate(curves)
        np.testing.assert_array_equal(found["average_accuracy"], continual.average_accuracy(ends))
        np.testing.assert_array_equal(found["backward_transfer"], continual.backward_transfer(ends))
        np.testing.assert_array_equal(found["learning_accuracy"], continual.learning_accuracy(ends))
        np.testing.assert_array_equal(found["forgetting"], continual.forgetting(ends))
        np.testing.assert_array_equal(found["remembering"], continual.remembering(2 * ends - 1))
        assert continual.remembering(2 * ends - 1).n.tolist() == [[[0, 0, 0], [1, 0, 0], [1, 1, 0]]]
        dips = continual.max_dip(2 * curves - 1)  # while 2 is trained every evaluation is there
        np.testing.assert_allclose(found["max_dip"][0, 2, :2], dips[0, 2, :2])
        assert why(found, "learning_time") == ["not_a_number", "not_a_number", "present"]

    def test_nan_at_the_end_is_no_end(self, tmp_path):
        curves = A[None].copy()
        curves[0, 2, 0, 1] = NAN
        found = measure(record(tmp_path / "run", curves))
        for name in ("average_accuracy", "backward_transfer", "forgetting_mean", "remembering_mean"):
            assert why(found, name) == ["not_a_number"]
        assert float(found["learning_accuracy"][0]) == pytest.approx(0.9)
        assert why(found, "remembering") == [
            *["undefined"] * 3,
            "present",
            *["undefined"] * 2,
            "not_a_number",
            "present",
            "undefined",
        ]

    def test_evaluations_that_were_not_made_are_passed_over(self, tmp_path):
        sets = {f"set {j}": j for j in range(3)}
        with waterjar.Recorder(tmp_path / "run", {}, eval_sets=sets, tasks=3, classes=["a", "b"]) as recorder:
            for i in range(3):
                for t in np.flatnonzero(~np.isnan(EPOCHS[i])):
                    hole = np.array([(i, j, t) == (1, 0, 1) for j in range(3)])[:, None]
                    row = waterjar.masked(A[i, :, [t]].T, hole, "not_recorded")
                    recorder.log(train_task=i, epoch=EPOCHS[i, t], performance={"accuracy": row})
        found = measure(waterjar.open_run(tmp_path / "run"))
        assert float(found["max_dip"][0, 1, 0]) == pytest.approx(0.4)  # of .8, (.2), .4
        assert float(found["forgetting_rate"][0, 1, 0]) == pytest.approx(-0.4 / 3)

    def test_one_epoch_per_task(self, tmp_path):
        run = waterjar.from_accuracy_matrix(
            [[0.9, 0.6], [0.7, 0.8]], tmp_path / "run", initial=[0.5, 0.55], expert=[0.95, 0.9]
        )
        found = measure(run, chance=0.5)
        assert float(found["backward_transfer"][0]) == pytest.approx(-0.2)
        assert float(found["forward_transfer_gem"][0]) == pytest.approx(0.05)
        assert float(found["remembering_mean"][0]) == pytest.approx((0.4 - 0.8) / 1.2)
        np.testing.assert_allclose(found["forward_transfer"][0], [0.1 / 1.7, 0.2 / 1.4], atol=1e-7)
        np.testing.assert_allclose(found["intransigence"][0], [0.05, 0.1])
        # the end of task 0 is epoch 0 of task 1: from one evaluation to the next, (1/2 b)^2 / (1/2 b^2)
        np.testing.assert_allclose(found["learning_time"], [[0.5, 0.5]])
        assert float(found["forgetting_rate_mean"][0]) == pytest.approx(2 * (0.7 - 0.9))
        # an expert known at its end alone is not held against the area below a curve
        areas = measure(run, chance=0.5, integrator="auc")
        assert why(areas, "forward_transfer") == ["not_recorded", "not_recorded"]
        assert why(areas, "forward_transfer_mean") == ["not_recorded"]
        assert why(areas, "intransigence_mean") == ["present"]

    def test_without_step_0_there_is_no_gem_transfer(self, tmp_path):
        run = waterjar.from_accuracy_matrix([[0.9, 0.6], [0.7, 0.8]], tmp_path / "run")
        assert why(measure(run, chance=0.5), "forward_transfer_gem") == ["not_recorded"]

    def test_lower_triangle_only(self, tmp_path):
        run = waterjar.from_accuracy_matrix([[0.9, NAN], [0.7, 0.8]], tmp_path / "run")
        found = measure(run, chance=0.5)
        assert why(found, "zero_shot_mean") == ["not_recorded"]
        assert float(found["forgetting_mean"][0]) == pytest.approx(0.2)

    def test_single_task(self, tmp_path):
        found = measure(record(tmp_path / "run", A[None, :1, :1], epochs=EPOCHS[:1], expert=EXPERT[:1]))
        assert float(found["average_accuracy"][0]) == 0.9 == float(found["worst_case_accuracy"][0])
        assert float(found["learning_time_mean"][0]) == pytest.approx(4 / 3)
        for name in ("remembering_mean", "zero_shot_mean", "backward_transfer", "forgetting_mean", "min_accuracy"):
            assert why(found, name) == ["one_task"]
        assert int(found["remembering_n_undefined"][0]) == 0


class TestStudy:
    def test_cells_side_by_side_joint_and_single_task_among_them(self, tmp_path):
        folder = waterjar.create_study(tmp_path / "study")
        for seed in (3, 5):
            record(folder / f"sgd-{seed}", seeds=[seed])
        record(folder / "fresh", A[None, 1:2, 1:2], epochs=EPOCHS[1:2], expert=None, seeds=[3], config={"learner": "x"})
        sets = {f"set {j}": j for j in range(3)}
        with waterjar.Recorder(folder / "joint", {"learner": "joint"}, seeds=[5], eval_sets=sets, tasks=3) as recorder:
            for epoch in range(2):
                recorder.log(train_task="joint", epoch=epoch, performance={"accuracy": [0.5, 0.6, 0.7]})
        with waterjar.Recorder(folder / "other", {"learner": "none"}, seeds=[5]) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
        found = measure(waterjar.open_study(folder))
        assert sorted(found["cell"].values) == ["joint", "sgd", "x"]
        np.testing.assert_allclose(found["remembering_mean"].sel(cell="sgd"), BY_HAND["remembering_mean"])
        assert float(found["average_accuracy"].sel(cell="x", seed=3)) == pytest.approx(0.8)
        for name in BY_HAND:
            codes = found[f"{name}_reason"]
            over_all = name in ("average_accuracy", "average_anytime_accuracy")
            assert REASONS[int(codes.sel(cell="joint", seed=5))] == ("present" if over_all else "undefined")
            assert REASONS[int(codes.sel(cell="joint", seed=3))] == "no_run"

    def test_order_of_seeds_changes_nothing(self, tmp_path):
        rng = np.random.default_rng(0)
        curves = rng.random((3, *A.shape))
        one = measure(record(tmp_path / "a", curves, seeds=[0, 1, 2]))
        other = measure(record(tmp_path / "b", curves[[2, 0, 1]], seeds=[2, 0, 1]))
        for metric in FAMILY.metrics.values():
            np.testing.assert_array_equal(one[metric.scalar], other[metric.scalar][[1, 2, 0]])

    def test_through_the_front_door(self, tmp_path):
        folder = waterjar.create_study(tmp_path / "study")
        for seed in (0, 1):
            record(folder / f"run-{seed}", seeds=[seed])
        study = waterjar.open_study(folder)
        first = diagnose(study, only=["continual"])
        table = first.table(["backward_transfer", "remembering"])
        np.testing.assert_allclose(table["value"], [-0.15, -0.15, *[BY_HAND["remembering_mean"]] * 2])
        again = diagnose(study, only=["continual"])
        assert set(again.origin["continual"].values()) == {"cached"}
        assert again.results["continual"].equals(first.results["continual"])


def test_array_functions_are_those_of_the_metrics():
    kernels = set(continual.__all__) - {"FAMILY", "INTEGRATORS", "REFERENCES", "TaskCurves", "above_chance", "measure"}
    assert kernels - {"integrate"} <= set(FAMILY.metrics)
