"""Boxes over repeats: one number per repeat first, then quartiles, means and intervals, against numpy and scipy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import waterjar
from bounded_means import score_interval
from view.figures.repeated_runs import Written, repeated_run
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS
from waterjar.view import figures

NAME = "metric_boxes"
Both = tuple[Diagnosis, dict[str, Written]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = waterjar.create_study(tmp_path_factory.mktemp("boxes") / "study")
    made = {
        "a": repeated_run(folder / "a", "a", [1, 2, 3, 4, 5], number=1),
        "b": repeated_run(folder / "b", "b", [2, 3, 4, 5, 6], number=2, at_chance=1),
        "c": repeated_run(folder / "c", "c", [4, 5, 7], number=3),
    }
    return diagnose(waterjar.open_study(folder), only=["continual", "plasticity"]), made


def of_cell(table: pd.DataFrame, cell: str) -> pd.DataFrame:
    return table[table.cell == cell].reset_index(drop=True)


def check(part: pd.DataFrame, values: np.ndarray) -> None:
    np.testing.assert_allclose(part["value"], values)
    kept = values[~np.isnan(values)]
    first = part.iloc[0]
    low, high = score_interval(kept, find_metric(first["metric"]).range)
    np.testing.assert_allclose(
        first[["mean", "low", "high", "std"]].tolist(), [kept.mean(), low, high, kept.std(ddof=1)]
    )
    five = first[["smallest", "q1", "median", "q3", "largest"]].tolist()
    np.testing.assert_allclose(five, np.percentile(kept, [0, 25, 50, 75, 100]))
    assert first["n"] == len(kept) and first["n_missing"] == len(values) - len(kept)


def test_means_over_snapshots_and_layers_come_first(written: Both) -> None:
    found, made = written
    table = figures.data(NAME, found, metrics=["feature_norm", "weight_magnitude"])
    for cell, one in made.items():
        norms = [np.linalg.norm(h, axis=-1).mean((3, 4)).reshape(9, -1).mean(0) for h in one.features.values()]
        check(of_cell(table[table.metric == "feature_norm"], cell), np.mean(norms, axis=0))
        w = np.sqrt((one.weights**2).mean((3, 4))).reshape(9, -1).mean(0)
        check(of_cell(table[table.metric == "weight_magnitude"], cell), w)
        assert of_cell(table, cell)["seed"].tolist()[: len(one.seeds)] == one.seeds
    assert set(table["how"]) == {"mean over snapshots"}


def test_at_the_end_it_is_the_number_of_the_table(written: Both) -> None:
    found, made = written
    table = figures.data(NAME, found, metrics=["weight_magnitude"], snapshots="final")
    check(of_cell(table, "a"), np.sqrt((made["a"].weights[-1, -1] ** 2).mean((1, 2))))
    np.testing.assert_array_equal(table["value"], found.table(["weight_magnitude"])["value"])
    assert set(table["how"]) == {"at the end"}
    with pytest.raises(WaterjarError, match="snapshots 'last' is unknown"):
        figures.data(NAME, found, metrics=["weight_magnitude"], snapshots="last")


def test_means_over_tasks_come_first_and_undefined_repeats_are_counted(written: Both) -> None:
    found, made = written
    table = figures.data(NAME, found, metrics=["forward_transfer", "learning_accuracy"])
    for cell, one in made.items():
        own = np.stack([one.accuracy[t, -1, t] for t in range(3)])
        E, R = 2 * one.expert[:, -1] - 1, 2 * own - 1
        with np.errstate(invalid="ignore"):
            ft = np.where(E + R == 0, np.nan, (E - R) / (E + R + 1e-8)).mean(0)
        check(of_cell(table[table.metric == "forward_transfer"], cell), ft)
        check(of_cell(table[table.metric == "learning_accuracy"], cell), own.mean(0))
    b = of_cell(table[table.metric == "forward_transfer"], "b")
    assert b["missing"].tolist() == ["", "undefined", "", "", ""]
    assert set(table["how"]) == {"mean over tasks", ""}


def test_other_confidence(written: Both) -> None:
    found, made = written
    line = figures.data(NAME, found, metrics=["learning_accuracy"], confidence=0.8).iloc[0]
    own = np.stack([made["a"].accuracy[t, -1, t] for t in range(3)]).mean(0)
    low, high = score_interval(own, (0.0, 1.0), 0.8)
    np.testing.assert_allclose([line["low"], line["high"]], [low, high])


def test_undefined_snapshots_are_left_out_and_counted(written: Both) -> None:
    found, _ = written
    result = found.results["plasticity"].copy(deep=True)
    values = result["weight_magnitude"].transpose("cell", "seed", "snapshot").values.copy()
    codes = np.where(np.isnan(values), 1, 0).astype(np.uint8)
    values[0, 0, 2:4], codes[0, 0, 2:4] = np.nan, REASONS.index("undefined")
    values[0, 1, 5], codes[0, 1, 5] = np.nan, REASONS.index("not_a_number")
    dims = ("cell", "seed", "snapshot")
    result["weight_magnitude"] = (dims, values)
    result["weight_magnitude_reason"] = (dims, codes)
    changed = Diagnosis(found.study, {**found.results, "plasticity": result})
    table = of_cell(figures.data(NAME, changed, metrics=["weight_magnitude"]), "a")
    assert table["value"][0] == pytest.approx(np.delete(values[0, 0], [2, 3]).mean())
    assert table["left_out"].tolist() == [2, 0, 0, 0, 0]
    assert table["missing"].tolist() == ["", "not_a_number", "", "", ""] and np.isnan(table["value"][1])
    note = figures.draw(NAME, changed, metrics=["weight_magnitude"]).get_supxlabel().replace("\n", " ")
    assert "2 snapshots at which a metric is undefined are left out" in note and "n = 3 or 4 or 5 repeats" in note


def test_boxes_points_and_lines_between_the_same_seeds(written: Both) -> None:
    found, made = written
    figure = figures.draw(NAME, found, metrics=["learning_accuracy", "forward_transfer"])
    ax, ratio = figure.axes
    own = {cell: np.stack([one.accuracy[t, -1, t] for t in range(3)]).mean(0) for cell, one in made.items()}
    # 2, 3, 4, 5 are in a and b; 4 and 5 in b and c
    pairs = [line for line in ax.lines if line.get_gid() == "pair"]
    ends = [(line.get_xdata().tolist(), list(line.get_ydata())) for line in pairs]
    value = {cell: dict(zip(made[cell].seeds, own[cell], strict=True)) for cell in made}
    expected = [([value["a"][s], value["b"][s]], [0, 1]) for s in (2, 3, 4, 5)]
    expected += [([value["b"][s], value["c"][s]], [1, 2]) for s in (4, 5)]
    assert len(ends) == len(expected)
    for (x, y), (x0, y0) in zip(ends, expected, strict=True):
        np.testing.assert_allclose(x, x0)
        assert y == y0
    # the second repeat of b is undefined: seed 3 has no partner there
    assert sum(line.get_gid() == "pair" for line in ratio.lines) == 5
    assert [text.get_text() for text in ratio.texts if text.get_gid() == "missing"] == ["1 undefined"]
    boxes = [patch.get_path().get_extents() for patch in ax.patches]
    assert len(boxes) == 2  # c has three repeats: points alone
    for box, cell in zip(boxes, "ab", strict=True):
        np.testing.assert_allclose([box.x0, box.x1], np.percentile(own[cell], [25, 75]))
    dots = [c.get_offsets() for c in ax.collections if c.get_gid() == "repeats"]
    for row, cell in enumerate("abc"):
        np.testing.assert_allclose(dots[row][:, 0], own[cell])
        np.testing.assert_array_equal(dots[row][:, 1], row)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    note = figure.get_supxlabel().replace("\n", " ")
    assert (
        "95 % t interval (of bounded values on the logit scale), n = 3 or 4 or 5 repeats" in note
        and "thin lines: the same seed" in note
    )


def test_no_value_and_nothing_measured(written: Both, tmp_path: Path) -> None:
    found, _ = written
    figure = figures.draw(NAME, found, metrics=["sharpness", "learning_accuracy"])
    assert "no value" in [text.get_text() for text in figure.axes[0].texts]
    others = dict.fromkeys(("continual", "geometry", "rigidity"), "left out")
    bare = Diagnosis(found.study, {"plasticity": found.results["plasticity"][[]]}, passed_over=others)
    with pytest.raises(WaterjarError, match="has a value here: name others"):
        figures.data(NAME, bare)
    with pytest.raises(WaterjarError, match="has no value here: plasticity did not measure it"):
        figures.data(NAME, bare, metrics=["dormant_units"])
    alone = tmp_path / "s"
    repeated_run(alone / "a", "a", [1], number=1)
    one = figures.draw(NAME, waterjar.open_study(alone), metrics=["learning_accuracy"])
    assert "n = 1 repeat" in one.get_supxlabel() and "thin lines" not in one.get_supxlabel()
