from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import waterjar
from waterjar import Recorder, WaterjarError

HEADER = "method,seed,epoch_eff,split,acc,top5,loss\n"
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
        ("method,seed,epoch,split,acc\n", r"line 1: column 'epoch' is unknown: did you mean 'epoch_eff'"),
        ("method,seed,split,acc\n", r"line 1: columns .* each of"),
        (HEADER + 'a,1,0,"t1_all,0.5,,\n', "is not a CSV file"),
    ],
)
def test_errors_name_the_line_and_write_nothing(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        read(tmp_path, text)
    assert not (tmp_path / "out").exists()


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


def test_out_keeps_what_was_known_when_the_last_task_began(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {"learner": "er"}, eval_sets=["t1_all"], tasks=2, seeds=[4, 5]) as recorder:
        for task, epoch, value in ((0, 0, 0.1), (0, 1, 0.2), (1, 0, 0.3), (1, 1, 0.4)):
            recorder.log(train_task=task, epoch=epoch, performance={"accuracy": [[value, value]]})
    lines = waterjar.to_csv(waterjar.open_run(tmp_path / "run"), tmp_path / "out.csv").read_text().splitlines()
    assert lines[1:] == ["er,4,0.0,t1_all,0.3", "er,4,1.0,t1_all,0.4", "er,5,0.0,t1_all,0.3", "er,5,1.0,t1_all,0.4"]


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
