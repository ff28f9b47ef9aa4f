from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import waterjar
from waterjar import Recorder, WaterjarError, missing
from waterjar.run.formats._timeline import MEASURES, SPLITS
from waterjar.run.formats.csv import left_out

HEADER = "method,seed,epoch_eff,split,acc,top5,loss\n"
PLACES = "method,seed,epoch_eff,split,acc,step,task,epoch,total_epoch,eval_task,tasks\n"
GOOD = HEADER + (
    "derpp,42,0,t1_all,0.5,0.9,1.25\n"
    "derpp,42,0,t2_shortcut_normal,0.1,,2.5\n"
    "derpp,42,1.5,t1_all,0.4,0.8,\n"
    "derpp,42,1.5,t2_shortcut_normal,0.30000000000000004,0.7,1e-3\n"
    "sgd,1,0,t1_all,0.25,0.5,3\n"
)


def read(tmp_path: Path, text: str, **options: object) -> waterjar.Study:
    (tmp_path / "in.csv").write_text(text)
    return waterjar.from_csv(tmp_path / "in.csv", tmp_path / "out", **options)


def test_in(tmp_path: Path) -> None:
    study = read(tmp_path, GOOD)
    assert [entry.name for entry in study.entries] == ["derpp-seed42", "sgd-seed1"]
    data = study.run("derpp-seed42")["performance"].squeeze("repeat")
    assert data.effective_epoch.values.tolist() == [0, 1.5]
    assert data.seed.item() == 42
    assert data.eval_task.values.tolist() == [0, 1]
    np.testing.assert_array_equal(data.accuracy.values, [[0.5, 0.1], [0.4, 0.30000000000000004]])
    np.testing.assert_array_equal(data.top5_accuracy.values, [[0.9, np.nan], [0.8, 0.7]])
    np.testing.assert_array_equal(data.loss.values, [[1.25, 2.5], [np.nan, 1e-3]])
    assert data.loss_reason.values[1, 0] == 1
    assert waterjar.verify(study.path / "sgd-seed1").state == "sealed"


def test_in_and_out_again_is_the_same_table(tmp_path: Path) -> None:
    study = read(tmp_path, GOOD)
    out = waterjar.to_csv(study, tmp_path / "out.csv")
    again = waterjar.from_csv(out, tmp_path / "again")
    for name in ("derpp-seed42", "sgd-seed1"):
        left, right = (s.run(name)["performance"].load() for s in (study, again))
        assert left.equals(right)
    second = waterjar.to_csv(again, tmp_path / "second.csv")
    assert second.read_bytes() == out.read_bytes()
    assert waterjar.to_csv(again.run("sgd-seed1"), tmp_path / "one.csv").read_text().count("\n") == 2


