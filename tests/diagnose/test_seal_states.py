"""Bytes that rot under an unchanged size and time: measuring anew notices, and what is believed says since when."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.diagnose import cache, seals
from waterjar.diagnose import study as study_module
from waterjar.diagnose.study import diagnose
from waterjar.run.stamped import BLANK, pack, stamp
from waterjar.run.store import read_file
from waterjar.view.report.model import model_of


@pytest.fixture
def study(tmp_path: Path) -> waterjar.Study:
    for seed in (1, 2):
        einstellung(tmp_path / f"sgd-{seed}", seed=seed)
        einstellung(tmp_path / f"scratch-{seed}", scenario="scratch_t2", seed=seed)
    return waterjar.open_study(tmp_path)


@pytest.fixture
def rot(study: waterjar.Study, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Flip a bit of a file of sgd-1. No test can set back the time of the inode, so fingerprints stay as they were."""
    marks = {entry.name: cache.fingerprint(study.path / entry.name) for entry in study.entries}

    def flip(name: str) -> None:
        file = study.path / "sgd-1" / name
        before, data = file.stat(), bytearray(file.read_bytes())
        data[3] ^= 1
        file.write_bytes(bytes(data))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        for module in (study_module, seals):
            monkeypatch.setattr(module, "fingerprint", lambda run: marks[run.name])

    return flip


CHUNK = "performance/accuracy/c/0/0/0"


def test_fresh_numbers_are_compared_with_the_seal(study: waterjar.Study, rot: Callable[[str], None]) -> None:
    assert diagnose(study).checked == {}
    rot(CHUNK)
    with pytest.raises(WaterjarError, match=f"sgd-1/{CHUNK} is damaged: it is not what was sealed"):
        diagnose(study, only=["rigidity"], fresh=True)
    found = diagnose(study, fresh=True)
    assert found.seals["sgd-1"] == "tampered" and found.checked == {}
    assert "is not what was sealed" in found.passed_over["rigidity"]


def test_a_believed_state_says_since_when(study: waterjar.Study) -> None:
    assert "has changed" in model_of(study).status.text
    found = diagnose(study)
    assert set(found.checked) == {entry.name for entry in study.entries}
    told = model_of(study).status.text
    assert f"Last checked at {min(found.checked.values())}" in told and "had changed" in told


def test_what_is_read_for_something_new_is_noticed(study: waterjar.Study, rot: Callable[[str], None]) -> None:
    """The seal is believed, the result is not there yet: the reader notices, and the seal is looked at again."""
    diagnose(study, only=["cost"])
    rot(CHUNK)
    found = diagnose(study)
    assert found.seals["sgd-1"] == "tampered" and "sgd-1" not in found.checked
    assert diagnose(study).seals["sgd-1"] == "tampered"
    status = model_of(study).status
    assert status.kind == "bad" and "sgd-1" in status.text


def test_verify_renews_what_is_kept(study: waterjar.Study, rot: Callable[[str], None]) -> None:
    diagnose(study)
    rot(CHUNK)
    assert diagnose(study).seals["sgd-1"] == "sealed"  # from the cache, as are the numbers; and it says so
    assert CliRunner().invoke(app, ["verify", str(study.path)]).exit_code == 1
    assert diagnose(study).seals["sgd-1"] == "tampered"


def test_plain_reading_of_a_sealed_run_is_compared_too(study: waterjar.Study, rot: Callable[[str], None]) -> None:
    rot(CHUNK)
    run = waterjar.open_run(study.path / "sgd-1")
    for read in (lambda: run.load("performance"), run["performance"].load, study.load):
        with pytest.raises(WaterjarError, match="is not what was sealed"):
            read()
    assert run.load("resources").seconds.shape[0] == run.last_step + 1


@pytest.mark.parametrize("name", ["zarr.json", ".waterjar/manifest.sha256"])
def test_root_and_manifest_are_part_of_it(study: waterjar.Study, rot: Callable[[str], None], name: str) -> None:
    rot(name)
    with pytest.raises(WaterjarError, match="is damaged|is not what was sealed"):
        waterjar.open_run(study.path / "sgd-1").load("performance")


