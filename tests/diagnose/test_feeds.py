"""What is said of a run is what `diagnose` then measures, passes over, or has no value for."""

from __future__ import annotations

import csv
import io
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import waterjar
from waterjar.cli.main import app
from waterjar.diagnose import registry
from waterjar.diagnose.feeds import Feed, Lack, as_plain, feeds, how_to_record, lines_of, summary
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.run.schema import MEANINGS
from waterjar.run.study import study_at
from waterjar.testing.recorded import small_study

SAMPLES = 16
Snapshot = Callable[[np.random.Generator, int], dict[str, Any]]


def _streams(rng: np.random.Generator, sets: int) -> dict[str, Any]:
    shape = (1, sets, SAMPLES)
    return {"logits": rng.normal(size=(*shape, 3, 2)), "collective_logits": rng.normal(size=(*shape, 2))}


def _routes(rng: np.random.Generator, sets: int) -> dict[str, Any]:
    return {"route_index": rng.integers(0, 2, (1, sets, SAMPLES, 3, 1, 1)).astype(np.int16)}


def record(
    path: Path,
    *,
    tasks: tuple[str, ...] = ("A", "B"),
    sets: Any = None,
    trained: tuple[str, ...] | None = None,
    classes: list[str] | None = ["x", "y"],  # noqa: B006 - never changed
    groups: str = "accuracy features weights labels",
    streams: Snapshot | None = None,
    seeds: tuple[int, ...] = (0,),
    epochs: int = 2,
    first: int = 0,
) -> Path:
    """A small run with the `groups` named."""
    rng = np.random.default_rng(0)
    sets = {task.lower(): task for task in tasks} if sets is None else sets
    size, repeats = len(sets), len(seeds)
    labels = np.tile(np.arange(SAMPLES) % 2, (repeats, size, 1))
    options: dict[str, Any] = {"tasks": list(tasks), "eval_sets": sets, "classes": classes, "seeds": list(seeds)}
    with waterjar.Recorder(path, {"method": "m"}, **options, provenance=False, summary=False) as recorder:
        if "labels" in groups:
            recorder.once("probe_samples", label=labels)
        if "parameters" in groups:
            recorder.once("streams", parameters=[1.0])
        for task in trained or tasks:
            for epoch in range(first, epochs + 1):
                snapshot: dict[str, Any] = {}
                if "features" in groups:
                    snapshot["features"] = {"fc": rng.normal(size=(repeats, size, SAMPLES, 5)) + labels[..., None]}
                if "weights" in groups:
                    snapshot["weights"] = {"w": rng.normal(size=(repeats, 3, 3))}
                if streams is not None:
                    snapshot["streams"] = streams(rng, size)
                share = rng.uniform(0.3, 0.9, (size, repeats))
                given: dict[str, Any] = {"train": {"loss": np.ones(repeats)}}
                given |= {"performance": {name: share for name in ("accuracy", "loss") if name in groups}}
                if "expert" in groups:
                    given["expert"] = {"accuracy": share}
                if "resources" in groups:
                    given["resources"] = {"seconds": 1.0}
                if "examples" in groups:
                    logits = {name: rng.normal(size=(repeats, SAMPLES, 2)) for name in sets}
                    given["examples"] = waterjar.judge_examples(logits, dict.fromkeys(sets, labels[:, 0]))
                recorder.log(train_task=task, epoch=epoch, snapshot=snapshot, **{k: v for k, v in given.items() if v})
    return path


