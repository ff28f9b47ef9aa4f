"""Working off runs on pools that do as they are told: what goes back into the queue, and what is given up."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from waterjar import WaterjarError
from waterjar.lab.study.attempts import DONE, FOLDER, INTERRUPTED, Attempts
from waterjar.lab.study.executors import LostWorkerError
from waterjar.lab.study.queue import work_off

pytestmark = pytest.mark.torch

LOST = LostWorkerError("SIGKILL")
RAISED = WaterjarError("no room")
BUSY = WaterjarError("x is being written by process 7: a run has one writer")


class Scripted:
    """Ends the calls of a run as its script says, one after the other; then they are done."""

    runs_a_machine = 1
    stopped = ""

    def __init__(self, scripts: dict[str, list[Any]], begin: bool = True) -> None:
        self.scripts = scripts
        self.order: list[str] = []
        self.begin = begin

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        session, run = args[0], Path(args[1])
        self.order.append(run.name)
        outcome = self.scripts.get(run.name, []).pop(0) if self.scripts.get(run.name) else DONE
        if self.begin:
            Attempts(run, session).note("began")
        future: Future[Any] = Future()
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return future

    def attend(self, seconds: float) -> None:
        """All is done."""

    def stop(self) -> None:
        """Nothing runs."""


def work(folder: Path, pool: Any, names: str = "abc") -> dict[str, str]:
    runs = [folder / name for name in names]
    return work_off(runs, {run.name: (print,) for run in runs}, pool, "now", lambda: None, 0.0)


@pytest.mark.parametrize("begin", [True, False])  # whether a worker came so far as to leave word
def test_three_lost_workers_or_raises_set_a_run_aside_and_the_others_go_on(tmp_path: Path, begin: bool) -> None:
    pool = Scripted({"a": [LOST] * 9, "b": [RAISED] * 9}, begin)
    failed = work(tmp_path, pool)
    assert set(failed) == {"a", "b"}
    assert "its worker was lost 3 times (SIGKILL)" in failed["a"]
    assert failed["b"] == "no room (raised 3 times, so it was set aside)"
    assert sorted(pool.order) == sorted("aaabbbc")
    assert pool.order[:3] == ["a", "b", "c"]  # what failed goes behind the others


def test_two_of_each_do_not(tmp_path: Path) -> None:
    pool = Scripted({"a": [LOST, RAISED, LOST, RAISED], "b": [INTERRUPTED] * 7})
    assert work(tmp_path, pool) == {}
    assert (pool.order.count("a"), pool.order.count("b")) == (5, 8)
    assert list((tmp_path / FOLDER).iterdir()) == []  # of complete runs nothing is kept


def test_a_new_recorded_step_starts_the_count_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = -1

    class Recording(Scripted):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
            nonlocal step
            found = super().submit(fn, *args)
            step += len(self.order) == 3  # the third worker records a step, and is lost then
            return found

    monkeypatch.setattr("waterjar.lab.study.attempts.step_of", lambda run: step)
    assert work(tmp_path, Recording({"a": [LOST] * 5}), "a") == {}
    step = -1
    assert "lost 3 times" in work(tmp_path / "other", Recording({"a": [LOST] * 6}), "a")["a"]


def test_a_run_that_another_process_writes_is_left_to_it(tmp_path: Path) -> None:
    pool = Scripted({"a": [BUSY] * 9})
    assert "is being written" in work(tmp_path, pool)["a"]
    assert pool.order.count("a") == 1


def test_after_a_lost_worker_its_lock_is_waited_for(tmp_path: Path) -> None:
    pool = Scripted({"a": [LOST, BUSY, BUSY], "b": [LOST, *[BUSY] * 9]})
    failed = work(tmp_path, pool)
    assert set(failed) == {"b"}
    assert "is being written" in failed["b"]
    assert pool.order.count("b") == 4


def test_where_nobody_can_count_a_failure_is_final(tmp_path: Path) -> None:
    (tmp_path / ".waterjar").write_text("in the way")
    pool = Scripted({"a": [LOST] * 9}, begin=False)
    with pytest.raises(WaterjarError, match="could not read"):
        work(tmp_path, pool, "a")


def test_whatever_stops_it_cancels_what_has_not_begun(tmp_path: Path) -> None:
    waiting: list[Future[Any]] = []

    class Slow(Scripted):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
            waiting.append(Future())
            return waiting[-1]

        def attend(self, seconds: float) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(tmp_path, Slow({}))
    assert [future.cancelled() for future in waiting] == [True] * 3
