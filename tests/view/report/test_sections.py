"""Every section tells what was measured, and only appears where there is something to tell."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import waterjar
from view.report.studies import charts_of, einstellung_study, frames_of
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.registry import find_metric
from waterjar.view import figures
from waterjar.view.report import Model, compose, model_of
from waterjar.view.report.blocks import Callout, Chart, Report, Table, Text, Verdicts
from waterjar.view.report.composing import section_files
from waterjar.view.report.sections import continual
from waterjar.view.report.sections.summary import verdicts

ALWAYS = [
    "summary", "reading", "rigidity", "learning", "continual", "statistics", "costs", "settings", "provenance", "seals"
]  # fmt: skip


def section(report: Report, name: str) -> list[object]:
    return next(list(part.blocks) for part in report.sections if part.name == name)


def table(report: Report, name: str) -> Table:
    return next(block for block in report.shown if isinstance(block, Table) and block.name == name)


def chart(report: Report, name: str) -> Chart:
    return next(block for block in charts_of(report) if block.name == name)


def test_sections_stand_in_order_and_appear_with_their_data(small_report: Report, full_report: Report) -> None:
    assert [part.name for part in small_report.sections] == [*ALWAYS, "missing", "definitions"]
    names = [part.name for part in full_report.sections]
    assert names == [name for name in section_files() if name in names]
    assert {"plasticity", "geometry", "drift"} <= set(names)


def test_every_chart_shows_the_numbers_of_its_figure(full: Model, full_report: Report) -> None:
    shown = {one.figure for one in charts_of(full_report)}
    assert shown <= set(figures.available()) and len(shown) >= 11
    for one in charts_of(full_report):
        if one.name != "cost_accuracy":  # two figures side by side
            pd.testing.assert_frame_equal(one.frame, figures.data(one.figure, full.diagnosis, **one.settings))


def test_long_names_of_tasks_leave_the_matrix_its_room() -> None:
    tasks = [f"rotated digits, angle {30 * i} degrees" for i in range(9)]
    rows = [(one, other, 0.5, 0.4, 0.6, 3) for one in tasks for other in tasks]
    part = pd.DataFrame(rows, columns=["train_task", "eval_task", "mean", "low", "high", "n"])
    panel = continual._panel(part, "a learner", 12)
    names = panel["layout"]["xaxis"]["ticktext"]
    assert len(set(names)) == 9 and max(map(len, names)) <= 14
    assert "annotations" not in panel["layout"]  # numbers would stand over each other
    assert len(continual._panel(part, "a learner", 1)["layout"]["annotations"]) == 81


def test_every_panel_is_a_valid_plotly_figure(full_report: Report, nasty_report: Report) -> None:
    for report in (full_report, nasty_report):
        for one in charts_of(report):
            assert one.panels and one.alt and one.caption and one.title
            for panel in one.panels:
                made = go.Figure(panel)
                assert made.layout.showlegend is False


def test_curves_are_the_means_and_bands_of_the_frame(full_report: Report) -> None:
    one = chart(full_report, "plasticity_stack")
    metric = str(one.frame["metric"].iloc[0])
    cell = str(one.frame["cell"].iloc[-1])
    rows = one.frame[(one.frame["metric"] == metric) & (one.frame["cell"] == cell)]
    lines = [trace for trace in one.panels[0]["data"] if "customdata" in trace]
    drawn = next(trace for trace in lines if trace["name"] == cell)
    np.testing.assert_array_equal(np.array(drawn["y"], float), rows["mean"])
    np.testing.assert_array_equal(np.array(drawn["x"], float), rows["total_epoch"])
    bands = [t for t in one.panels[0]["data"] if t.get("fill") == "toself" and t["legendgroup"] == drawn["legendgroup"]]
    n = len(rows)
    np.testing.assert_array_equal(bands[0]["y"][:n], rows["high"])
    np.testing.assert_array_equal(bands[0]["y"][n:][::-1], rows["low"])


def test_estimates_are_drawn_with_their_intervals_and_seeds(small_report: Report) -> None:
    one = chart(small_report, "eri_summary")
    panel = one.panels[1]  # pd
    row = one.frame[(one.frame["metric"] == "pd") & (one.frame["cell"] == "er")]
    mean = next(t for t in panel["data"] if t.get("name") == "er")
    first = row.iloc[0]
    assert mean["x"] == [first["mean"]]
    assert mean["error_x"]["array"] == [pytest.approx(first["high"] - first["mean"])]
    assert mean["error_x"]["arrayminus"] == [pytest.approx(first["mean"] - first["low"])]
    seeds = next(t for t in panel["data"] if t["legendgroup"] == mean["legendgroup"] and "text" in t)
    assert seeds["x"] == row["value"].tolist()


def test_the_task_matrix_shows_what_was_measured(small_report: Report) -> None:
    one = chart(small_report, "task_matrix")
    cells = list(dict.fromkeys(one.frame["cell"]))
    panel = one.panels[cells.index("sgd")]
    part = one.frame[one.frame["cell"] == "sgd"]
    grid = part.pivot(index="eval_task", columns="train_task", values="mean")
    np.testing.assert_array_equal(np.array(panel["data"][0]["z"], float), grid.to_numpy())


def test_verdicts_are_those_of_rigidity_with_interval_and_n(small: Model, small_report: Report) -> None:
    result = small.diagnosis.results["rigidity"]
    told = next(block for block in small_report.shown if isinstance(block, Verdicts))
    assert told.verdicts[-1].pattern == "baseline"
    for one in told.verdicts:
        i = [str(name) for name in result["cell"].values].index(one.name)
        assert one.sentence == str(result["sentence"].values[i])
        assert one.pattern == str(result["pattern"].values[i])
        value = dict(one.facts)["SFR →0\nmasking the shortcut costs"]
        low, high = (float(result[f"sfr_{end}"].values[i]) for end in ("low", "high"))
        assert value == f"{float(result['sfr_mean'].values[i]):.3f}\n[{low:.3f}, {high:.3f}]".replace("-", "−")
    assert "n = 3 everywhere" in told.caption
    learner = int(np.flatnonzero(result["pattern"].values != "baseline")[0])
    unknown = result.copy(deep=True)
    for name in ("ad_n", "ad_restricted_n"):
        unknown[name].values[learner] = 0  # AD of one learner is not known
    assert "everywhere" not in verdicts(unknown, 0.95).caption


def test_the_comparison_is_that_of_diagnose(small: Model, small_report: Report) -> None:
    shown = table(small_report, "comparison")
    names = list(dict.fromkeys(shown.frame["metric"]))
    again = compare_cells(small.diagnosis, baseline="scratch_t2")  # as `waterjar compare` does it: one study, one p
    again = again[again["metric"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(shown.frame, again)
    assert "0.250" in shown.caption  # the smallest p of three pairs
    assert len(shown.rows) == len(again)


def test_a_table_gives_mean_interval_n_arrow_and_units(small: Model, small_report: Report) -> None:
    shown = table(small_report, "cost_table")
    seconds = next(row for row in shown.rows if row[0].startswith("seconds"))
    assert seconds[0] == "seconds (s) ↓"
    column = shown.columns.index("sgd")
    assert seconds[column].endswith("the same in all 3 seeds")  # 9 s each: there is no spread to make an interval of
    blocks = [block for section in small_report.sections for block in section.blocks if isinstance(block, Table)]
    cells = [text for block in blocks for row in block.rows for text in row]
    assert any(text.endswith("n = 3") and "[" in text for text in cells)
    rows = small.table[(small.table["metric"] == "seconds") & (small.table["cell"] == "sgd")]
    assert float(seconds[column].partition("\n")[0]) == pytest.approx(rows["value"].mean(), abs=1e-3)


def test_settings_that_differ_are_told_from_those_that_do_not(small_report: Report) -> None:
    differ, shared = table(small_report, "settings_that_differ"), table(small_report, "settings_shared")
    assert ("method", *differ.columns[1:]) in [(row[0], *row[1:]) for row in differ.rows]
    assert "shortcut.rate" in [row[0] for row in shared.rows]
    assert not {row[0] for row in differ.rows} & {row[0] for row in shared.rows}
    assert "seed" not in {row[0] for row in (*differ.rows, *shared.rows)}


def test_what_is_missing_is_listed_with_its_reason(small: Model, small_report: Report) -> None:
    shown = table(small_report, "missing")
    gone = small.table[small.table["value"].isna()]
    assert int(shown.frame["missing"].sum()) == len(gone)
    assert set(shown.frame["reason"]) == set(gone["reason"])
    words = [item for block in section(small_report, "missing") for item in getattr(block, "items", ())]
    assert any("no run has recorded features" in text for _, text in words)


def test_definitions_cover_every_metric_with_a_value(full: Model, full_report: Report) -> None:
    there = set(full.table.loc[full.table["value"].notna(), "metric"])
    shown = table(full_report, "definitions")
    assert set(shown.frame["name"]) == there
    assert find_metric("pd").formula in set(shown.frame["definition"])


def test_simulated_capacity_is_drawn_over_capacity(full_report: Report) -> None:
    one = chart(full_report, "geometry_stack")
    assert (one.frame["metric"] == "simulated_capacity").any()
    dots = [t for t in one.panels[0]["data"] if "error_y" in t]
    assert dots and all("Simulated (Alg 1)" in t["hovertemplate"] for t in dots)
    points = one.frame[(one.frame["metric"] == "simulated_capacity") & (one.frame["cell"] == "sgd")]
    drawn = next(t for t in dots if t["legendgroup"] == next(k.group for k in one.keys if k.label == "sgd"))
    np.testing.assert_array_equal(np.array(drawn["y"], float), points["mean"])


def test_correlations_have_numbers_only_where_they_are_significant(full_report: Report) -> None:
    one = chart(full_report, "correlation_heatmap")
    texts = [note["text"] for note in one.panels[0]["layout"]["annotations"]]
    within = one.frame["p_within_corrected"] <= one.frame.attrs["alpha"]
    assert sum(bool(text) for text in texts) == int(one.frame["significant"].sum()) + int(within.sum())
    strokes = [shape for shape in one.panels[0]["layout"]["shapes"] if shape["type"] == "line"]
    assert len(strokes) == 2 * 3 * int(one.frame["coupled"].sum()) > 0
    assert "share an input by arithmetic" in one.caption and "power 80 %" in one.caption


def test_colours_are_the_same_in_every_chart(full_report: Report) -> None:
    seen: dict[str, set[str]] = {}
    for one in charts_of(full_report):
        for key in one.keys:
            seen.setdefault(key.label, set()).add(key.colour)
    assert seen and all(len(colours) == 1 for colours in seen.values())


def test_no_number_in_a_frame_is_changed_for_the_page(full: Model) -> None:
    values = full.table["value"].to_numpy(float)
    assert np.isfinite(values).any()
    assert not any(math.isinf(value) for value in values)


@pytest.fixture(scope="module")
def two_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two learners on two tasks, two seeds each: nothing of a shortcut."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("tasks") / "s")
    for learner, kept in (("sl", 0.6), ("replay", 0.8)):
        for seed in (1, 2):
            run, sets = folder / f"{learner}-{seed}", {"one": 0, "two": 1}
            settings: dict[str, Any] = {"seeds": [seed], "eval_sets": sets, "tasks": ["a", "b"], "classes": ["x", "y"]}
            with waterjar.Recorder(run, {"learner": learner, "seed": seed}, **settings) as recorder:
                for task, first, second in (("a", 0.9, 0.5), ("b", kept + 0.01 * seed, 0.9)):
                    recorder.log(train_task=task, epoch=0, performance={"accuracy": [0.5, 0.5]})
                    recorder.log(train_task=task, epoch=1, performance={"accuracy": [first, second]})
    return folder


def reported(folder: Path, **analysis: Any) -> Report:
    waterjar.create_study(folder, {"analysis": analysis}, replace=True)
    return compose(model_of(waterjar.open_study(folder)))


def test_the_summary_opens_with_the_family_that_leads(two_tasks: Path) -> None:
    for analysis in ({}, {"lead": "continual"}):
        report = reported(two_tasks, **analysis)
        (first,) = section(report, "summary")
        assert isinstance(first, Callout) and first.text.startswith("Whether replay forgets less")
        assert "(the same in every seed, 2 pairs of seeds, and at least 3 are needed)" in first.text
        assert "rigidity" not in first.text
    *_, last = section(reported(two_tasks, lead="rigidity"), "summary")
    assert isinstance(last, Text) and last.text.startswith("There is no verdict on rigidity: ")


def test_without_tests_the_section_says_so(two_tasks: Path) -> None:
    report = reported(two_tasks, tests=False)
    first, shown = section(report, "statistics")
    assert isinstance(first, Text) and first.text.startswith("No tests were made")
    assert isinstance(shown, Chart) and shown.frame["p_value"].isna().all()
    assert "comparison" not in set(table(report, "settings_of_diagnostics").frame["family"])
    tested = reported(two_tasks, tests={"correction": "benjamini_hochberg", "alpha": 0.01}, baseline="sl")
    caption = table(tested, "comparison").caption
    assert "benjamini hochberg" in caption and "0.01 or less" in caption
    assert tuple(row[1] for row in table(tested, "comparison").rows[:2])[::-1] == ("replay", "sl (baseline)")
    used = table(tested, "settings_of_diagnostics").frame
    assert ("baseline", '"sl"') in set(zip(used["setting"], used["value"], strict=True))


def test_what_is_declared_is_what_is_shown(tmp_path: Path) -> None:
    folder = einstellung_study(tmp_path / "s")
    report = reported(folder, settings={"rigidity": {"threshold": 0.75, "confidence": 0.9}})
    assert set(frames_of(report)["eri_dynamics"]["threshold"].dropna()) == {0.75}
    assert set(frames_of(report)["eri_summary"]["confidence"]) == {0.9}
    first = section(report, "summary")
    assert any("75 %" in str(block) for block in first) and not any("60 %" in str(block) for block in first)
    assert any("its 90 % t interval" in getattr(block, "caption", "") for block in first)
    used = table(report, "settings_of_diagnostics").frame
    assert "0.75" in set(used.loc[(used["family"] == "rigidity") & (used["setting"] == "threshold"), "value"])
    drawn = figures.data("eri_dynamics", waterjar.open_study(folder))
    pd.testing.assert_frame_equal(drawn, frames_of(report)["eri_dynamics"])
    assert set(figures.data("eri_dynamics", waterjar.open_study(folder), threshold=0.5)["threshold"].dropna()) == {0.5}
