"""kill -9 in the middle of training: the resumed run has the bits of the unbroken one."""

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

from lab.binary.killed_binary import main  # noqa: E402

SCRIPT = Path(__file__).with_name("killed_binary.py")


def kill_and_resume(tmp_path: Path, engine: str, kills: int) -> None:
    start = time.monotonic()
    expected = waterjar.open_run(main(tmp_path / "whole", engine))
    length = time.monotonic() - start
    rng = random.Random(1)
    folder = tmp_path / "killed"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")} | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(folder), engine]
    done = 0
    while done < kills:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0.2, max(0.4, 0.5 * length)))
            process.send_signal(signal.SIGKILL)
            process.stdout.read()
        if process.returncode == 0:  # it was quicker
            assert sealed(folder) == expected.attributes["seal"]["content"]
            subprocess.run(["rm", "-rf", str(folder)], check=True)
        done += process.returncode != 0
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert sealed(folder) == expected.attributes["seal"]["content"]


def sealed(folder: Path) -> str:
    run = waterjar.open_run(folder / "run")
    assert waterjar.verify(run.path).state == "sealed"
    return str(run.attributes["seal"]["content"])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["loop", "vmap", "processes"])
def test_killed_often(tmp_path: Path, engine: str) -> None:
    kill_and_resume(tmp_path, engine, kills=4)
