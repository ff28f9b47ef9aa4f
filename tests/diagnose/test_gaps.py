"""NaN and evaluations that were not made are told when a run is closed, and shown."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import waterjar
from waterjar.cli.main import app
from waterjar.diagnose.feeds import summary
from waterjar.diagnose.gaps import gaps

SETS = ["a", "b"]


def record(path: Path, change: Any, *, tasks: list[str] = SETS, sets: list[str] = SETS, **own: Any) -> waterjar.Run:
    """Two epochs of every task, with what `change` makes of the numbers of each."""
    with waterjar.Recorder(path, {}, tasks=tasks, eval_sets=sets, summary=False, **own) as recorder:
        for task in tasks:
            for epoch in (1, 2):
                told = {"accuracy": dict.fromkeys(sets, 0.5), "loss": dict.fromkeys(sets, 1.0)}
                train = {"loss": 1.0, "gradient_norm": 1.0}
                change(told, train, task, epoch)
                recorder.log(epoch=epoch, train_task=task, performance=told, train=train)
    return waterjar.open_run(path)


def test_nothing_is_said_where_nothing_is_missing(tmp_path: Path) -> None:
    run = record(tmp_path / "run", lambda *_: None)
    assert gaps(run) == [] and "NaN" not in summary(run)
    assert "what is missing" not in CliRunner().invoke(app, ["show", str(run.path)]).output


def test_the_first_nan_is_named(tmp_path: Path) -> None:
    def broken(told: Any, train: Any, task: str, epoch: int) -> None:
        if task == "b":
            train["loss"] = told["loss"]["b"] = math.nan
            told["accuracy"]["a"] = waterjar.missing("not_a_number") if epoch == 2 else 0.5

    run = record(tmp_path / "run", broken)
    lines = {
        "performance/accuracy of a is NaN at epoch 2 of b, 1 of 4 times",
        "performance/loss of b is NaN first at epoch 1 of b, 2 of 4 times",
        "train/loss is NaN first at epoch 1 of b, 2 of 4 times",
    }
    assert set(gaps(run)) == lines
    assert all(f"  {line}" in summary(run).splitlines() for line in lines)
    shown = CliRunner().invoke(app, ["show", str(run.path)]).output
    assert "what is missing in what it recorded" in shown and all(f"  {line}" in shown for line in lines)
    assert set(json.loads(CliRunner().invoke(app, ["show", str(run.path), "--json"]).stdout)["gaps"]) == lines


def test_a_set_that_lacks_epochs_is_named(tmp_path: Path) -> None:
    def forget(told: Any, train: Any, task: str, epoch: int) -> None:
        if epoch == 2:
            del told["accuracy"]["a"], told["loss"]["a"]
        if (task, epoch) == ("a", 1):
            del told["loss"]["b"]

    assert gaps(record(tmp_path / "run", forget)) == [
        "eval set a has no performance/accuracy, performance/loss first at epoch 2 of a, 2 of 4 times",
        "eval set b has no performance/loss at epoch 1 of a, 1 of 4 times",
    ]


def test_what_was_not_measured_at_all_at_a_step_is_no_gap(tmp_path: Path) -> None:
    def now_and_then(told: Any, train: Any, task: str, epoch: int) -> None:
        if epoch == 1:
            del told["loss"], train["loss"], train["gradient_norm"]

    assert gaps(record(tmp_path / "run", now_and_then)) == []


def test_lines_are_few_and_harmless(tmp_path: Path) -> None:
    sets = [f"set{i}\x1b[31m" for i in range(9)]

    def forget(told: Any, train: Any, task: str, epoch: int) -> None:
        for name in sets[1:] if epoch == 2 else []:
            del told["accuracy"][name]
        told["loss"] = dict.fromkeys(sets, math.nan)

    found = gaps(record(tmp_path / "run", forget, tasks=["a"], sets=sets))
    assert len(found) == 5 and found[-1] == "... and 5 more like these"
    assert "and 5 more is NaN first at epoch 1, 2 of 2 times" in found[0] and "\x1b" not in "".join(found)


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
def test_one_seed_is_enough(tmp_path: Path, seeds: list[int]) -> None:
    def broken(told: Any, train: Any, task: str, epoch: int) -> None:
        train["loss"] = [*[1.0] * (len(seeds) - 1), math.nan]
        train["gradient_norm"] = told["accuracy"] = [1.0] * len(seeds)
        told["accuracy"] = told["loss"] = {name: [0.5] * len(seeds) for name in SETS}

    (line,) = gaps(record(tmp_path / "run", broken, seeds=seeds))
    assert line == "train/loss is NaN first at epoch 1 of a, 4 of 4 times"
