"""How far a long command is, where the output is no terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from waterjar.cli import progress
from waterjar.cli.main import app


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.02)


@pytest.mark.usefixtures("quick")
def test_lines_say_how_far_it_is_and_that_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.working("measuring") as work:
        time.sleep(0.05)
        work.watch("geometry", 0.0, 4)
        time.sleep(0.02)
        work.watch("geometry", 1.0, 4)
        time.sleep(0.05)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("waterjar: measuring ... ")
    assert any(line.startswith("waterjar: measuring: geometry: 25%, about ") for line in lines)
    assert lines[-1].startswith("waterjar: measuring: done in ")


def test_what_is_short_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.working("measuring") as work:
        work.watch("geometry", 1.0, 4)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("quick")
def test_after_an_error_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="broken"), progress.working("measuring"):
        time.sleep(0.05)
        raise ValueError("broken")
    assert "done" not in capsys.readouterr().err


def test_what_is_left_follows_from_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    work = progress.Working("measuring")
    work.watch("drift", 0.0, 10)
    now[0] = 130.0
    work.watch("drift", 2.5, 10)
    assert work.line(30.0) == "measuring: drift: 25%, about 1 min 30 s left of it"


@pytest.mark.usefixtures("quick")
def test_names_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.working("importing \x1b[31mred"):
        time.sleep(0.05)
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_lines_keep_out_of_what_a_program_reads(tmp_path: Path) -> None:
    study = waterjar.create_study(tmp_path / "study")
    for seed in (1, 2):
        einstellung(study / f"a-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
    result = CliRunner().invoke(app, ["diagnose", str(study), "--only", "continual", "--csv"])
    assert result.exit_code == 0
    assert result.stdout.startswith("family,") and "waterjar" not in result.stdout
    assert "waterjar: measuring" in result.stderr
