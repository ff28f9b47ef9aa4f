"""A root or an index that is not as it was written is noticed: one clear error, and the other runs go on."""

from __future__ import annotations

import json
import random
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import waterjar
from recording import as_by_another_tool, content, record, root_of, write_root
from waterjar import Recorder, WaterjarError
from waterjar.cli.main import app
from waterjar.run.root import DamagedError
from waterjar.run.stamped import BLANK, pack, stamp, unpack
from waterjar.run.writer import CHECKSUM

BEFORE = Path(__file__).parents[1] / "before"


def interrupted(path: Path, steps: int = 3) -> Path:
    """A run that is open, with all kinds of arrays."""
    try:
        with Recorder(
            path, {"learner": "er", "lr": 0.25}, seeds=[3, 4], eval_sets=["a"], unhashed=["note"]
        ) as recorder:
            for step in range(steps):
                shot = {"features": {"late": [[[[1.0, step]]], [[[0.0, 2.0]]]]}}
                recorder.log(epoch=step, performance={"accuracy": [[0.1, 0.2]]}, train={"loss": [1, 2]}, snapshot=shot)
            recorder.event("note", "so far")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return path


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_flipped_bit_of_an_open_root_is_noticed(tmp_path: Path) -> None:
    path = interrupted(tmp_path / "study" / "run")
    interrupted(tmp_path / "study" / "other")
    good = (path / "zarr.json").read_bytes()
    dice = random.Random(0)
    bits = [
        *range(8 * 60),
        *dice.sample(range(8 * len(good)), 300),
    ]  # the beginning, where the checksum is, and all over
    for bit in bits:
        (path / "zarr.json").write_bytes(flipped(good, bit))
        with pytest.raises(WaterjarError, match=r"is damaged|has schema"):
            waterjar.open_run(path)
        assert waterjar.verify(path).state == "tampered"
    entries = {entry.name: entry.status for entry in waterjar.open_study(tmp_path / "study").entries}
    assert entries == {"run": "damaged", "other": "interrupted"}
    with pytest.raises(WaterjarError, match="is damaged"):
        Recorder(path, {"learner": "er", "lr": 0.25}, seeds=[3, 4], eval_sets=["a"], unhashed=["note"], resume=True)
    (path / "zarr.json").write_bytes(good)
    assert waterjar.verify(path).state == "open"
    with Recorder(path, {"learner": "er", "lr": 0.25}, seeds=[3, 4], eval_sets=["a"], unhashed=["note"], resume=True):
        pass
    assert waterjar.verify(path).state == "sealed"


def test_one_damaged_run_does_not_take_the_study_down(tmp_path: Path) -> None:
    path = interrupted(tmp_path / "study" / "bad")
    record(tmp_path / "study" / "good")
    (path / "zarr.json").write_bytes(flipped((path / "zarr.json").read_bytes(), 8000))
    for command in (["ls", "--json"], ["verify", "--json"]):
        done = CliRunner().invoke(app, [command[0], str(tmp_path / "study"), *command[1:]])
        assert "good" in done.output and "bad" in done.output and not isinstance(done.exception, KeyError | TypeError)
    states = {Path(one["path"]).name: one["state"] for one in json.loads(done.output)}
    assert states == {"bad": "tampered", "good": "sealed"}


