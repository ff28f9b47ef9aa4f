from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import waterjar
from recording import without_visits
from waterjar import Recorder, WaterjarError

pytest.importorskip("matplotlib")
import matplotlib as mpl
from matplotlib.figure import Figure

from waterjar.view import figures
from waterjar.view.curves import BOUNDARY
from waterjar.view.style import COLOURS, roots_of, stamp


def lines_of(figure: Figure) -> dict[str, np.ndarray]:
    labelled = [line for line in figure.axes[0].lines if not str(line.get_label()).startswith("_")]
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in labelled}


def test_the_numbers_in_the_figure_are_the_numbers_in_the_run(run_path: Path) -> None:
    run = waterjar.open_run(run_path)
    figure = figures.draw("learning_curves", run)
    found = lines_of(figure)
    for name in ("a", "b"):
        np.testing.assert_array_equal(found[name], run["performance"].accuracy.sel(eval_set=name).values.ravel())
    ax = figure.axes[0]
    assert ax.get_xlabel() == "total epoch"
    assert ax.get_ylabel() == "accuracy ↑"
    assert [text.get_text() for text in ax.texts] == [" first", " second"]
    assert roots_of(figure) == [run.root_hash]


def test_study_mean_and_gap(tmp_path: Path) -> None:
    for seed, steps in ((1, 4), (2, 3)):
        with Recorder(tmp_path / str(seed), {"learner": "sgd"}, seeds=[seed], eval_sets=["test"]) as recorder:
            for step in range(steps):
                recorder.log(epoch=step, performance={"accuracy": step * seed / 10})
    with Recorder(tmp_path / "3", {"learner": "er"}, seeds=[1], eval_sets=["test"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.9})
    study = waterjar.open_study(tmp_path)
    figure = figures.draw("learning_curves", study)
    found = lines_of(figure)
    np.testing.assert_allclose(found["sgd"], [0, 0.15, 0.3, np.nan])  # no mean over those that happen to be left
    np.testing.assert_array_equal(found["er"], [0.9])
    assert len(roots_of(figure)) == 3
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "mean and range of 1 or 2 repeats"


def test_only_some_tasks(run_path: Path) -> None:
    figure = figures.draw("learning_curves", waterjar.open_run(run_path), tasks=["second"], over="effective_epoch")
    assert {len(values) for values in lines_of(figure).values()} == {3}
    assert not list(figure.axes[0].texts)  # one task, nothing to part


def test_into_axes_of_yours_and_style_left_alone(run_path: Path) -> None:
    before = dict(mpl.rcParams)
    mine = Figure()
    ax = mine.subplots()
    figure = figures.draw("learning_curves", waterjar.open_run(run_path), variable="loss", eval_sets=["b"], ax=ax)
    assert figure is mine
    assert list(lines_of(figure)) == ["b"]
    assert ax.get_ylabel() == "loss (nat) ↓"
    train = figures.draw("learning_curves", waterjar.open_run(run_path), group="train", variable="loss")
    assert len(train.axes[0].lines) >= 1
    assert train.axes[0].get_legend() is None
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_file_carries_the_root_hash_and_is_reproducible(run_path: Path, tmp_path: Path, suffix: str) -> None:
    run = waterjar.open_run(run_path)
    files = [figures.save(figures.draw("learning_curves", run), tmp_path / f"{i}.{suffix}") for i in "ab"]
    data = files[0].read_bytes()
    assert data == files[1].read_bytes()
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.S)
    plain = data + b"".join(zlib.decompress(s) for s in streams if s[:1] == b"x")
    assert run.root_hash is not None
    assert run.root_hash.encode() in plain


def test_png_metadata_is_json(run_path: Path, tmp_path: Path) -> None:
    from PIL import Image

    path = figures.save(figures.draw("learning_curves", waterjar.open_run(run_path)), tmp_path / "deep" / "x.png")
    with Image.open(path) as image:
        note = json.loads(image.info["Description"])
    assert note == {"waterjar": waterjar.__version__, "roots": [waterjar.open_run(run_path).root_hash]}


def test_an_unsealed_run_is_stamped_as_such(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {}, eval_sets=["t"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})
        figure = figures.draw("learning_curves", waterjar.open_run(tmp_path / "run"))
    assert roots_of(figure) == ["unsealed"]
    assert roots_of(stamp(figure, [None, "x"])) == ["unsealed", "x"]


def test_errors(run_path: Path, tmp_path: Path) -> None:
    run = waterjar.open_run(run_path)
    for options, message in (
        ({"variable": "acc"}, "variable 'acc' is unknown"),
        ({"over": "epochs"}, "over 'epochs' is unknown: did you mean 'epoch'"),
        ({"eval_sets": ["c"]}, "eval_set 'c' is unknown"),
        ({"tasks": ["third"]}, "train_task 'third' is unknown"),
        ({"eval_sets": []}, "eval_sets is empty"),
    ):
        with pytest.raises(WaterjarError, match=message):
            figures.draw("learning_curves", run, **options)
    with pytest.raises(WaterjarError, match="figure 'learning_curve' is unknown: did you mean 'learning_curves'"):
        figures.draw("learning_curve", run)
    with pytest.raises(WaterjarError, match="expected a run, a study or a diagnosis, not str"):
        figures.draw("learning_curves", "path")
    with pytest.raises(WaterjarError, match=r"a figure is saved as .png, .pdf or .svg"):
        figures.save(figures.draw("learning_curves", run), tmp_path / "x.jpg")
    figure = Figure()
    ax = figure.subplots()
    ax.remove()
    with pytest.raises(WaterjarError, match="belong to no figure"):
        figures.draw("learning_curves", run, ax=ax)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, run_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(WaterjarError, match=r"pip install '\.\[view\]'"):
        figures.draw("learning_curves", waterjar.open_run(run_path))


