"""Events as they are read."""

from __future__ import annotations

from pathlib import Path

import waterjar
from recording import record
from waterjar.run.events import events_of


def test_they_come_back_in_order_with_the_seeds_they_are_of(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", seeds=[7, 9], eval_sets=["a"]) as recorder:
        recorder.event("start", "before the first step")
        recorder.log(epoch=0, performance={"accuracy": [[0.1, 0.2]]})
        recorder.event("late", "of the second", level="warning", repeat=1)
    found = events_of(waterjar.open_run(tmp_path / "run"))
    assert [(one.step, one.seed, one.level, one.kind, one.message) for one in found] == [
        (-1, None, "info", "start", "before the first step"),
        (0, 9, "warning", "late", "of the second"),
    ]
    assert found[0].time <= found[1].time


def test_most_runs_have_none(tmp_path: Path) -> None:
    assert events_of(waterjar.open_run(record(tmp_path / "run"))) == []
