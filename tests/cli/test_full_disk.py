"""A disk that takes no more: one clear error, a code that is not 0, and no half of a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import waterjar
from recording import einstellung
from waterjar.cli.main import main
from waterjar.diagnose.study import diagnose
from waterjar.errors import UnwrittenError
from waterjar.view.outputs import write_outputs
from waterjar.view.report.composing import compose
from waterjar.view.report.formats import write
from waterjar.view.report.model import model_of

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
        "report --out {}/r.tex",
        "report --out {}/r.pdf",
        "report --out {}/r.zip",
        "report --notebook --out {}/r.ipynb",
        "export --format csv --out {}/r.csv",
    ],
)
def test_what_writes_files(
    study: Path,
    tmp_path: Path,
    command: str,
    full_disk: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One error, code 2, and what stood there before is there still, and nothing else."""
    for extra in ("jinja2", "matplotlib", "plotly"):
        pytest.importorskip(extra)
    name, *options = command.format(tmp_path / "out").split()
    old = {Path(options[-1]): "the old one"} if Path(options[-1]).suffix else {}
    (tmp_path / "out").mkdir()
    for file, text in old.items():
        file.write_text(text)
    monkeypatch.setenv("WATERJAR_BROWSER", "true")  # it is not asked: the page that it would print has no room
    monkeypatch.setattr(sys, "argv", ["waterjar", name, str(study), *options])
    full_disk()
    with pytest.raises(SystemExit) as end:
        main()
    (told,) = [line for line in capfd.readouterr().err.splitlines() if "could not" in line]
    assert end.value.code == 2
    assert told.startswith("waterjar: could not write /") and told.endswith(": No space left on device")
    assert {file: file.read_text() for file in tmp_path.rglob("*") if file.is_file()} == old


@pytest.fixture(scope="module")
def made(study: Path) -> Any:
    """A report, not yet written."""
    for extra in ("jinja2", "matplotlib", "plotly"):
        pytest.importorskip(extra)
    return compose(model_of(waterjar.open_study(study)))


@pytest.mark.parametrize("kind", ["md", "tex", ""])
def test_a_report_of_several_files_is_written_whole_or_not_at_all(
    made: Any, tmp_path: Path, kind: str, full_disk: Callable[[int], None]
) -> None:
    """An old text beside new pictures would be neither report."""
    target, form = (tmp_path / f"r.{kind}", None) if kind else (tmp_path / "r", "csv")
    write(made, target, form)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    assert len(files) > 2
    for file in files:
        file.write_text("the old one")
    full_disk(size - 10)  # all but the last file, which is the text, has room
    with pytest.raises(UnwrittenError, match="could not write .*: No space left on device"):
        write(made, target, form)
    assert {file: file.read_text() for file in tmp_path.rglob("*") if file.is_file()} == dict.fromkeys(
        files, "the old one"
    )


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
            [sys.executable, "-m", "waterjar", *command, *place],
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