def test_no_root_hash_is_made_of_a_manifest_that_rotted(study: waterjar.Study, rot: Callable[[str], None]) -> None:
    """What was measured before is still there, and would be shown as made from a run that never was."""
    roots = set(diagnose(study).roots.values())
    rot(".waterjar/manifest.sha256")
    with pytest.raises(WaterjarError, match=r"manifest.sha256 is not what was sealed"):
        _ = waterjar.open_run(study.path / "sgd-1").root_hash
    result = CliRunner().invoke(app, ["diagnose", str(study.path), "--csv"])
    assert isinstance(result.exception, WaterjarError) and "manifest.sha256 is not" in str(result.exception)
    rest = CliRunner().invoke(app, ["diagnose", str(study.path), "--csv", "--where", "status != damaged"])
    assert {line.rpartition(",")[2] for line in rest.stdout.splitlines()[1:]} < roots


def test_states_that_are_kept_have_a_checksum(study: waterjar.Study) -> None:
    diagnose(study, only=["cost"])
    file = study.path / seals.FILE
    file.write_bytes(file.read_bytes().replace(b'"sealed"', b'"tampered"', 1))
    found = diagnose(study, only=["cost"])
    assert set(found.seals.values()) == {"sealed"} and found.checked == {}


@pytest.mark.parametrize(
    "command", [["verify"], ["diagnose", "--fresh"], ["compare"], ["report"], ["export", "--format", "csv"]]
)
def test_a_command_reads_the_root_of_a_run_once(
    study: waterjar.Study, command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (study.path / ".waterjar" / "index.json").unlink()
    read: Counter[str] = Counter()

    def counted(folder: Path, key: str, *limit: int) -> bytes:
        read[folder.name] += key == "zarr.json"
        return read_file(folder, key, *limit)

    for module in [module for name, module in sys.modules.items() if name.startswith("waterjar.")]:
        if getattr(module, "read_file", None) is read_file:
            monkeypatch.setattr(module, "read_file", counted)
    out = ["--out", str(tmp_path_factory.mktemp("out") / "runs.csv")] if command[0] == "export" else []
    assert CliRunner().invoke(app, [*command, str(study.path), *out]).exit_code == 0
    assert {name: read[name] for name in ("sgd-1", "sgd-2", "scratch-1", "scratch-2")} == dict.fromkeys(
        ("sgd-1", "sgd-2", "scratch-1", "scratch-2"), 1
    )


def test_kept_states_that_json_cannot_hold_count_as_none(study: waterjar.Study) -> None:
    diagnose(study, only=["cost"])
    file = study.path / seals.FILE
    forged = pack({"runs": {"HALF": ["", "sealed", ""]}}).replace(b"HALF", b"\\ud800")
    file.write_bytes(stamp(b'{"checksum":"' + BLANK.encode() + forged[21:]))
    done = CliRunner().invoke(app, ["verify", str(study.path)])
    assert done.exit_code == 0 and b"ud800" not in file.read_bytes()


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("target", [CHUNK, "zarr.json"])
def test_a_link_to_itself_is_a_damaged_run_among_others(study: waterjar.Study, target: str, manifest: bool) -> None:
    diagnose(study, only=["cost"])  # states of seals are kept from here on
    if not manifest:
        (study.path / "sgd-1" / ".waterjar" / "manifest.sha256").unlink()
    file = study.path / "sgd-1" / target
    file.unlink()
    file.symlink_to(file.name)
    done = CliRunner().invoke(app, ["verify", str(study.path), "--json"])
    states = {Path(one["path"]).name: one["state"] for one in json.loads(done.output)}
    assert states == {"sgd-1": "tampered", "sgd-2": "sealed", "scratch-1": "sealed", "scratch-2": "sealed"}
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit)
    found = {entry.name: entry.status for entry in waterjar.open_study(study.path).entries}
    assert found["sgd-1"] == ("damaged" if target == "zarr.json" else "sealed") and found["sgd-2"] == "sealed"
    done = CliRunner().invoke(app, ["diagnose", str(study.path), "--json", "--where", "name != 'sgd-1'"])
    assert done.exit_code == 0