def test_colours_stay_apart_for_colour_blind_eyes() -> None:
    """Smallest distance in CIE Lab after simulated deuteranopia (Machado et al. 2009, severity 1)."""
    deuteranopia = np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    )
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ deuteranopia.T, 0, 1)
    xyz = seen @ np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).T
    scaled = xyz / np.array([0.9505, 1.0, 1.089])
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    assert apart[np.triu_indices(len(COLOURS), 1)].min() > 10


def test_cells_that_differ_in_data_alone_are_both_drawn(tmp_path: Path) -> None:
    for name in "ab":
        with Recorder(tmp_path / name, {}, eval_sets=["t"], data_fingerprint=name) as recorder:
            recorder.log(epoch=0, performance={"accuracy": 0.5, "class_accuracy": [[0.5, 0.5]]})
    study = waterjar.open_study(tmp_path)
    assert len(lines_of(figures.draw("learning_curves", study))) == 2
    with pytest.raises(WaterjarError, match="class_accuracy is per class"):
        figures.draw("learning_curves", study, variable="class_accuracy")


def of_tasks(folder: Path, learner: str, tasks: dict[str, int]) -> None:
    with Recorder(folder / learner, {"learner": learner}, seeds=[1], eval_sets=["x"], tasks=["t1", "t2"]) as recorder:
        for task, epochs in tasks.items():
            for epoch in range(epochs + 1):
                recorder.log(train_task=task, epoch=epoch, performance={"accuracy": 0.5})


def said(study: waterjar.Study) -> tuple[list[str], list[str], str]:
    """Texts above the panel, entries and title of the legend."""
    ax = figures.draw("learning_curves", study).axes[0]
    legend = ax.get_legend()
    assert legend is not None
    entries = [text.get_text().replace("\n", " ") for text in legend.get_texts()]
    return [text.get_text() for text in ax.texts], entries, legend.get_title().get_text()


def test_whose_the_boundary_is(tmp_path: Path) -> None:
    of_tasks(tmp_path / "s", "sgd", {"t1": 2, "t2": 2})
    of_tasks(tmp_path / "s", "young", {"t1": 1})  # still to come to the boundary
    texts, entries, _ = said(waterjar.open_study(tmp_path / "s"))
    assert texts == [" t1", " t2"] and sorted(entries) == ["sgd", "young"]
    of_tasks(tmp_path / "s", "fresh", {"t2": 3})
    texts, entries, title = said(waterjar.open_study(tmp_path / "s"))
    assert texts == ["t1 | t2"]  # no name over a stretch in which `fresh` trains something else
    assert "task change, only of sgd, young" in entries and "fresh: t2 from the start" in title
    for name in "abcde":
        of_tasks(tmp_path / "s", name, {"t1": 2, "t2": 2})
    assert "task change, not of fresh" in said(waterjar.open_study(tmp_path / "s"))[1]
    of_tasks(tmp_path / "s", "01", {"t1": 1, "t2": 1})  # the first of the study, but most have the other boundary
    assert "01: changes elsewhere" in said(waterjar.open_study(tmp_path / "s"))[2]


def test_a_learner_called_underscore_is_in_the_legend(tmp_path: Path) -> None:
    of_tasks(tmp_path / "s", "_mine", {"t1": 1})
    of_tasks(tmp_path / "s", "sgd", {"t1": 1})
    assert sorted(name.strip() for name in said(waterjar.open_study(tmp_path / "s"))[1]) == ["_mine", "sgd"]


@pytest.mark.parametrize(("visits", "schema"), [("xyxy", 1), ("xyxy", 2), ("xx", 2)])
def test_every_visit_has_its_stretch(tmp_path: Path, visits: str, schema: int) -> None:
    tasks = sorted(set(visits))
    with Recorder(tmp_path / "run", {}, eval_sets={t: i for i, t in enumerate(tasks)}, tasks=tasks) as recorder:
        for visit, task in enumerate(visits):
            for epoch in (1, 2, 3):
                recorder.log(train_task=task, visit=visit, epoch=epoch, performance={"accuracy": [0.5] * len(tasks)})
    run = waterjar.open_run(without_visits(tmp_path / "run") if schema == 1 else tmp_path / "run")
    names = {"xyxy": [" x", " y", " x (2nd time)", " y (2nd time)"], "xx": [" x", " x (2nd time)"]}[visits]
    ax = figures.draw("learning_curves", run).axes[0]
    assert [text.get_text() for text in ax.texts] == names
    boundaries = [line.get_xdata()[0] for line in ax.lines if line.get_color() == BOUNDARY]
    assert boundaries == [3.0 * (i + 1) for i in range(len(visits) - 1)]
    only = figures.data("learning_curves", run, tasks=["x"])
    assert list(dict.fromkeys(only["train_task"])) == ["x", "x (2nd time)"]


def test_all_visits_of_a_set_s_own_task_are_shaded(tmp_path: Path) -> None:
    for learner in ("sgd", "er"):
        path = tmp_path / learner
        with Recorder(path, {"learner": learner}, eval_sets={"x": 0, "y": 1}, tasks=["x", "y"]) as recorder:
            for task in "xyxy":
                recorder.log(train_task=task, epoch=2, performance={"accuracy": [0.5, 0.5]})
    figure = figures.draw("learning_curves", waterjar.open_study(tmp_path))
    shaded = [[patch for patch in ax.patches if patch.get_gid() == "own"] for ax in figure.axes[:2]]
    assert [len(patches) for patches in shaded] == [2, 2]
