"""Runs of schema 1 open as they did; a copy in schema 2 has the same numbers, to the bit, and names the old run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import waterjar
from recording import record, root_of, without_visits, write_root
from waterjar import Recorder, Variable, WaterjarError
from waterjar.cli.main import app
from waterjar.run.annotations import FILE, read_annotations, write_annotations
from waterjar.run.migrate import migrate, migrate_all
from waterjar.run.root import DamagedError
from waterjar.run.rows import Row
from waterjar.run.schema import REASONS, variables_of
from waterjar.run.store import MANIFEST, LocalStore

sys.path.insert(0, str(Path(__file__).parents[1]))
from before import frozen


def as_schema_1(path: Path) -> Path:
    """An open run as the version before would have left it: without visits, and with the events it had."""
    root = root_of(path)
    root["attributes"]["waterjar_schema"] = 1
    write_root(path, root)
    return path


@pytest.fixture(scope="module", params=["einstellung_seed", "binary_cifar100"])
def old_study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return frozen.unpack(request.param, tmp_path_factory.mktemp("old"))


def test_every_number_comes_over(old_study: Path, tmp_path: Path) -> None:
    roots = {run.path.name: run.root_hash for run in waterjar.open_study(old_study)}
    pairs = list(migrate_all(old_study, tmp_path / "new"))
    assert {old.path.name for old, _, _ in pairs} == set(roots)
    for old, new, is_new in pairs[:4]:
        assert is_new
        assert waterjar.verify(new.path).state == "sealed" and waterjar.verify(old.path).state == "sealed"
        assert new.attributes["migrated_from"] == {"run_id": old.run_id, "root_hash": roots[old.path.name], "schema": 1}
        assert (new.run_id, new.cell_id, new.seeds, new.config) == (old.run_id, old.cell_id, old.seeds, old.config)
        tree = xr.open_datatree(new.path, engine="zarr")
        for group in old.groups:
            before = old.load(group)
            for name, array in before.variables.items():
                moved = "train" if name == "patched_images" else group
                if group == "events" and name in ("step", *waterjar.run.schema.STEP_COORDINATES):
                    continue
                after = tree[moved].to_dataset(inherit=False)
                after = after.sel(step=before.step.values) if name == "patched_images" else after
                np.testing.assert_array_equal(after[name].values, array.values)
                assert after[name].dims == array.dims
                assert (name in after.coords) == (name in before.coords)
        assert new["performance"].visit.values[0] == 0
        if "events/event" in old.nodes:
            assert np.isnan(new.load("events").time.values).all()  # nobody wrote down when
    again = waterjar.open_study(tmp_path / "new")
    assert again.declaration == waterjar.open_study(old_study).declaration
    with pytest.raises(WaterjarError, match="is sealed, of schema 2: expected sealed runs of an earlier one"):
        list(migrate_all(tmp_path / "new", tmp_path / "newer"))


def test_probes_and_streams_of_schema_1(tmp_path: Path) -> None:
    """Made by hand as schema 1 had them: (repeat, moment) with steps beside, streams without their set."""
    moments = Variable(("repeat", "moment"), "x")
    variables = {f"probes/{name}": moments for name in ("sharpness", "sharpness_step", "sharpness_why")}
    recorder = Recorder(tmp_path / "old", {}, eval_sets=["a"], variables=variables, tasks=["x", "y"])
    for step, task in enumerate("xxyx"):
        recorder.log(epoch=step, train_task=task, train={"loss": step, "patched_images": 5.0 if step else np.nan})
    logits = np.random.default_rng(0).random((1, 2, 6, 3))  # (repeat, stream, sample, class)
    routing = np.random.default_rng(1).random((1, 6, 2))
    shot = {
        name: Row(values, None, variable.dims[1:], variable)
        for (name, variable), values in zip(
            variables_of("streams", 1).items(), (logits, logits[:, 0], routing), strict=True
        )
    }
    with recorder._writer.transaction():
        recorder._writer.append("streams", "snapshot", recorder._progress, shot)
    codes = np.array([[0, REASONS.index("never_reached")]], np.uint8)
    recorder.once("probes", sharpness=[[1.5, np.nan]], sharpness_step=[[1, 3]], sharpness_why=codes)
    as_schema_1(tmp_path / "old")
    recorder._writer.attributes["waterjar_schema"] = 1
    recorder.close()
    new = migrate(tmp_path / "old", tmp_path / "copy" / "new")
    found = new["probes/sharpness"]
    assert found.step.values.tolist() == [1, 3] and found.train_task.values.tolist() == ["x", "x"]
    assert found.visit.values.tolist() == [0, 2]
    np.testing.assert_array_equal(found.sharpness.values, [[1.5], [np.nan]])
    assert found.sharpness_reason.values.tolist() == [[0], [REASONS.index("never_reached")]]
    assert new["train"].visit.values.tolist() == [0, 0, 1, 2]
    streams = new["streams"]
    assert streams.logits.dims == ("snapshot", "repeat", "eval_set", "sample", "stream", "class")
    np.testing.assert_array_equal(streams.logits.values[0, 0, 0], np.moveaxis(logits[0], 0, 1))
    np.testing.assert_array_equal(streams.collective_logits.values[0, 0, 0], logits[0, 0])
    np.testing.assert_array_equal(streams.routing.values[0, 0, 0], routing[0])
    assert streams.eval_set.values.tolist() == ["a"]


def test_refused(tmp_path: Path) -> None:
    path = record(tmp_path / "run")
    with pytest.raises(WaterjarError, match="is of schema 2 already: there is nothing to migrate"):
        migrate(path, tmp_path / "new")
    old = frozen.unpack("einstellung_seed", tmp_path)
    run = next(iter(waterjar.open_study(old))).path
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(WaterjarError, match="is not empty: choose a path of its own"):
        migrate(run, tmp_path / "full")
    with pytest.raises(WaterjarError, match="is inside the run .*, which is not written to"):
        migrate(run, run / "new")
    with pytest.raises(WaterjarError, match="is beside the old run, in one study"):
        migrate(run, run.parent / "new")
    assert waterjar.verify(run).state == "sealed"
    chunk = next(file for file in (run / "performance" / "accuracy" / "c").rglob("*") if file.is_file())
    chunk.write_bytes(b"\0" * chunk.stat().st_size)
    with pytest.raises(WaterjarError, match="is tampered: only a sealed run is migrated"):
        migrate(run, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_open_run_of_schema_1_is_read_and_never_resumed(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", {}, eval_sets=["a"])
    recorder.log(epoch=0, performance={"accuracy": 0.5})
    recorder.__exit__(KeyError, KeyError(), None)
    as_schema_1(tmp_path / "run")
    before = root_of(tmp_path / "run")
    assert waterjar.open_run(tmp_path / "run")["performance"].accuracy.values.tolist() == [[[0.5]]]
    with pytest.raises(WaterjarError, match=r"begun by an earlier waterjar \(schema 1, this one writes 2\)"):
        Recorder(tmp_path / "run", {}, eval_sets=["a"], resume=True)
    with pytest.raises(WaterjarError, match="is open: only a sealed run is migrated"):
        migrate(tmp_path / "run", tmp_path / "new")
    assert root_of(tmp_path / "run") == before


def small_study(folder: Path) -> Path:
    """Three sealed runs of schema 1."""
    study = waterjar.create_study(folder, {"name": "small"}, runs=["a", "b", "c"])
    for seed, name in enumerate("abc"):
        without_visits(record(study / name, seed=seed))
    (study / "ledger.jsonl").unlink()  # it has them as they were sealed before
    return study


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("inside", ["", "in", "in/deeper"])
def test_nothing_is_written_into_a_sealed_run(tmp_path: Path, inside: str) -> None:
    study, sealed = small_study(tmp_path / "study"), record(tmp_path / "sealed")
    before = files_below(sealed)
    with pytest.raises(WaterjarError, match=r"is inside the run .*, which is not written to"):
        list(migrate_all(study, sealed / inside))
    assert files_below(sealed) == before and not (sealed / "in").exists()
    (tmp_path / "file").touch()
    with pytest.raises(WaterjarError, match="file is a file: choose another path"):
        list(migrate_all(study, tmp_path / "file"))


def test_annotations_come_along(tmp_path: Path) -> None:
    study = small_study(tmp_path / "study")
    of_run, of_study = write_annotations(study / "b", {"eval_sizes": {"a": 3}}), write_annotations(study, {"x": 1})
    found = {copied.old.path.name: copied.new for copied in migrate_all(study, tmp_path / "new")}
    assert (read_annotations(found["b"].path), read_annotations(tmp_path / "new")) == (of_run, of_study)
    assert (
        read_annotations(found["a"].path) is None
        and found["a"].annotations == of_study
        and waterjar.verify(found["b"].path).state == "sealed"
    )
    (tmp_path / "new" / "b" / FILE).unlink()  # an earlier version left them behind
    list(migrate_all(study, tmp_path / "new"))
    assert read_annotations(tmp_path / "new" / "b") == of_run
    write_annotations(tmp_path / "new" / "b", {"other": 1})
    with pytest.raises(WaterjarError, match=r"new/b/.*annotations.json says something else than .*study/b"):
        list(migrate_all(study, tmp_path / "new"))
    (study / FILE).write_bytes(b"{}")
    with pytest.raises(DamagedError, match=r"annotations.json is damaged"):
        list(migrate_all(study, tmp_path / "newer"))
    assert not (tmp_path / "newer").exists()


class TestGoingOn:
    """A study whose migration was cut off: what is finished stays, what was begun is made anew, the rest is left."""

    @pytest.mark.parametrize(
        ("file", "times"),
        [("zarr.json", 1), ("zarr.json", 6), ("performance/loss/zarr.json", 1), (MANIFEST, 1), ("last", 1)],
    )
    def test_after_a_cut_anywhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, times: int) -> None:
        study = small_study(tmp_path / "study")
        write_annotations(study / "b", {"x": 1})
        count, replace = 0, LocalStore._replace

        def cut(self: LocalStore, target: Path, data: bytes, *, sync: bool) -> None:
            nonlocal count
            key = target.relative_to(self.path).as_posix()
            is_last = key == "zarr.json" and (self.path / MANIFEST).exists()
            count += key == file or (file == "last" and is_last)
            if count == times:
                raise KeyboardInterrupt
            replace(self, target, data, sync=sync)

        copies, new = migrate_all(study, tmp_path / "new"), tmp_path / "new"
        next(copies)
        kept = files_below(new / "a")
        with monkeypatch.context() as patched:
            patched.setattr(LocalStore, "_replace", cut)
            with pytest.raises(KeyboardInterrupt):
                next(copies)
        assert waterjar.open_study(new).notes == []
        if (new / "b" / "zarr.json").exists():
            assert waterjar.open_run(new / "b").status != "sealed"
        found = list(migrate_all(study, new))
        assert [copied.is_new for copied in found] == [False, True, True] and files_below(new / "a") == kept
        assert migrate(study / "b", tmp_path / "alone").root_hash == found[1].new.root_hash
        assert {waterjar.verify(new / name).state for name in "abc"} == {"sealed"}
        assert [read_annotations(new / name) for name in "abc"] == [None, read_annotations(study / "b"), None]
        lines = (new / "ledger.jsonl").read_text().splitlines()
        assert len(lines) == 3
        told = CliRunner().invoke(app, ["migrate", str(study), "--out", str(new)]).output
        assert told.count("there already") == 3 and "wrote" not in told

    def test_what_called_itself_sealed_without_a_seal(self, tmp_path: Path) -> None:
        """So earlier versions left what they had begun."""
        study, new = small_study(tmp_path / "study"), tmp_path / "new"
        list(migrate_all(study, new))
        root = waterjar.open_run(new / "b").root_hash
        (new / "b" / MANIFEST).unlink()
        (new / "b" / ".waterjar" / "root.sha256").unlink()
        assert [copied.is_new for copied in migrate_all(study, new)] == [False, True, False]
        assert waterjar.verify(new / "b").root == root

    def test_what_is_not_its_own_stays(self, tmp_path: Path) -> None:
        study, new = small_study(tmp_path / "study"), tmp_path / "new"
        list(migrate_all(study, new))
        (new / "b" / MANIFEST).unlink()
        for name in ("notes.txt", "performance/c/notes.txt", "performance/accuracy/c/notes", ".waterjar/own.key"):
            (new / "b" / name).parent.mkdir(exist_ok=True)
            (new / "b" / name).write_text("mine")
            before = files_below(new)
            with pytest.raises(WaterjarError, match=f"was not finished, and holds {name}, which is none of it"):
                list(migrate_all(study, new))
            assert files_below(new) == before
            (new / "b" / name).unlink()
        record(tmp_path / "other")
        (new / "c").rename(tmp_path / "away")
        (tmp_path / "other").rename(new / "c")
        before = files_below(new)
        with pytest.raises(WaterjarError, match="c is not empty: choose a path of its own"):
            list(migrate_all(study, new))
        assert files_below(new) == before

    def test_of_another_run_or_changed(self, tmp_path: Path) -> None:
        study, new = small_study(tmp_path / "study"), tmp_path / "new"
        list(migrate_all(study, new))
        (new / "a").rename(tmp_path / "away")
        (new / "b").rename(new / "a")
        with pytest.raises(WaterjarError, match="a is not empty: choose a path of its own"):
            list(migrate_all(study, new))  # a copy, but of b
        (new / "a").rename(new / "b")
        (tmp_path / "away").rename(new / "a")
        chunk = next(file for file in (new / "b" / "performance" / "accuracy" / "c").rglob("*") if file.is_file())
        chunk.write_bytes(b"\0" * chunk.stat().st_size)
        with pytest.raises(WaterjarError, match=r"b is tampered .*accuracy.*Move it away"):
            list(migrate_all(study, new))
        assert waterjar.verify(new / "b").state == "tampered"
