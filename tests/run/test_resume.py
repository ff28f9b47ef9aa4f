from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import waterjar
from recording import content, root_of
from waterjar import Recorder, Storage, WaterjarError

OPTIONS = {"eval_sets": ["a"], "storage": Storage(step_chunk=4), "provenance": False}


def write(path: Path, start: int, stop: int, recorder: Recorder) -> None:
    for step in range(start, stop):
        recorder.log(epoch=step, performance={"accuracy": step / 100, **({"loss": step} if step > 5 else {})})
        if step % 2:
            recorder.snapshot(weights=np.full(3, float(step)))
        recorder.event("note", f"at {step}")


def uninterrupted(path: Path, stop: int) -> Path:
    with Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, stop, recorder)
    return path


@pytest.mark.parametrize("at", [-1, 0, 3, 4, 5, 6, 7, 9])
def test_resume_truncates_to_the_checkpoint(tmp_path: Path, at: int) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, 10, recorder)
        raise KeyError
    assert waterjar.open_run(path).status == "interrupted"
    with Recorder(path, {"x": 1}, resume_at=at, **OPTIONS) as recorder:
        assert recorder.last_step == at
        write(path, at + 1, 12, recorder)
    assert content(path) == content(uninterrupted(tmp_path / "other", 12))
    assert len(root_of(path)["attributes"]["provenance"]["sessions"]) == 2


def test_resume_and_close_right_away_leaves_no_trace_of_what_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, 4, recorder)
        raise KeyError
    with Recorder(path, {"x": 1}, resume_at=2, **OPTIONS):
        pass
    assert content(path) == content(uninterrupted(tmp_path / "other", 3))


def test_resume_starts_a_run_where_there_is_none(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {"x": 1}, resume=True, **OPTIONS) as recorder:
        assert recorder.last_step == -1
        write(tmp_path, 0, 3, recorder)
    assert content(tmp_path / "run") == content(uninterrupted(tmp_path / "other", 3))


def test_resume_refuses_another_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, 4, recorder)
        raise KeyError
    before = content(path)
    with pytest.raises(WaterjarError, match="is another run: its run_id"):
        Recorder(path, {"x": 2}, resume=True, **OPTIONS)
    with pytest.raises(WaterjarError, match="is another run: its eval_sets"):
        Recorder(path, {"x": 1}, resume=True, **{**OPTIONS, "eval_sets": ["a", "b"]})
    with pytest.raises(WaterjarError, match="resume_at=7 is no step of .*: the last complete one is 3"):
        Recorder(path, {"x": 1}, resume_at=7, **OPTIONS)
    assert content(path) == before


def test_a_sealed_run_is_not_resumed(run_path: Path) -> None:
    before = content(run_path)
    options = {"seeds": [0], "eval_sets": {"a": 0, "b": 1}, "tasks": ["first", "second"]}
    with pytest.raises(WaterjarError, match="is sealed: it is complete"):
        Recorder(run_path, {"learner": "sgd", "lr": 0.1}, resume=True, **options)
    assert content(run_path) == before


def test_a_damaged_tail_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, 3, recorder)
        raise KeyError
    chunk = path / "events" / "message" / "c" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(WaterjarError, match=r"is damaged and cannot be resumed: changed events/message/c/0"):
        Recorder(path, {"x": 1}, resume=True, **OPTIONS)


