"""Stacks over training and the drift matrix: what is drawn is what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import waterjar
from waterjar.diagnose import drift, geometry, plasticity
from waterjar.diagnose.over_seeds import mean_table
from waterjar.errors import WaterjarError
from waterjar.run.schema import MEANINGS
from waterjar.view import figures
from waterjar.view.curves import BOUNDARY, draw_curve
from waterjar.view.figures._stack import draw_stack
from waterjar.view.report import compose, model_of
from waterjar.view.style import axes, roots_of

RNG = np.random.default_rng(3)
CENTRES = np.repeat(RNG.normal(size=(3, 8)) * 5, 4, axis=0)


def record(path: Path, seed: int, *, learner: str = "sgd", tasks: tuple[str, ...] = ("first", "second")) -> Path:
    rng = np.random.default_rng(seed)
    with waterjar.Recorder(
        path, {"learner": learner}, seeds=[seed], eval_sets={"a": 0, "b": 1}, tasks=["first", "second"]
    ) as recorder:
        recorder.once("probe_samples", label=np.tile(np.repeat([0, 1, 2], 4), (1, 2, 1)))
        for task in tasks:
            for epoch in range(3):
                recorder.log(
                    train_task=task,
                    epoch=epoch,
                    performance={"accuracy": [0.5, 0.5]},
                    snapshot={
                        "features": {
                            "early": rng.normal(size=(2, 12, 8)),
                            "late": np.abs(rng.normal(size=(2, 12, 8))) + CENTRES,
                        },
                        "weights": {"w": rng.normal(size=(4, 3))},
                    },
                )
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    folder = waterjar.create_study(tmp_path_factory.mktemp("stacks") / "study")
    for seed in (1, 2):
        record(folder / f"sgd-{seed}", seed)
        record(folder / f"late-{seed}", seed + 10, learner="late only", tasks=("second",))
    return waterjar.open_study(folder)


def test_plasticity_draws_nine_panels_with_the_means(study: waterjar.Study) -> None:
    figure = figures.draw("plasticity_stack", study)
    assert len(figure.axes) == 9
    result = plasticity.measure(study)
    for ax, name in zip(figure.axes, ("dormant_units", "active_units", "stable_rank"), strict=False):
        assert ax.get_ylabel().replace("\n", " ").startswith(name.replace("_", " "))
        lines = {line.get_label(): line for line in ax.get_lines() if len(line.get_xdata()) > 2}
        cell = "sgd"
        values = result[name].sel(cell=cell, layer="late", seed=[1, 2])
        np.testing.assert_allclose(lines["sgd"].get_ydata(), values.mean("seed"))
        np.testing.assert_array_equal(lines["sgd"].get_xdata(), [0, 1, 2, 2, 3, 4])
        boundaries = [line for line in ax.get_lines() if line.get_color() == BOUNDARY]
        assert [line.get_xdata()[0] for line in boundaries] == [2.0]  # marked though the first cell has one task
    assert len(roots_of(figure)) == 4
    assert "2 repeats" in figure.legends[0].get_title().get_text()


def test_geometry_draws_six_panels_and_the_simulation(study: waterjar.Study) -> None:
    settings = {"n_t": 20, "subsamples": None, "simulate_every": 2, "n_trials": 20}
    figure = figures.draw("geometry_stack", study, dataset="toys", **settings)
    assert len(figure.axes) == 6
    assert figure.axes[0].get_title(loc="left") == "Manifold Geometric Analysis - toys"
    assert figure.axes[0].get_legend() is None  # it would stand over the lines
    assert "Simulated (Alg 1)" in [text.get_text() for text in figure.legends[0].get_texts()]
    run = study.run("sgd-1")
    alone = figures.draw("geometry_stack", run, **settings)
    result = geometry.measure(run, **settings)
    points = next(c for c in alone.axes[0].containers if c.get_label() == "Simulated (Alg 1)")
    drawn = points.lines[0].get_ydata()
    expected = result["simulated_capacity"].sel(layer="late").isel(repeat=0)
    np.testing.assert_allclose(drawn, expected.values[np.isfinite(expected)])


def test_drift_matrix_shows_the_mean_and_hatches_what_is_missing(study: waterjar.Study) -> None:
    figure = figures.draw("drift_matrix", study, measure="procrustes", layer="early")
    pictures = [ax.get_images()[0] for ax in figure.axes if ax.get_images() and ax.get_title(loc="left")]
    assert len(pictures) == 2
    result = drift.measure(study)
    cell = "sgd"
    expected = result["procrustes_matrix"].sel(cell=cell, layer="early", seed=[1, 2]).mean("seed").values
    shown = next(ax for ax in figure.axes if ax.get_title(loc="left") == "sgd").get_images()[0].get_array()
    np.testing.assert_allclose(
        np.asarray(shown), expected[np.isfinite(expected).any(axis=1)][:, np.isfinite(expected).any(axis=0)]
    )
    one = drift.measure(study.run("sgd-1"))
    one["cka_matrix"][0, :, 0, 1] = np.nan
    assert figures.draw("drift_matrix", one).axes[0].patches[0].get_hatch()


def test_results_are_shown_as_they_were_measured(study: waterjar.Study) -> None:
    result = plasticity.measure(study.run("sgd-1"))
    figure = figures.draw("plasticity_stack", result, metrics=["effective_rank"], layer="early")
    assert len(figure.axes) == 1
    np.testing.assert_allclose(
        figure.axes[0].get_lines()[0].get_ydata(), result["effective_rank"].sel(layer="early").isel(repeat=0)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": "lat"}, "did you mean 'late'"),
        ({"band": "intervall"}, "did you mean 'interval'"),
        ({"tau": 0.1}, "shown as it was measured"),
    ],
)
def test_bad_requests(study: waterjar.Study, arguments: dict[str, object], message: str) -> None:
    result = plasticity.measure(study.run("sgd-1"))
    with pytest.raises(WaterjarError, match=message):
        figures.draw("plasticity_stack", result, **arguments)


def test_what_cannot_be_shown(study: waterjar.Study) -> None:
    with pytest.raises(WaterjarError, match="not a result of plasticity"):
        figures.draw("geometry_stack", plasticity.measure(study.run("sgd-1")))
    with pytest.raises(WaterjarError, match="not int"):
        figures.draw("drift_matrix", 3)
    with pytest.raises(WaterjarError, match="did you mean 'cka'"):
        figures.draw("drift_matrix", study, measure="ckaa")
    with pytest.raises(WaterjarError, match="no cka_matrix"):
        figures.draw("drift_matrix", study, matrix=0)


def test_bands() -> None:
    values = np.array([[1.0, 2.0, np.nan], [3.0, 2.5, 4.0], [2.0, 3.0, 5.0]])
    for band, low in (("range", 1.0), ("std", 1.0), ("interval", 2 - 4.302653 / np.sqrt(3))):
        ax = axes(None)
        draw_curve(ax, np.arange(3), mean_table(values, band=band), {"color": "black"})
        np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), [2.0, 2.5, np.nan])
        vertices = ax.collections[0].get_paths()[0].vertices
        assert vertices[vertices[:, 0] == 0][:, 1].min() == pytest.approx(low)


def test_panels_and_matrices_that_have_nothing_say_so(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "s" / "a", {"learner": "x"}, seeds=[1], eval_sets={"a": 0}) as recorder:
        recorder.log(epoch=0, performance={"accuracy": [0.5]}, snapshot={"weights": {"w": np.ones((2, 2))}})
    study = waterjar.open_study(tmp_path / "s")
    figure = figures.draw("plasticity_stack", study)  # weights alone: no layer was recorded
    said = {ax.get_ylabel().split("\n")[0]: [text.get_text() for text in ax.texts] for ax in figure.axes}
    assert said["dormant units ↓"] == ["not_recorded"] and not said["weight"]
    table = figures.data("plasticity_stack", study)
    assert table[table.metric == "weight_magnitude"]["mean"].tolist() == [1.0]
    assert set(table[table.metric == "active_units"]["reason"]) == {"not_recorded"}
    with pytest.raises(WaterjarError, match="metrics is empty"):
        figures.draw("plasticity_stack", study, metrics=[])
    with pytest.raises(WaterjarError, match="did you mean 'stable_rank'"):
        figures.draw("plasticity_stack", study, metrics=["stabel_rank"])
    for over, message in (("total_epochs", "did you mean 'total_epoch'"), ("train_task", "another number")):
        with pytest.raises(WaterjarError, match=message):
            figures.draw("plasticity_stack", study, over=over)


def test_the_data_set_in_the_title(study: waterjar.Study) -> None:
    result = geometry.measure(study.run("sgd-1"), n_t=5, subsamples=None)
    assert figures.draw("geometry_stack", result).axes[0].get_title(loc="left") == "Manifold Geometric Analysis"
    assert "simulated_capacity" not in set(figures.data("geometry_stack", result)["metric"])


@pytest.mark.parametrize(("units", "reason"), [(2, "inside_cone"), (30, "not_unique")])
def test_anchors_that_are_a_choice_are_missing_in_figure_and_report(tmp_path: Path, units: int, reason: str) -> None:
    """Of two units the cone of twelve points is everything; of thirty, points in one direction are as good as others.

    Capacity is drawn, the others say why they are not.
    """
    folder = waterjar.create_study(tmp_path / "study", {"analysis": {"n_t": 20}})
    with waterjar.Recorder(folder / "run", {"learner": "sgd"}, seeds=[1], eval_sets={"a": 0}, tasks=["t"]) as recorder:
        recorder.once("probe_samples", label=np.repeat([0, 1], 6)[None, None])
        for epoch in range(2):
            points = np.random.default_rng(epoch).normal(size=(1, 12, units))
            points[:, 1::2] = 2 * points[:, ::2]
            recorder.log(
                train_task="t", epoch=epoch, performance={"accuracy": [0.5]}, snapshot={"features": {"few": points}}
            )
    study = waterjar.open_study(folder)
    figure = figures.draw("geometry_stack", study)
    said = {ax.get_ylabel().split()[0]: [text.get_text() for text in ax.texts] for ax in figure.axes}
    assert said.pop("capacity") == []
    assert set(map(tuple, said.values())) == {(f"1 of 1 {reason}",)} and {"radius", "dimension", "axis"} <= set(said)
    report = compose(model_of(study))
    (listed,) = [block for part in report.sections for block in part.blocks if getattr(block, "name", "") == "missing"]
    rows = {label.split()[0]: row[3:] for row in listed.rows for label in row[0].split(", ")}
    assert rows["R"] == rows["D"] == (reason, MEANINGS[reason])
    assert "alpha" not in rows


def test_a_cell_without_a_line_is_said_below_the_figure() -> None:
    from matplotlib.figure import Figure

    rows = [
        {"metric": metric, "cell": cell, "layer": "late", "snapshot": step, "train_task": "a", "epoch": float(step),
         "mean": np.nan if gone else 1.0, "low": np.nan, "high": np.nan, "n": 1,
         "reason": "1 of 1 inside_cone" if gone else "", "interval": ""}
        for metric in ("capacity", "dimension")
        for cell, gone in (("wide", False), ("narrow", metric == "dimension"))
        for step in (0, 1)
    ]  # fmt: skip
    figure = Figure()
    draw_stack(figure, pd.DataFrame(rows), ["capacity", "dimension"], ["wide", "narrow"], over="epoch", band="interval")
    said = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "narrow has no dimension: 1 of 1 inside_cone" in said and "wide has no" not in said


def test_a_long_legend_makes_the_figure_taller_and_panels_no_lower(tmp_path: Path) -> None:
    heights = {}
    for n in (1, 12):
        for i in range(n):
            path = tmp_path / f"s{n}" / str(i)
            with waterjar.Recorder(path, {"learner": f"learner {i}"}, seeds=[1], eval_sets={"a": 0}) as recorder:
                for epoch in range(2):
                    shot = {"weights": {"w": np.full((2, 2), 1.0 + epoch)}}
                    recorder.log(epoch=epoch, performance={"accuracy": [0.5]}, snapshot=shot)
        figure = figures.draw("plasticity_stack", waterjar.open_study(tmp_path / f"s{n}"))
        figure.draw_without_rendering()
        heights[n] = figure.axes[-1].get_window_extent().height / figure.dpi
    assert heights[12] > 0.9 * heights[1]
