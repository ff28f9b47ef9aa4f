"""`waterjar export` and `waterjar import`, as a person uses them."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import waterjar
from run.formats.binary_runs import foreign, record
from waterjar.cli.main import app
from waterjar.diagnose import continual, plasticity
from waterjar.diagnose.continual.export import cl_metrics
from waterjar.diagnose.plasticity.export import history
from waterjar.errors import WaterjarError


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = waterjar.create_study(tmp_path / "study", {})
    record(folder / "one", zero_each_task=True)
    return folder


def test_there_and_back(study: Path, tmp_path: Path) -> None:
    text = run("export", study / "one", "--out", tmp_path / "results")
    place = tmp_path / "results" / "glyphs" / "sl+replay"
    assert f"wrote {place}\n" in text and "  not in it: 3 evaluations at epoch 0 (step 0: before any training)" in text
    text = run("import", place, "--format", "seed", "--out", study / "back")
    assert f"wrote {study / 'back'}\n" in text and "  note: step 0 (before any training) is not in the layout" in text
    one, back = (waterjar.open_run(study / name) for name in ("one", "back"))
    assert one.run_id == back.run_id and back.root_hash is not None
    told = json.loads(run("import", place, "--out", tmp_path / "x", "--json"))
    assert told[0]["path"] == str(tmp_path / "x") and told[0]["notes"]


@pytest.mark.slow  # compiles the kernels of geometry
def test_analyses(study: Path, tmp_path: Path) -> None:
    options = (
        "--analyses",
        "--set",
        "continual.integrator=auc",
        "--set",
        "n_t=5",
        "--dataset",
        "g",
        "--algorithm",
        "a",
    )
    told = json.loads(run("export", study, "--out", tmp_path, *options, "--json"))
    assert any(note.startswith("settings of cl_metrics.pkl") and '"auc"' in note for note in told[0]["notes"])
    place, one = tmp_path / "g" / "a", waterjar.open_run(study / "one")
    found = {file.name: pickle.loads(file.read_bytes()) for file in place.glob("*.pkl")}  # noqa: S301 - ours
    assert sorted(found) == ["cl_metrics.pkl", "manifold_metrics.pkl", "plastic_analysis_g.pkl"]
    expected = cl_metrics(continual.measure(one, integrator="auc"))
    np.testing.assert_array_equal(found["cl_metrics.pkl"]["remembering"], expected["remembering"])
    assert found["cl_metrics.pkl"]["stats"] == expected["stats"]
    whole = history(plasticity.measure(one))
    assert found["plastic_analysis_g.pkl"]["task_boundaries"] == whole["task_boundaries"] == [10, 20, 30]
    for key, values in whole["history"].items():
        np.testing.assert_array_equal(found["plastic_analysis_g.pkl"]["history"][key], values)
    assert found["manifold_metrics.pkl"]["task_002"]["Capacity"].shape == (2, 2)
    notes = json.loads(run("import", place, "--out", tmp_path / "back", "--json"))[0]["notes"]
    assert "files that are no part of a run: cl_metrics.pkl, manifold_metrics.pkl, plastic_analysis_g.pkl" in notes


def test_what_cannot_be_measured_is_told(tmp_path: Path) -> None:
    record(tmp_path / "bare", features=False, weights=False)
    text = run("export", tmp_path / "bare", "--out", tmp_path / "out", "--analyses")
    assert "  not in it: manifold_metrics.pkl: no run has recorded" in text
    assert "  not in it: plastic_analysis_glyphs.pkl: no run has recorded" in text


def test_several_runs(study: Path, tmp_path: Path) -> None:
    record(study / "other", engine="loop")
    run("export", study, "--out", tmp_path / "out")
    assert len(list((tmp_path / "out" / "glyphs").iterdir())) == 2
    with pytest.raises(WaterjarError, match="one and other would both become glyphs/a"):
        run("export", study, "--out", tmp_path / "more", "--algorithm", "a")
    with pytest.raises(WaterjarError, match="exists already"):
        run("export", study, "--out", tmp_path / "out", "--analyses")
    run("export", study, "--where", "engine=loop", "--out", tmp_path / "more", "--algorithm", "a")
    assert not (tmp_path / "more" / "glyphs" / "a" / "cl_metrics.pkl").exists()


def test_csv(study: Path, tmp_path: Path) -> None:
    told = run("export", study, "--format", "csv", "--out", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().startswith("method,seed,epoch_eff,split,acc,loss,step,task,epoch,")
    assert "not in it: group features" in told and "not in it: settings, provenance and seals" in told
    run("import", tmp_path / "x.csv", "--format", "csv", "--out", tmp_path / "x")
    cells = {run.seeds[0]: run for run in waterjar.open_study(tmp_path / "x")}
    assert list(cells[11].attributes["eval_sets"]) == ["task_000", "task_001", "task_002"]
    (tmp_path / "y.csv").write_text("method,seed,epoch_eff,split,acc\nsgd,1,0,t1_all,0.5\n")
    assert f"wrote {tmp_path / 'y'}" in run("import", tmp_path / "y.csv", "--format", "csv", "--out", tmp_path / "y")
    assert len(waterjar.open_study(tmp_path / "y")) == 1


def test_unknown_formats_and_damaged_layouts(study: Path, tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="did you mean 'seed'"):
        run("export", study, "--format", "sed", "--out", tmp_path / "x")
    with pytest.raises(WaterjarError, match="did you mean 'seed'"):
        run("import", study, "--format", "sead", "--out", tmp_path / "x")
    layout = foreign(tmp_path / "mnist" / "RL")
    shutil.rmtree(layout / "task_001")
    with pytest.raises(WaterjarError, match="task_001 is missing"):
        run("import", layout, "--out", tmp_path / "x")
    assert not (tmp_path / "x").exists()
