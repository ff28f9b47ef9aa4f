"""An album: every cell its figures in its folder, each from its own runs alone; a failure costs itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import waterjar
from view.figures.repeated_runs import repeated_run
from view.figures.whole_runs import made_up_geometry
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.run.study import open_study
from waterjar.view import album as album_module
from waterjar.view import figures
from waterjar.view.album import PAGES, Page, album, compare_figures, file_name, folders, only_cells

RECORDED = [page for page in PAGES if "variable" not in page.settings]  # these runs have logged no loss, nor training
ALL = [page.file.format(dataset="toys") + ".png" for page in RECORDED]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    folder = waterjar.create_study(tmp_path_factory.mktemp("album") / "study")
    repeated_run(folder / "1", "sl", [1, 2], number=1)
    repeated_run(folder / "2", "sl+replay", [1, 2], number=2)
    repeated_run(folder / "3", "rl", [1, 2], number=3, features=False)
    study = open_study(folder)
    found = diagnose(study, only=["continual", "plasticity", "drift"])
    found.results["geometry"] = made_up_geometry(found.results["plasticity"], study)
    return found


def roots_in(file: Path) -> list[str]:
    with Image.open(file) as picture:
        roots: list[str] = json.loads(picture.info["Description"])["roots"]
        return roots


@pytest.fixture
def two_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quickest two figures: what is tested is the album."""
    quick = tuple(page for page in PAGES if page.figure in ("task_matrix", "drift_matrix"))
    monkeypatch.setattr("waterjar.view.album.PAGES", quick)


def cell_of(diagnosis: Diagnosis, method: str) -> str:
    return next(cell for cell, runs in diagnosis.study.cells.items() if runs[0].config["method"] == method)


def test_a_cell_has_all_its_figures(measured: Diagnosis, tmp_path: Path) -> None:
    part = only_cells(measured, [cell_of(measured, "sl+replay")])
    found = album(part, tmp_path)
    folder = tmp_path / "figures" / "toys" / "sl+replay"
    assert sorted(file.name for file in folder.iterdir()) == sorted(ALL)
    assert found == {f"toys/sl+replay/{name}": folder / name for name in ALL}
    assert {"plasticine_metrics_toys.png", "manifold_metrics_toys.png"} <= set(ALL)
    root = part.study.entries[0].root_hash
    assert all(roots_in(folder / name) == [root] for name in ALL)
    same = figures.save(figures.draw("drift_matrix", part), tmp_path / "same.png")
    assert same.read_bytes() == (folder / "drift_matrix.png").read_bytes()


def test_its_numbers_are_those_of_the_cell(measured: Diagnosis) -> None:
    part = only_cells(measured, [cell_of(measured, "sl+replay")])
    whole = figures.data("plasticity_stack", measured)
    own = whole[whole.cell == "sl+replay"].reset_index(drop=True)
    np.testing.assert_array_equal(figures.data("plasticity_stack", part)["mean"], own["mean"])


