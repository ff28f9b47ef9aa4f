"""A really full disk: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, os, sys
import numpy as np
import waterjar
path = sys.argv[1] + "/run"
error = None
try:
    with waterjar.Recorder(path, {}, eval_sets=["a"], provenance=False) as recorder:
        for step in range(1000):
            recorder.log(epoch=step, performance={"accuracy": step / 1000},
                         snapshot={"weights": np.random.default_rng(step).random(10_000)})
except waterjar.WaterjarError as caught:
    error = str(caught)
import xarray
data = xarray.open_datatree(path, engine="zarr")
accuracy = data["performance/accuracy"].values.ravel().tolist()
right = all(np.array_equal(data["weights/weights"].values[i, 0], np.random.default_rng(i).random(10_000))
            for i in range(len(accuracy)))
drafts = [n for n in os.listdir(path + "/.waterjar") if n.startswith("draft")]
print(json.dumps({"error": error, "accuracy": accuracy, "right": right, "drafts": drafts,
                  "snapshots": data["weights"].sizes["snapshot"], "status": data.attrs["status"]}))
"""


def unshare(command: str) -> list[str]:
    return ["unshare", "--mount", "--map-root-user", "sh", "-c", command]


def can_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    command = unshare(f"mount -t tmpfs -o size=1m none {folder}")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_full_disk_is_one_clear_error_and_costs_nothing(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("needs a mount namespace")
    script = tmp_path.parent / f"{tmp_path.name}.py"
    script.write_text(SCRIPT)
    command = f"mount -t tmpfs -o size=2m none {tmp_path} && {sys.executable} {script} {tmp_path}"
    done = subprocess.run(unshare(command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "No space left on device. What was recorded before is intact and readable" in found["error"]
    steps = len(found["accuracy"])
    assert 10 < steps < 40
    assert found["accuracy"] == [step / 1000 for step in range(steps)]
    assert found["snapshots"] == steps
    assert found["right"]
    assert found["drafts"] == []
