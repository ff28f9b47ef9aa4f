"""Every file is written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import waterjar
from recording import record
from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file, written_beside


def test_a_file_is_replaced_and_its_folders_are_made(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "file"
    assert write_file(file, "first, ü") == file
    assert file.read_text(encoding="utf-8") == "first, ü"
    write_file(file, b"second")
    assert file.read_bytes() == b"second"
    assert [item.name for item in file.parent.iterdir()] == ["file"]


def test_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path: Path, full_disk: Callable[[], None]) -> None:
    file = write_file(tmp_path / "file", "what was there")
    full_disk()
    with pytest.raises(WaterjarError, match=f"^could not write {file}: No space left on device$"):
        write_file(file, "longer than four")
    assert file.read_text() == "what was there"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("somebody else's")
    (tmp_path / "link").symlink_to(other)
    write_file(tmp_path / "link", "ours")
    assert (other.read_text(), (tmp_path / "link").read_text()) == ("somebody else's", "ours")


@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_name_that_cannot_be_is_one_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(WaterjarError, match="could not write"):
        write_file(tmp_path / name, "")


def test_standard_output_is_a_place_to_write_to(tmp_path: Path) -> None:
    code = "from waterjar.run.disk import write_file; write_file('/dev/stdout', 'shown')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "shown"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs /dev/shm")
def test_shared_memory_is_a_folder_like_any_other() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file = write_file(Path(folder) / "study" / "study.yaml", "first")
        assert write_file(file, "second").read_text() == "second"


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    with (
        pytest.raises(WaterjarError, match="could not write .*No space"),
        written_beside(tmp_path / "a" / "b") as draft,
    ):
        draft.mkdir()
        (draft / "x").write_text("1")
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []
    with written_beside(tmp_path / "a" / "b") as draft:
        draft.mkdir()
        (draft / "x").write_text("1")
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["a", "a/b", "a/b/x"]


def test_a_full_disk_leaves_an_exported_timeline_as_it_was(tmp_path: Path, full_disk: Callable[[], None]) -> None:
    run = waterjar.open_run(record(tmp_path / "run"))
    file = waterjar.to_csv(run, tmp_path / "out.csv")
    before = file.read_bytes()
    full_disk()
    with pytest.raises(WaterjarError, match="could not write .*out.csv: No space left on device"):
        waterjar.to_csv(run, file)
    assert file.read_bytes() == before


def test_a_full_disk_leaves_the_ledger_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = waterjar.create_study(tmp_path / "study", {})
    record(study / "one")
    real = os.write
    recorder = waterjar.Recorder(study / "two", {}, provenance=False)
    recorder.log(epoch=0, train={"loss": 1.0})

    def write(descriptor: int, data: bytes) -> int:
        return real(descriptor, bytes(data)[:10] if bytes(data).startswith(b'{"run":') else data)

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(WaterjarError, match="is sealed as .*, but .*ledger.jsonl could not be written: No space"):
        recorder.close()
    monkeypatch.setattr(os, "write", real)
    assert waterjar.verify(study / "two").state == "sealed"
    waterjar.create_study(study, {})  # enters what has no line
    assert len((study / "ledger.jsonl").read_text().splitlines()) == 2


def test_rows_that_did_not_reach_the_disk_are_no_numbers(tmp_path: Path) -> None:
    """An open run whose root is ahead of a chunk: an error, not a NaN."""
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"], provenance=False) as recorder:
        for epoch in range(3):
            recorder.log(epoch=epoch, performance={"accuracy": 0.5})
        chunk = tmp_path / "run" / "performance" / "accuracy" / "c" / "0" / "0" / "0"
        values = np.frombuffer(chunk.read_bytes(), np.float64).copy()
        values[2] = np.nan
        chunk.write_bytes(values.tobytes())
        with pytest.raises(WaterjarError, match="is damaged: its rows are not those that were recorded"):
            waterjar.open_run(tmp_path / "run").load("performance")


def test_a_run_can_be_sealed_while_the_process_ends(tmp_path: Path) -> None:
    """No thread can be started then."""
    code = (
        "import atexit, sys, waterjar\n"
        "recorder = waterjar.Recorder(sys.argv[1], {}, provenance=False)\n"
        "recorder.log(epoch=0, train={'loss': 1.0})\n"
        "atexit.register(recorder.close)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert waterjar.verify(tmp_path / "run").state == "sealed"
