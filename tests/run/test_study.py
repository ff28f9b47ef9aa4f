from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import waterjar
from recording import record
from waterjar import Recorder, WaterjarError, missing
from waterjar.cli.main import app
from waterjar.run.identity import identify


def one(path: Path, seeds: list[int], steps: int, config: dict[str, object] | None = None, **more: object) -> Path:
    with Recorder(path, config or {"lr": 1}, seeds=seeds, eval_sets=["a", "b"], provenance=False) as recorder:
        for step in range(steps):
            value = np.add.outer([step, step + 0.5], seeds) / 64
            recorder.log(epoch=step, performance={"accuracy": value, **more}, resources={"seconds": sum(seeds)})
    return path


def test_runs_of_a_cell_are_joined_along_repeat(tmp_path: Path) -> None:
    one(tmp_path / "z", [3], 4)
    one(tmp_path / "y", [1, 2], 4)
    one(tmp_path / "x", [1], 4, {"lr": 2})
    study = waterjar.open_study(tmp_path)
    assert len(study) == 3
    assert sorted(len(entries) for entries in study.cells.values()) == [1, 2]
    joined = study.load()[study.cell_names[waterjar.open_run(tmp_path / "z").cell_id]]
    assert joined.seed.values.tolist() == [1, 2, 3]
    assert joined.directory.values.tolist() == ["y", "y", "z"]
    expected = np.add.outer(np.add.outer(np.arange(4.0), [0, 0.5]), [1, 2, 3]) / 64
    np.testing.assert_array_equal(joined.accuracy.values, expected)
    assert joined.accuracy.dims == ("step", "eval_set", "repeat")
    assert joined.accuracy.attrs["direction"] == "higher"
    assert "accuracy_reason" not in joined
    assert joined.epoch.values.tolist() == [0, 1, 2, 3]
    assert "2 cells" in repr(study)