@pytest.mark.parametrize(
    ("place", "value"), [("config", b'"\\ud800"'), ("config", b"1e999"), ("", b'"\\ud800"'), ("", b"1e999")]
)
def test_a_forged_root_that_json_cannot_hold_does_not_take_the_study_down(
    tmp_path: Path, place: str, value: bytes
) -> None:
    """Python reads `1e999` and half a pair of surrogates, and can write neither again."""
    path = interrupted(tmp_path / "study" / "bad")
    record(tmp_path / "study" / "good")
    root = root_of(path)
    (root["attributes"]["config"] if place else root["attributes"])["forged"] = "HERE"
    write_root(path, root)
    text = (path / "zarr.json").read_bytes().replace(b'"HERE"', value)
    blank = CHECKSUM + BLANK.encode()
    (path / "zarr.json").write_bytes(stamp(blank + text[len(blank) :], CHECKSUM))
    with pytest.raises(DamagedError, match="is damaged: its zarr.json holds what JSON cannot"):
        waterjar.open_run(path)
    for command in ("ls", "diagnose"):
        done = CliRunner().invoke(app, [command, str(tmp_path / "study"), "--json", "--where", "status != damaged"])
        assert done.exit_code == 0 and "sgd" in done.output


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "config": lambda of: of["config"].update(lr=0.5),
    "seeds": lambda of: of.update(seeds=[3, 5]),
    "data": lambda of: of.update(data_fingerprint="another"),
    "run_id": lambda of: of.update(run_id="0" * 16),
    "cell_id": lambda of: of.update(cell_id="0" * 16),
    "unhashed": lambda of: of["identity"].update(unhashed=["lr"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_run_is_who_its_config_says(tmp_path: Path, what: str) -> None:
    """Also where the checksum was computed anew."""
    root = root_of(interrupted(tmp_path / "run"))
    CHANGES[what](root["attributes"])
    write_root(tmp_path / "run", root)
    with pytest.raises(WaterjarError, match=r"is damaged: its run_id is not that of its config, seeds and data"):
        waterjar.open_run(tmp_path / "run")
    assert waterjar.verify(tmp_path / "run").state == "tampered"


WRONG: dict[str, list[Any]] = {
    "seeds": [[], ["a"], [1.5], [True], None, {}],
    "tasks": [[1], "x", None],
    "eval_sets": [["a"], {"a": "x"}, {"a": None}, {"a": 1}, {"a": -2}],
    "probe_sets": ["a", [1]],
    "classes": [[1], "x"],
    "progress": [
        {},
        {"step": "1"},
        {"step": 1, "epoch": "x"},
        {"step": 1, "total_epoch": None},
        {"step": True},
        {"step": 1, "total_epoch": 10**400},
    ],
    "provenance": [{}, {"sessions": []}, {"sessions": [1]}, []],
    "checks": [[], {"train/loss": "x"}, {"train/loss": [None]}],
    "storage": [[], "x"],
    "status": ["done", None, 1],
    "identity": [None, {}, {"unhashed": None}],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_what_the_root_says_has_the_types_of_the_schema(tmp_path: Path, key: str, value: Any) -> None:
    root = root_of(interrupted(tmp_path / "run", steps=1))
    root["attributes"][key] = value
    write_root(tmp_path / "run", root)
    with pytest.raises(WaterjarError, match=f"is damaged: its zarr.json lacks a valid {key}"):
        waterjar.open_run(tmp_path / "run")
    assert waterjar.verify(tmp_path / "run").state == "tampered"
    assert CliRunner().invoke(app, ["show", str(tmp_path / "run")]).exit_code == 1


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "progress": lambda of: of["progress"].pop("epoch"),
    "progress.total": lambda of: of["progress"].update(total_epoch=10**400),
    "progress.step": lambda of: of["progress"].update(step=2**63),
    "progress.task": lambda of: of["progress"].update(train_task_index=0.5),
    "classes": lambda of: of.pop("classes"),
    "probe_sets": lambda of: of.pop("probe_sets"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_root_is_not_resumed(tmp_path: Path, what: str) -> None:
    path = interrupted(tmp_path / "run")
    root = root_of(path)
    FORGED[what](root["attributes"])
    write_root(path, root)
    before = content(path), (path / "zarr.json").read_bytes()
    with pytest.raises(DamagedError, match=f"is damaged: its zarr.json lacks a valid {what.partition('.')[0]}"):
        Recorder(path, {"learner": "er", "lr": 0.25}, seeds=[3, 4], eval_sets=["a"], unhashed=["note"], resume=True)
    assert (content(path), (path / "zarr.json").read_bytes()) == before


def test_a_root_without_what_makes_it_ours_is_damaged_where_it_was(tmp_path: Path) -> None:
    interrupted(tmp_path / "run")
    (tmp_path / "run" / "zarr.json").write_text("{}")
    with pytest.raises(WaterjarError, match="is damaged: its zarr.json does not say what it is"):
        waterjar.open_run(tmp_path / "run")
    assert waterjar.open_study(tmp_path).entries[0].status == "damaged"


def test_open_runs_of_before_open_and_go_on_and_have_a_checksum_from_then_on(tmp_path: Path) -> None:
    path = interrupted(tmp_path / "run")
    checks = root_of(path)["attributes"]["checks"]
    as_by_another_tool(path, root_of(path))
    root = root_of(path)
    root["attributes"]["checks"] = checks
    (path / "zarr.json").write_text(json.dumps(root))
    assert "checksum" not in root["attributes"] and waterjar.verify(path).state == "open"
    assert waterjar.open_run(path).load("train").loss.shape == (3, 2)
    with Recorder(
        path, {"learner": "er", "lr": 0.25}, seeds=[3, 4], eval_sets=["a"], unhashed=["note"], resume=True
    ) as recorder:
        recorder.log(epoch=3, train={"loss": [1, 2]})
        (path / "zarr.json").write_bytes(flipped((path / "zarr.json").read_bytes(), 9999))
        assert waterjar.verify(path).state == "tampered"
    assert waterjar.verify(path).state == "sealed"


def test_sealed_runs_of_before_open_as_they_did(tmp_path: Path) -> None:
    with tarfile.open(BEFORE / "einstellung_paper.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    for entry in waterjar.open_study(tmp_path).entries:
        assert waterjar.verify(tmp_path / entry.name).state == "sealed"
        assert waterjar.open_run(tmp_path / entry.name)["performance"].accuracy.notnull().any()


def test_flipped_bits_of_the_index_change_nothing(tmp_path: Path) -> None:
    for seed in range(3):
        record(tmp_path / f"run-{seed}", seed=seed, steps=1)
    entries = waterjar.open_study(tmp_path).entries
    index = tmp_path / ".waterjar" / "index.json"
    good = index.read_bytes()
    for bit in random.Random(1).sample(range(8 * len(good)), 300):
        index.write_bytes(flipped(good, bit))
        assert waterjar.open_study(tmp_path).entries == entries
        assert index.read_bytes() == good  # rebuilt


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": "12"},
        {"config": []},
        {"progress": {}},
        {"progress": {"step": 0, "total_epoch": {}}},
        {"progress": {"step": 0, "total_epoch": 10**400}},
        {"status": 3},
        {"root_hash": 4},
        {"name": "x"},
    ],
)
def test_an_index_of_other_types_is_not_believed(tmp_path: Path, change: dict[str, Any]) -> None:
    record(tmp_path / "run", steps=1)
    entries = waterjar.open_study(tmp_path).entries
    index = tmp_path / ".waterjar" / "index.json"
    forged = unpack(index.read_bytes())
    forged["runs"]["run"][1].update(change)
    index.write_bytes(pack({key: value for key, value in forged.items() if key != "checksum"}))
    assert waterjar.open_study(tmp_path).entries == entries


@pytest.mark.parametrize("value", [b'"\\ud800"', b"1e999", b"NaN"])
def test_an_index_that_json_cannot_hold_is_not_believed(tmp_path: Path, value: bytes) -> None:
    record(tmp_path / "run", steps=1)
    entries = waterjar.open_study(tmp_path).entries
    index = tmp_path / ".waterjar" / "index.json"
    forged = unpack(index.read_bytes())
    forged["runs"]["run"][1]["config"]["lr"] = "HERE"
    text, blank = pack(forged).replace(b'"HERE"', value), b'{"checksum":"' + BLANK.encode()
    index.write_bytes(stamp(blank + text[len(blank) :]))
    assert waterjar.open_study(tmp_path).entries == entries


def test_numbers_are_shown_under_the_name_that_the_run_has(tmp_path: Path) -> None:
    """A forged index, with a checksum that holds, reaches no number."""
    record(tmp_path / "run", steps=2)
    waterjar.open_study(tmp_path)
    index = tmp_path / ".waterjar" / "index.json"
    forged = unpack(index.read_bytes())
    forged["runs"]["run"][1]["config"]["learner"] = "forged"
    index.write_bytes(pack({key: value for key, value in forged.items() if key != "checksum"}))
    study = waterjar.open_study(tmp_path)
    assert study.cell_names != study.confirmed().cell_names
    assert [*study.confirmed().cell_names.values()] == ["sgd"]
    done = CliRunner().invoke(app, ["diagnose", str(tmp_path), "--json"])
    assert "forged" not in done.output and '"sgd"' in done.output
    shutil.rmtree(tmp_path / "run")
