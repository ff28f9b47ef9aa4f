"""Hostile files, odd settings and a lack of memory on the command line: one clear error, and nothing that acts."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from waterjar import Recorder
from waterjar.cli import main as main_module
from waterjar.cli.main import app
from waterjar.errors import BusyError, WaterjarError

CONTROL = "a\x1b[31mb\u202ec"
SECRETS = {"api_key": "hunter2", "hub": {"token": "hunter2"}, "path": "/home/anna/data"}


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = waterjar.create_study(tmp_path_factory.mktemp("hostile") / "study", {"note": CONTROL, **SECRETS})
    for learner, key in (("=1+1", "x"), (CONTROL, "y"), (CONTROL, "z")):
        config = {"learner": learner, **SECRETS, "api_key": f"hunter2{key}", "password": f"hunter2{key}"}
        with Recorder(folder / f"run{key}", config, seeds=[1], eval_sets={"t": 0}, provenance=False) as recorder:
            for epoch in range(3):
                recorder.log(epoch=epoch, performance={"accuracy": 0.25 * epoch}, resources={"seconds": 1.0})
    return folder


@pytest.mark.parametrize(
    "command", ["ls", "ls --json", "diagnose", "diagnose --csv", "diagnose --json", "compare --csv"]
)
def test_no_escape_mark_of_direction_or_secret_reaches_the_terminal(study: Path, command: str) -> None:
    arguments = command.split()
    text = run(arguments[0], study, *arguments[1:])
    assert "\x1b" not in text and "\u202e" not in text
    assert "hunter2" not in text and "/home/anna" not in text
    if "--csv" in arguments:
        rows = list(csv.reader(io.StringIO(text)))
        assert not any(cell.startswith(("=", "@")) for row in rows for cell in row)
        assert any("'=1+1" in cell for row in rows for cell in row)
    if "--json" in arguments:
        json.loads(text)


def test_show_tells_what_it_does_not_show(study: Path) -> None:
    text = run("show", study / "runx")
    assert "(not shown)" in text and "~/data" in text and "hunter2" not in text
    assert json.loads(run("show", study / "runx", "--json"))["config"]["hub"] == {"token": "(not shown)"}
    names = waterjar.open_study(study).cell_names.values()
    assert len(set(names)) == 3 and not any("hunter2" in name for name in names)


@pytest.mark.parametrize("form", ["md", "tex", "html", "json", "zip", "ipynb"])
def test_no_secret_is_in_a_report(study: Path, tmp_path: Path, form: str) -> None:
    for extra in ("jinja2", "matplotlib", "plotly"):
        pytest.importorskip(extra)
    file = tmp_path / f"r.{form}"
    run("report", study, "--out", file, *(["--notebook"] if form == "ipynb" else []))
    data = file.read_bytes()
    if form == "zip":
        with zipfile.ZipFile(file) as archive:
            data = b"".join(archive.read(name) for name in archive.namelist())
    assert b"hunter2" not in data and b"/home/anna" not in data
    if form == "html":  # plotly's own script has some
        data = data[: data.index(b"<script>")]
    assert b"\x1b" not in data and "\u202e".encode() not in data
    if form == "json":
        assert CONTROL in json.loads(data)["lead"]


@pytest.mark.parametrize("value", ["2024-13-45", "9" * 5000, "[" * 2000, "{" * 2000, "- " * 2000])
def test_a_setting_that_cannot_be_read(study: Path, value: str) -> None:
    with pytest.raises(WaterjarError, match="threshold") as raised:
        run("diagnose", study, "--set", f"threshold={value}")
    assert len(str(raised.value)) < 2000


def test_no_error_is_longer_than_can_be_read(study: Path, tmp_path: Path) -> None:
    """A megabyte of a name, and a line for each of many faults."""
    huge = "x" * 1_000_000
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("".join(f"{'x' * 200}{i}: 1\n" for i in range(1000)))
    for arguments in (["diagnose", study, "--set", f"{huge}=1"], ["compare", study, "--metrics", huge],
                      ["diagnose", study, "--where", huge], ["plot", study, "--figure", huge],
                      ["report", study, "--baseline", huge], ["run", wrong]):  # fmt: skip
        start = time.process_time()
        with pytest.raises(WaterjarError) as raised:
            run(*arguments)
        assert len(str(raised.value)) < 60_000 and max(map(len, str(raised.value).split("\n"))) <= 2000
        assert time.process_time() - start < 5
    lines = str(WaterjarError("\n".join(map(str, range(250))))).split("\n")
    assert len(lines) == 100 and lines[97:] == ["97", "... 151 more lines", "249"]


def test_a_name_that_no_disk_takes_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("ls", "verify", "diagnose", "show", "report"):
        monkeypatch.setattr(sys, "argv", ["waterjar", command, str(tmp_path / ("x" * 100_000))])
        with pytest.raises(SystemExit) as ended:
            main_module.main()
        told = capsys.readouterr().err
        assert ended.value.code == 2 and told.count("\n") == 1 and len(told) < 2100, command


@pytest.mark.parametrize("depth", [200, 5000])
def test_a_declaration_that_is_nested_deeply(study: Path, tmp_path: Path, depth: int) -> None:
    declaration = study / "study.yaml"
    before = declaration.read_text()
    declaration.write_text("x: " + "[" * depth + "]" * depth)
    try:
        run("report", study, "--out", tmp_path / "r.md")
    except WaterjarError as error:
        assert "study.yaml" in str(error) and "nested deeper than" in str(error)
    finally:
        declaration.write_text(before)


def test_a_lack_of_memory_is_one_line(study: Path) -> None:
    """The limit comes when BLAS is loaded: short of memory, OpenBLAS never comes back from that."""
    if sys.platform != "linux":
        pytest.skip("the limit is Linux's")
    script = """
