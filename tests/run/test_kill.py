"""kill -9 at random moments: every completed step is there and right, and resuming gives the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import waterjar
from recording import content, root_of

SCRIPT = Path(__file__).with_name("killed.py")
sys.path.insert(0, str(SCRIPT.parent))
from killed import main, more_values, step_values  # noqa: E402

STEPS = 40


def start(path: Path, mode: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    command = [sys.executable, str(SCRIPT), str(path), str(STEPS), mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def check_visible(path: Path, completed: int, mode: str) -> None:
    """What plain xarray shows after the kill: at least the completed steps, each exactly right."""
    if not (path / "zarr.json").exists():
        assert completed == -1
        return
    tree = xr.open_datatree(path, engine="zarr")
    if "performance" not in tree.children:
        assert completed == -1
        return
    data = tree["performance"].to_dataset()
    assert data.step.values.tolist() == list(range(data.sizes["step"]))
    assert completed <= data.sizes["step"] - 1 <= completed + 1
    assert root_of(path)["attributes"]["progress"]["step"] == data.sizes["step"] - 1
    for step in data.step.values:
        wanted = step_values(int(step))
        np.testing.assert_array_equal(data.accuracy.sel(step=step).values.ravel(), wanted["accuracy"])
        loss = data.loss.sel(step=step).values.ravel() if step >= 2 else None
        if loss is not None:
            np.testing.assert_array_equal(loss, wanted["loss"])
    shots = tree["features/l"].to_dataset() if "features" in tree.children else None
    if shots is not None:
        assert shots.sizes["snapshot"] >= (data.sizes["step"] - (mode == "checkpoint"))
        for step in shots.snapshot.values:
            found = shots.features.sel(snapshot=step).values[0]
            np.testing.assert_array_equal(found, step_values(int(step))["features"])
            weights = tree["weights/weights"].sel(snapshot=step).values[0]
            np.testing.assert_array_equal(weights, step_values(int(step))["weights"])
            more = more_values(int(step))
            np.testing.assert_array_equal(tree["attention/cls"].sel(snapshot=step).values[0], more["cls"])
            np.testing.assert_array_equal(tree["attribution/saliency/map"].sel(snapshot=step).values[0], more["map"])
            np.testing.assert_array_equal(tree["streams/logits"].sel(snapshot=step).values[0], more["streams"])
            logits = np.concatenate(list(more["logits"].values()))
            np.testing.assert_array_equal(tree["outputs/logits"].sel(snapshot=step).values[0], logits)
    examples, monitor, probes = (tree[key].to_dataset() for key in ("examples", "monitor", "probes/sharpness"))
    for step in data.step.values:
        more = more_values(int(step))
        margin = np.concatenate(list(more["examples"]["margin"].values())).astype(np.float16)
        np.testing.assert_array_equal(examples.margin.sel(step=step).values[0], margin)
        right = np.concatenate(list(more["examples"]["correct"].values()))
        np.testing.assert_array_equal(examples.correct.sel(step=step).values[0], right)
        assert monitor.anything.sel(step=step).item() == more["monitor"]["anything"]
    assert probes.step.values.tolist() == [step for step in data.step.values if step % 4 == 0]


def kill_and_resume(tmp_path: Path, mode: str, kills: int, seed: int) -> None:
    expected = tmp_path / "uninterrupted"
    main(expected, STEPS, mode)
    rng = random.Random(seed)
    path = tmp_path / "killed"
    done = 0
    while done < kills:
        with start(path, mode) as process:
            assert process.stdout is not None
            first = process.stdout.readline()  # killing during interpreter start-up would test nothing
            time.sleep(rng.uniform(0, 0.12))
            process.send_signal(signal.SIGKILL)
            lines = [first, *process.stdout.readlines()]
        numbers = [int(line) for line in lines if line.endswith("\n") and line.strip()]
        sealed = (path / "zarr.json").exists() and waterjar.open_run(path).status == "sealed"
        if process.returncode == 0 or sealed:  # it got through: start over
            check_equal(path, expected)
            subprocess.run(["rm", "-rf", str(path), str(path.with_suffix(".checkpoint"))], check=True)
            continue
        done += 1
        check_visible(path, max(numbers, default=-1), mode)
    with start(path, mode) as process:
        process.communicate()
    assert process.returncode == 0
    check_equal(path, expected)


def check_equal(path: Path, expected: Path) -> None:
    assert waterjar.verify(path).state == "sealed"
    assert content(path) == content(expected)
    seals = [root_of(p)["attributes"]["seal"]["content"] for p in (path, expected)]
    assert seals[0] == seals[1]


@pytest.mark.parametrize("mode", ["unit", "checkpoint"])
def test_killed_a_few_times(tmp_path: Path, mode: str) -> None:
    kill_and_resume(tmp_path, mode, kills=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["unit", "checkpoint"])
def test_killed_fifty_times(tmp_path: Path, mode: str) -> None:
    kill_and_resume(tmp_path, mode, kills=50, seed=2)
