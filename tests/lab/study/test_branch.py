"""Twins: a run that goes on from the end of a task of another one, with something changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

from typer.testing import CliRunner

import waterjar
from lab.study.in_this_process import InThisProcess
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.lab import checkpoint, study
from waterjar.lab.study.branch import branch
from waterjar.lab.study.kinds import einstellung

pytestmark = pytest.mark.torch

DOCS = Path(__file__).parents[3] / "docs" / "lab.md"
EINSTELLUNG: dict[str, Any] = {
    "kind": "einstellung",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "seeds": [1, 2, 3],
    "backbones": [{"name": "small_cnn", "settings": {"width": 4}}],
    "strategies": [{"learner": "sgd", "settings": {"lr": 0.05, "momentum": 0.5}}],
    "scenarios": ["sequential"],
    "tasks": TASKS.model_dump(mode="json"),
    "training": {"epochs_t1": 2, "epochs_t2": 3, "batch_size": 8},
    "recording": {"weights": True, "features": ["penultimate"], "examples": True},
    "resources": {"device": "cpu", "checkpoint_frequency": "task", "checkpoint_seconds": 0.01},
}
BINARY: dict[str, Any] = {
    "kind": "binary",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "algorithms": ["sl", {"learner": "sl", "options": ["replay", "l2_init"]}],
    "tasks": {"number": 3},
    "repeats": 2,
    "network": {"name": "mlp", "settings": {"hidden": [12, 8]}},
    "training": {"epochs": 2, "batch_size": 16},
    "recording": {"features": ["penultimate"], "weights": True, "samples": 6},
    "multitask": True,
    "resources": {"device": "cpu", "checkpoint_frequency": "task", "checkpoint_seconds": 0.01},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    for content in (EINSTELLUNG, BINARY):
        study.run(study.declare(content), folder / content["kind"], executor=InThisProcess())
    return folder


@pytest.fixture
def studies(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "studies")
    return tmp_path / "studies"


def run_of(folder: Path, start: str) -> Path:
    return next(one for one in sorted(folder.iterdir()) if one.name.startswith(start))


def numbers(run: waterjar.Run) -> dict[str, Any]:
    """All that is recorded but times, memory and events."""
    there = [key for key, node in run.nodes.items() if node["node_type"] == "array"]
    return {key: run.array(key) for key in there if key.split("/")[0] not in ("resources", "events")}


def prefix(run: waterjar.Run, before: int) -> dict[str, Any]:
    """Of these, what was recorded at steps before one."""
    found = {}
    for key, values in numbers(run).items():
        group, along = key.rpartition("/")[0], run.nodes[key]["dimension_names"][:1]
        if along in (["step"], ["snapshot"]):
            found[key] = values[run.array(f"{group}/{along[0]}") < before]
    return found


@pytest.mark.parametrize(
    ("start", "at", "boundary"),
    [
        ("einstellung/sequential-sgd-small_cnn-2", "t2:0", 3),
        ("binary/sl-mlp", "task_001", 3),
        ("binary/sl+replay+l2_init", "task_002:0", 6),
    ],
)
def test_a_twin_without_a_change_is_the_source(studies: Path, start: str, at: str, boundary: int) -> None:
    kind, _, name = start.partition("/")
    source = waterjar.open_run(run_of(studies / kind, name))
    twin = branch(source.path, at)
    assert not twin.path.exists()
    found = waterjar.open_run(twin.train())
    assert waterjar.verify(found.path).state == "sealed"
    assert found.run_id != source.run_id and found.cell_id != source.cell_id
    assert found.attributes["branch"] == {"run_id": source.run_id, "root_hash": source.root_hash}
    task = at.partition(":")[0]
    assert found.config["branch"] == f"{task}:0 of {source.cell_id[:8]}"
    expected = numbers(source)
    assert expected.keys() == numbers(found).keys()
    for key, values in numbers(found).items():
        np.testing.assert_array_equal(values, expected[key], err_msg=key)
    said = found["events"].message.values.tolist()
    assert said[0] == f"went off from {source.path.name} (root {source.root_hash}) at {task}:0 with no change"
    assert int(found["events"].event_step.values[0]) == boundary - 1
    assert branch(source.path, at).train() == found.path  # it is there: nothing is trained
    assert waterjar.open_run(found.path).root_hash == found.root_hash


@pytest.mark.parametrize(
    ("start", "at", "change", "boundary", "notes"),
    [
        (
            "einstellung/sequential",
            "t2:0",
            "learner=derpp",
            3,
            ["derpp: begins empty, since the source has kept none"],
        ),
        ("einstellung/sequential", "t2:0", "learner_settings.lr=0.5", 3, []),
        ("einstellung/sequential", "t2:0", "shortcut.rate=1.0", 3, []),
        (
            "einstellung/sequential",
            "t2:0",
            "learner=ewc_on",
            3,
            [
                "ewc_on: begins empty, since the source has kept none",
                "what the learner measures at the end of a task was measured of t1 at the branch",
            ],
        ),
        ("binary/sl-mlp", "task_001:0", "options=[l2_init]", 3, []),
        ("binary/sl-mlp", "task_001:0", "training.lr_features=0.5", 3, []),
        (
            "binary/sl+replay",
            "task_001:0",
            "options=[{name: replay, settings: {size: 5}}]",
            3,
            ["replay: begins anew, since it is another one", "l2_init: left behind"],
        ),
        (
            "binary/sl-mlp",
            "task_002:0",
            "training.optimiser=adam",
            6,
            ["optimiser: begins anew, since it is another one"],
        ),
    ],
)
def test_twins_differ_from_the_branch_on(
    studies: Path, start: str, at: str, change: str, boundary: int, notes: list[str]
) -> None:
    kind, _, name = start.partition("/")
    source = waterjar.open_run(run_of(studies / kind, name))
    found = waterjar.open_run(branch(source.path, at, [change]).train())
    before, there = prefix(source, boundary), prefix(found, boundary)
    for key, values in before.items():
        np.testing.assert_array_equal(there[key], values, err_msg=key)
    key = "weights/weights"
    start_of_task = source.array("weights/snapshot").tolist().index(boundary)
    np.testing.assert_array_equal(found.array(key)[start_of_task], source.array(key)[start_of_task])
    assert not np.array_equal(found.array(key)[-1], source.array(key)[-1])
    assert sorted(found["events"].message.values.tolist()[1 : 1 + len(notes)]) == sorted(notes)
    if change == "learner=derpp":
        assert found.config["learner_settings"]["lr"] == 0.05 and found.config["learner_settings"]["momentum"] == 0.5


def test_longer_second_tasks(studies: Path) -> None:
    source = waterjar.open_run(run_of(studies / "einstellung", "sequential"))
    found = waterjar.open_run(branch(source.path, "t2:0", ["training.epochs_t2=5"]).train())
    assert found["performance"].sizes["step"] == source["performance"].sizes["step"] + 2
    for key, values in prefix(found, 7).items():
        np.testing.assert_array_equal(values, numbers(source)[key], err_msg=key)


@pytest.mark.parametrize(
    ("start", "at", "changes", "message"),
    [
        ("einstellung", "t2:0", ["seed=4"], "--set seed=4 would make untrue what was trained before t2:0"),
        ("einstellung", "t2:0", ["backbone=mlp"], "would make untrue .* expected one of learner"),
        ("einstellung", "t2:0", ["training.epochs_t1=9"], "would make untrue"),
        ("einstellung", "t2:0", ["tasks.validation=0.5"], "would make untrue"),
        ("einstellung", "t2:0", ["lerner=derpp"], "did you mean 'learner'"),
        ("einstellung", "t2:0", ["learner=derp"], "did you mean 'derpp'"),
        ("einstellung", "t2:0", ["learner_settings.beta=1"], "beta"),
        ("einstellung", "t2:0", ["learner=joint"], "all tasks at once"),
        ("einstellung", "t2:0", ["learner"], "expected a setting and its value"),
        ("einstellung", "t2:1", [], "expected t2:0, since states are kept between tasks"),
        ("einstellung", "t1:0", [], "nothing was trained before it"),
        ("einstellung", "t3:0", [], "--at: task 't3' is unknown: did you mean"),
        ("binary", "task_001:0", ["training.epochs=9"], "would make untrue"),
        ("binary", "task_001:0", ["data=omniglot"], "would make untrue"),
        ("binary", "task_001:0", ["options=[layer_norm]"], "the network would be another one"),
        ("binary", "task_001:0", ["options=[reply]"], "did you mean 'replay'"),
    ],
)
def test_what_would_make_the_past_untrue_is_refused(
    trained: Path, start: str, at: str, changes: list[str], message: str
) -> None:
    before = sorted((trained / start).rglob("*"))
    with pytest.raises(WaterjarError, match=message):
        branch(run_of(trained / start, "s"), at, changes)
    assert sorted((trained / start).rglob("*")) == before


def test_sources_that_cannot_be_gone_on_with(studies: Path) -> None:
    path = run_of(studies / "einstellung", "sequential")
    twin = branch(path, "t2:0").train()
    with pytest.raises(WaterjarError, match="is a branch itself"):
        branch(twin, "t2:0")
    states = studies / "einstellung" / ".waterjar" / "checkpoints" / path.name
    damaged = bytearray((states / "task_t1.pt").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (states / "task_t1.pt").write_bytes(damaged)
    with pytest.raises(WaterjarError, match=r"task_t1.pt cannot be read"):
        branch(path, "t2:0", ["learner=er"])
    (states / "task_t1.pt").unlink()
    with pytest.raises(WaterjarError, match=r"task_t1.pt is not there: .* resources.checkpoint_frequency: task"):
        branch(path, "t2:0", ["learner=er"])


@pytest.mark.parametrize(
    ("kind", "at", "change"), [("einstellung", "t2:0", "learner=derpp"), ("binary", "task_001:0", "options=[replay]")]
)
def test_a_branch_that_is_stopped_goes_on_to_the_bit(studies: Path, kind: str, at: str, change: str) -> None:
    path = run_of(studies / kind, "s" if kind == "einstellung" else "sl-mlp")
    expected = waterjar.open_run(branch(path, at, [change]).train())
    content = expected.attributes["seal"]["content"]
    shutil.rmtree(expected.path)

    class Stopped(Exception):
        pass

    def stopping(name: str, after: int) -> None:
        """Stop at the so manieth call."""
        calls = iter(range(10_000))
        module, _, function = name.rpartition(".")
        original = getattr(sys.modules[module], function)

        def stop(*arguments: Any, **how: Any) -> Any:
            if next(calls) == after:
                raise Stopped
            return original(*arguments, **how)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
            patch.setattr(name, stop)
            branch(path, at, [change]).train()

    stopping("waterjar.run.branching.stamp", 0)  # the copy is a draft
    assert not expected.path.exists()
    stopping("waterjar.lab.loop.note_once", 0)  # copied, and nothing of its own yet
    assert waterjar.open_run(expected.path).status == "interrupted"
    stopping("waterjar.lab.checkpoint.save", 0)
    found = waterjar.open_run(branch(path, at, [change]).train())
    assert found.path == expected.path
    assert found.attributes["seal"]["content"] == content
    told = found["events"].message.values.tolist()
    assert sum(message.startswith("went off from") for message in told) == 1


@pytest.mark.slow
def test_a_killed_branch_goes_on_to_the_bit(studies: Path) -> None:
    path = run_of(studies / "einstellung", "sequential")
    command = ["branch", str(path), "--at", "t2:0", "--set", "learner=derpp", "--set", "training.epochs_t2=30"]
    twin = branch(path, "t2:0", command[5::2])
    content = waterjar.open_run(twin.train()).attributes["seal"]["content"]
    shutil.rmtree(twin.path)
    kills = 0
    while kills < 5:
        process = subprocess.Popen([sys.executable, "-m", "waterjar", *command], stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not twin.path.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.1 * kills)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break
        kills += 1
    assert kills
    assert subprocess.run([sys.executable, "-m", "waterjar", *command], env=os.environ, check=False).returncode == 0
    assert waterjar.open_run(twin.path).attributes["seal"]["content"] == content


def test_twins_are_compared_in_pairs(studies: Path) -> None:
    folder = studies / "einstellung"
    (documented,) = re.findall(r"^ +waterjar (branch STUDY/RUN .*)$", DOCS.read_text(), re.MULTILINE)
    for path in sorted(folder.glob("sequential-*")):
        words = documented.replace("STUDY/RUN", str(path)).split()
        code = CliRunner().invoke(app, [*words, "--json"])
        assert code.exit_code == 0, code.output
        assert json.loads(code.stdout)["source"] == path.name
    opened = waterjar.open_study(folder)
    assert sorted(opened.cell_names.values()) == ["derpp", "sgd"]
    assert sorted(len(entries) for entries in opened.cells.values()) == [3, 3]
    code = CliRunner().invoke(app, ["compare", str(folder), "--baseline", "sgd", "--json"])
    found = json.loads(code.stdout)["comparisons"]
    rows = [row for row in found if row["group"] == "derpp" and row["metric"] == "patched_accuracy"]
    means = {row["group"]: row["mean"] for row in found if row["metric"] == "patched_accuracy"}
    assert rows[0]["n_compared"] == 3 and rows[0]["n_unmatched"] == 0 and rows[0]["test"].startswith("paired")
    assert rows[0]["difference"] == pytest.approx(means["derpp"] - means["sgd"])


def test_another_learner_keeps_what_it_has_as_well() -> None:
    plain = study.expand(study.declare(EINSTELLUNG))[0].to_plain()
    del plain["method"]
    changed = einstellung.branched(plain, {"learner": "derpp", "learner_settings.alpha": 0.7})
    assert changed.learner_settings["alpha"] == 0.7
    assert {key: changed.learner_settings[key] for key in ("lr", "momentum")} == {"lr": 0.05, "momentum": 0.5}
    back = einstellung.branched(changed.model_dump(mode="json"), {"learner": "sgd"})
    assert back.learner_settings == plain["learner_settings"]


@pytest.mark.parametrize(
    ("keep", "there"), [("task", ["best.pt", "task_t1.pt", "task_t2.pt"]), ("best", ["best.pt"]), ("none", [])]
)
def test_what_is_kept_of_a_complete_run(tmp_path: Path, trained: Path, keep: str, there: list[str]) -> None:
    content = {**EINSTELLUNG, "seeds": [1], "resources": {"device": "cpu"}, "checkpoint_frequency": keep}
    (entry,) = study.run(study.declare(content), tmp_path, executor=InThisProcess()).entries
    states = tmp_path / ".waterjar" / "checkpoints" / entry.name
    assert sorted(file.name for file in states.glob("*")) == there
    same = waterjar.open_run(trained / "einstellung" / entry.name)  # the identity does not hang on it
    assert waterjar.open_run(tmp_path / entry.name).attributes["seal"]["content"] == same.attributes["seal"]["content"]
    if keep == "task":
        found = checkpoint.load(states, "task_t1.pt", entry.run_id)
        assert found is not None
        at = checkpoint.position(states, found)
        assert (at.phase, at.begun, at.epoch, at.batch, at.step) == (1, False, 0, 0, 2)
        with pytest.raises(WaterjarError, match="belongs to run"):
            checkpoint.load(states, "task_t1.pt", "another")
        (states / "task_t1.pt").write_bytes((states / "task_t1.pt").read_bytes()[:-1] + b"x")
        with pytest.raises(WaterjarError, match="cannot be read"):
            checkpoint.load(states, "task_t1.pt", entry.run_id)
