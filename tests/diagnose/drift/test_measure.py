"""Drift of recorded runs: references, matrix, readout, seeds, reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from recording import without_visits
from waterjar.diagnose import drift
from waterjar.diagnose.drift import inputs, loaded
from waterjar.diagnose.drift.inputs import Comparison
from waterjar.diagnose.drift.run_snapshots import kept_moments
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.measuring import Unit, measure_unit
from waterjar.diagnose.registry import forget, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run import rows
from waterjar.run.schema import REASONS

STEPS, SAMPLES, UNITS = 6, 9, 4
TASKS = [0, 0, 0, 1, 1, 1]
EPOCHS = [0, 1, 2, 1, 2, 3]
LABELS = np.stack([np.arange(SAMPLES) % 3, 2 - np.arange(SAMPLES) % 3])


def draw(seed: int = 0, repeats: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """features (snapshot, repeat, eval_set, sample, unit), readout (snapshot, repeat, class, unit), its bias."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((STEPS, repeats, 2, SAMPLES, UNITS))
    return features, rng.standard_normal((STEPS, repeats, 3, UNITS)), rng.standard_normal((STEPS, repeats, 3))


def accuracy(step: int) -> np.ndarray:
    return np.array([[0.9 - 0.1 * step] * 3, [0.5] * 3])


def record(
    path: Path, drawn: Any, *, labels: bool = True, weights: bool = True, extra: Any = None, **config: Any
) -> Any:
    features, readout, bias = drawn
    repeats = features.shape[1]
    seeds = config.pop("seeds", list(range(repeats)))
    eval_sets = config.pop("eval_sets", {"a": 0, "b": 1})
    with waterjar.Recorder(path, config, seeds=seeds, eval_sets=eval_sets, tasks=2) as recorder:
        if labels:
            index = np.broadcast_to(np.arange(2 * SAMPLES).reshape(2, SAMPLES), (repeats, 2, SAMPLES))
            recorder.once("probe_samples", label=np.stack([LABELS] * repeats), sample_index=np.array(index))
        for step in range(STEPS):
            shot: dict[str, Any] = {"features": {"penultimate": features[step]}}
            if extra is not None:
                shot["features"]["early"] = extra[step]
            if weights:
                parts = {
                    "conv.weight": np.ones((repeats, 2, 2, 3)),
                    "head.weight": readout[step],
                    "head.bias": bias[step],
                }
                shot["weights"] = parts if repeats > 1 else {name: part[0] for name, part in parts.items()}
            shown = accuracy(step)[:, :repeats]
            recorder.log(train_task=TASKS[step], epoch=EPOCHS[step], performance={"accuracy": shown}, snapshot=shot)
    return waterjar.open_run(path)


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", draw())


def stacked(features: np.ndarray, step: int, repeat: int) -> np.ndarray:
    return features[step, repeat].reshape(2 * SAMPLES, -1)