def test_joining_equals_xarray_concat(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        record(tmp_path / str(seed), seed=seed)
    study = waterjar.open_study(tmp_path)
    for group in ("performance", "train", "features/penultimate", "weights"):
        joined = next(iter(study.load(group).values()))
        parts = [run[group].load() for run in study]
        expected = xr.concat(parts, "repeat", data_vars="minimal", coords="minimal", compat="equals", join="exact")
        expected = expected.assign_coords(repeat=[0, 1, 2])
        xr.testing.assert_equal(joined.drop_vars("directory"), expected)


def test_shorter_runs_are_padded_and_say_so(tmp_path: Path) -> None:
    one(tmp_path / "long", [1], 5)
    one(tmp_path / "short", [2], 3, loss={"a": missing("empty_set"), "b": 1.0})
    joined = next(iter(waterjar.open_study(tmp_path).load().values()))
    meanings = joined.accuracy_reason.attrs["flag_meanings"].split()
    codes = joined.accuracy_reason.sel(eval_set="a").values
    assert [[meanings[c] for c in row] for row in codes] == [["present", "present"]] * 3 + [
        ["present", "run_ended"]
    ] * 2
    assert np.isnan(joined.accuracy.values[3:, :, 1]).all()
    assert not np.isnan(joined.accuracy.values[:, :, 0]).any()
    loss = [[meanings[c] for c in row] for row in joined.loss_reason.sel(eval_set="a").values]
    assert loss == [["not_recorded", "empty_set"]] * 3 + [["not_recorded", "run_ended"]] * 2
    np.testing.assert_array_equal(np.isnan(joined.loss.values), joined.loss_reason.values != 0)


def test_what_a_process_used_stays_with_its_run(tmp_path: Path) -> None:
    one(tmp_path / "p", [1, 2], 2)
    one(tmp_path / "q", [3], 3)
    joined = next(iter(waterjar.open_study(tmp_path).load("resources").values()))
    assert joined.seconds.dims == ("step", "run")
    assert joined.run.values.tolist() == ["p", "q"]
    np.testing.assert_array_equal(joined.seconds.values, [[3, 3], [3, 3], [np.nan, 3]])
    assert joined.seconds_reason.values[2].tolist() == [4, 0]


def test_a_seed_twice_is_an_error(tmp_path: Path) -> None:
    one(tmp_path / "p", [1], 2)
    one(tmp_path / "q", [1], 2)
    with pytest.raises(WaterjarError, match="seed 1 is in p and in q: a cell has each seed once"):
        waterjar.open_study(tmp_path).load()


def test_coordinates_must_agree(tmp_path: Path) -> None:
    one(tmp_path / "p", [1], 2)
    with Recorder(tmp_path / "q", {"lr": 1}, seeds=[2], eval_sets=["a", "b"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": [0.1, 0.2]})
        recorder.log(epoch=7, performance={"accuracy": [0.1, 0.2]})
    with pytest.raises(WaterjarError, match="p trained 1 epoch, q 7 epochs. Of these alone"):
        waterjar.open_study(tmp_path).load()


def test_labels_and_shapes_must_fit(tmp_path: Path) -> None:
    one(tmp_path / "p", [1], 2)
    with Recorder(tmp_path / "q", {"lr": 1}, seeds=[2], eval_sets=["a", "b"]) as recorder:
        recorder.log(epoch=1, step=7, performance={"accuracy": [0.1, 0.2]})
    with pytest.raises(WaterjarError, match="q has step labels that a longer run of its cell lacks"):
        waterjar.open_study(tmp_path).load()
    for name, units in (("s", 3), ("t", 4)):
        with Recorder(tmp_path / "two" / name, {}, seeds=[units]) as recorder:
            recorder.log(epoch=0, train={"loss": 1}, snapshot={"weights": np.zeros(units)})
    with pytest.raises(WaterjarError, match="t: weights has shape"):
        waterjar.open_study(tmp_path / "two").load("weights")


def test_the_index_notices_changes(tmp_path: Path) -> None:
    study = tmp_path / "study"
    with Recorder(study / "p", {"lr": 1}, eval_sets=["a"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 1})
        assert waterjar.open_study(study).entries[0].status == "recording"
        recorder.log(epoch=1, performance={"accuracy": 1})
        assert waterjar.open_study(study).entries[0].progress["step"] == 1
    entry = waterjar.open_study(study).entries[0]
    assert (entry.status, entry.root_hash) == ("sealed", waterjar.open_run(study / "p").root_hash)
    index = study / ".waterjar" / "index.json"
    for text in ("", "{", '{"version": 1, "runs": {"p": {"stamp": 1, "entry": {}}}}', '{"version": 99}', "[]"):
        index.write_text(text)
        assert waterjar.open_study(study).entries == [entry]
    saved = index.stat().st_mtime_ns
    assert waterjar.open_study(study).entries == [entry]
    assert index.stat().st_mtime_ns == saved  # nothing new, nothing written
    assert json.loads(index.read_text())["runs"]["p"][1]["run_id"] == entry.run_id


def test_declaration(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "s", {"kind": "x", "seeds": [1, 2]})
    waterjar.create_study(tmp_path / "s", {"kind": "x", "seeds": [1, 2]})
    assert waterjar.open_study(tmp_path / "s").declaration == {"kind": "x", "seeds": [1, 2]}
    with pytest.raises(WaterjarError, match="declares another study"):
        waterjar.create_study(tmp_path / "s", {"kind": "y"})
    (tmp_path / "s" / "study.yaml").write_text("a: [")
    with pytest.raises(WaterjarError, match="is not YAML: line 1"):
        _ = waterjar.open_study(tmp_path / "s").declaration
    (tmp_path / "s" / "study.yaml").write_text("!!python/object/apply:os.system ['touch hacked']")
    with pytest.raises(WaterjarError, match="os.system is not read"):
        _ = waterjar.open_study(tmp_path / "s").declaration
    (tmp_path / "s" / "study.yaml").write_text("- 1")
    with pytest.raises(WaterjarError, match="is not a YAML mapping, but a list"):
        _ = waterjar.open_study(tmp_path / "s").declaration
    (tmp_path / "s" / "study.yaml").write_text("# nothing yet")
    assert waterjar.open_study(tmp_path / "s").declaration == {}
    assert waterjar.open_study(tmp_path).declaration == {}


def test_runs_by_name_and_what_is_not_there(tmp_path: Path) -> None:
    one(tmp_path / "p", [1], 1)
    study = waterjar.open_study(tmp_path)
    assert study.run("p").run_id == study.run(study.entries[0].run_id).run_id
    with pytest.raises(WaterjarError, match="run 'q' is unknown"):
        study.run("q")
    with pytest.raises(WaterjarError, match="has the group 'attention'"):
        study.load("attention")
    with pytest.raises(WaterjarError, match="is not a directory"):
        waterjar.open_study(tmp_path / "nowhere")
    assert len(study.select(lambda entry: entry.seeds == [2])) == 0
    assert "p" in repr(study.run("p"))


def test_identity() -> None:
    base = {"lr": 0.1, "patch": {"rate": 0.5}}
    run_id, cell_id = identify(base, [1], "data")
    assert identify({**base, "device": "cuda", "workers": 8, "seed": 1}, [1], "data") == (run_id, cell_id)
    assert identify(base, [2], "data")[0] != run_id
    assert identify(base, [2], "data")[1] == cell_id
    for config, data in (({"lr": 0.1, "patch": {"rate": 0.6}}, "data"), (base, "other"), ({"lr": 0.1}, "data")):
        assert identify(config, [1], data)[1] != cell_id
    assert identify({**base, "note": "x"}, [1], "data", unhashed=["note"]) == (run_id, cell_id)
    assert identify({"patch": {"rate": 0.5}, "lr": 0.1}, [1], "data") == (run_id, cell_id)  # order does not matter


def test_other_numerics_are_another_run(tmp_path: Path) -> None:
    paths = {version: tmp_path / f"of_{version}" for version in (1, 2)}
    for version, path in paths.items():
        with Recorder(path, {"lr": 0.1}, seeds=[1], eval_sets=["a"], numerics=version) as recorder:
            recorder.log(epoch=0, performance={"accuracy": {"a": 0.5}})
    for version, path in paths.items():
        run = waterjar.open_run(path)
        assert run.attributes["identity"]["numerics"] == version
        assert (run.run_id, run.attributes["cell_id"]) == identify({"lr": 0.1}, [1], None, numerics=version)
    assert len({waterjar.open_run(path).run_id for path in paths.values()}) == 2


def test_a_damaged_run_shows_and_hides_nothing(tmp_path: Path) -> None:
    one(tmp_path / "p", [1], 2)
    one(tmp_path / "q", [2], 2)
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (tmp_path / "q" / "zarr.json").write_text('{"attributes": ')
    study = waterjar.open_study(tmp_path)
    assert [(entry.name, entry.status) for entry in study.entries] == [("p", "sealed"), ("q", "damaged")]
    with pytest.raises(WaterjarError, match=r"q is damaged: its zarr.json is not JSON .* Leave it out with select"):
        study.load()
    assert next(iter(study.select("status != damaged").load().values())).seed.values.tolist() == [1]
    with pytest.raises(WaterjarError, match="p is a run itself"):
        waterjar.open_study(tmp_path / "p")


@pytest.mark.parametrize("content", ["{", "3", "{}", '"x"', "[1, null]", "[" * 5000 + "]" * 5000, ""])
def test_a_damaged_list_of_runs_costs_nothing(tmp_path: Path, content: str) -> None:
    waterjar.create_study(tmp_path, runs=["b", "a"])
    for name in ("a", "b", "c"):
        one(tmp_path / name, [1], 2, {"lr": name})
    study = waterjar.open_study(tmp_path)
    assert [entry.name for entry in study.entries] == ["b", "a", "c"]
    assert study.declared == ["b", "a"] and study.undeclared == ["c"]
    (tmp_path / ".waterjar/declared.json").write_text(content)
    assert [entry.name for entry in waterjar.open_study(tmp_path).entries] == ["a", "b", "c"]
    (note,) = waterjar.open_study(tmp_path).notes
    assert "declared.json is damaged and ignored, runs come by name: " in note
    for command in ("ls", "diagnose"):
        assert "declared.json is damaged and ignored" in CliRunner().invoke(app, [command, str(tmp_path)]).output
    told = CliRunner().invoke(app, ["ls", str(tmp_path), "--json"])
    assert "declared.json is damaged and ignored" in told.stderr and json.loads(told.stdout)


def test_the_list_of_runs_is_whole_bounded_or_of_before(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path, runs=["b", "a"])
    file = tmp_path / ".waterjar/declared.json"
    good = file.read_bytes()
    study = waterjar.open_study(tmp_path)
    assert (study.declared, study.notes) == (["b", "a"], [])
    file.write_bytes(good.replace(b'"b"', b'"c"'))
    assert study.declared == [] and "its checksum does not hold" in study.notes[0]
    file.write_text('["b", "a"]')  # as earlier versions wrote it
    assert (study.declared, study.notes) == (["b", "a"], [])
    os.truncate(file, 2**33)
    assert study.declared == [] and "at most" in study.notes[0]
    file.unlink()
    assert (study.declared, study.notes) == ([], [])
    os.mkfifo(file)
    assert study.declared == [] and "not a regular file" in study.notes[0]


def test_a_folder_whose_name_is_not_unicode(tmp_path: Path) -> None:
    one(tmp_path / "a", [1], 2, {})
    (tmp_path / "a").rename(tmp_path / os.fsdecode(b"\xff"))
    assert len(waterjar.open_study(tmp_path)) == 1


def test_a_key_that_no_run_has_is_an_error(tmp_path: Path) -> None:
    record(tmp_path / "a")
    study = waterjar.open_study(tmp_path)
    with pytest.raises(waterjar.WaterjarError, match=r"key 'lerner' is unknown: did you mean 'learner'\?"):
        study.select("lerner=sgd")
    assert len(study.select("learner=derpp")) == 0 and len(study.select("learner=sgd")) == 1
