"""When a run is set aside, against cases counted by hand; and the word that attempts leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import waterjar
from waterjar import WaterjarError
from waterjar.lab import stopping
from waterjar.lab.study import attempts
from waterjar.lab.study.attempts import DONE, FOLDER, INTERRUPTED, Attempts, Event, attempt, record
from waterjar.lab.study.executors import LostWorkerError
from waterjar.run.store import LocalStore

pytestmark = pytest.mark.torch

BEGAN, LOST, RAISED, STOPPED, BUSY = "began", "lost", "raised", "interrupted", "busy"


@pytest.mark.parametrize(
    ("events", "losses", "raises", "aside"),
    [
        ([], 0, 0, False),
        ([(BEGAN, -1), (LOST, -1), (BEGAN, -1), (LOST, -1)], 2, 0, False),
        ([(BEGAN, -1), (LOST, -1), (BEGAN, -1), (LOST, -1), (BEGAN, -1), (LOST, -1)], 3, 0, True),
        # the third worker recorded a step before it was lost: the count starts anew
        ([(BEGAN, -1), (LOST, -1), (BEGAN, -1), (LOST, -1), (BEGAN, -1), (LOST, 0)], 0, 0, False),
        ([(BEGAN, 4), (LOST, 4), (BEGAN, 4), (LOST, 5), (BEGAN, 5), (LOST, 5), (BEGAN, 5), (LOST, 5)], 2, 0, False),
        # cut back to a checkpoint and recorded once more is no new step
        ([(BEGAN, 4), (LOST, 4), (BEGAN, 4), (LOST, 3), (BEGAN, 3), (LOST, 4)], 3, 0, True),
        # of which nothing more is heard: the executor took them up by itself
        ([(BEGAN, -1), (BEGAN, -1), (BEGAN, -1)], 2, 0, False),
        ([(BEGAN, -1), (BEGAN, -1), (BEGAN, -1), (BEGAN, -1)], 3, 0, True),
        ([(BEGAN, -1), (BEGAN, 2), (BEGAN, 2)], 1, 0, False),
        # workers that were lost before they could begin
        ([(LOST, -1), (LOST, -1), (LOST, -1)], 3, 0, True),
        # told to stop, as often as it may be
        ([(BEGAN, -1), (STOPPED, -1)] * 10, 0, 0, False),
        ([(BEGAN, -1), (RAISED, -1), (BEGAN, -1), (RAISED, 7)], 0, 2, False),
        ([(BEGAN, -1), (RAISED, -1), (BEGAN, -1), (RAISED, 7), (BEGAN, 7), (RAISED, 9)], 0, 3, True),
        ([(BEGAN, -1), (RAISED, -1), (BEGAN, -1), (LOST, -1), (BEGAN, -1), (RAISED, -1)], 1, 2, False),
        # another process had the lock
        ([(BEGAN, -1), (BUSY, -1)] * 3, 0, 0, False),
    ],
)
def test_three_of_a_kind(events: list[tuple[Any, int]], losses: int, raises: int, aside: bool) -> None:
    found = record([Event(kind, step, "why") for kind, step in events])
    assert (len(found.losses), len(found.raises), found.set_aside is not None) == (losses, raises, aside)


def test_a_run_that_is_set_aside_says_why() -> None:
    def said(kind: Any, *causes: str) -> str:
        return str(record([Event(BEGAN, 0), *(Event(kind, 0, cause) for cause in causes)]).set_aside)

    killed = said(LOST, "SIGKILL", "SIGKILL", "SIGKILL")
    assert "its worker was lost 3 times (SIGKILL) without a new recorded step, so it was set aside" in killed
    assert "out of memory: run fewer at a time (--workers 1)" in killed
    crashed = said(LOST, "SIGABRT", "exit code 3", "SIGABRT")
    assert "(SIGABRT, exit code 3)" in crashed and "crash of compiled code" in crashed
    assert "nothing more is known" in said(LOST, "", "", "")
    assert said(RAISED, "no room", "no room", "no room") == "no room (raised 3 times, so it was set aside)"
    assert said(RAISED, "a", "b", "a").startswith("(1) a; (2) b; (3) a")


def test_words_of_other_times_and_what_is_none_do_not_count(tmp_path: Path) -> None:
    run = tmp_path / "run"
    other, own = Attempts(run, "before"), Attempts(run, "now")
    assert own.events() == []
    other.note("lost", "SIGKILL")
    own.note("began")
    file = tmp_path / FOLDER / "run.jsonl"
    strange = [
        "half a li",
        "[]",
        '{"session": "now"}',
        json.dumps({"session": "now", "kind": "x", "step": 1, "why": ""}),
    ]
    strange += [json.dumps({"session": "now", "kind": "lost", "step": True, "why": ""}), "[" * 100_000]
    file.write_text(file.read_text() + "\n".join(strange) + "\n")
    own.note_end(WaterjarError("x" * 10_000))
    assert [(event.kind, len(event.why)) for event in own.events()] == [("began", 0), ("raised", 2000)]
    own.forget()
    own.forget()
    assert own.events() == []


def record_steps(path: Path, steps: int, resume: bool = False) -> None:
    with waterjar.Recorder(path, {}, eval_sets=["test"], resume=resume) as recorder:
        for epoch in range(steps):
            recorder.log(epoch=epoch, performance={"accuracy": 0.5})


def kinds(run: Path) -> list[str]:
    return [event.kind for event in Attempts(run, "now").events()]


def test_an_attempt_leaves_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    with pytest.raises(ZeroDivisionError):
        attempt("now", str(run), lambda: 1 / 0)
    assert attempt("now", str(run), record_steps, run, 3) == DONE
    assert [(event.kind, event.step) for event in Attempts(run, "now").events()] == [
        ("began", -1),
        ("raised", -1),
        ("began", -1),
        ("done", 2),
    ]

    def interrupted(error: BaseException) -> None:
        raise error

    with pytest.raises(KeyboardInterrupt):  # Ctrl-C of the study itself is nothing that goes back into the queue
        attempt("now", str(run), interrupted, KeyboardInterrupt())
    monkeypatch.setattr(stopping, "requested", lambda: True)
    for error in (stopping.Stopped(), KeyboardInterrupt(), WaterjarError("a helper process is gone")):
        assert attempt("now", str(run), interrupted, error) == INTERRUPTED
    assert kinds(run)[-2:] == ["began", "interrupted"]


def test_an_executor_that_takes_runs_up_by_itself_is_held_to_the_same(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for _ in range(3):  # as if their workers had been lost
        Attempts(run, "now").note("began")
    with pytest.raises(LostWorkerError):
        attempt("now", str(run), record_steps, run, 1)
    assert not run.exists()
    assert record(Attempts(run, "now").events()).set_aside is not None
    assert attempt("another time", str(run), record_steps, run, 1) == DONE


def test_a_run_that_is_taken_up_waits_for_the_lock_of_the_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    holder = waterjar.Recorder(run, {}, eval_sets=["test"])
    holder.log(epoch=0, performance={"accuracy": 0.5})
    monkeypatch.setattr(attempts, "_WAIT", 0.3)
    Attempts(run, "now").note("began")
    with pytest.raises(WaterjarError, match="is being written by process"):
        attempt("now", str(run), record_steps, run, 1, True)
    assert kinds(run)[-1] == "busy"
    monkeypatch.setattr(attempts, "_WAIT", 60.0)
    looks = []

    def lock(store: LocalStore) -> None:
        looks.append(store)
        if len(looks) == 3:
            holder.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
        real(store)

    real = LocalStore.lock
    monkeypatch.setattr(LocalStore, "lock", lock)

    def go_on() -> None:
        waterjar.Recorder(run, {}, eval_sets=["test"], resume=True).close()

    assert attempt("now", str(run), go_on) == DONE
    assert len(waterjar.open_run(run).attributes["provenance"]["sessions"]) == 2
