"""One flipped bit anywhere, a lost file, two swapped ones: verify finds it and says where."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import waterjar
from recording import record, root_of, write_root
from waterjar import Recorder, WaterjarError
from waterjar.run import ledger
from waterjar.run.seal import MANIFEST, ROOT_HASH


def files_of(path: Path) -> list[str]:
    return sorted(f.relative_to(path).as_posix() for f in path.rglob("*") if f.is_file() and f.name != "lock")


def test_sealed_and_open(tmp_path: Path, run_path: Path) -> None:
    found = waterjar.verify(run_path)
    assert found.state == "sealed"
    assert found.problems == []
    assert found.files == len(files_of(run_path)) - 2  # manifest and root hash are not in the manifest
    recorder = Recorder(tmp_path / "open", {})
    assert waterjar.verify(tmp_path / "open").state == "open"
    recorder.close()
    assert waterjar.verify(tmp_path / "open").state == "sealed"


def test_close_returns_the_root_hash_which_sha256sum_confirms(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", {})
    recorder.log(epoch=0, train={"loss": 1})
    root = recorder.close()
    manifest = (tmp_path / "run" / MANIFEST).read_bytes()
    assert root == hashlib.sha256(manifest).hexdigest() == waterjar.open_run(tmp_path / "run").root_hash
    for file in (MANIFEST, ROOT_HASH):
        done = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", file], cwd=tmp_path / "run", check=False)
        assert done.returncode == 0


def test_a_flipped_bit_in_every_file_is_found(tmp_path: Path, run_path: Path) -> None:
    for number, name in enumerate(files_of(run_path)):
        data = bytearray((run_path / name).read_bytes())
        position, bit = (number * 7919) % len(data), number % 8
        data[position] ^= 1 << bit
        (run_path / name).write_bytes(data)
        found = waterjar.verify(run_path)
        assert found.state == "tampered", name
        named = [problem.file for problem in found.problems]
        assert name in named or name == MANIFEST
        data[position] ^= 1 << bit
        (run_path / name).write_bytes(data)
    assert waterjar.verify(run_path).state == "sealed"


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_flipped_bit_is_found(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "flipped"
    if not path.exists():
        record(path)
    name = data.draw(st.sampled_from(files_of(path)))
    original = (path / name).read_bytes()
    bit = data.draw(st.integers(0, 8 * len(original) - 1))
    changed = bytearray(original)
    changed[bit // 8] ^= 1 << (bit % 8)
    try:
        (path / name).write_bytes(changed)
        assert waterjar.verify(path).state == "tampered"
    finally:
        (path / name).write_bytes(original)


def test_the_array_and_chunk_are_named(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    chunk = path / "weights" / "weights" / "c" / "2" / "0" / "0"
    data = chunk.read_bytes()
    chunk.unlink()
    problem = waterjar.verify(path).problems[0]
    assert (problem.kind, problem.array, problem.chunk) == ("missing", "weights/weights", "2/0/0")
    assert str(problem) == "missing: array weights/weights, chunk 2/0/0 (weights/weights/c/2/0/0)"
    chunk.write_bytes(data)
    other = path / "weights" / "weights" / "c" / "3" / "0" / "0"
    swapped = other.read_bytes()
    other.write_bytes(data)
    chunk.write_bytes(swapped)
    assert {(p.kind, p.chunk) for p in waterjar.verify(path).problems} == {("changed", "2/0/0"), ("changed", "3/0/0")}


def test_lost_added_and_linked_files(run_path: Path, tmp_path: Path) -> None:
    node = run_path / "train" / "loss" / "zarr.json"
    text = node.read_bytes()
    node.unlink()
    assert str(waterjar.verify(run_path).problems[0]) == "missing: metadata of train/loss (train/loss/zarr.json)"
    (tmp_path / "elsewhere").write_bytes(text)
    node.symlink_to(tmp_path / "elsewhere")  # same bytes, but outside of the run
    assert waterjar.verify(run_path).problems[0].kind == "missing"
    node.unlink()
    node.write_bytes(text)
    (run_path / "notes.txt").write_text("mine")
    found = waterjar.verify(run_path)
    assert (found.state, found.extra) == ("sealed", ["notes.txt"])
    (run_path / "train" / "loss" / "c" / "9").mkdir()
    (run_path / "train" / "loss" / "c" / "9" / "0").write_bytes(b"x")
    assert [(p.kind, p.chunk) for p in waterjar.verify(run_path).problems] == [("added", "9/0")]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        f"{'0' * 64}  /etc/passwd",
        f"{'0' * 64}  ../other",
        f"{'0' * 64}  a/../../b",
        f"{'0' * 64}  a\0b",
        "é" * 70,
        "0" * 64,
    ],
)
def test_a_hostile_manifest_is_tampered_not_a_crash(run_path: Path, line: str) -> None:
    manifest = run_path / MANIFEST
    manifest.write_text(manifest.read_text() + line + "\n")
    found = waterjar.verify(run_path)
    assert found.state == "tampered"
    manifest.write_bytes(b"\xff\xfe")
    assert "missing or unreadable" in str(waterjar.verify(run_path).problems[0])
    manifest.unlink()
    assert waterjar.verify(run_path).state == "tampered"
    shutil.rmtree(run_path)
    with pytest.raises(WaterjarError, match="is not a run"):
        waterjar.verify(run_path)


def test_killed_between_manifest_and_root_is_still_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from waterjar.run.store import LocalStore

    recorder = Recorder(tmp_path / "run", {})
    recorder.log(epoch=0, train={"loss": 1})

    def die(self: LocalStore, data: bytes, *, sync: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put_root", die)
        with pytest.raises(KeyboardInterrupt):
            recorder.close()
    assert waterjar.verify(tmp_path / "run").state == "open"
    recorder._store.unlock()
    with Recorder(tmp_path / "run", {}, resume=True) as again:
        again.log(epoch=1, train={"loss": 1})
    assert waterjar.verify(tmp_path / "run").state == "sealed"
    assert waterjar.open_run(tmp_path / "run")["train"].loss.shape == (2, 1)


def test_who_recomputes_the_hashes_is_caught_by_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = waterjar.create_study(tmp_path / "study", {"title": "x"})
    path = record(study / "run")
    assert [entry["run"] for entry in ledger.entries(study)] == ["run"]
    assert ledger.last_root(path) == waterjar.open_run(path).root_hash
    monkeypatch.chdir(path)
    assert ledger.last_root(Path()) == ledger.last_root(path)
    assert waterjar.verify(path).state == "sealed"
    chunk = "train/loss/c/0/0"
    (path / chunk).write_bytes((path / chunk).read_bytes() + b"x")
    manifest = (path / MANIFEST).read_text().splitlines()
    forged = [
        f"{hashlib.sha256((path / chunk).read_bytes()).hexdigest()}  {chunk}" if line.endswith(f"  {chunk}") else line
        for line in manifest
    ]
    (path / MANIFEST).write_text("\n".join(forged) + "\n")
    root = hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()
    (path / ROOT_HASH).write_text(f"{root}  {MANIFEST}\n")
    found = waterjar.verify(path)
    assert found.state == "tampered"
    assert f"the root hash is {root}, the ledger has " in found.problems[0].kind


def test_a_sealed_run_made_open_again_is_caught_by_the_ledger(tmp_path: Path) -> None:
    path = record(waterjar.create_study(tmp_path / "study") / "run")
    root = root_of(path)
    root["attributes"]["status"] = "recording"
    write_root(path, root)
    assert waterjar.verify(path).state == "tampered"


def test_a_broken_ledger_is_named_with_its_line(tmp_path: Path) -> None:
    study = waterjar.create_study(tmp_path / "study")
    record(study / "run")
    with (study / ledger.LEDGER).open("a") as file:
        file.write("{broken\n")
    with pytest.raises(WaterjarError, match=r"ledger.jsonl, line 2 is not an entry"):
        waterjar.verify(study / "run")


def test_an_unwritable_ledger_is_one_clear_error(tmp_path: Path) -> None:
    study = waterjar.create_study(tmp_path / "study")
    (study / ledger.LEDGER).mkdir()
    with pytest.raises(WaterjarError, match="is sealed as .* but .*ledger.jsonl could not be written"):
        record(study / "run")


def test_a_sealed_and_changed_run_that_calls_itself_open_is_tampered(run_path: Path) -> None:
    root = root_of(run_path)
    root["attributes"]["status"] = "recording"
    write_root(run_path, root)
    chunk = run_path / "performance" / "accuracy" / "c" / "0" / "0" / "0"
    chunk.write_bytes(bytes(8) + chunk.read_bytes()[8:])
    found = waterjar.verify(str(run_path))
    assert found.state == "tampered"
    assert found.problems[0].array == "performance/accuracy"


def test_signed_and_open_is_a_contradiction(run_path: Path) -> None:
    root = root_of(run_path)
    root["attributes"]["status"] = "interrupted"
    write_root(run_path, root)
    (run_path / f"{MANIFEST}.sig").write_text("x")
    assert "calls itself open" in str(waterjar.verify(run_path).problems[0])


def test_links_on_any_level_and_pipes_do_not_pass(run_path: Path, tmp_path: Path) -> None:
    import os

    (run_path / "train").rename(tmp_path / "elsewhere")
    (run_path / "train").symlink_to(tmp_path / "elsewhere")
    assert waterjar.verify(run_path).state == "tampered"
    (run_path / "train").unlink()
    (tmp_path / "elsewhere").rename(run_path / "train")
    assert waterjar.verify(run_path).state == "sealed"
    chunk = run_path / "train" / "loss" / "c" / "0" / "0"
    chunk.unlink()
    os.mkfifo(chunk)
    assert waterjar.verify(run_path).problems[0].kind == "missing"


def test_roots_that_are_damaged_in_other_ways(run_path: Path) -> None:
    good = root_of(run_path)
    for key in ("run_id", "config", "progress", "seeds"):
        bad = json.loads(json.dumps(good))
        bad["attributes"][key] = None
        (run_path / "zarr.json").write_text(json.dumps(bad))
        with pytest.raises(WaterjarError, match=f"is damaged: its zarr.json lacks a valid {key}"):
            waterjar.open_run(run_path)
        assert waterjar.open_study(run_path.parent).entries[0].status == "damaged"
        assert waterjar.verify(run_path).state == "tampered"
    (run_path / "zarr.json").write_text("[" * 100_000)
    with pytest.raises(WaterjarError, match="is damaged|is not a waterjar run"):
        waterjar.open_run(run_path)
    good["attributes"]["waterjar_schema"] = 7
    (run_path / "zarr.json").write_text(json.dumps(good))
    with pytest.raises(WaterjarError, match="has schema 7"):
        waterjar.verify(run_path)


def test_a_ledger_line_cut_off_by_a_crash_is_written_anew(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    first, second = record(folder / "one", seed=1), record(folder / "two", seed=2)
    file = folder / "ledger.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.find(b"\n") + 40])  # killed while writing the second line
    assert waterjar.verify(first).state == "sealed"
    waterjar.create_study(folder)
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [(line["run"], line["root"]) for line in lines] == [
        (path.name, waterjar.open_run(path).root_hash) for path in (first, second)
    ]
    file.write_bytes(file.read_bytes().rstrip(b"\n"))  # an editor that leaves out the last newline
    record(folder / "three", seed=3)
    assert [json.loads(line)["run"] for line in file.read_bytes().splitlines()] == ["one", "two", "three"]


def test_runs_sealed_without_a_line_are_entered_when_the_study_goes_on(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    path = record(folder / "one", seed=1)
    (folder / "ledger.jsonl").unlink()  # killed between the seal and the line
    (folder / "stray/.waterjar").mkdir(parents=True)
    (folder / "stray/.waterjar/manifest.sha256").write_text("no run")
    waterjar.create_study(folder)
    assert json.loads((folder / "ledger.jsonl").read_text())["root"] == waterjar.open_run(path).root_hash
