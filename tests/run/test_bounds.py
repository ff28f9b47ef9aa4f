"""What a file says of its own size is not believed: reading takes no more memory than its chunks account for."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs import Blosc, Zstd

import waterjar
from recording import record, root_of, write_root
from waterjar import Recorder, Storage, WaterjarError
from waterjar.run import ledger
from waterjar.run.codec import unpacked
from waterjar.run.store import LocalStore, read_file

LIMITED = """
import resource, sys, waterjar
resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20,) * 2)
for use in (lambda p: waterjar.open_run(p).load(sys.argv[2]), lambda p: waterjar.open_run(p)[sys.argv[2]].load()):
    try:
        use(sys.argv[1])
        print("read")
    except waterjar.WaterjarError as error:
        print("refused", error)
print(waterjar.verify(sys.argv[1]).state)
"""


def read_with_little_memory(path: Path, group: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LIMITED, str(path), group],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """An open run with numbers per step, features and texts."""
    path = tmp_path / "run"
    try:
        with Recorder(path, {}, eval_sets=["a"]) as recorder:
            for step in range(3):
                shot = {"features": {"late": np.ones((1, 4, 3), np.float32)}}
                recorder.log(epoch=step, performance={"accuracy": 0.5}, snapshot=shot)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return path


def change(path: Path, *keys: str, **parts: Any) -> None:
    root = root_of(path)
    for key in keys:
        root["consolidated_metadata"]["metadata"][key].update(parts)
    write_root(path, root)


def group_keys(path: Path, group: str, dim: str) -> list[str]:
    nodes = root_of(path)["consolidated_metadata"]["metadata"]
    return [k for k, n in nodes.items() if k.startswith(f"{group}/") and n.get("dimension_names", [""])[0] == dim]


def test_a_shape_beyond_its_chunks(open_path: Path) -> None:
    root = root_of(open_path)
    for key in group_keys(open_path, "performance", "step"):
        root["consolidated_metadata"]["metadata"][key]["shape"][0] = 500_000_000_000
    write_root(open_path, root)
    told = read_with_little_memory(open_path, "performance").splitlines()
    assert told[2] == "tampered" and all("No such file" in line for line in told[:2])
    problems = waterjar.verify(open_path).problems
    assert problems[0].kind == "missing" and len(problems) < 300


def test_a_chunk_that_unpacks_to_two_gigabytes(open_path: Path) -> None:
    key = "features/late/features"
    bomb = bytes(Zstd(level=-1).encode(np.zeros(2**26)))
    (open_path / key / "c/0/0/0/0/0").write_bytes(bomb * 3)
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {}}]
    change(open_path, key, codecs=codecs)
    told = read_with_little_memory(open_path, "features/late").splitlines()
    assert all("it unpacks to 536870912 bytes, 48 are declared" in line for line in told[:2])
    assert told[2] == "tampered"
    sizes = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1, 4, 2**28]}}}
    change(open_path, key, **sizes)
    told = read_with_little_memory(open_path, "features/late").splitlines()
    assert all("bytes is said to hold 4294967296" in line for line in told[:2])


def test_every_codec_is_bounded() -> None:
    data = np.zeros(2**20)
    packed = {"zstd": Zstd().encode(data), "blosc": Blosc().encode(data), "gzip": gzip.compress(data.tobytes())}
    for codec, text in packed.items():
        assert unpacked(bytes(text), codec, data.nbytes) == data.tobytes()
        with pytest.raises(ValueError, match="unpacks to"):
            unpacked(bytes(text), codec, data.nbytes - 1)
        for cut in (0, 3, 5, 8, len(text) // 2):
            with pytest.raises((ValueError, RuntimeError)):
                unpacked(bytes(text)[:cut], codec, data.nbytes)


def test_texts_are_as_many_as_declared(open_path: Path) -> None:
    key = "performance/train_task"
    change(open_path, key, codecs=[{"name": "vlen-utf8", "configuration": {}}])
    (open_path / key / "c/0").write_bytes((2**31 - 1).to_bytes(4, "little") + bytes(100))
    told = read_with_little_memory(open_path, "performance").splitlines()
    assert all("it does not hold 256 texts" in line for line in told[:2]) and told[2] == "tampered"


@pytest.mark.parametrize("kind", ["pipe", "device", "link", "linked folder", "folder", "large"])
@pytest.mark.parametrize("which", ["zarr.json", "performance/accuracy/c/0/0/0"])
def test_only_regular_files_of_the_run_are_read(open_path: Path, tmp_path: Path, kind: str, which: str) -> None:
    file = open_path / which
    if kind == "linked folder":
        if file.parent == open_path:
            return  # the run's own folder may be a link
        file.parent.rename(tmp_path / "elsewhere")
        file.parent.symlink_to(tmp_path / "elsewhere")
    elif kind == "large":
        os.truncate(file, 2**33)
    else:
        file.rename(tmp_path / "kept")
        {
            "pipe": lambda: os.mkfifo(file),
            "device": lambda: file.symlink_to("/dev/zero"),
            "link": lambda: file.symlink_to(tmp_path / "kept"),
            "folder": file.mkdir,
        }[kind]()
    for read in (lambda run: run.load("performance"), lambda run: run["performance"].load()):
        with pytest.raises(WaterjarError, match="could not read"):
            read(waterjar.open_run(open_path))
    assert waterjar.verify(open_path).state == "tampered"


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "large"])
def test_a_ledger_that_is_no_file_is_one_error(tmp_path: Path, kind: str) -> None:
    study = waterjar.create_study(tmp_path / "study")
    record(study / "run", steps=1)
    file = study / "ledger.jsonl"
    file.rename(tmp_path / "kept")
    {
        "pipe": lambda: os.mkfifo(file),
        "link": lambda: file.symlink_to(tmp_path / "kept"),
        "folder": file.mkdir,
        "large": lambda: (file.touch(), os.truncate(file, 3 * 2**30)),
    }[kind]()
    for read in (ledger.entries, waterjar.create_study, lambda study: waterjar.verify(study / "run")):
        with pytest.raises(WaterjarError, match=r"could not read the ledger .*ledger\.jsonl: "):
            read(study)
    with pytest.raises(WaterjarError, match=r"ledger\.jsonl could not be written: "):
        ledger.append(study / "run", "1", "2")


def test_a_run_may_itself_be_behind_a_link(open_path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(open_path)
    assert waterjar.open_run(tmp_path / "link").load("performance").accuracy.shape == (3, 1, 1)
    assert waterjar.verify(tmp_path / "link").state == "open"


def test_one_file_reader(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert read_file(tmp_path, "file", 5) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes; at most 4 were expected"):
        read_file(tmp_path, "file", 4)
    with pytest.raises(WaterjarError, match="could not read .*nothing: No such file"):
        LocalStore(tmp_path).get("nothing")


def test_storage_asks_for_no_chunk_that_could_not_be_read() -> None:
    with pytest.raises(WaterjarError, match="snapshot_chunk_bytes"):
        Storage(snapshot_chunk_bytes=2**29)
