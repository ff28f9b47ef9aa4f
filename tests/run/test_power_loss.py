"""The power is cut at any moment, on a disk that keeps what was synced and any part of the rest."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import waterjar
from recording import content
from run.forgetful import FATES, Tape, taped
from run.killed import step_values
from waterjar import Recorder, Storage, WaterjarError
from waterjar.run import ledger, store
from waterjar.run.disk import write_file

STEPS = 11
STOP = 6
"""The step at which the first session ends, by an error."""


def train(run: Path, sync: bool | None, tape: Tape | None = None, stop: int | None = None) -> int:
    """Go on with a run to its end, or to an error; returns the step it went on from. Checkpoints every third step."""
    marker = run.parent / "checkpoint"
    resume_at = int(marker.read_text()) if marker.exists() else -1
    storage = Storage(step_chunk=4, snapshot_chunk_bytes=4000, sync=sync)
    with Recorder(
        run,
        {"learner": "sgd"},
        eval_sets=["a", "b"],
        tasks=["first", "second"],
        storage=storage,
        resume=True,
        resume_at=resume_at if run.exists() else None,
        provenance=False,
    ) as recorder:
        begun = recorder.last_step
        recorder.once("probe_samples", label=np.arange(100).reshape(2, 50))
        for step in range(begun + 1, STEPS):
            values = step_values(step)
            recorder.log(
                train_task="first" if step < 5 else "second",
                epoch=step if step < 5 else step - 5,
                performance={key: values[key] for key in (("accuracy", "loss") if step >= 2 else ("accuracy",))},
                train={"loss": step} if step % 2 else None,
                snapshot={"features": {"l": values["features"]}, "weights": {"w": values["weights"]}},
            )
            if step == 4:
                recorder.event("note", "half")
            if step % 3 == 0:
                recorder.sync()
                write_file(marker, str(step))
            if tape is not None and (sync or step % 3 == 0):
                tape.note("step", step)
            if step == stop:
                raise KeyboardInterrupt
    if tape is not None:
        tape.note("sealed")
    return begun


def record(folder: Path, sync: bool | None) -> Tape:
    """Two sessions of one run in a study, all that they write to the disk noted."""
    folder.mkdir()
    with taped(folder) as tape:
        study = waterjar.create_study(folder / "study", {"kind": "test"})
        with pytest.raises(KeyboardInterrupt):
            train(study / "run", sync, tape, STOP)
        waterjar.open_study(study)
        train(study / "run", sync, tape)
        waterjar.open_study(study)
    return tape


def right_values(run: Path) -> int:
    """The last visible step; every number of those that are visible must be the one that was recorded."""
    opened = waterjar.open_run(run)
    data = opened.load("performance") if "performance" in opened.groups else None
    if data is None:
        return -1
    assert data.step.values.tolist() == list(range(opened.last_step + 1))
    for step in data.step.values:
        wanted = step_values(int(step))
        np.testing.assert_array_equal(data.accuracy.sel(step=step).values.ravel(), wanted["accuracy"])
        if step >= 2:
            np.testing.assert_array_equal(data.loss.sel(step=step).values.ravel(), wanted["loss"])
        assert data.train_task.sel(step=step) == ("first" if step < 5 else "second")
    shots, weights = opened.load("features/l"), opened.load("weights").weights
    assert shots.snapshot.values.tolist() == data.step.values.tolist()
    for step in shots.snapshot.values:
        wanted = step_values(int(step))
        np.testing.assert_array_equal(shots.features.sel(snapshot=step).values[0], wanted["features"])
        np.testing.assert_array_equal(weights.sel(snapshot=step).values[0], wanted["weights"])
    return opened.last_step


def check_after_cut(folder: Path, remarks: list[tuple[Any, ...]], sync: bool | None) -> str:
    """What was promised is there, what is there is right, and the run can be brought to its end."""
    run = folder / "study" / "run"
    promised = max((remark[1] for remark in remarks if remark[0] == "step"), default=-1)
    state = "none"
    if (run / "zarr.json").exists():
        try:
            state = waterjar.verify(run).state
            shown = right_values(run)
        except WaterjarError:
            state, shown = "damaged", None
        if ("sealed",) in remarks:
            assert state == "sealed"
            assert ledger.last_root(run) == waterjar.open_run(run).root_hash
        if sync:
            assert state in ("open", "sealed")
        if state in ("open", "sealed"):
            assert shown is not None and shown >= promised
        assert [entry.name for entry in waterjar.open_study(run.parent).entries] == ["run"]
    else:
        assert promised == -1
    if not (run.parent / "study.yaml").exists():
        waterjar.create_study(run.parent, {"kind": "test"})
    if state != "sealed":
        begun = train(run, sync)
        checkpoint = max((step for step in range(promised + 1) if step % 3 == 0), default=-1)
        assert begun >= checkpoint  # the checkpoint's step, of which later ones were dropped, or a later checkpoint
    assert waterjar.verify(run).state == "sealed"
    assert right_values(run) == STEPS - 1
    return state


def cut_often(tmp_path: Path, sync: bool | None, cuts: int, seed: int) -> dict[str, int]:
    tape = record(tmp_path / "real", sync)
    files = content(tmp_path / "real" / "study" / "run")
    top, _ = tape.replay(len(tape.calls))
    top.after("contents", random.Random(0), tmp_path / "names")
    tape.cut(len(tape.calls), "none", random.Random(0), tmp_path / "synced")
    assert content(tmp_path / "synced" / "study" / "run") == files  # the tape missed nothing, and a seal is on the disk
    rng = random.Random(seed)
    states: dict[str, int] = {}
    for i in range(cuts):
        until = round((i + rng.random()) / cuts * len(tape.calls))
        place = tmp_path / f"cut{i}"
        remarks = tape.cut(until, FATES[i % len(FATES)], rng, place)
        (place / "study").mkdir(exist_ok=True)
        try:
            state = check_after_cut(place, remarks, sync)
        except BaseException as error:
            error.add_note(f"cut {i} after call {until} of {len(tape.calls)}: {FATES[i % len(FATES)]}, {place}")
            raise
        states[state] = states.get(state, 0) + 1
        assert content(place / "study" / "run") == files
    return states


@pytest.mark.parametrize("sync", [True, None])
def test_power_is_cut_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool | None) -> None:
    monkeypatch.setattr(store, "_PAUSE", 1e9)  # a disk so slow that only `sync()` and `close()` wait for it
    states = cut_often(tmp_path, sync, cuts=10, seed=1)
    assert states.keys() >= {"open"}


@pytest.mark.slow
@pytest.mark.parametrize("sync", [True, None])
def test_power_is_cut_two_hundred_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool | None) -> None:
    monkeypatch.setattr(store, "_PAUSE", 1e9)
    states = cut_often(tmp_path, sync, cuts=200, seed=2)
    print(f"sync={sync}: {states}")


def test_the_disk_that_forgets_catches_a_store_that_does_not_wait(tmp_path: Path) -> None:
    """The same, without a sync: the test must be able to fail."""
    with pytest.raises((AssertionError, WaterjarError)):
        cut_often(tmp_path, False, cuts=10, seed=1)


def test_waiting_for_the_disk_takes_two_percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 50 ms on a disk where an fsync takes 2 ms: it waits now and then, 2 % of the time."""
    now, waited = [0.0], [0]

    def slow(descriptor: int) -> None:
        now[0] += 0.002
        waited[0] += 1

    monkeypatch.setattr(os, "fsync", slow)
    monkeypatch.setattr(store, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Recorder(tmp_path / "run", {}, eval_sets=["a"], provenance=False) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})
        recorder.sync()
        waited[0], begun = 0, now[0]
        for epoch in range(1, 500):
            now[0] += 0.05
            recorder.log(epoch=epoch, performance={"accuracy": 0.5})
        assert 0.01 < 0.002 * waited[0] / (now[0] - begun) < 0.025  # 2 %, and the root that is kept meanwhile
