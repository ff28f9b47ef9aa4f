"""Strategies compared: numbers and stars are those of the tests, and no more."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import waterjar
from bounded_means import score_interval
from waterjar.diagnose.baseline import default_baseline
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.figures.strategy_comparison import stars

SEEDS = tuple(range(1, 13))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    """Twelve seeds of three learners on one task: `better` clearly so, `same` not."""
    folder = tmp_path_factory.mktemp("compared") / "study"
    rng = np.random.default_rng(5)
    for seed in SEEDS:
        base = 0.5 + 0.02 * rng.normal()
        for learner, shift in (("sgd", 0.0), ("better", 0.1), ("same", 0.0)):
            with waterjar.Recorder(
                folder / f"{learner}-{seed}", {"learner": learner, "scenario": learner}, seeds=[seed],
                eval_sets={"t": 0}, tasks=["t"],
            ) as recorder:  # fmt: skip
                recorder.log(train_task="t", epoch=0, performance={"accuracy": [0.0]})
                recorder.log(train_task="t", epoch=1, performance={"accuracy": [base + shift + 0.01 * rng.normal()]})
    return waterjar.open_study(folder)


def test_numbers_are_those_of_scipy(study: waterjar.Study) -> None:
    table = figures.data("strategy_comparison", study, metrics=["average_accuracy"], baseline="sgd")
    values = {cell: part.sort_values("seed")["value"].to_numpy() for cell, part in table.groupby("cell")}
    rows = table.drop_duplicates("cell").set_index("cell")
    p = {cell: stats.ttest_rel(values[cell], values["sgd"]).pvalue for cell in ("better", "same")}
    assert rows.loc["better", "p_value"] == pytest.approx(p["better"])
    assert rows.loc["better", "p_corrected"] == pytest.approx(2 * p["better"])  # Holm over two tests
    assert rows.loc["better", "mean"] == pytest.approx(values["better"].mean())
    assert rows.loc["better", "stars"] == "***" and rows.loc["same", "stars"] == ""
    assert rows.loc["sgd", "is_baseline"] and rows.loc["better", "n"] == 12
    compared = compare_cells(diagnose(study, only=["continual"]), ["average_accuracy"], baseline="sgd")
    assert rows.loc["same", "p_corrected"] == compared.set_index("group").loc["same", "p_corrected"]


def test_brackets_join_what_differs_and_nothing_else(study: waterjar.Study) -> None:
    figure = figures.draw("strategy_comparison", study, metrics=["average_accuracy"], baseline="sgd")
    ax = figure.axes[0]
    cells = [label.get_text() for label in ax.get_yticklabels()]
    brackets = [line for line in ax.lines if line.get_gid() == "bracket"]
    assert [sorted(set(line.get_ydata())) for line in brackets] == [sorted([cells.index("sgd"), cells.index("better")])]
    texts = {int(text.get_position()[1]): text.get_text() for text in ax.texts}
    assert texts[cells.index("sgd")] == "baseline"
    assert texts[cells.index("better")].endswith("***") and "*" not in texts[cells.index("same")]
    assert ax.get_xlabel() == "ACC ↑"
    note = figure._supxlabel.get_text().replace("\n", " ")
    assert "n = 12 seeds" in note and "paired t test, Holm over 2 tests" in note


@pytest.mark.parametrize(
    ("p", "least", "expected"),
    [
        (0.04, 0.25, "*"), (0.0001, 0.25, "*"), (0.009, 0.009, "**"), (0.0009, 0.002, "**"), (0.0005, 0.0005, "***"),
        (0.051, 0.0001, ""), (np.nan, 0.1, ""),
    ],
)  # fmt: skip
def test_never_more_stars_than_the_seeds_carry(p: float, least: float, expected: str) -> None:
    assert stars(p, least) == expected


def test_three_seeds_never_get_two_stars(by_hand: waterjar.Study) -> None:
    table = figures.data("strategy_comparison", by_hand)
    assert set(table["metric"]) == {"patched_accuracy", "masked_accuracy", "average_accuracy"}
    assert set(table["stars"]) <= {"", "*"} and "*" in set(table["stars"])
    assert (table["stars"] == "*").eq(table["significant"]).all()


def test_relative_metrics_follow_the_baseline(by_hand: waterjar.Study) -> None:
    table = figures.data("strategy_comparison", by_hand, metrics=["pd"], baseline="late")
    assert table[table.cell == "late"]["value"].eq(0).all()
    assert table[table.cell == "low"]["mean"].iloc[0] == pytest.approx(0.3)


def test_without_a_baseline_means_stay_and_the_figure_says_so(study: waterjar.Study, tmp_path: Path) -> None:
    figure = figures.draw("strategy_comparison", study, baseline="scratch_t2")
    table = figures.data("strategy_comparison", study, baseline="scratch_t2")
    assert not any(line.get_gid() == "bracket" for line in figure.axes[0].lines)
    assert "no test: the study has no cell with the scenario 'scratch_t2'" in figure._supxlabel.get_text().replace(
        "\n", " "
    )
    table = table[table.metric == "average_accuracy"]
    values = table[table.cell == "better"]["value"]
    bounds = score_interval(values.to_numpy(), (0.0, 1.0))
    np.testing.assert_allclose(table[table.cell == "better"][["low", "high"]].iloc[0], bounds)


def test_baseline_and_tests_are_those_that_the_study_declares(by_hand: waterjar.Study, tmp_path: Path) -> None:
    def declared(**analysis: object) -> pd.DataFrame:
        folder = waterjar.create_study(tmp_path / "s", {"analysis": analysis}, replace=True)
        for entry in by_hand.entries:
            if not (folder / entry.name).exists():
                shutil.copytree(by_hand.path / entry.name, folder / entry.name)
        return figures.data("strategy_comparison", waterjar.open_study(folder), metrics=["pd", "masked_accuracy"])

    first = declared(baseline="late", tests={"correction": "benjamini_hochberg", "alpha": 0.01})
    assert set(first["baseline"]) == {"late"} and set(first.loc[first["test"] != "", "correction"]) == {
        "benjamini_hochberg"
    }
    assert first.attrs["alpha"] == 0.01
    assert first[(first.metric == "pd") & (first.cell == "low")]["mean"].iloc[0] == pytest.approx(0.3)
    none = declared(tests=False)
    assert none["p_value"].isna().all() and set(none["reason"]) == {"none is declared"}
    assert none["mean"].notna().any()


def test_where_nobody_names_a_baseline_it_is_the_first_cell(study: waterjar.Study) -> None:
    table = figures.data("strategy_comparison", study)
    first, _ = default_baseline(study)  # by name where all began in one second, which a busy machine does not manage
    assert table[table.cell == first]["is_baseline"].all() and set(table["baseline"]) == {first}


def test_refusals(study: waterjar.Study) -> None:
    for settings, message in (
        ({"metrics": []}, "metrics is empty"),
        ({"metrics": ["average_acuracy"]}, "did you mean 'average_accuracy'"),
        ({"baseline": "sgdd"}, "did you mean 'sgd'"),
        ({"baseline": "sgd", "test": "wilcox"}, "did you mean 'wilcoxon'"),
    ):
        with pytest.raises(WaterjarError, match=message):
            figures.draw("strategy_comparison", study, **settings)


def test_a_metric_nobody_has(by_hand: waterjar.Study) -> None:
    figure = figures.draw("strategy_comparison", by_hand, metrics=["ad"], threshold=0.95)
    assert "9 never_reached" in figure.axes[0].texts[0].get_text()