CASES: dict[str, dict[str, Any]] = {
    "all": {"groups": "accuracy features weights labels expert resources examples"},
    "sets of no task": {"sets": ["digits01", "digits23"]},
    "sets by the names of tasks": {"sets": ["A", "B"]},
    "no classes": {"classes": None},
    "one task": {"tasks": ("A",)},
    "one task, its set of none": {"tasks": ("A",), "sets": ["test"]},
    "no labels": {"groups": "accuracy features weights"},
    "weights alone": {"groups": "weights"},
    "features alone": {"groups": "features"},
    "losses": {"groups": "loss features"},
    "nothing": {"groups": ""},
    "a task without a set": {"sets": {"a": "A", "x": -1}},
    "the third task without a set": {"tasks": ("A", "B", "C"), "sets": {"a": "A", "b": "B", "c": -1}},
    "two sets of a task": {"sets": {"a": "A", "a2": "A", "b": "B"}},
    "two seeds": {"seeds": (0, 1)},
    "streams": {"streams": _streams},
    "streams without labels": {"streams": _streams, "groups": "accuracy"},
    "streams of nothing but parameters": {"groups": "accuracy parameters"},
    "routes without weights": {"streams": _routes},
    "the second task never trained": {"trained": ("A",)},
    "the second task trained twice": {"trained": ("B", "A", "B")},
    "one evaluation a task": {"epochs": 0},
    "nothing before training": {"first": 1},
    "nothing before training, of one task": {"first": 1, "tasks": ("A",)},
}


def measured(found: Diagnosis, family: str) -> set[str]:
    """The metrics with a value somewhere."""
    result, there = found.results.get(family), set()
    for name, metric in registry.families()[family].metrics.items() if result is not None else ():
        assert result is not None
        values = [result[key].values.astype(float) for key in (name, metric.scalar) if key in result]
        if any(np.isfinite(one).any() for one in values):
            there.add(name)
    return there


def is_true(path: Path) -> dict[str, Feed]:
    """Compare what is said of a run with what is measured of it alone."""
    said = {one.family: one for one in feeds(waterjar.open_run(path))}
    assert list(said) == list(registry.families())
    found = diagnose(study_at(path))
    for family, one in said.items():
        there = measured(found, family)
        assert one.feeds == bool(there), (family, one, there, found.passed_over.get(family))
        lacking = {name for lack in one.lacks for name in lack.metrics or ()}
        assert not lacking & there, (family, lacking & there)
        assert lacking <= set(registry.families()[family].metrics)
        assert one.feeds or one.lacks
    return said


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_is_true(tmp_path: Path, case: str) -> None:
    is_true(record(tmp_path / "study" / "run", **CASES[case]))


def test_of_a_study_with_everything(tmp_path: Path) -> None:
    small_study(tmp_path / "small", seeds=(1,))
    learner = is_true(tmp_path / "small" / "sequential-1")
    assert all(one.feeds for one in learner.values())
    assert [lack.metrics for lack in learner["rigidity"].lacks] == [()]
    is_true(tmp_path / "small" / "scratch_t2-1")  # the baseline, which is its own


@pytest.mark.parametrize("groups", ["accuracy loss", "accuracy expert"])
def test_chance_is_asked_for_where_it_would_give_a_value(tmp_path: Path, groups: str) -> None:
    """Of one task alone nothing is forgotten, however many classes there are."""
    path = record(tmp_path / "study" / "run", tasks=("A",), classes=None, groups=groups)
    said = is_true(path)["continual"]
    chance = [lack for lack in said.lacks if "chance" in lack.what]
    assert "one task was trained" in said.lacks[0].what
    assert [lack.metrics for lack in chance] == ([("forward_transfer",)] if "expert" in groups else [])
    before = measured(diagnose(study_at(path)), "continual")
    waterjar.open_run(path).annotate(classes=["a", "b"])
    gained = measured(diagnose(study_at(path)), "continual") - before
    assert gained == {name for lack in chance for name in lack.metrics or ()}


def test_an_evaluation_before_training_is_asked_for(tmp_path: Path) -> None:
    said = is_true(record(tmp_path / "late" / "run", first=1))["continual"]
    (lack,) = [one for one in said.lacks if "epoch 0" in one.what]
    assert lack.metrics == ("forward_transfer_gem",)
    assert lack.line.startswith('recorder.log(epoch=0, ..., performance={"accuracy": {"test": value}}) before')
    assert "without forward_transfer_gem: " in summary(waterjar.open_run(tmp_path / "late" / "run"))
    early = record(tmp_path / "early" / "run")
    assert "epoch 0" not in str(is_true(early)["continual"].lacks)
    assert "forward_transfer_gem" in measured(diagnose(study_at(early)), "continual")


