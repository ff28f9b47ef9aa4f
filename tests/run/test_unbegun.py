"""Runs that end before their first step: nothing stays of them, and nothing of anybody else's goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar import Recorder, WaterjarError

OPTIONS = {"eval_sets": ["test"], "provenance": False, "summary": False}
BEGINNING = """
import os, signal, sys
import numpy as np
from waterjar import Recorder

recorder = Recorder(sys.argv[1], {"x": 1}, eval_sets=["test"], provenance=False)
recorder.once("probe_samples", label=np.arange(4).reshape(1, 4))
"""


def begin(path: Path, then: str) -> int:
    """The exit code of a script that opens a recorder, and then does that."""
    return subprocess.run([sys.executable, "-c", BEGINNING + then, path], check=False, capture_output=True).returncode


def record(path: Path, **options: object) -> None:
    """A corrected script: other settings, no `resume`."""
    with Recorder(path, {"x": 2}, **OPTIONS, **options) as recorder:  # type: ignore[arg-type]
        recorder.log(epoch=0, performance={"accuracy": 0.5})
    assert waterjar.verify(path).state == "sealed"
    assert waterjar.open_run(path).config == {"x": 2}
    assert waterjar.open_run(path).groups == ["performance"]


def test_an_exception_before_the_first_step_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(WaterjarError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        recorder.once("probe_samples", label=np.arange(4).reshape(1, 4))
        recorder.log(epoch=0, performance={"accuracy": "high"})
    assert not path.exists()
    record(path)


def test_a_script_that_ends_without_close_leaves_nothing(tmp_path: Path) -> None:
    assert begin(tmp_path / "run", "recorder.log(epoch=0, performance={'accuracy': 'high'})") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_first_step_stays(tmp_path: Path) -> None:
    step = "recorder.log(epoch=0, performance={'accuracy': 0.5})\nraise KeyError"
    assert begin(tmp_path / "run", step) == 1
    with pytest.raises(WaterjarError, match="holds a run already: pass resume=True"):
        record(tmp_path / "run")


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("at", ["", "recorder._writer.commit = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"])
def test_after_a_kill_the_next_start_begins_anew(tmp_path: Path, resume: bool, at: str) -> None:
    """Also where it came within the first step, whose files nothing speaks of yet."""
    path = tmp_path / "run"
    dead = at + ("recorder.log(epoch=0, train={'loss': 1})" if at else "os.kill(os.getpid(), signal.SIGKILL)")
    assert begin(path, dead) == -signal.SIGKILL
    assert waterjar.open_run(path).status == "recording"
    assert (path / "train").exists() == bool(at)
    record(path, resume=resume)
    assert not (path / "train").exists()
    assert not (path / "probe_samples").exists()


@pytest.mark.parametrize("whose", ["event", "annotation", "sealed"])
def test_what_somebody_has_said_of_it_stays(tmp_path: Path, whose: str) -> None:
    path = tmp_path / "run"
    recorder = Recorder(path, {"x": 1}, **OPTIONS)  # type: ignore[arg-type]
    if whose == "event":
        recorder.event("note", "it will fail")
    elif whose == "annotation":
        (path / ".waterjar" / "annotations.json").write_text("{}")
    else:
        recorder.close()
    del recorder
    assert (path / "zarr.json").exists()
    with pytest.raises(WaterjarError, match="holds a run already: pass resume=True"):
        record(path)


def test_files_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "run"
    kept = [path / "notes.txt", path / "train" / "mine.txt", path / "other.zarr" / "zarr.json"]
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:  # type: ignore[arg-type]
        recorder.once("probe_samples", label=np.arange(4).reshape(1, 4))
        for file in kept:
            file.parent.mkdir(exist_ok=True)
            file.write_text("mine")
        raise KeyError
    assert sorted(path.rglob("*.*")) == sorted([*kept, path / "other.zarr"])


def test_a_run_that_another_process_has_opened_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with Recorder(path, {"x": 1}, **OPTIONS) as first:  # type: ignore[arg-type]
        with pytest.raises(WaterjarError, match=f"is being written by process {os.getpid()}"):
            record(path)
        first.log(epoch=0, performance={"accuracy": 0.5})
    assert waterjar.open_run(path).config == {"x": 1}


def test_whoever_waits_for_the_lock_of_a_run_that_goes_gets_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it, the run may have gone with it."""
    path, open_ = tmp_path / "run", Path.open
    leaving = [Recorder(path, {"x": 1}, **OPTIONS)]  # type: ignore[arg-type]

    def opened(self: Path, *how: str, **options: str) -> object:
        handle = open_(self, *how, **options)  # type: ignore[call-overload]
        if self.name == "lock":
            leaving.clear()
        return handle

    monkeypatch.setattr(Path, "open", opened)
    with Recorder(path, {"x": 2}, **OPTIONS) as recorder:  # type: ignore[arg-type]
        with pytest.raises(WaterjarError, match="is being written by process"):
            Recorder(path, {"x": 2}, **OPTIONS)  # type: ignore[arg-type]
        recorder.log(epoch=0, performance={"accuracy": 0.5})
    assert waterjar.open_run(path).config == {"x": 2}