class TestSimilarity:
    def test_references_are_the_right_snapshots(self, run: waterjar.Run) -> None:
        features, *_ = draw()
        found = drift.measure(run)
        wanted = {"first": [0] * 6, "task": [0, 0, 0, 2, 2, 2], "previous": [None, 0, 1, 2, 3, 4]}
        for reference, others in wanted.items():
            for step, other in enumerate(others):
                for r in range(2):
                    for name, kernel in (("cka", drift.linear_cka), ("procrustes", drift.procrustes_distance)):
                        told = found[name].sel(repeat=r, snapshot=step, layer="penultimate", reference=reference)
                        if other is None:
                            assert np.isnan(told)
                        else:
                            alone = kernel(stacked(features, step, r), stacked(features, other, r))
                            assert float(told) == float(alone)
        codes = reasons_of(found, "cka").sel(snapshot=0, reference="previous")
        assert (codes == REASONS.index("undefined")).all()
        first = found["cka"].sel(snapshot=5, reference="first").mean("layer")
        np.testing.assert_array_equal(found["cka_final"], first)

    def test_matrix(self, run: waterjar.Run) -> None:
        features, *_ = draw()
        found = drift.measure(run, matrix=3)
        assert found["moment"].values.tolist() == [0, 2, 5]  # the first, and the ends of tasks
        for name, kernel in (("cka_matrix", drift.linear_cka), ("procrustes_matrix", drift.procrustes_distance)):
            matrix = found[name].sel(repeat=1, layer="penultimate")
            np.testing.assert_array_equal(matrix, matrix.T)
            alone = kernel(stacked(features, 2, 1), stacked(features, 5, 1))
            assert float(matrix.sel(moment=5, other_moment=2)) == pytest.approx(float(alone), rel=1e-12)
        assert drift.measure(run, matrix=4)["moment"].values.tolist() == [0, 2, 3, 5]
        assert drift.measure(run)["moment"].values.tolist() == [0, 1, 2, 3, 4, 5]
        none = drift.measure(run, matrix=0)
        assert "cka_matrix" not in none and "moment" not in none.dims

    def test_kept_moments_of_many_tasks(self) -> None:
        assert kept_moments(range(100), [True] * 100, 5) == [0, 24, 49, 74, 99]

    def test_blocks_of_repeats_give_the_same(self, run: waterjar.Run, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = drift.measure(run)
        monkeypatch.setattr(loaded, "repeat_blocks", lambda n, _: [slice(i, i + 1) for i in range(n)])
        assert drift.measure(run).identical(whole)

    def test_nan_stays_where_it_is(self, tmp_path: Path) -> None:
        drawn = draw()
        clean = drift.measure(record(tmp_path / "clean", drawn))
        drawn[0][4, 1, 0, 3, 1] = np.nan
        found = drift.measure(record(tmp_path / "run", drawn))
        own = np.isnan(found["participation_ratio"]).values
        assert np.argwhere(own).tolist() == [[1, 4, 0]]
        assert reasons_of(found, "nc1").values[1, 4, 0] == REASONS.index("not_a_number")
        lost = np.argwhere(np.isnan(found["cka"]).values & ~np.isnan(clean["cka"]).values).tolist()
        assert lost == [[1, 4, 0, 0], [1, 4, 0, 1], [1, 4, 0, 2], [1, 5, 0, 2]]  # itself, and what refers to it
        assert np.isnan(found["cka_matrix"]).sum() == 11
        assert not np.isnan(found["cka_final"]).any()
        # of the eval set without the NaN the probe is as before
        np.testing.assert_array_equal(
            found["probe_accuracy"].sel(eval_set="b"), clean["probe_accuracy"].sel(eval_set="b")
        )
        why = reasons_of(found, "probe_forgetting").sel(repeat=1, snapshot=4, eval_set="a")
        assert int(why.item()) == REASONS.index("not_a_number")


class TestClasses:
    def test_collapse_with_the_recorded_readout(self, run: waterjar.Run) -> None:
        features, readout, bias = draw()
        found = drift.measure(run)
        f, y = stacked(features, 3, 1), LABELS.reshape(-1)
        at = {"repeat": 1, "snapshot": 3, "layer": "penultimate"}
        assert float(found["nc1"].sel(at)) == float(drift.within_class_variability(f, y))
        assert float(found["nc2_equinorm"].sel(at)) == float(drift.equinorm(f, y))
        assert float(found["nc2_equiangularity"].sel(at)) == float(drift.equiangularity(f, y))
        assert float(found["nc2_maximal_angle"].sel(at)) == float(drift.maximal_angle(f, y))
        assert float(found["nc3"].sel(at)) == float(drift.self_duality(f, y, readout[3, 1]))
        assert float(found["nc4"].sel(at)) == float(drift.nearest_mean_mismatch(f, y, readout[3, 1], bias[3, 1]))

    def test_only_the_layer_that_is_read_has_a_duality(self, tmp_path: Path) -> None:
        drawn = draw()
        run = record(tmp_path / "run", drawn, extra=drawn[0][..., :3])
        found = drift.measure(run)
        codes = reasons_of(found, "nc3").sel(layer="early")
        assert (codes == REASONS.index("undefined")).all()
        np.testing.assert_array_equal(found["nc3_final"], found["nc3"].sel(layer="penultimate", snapshot=5))
        same_width = record(tmp_path / "same", drawn, extra=drawn[0] + 1)
        assert not np.isnan(drift.measure(same_width)["nc4"].sel(layer="penultimate")).any()
        with pytest.raises(WaterjarError, match="did you mean 'head.weight'"):
            drift.measure(run, readout="head.weigt")
        assert drift.measure(run, readout="head.weight")["nc3"].equals(found["nc3"])

    def test_without_labels_and_weights_the_rest_is_there(self, tmp_path: Path) -> None:
        found = drift.measure(record(tmp_path / "run", draw(), labels=False, weights=False))
        for name in ("nc1", "nc2_equinorm", "nc2_equiangularity", "nc2_maximal_angle", "nc3", "nc4", "probe_accuracy"):
            assert (reasons_of(found, name) == REASONS.index("not_recorded")).all()
        assert not np.isnan(found["cka_final"]).any()
        labelled = drift.measure(record(tmp_path / "labelled", draw(), weights=False))
        assert (reasons_of(labelled, "nc3") == REASONS.index("not_recorded")).all()
        assert not np.isnan(labelled["nc1_final"]).any()


class TestForgetting:
    def test_lost_or_unread(self, run: waterjar.Run) -> None:
        features, *_ = draw()
        found = drift.measure(run, ridge=0.1)
        probe = [float(drift.linear_probe_accuracy(features[s, 1, 0], LABELS[0], ridge=0.1)) for s in range(STEPS)]
        at = {"repeat": 1, "layer": "penultimate", "eval_set": "a"}
        np.testing.assert_allclose(found["probe_accuracy"].sel(at), probe)
        lost = [np.nan] * 3 + [probe[2] - probe[s] for s in (3, 4, 5)]
        np.testing.assert_allclose(found["probe_forgetting"].sel(at), lost)
        told = [np.nan] * 3 + [0.1 * (s - 2) - lost[s] for s in (3, 4, 5)]
        np.testing.assert_allclose(found["unread_forgetting"].sel(at), told)
        of_last = {"repeat": 1, "layer": "penultimate", "eval_set": "b"}
        assert np.isnan(found["probe_forgetting"].sel(of_last)).all()  # its task is the last one
        assert (reasons_of(found, "probe_forgetting").sel(of_last) == REASONS.index("undefined")).all()
        np.testing.assert_allclose(found["probe_forgetting_final"].sel(repeat=1), lost[5])
        np.testing.assert_allclose(found["unread_forgetting_final"].sel(repeat=1), told[5])

    def test_without_performance_only_the_difference_is_missing(self, tmp_path: Path) -> None:
        features, *_ = draw()
        with waterjar.Recorder(tmp_path / "run", {}, seeds=[0, 1], eval_sets={"a": 0, "b": 1}, tasks=2) as recorder:
            recorder.once("probe_samples", label=np.stack([LABELS] * 2))
            for step in range(STEPS):
                shot = {"features": {"x": features[step]}}
                recorder.log(
                    train_task=TASKS[step], epoch=step % 3 + TASKS[step], train={"loss": [1, 1]}, snapshot=shot
                )
        found = drift.measure(waterjar.open_run(tmp_path / "run"))
        assert not np.isnan(found["probe_forgetting_final"]).any()
        assert (reasons_of(found, "unread_forgetting_final") == REASONS.index("not_recorded")).all()

    def test_a_set_of_one_class_is_left_out_of_the_mean(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(globals(), "LABELS", np.stack([LABELS[0], np.zeros(SAMPLES, int)]))
        found = drift.measure(record(tmp_path / "run", draw()))
        assert (reasons_of(found, "probe_accuracy").sel(eval_set="b") == REASONS.index("undefined")).all()
        last = found["probe_accuracy"].sel(eval_set="a", snapshot=5, layer="penultimate")
        np.testing.assert_array_equal(found["probe_accuracy_final"], last)

    @pytest.mark.parametrize("schema", [1, 2])
    def test_a_task_that_is_visited_again_is_followed_from_its_visit_before(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: int
    ) -> None:
        monkeypatch.setattr(f"{__name__}.TASKS", [0, 1, 1, 0, 0, 1])
        monkeypatch.setattr(f"{__name__}.EPOCHS", [1, 1, 2, 2, 3, 3])
        record(tmp_path / "run", draw())
        run = waterjar.open_run(without_visits(tmp_path / "run") if schema == 1 else tmp_path / "run")
        found = drift.measure(run)
        assert found["visit"].values.tolist() == [0, 1, 1, 2, 2, 3]
        assert found["task_end"].values.tolist() == [True, False, True, False, True, True]
        probe = found["probe_accuracy"].sel(layer="penultimate").transpose("eval_set", "repeat", "snapshot").values
        lost = found["probe_forgetting"].sel(layer="penultimate").transpose("eval_set", "repeat", "snapshot").values
        a, b = np.full(lost.shape, np.nan)
        a[:, [1, 2]] = probe[0][:, [0]] - probe[0][:, [1, 2]]
        a[:, 5] = probe[0][:, 4] - probe[0][:, 5]
        b[:, [3, 4]] = probe[1][:, [2]] - probe[1][:, [3, 4]]
        np.testing.assert_array_equal(lost, np.stack([a, b]))
        cka = found["cka"].sel(layer="penultimate", reference="task")
        matrix = found["cka_matrix"].sel(layer="penultimate")
        ends = [0, 0, 0, 2, 2, 4]  # of the visit before each; of the first one itself
        for snapshot, end in enumerate(ends):
            pair = matrix.sel(moment=snapshot, other_moment=end)
            np.testing.assert_allclose(cka.sel(snapshot=snapshot), pair, atol=1e-12)

    def test_a_visit_without_a_snapshot_is_no_reference(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}, seeds=[1], eval_sets={"a": 0, "b": 1}, tasks=2) as recorder:
            recorder.once("probe_samples", label=LABELS[None])
            for step, task in enumerate([0, 1, 0, 1]):
                features = np.random.default_rng(step).random((1, 2, SAMPLES, UNITS))
                shot = {} if step == 2 else {"snapshot": {"features": {"last": features}}}
                recorder.log(train_task=task, epoch=step + 1, performance={"accuracy": [[0.5], [0.5]]}, **shot)
        found = drift.measure(waterjar.open_run(tmp_path / "run")).sel(layer="last", eval_set="a", repeat=0)
        why = [REASONS[code] for code in reasons_of(found, "probe_forgetting").values]
        assert why == ["undefined", "present", "not_recorded"]

    def test_of_arrays(self) -> None:
        found = drift.forgotten([0.9, 0.5, 0.8, 0.7, 0.2], [1, 0, 1, 1, 0], 1)
        np.testing.assert_allclose(found.value, [np.nan, 0.4, np.nan, np.nan, 0.5])
        apart = drift.forgotten([0.9, 0.5, 0.2], [1, 1, 0], 1, visit=[0, 1, 2])
        np.testing.assert_allclose(apart.value, [np.nan, np.nan, 0.3])
        unseen = drift.forgotten([0.9, 0.5, 0.2], [1, 0, 0], 1, visit=[0, 1, 3], visited={0: 1, 1: 0, 2: 1, 3: 0})
        assert [REASONS[code] for code in unseen.reason] == ["undefined", "present", "not_recorded"]

    def test_chosen_eval_sets(self, run: waterjar.Run) -> None:
        features, *_ = draw()
        found = drift.measure(run, eval_sets=["b"])
        assert found["eval_set"].values.tolist() == ["b"]
        alone = drift.participation_ratio(features[3, 0, 1])
        assert float(found["participation_ratio"].sel(repeat=0, snapshot=3, layer="penultimate")) == float(alone)
        assert (reasons_of(found, "probe_forgetting_final") == REASONS.index("undefined")).all()


class TestInputs:
    def test_a_probe_is_fitted_once_for_all_that_read_it(
        self, run: waterjar.Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fitted = []

        def counted(*given: Any, **settings: Any) -> Result:
            fitted.append(given)
            return drift.linear_probe_accuracy(*given, **settings)

        monkeypatch.setattr(inputs, "linear_probe_accuracy", counted)
        drift.measure(run)
        assert len(fitted) == STEPS * 2 * 2  # snapshots, repeats, eval sets

    def test_a_new_comparison_has_references_a_matrix_and_a_final_value(self, run: waterjar.Run) -> None:
        features, *_ = draw()

        @metric(
            "gap", family="drift", long_name="gap", formula="-", citation="-", needs=("features",), summary="gap_final"
        )
        def gap(pair: Comparison) -> Result:
            if pair.now.missing:
                return pair.now.missing
            return Result(float(np.abs(pair.now.features - pair.other.features).max()))

        try:
            found = drift.measure(run)
            unit = Unit("run", (run,), "run")
            alone = measure_unit(drift.FAMILY, unit, drift.FAMILY.settings({}), [drift.FAMILY.metrics["gap"]])
        finally:
            forget("gap")
        wanted = np.abs(features[4, 1] - features[2, 1]).max()
        assert float(found["gap"].sel(repeat=1, snapshot=4, layer="penultimate", reference="task")) == wanted
        assert float(found["gap_matrix"].sel(repeat=1, layer="penultimate", moment=4, other_moment=2)) == wanted
        np.testing.assert_array_equal(found["gap_final"], np.abs(features[5] - features[0]).max((1, 2, 3)))
        assert alone["gap"].equals(found["gap"]) and "nc1" not in alone

    def test_an_eval_set_of_another_run_of_the_cell(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        record(folder / "r0", draw(0, repeats=1), seeds=[0])
        alone = drift.measure(record(folder / "r1", draw(1, repeats=1), seeds=[1], eval_sets={"a": 0, "c": 1}))
        found = drift.measure(waterjar.open_study(folder)).isel(cell=0).sel(seed=1)
        assert found["eval_set"].values.tolist() == ["a", "b", "c"]
        for name in ("probe_accuracy", "probe_forgetting", "unread_forgetting"):
            np.testing.assert_array_equal(found[name].sel(eval_set=["a", "c"]), alone[name].isel(repeat=0))
            assert (reasons_of(found, name).sel(eval_set="b") == REASONS.index("not_recorded")).all()
            assert float(found[f"{name}_final"]) == float(alone[f"{name}_final"].item())


class TestSeeds:
    def test_between_the_repeats_of_a_run(self, run: waterjar.Run) -> None:
        features, *_ = draw()
        alone = drift.linear_cka(stacked(features, 5, 0), stacked(features, 5, 1))
        np.testing.assert_allclose(drift.measure(run)["cka_seeds"], [[float(alone)]] * 2)

    def test_between_the_runs_of_a_cell(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        drawn = {seed: draw(seed, repeats=1) for seed in range(3)}
        for seed, own in drawn.items():
            record(folder / f"sgd{seed}", own, learner="sgd", seeds=[seed])
        record(folder / "er", draw(7, repeats=1), learner="er", seeds=[0])
        study = waterjar.open_study(folder)
        found = drift.measure(study)
        names = {str(name): name for name in found["cell"].values}
        last = [stacked(drawn[seed][0], 5, 0) for seed in range(3)]
        wanted = np.mean([float(drift.linear_cka(last[1], last[other])) for other in (0, 2)])
        assert float(found["cka_seeds_final"].sel(cell=names["sgd"], seed=1)) == pytest.approx(wanted, rel=1e-12)
        assert np.isnan(found["cka_seeds_final"].sel(cell=names["er"], seed=0))
        table = diagnose(study, only=["drift"]).table(["cka_seeds", "nc1"])
        assert len(table) == 8
        assert table[(table.metric == "cka_seeds") & (table.cell == "er")].reason.tolist() == ["undefined"]

    def test_other_samples_or_layers_are_not_compared(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        record(folder / "r0", draw(0, repeats=1), seeds=[0])
        record(folder / "r1", draw(1, repeats=1), seeds=[1], labels=False)  # says nothing of its samples
        record(folder / "r2", draw(2, repeats=1), seeds=[2], extra=draw(3, repeats=1)[0])
        found = drift.measure(waterjar.open_study(folder)).isel(cell=0)
        seeds = found["cka_seeds"].sel(layer="penultimate")
        assert np.isnan(seeds.sel(seed=1))
        assert float(seeds.sel(seed=0)) == float(seeds.sel(seed=2))
        assert np.isnan(found["cka_seeds"].sel(layer="early")).all()

    def test_a_seed_with_nan_does_not_take_the_others_along(self, tmp_path: Path) -> None:
        drawn = draw(0, repeats=3)
        drawn[0][5, 1, 0, 0, 0] = np.nan
        found = drift.measure(record(tmp_path / "run", (drawn[0], *draw(0, 3)[1:]), weights=False, labels=False))
        assert np.isnan(found["cka_seeds"]).values[:, 0].tolist() == [False, True, False]
        assert reasons_of(found, "cka_seeds").values[1, 0] == REASONS.index("not_a_number")


def test_a_run_without_features(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": [0.5]})
    with pytest.raises(WaterjarError, match="has recorded no features"):
        drift.measure(waterjar.open_run(tmp_path / "run"))


def test_accuracies_in_percent_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "check_accuracies", lambda values, name: None)  # a run of before it was refused
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets={"a": 0}) as recorder:
        recorder.once("probe_samples", label=np.array([[[0, 1, 0, 1]]]))
        features = np.random.default_rng(0).random((1, 1, 4, 3))
        recorder.log(epoch=1, performance={"accuracy": [50.0]}, snapshot={"features": {"last": features}})
    with pytest.raises(WaterjarError, match="accuracy of .*has 50 .*Divide percentages by 100"):
        drift.measure(waterjar.open_run(tmp_path / "run"))