@settings(max_examples=20, deadline=None)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_every_float_survives(values: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("csv")
    lines = [f"m,0,{i},t1_all,{value!r}" for i, value in enumerate(values)]
    text = "method,seed,epoch_eff,split,acc\n" + "\n".join(lines) + "\n"
    study = read(folder, text)
    found = study.run("m-seed0")["performance"].accuracy.values.ravel()
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "a,1,0,t1_all,0.5,,\na,1,0,t1_all,0.6,,\n", r"line 3: .* stands already in line 2"),
        (HEADER + "a,1,0,t1_al,0.5,,\n", r"line 2: split 't1_al' is unknown: did you mean 't1_all'"),
        (HEADER + "a,1,0,t1_all,0.5,,\na,1,1,t1_all,o.5,,\n", r"line 3: acc 'o.5' is not a number"),
        (HEADER + "a,1,x,t1_all,0.5,,\n", r"line 2: epoch_eff 'x' is not a number"),
        (HEADER + "a,1,,t1_all,0.5,,\n", r"line 2: epoch_eff '' is not a number from 0 on"),
        (HEADER + "a,1,-1,t1_all,0.5,,\n", r"line 2: epoch_eff '-1' is not a number from 0 on"),
        (HEADER + "a,1.5,0,t1_all,0.5,,\n", r"line 2: seed '1.5' is not a whole number"),
        (HEADER + "a,1,0,t1_all,55,,\n", r"line 2: acc '55' is not a share between 0 and 1"),
        (HEADER + "a,1,0,t1_all,0.5,1.5,\n", r"line 2: top5 '1.5' is not a share"),
        (HEADER + "a,1,0,t1_all,nan,,\n", r"line 2: acc 'nan' is not finite"),
        (HEADER + ",1,0,t1_all,0.5,,\n", r"line 2: method is empty"),
        (HEADER + "a,1,0,t1_all,0.5\n", r"line 2: 5 cells, the header has 7"),
        (HEADER, "has a header and no line below"),
        ("", r"line 1: columns \[\]"),
        ("method,seed,epoch_ef,split,acc\n", r"line 1: column 'epoch_ef' is unknown: did you mean 'epoch_eff'"),
        ("method,seed,epoch,split,acc\n", r"line 1: columns .*: expected each of .*'epoch_eff'"),
        (PLACES + 'a,1,0,x,.5,0,p,0,0,q,"[""p""]"\n', r"line 2: eval_task of split 'x' 'q' is unknown"),
        (PLACES + 'a,1,0,x,.5,0,q,0,0,,"[""p""]"\n', r"line 2 and below: train_task 'q' is unknown"),
        (PLACES + "a,1,0,x,.5,0,p,0,0,,[p\n", r"line 2: tasks '\[p': expected a JSON list of names"),
        (PLACES + "a,1,0,x,.5,0,p,0,0,,[]\n", r"line 2: tasks '\[\]': expected a JSON list of names"),
        (PLACES + "a,1,0,x,.5,0.5,p,0,0,,[]\n", r"line 2: step '0.5' is not a whole number"),
        (
            PLACES + 'a,1,0,x,.5,0,p,1,1,,"[""p""]"\na,1,0,x,.5,1,p,0,0,,\n',
            r"line 2 and below: epoch=0.0 goes backwards",
        ),
        (PLACES + "a,1,0,x,.5,0,p,0,0,,\na,1,0,y,.5,0,p,1,1,,\n", r"line 3: another line .* other epochs"),
        (PLACES + "a,1,0,x,.5,0,p,0,0,,\na,1,0,x,.5,0,p,0,0,,\n", r"line 3: \(0, 'x'\) stands already in line 2"),
        ("method,seed,split,acc\n", r"line 1: columns .* each of"),
        (HEADER + 'a,1,0,"t1_all,0.5,,\n', "is not a CSV file"),
        (HEADER + "\\ud800,1,0,t1_all,0.5,,\n", r"line 2 and below: config.method = '\\ud800' is not Unicode text"),
        (HEADER + "a,9999999999999999999,0,t1_all,0.5,,\n", r"line 2 and below: seeds: 9+ is not a whole number of at"),
        (
            PLACES + 'a,1,0,\\ud800,.5,0,p,0,0,,"[""p""]"\n',
            r"line 2 and below: eval_sets\[0\] = .* is not Unicode text",
        ),
        (PLACES + 'a,1,0,x,.5,0,p,0,0,,"[""p"", ""\\ud800""]"\n', r"line 2 and below: tasks\[1\] = .* is not Unicode"),
        (
            PLACES + 'a,1,0,,.5,0,p,0,0,,"[""p""]"\n',
            r"line 2 and below: eval_sets=\[''\]: expected different, non-empty",
        ),
    ],
)
def test_errors_name_the_line_and_write_nothing(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        read(tmp_path, text)
    assert not (tmp_path / "out").exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.csv").write_text(HEADER + "sgd,1,0,t1_all,0.5,,\nsgd,2,0,t1_all,0.5,,\n")
    real, left = os.write, [20]

    def full(handle: int, data: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(WaterjarError, match="No space left"):
        waterjar.from_csv(tmp_path / "in.csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    assert len(waterjar.from_csv(tmp_path / "in.csv", tmp_path / "out")) == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="could not read"):
        waterjar.from_csv(tmp_path / "none.csv", tmp_path / "out")
    (tmp_path / "latin.csv").write_bytes(HEADER.encode() + b"\xe9,1,0,t1_all,0.5,,\n")
    with pytest.raises(WaterjarError, match="is not a CSV file in UTF-8"):
        waterjar.from_csv(tmp_path / "latin.csv", tmp_path / "out")


def test_own_splits_and_odd_names(tmp_path: Path) -> None:
    text = "method,seed,epoch_eff,split,acc\na/b,1,0,test,0.5\na b,1,0,test,0.25\n"
    study = read(tmp_path, text, splits=["test"])
    assert len(study) == 2
    assert {run.config["method"] for run in study} == {"a/b", "a b"}
    assert all("/" not in entry.name for entry in study.entries)


def test_epochs_of_the_first_task_are_lines_of_their_own(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {"learner": "er"}, eval_sets={"t1_all": 0}, tasks=2, seeds=[4, 5]) as recorder:
        for task, epoch, value in ((0, 0, 0.1), (0, 1, 0.2), (1, 1, 0.4)):
            recorder.log(train_task=task, epoch=epoch, performance={"macro_accuracy": [[value, value]]})
    lines = waterjar.to_csv(waterjar.open_run(tmp_path / "run"), tmp_path / "out.csv").read_text().splitlines()
    assert lines[:4] == [
        "method,seed,epoch_eff,split,acc,macro_acc,step,task,epoch,total_epoch,eval_task,tasks",
        'er,4,0.0,t1_all,,0.1,0,0,0.0,0.0,0,"[""0"", ""1""]"',
        "er,4,0.0,t1_all,,0.2,1,0,1.0,1.0,0,",
        "er,4,1.0,t1_all,,0.4,2,1,1.0,2.0,0,",
    ]
    assert len(lines) == 7


def test_columns_are_added_only_where_they_are_needed(tmp_path: Path) -> None:
    study = read(tmp_path, GOOD)
    assert waterjar.to_csv(study, tmp_path / "x.csv").read_text().splitlines()[0] + "\n" == HEADER
    with Recorder(study.path / "more", {"learner": "er"}, eval_sets={"t2_all_normal": 0}) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})  # its task is not what its name says
    assert waterjar.to_csv(waterjar.open_study(study.path), tmp_path / "y.csv").read_text().startswith(PLACES[:28])
    assert "eval_task" in (tmp_path / "y.csv").read_text()


def test_classes_and_sizes_have_columns_of_their_own(tmp_path: Path) -> None:
    known: dict[str, Any] = {"classes": ["p", "q"], "eval_sizes": {"t1_all": 20}}
    with Recorder(
        tmp_path / "run", {"learner": "er"}, eval_sets={"t1_all": 0}, tasks=["t1", "t2"], **known
    ) as recorder:
        for epoch in (0, 1):
            recorder.log(train_task="t2", epoch=epoch, performance={"accuracy": 0.5})
    out = waterjar.to_csv(waterjar.open_run(tmp_path / "run"), tmp_path / "out.csv")
    assert out.read_text().splitlines() == [
        "method,seed,epoch_eff,split,acc,eval_size,classes",
        'er,0,0.0,t1_all,0.5,20,"[""p"", ""q""]"',
        "er,0,1.0,t1_all,0.5,20,",
    ]
    (run,) = waterjar.from_csv(out, tmp_path / "again")
    assert run.attributes["classes"] == ["p", "q"] and run.attributes["eval_sizes"] == {"t1_all": 20}


KNOWN = "method,seed,epoch_eff,split,acc,eval_size,classes\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a,1,0,t1_all,0.5,2,\na,1,1,t1_all,0.5,3,\n", "line 3: another line of the run has another eval_size"),
        ("a,1,0,t1_all,0.5,2.5,\n", "line 2: eval_size '2.5' is not a whole number"),
        ("a,1,0,t1_all,0.5,-2,\n", "eval_sizes\\['t1_all'\\]=-2: expected a number of samples"),
        ("a,1,0,t1_all,0.5,,p\n", "line 2: classes 'p': expected a JSON list of names"),
        ('a,1,0,t1_all,0.5,,"[""p"", ""p""]"\n', "expected different, non-empty names"),
    ],
)
def test_classes_and_sizes_that_are_none(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        read(tmp_path, KNOWN + lines)
    assert not (tmp_path / "out").exists()


def test_blank_lines_at_the_end(tmp_path: Path) -> None:
    study = read(tmp_path, GOOD + "\n\r\n  \n")
    assert [entry.name for entry in study.entries] == ["derpp-seed42", "sgd-seed1"]
    with pytest.raises(WaterjarError, match="line 3 is blank, and others follow"):
        read(tmp_path / "..", GOOD.replace("1.25\n", "1.25\n\n"))


def test_what_has_no_place_in_it_is_told(tmp_path: Path) -> None:
    with Recorder(tmp_path / "s" / "a", {}, eval_sets=["x"], classes=["p", "q"]) as recorder:
        performance = {"accuracy": 0.5, "class_accuracy": {"x": [0.5, 0.5]}}
        recorder.log(epoch=0, performance=performance, train={"loss": 1.0})
    with Recorder(tmp_path / "s" / "b", {"lr": 1}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
    told = left_out(waterjar.open_study(tmp_path / "s"))
    assert told[:3] == ["class_accuracy (per class)", "group train", "b: it has evaluated nothing"]
    assert "settings, provenance and seals" in told[3] and len(told) == 4


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6).filter(
    lambda name: name != "joint"
)
REASONS = st.sampled_from(["empty_set", "not_recorded", "undefined"]).map(missing)


@st.composite
def recordings(draw: st.DrawFn) -> dict[str, Any]:
    """Whatever a Recorder takes: tasks, splits of any name and task, epochs, seeds, measures, values or reasons."""
    tasks = draw(st.just(["t1", "t2"]) | st.lists(NAMES, min_size=1, max_size=3, unique=True))
    splits = draw(st.lists(st.sampled_from(SPLITS) | NAMES, min_size=1, max_size=3, unique=True))
    sets = {split: draw(st.integers(-1, len(tasks) - 1)) for split in splits}
    measures = draw(st.lists(st.sampled_from(sorted(MEASURES.values())), min_size=1, unique=True))
    seeds = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=2, unique=True))
    steps = []
    for task in draw(st.sampled_from([tasks, tasks[-1:], ["joint"]])):
        epochs = draw(st.lists(st.floats(0, 100, width=32), min_size=1, max_size=3, unique=True).map(sorted))
        for epoch in epochs:
            numbers = {name: st.floats(0, 1 if name != "loss" else None) | st.just(np.nan) for name in measures}
            cells = {name: REASONS | st.lists(one, min_size=len(seeds), max_size=len(seeds))
                     for name, one in numbers.items()}  # fmt: skip
            performance = {name: {split: draw(cells[name]) for split in splits} for name in measures}
            steps.append({"train_task": task, "epoch": epoch, "performance": performance})
    known = {
        "classes": draw(st.none() | st.lists(NAMES, min_size=1, max_size=3, unique=True)),
        "eval_sizes": draw(st.none() | st.dictionaries(st.sampled_from(splits), st.integers(0, 2**40), min_size=1)),
    }
    return {"tasks": tasks, "eval_sets": sets, "seeds": seeds, "steps": steps, "name": draw(NAMES), **known}


