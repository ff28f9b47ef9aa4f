"""The seed's directory layout: what is written, what comes back, and what is said to be lost."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import waterjar
from run.formats.binary_runs import foreign, record
from waterjar.errors import WaterjarError
from waterjar.run.formats.seed import export_seed_layout, import_seed_layout
from waterjar.run.seal import verify

T, R, L, S, H, P = 3, 2, 2, 4, 3, 7


def kept(run: waterjar.Run, group: str, dim: str) -> xr.Dataset:
    """A group of a run without what the layout leaves out: everything at epoch 0."""
    data = run.load(group)
    data = data.isel({dim: np.flatnonzero(data["epoch"].values > 0)})
    return data.drop_vars([n for n in data.variables if str(n).endswith("_reason") and not data[n].values.any()])


def assert_same_run(one: waterjar.Run, two: waterjar.Run) -> None:
    """Everything that both can hold, bit by bit: values, dtypes, coordinates, reasons, identity."""
    for key in ("run_id", "cell_id", "config", "seeds", "tasks", "eval_sets", "probe_sets", "classes", "storage"):
        assert one.attributes[key] == two.attributes[key], key
    assert {*two.groups} - {"events"} == {*one.groups} - {"events"}
    for group in {*one.groups} - {"events"}:
        if group == "probe_samples":
            a, b = one.load(group), two.load(group)
        else:
            dim = "step" if group in ("performance", "train", "expert") else "snapshot"
            a, b = kept(one, group, dim), kept(two, group, dim)
        xr.testing.assert_identical(a, b)
        assert {n: v.dtype for n, v in a.variables.items()} == {n: v.dtype for n, v in b.variables.items()}


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", tasks=T, repeats=R, logged=L, samples=S, units=H)


class TestExport:
    def test_files_shapes_dtypes_and_keys(self, run: waterjar.Run, tmp_path: Path) -> None:
        found = export_seed_layout(run, tmp_path / "results")
        assert found.path == tmp_path / "results" / "glyphs" / "sl+replay"
        assert sorted(p.name for p in found.path.iterdir()) == ["init_weights.npy", "task_000", "task_001", "task_002"]
        assert np.load(found.path / "init_weights.npy").shape == (R, P)
        performance, expert = run.load("performance"), run.load("expert")
        for t in range(T):
            place = found.path / f"task_{t:03d}"
            steps = slice(1 + t * L, 1 + (t + 1) * L)
            reps = np.load(place / "representations.npy", allow_pickle=False)
            assert reps.shape == (L, R, T, S, H) and reps.dtype == np.float32
            np.testing.assert_array_equal(reps, run["features/penultimate"].features[steps])
            weights = np.load(place / "weights.npy", allow_pickle=False)
            assert weights.shape == (L, R, P) and weights.dtype == np.float32
            np.testing.assert_array_equal(weights, run["weights"].weights[steps])
            labels = np.load(place / "binary_labels.npy", allow_pickle=False)
            assert labels.shape == (T, S, R) and labels.dtype == np.int64
            np.testing.assert_array_equal(labels[1, :, 0], run["probe_samples"].label[0, 1])
            metrics = pickle.loads((place / "metrics.pkl").read_bytes())  # noqa: S301 - written above
            assert {k: (v.shape, v.dtype) for k, v in metrics.items()} == {
                "test_acc": ((L, R, T), np.float64),
                "test_loss": ((L, R, T), np.float64),
                "train_acc": ((L, R), np.float64),
                "train_loss": ((L, R), np.float64),
            }
            assert metrics["test_acc"][1, 0, 2] == performance.accuracy.values[2 + t * L, 2, 0]
            assert metrics["train_loss"][0, 1] == run.load("train").loss.values[t * L, 1]
            own = pickle.loads((place / "expert_metrics.pkl").read_bytes())  # noqa: S301
            assert {k: v.shape for k, v in own.items()} == dict.fromkeys(
                ("train_acc", "train_loss", "test_acc", "test_loss"), (L, R)
            )
            assert own["test_loss"][1, 0] == expert.loss.values[1 + t * L, t, 0]
            assert own["train_acc"][0, 1] == expert.train_accuracy.values[t * L, 1]
            about = json.loads((place / "metadata.json").read_text())
            assert about["task_id"] == t and about["config"] == run.config
            assert about["class_pairs"] == run["probe_samples"].task_class.values[:, t].tolist()

    def test_weights_that_start_alike_are_one_row(self, tmp_path: Path) -> None:
        found = export_seed_layout(record(tmp_path / "run", initial="alike"), tmp_path)
        assert np.load(found.path / "init_weights.npy").shape == (P,)

    def test_what_is_lost_is_said(self, tmp_path: Path) -> None:
        run = record(tmp_path / "run", layers=("early", "late"), zero_each_task=True)
        with pytest.raises(WaterjarError, match="choose one of early, late with --layer NAME"):
            export_seed_layout(run, tmp_path)
        with pytest.raises(WaterjarError, match="did you mean 'early'"):
            export_seed_layout(run, tmp_path, layer="earl")
        notes = export_seed_layout(run, tmp_path, layer="late").notes
        assert notes == [
            "/features/late: 3 snapshots before the training of a task",
            "/weights: 3 snapshots before the training of a task",
            "3 evaluations at epoch 0 (step 0: before any training), which the layout leaves out",
            "/features/early: features",
            "provenance and seal of the run: who imports the layout gets a new one",
        ]

    def test_everything_else_that_a_run_may_hold_is_named(self, tmp_path: Path) -> None:
        sets = {"a": 0, "b": 1, "all": -1}
        options: dict[str, Any] = {
            "eval_sets": sets,
            "tasks": ["a", "b"],
            "probe_sets": ["b", "a"],
        }
        with waterjar.Recorder(tmp_path / "run", {"data": "x", "learner": "y"}, **options) as recorder:
            recorder.once("probe_samples", task_class=[[[0, 1], [2, 3]]], sample_index=np.zeros((1, 2, 3), int))
            for step, task in enumerate([0, 0, 1, 1]):
                recorder.log(
                    epoch=1 + step % 2, train_task=task,
                    performance={"accuracy": {"a": 0.5, "b": 0.5}, "macro_accuracy": {"a": 1.0}},
                    expert={"accuracy": [0.1, 0.2, 0.3]}, train={"gradient_norm": 1.0}, resources={"seconds": 1.0},
                    snapshot={"features": {"x": np.ones((2, 3, 4))}} if step else None,
                )  # fmt: skip
                recorder.event("alert", "something")
            recorder.log(epoch=9, train_task=1, train={"loss": 1.0})
            recorder.log(epoch=9, train_task="joint", performance={"accuracy": 1.0 * np.ones(3)})
        notes = export_seed_layout(waterjar.open_run(tmp_path / "run"), tmp_path / "out").notes
        for text in (
            "/features/x: snapshots at 3 of the 4 steps that the layout has: no representations.npy",
            "1 evaluations of joint training",
            "/events: event_repeat, event_step, kind, level, message, time",
            "/performance: macro_accuracy",
            "/probe_samples: sample_index",
            "/resources: seconds",
            "/train: gradient_norm",
            "/train: 1 steps without an evaluation in /performance",
            "/expert: accuracy on the sets of other tasks than the expert's own",
            "evaluation sets of no task: all",
            "weights.npy: not recorded, so there is none",
            "init_weights.npy: not recorded, so there is none",
            "binary_labels.npy: not recorded, so there is none",
        ):
            assert text in notes, text

    def test_weights_before_training_that_nobody_kept(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {"data": "x", "learner": "y"}, eval_sets={"a": 0}) as recorder:
            recorder.once("probe_samples", task_class=[[[0, 1]]])
            why = {"accuracy": waterjar.missing("empty_set")}
            recorder.log(epoch=1, performance=why, snapshot={"weights": np.ones((1, 2))})
            recorder.log(epoch=2, performance={"accuracy": np.nan}, snapshot={"weights": np.ones((1, 2))})
        found = export_seed_layout(waterjar.open_run(tmp_path / "run"), tmp_path)
        assert "init_weights.npy: not recorded, so there is none" in found.notes
        assert any("test_acc: several reasons why values are missing" in note for note in found.notes)

    def test_weights_before_training_from_step_0(self, tmp_path: Path) -> None:
        run = record(tmp_path / "run", initial="none")
        found = export_seed_layout(run, tmp_path)
        assert "init_weights.npy is the snapshot of step 0" in " ".join(found.notes)
        np.testing.assert_array_equal(np.load(found.path / "init_weights.npy"), run["weights"].weights[0])

    def test_runs_that_the_layout_cannot_hold(self, tmp_path: Path) -> None:
        def fails(
            why: str, tasks: Any = ("a", "b"), sets: Any = None, rows: Any = ((0, 1), (1, 1)), **more: Any
        ) -> None:
            path = tmp_path / str(len(list(tmp_path.iterdir())))
            with waterjar.Recorder(
                path, {"learner": "y"}, eval_sets=sets or {"a": 0, "b": 1}, tasks=tasks, **more
            ) as recorder:
                for task, epoch in rows:
                    recorder.log(
                        epoch=epoch, train_task=task, performance={"accuracy": {"a": 0.5}}, train={"loss": 1.0}
                    )
            with pytest.raises(WaterjarError, match=why):
                export_seed_layout(waterjar.open_run(path), tmp_path / "out")
            assert not (tmp_path / "out").exists()

        fails("task 'b' was never trained", rows=[(0, 1)])
        fails("task 'b' was never trained", rows=[(0, 1), (1, 0)])
        fails("task 'b' has 2 evaluations, 'a' has 1", rows=[(0, 1), (1, 1), (1, 2)])
        fails("task 'a' has 2 evaluation sets", sets={"a": 0, "b": 1, "c": 0})
        fails("does not say which classes")
        with waterjar.Recorder(tmp_path / "bare", {}) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
        with pytest.raises(WaterjarError, match="has no evaluations"):
            export_seed_layout(waterjar.open_run(tmp_path / "bare"), tmp_path / "out")
        with waterjar.Recorder(
            tmp_path / "probes", {}, eval_sets={"a": 0, "x": -1},
        ) as recorder:  # fmt: skip
            recorder.once("probe_samples", task_class=[[[0, 1]]])
            recorder.log(epoch=1, performance={"accuracy": [0.5, 0.5]})
        with pytest.raises(WaterjarError, match="one set per task"):
            export_seed_layout(waterjar.open_run(tmp_path / "probes"), tmp_path / "out")

    def test_names_of_folders(self, run: waterjar.Run, tmp_path: Path) -> None:
        found = export_seed_layout(run, tmp_path, dataset="cifar 100", algorithm="SL", files={"cl_metrics.pkl": b"x"})
        assert found.path == tmp_path / "cifar 100" / "SL" and (found.path / "cl_metrics.pkl").read_bytes() == b"x"
        with pytest.raises(WaterjarError, match="exists already"):
            export_seed_layout(run, tmp_path, dataset="cifar 100", algorithm="SL")
        for name in ("../x", "", "a/b", ".hidden", "x\n"):
            with pytest.raises(WaterjarError, match="is to be a folder"):
                export_seed_layout(run, tmp_path, algorithm=name)
        bare = record(tmp_path / "bare")
        bare.attributes["config"] = {}
        with pytest.raises(WaterjarError, match="name no dataset"):
            export_seed_layout(bare, tmp_path)

    def test_a_disk_that_cannot_be_written_leaves_nothing(self, run: waterjar.Run, tmp_path: Path) -> None:
        with pytest.raises(WaterjarError, match="could not write"):
            export_seed_layout(run, tmp_path / "deep" / "er", files={"no/such/folder": b""})
        assert not (tmp_path / "deep").exists()


class TestThereAndBack:
    def test_a_run_comes_back(self, run: waterjar.Run, tmp_path: Path) -> None:
        found = import_seed_layout(export_seed_layout(run, tmp_path / "results").path, tmp_path / "back")
        assert_same_run(run, found.run)
        xr.testing.assert_identical(
            run.load("weights").drop_dims("snapshot"), found.run.load("weights").drop_dims("snapshot")
        )
        assert verify(found.run.path).state == "sealed"
        assert found.notes == ["step 0 (before any training) is not in the layout: what needs it is missing"]
        assert found.run["events"]["kind"].values.tolist() == ["import"]
        again = export_seed_layout(found.run, tmp_path / "again").path
        for file in sorted(p for p in again.rglob("*") if p.is_file() and p.name != "metadata.json"):
            assert file.read_bytes() == (tmp_path / "results" / file.relative_to(tmp_path / "again")).read_bytes()

    def test_a_run_whose_identity_leaves_out_the_engine(self, tmp_path: Path) -> None:
        run = record(tmp_path / "run", unhashed=("engine",), engine="vmap")
        found = import_seed_layout(export_seed_layout(run, tmp_path).path, tmp_path / "back")
        assert run.config["engine"] == "vmap"
        assert_same_run(run, found.run)

    def test_reasons_come_back(self, tmp_path: Path) -> None:
        options: dict[str, Any] = {
            "seeds": [1, 2],
            "eval_sets": {"a": 0, "b": 1},
            "tasks": ["a", "b"],
        }
        with waterjar.Recorder(tmp_path / "run", {"data": "x", "learner": "y"}, **options) as recorder:
            recorder.once("probe_samples", task_class=[[[0, 1], [2, 3]], [[3, 2], [1, 0]]])
            for task in (0, 1):
                known = {"a": [0.5, 0.25], "b": waterjar.missing("empty_set")}
                recorder.log(
                    epoch=1, train_task=task, performance={"accuracy": known, "loss": [[1, np.nan], [np.inf, 3]]},
                    train={"loss": 1.0 * np.ones(2)} if task else None,
                )  # fmt: skip
        run = waterjar.open_run(tmp_path / "run")
        found = import_seed_layout(export_seed_layout(run, tmp_path).path, tmp_path / "back")
        assert_same_run(run, found.run)

    @given(
        tasks=st.integers(1, 3), repeats=st.integers(1, 3), logged=st.integers(1, 3), samples=st.integers(1, 3),
        units=st.integers(1, 3), classes=st.integers(2, 3), frequency=st.sampled_from([1, 0.5]), seed=st.integers(0, 9),
        features=st.booleans(), weights=st.booleans(), expert=st.booleans(), train=st.booleans(), loss=st.booleans(),
        labels=st.booleans(), initial=st.sampled_from(["apart", "alike", "none"]), zero_each_task=st.booleans(),
        dtype=st.sampled_from(["float32", "float64", "float16"]), subset=st.booleans(),
        storage=st.sampled_from([None, {"step_dtype": "float32"}, {"compression": "lz4"}]),
    )  # fmt: skip
    @settings(max_examples=30)
    def test_any_run_comes_back(self, tmp_path_factory: pytest.TempPathFactory, subset: bool, **given: Any) -> None:
        folder = tmp_path_factory.mktemp("any")
        probes = list(range(given["tasks"]))[-1:] if subset else None
        run = record(folder / "run", probe_tasks=probes, **given)
        found = import_seed_layout(export_seed_layout(run, folder).path, folder / "back")
        if given["weights"] and given["initial"] == "none":  # the snapshot of step 0 stands for it
            assert "initial" in found.run["weights"]
        else:
            assert_same_run(run, found.run)


class TestForeign:
    def test_somebody_elses_layout_becomes_a_run(self, tmp_path: Path) -> None:
        folder = foreign(tmp_path / "results" / "mnist" / "RL")
        found = import_seed_layout(folder, tmp_path / "run")
        run = found.run
        assert run.config == {"data": "mnist", "learner": "RL", "log_frequency": 10, "source_seed": 42}
        assert run.seeds == [0, 1] and run.attributes["classes"] == ["0", "1"]
        performance = run.load("performance")
        assert performance["epoch"].values.tolist() == [10, 20, 30, 40] * 3
        assert performance["total_epoch"].values.tolist() == [10.0 * i for i in range(1, 13)]
        metrics = pickle.loads((folder / "task_001" / "metrics.pkl").read_bytes())  # noqa: S301
        np.testing.assert_array_equal(
            performance.loss.sel(step=slice(5, 8)).transpose("step", "repeat", "eval_set"), metrics["test_loss"]
        )
        own = pickle.loads((folder / "task_002" / "expert_metrics.pkl").read_bytes())  # noqa: S301
        expert = run.load("expert")
        np.testing.assert_array_equal(expert.accuracy.sel(eval_set="task_002", step=slice(9, 12)), own["test_acc"])
        assert np.isnan(expert.accuracy.sel(eval_set="task_000", step=slice(9, 12))).all()
        np.testing.assert_array_equal(expert.train_loss.sel(step=slice(9, 12)), own["train_loss"])
        assert run["weights"].initial.shape == (2, 7)
        assert run["features/representations"].features.shape == (12, 2, 3, 5, 3)
        assert any("seeds of the repeats" in note for note in found.notes)

    def test_what_is_unusual_is_kept_and_said(self, tmp_path: Path) -> None:
        folder = foreign(tmp_path / "m" / "RL")
        for place in folder.glob("task_*"):
            about = json.loads((place / "metadata.json").read_text())
            (place / "metadata.json").write_text(json.dumps({**about, "config": {}}))
            labels = np.load(place / "binary_labels.npy")
            np.save(place / "binary_labels.npy", labels.astype(np.float32))
            (place / "expert_metrics.pkl").unlink()
        weights = np.load(folder / "task_001" / "weights.npy")
        weights[0, 0, 0] = np.inf
        np.save(folder / "task_001" / "weights.npy", np.asfortranarray(weights))
        file = folder / "task_001" / "metrics.pkl"
        metrics = pickle.loads(file.read_bytes())  # noqa: S301
        metrics["test_loss"][0, 0, 0] = np.nan
        metrics["train_acc"] = metrics["train_acc"].tolist()
        file.write_bytes(pickle.dumps({**metrics, "time": 3.0}))
        found = import_seed_layout(folder, tmp_path / "run")
        for text in (
            "the config has no log_frequency: epochs are counted by logged ones",
            "binary_labels.npy: whole numbers in float32, kept as int64",
            "weights.npy: values that are NaN or infinite, kept as they are",
            "metrics.pkl: test_loss has NaN, kept as such (not_a_number)",
            "metrics.pkl: keys that a run has no place for: time",
        ):
            assert text in found.notes, text
        assert np.isinf(found.run["weights"].weights.values).sum() == 1
        assert "expert" not in found.run.groups and found.run["probe_samples"].label.dtype == np.int64

    def test_a_study_enters_it_in_its_ledger_under_its_own_name(self, tmp_path: Path) -> None:
        study = waterjar.create_study(tmp_path / "study", {})
        import_seed_layout(foreign(tmp_path / "mnist" / "RL"), study / "RL")
        assert json.loads((study / "ledger.jsonl").read_text())["run"] == "RL"
        assert sorted(p.name for p in study.iterdir()) == ["RL", "ledger.jsonl", "study.yaml"]
        assert len(waterjar.open_study(study)) == 1

    @pytest.mark.parametrize(
        "header", [b"{'descr': (((", b"{'descr': '<f4', 'shape': (10000000,)}", b"(" * 100, b"\xff"]
    )
    def test_headers_that_are_none_are_one_error(self, tmp_path: Path, header: bytes) -> None:
        folder = foreign(tmp_path / "mnist" / "RL")
        text = header.ljust(118) + b"\n"
        magic = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
        (folder / "task_000" / "representations.npy").write_bytes(magic + text)
        with pytest.raises(WaterjarError, match="representations.npy is not an .npy of numbers"):
            import_seed_layout(folder, tmp_path / "run")
        (folder / "task_000" / "metadata.json").unlink()
        os.mkfifo(folder / "task_000" / "metadata.json")
        with pytest.raises(WaterjarError, match="metadata.json"):
            import_seed_layout(folder, tmp_path / "run")

    def test_memory_does_not_grow_with_tasks(self, tmp_path: Path) -> None:
        code = (
            "import resource, sys, waterjar\n"
            "from waterjar.run.formats.seed import *\n"
            "run = import_seed_layout(sys.argv[1], sys.argv[2]).run\n"
            "export_seed_layout(run, sys.argv[3])\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
        )
        peaks = []
        for tasks in (2, 8):
            folder = foreign(tmp_path / str(tasks) / "a", tasks=tasks, shape=(4000, 64 // tasks))  # 16 MB a task
            places = [tmp_path / f"{name}{tasks}" for name in ("run", "out")]
            told = subprocess.run(
                [sys.executable, "-c", code, str(folder), *map(str, places)], check=True, capture_output=True, text=True
            )
            peaks.append(int(told.stdout))
        assert peaks[1] < peaks[0] + 40  # six more tasks hold 98 MB


def test_a_task_that_is_trained_again_has_no_folder(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets={"a": 0, "b": 1}, tasks=["x", "y"]) as recorder:
        for task in "xyxy":
            recorder.log(train_task=task, epoch=1, performance={"accuracy": [0.5, 0.5], "loss": [1.0, 1.0]})
    with pytest.raises(WaterjarError, match="task 'x' is trained 2 times: .*visits are not merged. Export it as CSV"):
        export_seed_layout(waterjar.open_run(tmp_path / "run"), tmp_path / "out")
