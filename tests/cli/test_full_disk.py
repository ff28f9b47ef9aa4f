"""A disk that takes no more: one clear error, a code that is not 0, and no half of a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from waterjar.cli.main import app
from waterjar.diagnose.study import diagnose
from waterjar.errors import UnwrittenError
from waterjar.view.outputs import write_outputs

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    section = {"families": ["rigidity"], "figures": ["eri_summary", "metric_boxes"], "export_formats": ["csv"]}
    folder = waterjar.create_study(tmp_path_factory.mktemp("full") / "study", {"analysis": section})
    for seed in (1, 2):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
        einstellung(folder / f"late-{seed}", learner="late", seed=seed, delay=1)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "compare --metrics ad --out {}/figures",
        "plot --figure all --out {}/figures",
        "plot --figure album --out {}/figures",
        "report --out {}/r.html",
        "report --out {}/r.md",
        "report --out {}/r.zip",
        "report --notebook --out {}/r.ipynb",
        "export --format csv --out {}/r.csv",
    ],
)
def test_what_writes_files(study: Path, tmp_path: Path, command: str, full_disk: Callable[[], None]) -> None:
    for extra in ("jinja2", "matplotlib", "plotly"):
        pytest.importorskip(extra)
    name, *options = command.format(tmp_path).split()
    full_disk()
    result = CliRunner().invoke(app, [name, str(study), *options])
    assert isinstance(result.exception, UnwrittenError)
    assert "could not write" in str(result.exception) and "No space left on device" in str(result.exception)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_the_outputs_of_a_study(study: Path, tmp_path: Path, full_disk: Callable[[], None]) -> None:
    pytest.importorskip("matplotlib")
    found = diagnose(waterjar.open_study(study))
    full_disk()
    with pytest.raises(UnwrittenError, match="eri_summary.png: No space left on device"):
        write_outputs(found, tmp_path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["ls"], ["ls", "--json"], ["--help"]])
def test_standard_output(study: Path, command: list[str]) -> None:
    place = [] if command == ["--help"] else [str(study)]
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "waterjar.cli.main", *command, *place],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
    assert (done.returncode, done.stderr) == (
        2,
        "waterjar: could not read or write the output: No space left on device\n",
    )