@settings(max_examples=25, deadline=None)
@given(drawn=st.lists(recordings(), min_size=1, max_size=2, unique_by=lambda one: one["name"]))
def test_out_and_in_again_is_the_same_performance(
    drawn: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    for number, one in enumerate(drawn):
        kept = {key: one[key] for key in ("tasks", "eval_sets", "seeds", "classes", "eval_sizes")}
        with Recorder(folder / "s" / str(number), {"method": one["name"]}, provenance=False, **kept) as recorder:
            for step in one["steps"]:
                recorder.log(**step)
    study = waterjar.open_study(folder / "s")
    again = waterjar.from_csv(waterjar.to_csv(study, folder / "x.csv"), folder / "again")
    names = study.cell_names
    found = {(run.config["method"], run.seeds[0]): run for run in again}
    assert set(found) == {(names[run.cell_id], seed) for run in study for seed in run.seeds}
    for run in study:
        for repeat, seed in enumerate(run.seeds):
            copy = found[names[run.cell_id], seed]
            for name in ("tasks", "classes", "eval_sizes"):
                assert copy.attributes.get(name) == run.attributes.get(name), name
            assert list(copy.attributes["eval_sets"].items()) == list(run.attributes["eval_sets"].items())
            left, right = run.load("performance").isel(repeat=repeat), copy.load("performance").isel(repeat=0)
            for name in ("step", "train_task", "train_task_index", "epoch", "total_epoch", "effective_epoch"):
                assert left[name].values.tolist() == right[name].values.tolist()
            for name in {*left.data_vars, *right.data_vars} - {name for name in left.variables if "_reason" in name}:
                if str(name).endswith("_reason"):
                    continue
                for data, other in ((left, right), (right, left)):
                    if name not in data:  # nobody recorded a value of it
                        assert np.isnan(other[name]).all() and (other[f"{name}_reason"] == 1).all()
                if name in left and name in right:
                    np.testing.assert_array_equal(left[name].values, right[name].values)
                    np.testing.assert_array_equal(why(left, name), why(right, name))


def why(data: Any, name: Any) -> Any:
    """Codes of reasons; a variable that lacks nothing has none."""
    return data[f"{name}_reason"].values if f"{name}_reason" in data else np.zeros(data[name].shape)


def test_nothing_to_write(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
    with pytest.raises(WaterjarError, match="there is no performance to write"):
        waterjar.to_csv(waterjar.open_run(tmp_path / "run"), tmp_path / "out.csv")


def test_cells_of_one_learner_and_diverged_losses_survive(tmp_path: Path) -> None:
    for lr in (0.1, 0.2):
        with Recorder(tmp_path / "s" / str(lr), {"learner": "er", "lr": lr}, eval_sets=["t1_all"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": lr, "loss": float("inf")})
    study = waterjar.open_study(tmp_path / "s")
    again = waterjar.from_csv(waterjar.to_csv(study, tmp_path / "x.csv"), tmp_path / "again")
    assert {run.config["method"] for run in again} == {"er, lr=0.1", "er, lr=0.2"}
    assert all(run["performance"].loss.values == np.inf for run in again)
    with pytest.raises(WaterjarError, match="are both method 'er', seed 0"):
        waterjar.to_csv(list(study), tmp_path / "y.csv")
    with pytest.raises(WaterjarError, match="could not write"):
        waterjar.to_csv(study, tmp_path / "x.csv" / "where.csv")
    with pytest.raises(WaterjarError, match="splits='t1_all': expected a list"):
        waterjar.from_csv(tmp_path / "x.csv", tmp_path / "z", splits="t1_all")


def test_odd_methods_get_folders_of_their_own(tmp_path: Path) -> None:
    lines = [f"{m},{s},0,t1_all,0.5" for m, s in (("a", -1), ("a-", 1), ("x" * 300, 1), ("1_0", 2))]
    study = read(tmp_path, "method,seed,epoch_eff,split,acc\n" + "\n".join(lines) + "\n")
    assert len(study) == 4
    with pytest.raises(WaterjarError, match="acc '1_0' is not a number"):
        read(tmp_path / "..", "method,seed,epoch_eff,split,acc\na,1,0,t1_all,1_0\n")
