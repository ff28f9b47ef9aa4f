"""`waterjar report`: what it writes, where, and what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("jinja2")
pytest.importorskip("plotly")

import waterjar
from recording import einstellung, record
from waterjar.cli.main import app
from waterjar.errors import WaterjarError


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "study"
    waterjar.create_study(path, {"experiment_name": "mine"})
    for seed in (1, 2):
        einstellung(path / f"base-{seed}", scenario="scratch_t2", seed=seed)
        einstellung(path / f"sgd-{seed}", seed=seed, delay=1)
    return path


def call(*arguments: str | Path) -> tuple[str, str]:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.stdout, done.stderr


def test_it_writes_a_page_into_the_study_and_prints_where(study: Path) -> None:
    said, beside = call(study)
    assert said.strip() == str(study / "report.html")
    page = (study / "report.html").read_text()
    assert page.startswith("<!doctype html>") and "<h1>mine</h1>" in page
    assert "Sealed. All 4 runs are sealed" in beside
    for name in ("again", "third"):  # what differs from the first: seals were looked at then, and not again
        call(study, "--out", study.parent / f"{name}.html")
    again = (study.parent / "again.html").read_text()
    assert again == (study.parent / "third.html").read_text() and "Last checked at" in again
    assert re.sub(r"had changed(.*?recorded)\..*?since\.", r"has changed\1.", again) == page


def test_formats_by_name_or_by_suffix(study: Path, tmp_path: Path) -> None:
    call(study, "--format", "json", "--title", "Yours", "--out", tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["title"] == "Yours"
    call(study, "--out", tmp_path / "data.zip")
    assert (tmp_path / "data.zip").read_bytes().startswith(b"PK")
    said, _ = call(study, "--format", "csv", "--out", tmp_path / "folder")
    assert (tmp_path / "folder" / "verdicts.csv").exists() and said.strip() == str(tmp_path / "folder")


def test_a_notebook_with_the_settings_that_were_asked_for(study: Path) -> None:
    said, _ = call(study, "--notebook", "--set", "threshold=0.5", "--where", "seed=1")
    assert said.strip() == str(study / "report.ipynb")
    text = (study / "report.ipynb").read_text()
    assert "{'rigidity': {'threshold': 0.5}}" in text and "study.select('seed=1')" in text


def test_a_single_run_is_not_written_into(study: Path) -> None:
    said, _ = call(study / "sgd-1", "--format", "json")
    assert said.strip() == str(study.resolve() / "sgd-1-report.json")
    said, _ = call(study / "sgd-1", "--notebook")
    assert "study.select(\\\"name == 'sgd-1'\\\")" in Path(said.strip()).read_text()
    assert waterjar.verify(study / "sgd-1").extra == []


def test_another_baseline_is_used_throughout(study: Path, tmp_path: Path) -> None:
    call(study, "--baseline", "sgd", "--out", tmp_path / "x.json")
    text = (tmp_path / "x.json").read_text()
    assert '"baseline": "sgd"' in text
    with pytest.raises(WaterjarError, match="baseline 'sdg' is unknown: did you mean 'sgd'"):
        call(study, "--baseline", "sdg", "--out", tmp_path / "y.json")
    with pytest.raises(WaterjarError, match="Known: 'scratch_t2', 'sequential', 'sgd'$"):  # each of them once
        call(study, "--baseline", "nobody", "--out", tmp_path / "y.json")


def test_what_is_refused(study: Path, tmp_path: Path) -> None:
    for arguments, words in (
        (["--format", "htm"], "did you mean 'html'"),
        (["--notebook", "--format", "html"], "one at a time"),
        (["--out", str(tmp_path / "x.docx")], "ends in"),
        (["--out", str(tmp_path / "x.csv")], r"ends in \.zip, such as x\.zip, or with --format csv a folder"),
        (["--format", "csv", "--out", str(tmp_path / "x.csv")], r"ends in \.zip, such as x\.zip"),
        (["--where", "seed=99"], "no run of"),
        (["--notebook", "--out", str(tmp_path / "x.py")], "ends in .ipynb"),
    ):
        with pytest.raises(WaterjarError, match=words):
            call(study, *arguments)
    with pytest.raises(WaterjarError, match="not a directory"):
        call(tmp_path / "nowhere")


def test_an_empty_study_has_a_page(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said, beside = call(tmp_path / "empty")
    assert "The study is empty" in Path(said.strip()).read_text()
    assert "No runs" in beside


def test_a_run_that_names_nothing(tmp_path: Path) -> None:
    record(tmp_path / "study" / "run")
    said, _ = call(tmp_path / "study", "--out", tmp_path / "r.json")
    assert json.loads(Path(said.strip()).read_text())["title"] == "study"
