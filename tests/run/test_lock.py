"""One writer at a time, and no lock of the dead."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import waterjar
from waterjar import Recorder, WaterjarError

HOLD = """
import sys, time
from waterjar import Recorder
with Recorder(sys.argv[1], {}, resume=True) as recorder:
    recorder.log(epoch=0, train={"loss": 1.0})
    print("ready", flush=True)
    time.sleep(60)
"""


def hold(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_second_writer_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    process = hold(tmp_path / "run")
    with process:
        with pytest.raises(WaterjarError, match=f"is being written by process {process.pid}: a run has one writer"):
            Recorder(tmp_path / "run", {}, resume=True)
        assert waterjar.open_run(tmp_path / "run").last_step == 0
        process.send_signal(signal.SIGKILL)
    with Recorder(tmp_path / "run", {}, resume=True) as recorder:  # the lock died with its process
        assert recorder.last_step == 0
        recorder.log(epoch=1, train={"loss": 2.0})
    assert waterjar.open_run(tmp_path / "run")["train"].loss.values.ravel().tolist() == [1.0, 2.0]


def test_second_writer_in_the_same_process(tmp_path: Path) -> None:
    import os

    with (
        Recorder(tmp_path / "run", {}) as recorder,
        pytest.raises(WaterjarError, match=rf"written by process {os.getpid()}, which is this one: .*its close\(\)"),
    ):
        Recorder(tmp_path / "run", {}, resume=True)
    del recorder


def test_a_recorder_left_open_in_a_notebook_is_told_and_its_close_frees_the_lock(tmp_path: Path) -> None:
    """A cell that failed is run again, while the traceback of the first time still holds its recorder."""
    first = Recorder(tmp_path / "run", {}, eval_sets=["a"], summary=False)
    with pytest.raises(WaterjarError, match="Divide percentages"):
        first.log(epoch=0, performance={"accuracy": {"a": 75.0}})
    with pytest.raises(WaterjarError, match="which is this one: an earlier recorder is still open here. Go on with"):
        Recorder(tmp_path / "run", {}, eval_sets=["a"], summary=False)
    first.log(epoch=0, performance={"accuracy": {"a": 0.75}})
    first.close()
    with pytest.raises(WaterjarError, match="is sealed"):
        Recorder(tmp_path / "run", {}, resume=True)
    assert waterjar.verify(tmp_path / "run").state == "sealed"


def test_an_orphaned_fork_does_not_hold_the_lock(tmp_path: Path) -> None:
    """Data-loading workers are forked, and may outlive a killed trainer for seconds."""
    script = HOLD.replace(
        'print("ready"', 'import subprocess\n    subprocess.Popen(["sleep", "20"], close_fds=False)\n    print("ready"'
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with Recorder(tmp_path / "run", {}, resume=True) as recorder:
        assert recorder.last_step == 0


def test_a_failed_start_frees_the_lock(tmp_path: Path) -> None:
    Recorder(tmp_path / "run", {}).close()
    for _ in range(2):
        with pytest.raises(WaterjarError, match="is sealed"):
            Recorder(tmp_path / "run", {}, resume=True)


def test_copying_the_run_does_not_lose_the_lock(tmp_path: Path) -> None:
    import shutil

    script = (
        "import sys\nfrom waterjar import Recorder, WaterjarError\n"
        "try: Recorder(sys.argv[1], {}, resume=True)\n"
        "except WaterjarError as e: sys.exit('being written' not in str(e))\n"
        "sys.exit('admitted')"
    )
    with Recorder(tmp_path / "run", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
        shutil.copytree(tmp_path / "run", tmp_path / "backup")
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=False, capture_output=True)
        assert done.returncode == 0, done.stderr


def test_a_forked_child_neither_holds_nor_frees_the_lock(tmp_path: Path) -> None:
    import os

    with Recorder(tmp_path / "run", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
        child = os.fork()
        if child == 0:  # pragma: no cover - coverage does not follow
            os._exit(0 if recorder._store._lock.closed else 1)
        assert os.waitpid(child, 0)[1] == 0
        with pytest.raises(WaterjarError, match="being written"):
            Recorder(tmp_path / "run", {}, resume=True)
