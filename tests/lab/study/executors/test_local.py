"""The pool against real deaths: processes that kill themselves, crash, leave, or lose their parent."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from waterjar import WaterjarError
from waterjar.lab.study.executors import LostWorkerError
from waterjar.lab.study.executors.local import LocalPool, _cause

pytestmark = pytest.mark.torch


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    made = LocalPool(1)
    yield made
    made.stop()


def wait_for(pool: LocalPool, *futures: Future[Any], seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not all(future.done() for future in futures):
        assert time.monotonic() < end
        pool.attend(0.2)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_results_and_errors_come_back_and_a_failure_renews_the_worker(pool: LocalPool) -> None:
    calls = [pool.submit(*call) for call in ((math.sqrt, 4.0), (os.getpid,), (int, "x"), (os.getpid,))]
    cancelled = pool.submit(math.sqrt, 9.0)
    cancelled.cancel()
    wait_for(pool, *calls)
    assert calls[0].result() == 2.0
    assert isinstance(calls[2].exception(), WaterjarError)
    assert "ValueError: invalid literal for int() with base 10: 'x'" in str(calls[2].exception())
    assert len({os.getpid(), calls[1].result(), calls[3].result()}) == 3
    assert not alive(calls[1].result())
    idle = calls[3].result()
    os.kill(idle, signal.SIGKILL)
    while alive(idle):
        time.sleep(0.01)
    again = pool.submit(os.getpid)  # an idle worker that died is nobody's fault
    wait_for(pool, again)
    assert again.result() != idle
    os.kill(again.result(), signal.SIGSTOP)  # the call arrives in the pipe, and nobody is there to take it
    last = pool.submit(os.getpid)
    pool.attend(0.0)
    os.kill(again.result(), signal.SIGKILL)
    wait_for(pool, last)
    assert last.result() != again.result()
    pool.stop()
    assert not alive(last.result())


@pytest.mark.slow
def test_a_lost_worker_costs_its_call_alone_and_is_replaced(pool: LocalPool) -> None:
    lost = [pool.submit(*call) for call in ((signal.raise_signal, signal.SIGKILL), (os.abort,), (os._exit, 3))]
    good = [pool.submit(math.sqrt, 4.0) for _ in range(3)]
    wait_for(pool, *lost, *good)
    assert [future.result() for future in good] == [2.0] * 3
    errors = [future.exception() for future in lost]
    assert [type(error) for error in errors] == [LostWorkerError] * 3
    assert [str(error) for error in errors] == ["SIGKILL", "SIGABRT", "exit code 3"]


def test_stopping_ends_busy_workers_also_stubborn_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local._GRACE", 1.0)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    pool = LocalPool(2)
    wait_for(pool, *(pool.submit(time.sleep, 2.0) for _ in range(2)))  # both are up
    calls = [pool.submit(time.sleep, 600.0), pool.submit(exec, deaf)]
    pool.attend(0.5)
    workers = [worker.process.pid for worker in pool._workers]
    start = time.monotonic()
    pool.stop()
    assert time.monotonic() - start < 5.0
    assert len(workers) == 2
    assert not any(alive(pid) for pid in workers if pid is not None)
    assert not any(call.done() for call in calls)


@pytest.mark.slow
def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "careless.py"
    script.write_text(
        "import os\nfrom waterjar.lab.study.executors.local import LocalPool\n"
        "pool = LocalPool(1)\npool.submit(os.getpid)\npool.attend(60)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 1
    assert "ended with exit code 1 before it could begin" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr


@pytest.mark.slow
def test_workers_stop_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os, time\nfrom waterjar.lab.study.executors.local import LocalPool\n"
        "if __name__ == '__main__':\n"
        "    pool = LocalPool(2)\n"
        "    firsts = [pool.submit(os.getpid), pool.submit(os.getpid)]\n"
        "    while not all(f.done() for f in firsts):\n        pool.attend(0.1)\n"
        "    pool.submit(time.sleep, 600)\n    pool.submit(time.sleep, 600)\n    pool.attend(0.5)\n"
        "    print(*(w.process.pid for w in pool._workers), flush=True)\n    pool.attend(600)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2 and all(alive(pid) for pid in pids)
        process.kill()
    end = time.monotonic() + 5.0
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end, "a worker outlived its parent by 5 s"
        time.sleep(0.05)


def test_signals_without_a_name_have_a_number() -> None:
    assert _cause(-signal.SIGRTMIN - 1) == f"signal {signal.SIGRTMIN + 1}"


LATE = """
import os, signal, time
from waterjar.lab.study.executors.local import LocalPool


class Late:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)  # falls into a finaliser, where nothing can be raised
        time.sleep(0.01)


def finalise():
    Late()
    time.sleep(600)  # it comes again


def at_exit():
    import atexit

    atexit.register(lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(0.1)))  # on the way out


if __name__ == "__main__":
    pool = LocalPool(1)
    for call in (at_exit, finalise):
        future = pool.submit(call)
        while not future.done():
            pool.attend(0.1)
    pool.stop()
    print(repr(future.exception()))
"""


@pytest.mark.slow
def test_an_interrupt_of_a_worker_leaves_no_traceback(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout == "LostWorkerError('exit code 0')\n"
    assert "Traceback" not in done.stderr
    assert "KeyboardInterrupt" not in done.stderr
