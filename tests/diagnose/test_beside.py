"""What is recorded beside accuracies stands in tables and is not tested; of one task, ACC and LA are one number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import waterjar
from own_loops import continual_run, continual_study, loss_study
from waterjar.cli.main import app
from waterjar.diagnose.compare import compare_cells, untested
from waterjar.diagnose.coupling import coupled
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.view import figures
from waterjar.view.report import compose, model_of
from waterjar.view.report.blocks import Table

FAMILIES = ["continual"]
LOSSES = ["performance/loss[digits01]", "performance/loss[digits23]", "train/loss"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return continual_study(tmp_path_factory.mktemp("beside") / "s", epochs=1, tasks=2, features=False)


@pytest.fixture(scope="module")
def two(folder: Path) -> Diagnosis:
    return diagnose(waterjar.open_study(folder))


def test_losses_stand_beside_accuracies_in_every_table_and_in_no_test(folder: Path, two: Diagnosis) -> None:
    assert two.described[:2] == LOSSES[:2] and two.ends == []
    rows = two.table()
    own = rows[(rows["metric"] == LOSSES[0]) & (rows["cell"] == "naive")].set_index("seed")["value"]
    last = two.study.load()["naive"]["loss"].sel(eval_set="digits01").isel(step=-1).values
    np.testing.assert_array_equal(own.loc[[0, 1, 2]], last)
    summary = waterjar.summary(two)
    assert any(label.startswith(LOSSES[0]) for label in summary.index)
    assert not any("performance/accuracy" in label for label in summary.index)  # ACC and its like are made of these
    assert not any("loss" in metric for metric in compare_cells(two)["metric"])
    report = compose(model_of(waterjar.open_study(folder)))
    (table,) = [one for one in report.shown if isinstance(one, Table) and one.name == "ends"]
    kept = table.frame[table.frame["variable"] == "loss"]
    assert set(kept["cell"]) == {"naive", "replay"} and kept["low"].notna().all() and kept["p_corrected"].isna().all()


def test_many_tasks_do_not_crowd_out_the_losses(tmp_path: Path) -> None:
    sets = {f"set{i}": i for i in range(14)}
    for method in ("a", "b"):
        about = {"seeds": [1], "eval_sets": sets, "tasks": list(sets), "provenance": False}
        with waterjar.Recorder(tmp_path / f"s/{method}", {"method": method}, **about) as recorder:
            for task in sets:
                recorder.log(train_task=task, epoch=1, performance={"accuracy": [0.5] * 14, "loss": [0.7] * 14})
    report = compose(model_of(waterjar.open_study(tmp_path / "s")))
    (table,) = [one for one in report.shown if isinstance(one, Table) and one.name == "ends"]
    assert table.frame["variable"].value_counts().to_dict() == {"accuracy": 24, "loss": 24}
    assert "Shown are 24 of 28; waterjar diagnose" in table.caption


def test_who_names_the_families_gets_these_alone(folder: Path) -> None:
    found = diagnose(waterjar.open_study(folder), families=FAMILIES)
    assert found.described == [] and set(found.table()["family"]) == {"continual"}
    assert "train/loss" in set(found.table(["train/loss"])["metric"])


def test_of_one_task_acc_and_la_are_one_number_and_one_test(tmp_path: Path, two: Diagnosis) -> None:
    path = continual_study(tmp_path / "s", epochs=1, tasks=1, features=False)
    one = diagnose(waterjar.open_study(path))
    result = one.results["continual"]
    np.testing.assert_array_equal(result["average_accuracy"], result["learning_accuracy"])
    assert "learning_accuracy" not in one.main_metrics() and "learning_accuracy" in two.main_metrics()
    table = compare_cells(one)
    assert set(table["metric"]) == set(one.main_metrics())
    tested = table[table["p_value"].notna()]
    assert tested.empty or table["family_size"].max() == len(tested)
    assert "learning_accuracy" in set(one.table()["metric"])  # it is measured all the same


def test_figures_over_metrics_take_what_was_recorded(two: Diagnosis, tmp_path: Path) -> None:
    boxes = figures.data("metric_boxes", two, metrics=["train/loss", "forgetting"])
    last = two.study.load("train")["replay"]["loss"].isel(step=-1).values
    own = boxes[(boxes["metric"] == "train/loss") & (boxes["cell"] == "replay")]
    np.testing.assert_array_equal(own["value"], last)
    assert set(own["how"]) == {"at the last step"} and boxes.attrs["titles"]["train/loss"] == "training loss (nat) ↓"
    traces = figures.data("metric_traces", two, metrics=["train/loss"])
    curve = two.study.load("train")["naive"]["loss"].mean("repeat").values
    drawn = traces[traces["cell"] == "naive"]
    np.testing.assert_allclose(drawn["mean"], curve[-len(drawn) :])
    points = figures.data("metric_scatter", two, x="train/loss", y="ACC")
    assert points["x"].notna().any()
    compared = figures.data("strategy_comparison", two, metrics=["train/loss", "ACC"])
    assert set(compared["metric"]) == {"train/loss", "average_accuracy"}
    pairs = figures.data("correlation_heatmap", two, metrics=["train/loss", "ACC", "forgetting"])
    assert isinstance(pairs, pd.DataFrame) and len(pairs) == 3
    alone = waterjar.open_study(loss_study(tmp_path / "loss", seeds=(0, 1, 2), epochs=2))
    assert set(figures.data("metric_boxes", alone, metrics=["performance/loss"])["metric"]) == {
        "performance/loss[held_out]"
    }
    assert figures.of_recorded_alone({"metrics": "train/loss"}) and not figures.of_recorded_alone({"metrics": "ACC,x"})
    with pytest.raises(waterjar.WaterjarError, match="'train/los' is unknown: did you mean 'train/loss'"):
        figures.data("metric_boxes", two, metrics=["train/los"])


def test_a_recorded_accuracy_goes_together_with_what_is_made_of_it() -> None:
    assert coupled("performance/accuracy[digits01]", "average_accuracy")
    assert not coupled("train/loss", "average_accuracy")


def test_runs_that_do_not_fit_are_told_alike_by_figures_and_families(tmp_path: Path) -> None:
    path = continual_study(tmp_path / "s", ["naive"], (0, 1), epochs=2, tasks=2, features=False)
    continual_run(path / "naive-2", "naive", 2, 3, tasks=2, features=False)
    study, told = waterjar.open_study(path), "naive-2 trained 3 epochs a task, the others 2. Of these alone"
    for name in ("learning_curves", "metric_boxes", "task_matrix", "metric_traces", "strategy_comparison"):
        with pytest.raises(waterjar.WaterjarError, match=told):
            figures.draw(name, study)
    assert told in diagnose(study).passed_over["continual"]


def test_no_figure_of_snapshots_draws_runs_that_do_not_fit(tmp_path: Path) -> None:
    """No cell fits, so that none is left out: at one snapshot seeds trained different tasks."""
    path = continual_study(tmp_path / "s", ["naive", "replay"], (0, 1), epochs=4, tasks=2)
    for method in ("naive", "replay"):
        continual_run(path / f"{method}-2", method, 2, 2, tasks=2)
    study = waterjar.open_study(path)
    found = diagnose(study, families=["plasticity", "drift"])
    for source in (study, found):
        for name in ("plasticity_stack", "metric_traces", "drift_matrix", "learning_curves"):
            how = {"metrics": ["effective_rank"]} if name == "metric_traces" else {}
            with pytest.raises(waterjar.WaterjarError) as told:
                figures.draw(name, source, **how)
            for method in ("naive", "replay"):
                assert f"{method}: {method}-2 trained 2 epochs a task, the others 4. Of these alone" in str(told.value)
            assert "(Python: study.select('name != \"naive-2\"'))" in str(told.value)
    rest = study.select('name != "naive-2"')  # the other cell does not cost this one its lines
    assert set(figures.data("plasticity_stack", rest)["cell"]) == {"naive"}
    whole = waterjar.report(study, tmp_path / "report.md").read_text(encoding="utf-8")
    assert "naive-2 trained 2 epochs a task, the others 4" in whole


def test_a_seed_that_ends_early_is_in_the_lines_as_far_as_it_goes(tmp_path: Path) -> None:
    path = continual_study(tmp_path / "s", ["naive"], (0, 1), epochs=2, tasks=2)
    continual_run(path / "naive-2", "naive", 2, 2, tasks=1)
    table = figures.data("metric_traces", waterjar.open_study(path), metrics=["effective_rank"])
    assert table["n"].max() == 3 and table["n"].iloc[-1] == 2


def test_a_loss_beside_an_accuracy_is_said_to_be_compared_where_it_is_named(tmp_path: Path, folder: Path) -> None:
    path = continual_study(tmp_path / "s", epochs=1, tasks=1, features=False)
    name = "performance/loss[digits01]"
    assert untested(diagnose(waterjar.open_study(path)), ["average_accuracy"]) == (name, 1)  # and that of training
    said = " ".join(CliRunner().invoke(app, ["compare", str(path), "--no-figures"]).output.split())
    assert f"not tested unless it is named: {name} (and 1 more); --metrics '{name}' compares it" in said
    named = CliRunner().invoke(app, ["compare", str(path), "--no-figures", "--metrics", f"{name},train/loss"])
    assert named.exit_code == 0 and "not tested unless" not in named.output
    told = "The recorded loss is compared by"
    assert told in waterjar.report(waterjar.open_study(path), tmp_path / "r.md").read_text(encoding="utf-8")
    assert told not in waterjar.report(waterjar.open_study(folder), tmp_path / "t.md").read_text(encoding="utf-8")
