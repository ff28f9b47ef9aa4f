"""Metrics over training: every line and band against numpy and scipy, from the arrays that were recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import waterjar
from bounded_means import score_interval
from view.figures.repeated_runs import EPOCHS, Written, repeated_run
from view.figures.whole_runs import whole_run
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.figures._series import course, has_course, main_metrics
from waterjar.view.style import COLOURS

NAME = "metric_traces"
T = 3


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Diagnosis, dict[str, Written]]:
    folder = waterjar.create_study(tmp_path_factory.mktemp("traces") / "study")
    made = {
        "a": repeated_run(folder / "a", "a", [1, 2, 3, 4], number=1),
        "b": repeated_run(folder / "b", "b", [2, 3, 4, 5], number=2, at_chance=1),
    }
    study = waterjar.open_study(folder)
    found = diagnose(study, only=["continual", "plasticity", "drift", "cost"])
    return found, made


def table_of(found: Diagnosis, metric: str, cell: str, **settings: object) -> pd.DataFrame:
    table = figures.data(NAME, found, metrics=[metric], **settings)
    return table[table.cell == cell].reset_index(drop=True)


def check(table: pd.DataFrame, values: np.ndarray) -> None:
    """Mean and 95 % interval of values (repeat, x), inside the range of the metric."""
    np.testing.assert_allclose(table["mean"], values.mean(0))
    low, high = score_interval(values, find_metric(table["metric"].iloc[0]).range)
    np.testing.assert_allclose(table["low"], low)
    np.testing.assert_allclose(table["high"], high)
    assert set(table["n"]) == {len(values)}


def matrix_at(accuracy: np.ndarray, t: int, e: int, repeat: int) -> np.ndarray:
    """R of one repeat as if training ended at epoch e of task t."""
    rows = [accuracy[k, -1, : t + 1, repeat] for k in range(t)] + [accuracy[t, e, : t + 1, repeat]]
    return np.array(rows)


class TestOverEpochs:
    def test_average_accuracy_is_over_the_tasks_so_far(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, made = written
        a = made["a"].accuracy
        expected = np.array([[a[t, e, : t + 1, r].mean() for t in range(T) for e in range(EPOCHS)] for r in range(4)])
        table = table_of(found, "average_accuracy", "a")
        check(table, expected)
        assert set(table["axis"]) == {"total_epoch"}
        assert table["x"].tolist() == [0, 1, 2, 2, 3, 4, 4, 5, 6]
        assert table["train_task"].tolist() == [f"task_{t:03d}" for t in range(T) for _ in range(EPOCHS)]
        by_table = found.table(["average_accuracy"])
        assert table["mean"].iloc[-1] == pytest.approx(by_table[by_table.cell == "a"].value.mean())
        anytime = found.table(["average_anytime_accuracy"])
        phases = table["mean"].to_numpy().reshape(T, EPOCHS)[:, 1:]
        assert phases.mean() == pytest.approx(anytime[anytime.cell == "a"].value.mean())

    @pytest.mark.parametrize("metric", ["forgetting", "backward_transfer"])
    def test_forgetting_so_far(self, written: tuple[Diagnosis, dict[str, Written]], metric: str) -> None:
        found, made = written
        expected = np.full((4, T * EPOCHS), np.nan)
        for r in range(4):
            for t in range(1, T):
                for e in range(EPOCHS):
                    R = matrix_at(made["a"].accuracy, t, e, r)
                    reference = R[:-1, :-1].max(0) if metric == "forgetting" else np.diag(R)[:-1]
                    fall = reference - R[-1, :-1]
                    expected[r, t * EPOCHS + e] = fall.mean() if metric == "forgetting" else -fall.mean()
        table = table_of(found, metric, "a")
        check(table[EPOCHS:], expected[:, EPOCHS:])
        assert table["mean"][:EPOCHS].isna().all() and set(table["reason"][:EPOCHS]) == {"4 of 4 undefined"}
        scalars = found.table([metric])
        assert table["mean"].iloc[-1] == pytest.approx(scalars[scalars.cell == "a"].value.mean())

    def test_a_loss_is_turned_round(self, tmp_path: Path) -> None:
        loss = np.array([[[1.0, 3.0], [0.2, 2.0]], [[0.5, 1.5], [0.9, 0.4]]])  # (task, epoch, eval task)
        with waterjar.Recorder(
            tmp_path / "s" / "a", {"method": "a"}, seeds=[1], eval_sets={"x": 0, "y": 1}, tasks=["x", "y"]
        ) as recorder:
            for t, name in enumerate(("x", "y")):
                for e in range(2):
                    recorder.log(train_task=name, epoch=e, performance={"loss": loss[t, e]})
        study = waterjar.open_study(tmp_path / "s")
        table = figures.data(NAME, study, metrics=["forgetting"], metric_type="loss")
        np.testing.assert_allclose(table["mean"], [np.nan, np.nan, 0.5 - 0.2, 0.9 - 0.2])
        assert "(nat)" in table.attrs["titles"]["forgetting"]
        accuracy = figures.data(NAME, study, metrics=["average_accuracy"], metric_type="loss")
        assert accuracy["mean"].isna().all()

    def test_weights_and_features_of_a_layer(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, made = written
        w = made["a"].weights.reshape(T * EPOCHS, 4, -1)
        check(table_of(found, "weight_magnitude", "a"), np.sqrt((w**2).mean(-1)).T)
        for layer in ("early", "late"):
            h = made["a"].features[layer].reshape(T * EPOCHS, 4, T * 8, -1)
            table = table_of(found, "feature_norm", "a", layer=layer)
            check(table, np.linalg.norm(h, axis=-1).mean(-1).T)
            assert set(table["layer"]) == {layer}
        last = table_of(found, "feature_norm", "a")
        pd.testing.assert_frame_equal(last, table_of(found, "feature_norm", "a", layer="late"))
        with pytest.raises(WaterjarError, match="did you mean 'early'"):
            table_of(found, "feature_norm", "a", layer="erly")

    def test_more_than_one_number_a_snapshot(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, _ = written
        drift = found.results["drift"].sel(layer="late").isel(cell=0)
        seeds = [1, 2, 3, 4]
        cka = drift["cka"].sel(reference="first", seed=seeds).transpose("seed", "snapshot").values
        check(table_of(found, "cka", "a"), cka)
        probed = drift["probe_accuracy"].sel(seed=seeds).mean("eval_set").transpose("seed", "snapshot").values
        check(table_of(found, "probe_accuracy", "a"), probed)
        asides = figures.data(NAME, found, metrics=["cka", "probe_accuracy", "average_accuracy"]).attrs["asides"]
        assert asides == {
            "cka": "late, to the first snapshot", "probe_accuracy": "late, mean over sets", "average_accuracy": ""
        }  # fmt: skip

    def test_bands(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, made = written
        w = np.sqrt((made["a"].weights.reshape(T * EPOCHS, 4, -1) ** 2).mean(-1))
        spread = table_of(found, "weight_magnitude", "a", band="range")
        np.testing.assert_allclose(spread["low"], w.min(1))
        spread = table_of(found, "weight_magnitude", "a", band="std")
        np.testing.assert_allclose(spread["high"] - spread["mean"], w.std(1, ddof=1))
        with pytest.raises(WaterjarError, match="band 'wide' is unknown"):
            table_of(found, "weight_magnitude", "a", band="wide")


class TestOverTasks:
    def test_learning_accuracy_is_the_diagonal(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, made = written
        table = table_of(found, "learning_accuracy", "a")
        check(table, np.stack([made["a"].accuracy[t, -1, t] for t in range(T)], axis=1))
        assert table["x"].tolist() == [1, 2, 3] and set(table["axis"]) == {"task"}

    def test_remembering_is_over_the_tasks_before(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, made = written
        P = 2 * made["a"].accuracy[:, -1] - 1  # (train, eval, repeat)
        ratio = [
            [np.mean([(P[j, i, r] - P[i, i, r]) / (abs(P[j, i, r]) + abs(P[i, i, r])) for i in range(j)])
             for j in range(1, T)]
            for r in range(4)
        ]  # fmt: skip
        table = table_of(found, "remembering", "a")
        check(table[1:], np.array(ratio))
        assert table["reason"][0] == "4 of 4 undefined"

    def test_forward_transfer_without_the_repeat_at_chance(self, written: tuple[Diagnosis, dict[str, Written]]) -> None:
        found, made = written
        b = made["b"]
        E = 2 * b.expert[:, -1] - 1
        R = 2 * np.stack([b.accuracy[t, -1, t] for t in range(T)]) - 1
        ft = ((E - R) / (E + R + 1e-8)).T[[0, 2, 3]]
        table = table_of(found, "forward_transfer", "b")
        check(table, ft)
        assert set(table["reason"]) == {"1 of 4 undefined"}

    def test_what_is_not_there_for_another_reason_leaves_a_gap(self, tmp_path: Path) -> None:
        for seed, tasks in ((1, ("x", "y", "z")), (2, ("x", "y"))):
            with waterjar.Recorder(
                tmp_path / "s" / f"a{seed}", {"method": "a"}, seeds=[seed], eval_sets={"x": 0, "y": 1, "z": 2},
                tasks=["x", "y", "z"], classes=["p", "q"],
            ) as recorder:  # fmt: skip
                for task in tasks:
                    for epoch in range(2):
                        recorder.log(
                            train_task=task, epoch=epoch, performance={"accuracy": [0.7, 0.6 + 0.1 * epoch, 0.8]}
                        )
        table = figures.data(NAME, waterjar.open_study(tmp_path / "s"), metrics=["learning_accuracy"])
        assert table["mean"].isna().tolist() == [False, False, True]
        assert table["n"].tolist() == [2, 2, 1] and table["reason"][2] == "1 of 2 run_ended"


def test_lines_circles_and_boundaries(written: tuple[Diagnosis, dict[str, Written]]) -> None:
    found, _ = written
    names = ["average_accuracy", "forward_transfer"]
    figure = figures.draw(NAME, found, metrics=names)
    table = figures.data(NAME, found, metrics=names)
    over_epochs, over_tasks = figure.axes
    for ax, name in zip((over_epochs, over_tasks), names, strict=True):
        for cell, colour in zip("ab", COLOURS, strict=False):
            part = table[(table.metric == name) & (table.cell == cell)]
            line = next(line for line in ax.lines if line.get_label() == cell)
            np.testing.assert_array_equal(line.get_ydata(), part["mean"])
            np.testing.assert_array_equal(line.get_xdata(), part["x"])
            assert line.get_color() == colour
    upright = [line.get_xdata()[0] for line in over_epochs.lines if len(set(line.get_xdata())) == 1]
    assert upright == [2.0, 4.0]
    circles = [line for line in over_tasks.lines if line.get_gid() == "fewer" and len(line.get_xdata())]
    assert len(circles) == 1 and circles[0].get_xdata().tolist() == [1, 2, 3]
    assert over_epochs.get_xlabel() == "total epoch" and over_tasks.get_xlabel().startswith("task")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["average accuracy ↑", "forward transfer ↓"]
    told = figure.legends[0].get_title().get_text()
    assert (
        "95 % t interval (of bounded values on the logit scale) of 4 repeats" in told
        and "open circles" in told
        and "3 or more remain" in told
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "a new task begins"]


def test_a_gap_is_told(tmp_path: Path) -> None:
    for seed, end in ((1, 3), (2, 2)):
        with waterjar.Recorder(
            tmp_path / "s" / f"a{seed}", {"method": "a"}, seeds=[seed], eval_sets={"x": 0}, tasks=["x"]
        ) as recorder:
            for epoch in range(end):
                recorder.log(train_task="x", epoch=epoch, performance={"accuracy": 0.5 + 0.1 * epoch})
    figure = figures.draw(NAME, waterjar.open_study(tmp_path / "s"), metrics=["average_accuracy"])
    assert "gaps: some repeat" in figure.legends[0].get_title().get_text()


def test_one_that_trains_otherwise_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    for seed in (1, 2):
        whole_run(folder / f"s{seed}", "scratch_t2", seed, scenario="scratch_t2")
        whole_run(folder / f"a{seed}", "sgd", seed)
    with waterjar.Recorder(
        folder / "j",
        {"method": "all at once"},
        seeds=[1],
        eval_sets={"t1_all": 0, "t2_all_normal": 1},
        tasks=["t1", "t2"],
    ) as joint:
        joint.log(train_task="joint", epoch=0, performance={"accuracy": [0.1, 0.2]})
        joint.log(train_task="joint", epoch=1, performance={"accuracy": [0.5, 0.7]})
    study = waterjar.open_study(folder)
    table = figures.data(NAME, study, metrics=["average_accuracy", "forgetting"])
    whole = table[(table.metric == "average_accuracy") & (table.cell == "all at once")]
    np.testing.assert_allclose(whole["mean"], [0.15, 0.6])
    assert table[(table.metric == "forgetting") & (table.cell != "sgd")]["mean"].isna().all()
    figure = figures.draw(NAME, study, metrics=["average_accuracy", "forgetting"])
    assert "only of sgd" in [text.get_text() for text in figure.legends[0].get_texts()][-1]


def test_fifteen_tasks_of_twenty_epochs_keep_to_the_paper(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"task_{t:03d}" for t in range(15)]
    with waterjar.Recorder(
        tmp_path / "s" / "a", {"method": "sl"}, seeds=[1, 2], eval_sets={n: i for i, n in enumerate(names)},
        tasks=names, classes=["0", "1"],
    ) as recorder:  # fmt: skip
        for name in names:
            for epoch in range(21):
                recorder.log(train_task=name, epoch=epoch, performance={"accuracy": rng.uniform(0.5, 1, (15, 2))})
    study = waterjar.open_study(tmp_path / "s")
    figure = figures.draw(NAME, study, metrics=["average_accuracy"])
    pale = [line for line in figure.axes[0].lines if line.get_alpha() == 0.4]
    assert len(pale) == 14
    curves = figures.draw("learning_curves", study)
    shown = [ax for ax in curves.axes if ax.get_visible()]
    assert [ax.get_title(loc="left") for ax in shown] == names
    own = [patch.get_x() for ax in shown for patch in ax.patches if patch.get_gid() == "own"]
    assert own == [20.0 * t for t in range(15)]
    assert "shaded" in curves.legends[0].get_title().get_text()
    few = figures.draw("learning_curves", study, eval_sets=names[:5])
    assert len(few.axes) == 1 and len(few.axes[0].get_legend().get_texts()) == 5
    matrix = figures.draw("task_matrix", study)
    assert len(matrix.axes[0].texts) == 225 and "±" not in matrix.get_supxlabel()


def test_only_what_goes_on_is_shown_by_default(whole: Diagnosis) -> None:
    continual = Diagnosis(whole.study, {name: whole.results[name] for name in ("continual", "rigidity")})
    assert "patched_accuracy" in main_metrics(continual) and "capacity" not in main_metrics(continual)
    shown = main_metrics(continual, with_course=True)
    assert shown[:3] == ["average_accuracy", "learning_accuracy", "forgetting"] and "patched_accuracy" not in shown
    assert not has_course(continual, "capacity") and not has_course(continual, "average_anytime_accuracy")
    with pytest.raises(WaterjarError, match="metric 'capacity' has no value here: geometry did not measure it"):
        course(continual, "capacity")
    some = Diagnosis(whole.study, {"continual": whole.results["continual"].isel(cell=[0])})
    assert course(some, "average_accuracy")["cell"].nunique() == 1


def test_refusals(written: tuple[Diagnosis, dict[str, Written]], tmp_path: Path) -> None:
    found, _ = written
    with pytest.raises(WaterjarError, match="average_anytime_accuracy is one number per repeat"):
        figures.data(NAME, found, metrics=["average_anytime_accuracy"])
    with pytest.raises(WaterjarError, match="a list of names, such as"):
        figures.data(NAME, found, metrics=[])
    one = figures.data(NAME, found, metrics="forgetting")  # one name is a list of one
    pd.testing.assert_frame_equal(one, figures.data(NAME, found, metrics=["forgetting"]))
    with pytest.raises(WaterjarError, match="did you mean 'forgetting'"):
        figures.data(NAME, found, metrics=["forgeting"])
    with pytest.raises(WaterjarError, match="'seconds'|seconds is one number per repeat"):
        figures.data(NAME, found, metrics=["seconds"])
    bare = Diagnosis(found.study, {"cost": found.results["cost"]}, passed_over=dict.fromkeys(
        ("continual", "geometry", "plasticity"), "left out"))  # fmt: skip
    with pytest.raises(WaterjarError, match="nothing could be measured"):
        figures.data(NAME, bare)
    empty = found.results["continual"].copy()
    for name in ("average_accuracy", "learning_accuracy", "forgetting_mean", "remembering_mean", "learning_time_mean",
                 "forward_transfer_mean"):  # fmt: skip
        empty[name] = empty[name] * np.nan
    lone = Diagnosis(found.study, {"continual": empty}, passed_over={"geometry": "-", "plasticity": "-"})
    with pytest.raises(WaterjarError, match="has a value here: name others"):
        figures.data(NAME, lone)
    with waterjar.Recorder(tmp_path / "s" / "a", {"method": "x"}, seeds=[1]) as recorder:  # weights, and no features
        recorder.log(epoch=0, train={"loss": 1.0}, snapshot={"weights": {"w": np.ones((2, 2))}})
    study = waterjar.open_study(tmp_path / "s")
    assert figures.data(NAME, study, metrics=["weight_magnitude"])["mean"].tolist() == [1.0]
    with pytest.raises(WaterjarError, match="no cell has recorded anything of it"):
        figures.data(NAME, study, metrics=["effective_rank"])
    figure = figures.draw(NAME, study, metrics=["weight_magnitude", "effective_rank"])
    assert figure.axes[1].texts[0].get_text() == "nothing was recorded"