import resource, sys
import numpy.linalg, scipy.linalg
from waterjar.cli.main import main
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**22,) * 2)
main()
"""
    command = [sys.executable, "-c", script, "diagnose", str(study), "--fresh"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("waterjar: memory ran out (") and "Traceback" not in done.stderr


def test_another_process_at_it_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def busy() -> None:
        raise BusyError("another process is writing 2 of 2 runs")

    monkeypatch.setattr(main_module, "app", busy)
    with pytest.raises(SystemExit) as ended:
        main_module.main()
    assert ended.value.code == 75
    assert capsys.readouterr().err == "waterjar: another process is writing 2 of 2 runs\n"


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (MemoryError(), True),
        (ImportError("x.so: failed to map segment"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError("other"), False),
    ],
)
def test_which_errors_are_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch, error: Exception, is_told: bool) -> None:
    def fail() -> None:
        raise ImportError("a library") from error

    monkeypatch.setattr(main_module, "app", fail)
    with pytest.raises(SystemExit if is_told else ImportError):
        main_module.main()


@pytest.mark.torch
def test_sigterm_is_python_s_only_once_every_blas_is_loaded(tmp_path: Path) -> None:
    """Where memory is short OpenBLAS never comes back from being loaded, and a handler of Python's is not called."""
    pytest.importorskip("torch")
    script = """
import signal, sys
from waterjar.cli.main import app
real = signal.signal
def watched(number, handler):
    if number == signal.SIGTERM and handler is signal.default_int_handler:
        print({"numpy.linalg", "scipy.linalg", "torch"} <= set(sys.modules))
    return real(number, handler)
signal.signal = watched
app(["new", sys.argv[1]], standalone_mode=False)
from waterjar.lab import study
def run(*args, **more): raise KeyboardInterrupt
study.run = run
app(["run", sys.argv[1]])
"""
    command = [sys.executable, "-c", script, str(tmp_path / "x.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "\nTrue\n" in done.stdout, done.stderr
