"""kill -9 in the middle of training, mid-epoch too: the resumed run has the bits of the unbroken one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import waterjar

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

SCRIPT = Path(__file__).with_name("killed_training.py")
sys.path.insert(0, str(SCRIPT.parent))
from killed_training import main  # noqa: E402


def kill_and_resume(tmp_path: Path, learner: str, kills: int, seed: int) -> None:
    start = time.monotonic()
    expected = waterjar.open_run(main(tmp_path / "whole", learner))
    length = time.monotonic() - start
    rng = random.Random(seed)
    folder = tmp_path / "killed"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")} | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(folder), learner]
    done = 0
    while done < kills:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0, min(0.6, length / 2)))
            process.send_signal(signal.SIGKILL)
            process.stdout.read()
        if process.returncode == 0:
            check(folder, expected)
            subprocess.run(["rm", "-rf", str(folder)], check=True)
        done += process.returncode != 0
    done_process = subprocess.run(command, env=environment, check=True, capture_output=True)
    assert done_process.returncode == 0
    check(folder, expected)


def check(folder: Path, expected: waterjar.Run) -> None:
    run = waterjar.open_run(folder / "run")
    assert waterjar.verify(run.path).state == "sealed"
    assert run.attributes["seal"]["content"] == expected.attributes["seal"]["content"]  # every number, every weight
    best = [p / "checkpoints" / "best.pt" for p in (folder, expected.path.parent)]
    assert best[0].read_bytes() == best[1].read_bytes()


@pytest.mark.slow
def test_killed_twice(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, "derpp", kills=2, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["sgd", "joint", "er", "ewc_on", "derpp"])
def test_killed_twenty_times(tmp_path: Path, learner: str) -> None:
    kill_and_resume(tmp_path, learner, kills=20, seed=4)
