"""Two metrics over repeats: points as measured, correlations as scipy has them, repeated measures counted once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import waterjar
from bounded_means import score_interval
from view.figures.repeated_runs import Written, repeated_run
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.view import figures

NAME = "metric_scatter"
Both = tuple[Diagnosis, dict[str, Written]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = waterjar.create_study(tmp_path_factory.mktemp("scatter") / "study")
    made = {
        "a": repeated_run(folder / "a", "a", [1, 2, 3, 4, 5, 6], tasks=4, number=1, features=False),
        "b": repeated_run(folder / "b", "b", [2, 3, 4, 5, 6, 7], tasks=4, number=2, at_chance=1, features=False),
    }
    return diagnose(waterjar.open_study(folder), only=["continual", "plasticity"]), made


def own_accuracy(one: Written) -> np.ndarray:
    """(repeat, task)."""
    return np.stack([one.accuracy[t, -1, t] for t in range(len(one.accuracy))], axis=1)


def transfer(one: Written) -> np.ndarray:
    """(repeat, task)."""
    E, R = 2 * one.expert[:, -1].T - 1, 2 * own_accuracy(one) - 1
    return np.where(E + R == 0, np.nan, (E - R) / (E + R + 1e-8))


def magnitude(one: Written) -> np.ndarray:
    """(repeat, snapshot)."""
    return np.sqrt((one.weights**2).mean((3, 4))).reshape(-1, len(one.seeds)).T


class TestOverRepeats:
    def test_points_and_correlations(self, written: Both) -> None:
        found, made = written
        table = figures.data(NAME, found, x="weight_magnitude", y="learning_accuracy")
        points, told = table[table.kind == "point"], table[table.kind == "correlation"]
        xs, ys = [], []
        for cell, one in made.items():
            own = points[points.cell == cell]
            x, y = magnitude(one).mean(1), own_accuracy(one).mean(1)
            assert own["seed"].tolist() == one.seeds
            np.testing.assert_allclose(own["x"], x)
            np.testing.assert_allclose(own["y"], y)
            xs.append(x)
            ys.append(y)
            self.check(told[told.cell == cell], x, y)
        self.check(told[told.cell == ""], np.concatenate(xs), np.concatenate(ys))
        assert table.attrs["titles"] == ("weight magnitude, mean over snapshots", "learning accuracy ↑")

    @staticmethod
    def check(told: object, x: np.ndarray, y: np.ndarray) -> None:
        by_method = told.set_index("method")  # type: ignore[attr-defined]
        pearson, spearman = stats.pearsonr(x, y), stats.spearmanr(x, y)
        bounds = pearson.confidence_interval(0.95)
        line = by_method.loc["pearson"]
        np.testing.assert_allclose(line[["r", "low", "high"]].tolist(), [pearson.statistic, bounds.low, bounds.high])
        assert by_method.loc["spearman", "r"] == pytest.approx(spearman.statistic)
        assert (by_method["n"] == len(x)).all()

    def test_a_repeat_without_one_of_them(self, written: Both) -> None:
        found, made = written
        table = figures.data(NAME, found, x="forward_transfer", y="learning_accuracy")
        b = table[(table.kind == "point") & (table.cell == "b")]
        assert b["missing"].tolist() == ["", "forward_transfer: undefined", "", "", "", ""]
        told = table[(table.kind == "correlation") & (table.cell == "b")]
        kept = [0, 2, 3, 4, 5]
        self.check(told, transfer(made["b"])[kept].mean(1), own_accuracy(made["b"])[kept].mean(1))
        assert set(told["n_missing"]) == {1}
        figure = figures.draw(NAME, found, x="forward_transfer", y="learning_accuracy")
        assert "1 point without a value left out" in legend(figure)[0]

    def test_the_last_snapshot(self, written: Both) -> None:
        found, made = written
        table = figures.data(NAME, found, x="weight_magnitude", y="learning_accuracy", snapshots="final")
        own = table[(table.kind == "point") & (table.cell == "a")]
        np.testing.assert_allclose(own["x"], magnitude(made["a"])[:, -1])
        assert table.attrs["titles"][0] == "weight magnitude, at the end"


class TestWithinRepeats:
    """Tasks and snapshots of one repeat are repeated measures: r within each, n counts repeats."""

    def test_over_tasks(self, written: Both) -> None:
        found, made = written
        table = figures.data(NAME, found, x="forward_transfer", y="learning_accuracy", over="task")
        assert (table["kind"] == "point").sum() == 2 * 6 * 4
        each = {}
        for cell, one in made.items():
            x, y = transfer(one), own_accuracy(one)
            own = table[(table.kind == "point") & (table.cell == cell)]
            np.testing.assert_allclose(own["x"], x.ravel())
            np.testing.assert_allclose(own["y"], y.ravel())
            there = [r for r in range(6) if np.isfinite(x[r]).all()]
            each[cell] = [stats.pearsonr(x[r], y[r]).statistic for r in there]
        told = table[(table.kind == "correlation") & (table.method == "pearson")].set_index("cell")
        for cell, r in {**each, "": each["a"] + each["b"]}.items():
            low, high = score_interval(np.array(r), (-1.0, 1.0))
            line = told.loc[cell]
            np.testing.assert_allclose(line[["r", "low", "high"]].tolist(), [np.mean(r), low, high])
            assert line["n"] == len(r)
        assert told.loc["b", "n"] == 5 and told.loc["b", "n_missing"] == 1

    def test_over_snapshots_moments_are_told_by_task_and_epoch(self, written: Both) -> None:
        found, made = written
        table = figures.data(NAME, found, x="weight_magnitude", y="average_accuracy", over="snapshot")
        a = made["a"]
        own = table[(table.kind == "point") & (table.cell == "a")]
        so_far = [[a.accuracy[t, e, : t + 1, r].mean() for t in range(4) for e in range(3)] for r in range(6)]
        np.testing.assert_allclose(own["x"].to_numpy().reshape(6, 12), magnitude(a))
        np.testing.assert_allclose(own["y"].to_numpy().reshape(6, 12), so_far)
        told = table[(table.kind == "correlation") & (table.cell == "a")].set_index("method")
        each = [stats.spearmanr(magnitude(a)[r], so_far[r]).statistic for r in range(6)]
        assert told.loc["spearman", "r"] == pytest.approx(np.mean(each)) and told.loc["spearman", "n"] == 6
        assert (
            "within each repeat over its snapshots"
            in legend(figures.draw(NAME, found, x="weight_magnitude", y="average_accuracy", over="snapshot"))[0]
        )

    def test_what_does_not_fit(self, written: Both) -> None:
        found, _ = written
        with pytest.raises(WaterjarError, match="over=task: weight_magnitude has a value per snapshot"):
            figures.data(NAME, found, x="weight_magnitude", y="learning_accuracy", over="task")
        with pytest.raises(WaterjarError, match="over 'epoch' is unknown"):
            figures.data(NAME, found, over="epoch")
        with pytest.raises(WaterjarError, match="two different metrics"):
            figures.data(NAME, found, x="forgetting", y="forgetting")


def legend(figure: Figure) -> list[str]:
    """Its title, then its lines."""
    box = figure.legends[0]
    return [box.get_title().get_text(), *(text.get_text() for text in box.get_texts())]


def test_the_legend_has_the_numbers_of_the_table(written: Both) -> None:
    found, _ = written
    figure = figures.draw(NAME, found)
    told = figures.data(NAME, found)
    told = told[told.kind == "correlation"]
    note, *lines = legend(figure)
    assert len(lines) == 3 and lines[-1].startswith("all") and "differences between algorithms count too" in note
    assert "a seed that several have" in note and "a point is a repeat" in note
    for line, cell in zip(lines, ("a", "b", ""), strict=True):
        rows = told[told.cell == cell].set_index("method")
        r, rho = rows.loc["pearson"], rows.loc["spearman"]
        assert f"r = {r.r:.2f} [{r.low:.2f}, {r.high:.2f}]".replace("-0.00", "0.00") in line
        assert f"ρ = {rho.r:.2f}".replace("-0.00", "0.00") in line and line.endswith(f"n = {int(r.n)}")
    colours = [tuple(c.get_facecolor()[0][:3]) for c in figure.axes[0].collections]
    assert len(set(colours)) == 2
    for collection, cell in zip(figure.axes[0].collections, "ab", strict=True):
        own = figures.data(NAME, found)
        own = own[(own.kind == "point") & (own.cell == cell)]
        np.testing.assert_array_equal(np.asarray(collection.get_offsets()), own[["x", "y"]].to_numpy(float))


def test_one_algorithm_and_too_few(tmp_path: Path) -> None:
    repeated_run(tmp_path / "s" / "a", "a", [1, 2], number=1, features=False)
    study = waterjar.open_study(tmp_path / "s")
    table = figures.data(NAME, study)
    told = table[table.kind == "correlation"]
    assert told["r"].isna().all() and set(told["cell"]) == {"a"} and told["reason"].str.len().min() > 5
    lines = legend(figures.draw(NAME, study))
    assert "no correlation" in lines[1] and lines[1].endswith("n = 2")
    none = figures.draw(NAME, study, x="backward_transfer", y="random_label_epochs")
    assert none.axes[0].texts[0].get_text().replace("\n", " ").startswith("no repeat has both: random_label_epochs")