def test_a_set_of_no_task_is_given_one_as_its_reason_says(tmp_path: Path) -> None:
    words = MEANINGS["no_eval_set"]
    code, command = words.split("Recorder(")[1].split(")")[0], words.split("waterjar ")[1]
    sets = {"as it is recorded": eval(f"dict({code})")["eval_sets"], "later": ["test_a"]}
    for name, given in sets.items():
        with waterjar.Recorder(tmp_path / name, {}, eval_sets=given, tasks=["a"], summary=False) as recorder:
            recorder.log(epoch=0, performance={"accuracy": {"test_a": 0.5}})
    done = CliRunner().invoke(app, [{"DIR": str(tmp_path / "later")}.get(one, one) for one in command.split()])
    assert done.exit_code == 0, done.output
    assert [waterjar.open_run(tmp_path / name).attributes["eval_sets"] for name in sets] == [{"test_a": 0}] * 2


@pytest.mark.parametrize("sets", [{"held_out": "A"}, {"a": "A", "b c": -1}])
def test_losses_of_one_task_are_named_as_commands_take_them(tmp_path: Path, sets: dict[str, Any]) -> None:
    path = record(tmp_path / "study" / "run", tasks=("A",), sets=sets, classes=None, groups="accuracy loss")
    first = summary(waterjar.open_run(path)).splitlines()[0]
    assert first.startswith("can be measured: continual, by name --metrics ")
    names = shlex.split(first.removesuffix(". To know:"))[-1]
    assert names.split(",")[-1] == "train/loss" and len(names.split(",")) == len(sets) + 1
    done = CliRunner().invoke(app, ["diagnose", str(path.parent), "--only", names, "--csv"])
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == len(sets) + 1 and all(float(row["value"]) > 0 for row in rows), done.output
    two = summary(waterjar.open_run(record(tmp_path / "two", groups="accuracy loss"))).splitlines()[0]
    assert "by name" not in two  # accuracies over tasks are what they are compared by


class TestTheLineChangesIt:
    """What is proposed does what it says: the family is fed then, or the metrics are there."""

    @pytest.mark.parametrize(
        ("case", "family", "told"),
        [
            ("sets of no task", "continual", {"eval_task": {"digits01": "A", "digits23": "B"}}),
            ("no classes", "continual", {"classes": ["a", "b"]}),
            ("no labels", "geometry", {"probe_labels": np.tile(np.arange(SAMPLES) % 2, (2, 1))}),
            ("no labels", "drift", {"probe_labels": np.tile(np.arange(SAMPLES) % 2, (2, 1))}),
            ("a task without a set", "continual", {"eval_task": {"x": "B"}}),
            ("one task, its set of none", "continual", {"eval_task": {"test": "A"}}),
        ],
    )
    def test_annotations(self, tmp_path: Path, case: str, family: str, told: dict[str, Any]) -> None:
        path = record(tmp_path / "study" / "run", **CASES[case])
        before = {one.family: one for one in feeds(waterjar.open_run(path))}[family]
        (lack,) = [one for one in before.lacks if one.annotate]
        option = {"eval_task": "--eval-task", "classes": "--classes", "probe_labels": "--probe-labels"}[
            next(iter(told))
        ]
        assert lack.annotate.startswith(option)
        was = measured(diagnose(study_at(path)), family)
        waterjar.open_run(path).annotate(**told)
        after = is_true(path)[family]
        assert after.feeds and lack not in after.lacks
        now = measured(diagnose(study_at(path)), family)
        assert now > was

    def test_code(self, tmp_path: Path) -> None:
        """Lines are run as they stand, over a loop's variables."""
        rng = np.random.default_rng(0)
        loop: dict[str, Any] = {
            "waterjar": waterjar, "activations": rng.random((1, 1, 8, 4)), "labels": np.arange(8)[None, None] % 2,
            "seconds": 1.0, "value": 0.5, "accuracy": 0.5, "loss": 1.0, "logits": rng.random((1, 8, 2)),
            "network": type("Network", (), {"state_dict": lambda self: {"w": rng.random((2, 2))}})(),
        }  # fmt: skip
        lines = [how_to_record(group) for group in ("features", "probe_samples", "resources", "weights", "performance")]
        lines += [how_to_record(need) for need in ("expert/accuracy", "train/gradient_norm", "probes/sharpness")]
        lines += [how_to_record("examples").replace("labels})", "labels[0]})"), how_to_record("resources/images")]
        options = {"eval_sets": {"test": 0}, "provenance": False, "summary": False}
        with waterjar.Recorder(tmp_path / "run", {}, **options) as recorder:
            for line in lines:
                exec(line.replace("...", "epoch=recorder.last_step + 1"), {**loop, "recorder": recorder})
        groups = set(waterjar.open_run(tmp_path / "run").groups)
        assert {"features/fc1", "weights", "probe_samples", "resources", "performance", "expert", "examples"} <= groups
        assert {"train", "probes/sharpness"} <= groups


