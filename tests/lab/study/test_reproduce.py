"""Training again: an honest run, an edited one, one of another thread count."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from recording import root_of, write_root
from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

import waterjar
from lab.study.in_this_process import InThisProcess
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.lab import study
from waterjar.lab.study.reproduce import chosen, declaration_of, reproduce
from waterjar.run.manifest import root_line
from waterjar.run.store import MANIFEST, ROOT, ROOT_HASH, sha256

pytestmark = pytest.mark.torch

CONTENT: dict[str, Any] = {
    "kind": "einstellung",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "seeds": [1],
    "backbones": [{"name": "small_cnn", "settings": {"width": 4}}],
    "strategies": ["sgd"],
    "scenarios": ["sequential"],
    "tasks": TASKS.model_dump(mode="json"),
    "training": {"epochs_t1": 1, "epochs_t2": 2, "batch_size": 10},
    "resources": {"device": "cpu"},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    content = {key: value for key, value in CONTENT.items() if key != "scenarios"}
    return study.run(study.declare(content), tmp_path_factory.mktemp("made"), executor=InThisProcess())


@pytest.fixture
def copied(finished: waterjar.Study, tmp_path: Path) -> waterjar.Study:
    shutil.copytree(finished.path, tmp_path / "study")
    return waterjar.open_study(tmp_path / "study")


def reseal(run: Path) -> None:
    """What a forger does: all hashes computed anew, of files as they are now."""
    files = [line.partition("  ")[2] for line in (run / MANIFEST).read_text().splitlines()]
    lines = "".join(f"{sha256((run / name).read_bytes())}  {name}\n" for name in files)
    (run / MANIFEST).write_text(lines)
    (run / ROOT_HASH).write_bytes(root_line(sha256(lines.encode())))
    ledger = run.parent / "ledger.jsonl"
    ledger.unlink()


def again(found: waterjar.Study, name: str, out: Path, **changes: Any) -> Any:
    declared = declaration_of(found.path)
    declared = declared.model_copy(update={"resources": declared.resources.model_copy(update=changes)})
    return reproduce([found.run(name)], declared, out, executor=InThisProcess())[name]


def test_an_honest_run(copied: waterjar.Study, tmp_path: Path) -> None:
    for run in copied:
        assert again(copied, run.path.name, tmp_path / "out").verdict == "equal"


def test_an_edited_number(copied: waterjar.Study, tmp_path: Path) -> None:
    run = next(iter(copied))
    chunk = run.path / "performance" / "accuracy" / "c" / "0" / "0" / "0"
    values = np.frombuffer(chunk.read_bytes(), "<f8").copy()
    row = run.nodes["performance/accuracy"]["shape"][1]
    values[row] += 0.001  # of step 1
    chunk.write_bytes(values.tobytes())
    reseal(run.path)
    assert waterjar.verify(run.path).state == "sealed"
    found = again(copied, run.path.name, tmp_path / "out")
    assert found.verdict == "differs" and "differs from step 1, array performance/accuracy" in str(found)


def test_another_version_of_torch_is_named(copied: waterjar.Study, tmp_path: Path) -> None:
    run = next(iter(copied))
    root = root_of(run.path)
    root["attributes"]["provenance"]["sessions"][0]["versions"]["torch"] = "1.0"
    write_root(run.path, root)
    reseal(run.path)
    found = again(copied, run.path.name, tmp_path / "out")
    assert found.verdict == "equal" and "torch: 1.0 then" in str(found)


def test_refused(copied: waterjar.Study, tmp_path: Path) -> None:
    run = next(iter(copied))
    declared = declaration_of(copied.path)
    other = study.declare({**declared.model_dump(mode="json"), "seeds": [7]})
    with pytest.raises(WaterjarError, match="is none of the runs that .*study.yaml declares"):
        reproduce([run], other, tmp_path / "out")
    data = study.declare(
        {**declared.model_dump(mode="json"), "data": {"name": "glyphs", "settings": {**GLYPHS, "test_per_class": 7}}}
    )
    shutil.rmtree(copied.path / ".waterjar" / "data")
    with pytest.raises(WaterjarError, match="the data are not those that"):
        reproduce([run], data, tmp_path / "out")
    before = {entry.name: entry.root_hash for entry in copied.entries}
    for place in (copied.path, copied.path.parent):
        with pytest.raises(WaterjarError, match="holds something else, which training again could overwrite"):
            reproduce([run], declared, place)
    assert {entry.name: entry.root_hash for entry in waterjar.open_study(copied.path).entries} == before
    (tmp_path / "mine").mkdir()
    with waterjar.Recorder(tmp_path / "mine" / "run", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
    with pytest.raises(WaterjarError, match="only what `waterjar run` trained can be made again"):
        declaration_of(tmp_path / "mine")
    told = CliRunner().invoke(app, ["reproduce", str(copied.path)])
    assert told.exit_code and "expected --audit 10%" in str(told.exception)
    told = CliRunner().invoke(app, ["reproduce", str(run.path), "--audit", "10%"])
    assert told.exit_code and "says nothing to a single run" in str(told.exception)
    told = CliRunner().invoke(app, ["reproduce", str(copied.path), "--audit", "0%"])
    assert told.exit_code and "expected a share of the runs" in str(told.exception)


def test_an_audit_draws_the_same_runs_for_everybody(finished: waterjar.Study) -> None:
    runs = list(finished)
    assert chosen(runs, 1.0, 3) == runs
    picks = [[run.path.name for run in chosen(runs, 0.1, seed)] for seed in range(30)]
    assert all(len(pick) == 1 for pick in picks) and len({pick[0] for pick in picks}) == len(runs)
    assert picks == [[run.path.name for run in chosen(runs[::-1], 0.1, seed)] for seed in range(30)]


@pytest.mark.slow
def test_the_command(copied: waterjar.Study) -> None:
    told = CliRunner().invoke(app, ["reproduce", str(copied.path), "--audit", "100%", "--workers", "2", "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert {one["verdict"] for one in found["runs"].values()} == {"equal"} and len(found["runs"]) == len(copied)
    assert [entry.name for entry in waterjar.open_study(copied.path).entries] == [e.name for e in copied.entries]
    run = next(iter(copied)).path
    two = CliRunner().invoke(app, ["reproduce", str(run), "--threads", "2", "--json"])
    one = json.loads(two.stdout)["runs"][run.name]
    assert one["surroundings"]["threads"] == {"then": "1", "now": "2"}  # equal or not, it is said
    assert one["verdict"] in ("equal", "within tolerance")
    assert (run / ROOT).exists()
