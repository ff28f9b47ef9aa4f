"""What is annotated stands where it would if it had been recorded, to the bit; what was recorded stays."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from run.annotated_runs import CLASSES, SAMPLES, TASKS, files_of, labels, record
from waterjar.errors import WaterjarError
from waterjar.run.annotations import FILE, annotations_of, read_annotations
from waterjar.run.root import DamagedError


@pytest.fixture
def bare(tmp_path: Path) -> waterjar.Run:
    return waterjar.open_run(record(tmp_path / "study" / "bare", whole=False))


class TestLikeRecorded:
    def test_every_array_and_label_is_the_same(self, tmp_path: Path, bare: waterjar.Run) -> None:
        whole = waterjar.open_run(record(tmp_path / "whole", whole=True))
        before = files_of(bare.path)
        bare.annotate(eval_task={"a": "A", "b": 1}, classes=CLASSES, probe_labels=labels())
        for run in (bare, waterjar.open_run(bare.path)):
            assert run.groups == whole.groups and run.nodes.keys() == whole.nodes.keys()
            for group in whole.groups:
                assert run.load(group).identical(whole.load(group))
                assert run[group].identical(whole[group])  # read lazily
            for key in ("eval_sets", "classes", "tasks"):
                assert run.attributes[key] == whole.attributes[key]
            assert run.array("performance/eval_task", [(1, 2)]).tolist() == [1]
        assert files_of(bare.path) == before and waterjar.verify(bare.path).state == "sealed"
        assert bare.recorded.attributes["eval_sets"] == {"a": -1, "b": -1}
        assert "probe_samples" not in bare.recorded.groups

    def test_a_study_for_all_its_runs_and_the_run_before_it(self, tmp_path: Path, bare: waterjar.Run) -> None:
        record(tmp_path / "study" / "other", whole=False, seed=1)
        study = waterjar.open_study(tmp_path / "study").confirmed()
        study.annotate(eval_task={"a": "A", "b": "B"}, chance=0.25, note="of all")
        assert [run.attributes["eval_sets"] for run in study] == [{"a": 0, "b": 1}] * 2
        run = waterjar.open_run(bare.path).annotate(chance=0.5)
        assert (run.attributes["chance"], run.attributes["eval_sets"]["b"]) == (0.5, 1)
        own, above = read_annotations(bare.path), read_annotations(tmp_path / "study")
        assert own is not None and above is not None and run.annotations is not None
        assert run.annotations.digest == f"{own.digest} {above.digest}"
        assert own.digest == hashlib.sha256((bare.path / FILE).read_bytes()).hexdigest()
        assert run.annotations.entries["note"] == "of all"

    def test_sets_that_a_task_is_named_like(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["B", "extra"], tasks=TASKS, summary=False) as recorder:
            recorder.log(epoch=0, train_task="A", performance={"accuracy": {"B": 0.5, "extra": 0.5}})
        run = waterjar.open_run(tmp_path / "run")
        assert run.attributes["eval_sets"] == {"B": 1, "extra": -1}
        assert run["performance"].eval_task.values.tolist() == [1, -1]

    def test_the_mapping_goes_by_name_or_place_and_none_is_none(self, tmp_path: Path) -> None:
        sets = {"A": -1, "x": "B", "y": 0}
        places = {"A": -1, "x": 1, "y": 0}
        for name, told in {"run": sets, "two": places}.items():
            waterjar.Recorder(tmp_path / name, {"lr": 1}, eval_sets=told, tasks=TASKS, summary=False).close()
        assert len({waterjar.open_run(tmp_path / name).run_id for name in ("run", "two")}) == 1
        for one in ("run", "two"):
            assert waterjar.open_run(tmp_path / one).attributes["eval_sets"] == {"A": -1, "x": 1, "y": 0}
        with pytest.raises(WaterjarError, match=r"eval_sets\['x'\]: task 'digits' is unknown: did you mean 'digits1'"):
            waterjar.Recorder(tmp_path / "three", {}, eval_sets={"x": "digits"}, tasks=["digits1", "other"])


def test_a_run_that_was_begun_before_goes_on_as_it_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"tasks": ["a", "b"], "provenance": False, "summary": False}
    recorder = waterjar.Recorder(tmp_path / "run", {"lr": 1}, eval_sets={"a": -1, "b": -1}, **options)  # as it was
    recorder.log(epoch=0, train_task="a", performance={"accuracy": [0.5, 0.5]})
    recorder.__exit__(ValueError, ValueError(), None)
    options |= {"eval_sets": ["a", "b"], "resume": True}
    with caplog.at_level(logging.WARNING), waterjar.Recorder(tmp_path / "run", {"lr": 1}, **options) as again:
        assert again.last_step == 0 and again.run_id == recorder.run_id
        again.log(epoch=1, train_task="a", performance={"accuracy": [0.6, 0.5]})
    assert "'waterjar annotate' tells which task" in caplog.text
    assert waterjar.open_run(tmp_path / "run").attributes["eval_sets"] == {"a": -1, "b": -1}
    assert waterjar.verify(tmp_path / "run").state == "sealed"


def test_another_task_than_before_is_another_run_still(tmp_path: Path) -> None:
    options = {"tasks": ["a", "b"], "provenance": False}
    first = waterjar.Recorder(tmp_path / "run", {}, eval_sets={"x": -1}, **options)
    first.log(train_task="a", epoch=1, performance={"accuracy": {"x": 0.5}})
    first.__exit__(ValueError, ValueError(), None)
    with pytest.raises(WaterjarError, match="another run: its eval_sets"):
        waterjar.Recorder(tmp_path / "run", {}, eval_sets={"x": "b"}, resume=True, **options)


class TestChecked:
    def test_classes_that_recorded_labels_do_not_fit(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"], summary=False) as recorder:
            recorder.once("probe_samples", label=[0, 5])
            recorder.log(epoch=0, performance={"accuracy": {"a": 0.5}})
        run = waterjar.open_run(tmp_path / "run")
        with pytest.raises(WaterjarError, match="probe_samples/label has a label 5, and the run 2 classes"):
            run.annotate(classes=["no", "yes"])
        assert run.annotate(classes=list("abcdef")).attributes["classes"] == list("abcdef")

    @pytest.mark.parametrize(
        ("told", "words"),
        [
            ({"eval_task": {"aa": "A"}}, "eval_set 'aa' is unknown: did you mean 'a'"),
            ({"eval_task": {"a": "C"}}, r"eval_task\['a'\]: task 'C' is unknown. Known: 'A', 'B'"),
            ({"eval_task": {"a": 2}}, r"eval_task\['a'\]=2: expected a task from 0 to 1"),
            ({"eval_task": {"a": -1}}, "expected a task; remove="),
            ({"eval_task": ["a"]}, "expected a mapping name of an eval_set"),
            ({"chance": 1.0}, r"chance=1: expected an accuracy in \[0, 1\)"),
            ({"chance": "ten"}, "chance='ten': expected a number"),
            ({"chance": {"A": 0.5}}, "chance lacks task 'B'"),
            ({"chance": {"A": 0.5, "C": 0.5}}, "chance: task 'C' is unknown"),
            ({"classes": ["x", "y", "z"]}, "classes has 3 names, performance/class has 2 classes"),
            ({"classes": ["x", "x"]}, "different, non-empty names"),
            ({"probe_labels": np.zeros((2, 5), int)}, r"of shape \(5,\): expected \(24,\)"),
            ({"probe_labels": np.zeros((3, 24), int)}, r"shape \(3, 24\): expected \(eval_set=2, sample\)"),
            ({"probe_labels": {"a": [0] * 24}}, "probe_labels has those of a: expected those of a, b"),
            ({"probe_labels": {"a": [0] * 24, "c": [0] * 24}}, "eval_set 'c' is unknown"),
            ({"probe_labels": np.zeros((2, 24))}, "type float64: expected whole numbers"),
            ({"note": 3}, "note=3: expected text"),
            ({"remove": "chances"}, "annotation 'chances' is unknown: did you mean 'chance'"),
            ({}, "annotate got nothing"),
        ],
    )
    def test_what_does_not_fit_is_refused_and_nothing_is_written(
        self, bare: waterjar.Run, told: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(WaterjarError, match=words):
            bare.annotate(**told)
        assert bare.annotations is None and not (bare.path / FILE).exists()

    @pytest.mark.parametrize(
        ("told", "words"),
        [
            ({"eval_task": {"a": "B"}}, "recorded that eval set 'a' belongs to task 'A', and not 'B'"),
            ({"classes": ["p", "q"]}, "recorded the classes x, y, and not 'p, q'"),
            ({"probe_labels": 1 - labels()}, "recorded other labels"),
            ({"probe_labels": 2 + labels()}, r"a label [23], and the run 2 classes \(x, y\): expected 0 to 1"),
        ],
    )
    def test_what_was_recorded_is_not_contradicted(self, tmp_path: Path, told: dict[str, Any], words: str) -> None:
        run = waterjar.open_run(record(tmp_path / "run", whole=True))
        with pytest.raises(WaterjarError, match=words):
            run.annotate(**told)
        run.annotate(eval_task={"a": "A"}, classes=CLASSES, probe_labels=labels())  # it says the same

    def test_a_study_is_checked_run_by_run(self, tmp_path: Path, bare: waterjar.Run) -> None:
        record(tmp_path / "study" / "whole", whole=True, seed=1)
        study = waterjar.open_study(tmp_path / "study")
        with pytest.raises(WaterjarError, match="whole has recorded that eval set 'a' belongs to task 'A'"):
            study.annotate(eval_task={"a": "B"})
        with pytest.raises(WaterjarError, match="eval_set 'aa' is unknown"):
            study.annotate(eval_task={"aa": "B"})
        assert annotations_of(bare.path) is None

    def test_labels_of_every_repeat(self, tmp_path: Path) -> None:
        path = tmp_path / "run"
        with waterjar.Recorder(path, {}, seeds=[1, 2], eval_sets=["a"], summary=False) as recorder:
            recorder.log(epoch=0, snapshot={"features": {"fc": np.zeros((2, 1, 3, 2))}})
        each = np.array([[[0, 1, 2]], [[2, 1, 0]]])
        assert (
            waterjar.open_run(path).annotate(probe_labels=each)["probe_samples"].label.values.tolist() == each.tolist()
        )
        same = waterjar.open_run(path).annotate(probe_labels=[0, 1, 1])["probe_samples"].label
        assert same.values.tolist() == [[[0, 1, 1]], [[0, 1, 1]]]


class TestReplacedAndRemoved:
    def test_parts_one_by_one(self, bare: waterjar.Run) -> None:
        bare.annotate(eval_task={"a": "A"}, chance=0.5, note="one")
        bare.annotate(eval_task={"b": "B"}, note="two")
        assert bare.annotations is not None
        assert bare.annotations.entries == {"eval_task": {"a": "A", "b": "B"}, "chance": 0.5, "note": "two"}
        bare.annotate(remove=["chance", "eval_task"], eval_task={"b": "B"})
        assert bare.annotations.entries == {"note": "two", "eval_task": {"b": "B"}}
        bare.annotate(remove="all")
        assert bare.annotations is None and not (bare.path / FILE).exists()
        assert bare.attributes["eval_sets"] == {"a": -1, "b": -1} and bare["performance"].eval_task.values.max() == -1

    def test_damage_is_one_sentence_and_takes_that_run_only(self, tmp_path: Path, bare: waterjar.Run) -> None:
        record(tmp_path / "study" / "other", whole=False, seed=1)
        bare.annotate(chance=0.5)
        (bare.path / FILE).write_text((bare.path / FILE).read_text().replace("0.5", "0.6"))
        with pytest.raises(
            DamagedError, match=r"annotations.json is damaged: its checksum does not hold. 'waterjar ann"
        ):
            waterjar.open_run(bare.path)
        study = waterjar.open_study(tmp_path / "study").confirmed()
        assert {entry.name: entry.status for entry in study.entries} == {"bare": "misannotated", "other": "sealed"}
        assert "Leave it out" not in study.entries[0].fault  # it is its annotations that are to go
        with pytest.raises(WaterjarError, match=r"--remove all' takes it away$"):
            study.load()
        assert len(study.select("status != misannotated").load()) == 1
        waterjar.Run(bare.path, annotated=False).annotate(remove="all")
        study = waterjar.open_study(tmp_path / "study").confirmed()
        assert {entry.status for entry in study.entries} == {"sealed"}

    @pytest.mark.parametrize(
        "entries",
        [{"chance": 2}, {"chance": True}, {"classes": "x"}, {"probe_labels": {"a": [0.5]}}, {"eval_task": {"a": None}}],
    )
    def test_what_nobody_wrote_like_that(self, bare: waterjar.Run, entries: dict[str, Any]) -> None:
        from waterjar.run.annotations import write_annotations

        write_annotations(bare.path, entries)
        with pytest.raises(DamagedError, match=f"damaged: {next(iter(entries))} cannot be that"):
            waterjar.open_run(bare.path)

    def test_a_run_that_a_study_s_annotations_do_not_fit(self, tmp_path: Path, bare: waterjar.Run) -> None:
        waterjar.open_study(tmp_path / "study").annotate(probe_labels=labels())
        with waterjar.Recorder(tmp_path / "study" / "new", {}, eval_sets=["a"], summary=False) as recorder:
            recorder.log(epoch=0, snapshot={"features": {"fc1": np.zeros((1, 1, 3, 2))}})
        with pytest.raises(DamagedError, match="its annotations do not fit: probe_labels of 'a'"):
            waterjar.open_run(tmp_path / "study" / "new")
        assert waterjar.open_run(bare.path).load("probe_samples").label.shape == (1, 2, SAMPLES)


def test_a_copy_of_a_run_that_is_compared_is_the_recorded_one(tmp_path: Path, bare: waterjar.Run) -> None:
    from waterjar.run.sameness import compare_runs

    again = waterjar.open_run(record(tmp_path / "again", whole=False))
    bare.annotate(eval_task={"a": "A"}, probe_labels=labels())
    assert compare_runs(bare, again).verdict == "equal"


def test_a_key_that_no_run_has(tmp_path: Path, bare: waterjar.Run) -> None:
    study = waterjar.open_study(tmp_path / "study")
    with pytest.raises(WaterjarError, match="key 'metod' is unknown: did you mean 'method'"):
        study.select("metod=m")
    assert (len(study.select("method=m")), len(study.select("method=x"))) == (1, 0)


def test_the_file_is_plain_json(bare: waterjar.Run) -> None:
    bare.annotate(eval_task={"a": "A"}, probe_labels=labels())
    told = json.loads((bare.path / FILE).read_text())["annotations"]
    assert told["eval_task"] == {"a": "A"} and told["probe_labels"]["b"] == labels()[1].tolist()