class TestAtTheEnd:
    def test_a_loop_is_told_once_and_then_in_a_word(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from waterjar.run import closing

        monkeypatch.setattr(closing, "_told", [])
        paths = [tmp_path / name for name in ("one", "two\x1b[31m")]
        state = np.random.get_state()[1].tolist()  # type: ignore[index, union-attr] # noqa: NPY002 - of the loop
        for path in paths:
            with waterjar.Recorder(path, {}, eval_sets=["a"], tasks=["A", "B"]) as recorder:
                recorder.log(epoch=0, train_task="A", performance={"accuracy": [0.5]})
        out, err = capsys.readouterr()
        lines = err.splitlines()
        assert out == "" and lines[0].startswith(
            f"{paths[0]}: sealed; can be measured: what it recorded (performance/accuracy). To know:"
        )
        assert any("continual: no eval set belongs to a task" in line and "--eval-task a=A" in line for line in lines)
        assert lines[-1].endswith("sealed; as the run before") and "\\x1b" in lines[-1] and "\x1b" not in err
        assert len(lines) <= 12 and max(map(len, lines)) < 400
        assert np.random.get_state()[1].tolist() == state  # type: ignore[index, union-attr] # noqa: NPY002
        assert {waterjar.verify(path).state for path in paths} == {"sealed"}

    def test_returns_alone_are_what_learners_are_compared_by(self, tmp_path: Path) -> None:
        from waterjar.diagnose.feeds import summary

        with waterjar.Recorder(tmp_path / "run", {}, summary=False) as recorder:
            recorder.log(epoch=0, monitor={"return": 1.0}, train={"loss": 2.0})
        first = summary(waterjar.open_run(tmp_path / "run")).splitlines()[0]
        assert first == "can be measured: what it recorded (monitor/return, train/loss). To know:"

    @pytest.mark.parametrize("options", [{"summary": False}, {"source": True}])
    def test_silence(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any]) -> None:
        path = record(tmp_path / "first")
        if "source" in options:
            options = {"source": waterjar.open_run(path), "tasks": ["A", "B"]}
        with waterjar.Recorder(tmp_path / "run", {"probe": "p"}, seeds=[0], **options) as recorder:
            recorder.log(epoch=0, train_task="A" if "source" in options else None, probes={"p": 1.0})
        assert capsys.readouterr() == ("", "")

    @pytest.mark.parametrize("error", [KeyError("x"), OSError("x"), WaterjarError("x"), RecursionError("x")])
    def test_it_never_makes_close_fail(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        def fail(run: object) -> str:
            raise error

        monkeypatch.setattr("waterjar.diagnose.feeds.summary", fail)
        with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": [0.5]})
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and "sealed; " in told and "x" in told
        assert waterjar.verify(tmp_path / "run").state == "sealed"

    def test_recording_pays_at_the_end_alone(self, tmp_path: Path) -> None:
        code = f"""
import sys, waterjar
recorder = waterjar.Recorder({str(tmp_path / "run")!r}, {{}}, eval_sets=["a"])
recorder.log(epoch=0, performance={{"accuracy": [0.5]}})
assert not any(name.startswith("waterjar.diagnose") for name in sys.modules)
sys.stderr.close()
recorder.close()
assert not {{"torch", "matplotlib"}} & set(sys.modules)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_family_without_a_rule_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from dataclasses import replace

    known = dict(registry.families())
    known["cost"] = replace(known["cost"], feeds=None)
    monkeypatch.setattr(registry, "families", lambda: known)
    (cost,) = [one for one in feeds(waterjar.open_run(record(tmp_path / "run"))) if one.family == "cost"]
    line = 'recorder.log(..., resources={"seconds": seconds})'
    assert cost.lacks == (Lack("no resources", line),) and not cost.feeds


def test_settings_that_a_study_declares_count(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "study", {"analysis": {"settings": {"continual": {"metric_type": "loss"}}}})
    path = record(tmp_path / "study" / "run", groups="loss", classes=None)
    said = is_true(path)["continual"]
    assert said.feeds and not [one for one in said.lacks if "chance" in one.what]


def test_names_from_files_do_nothing(tmp_path: Path) -> None:
    path = record(tmp_path / "run", sets=["a\x1b[31m; rm -rf", "b"], groups="accuracy")
    run = waterjar.open_run(path)
    assert "\x1b" not in summary(run)
    (continual,) = [one for one in feeds(run) if one.family == "continual"]
    assert all("\x1b" not in line for line in lines_of(continual, path))
    assert "--eval-task 'a" in continual.lacks[0].annotate  # quoted for a shell
    assert {"family", "title", "feeds", "lacks"} == set(as_plain([continual])[0])


def test_rigidity_without_a_control_and_with_sets_of_other_names(tmp_path: Path) -> None:
    def study(name: str, sets: list[str], declared: dict[str, Any]) -> dict[str, Feed]:
        waterjar.create_study(tmp_path / name, {"analysis": {"settings": {"rigidity": declared}}} if declared else {})
        rng = np.random.default_rng(0)
        options = {"eval_sets": sets, "tasks": ["t1", "t2"], "summary": False, "provenance": False}
        with waterjar.Recorder(tmp_path / name / "run", {"method": "m"}, **options) as recorder:
            for task in ("t1", "t2"):
                for epoch in range(3):
                    share = rng.uniform(0.3, 0.9, len(sets))
                    recorder.log(train_task=task, epoch=epoch, performance={"macro_accuracy": share, "accuracy": share})
        return is_true(tmp_path / name / "run")

    usual = ["t2_shortcut_normal", "t2_shortcut_masked", "t2_validation"]
    (rigidity,) = [one for one in study("usual", usual, {}).values() if one.family == "rigidity"]
    assert rigidity.feeds and any("t2_shortcut_clean" in lack.what for lack in rigidity.lacks)
    other = {"normal": "seen", "masked": "hidden", "validation": "held_out"}
    assert study("other", list(other.values()), {"eval_sets": other})["rigidity"].feeds
    assert not study("unnamed", list(other.values()), {})["rigidity"].feeds


def test_training_that_is_not_as_declared_is_told(tmp_path: Path) -> None:
    order = summary(waterjar.open_run(record(tmp_path / "order", trained=("B", "A"))))
    assert "trained in the order B, A, declared as A, B: the recorded order counts" in order
    assert "never trained: B" in summary(waterjar.open_run(record(tmp_path / "never", trained=("A",))))
    assert "trained" not in summary(waterjar.open_run(record(tmp_path / "usual"))).splitlines()[1]
