"""`waterjar annotate`, and what `show` and `verify` tell of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import waterjar
from run.annotated_runs import SAMPLES, labels, record
from waterjar.cli.main import app
from waterjar.errors import WaterjarError
from waterjar.run.annotations import FILE


def run(command: str) -> str:
    result = CliRunner().invoke(app, shlex.split(command))
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.fixture
def study(tmp_path: Path) -> Path:
    for seed in (0, 1):
        record(tmp_path / "study" / f"m-{seed}", whole=False, seed=seed)
    return tmp_path / "study"


def test_a_run_with_all_that_can_be_told(study: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", labels())
    path = study / "m-0"
    out = run(
        f"annotate {path} --eval-task a=A --eval-task b=1 --chance A=0.5 --chance B=0.25 --classes 'x, y' "
        f"--probe-labels {tmp_path / 'labels.npy'} --note 'looked at \x1b[31m'"
    )
    digest = hashlib.sha256((path / FILE).read_bytes()).hexdigest()
    assert digest in out and f"{SAMPLES} labels" in out and "\x1b" not in out
    opened = waterjar.open_run(path)
    assert opened.attributes["eval_sets"] == {"a": 0, "b": 1} and opened.attributes["chance"] == [0.5, 0.25]
    assert opened.attributes["classes"] == ["x", "y"]
    assert opened["probe_samples"].label.values[0].tolist() == labels().tolist()
    told = json.loads(run(f"show {path} --json"))
    assert told["annotations"]["sha256"] == digest and told["annotations"]["eval_task"] == {"a": "A", "b": "B"}
    assert {one["family"]: one["feeds"] for one in told["feeds"]}["geometry"]
    shown = run(f"show {path}")
    assert "annotated.note" in shown and "what it can feed" in shown and "\x1b" not in shown
    (verified,) = json.loads(run(f"verify {path} --json"))
    assert verified["state"] == "sealed" and verified["annotations"]["sha256"] == digest and verified["extra"] == []
    assert "annotated, not sealed" in run(f"verify {path}")


def test_a_study_and_back(study: Path) -> None:
    run(f"annotate {study} --chance 0.5 --note all")
    assert [one.attributes["chance"] for one in waterjar.open_study(study)] == [0.5, 0.5]
    assert json.loads(run(f"annotate {study} --remove chance --json"))["entries"] == {"note": "all"}
    assert json.loads(run(f"annotate {study} --remove all --json")) == {
        "path": str(study), "entries": {}, "digest": None
    }  # fmt: skip
    assert json.loads(run(f"verify {study} --json"))[0]["annotations"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "nothing to annotate: give at least one of --eval-task"),
        ("--eval-task a", "--eval-task a: expected NAME=VALUE"),
        ("--eval-task aa=A", "eval_set 'aa' is unknown: did you mean 'a'"),
        ("--chance tenth", "--chance tenth: expected a number"),
        ("--chance 10", r"chance=10: expected an accuracy in \[0, 1\)"),
        (
            "--probe-labels none.npy",
            "--probe-labels none.npy: there is no such file; expected a .npy file of whole numbers",
        ),
        ("--remove chances", "did you mean 'chance'"),
    ],
)
def test_what_is_wrong_is_one_sentence(study: Path, options: str, words: str) -> None:
    with pytest.raises(WaterjarError, match=words):
        run(f"annotate {study / 'm-0'} {options}")
    assert not (study / "m-0" / FILE).exists()


def test_pickles_are_not_opened(study: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(WaterjarError, match="expected a .npy file of whole numbers"):
        run(f"annotate {study / 'm-0'} --probe-labels {tmp_path / 'labels.npy'}")


def test_damage_is_told_and_can_be_taken_away(study: Path) -> None:
    run(f"annotate {study / 'm-0'} --chance 0.5")
    (study / "m-0" / FILE).write_bytes(b"{}")
    verified = CliRunner().invoke(app, ["verify", str(study), "--json"])  # its seal holds all the same
    assert verified.exit_code == 1 and "annotations.json is damaged" in verified.output
    assert {one["state"] for one in json.loads(verified.output)} == {"sealed"}
    with pytest.raises(WaterjarError, match="annotations.json is damaged"):
        run(f"show {study / 'm-0'}")
    assert "has no annotations any more" in run(f"annotate {study / 'm-0'} --remove all")
    assert "m-0" in run(f"show {study / 'm-0'}")


def _folder(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "x").touch()


def _pipe(place: Path) -> None:
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)


@pytest.mark.parametrize(("make", "words"), [(_folder, "Is a directory"), (_pipe, "it is not a regular file")])
@pytest.mark.parametrize("of", ["m-0", ""])
def test_what_is_no_file_is_one_error_and_is_taken_away(
    study: Path, make: Callable[[Path], None], words: str, of: str
) -> None:
    make(study / of / FILE)
    place = study / of
    said = rf"annotations.json is damaged: {words}. 'waterjar annotate {place} --remove all' takes it away$"
    for command in (f"show {study / 'm-0'}", f"diagnose {study / 'm-0'}", f"annotate {place} --chance 0.5"):
        with pytest.raises(WaterjarError, match=said):
            run(command)
    verified = CliRunner().invoke(app, ["verify", str(study), "--json"])
    assert {one["state"] for one in json.loads(verified.output)} == {"sealed"} and verified.exit_code == 1
    assert "has no annotations any more" in run(f"annotate {place} --remove all")
    assert not (study / of / FILE).exists() and "m-0" in run(f"show {study / 'm-0'}")


def test_a_report_goes_on_with_the_other_runs(study: Path) -> None:
    pytest.importorskip("matplotlib")
    run(f"annotate {study / 'm-0'} --chance 0.5")
    (study / "m-0" / FILE).write_bytes(b"{}")
    run(f"report {study} --format markdown --out {study / 'report.md'}")
    page = (study / "report.md").read_text()
    assert "1 run left out for annotations that cannot be read (m-0)" in page and "1 run: " in page
    assert "m-0 (misannotated)" in page and "damaged)" not in page


def test_nothing_is_made_where_there_is_no_study(tmp_path: Path) -> None:
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(WaterjarError):
            run(f"annotate {place} --chance 0.5")
        assert not (place / FILE).exists()


def test_damaged_annotations_take_their_run_alone(study: Path) -> None:
    waterjar.open_study(study).annotate(eval_task={"a": "A", "b": "B"}, classes=["x", "y"])
    (study / "m-1" / FILE).write_text("{}")
    said = "m-1 is left out: .*m-1/.waterjar/annotations.json is damaged"
    table = waterjar.summary(study, "ACC", numbers=True)
    assert table["m"]["n"].tolist() == [1]
    for command in ("diagnose {} --only ACC", "compare {} --metrics ACC --no-figures"):
        assert re.search(said, " ".join(run(command.format(study)).split())), command
    result = CliRunner().invoke(app, ["verify", str(study)])
    assert result.exit_code == 1 and "annotations.json is damaged" in result.output
    listed = run(f"ls {study}")
    assert "misannotated" in listed and "annotations.json is damaged" in listed
    (study / "m-0" / FILE).write_text("{}")
    with pytest.raises(WaterjarError, match=r"m-0 is left out.*\nm-1 is left out"):
        run(f"diagnose {study}")
