"""A run must be readable by plain xarray, in a process that cannot import waterjar, finished or not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import waterjar
from recording import as_by_another_tool, record
from waterjar import Recorder, Storage

READ = """
import json, sys
sys.modules["waterjar"] = None  # any import of it is an ImportError from here on
import xarray
for line in sys.stdin:  # one path a line
    tree = xarray.open_datatree(json.loads(line), engine="zarr")
    data = tree["performance"].to_dataset().load()
    print(json.dumps({
        "coords": sorted(data.coords), "dims": dict(data.sizes), "accuracy": data.accuracy.values.tolist(),
        "accuracy_attrs": dict(data.accuracy.attrs), "loss_attrs": dict(data.loss.attrs),
        "epoch_units": data.epoch.attrs["units"], "tasks": [str(t) for t in data.train_task.values],
        "eval_task": data.eval_task.values.tolist(), "config": tree.attrs["config"], "status": tree.attrs["status"],
    }), flush=True)
"""
Read = Callable[[Path], dict[str, Any]]


@pytest.fixture(scope="module")
def read_elsewhere() -> Iterator[Read]:
    """Reads a run in another process, which is started once: importing xarray takes a second."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-W", "error", "-c", READ], text=True, **pipes) as process:

        def read(path: Path) -> dict[str, Any]:
            assert process.stdin and process.stdout and process.stderr
            process.stdin.write(json.dumps(str(path)) + "\n")
            process.stdin.flush()
            told = process.stdout.readline()
            assert told, process.stderr.read()
            found: dict[str, Any] = json.loads(told)
            return found

        yield read
        _, said = process.communicate()
        assert (process.returncode, said) == (0, "")


def test_sealed_run_opens_without_waterjar(tmp_path: Path, read_elsewhere: Read) -> None:
    found = read_elsewhere(record(tmp_path / "run", steps=5, seed=3))
    rng = np.random.default_rng(3)
    expected = []
    for step in range(5):
        expected.append(rng.random(2))
        rng.random(2), rng.random() if step else None, rng.random((2, 4, 3), dtype=np.float32)
        rng.random((3, 2)), rng.random(2)
    np.testing.assert_array_equal(np.squeeze(found["accuracy"], -1), expected)
    assert found["dims"] == {"step": 5, "eval_set": 2, "repeat": 1}
    wanted = {"step", "train_task", "train_task_index", "visit", "epoch", "total_epoch", "effective_epoch"}
    assert set(found["coords"]) == wanted | {"eval_set", "eval_task", "repeat", "seed"}
    assert found["accuracy_attrs"]["units"] == "1"
    assert found["accuracy_attrs"]["direction"] == "higher"
    assert found["loss_attrs"]["direction"] == "lower"
    assert found["loss_attrs"]["units"] == "nat"
    assert found["epoch_units"] == "epoch"
    assert found["tasks"] == ["first"] * 2 + ["second"] * 3
    assert found["eval_task"] == [0, 1]
    assert found["config"] == {"learner": "sgd", "lr": 0.1}
    assert found["status"] == "sealed"


def test_run_opens_while_it_is_written(tmp_path: Path, read_elsewhere: Read) -> None:
    with Recorder(tmp_path / "run", {}, eval_sets=["test"]) as recorder:
        for epoch in range(3):
            recorder.log(epoch=epoch, performance={"accuracy": epoch / 10, "loss": 1.0})
            found = read_elsewhere(tmp_path / "run")
            assert np.ravel(found["accuracy"]).tolist() == [0.0, 0.1, 0.2][: epoch + 1]
            assert found["status"] == "recording"


def test_readers_that_skip_the_root_see_nothing_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with Recorder(path, {}, eval_sets=["test"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})
        assert zarr.open_array(path / "performance" / "accuracy", mode="r").shape == (0, 1, 1)
    assert zarr.open_array(path / "performance" / "accuracy", mode="r")[:].tolist() == [[[0.5]]]
    assert xr.open_zarr(path, group="performance").accuracy.shape == (1, 1, 1)


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool"])
def test_every_codec_is_read_by_zarr(tmp_path: Path, compression: str, dtype: str) -> None:
    values = (np.random.default_rng(0).random((3, 5, 7)) * 100).astype(dtype)
    storage = Storage(compression=compression, snapshot_chunk_bytes=64)
    with Recorder(tmp_path / "run", {}, eval_sets=["x"], storage=storage) as recorder:
        for shot in values:
            recorder.log(epoch=0, train={"loss": 1.0}, snapshot={"features": {"layer": shot}})
    stored = xr.open_datatree(tmp_path / "run", engine="zarr")["features/layer/features"]
    assert stored.dtype == dtype
    np.testing.assert_array_equal(stored.values.squeeze(), values)
    direct = waterjar.open_run(tmp_path / "run").load("features/layer").features
    np.testing.assert_array_equal(direct.values.squeeze(), values)


def test_direct_reading_equals_xarray(tmp_path: Path) -> None:
    run = waterjar.open_run(record(tmp_path / "run", steps=300, storage=Storage(step_chunk=7)))
    by_zarr = xr.open_datatree(run.path, engine="zarr")
    for group in run.groups:
        theirs = by_zarr[group].to_dataset()
        xr.testing.assert_identical(theirs.load(), run.load(group))
        xr.testing.assert_identical(theirs, run[group])
        parts = {dim: slice(-2, None, -1) for dim in theirs.sizes} | {"repeat": 0}
        picked = {dim: part for dim, part in parts.items() if dim in theirs.sizes}
        xr.testing.assert_identical(theirs.isel(picked), run[group].isel(picked).load())
        some = {dim: [0, size - 1] for dim, size in theirs.sizes.items()}
        xr.testing.assert_identical(theirs.isel(some), run[group].isel(some).load())
    assert run.tree.attrs == by_zarr.attrs and set(run.tree.groups) == set(by_zarr.groups)


def test_arrays_of_another_tool_are_read(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    before = waterjar.open_run(path).load("performance")
    node = zarr.create_array(
        path / "performance" / "loss", shape=(5, 2, 1), dtype="f8", chunks=(2, 2, 1), overwrite=True,
        compressors=zarr.codecs.GzipCodec(), dimension_names=("step", "eval_set", "repeat"),
    )  # fmt: skip
    node[:] = before.loss.values
    root = json.loads((path / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"]["performance/loss"] = json.loads(
        (path / "performance" / "loss" / "zarr.json").read_text()
    )
    as_by_another_tool(path, root)
    after = waterjar.open_run(path).load("performance")
    np.testing.assert_array_equal(after.loss.values, before.loss.values)
