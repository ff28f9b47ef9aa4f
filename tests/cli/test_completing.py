"""What the shell offers, asked as bash asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import waterjar
from waterjar.cli import completing

ASK = "import sys; sys.argv = ['waterjar']; from waterjar.cli.main import main; main()"


def offered(line: str) -> list[str]:
    """What `waterjar` answers at the end of a line."""
    asked = {"_WATERJAR_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def record(path: Path, config: dict[str, object]) -> None:
    with waterjar.Recorder(path, config, seeds=[0], eval_sets=["a"], provenance=False) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})


def test_commands_and_figures() -> None:
    assert offered("waterjar comp") == ["compare"]
    assert offered("waterjar plot study --figure learning") == ["learning_curves"]


def test_metrics_go_by_names_and_symbols_behind_a_comma() -> None:
    found = completing.metrics("forgetting,A")
    assert "forgetting,ACC" in found and "forgetting,AD" in found
    assert completing.metrics("forgetting,forgetting_r") == ["forgetting,forgetting_rate"]
    assert "continual" in completing.families_or_metrics("con")


def test_settings_of_a_family() -> None:
    assert "rigidity.threshold=" in completing.settings("rigidity.thres")
    assert completing.settings("threshold=0") == []


def test_formats_and_kinds() -> None:
    assert completing.formats("c") == ["csv"]
    assert completing.kinds("ein") == ["einstellung"]
    assert completing.one_of("holm", "none")("h") == ["holm"]


@pytest.mark.parametrize("line", ["waterjar ls {} --where ba", "waterjar diagnose {} --where ba"])
def test_keys_of_runs(tmp_path: Path, line: str) -> None:
    study = waterjar.create_study(tmp_path / "study")
    record(study / "one", {"method": "a", "batch": {"size": 3}})
    waterjar.open_study(study)  # which keeps an index
    assert offered(line.format(study)) == ["batch.size="]


def test_cells(tmp_path: Path) -> None:
    study = waterjar.create_study(tmp_path / "study")
    record(study / "one", {"method": "naive"})
    record(study / "two", {"method": "replay"})
    assert offered(f"waterjar compare {study} --baseline na") == ["naive"]
    assert offered(f"waterjar compare {tmp_path / 'nowhere'} --baseline na") == []
