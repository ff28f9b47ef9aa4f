"""waterjar plot: files that are what their suffix says, and words where there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from waterjar.cli.main import app
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError

BEGIN = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


def run(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["plot", *(str(a) for a in arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = waterjar.create_study(tmp_path_factory.mktemp("plot") / "study")
    for seed in (1, 2):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
        einstellung(folder / f"late-{seed}", learner="late", seed=seed, delay=1)
    return folder


def test_the_list_needs_no_study_and_no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text, _ = run("--list")
    assert "eri_summary" in text and "recorded accuracies" in text and "_stack " in text and "_rows" not in text
    found = {entry["name"]: entry for entry in json.loads(run("--list", "--json")[0])}
    assert found["tau_heatmap"]["needs"] == ["rigidity"] and found["tau_heatmap"]["caption"]


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, study: Path, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for figure, out in (("eri_summary", "x.pdf"), ("all", "folder")):
        with pytest.raises(WaterjarError, match=r"pip install '\.\[view\]'"):
            run(study, "--figure", figure, "--out", tmp_path / out)


class TestDrawing:
    @pytest.fixture(autouse=True)
    def _matplotlib(self) -> None:
        pytest.importorskip("matplotlib")

    @pytest.mark.parametrize("suffix", BEGIN)
    def test_by_suffix(self, study: Path, tmp_path: Path, suffix: str) -> None:
        out = tmp_path / "deep" / f"x.{suffix}"
        text, _ = run(study, "--figure", "eri_summary", "--out", out)
        assert text.strip() == str(out)
        data = out.read_bytes()
        assert data.startswith(BEGIN[suffix])
        root = waterjar.open_run(study / "late-1").root_hash
        if suffix == "svg":
            assert root is not None and root in data.decode()

    def test_settings_reach_figure_and_family(self, study: Path, tmp_path: Path) -> None:
        out = tmp_path / "x.svg"
        run(study, "--figure", "eri_dynamics", "--out", out, "--set", "band=range", "--set", "rigidity.threshold=0.5")
        text = out.read_text()
        assert "τ = 0.5" in text and "range of" in text

    def test_the_figures_own_baseline(self, study: Path, tmp_path: Path) -> None:
        out = tmp_path / "x.svg"
        arguments = ("--set", "baseline=late", "--set", "metrics=[average_accuracy]")
        run(study, "--figure", "strategy_comparison", "--out", out, *arguments)
        assert ">ACC ↑<" in out.read_text()

    @pytest.mark.parametrize("families", [["rigidity"], ["cost"], ["rigidity", "cost"], None])
    def test_as_many_tests_as_compare_makes(self, tmp_path: Path, families: list[str] | None) -> None:
        folder = waterjar.create_study(tmp_path / "s", {"analysis": {"families": families}} if families else {})
        for seed in (1, 2, 3):
            einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
            einstellung(folder / f"late-{seed}", learner="late", seed=seed, masked=0.1 + 0.02 * seed, delay=1)
        run(folder, "--figure", "strategy_comparison", "--out", tmp_path / "x.svg")
        drawn = (tmp_path / "x.svg").read_text()
        declared = set(families or ["rigidity", "continual"])
        assert (">ACC ↑<" in drawn) == ("continual" in declared or declared == {"cost"})
        if declared & {"rigidity"}:
            made = compare_cells(diagnose(waterjar.open_study(folder)))
            assert f"Holm over {int(made['family_size'].max())} tests" in drawn

    def test_where_and_a_single_run(self, study: Path, tmp_path: Path) -> None:
        run(study, "--figure", "learning_curves", "--out", tmp_path / "w.svg", "--where", "learner=late and seed=1")
        run(study / "late-1", "--figure", "learning_curves", "--out", tmp_path / "r.svg")
        assert (tmp_path / "w.svg").read_bytes() == (tmp_path / "r.svg").read_bytes()

    @pytest.mark.no_cover
    def test_all_that_there_is_data_for(self, study: Path, tmp_path: Path) -> None:
        text, told = run(study, "--figure", "all", "--out", tmp_path / "folder", "--format", "png")
        files = {path.stem for path in (tmp_path / "folder").glob("*.png")}
        assert {"eri_summary", "eri_dynamics", "learning_curves", "task_matrix", "cost_accuracy"} <= files
        assert len(text.splitlines()) == len(files)
        assert "geometry_stack: not drawn: no run has recorded features" in told

    @pytest.mark.no_cover
    def test_an_album_has_a_folder_for_every_algorithm(self, study: Path, tmp_path: Path) -> None:
        found = json.loads(run(study, "--figure", "album", "--out", tmp_path, "--where", "learner=late", "--json")[0])
        files = list((tmp_path / "figures").rglob("*.png"))
        assert {str(path) for path in files} == set(found["drawn"].values())
        assert {path.name for path in files} >= {"learning_curves.png", "task_matrix.png"}
        assert {path.parent.name for path in files} == {"late"}
        assert any("features" in why for why in found["passed_over"].values())

    def test_json(self, study: Path, tmp_path: Path) -> None:
        found = json.loads(run(study, "--figure", "tau_heatmap", "--out", tmp_path / "x.png", "--json")[0])
        assert found == {"drawn": {"tau_heatmap": str(tmp_path / "x.png")}, "passed_over": {}}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--figure", "eri_sumary", "--out", "x.pdf"], "did you mean 'eri_summary'"),
            (["--figure", "eri_summary", "--out", "x.gif"], "saved as .png, .pdf or .svg"),
            (["--figure", "eri_summary"], "waterjar plot DIR --figure NAME --out x.pdf"),
            (["--figure", "eri_summary", "--out", "x.pdf", "--set", "treshold=1"], "did you mean 'threshold'"),
            (["--figure", "eri_summary", "--out", "x.pdf", "--set", "threshold"], "expected key=value"),
            (["--figure", "eri_summary", "--out", "x.pdf", "--set", "threshold=[1"], "is not YAML"),
            (["--figure", "eri_summary", "--out", "x.pdf", "--set", "figure=1"], "figure is for Python"),
            (["--figure", "all", "--out", "x.pdf"], "expected a folder"),
            (["--figure", "album", "--out", __file__], "expected a folder for an album"),
            (["--figure", "album", "--out", "x", "--set", "band=std"], "--set is for one figure"),
            (["--figure", "all", "--out", "x", "--format", "gif"], "'gif' is unknown"),
            (["--figure", "all", "--out", "x", "--set", "band=std"], "--set is for one figure"),
            (["--figure", "geometry_stack", "--out", "x.pdf"], "no run has recorded features"),
            (["--figure", "eri_summary", "--out", "x.pdf", "--where", "seed=9"], "no run of"),
        ],
    )
    def test_bad_requests(self, study: Path, arguments: list[str], message: str) -> None:
        with pytest.raises(WaterjarError, match=message):
            run(study, *arguments)