def test_a_failed_commit_can_be_logged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk in every place a commit writes to: nothing changes, and the same step can be logged again."""
    reference = uninterrupted(tmp_path / "other", 10)
    path = tmp_path / "run"
    write_really, patch_really = os.write, os.pwrite
    left = {"count": 10**9}

    def write_until_full(descriptor: int, data: memoryview) -> int:
        left["count"] -= 1
        if left["count"] < 0:
            raise OSError(28, "No space left on device")
        return write_really(descriptor, data)

    def patch_until_full(descriptor: int, data: bytes, offset: int) -> int:
        left["count"] -= 1
        return patch_really(descriptor, data[: len(data) // 2] if left["count"] < 0 else data, offset)

    monkeypatch.setattr(os, "write", write_until_full)
    monkeypatch.setattr(os, "pwrite", patch_until_full)
    failures = 0
    with Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        for step in range(10):
            for writes in range(60):
                left["count"] = writes
                try:
                    recorder.log(
                        epoch=step, performance={"accuracy": step / 100, **({"loss": step} if step > 5 else {})}
                    )
                    break
                except WaterjarError as error:
                    failures += 1
                    assert "No space left on device. What was recorded before is intact" in str(error)
                    assert waterjar.open_run(path).last_step == step - 1
                    if step:
                        found = waterjar.open_run(path).load("performance").accuracy.values.ravel()
                        np.testing.assert_array_equal(found, np.arange(step) / 100)
                finally:
                    left["count"] = 10**9
            if step % 2:
                recorder.snapshot(weights=np.full(3, float(step)))
            recorder.event("note", f"at {step}")
    assert failures > 80
    assert waterjar.verify(path).state == "sealed"
    assert content(path) == content(reference)


def test_copied_run_opens(tmp_path: Path, run_path: Path) -> None:
    shutil.copytree(run_path, tmp_path / "copy")
    assert waterjar.verify(tmp_path / "copy").state == "sealed"
    assert waterjar.open_run(tmp_path / "copy").root_hash == waterjar.open_run(run_path).root_hash


def test_a_failed_close_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path / "run", {"x": 1}, **OPTIONS)
    write(tmp_path, 0, 3, recorder)

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(WaterjarError, match="No space left"):
            recorder.close()
    assert waterjar.verify(tmp_path / "run").state == "open"
    write(tmp_path, 3, 5, recorder)
    assert waterjar.open_run(tmp_path / "run").status == "recording"
    recorder.close()
    assert waterjar.verify(tmp_path / "run").state == "sealed"
    assert content(tmp_path / "run") == content(uninterrupted(tmp_path / "other", 5))


def test_an_exception_on_a_full_disk_keeps_its_own_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    with pytest.raises(KeyError) as caught, Recorder(tmp_path / "run", {"x": 1}, **OPTIONS) as recorder:
        write(tmp_path, 0, 3, recorder)
        monkeypatch.setattr(os, "write", full)
        raise KeyError("the real one")
    monkeypatch.undo()
    assert "could not mark the run as interrupted" in caught.value.__notes__[0]
    with Recorder(tmp_path / "run", {"x": 1}, resume=True, **OPTIONS) as recorder:
        assert recorder.last_step == 2


def test_resume_with_another_storage_keeps_what_is_there(tmp_path: Path) -> None:
    label = np.arange(4).reshape(1, 4)
    other = {**OPTIONS, "storage": Storage(compression="lz4", step_chunk=16)}
    with pytest.raises(KeyError), Recorder(tmp_path / "run", {"x": 1}, **OPTIONS) as recorder:
        recorder.once("probe_samples", label=label)
        write(tmp_path, 0, 3, recorder)
        raise KeyError
    with Recorder(tmp_path / "run", {"x": 1}, resume=True, **other) as recorder:
        recorder.once("probe_samples", label=label)
        with pytest.raises(WaterjarError, match="recorded before with other values"):
            recorder.once("probe_samples", label=label.astype(np.int32))
        write(tmp_path, 3, 9, recorder)
    run = waterjar.open_run(tmp_path / "run")
    assert waterjar.verify(run.path).state == "sealed"
    np.testing.assert_array_equal(run["performance"].accuracy.values.ravel(), np.arange(9) / 100)


def test_a_run_that_appears_while_waiting_for_the_lock_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from waterjar.run.store import LocalStore

    lock = LocalStore.lock

    def late(self: LocalStore) -> None:
        monkeypatch.setattr(LocalStore, "lock", lock)
        uninterrupted(tmp_path / "run", 2)
        lock(self)

    monkeypatch.setattr(LocalStore, "lock", late)
    with pytest.raises(WaterjarError, match="holds a run already"):
        Recorder(tmp_path / "run", {"x": 1}, **OPTIONS)
    assert waterjar.verify(tmp_path / "run").state == "sealed"
    with pytest.raises(WaterjarError, match="is sealed"):  # and the lock is free again
        Recorder(tmp_path / "run", {"x": 1}, resume=True, **OPTIONS)


@pytest.mark.parametrize("kind", ["deleted", "flipped"])
@pytest.mark.parametrize("file", ["weights/weights/c/1/0/0", "performance/accuracy/c/0/0/0", "performance/step/c/0"])
def test_damage_is_neither_resumed_nor_called_open(tmp_path: Path, kind: str, file: str) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, 7, recorder)
        raise KeyError
    assert waterjar.verify(path).state == "open"
    if kind == "deleted":
        (path / file).unlink()
    else:
        data = bytearray((path / file).read_bytes())
        data[1] ^= 8
        (path / file).write_bytes(data)
    found = waterjar.verify(path)
    assert (found.state, [problem.file for problem in found.problems]) == ("tampered", [file])
    with pytest.raises(WaterjarError, match=f"is damaged and cannot be resumed: .* {file}"):
        Recorder(path, {"x": 1}, resume=True, **OPTIONS)


def test_what_is_the_users_stays_the_users(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyError), Recorder(path, {"x": 1}, **OPTIONS) as recorder:
        write(path, 0, 3, recorder)
        raise KeyError
    (path / "code" / "c").mkdir(parents=True)
    (path / "code" / "c" / "main.c").write_text("int main;")
    with Recorder(path, {"x": 1}, resume=True, **OPTIONS) as recorder:
        write(path, 3, 5, recorder)
    assert (path / "code" / "c" / "main.c").read_text() == "int main;"
    found = waterjar.verify(path)
    assert (found.state, found.extra) == ("sealed", ["code/c/main.c"])
    seal = root_of(path)["attributes"]["seal"]["content"]
    assert seal == root_of(uninterrupted(tmp_path / "other", 5))["attributes"]["seal"]["content"]


def test_resume_in_another_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Recorder(tmp_path / "run", {}, storage={"step_dtype": "float32"}) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
        raise KeyError
    with pytest.raises(WaterjarError, match="recorded with step_dtype float32, not float64"):
        Recorder(tmp_path / "run", {}, resume=True)


def test_returning_to_an_earlier_task(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {}, tasks=["a", "b"]) as recorder:
        for task in ("a", "b", "a", "b"):
            for epoch in (1, 2):
                recorder.log(train_task=task, epoch=epoch, train={"loss": 1.0})
    data = waterjar.open_run(tmp_path / "run")["train"]
    assert data.effective_epoch.values.tolist() == [0, 0, 1, 2, 2, 2, 3, 4]
    assert data.total_epoch.values.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_sealed_but_killed_before_its_ledger_line(tmp_path: Path) -> None:
    from waterjar.run import ledger

    study = waterjar.create_study(tmp_path / "study")
    uninterrupted(study / "run", 2)
    (study / ledger.LEDGER).unlink()
    with pytest.raises(WaterjarError, match="is sealed"):
        Recorder(study / "run", {"x": 1}, resume=True, **OPTIONS)
    assert ledger.last_root(study / "run") == waterjar.open_run(study / "run").root_hash


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), WaterjarError("no space left")])
def test_a_swap_of_the_root_that_fails_costs_one_step_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    """The checksums of rows that never became visible must not stay in the root."""
    from waterjar.run.store import LocalStore

    put_root = LocalStore.put_root

    def fail_once(store: LocalStore, data: bytes, *, sync: bool = False) -> None:
        monkeypatch.setattr(LocalStore, "put_root", put_root)
        raise failure

    def log(recorder: Recorder, epoch: int) -> None:
        recorder.log(epoch=epoch, performance={"accuracy": 0.1 * epoch})

    path = tmp_path / "run"
    with pytest.raises(type(failure)), Recorder(path, {}, eval_sets=["a"]) as recorder:
        log(recorder, 0)
        log(recorder, 1)
        monkeypatch.setattr(LocalStore, "put_root", fail_once)
        log(recorder, 2)
    assert waterjar.verify(path).state == "open"
    with Recorder(path, {}, eval_sets=["a"], resume=True) as recorder:
        assert recorder.last_step == 1
        monkeypatch.setattr(LocalStore, "put_root", fail_once)
        with pytest.raises(type(failure)):
            log(recorder, 2)
        log(recorder, 2)  # as the error advises
        assert waterjar.verify(path).state == "open"
    assert waterjar.open_run(path).load("performance")["accuracy"].values.ravel().tolist() == [0.0, 0.1, 0.2]
    assert waterjar.verify(path).state == "sealed"