@pytest.mark.usefixtures("two_pages")
def test_every_cell_from_its_own_runs(measured: Diagnosis, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    found = album(measured, tmp_path, progress=lambda *told: seen.append(told))
    for entry in measured.study.entries:
        file = found[f"toys/{entry.config['method']}/task_matrix.png"]
        assert isinstance(file, Path) and roots_in(file) == [entry.root_hash]
    # without features there is no drift, and that is told
    why = found["toys/rl/drift_matrix.png"]
    assert isinstance(why, str) and "drift" in why and not (tmp_path / "figures/toys/rl/drift_matrix.png").exists()
    assert [done for _, done, _ in seen] == list(range(7)) and {n for *_, n in seen} == {6}


@pytest.mark.usefixtures("two_pages")
def test_a_study_is_measured_and_a_diagnosis_is_not(
    measured: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = Diagnosis(measured.study, {"continual": measured.results["continual"]})
    found = album(only_cells(little, [cell_of(measured, "sl")]), tmp_path / "little")
    assert found["toys/sl/drift_matrix.png"] == "drift was not measured"
    monkeypatch.setattr("waterjar.view.album.PAGES", (*album_module.PAGES, Page("plasticity", "plasticity_stack")))
    repeated_run(tmp_path / "s" / "a", "a", [1, 2], tasks=2, number=1, features=False)
    study = open_study(tmp_path / "s")
    own = album(study, tmp_path / "own")
    assert "features" in str(own["toys/a/drift_matrix.png"])
    assert {name for name, file in own.items() if isinstance(file, Path)} == {
        "toys/a/task_matrix.png", "toys/a/plasticity.png"
    }  # fmt: skip
    monkeypatch.setattr("waterjar.view.album._drawn", lambda page, diagnosis, target: target)
    assert set(album(waterjar.open_run(tmp_path / "s" / "a"), tmp_path / "run")) == set(own)


@pytest.mark.usefixtures("two_pages")
def test_one_that_fails_costs_no_other(measured: Diagnosis, tmp_path: Path) -> None:
    (tmp_path / "figures/toys/sl/task_matrix.png").mkdir(parents=True)  # no file can be written there
    found = album(only_cells(measured, [cell_of(measured, "sl")]), tmp_path)
    assert "task_matrix.png" in str(found["toys/sl/task_matrix.png"])
    assert isinstance(found["toys/sl/task_matrix.png"], str) and isinstance(found["toys/sl/drift_matrix.png"], Path)


def test_without_matplotlib(measured: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(WaterjarError, match=r"pip install '\.\[view\]' in a checkout"):
        album(measured, tmp_path)
    with pytest.raises(WaterjarError, match="an album shows runs"):
        monkeypatch.undo()
        album(measured.results["continual"], tmp_path)


class TestFolders:
    def test_cells_of_one_method_are_told_apart(self, tmp_path: Path) -> None:
        for i, rate in enumerate((0.1, 0.2)):
            repeated_run(tmp_path / "s" / f"{i}", "sl", [1], number=i, features=False, rate=rate)
        repeated_run(tmp_path / "s" / "c", "sl", [1], number=2, features=False, data={"name": "other"})
        names = sorted(folders(open_study(tmp_path / "s")).values())
        assert names == [("other", "sl"), ("toys", "sl_rate=0.1"), ("toys", "sl_rate=0.2")]

    def test_hostile_names_stay_inside_and_apart(self, tmp_path: Path) -> None:
        hostile = ["../../up", "..", "a/b", "a b", "A B", "comparison", "x" * 500, "x" * 499 + "y", "\x1b[31m", "τ", ""]
        for i, method in enumerate(hostile):
            with waterjar.Recorder(
                tmp_path / "s" / f"{i:02d}",
                {"method": method, "data": "/etc"},
                seeds=[1],
                eval_sets={"x": 0},
                tasks=["x"],
            ) as recorder:
                recorder.log(train_task="x", epoch=0, performance={"accuracy": 0.5})
        places = list(folders(open_study(tmp_path / "s")).values())
        assert len({(one.lower(), other.lower()) for one, other in places}) == len(hostile)
        for dataset, algorithm in places:
            target = (tmp_path / "out" / dataset / algorithm).resolve()
            assert target.parent.parent == (tmp_path / "out").resolve()
            assert algorithm.lower() != "comparison" and len(algorithm) <= 60 and algorithm.isascii()
            target.mkdir(parents=True)

    def test_no_data_set_is_named(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "s" / "a", {}, seeds=[1]) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
        ((dataset, algorithm),) = folders(open_study(tmp_path / "s")).values()
        assert dataset == "data" and len(algorithm) == 6  # the cell's id

    @pytest.mark.parametrize("text", ["con", "NUL.txt", "lpt1", "com0"])
    def test_reserved_on_other_systems(self, text: str) -> None:
        assert file_name(text) == f"_{text}"


class TestComparison:
    def test_pages_by_family_and_pairs(self, measured: Diagnosis, tmp_path: Path) -> None:
        names = ["learning_accuracy", "forgetting", "average_anytime_accuracy", "weight_magnitude"]
        found = compare_figures(measured, tmp_path, names)
        assert set(found) == {
            "toys/traces_continual.png", "toys/boxes_continual.png", "toys/traces_plasticity.png",
            "toys/boxes_plasticity.png", "toys/scatter_forgetting_learning_accuracy.png", "toys/correlations.png",
        }  # fmt: skip
        roots = {entry.root_hash for entry in measured.study.entries}
        for name, file in found.items():
            assert file == tmp_path / name.removeprefix("toys/")
            assert set(roots_in(Path(file))) == roots

    def test_boxes_show_the_number_of_the_table(self, measured: Diagnosis, tmp_path: Path) -> None:
        compare_figures(measured, tmp_path, ["weight_magnitude"], pairs=[])
        own = figures.draw("metric_boxes", measured, metrics=["weight_magnitude"], snapshots="final")
        same = figures.save(own, tmp_path / "same.png").read_bytes()
        assert same == (tmp_path / "boxes_plasticity.png").read_bytes()
        assert [file.name for file in sorted(tmp_path.iterdir())] == [
            "boxes_plasticity.png", "same.png", "traces_plasticity.png"
        ]  # fmt: skip

    def test_other_pairs(self, measured: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("waterjar.view.album._drawn", lambda page, diagnosis, target: target)
        found = compare_figures(measured, tmp_path, ["backward_transfer", "learning_time"], kind="pdf")
        assert found["toys/scatter_learning_time_backward_transfer.pdf"] == (
            tmp_path / "scatter_learning_time_backward_transfer.pdf"
        )
        named = compare_figures(
            measured, tmp_path / "n", ["forgetting", "learning_time"], pairs=[("learning_time", "forgetting")]
        )
        assert "toys/scatter_learning_time_forgetting.png" in named

    def test_data_sets_apart(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for i, data in enumerate(("one", "two")):
            for j, method in enumerate(("sl", "rl")):
                repeated_run(
                    tmp_path / "s" / f"{i}{j}", method, [1, 2], tasks=2, number=2 * i + j, features=False, data=data
                )
        found = diagnose(open_study(tmp_path / "s"), only=["continual"])
        seen: list[int] = []
        drawn = compare_figures(found, None, ["learning_accuracy"], progress=lambda _, done, total: seen.append(done))
        for data in ("one", "two"):
            folder = tmp_path / "s" / "figures" / data / "comparison"
            assert drawn[f"{data}/boxes_continual.png"] == folder / "boxes_continual.png"
            roots = {e.root_hash for e in found.study.entries if e.config["data"] == data}
            assert set(roots_in(folder / "boxes_continual.png")) == roots
        assert seen == [0, 1, 2, 3, 4]
        monkeypatch.setattr("waterjar.view.album._drawn", lambda page, diagnosis, target: target)
        apart = compare_figures(found, tmp_path / "out", ["learning_accuracy"])
        assert apart["two/boxes_continual.png"] == tmp_path / "out/two/boxes_continual.png"
        assert len(open_study(tmp_path / "s")) == 4  # figures are no runs


def test_losses_and_training_have_pages_where_they_were_recorded(tmp_path: Path) -> None:
    from own_loops import continual_study, loss_study

    def drawn(folder: Path) -> set[str]:
        study = waterjar.open_study(folder).select("seed == 0")
        found = album(diagnose(study, families=["cost"]), tmp_path / "out")
        return {Path(name).stem for name, file in found.items() if isinstance(file, Path)}

    both = drawn(continual_study(tmp_path / "s", ["naive"], (0,), epochs=1, tasks=2, features=False))
    assert both == {"learning_curves", "task_matrix", "loss_curves", "train_loss_curves", "train_accuracy_curves"}
    assert drawn(loss_study(tmp_path / "t", ["sgd"], (0,), epochs=1)) == {"learning_curves", "train_loss_curves"}
