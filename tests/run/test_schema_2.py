"""What schema 2 has beside schema 1: examples, monitors, probes by step, visits, streams by set, probe runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from typer.testing import CliRunner

import waterjar
from recording import without_visits
from waterjar import Recorder, Storage, Variable, WaterjarError, judge_examples, missing
from waterjar.cli.main import app
from waterjar.run.annotations import FILE, read_annotations, write_annotations
from waterjar.run.root import DamagedError

SETS = {"small": 3, "large": 5}
RNG = np.random.default_rng(0)


def judged(seed: int = 0, sets: dict[str, int] | None = None) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    logits = {name: rng.normal(size=(size, 4)) for name, size in (sets or SETS).items()}
    return judge_examples(logits, {name: rng.integers(4, size=len(one)) for name, one in logits.items()})


class TestJudgedExamples:
    @settings(max_examples=50, deadline=None)
    @given(arrays(np.float64, (6, 3), elements=st.floats(-50, 50)), st.lists(st.integers(0, 2), min_size=6, max_size=6))
    def test_as_by_hand(self, logits: np.ndarray, labels: list[int]) -> None:
        found = judge_examples({"x": logits}, {"x": np.array(labels)})
        for i, label in enumerate(labels):
            others = [logits[i, k] for k in range(3) if k != label]
            assert found["margin"]["x"][i] == logits[i, label] - max(others)
            assert found["correct"]["x"][i] == (list(logits[i]).index(max(logits[i])) == label)

    def test_halves_are_subtracted_in_single_precision(self) -> None:
        found = judge_examples({"x": np.array([[60000, -60000]], np.float16)}, {"x": [0]})
        assert found["margin"]["x"].tolist() == [2 * float(np.float16(60000))]
        with pytest.raises(WaterjarError, match="expected mappings eval_set -> array"):
            judge_examples([[1.0, 2.0]], [0])  # type: ignore[arg-type]

    def test_what_is_not_a_number_is_wrong_and_has_no_margin(self) -> None:
        found = judge_examples({"x": [[np.nan, 1.0], [np.inf, np.inf], [np.inf, 0.0]]}, {"x": [1, 0, 0]})
        assert found["correct"]["x"].tolist() == [False, True, True]
        np.testing.assert_array_equal(found["margin"]["x"], [np.nan, np.nan, np.inf])

    @pytest.mark.parametrize(
        ("logits", "labels", "message"),
        [
            ([[1.0, 2.0]], [2], "labels\\['x'\\] go from 2 to 2; expected 0 to K - 1"),
            ([[1.0, 2.0]], [0.0], "whole numbers"),
            ([[1.0, 2.0]], [0, 1], "expected \\(..., sample, class\\)"),
            ([[1.0]], [0], "two classes or more"),
        ],
    )
    def test_refused(self, logits: Any, labels: Any, message: str) -> None:
        with pytest.raises(WaterjarError, match=message):
            judge_examples({"x": logits}, {"x": labels})
        with pytest.raises(WaterjarError, match="expected the same sets"):
            judge_examples({"x": logits}, {"y": labels})


class TestExamples:
    def test_sets_of_any_size_stand_behind_each_other(self, tmp_path: Path) -> None:
        path, given = tmp_path / "run", [judged(seed, {**SETS, "train": 2}) for seed in range(3)]
        with Recorder(path, {}, eval_sets=list(SETS)) as recorder:
            labels = {"small": [0, 1, 2], "large": [3, 3, 3, 3, 3], "train": [1, 1]}
            recorder.once("examples", label=labels)
            recorder.log(epoch=0, train={"loss": 1.0})  # a step without examples has no row
            for step, examples in enumerate(given):
                recorder.log(epoch=step + 1, examples=examples)
        for data in (
            waterjar.open_run(path)["examples"],
            xr.open_datatree(path, engine="zarr")["examples"].to_dataset(),
        ):
            assert data.step.values.tolist() == [1, 2, 3]
            assert data.correct.dims == ("step", "repeat", "example")
            assert (data.correct.dtype, data.margin.dtype) == (np.uint8, np.float16)
            assert data.eval_set.values.tolist() == ["small"] * 3 + ["large"] * 5 + ["train"] * 2
            assert data["sample"].values.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 0, 1]
            assert data.label.values.tolist() == [[0, 1, 2, 3, 3, 3, 3, 3, 1, 1]]
            for name in ("small", "large", "train"):
                own = data.sel(example=data.eval_set == name)
                for step, examples in enumerate(given):
                    np.testing.assert_array_equal(own.correct.values[step, 0], examples["correct"][name])
                    np.testing.assert_array_equal(
                        own.margin.values[step, 0], examples["margin"][name].astype(np.float16)
                    )

    def test_repeats_and_what_nobody_looked_at(self, tmp_path: Path) -> None:
        with Recorder(tmp_path / "run", {}, seeds=[1, 2], eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, examples={"correct": [[1, 0], [np.nan, 1]], "margin": [[1.0, -1e6], [np.nan, 2.0]]})
        data = waterjar.open_run(tmp_path / "run")["examples"]
        assert data.correct.values.tolist() == [[[1, 0], [255, 1]]]
        assert data.correct.attrs["flag_meanings"] == "no yes nobody_looked"
        np.testing.assert_array_equal(data.margin.values, [[[1.0, -np.inf], [np.nan, 2.0]]])  # beyond float16

    def test_a_wider_dtype_is_a_setting(self, tmp_path: Path) -> None:
        with Recorder(tmp_path / "run", {}, eval_sets=["a"], storage=Storage(example_dtype="float32")) as recorder:
            recorder.log(epoch=0, examples={"margin": {"a": [1e6, 0.1]}})
        assert waterjar.open_run(tmp_path / "run")["examples"].margin.values.tolist() == [[[1e6, np.float32(0.1)]]]

    @pytest.mark.parametrize(
        ("examples", "message"),
        [
            ({"correct": {"small": [1, 0, 1]}}, "is given for \\['small'\\]; expected all of"),
            ({"correct": {"small": [1, 0], "large": [1] * 5}}, "expected \\(repeat=1, example=3\\)"),
            ({"correct": {"small": [1, 2, 0], "large": [1] * 5}}, "expected True or False"),
            ({"correct": {"small": [1, 1, 0], "lagre": [1] * 5}}, "did you mean 'large'"),
            ({"correct": [1, 0, 1]}, "expected a mapping eval_set"),
            (
                {"margin": {"small": [1.0] * 3, "large": [1.0] * 5}},
                "expected \\['correct', 'margin'\\] as in the first",
            ),
            ({"corect": {"small": [1, 1, 0], "large": [1] * 5}}, "did you mean 'correct'"),
        ],
    )
    def test_refused_and_nothing_is_harmed(self, tmp_path: Path, examples: Any, message: str) -> None:
        with Recorder(tmp_path / "run", {}, eval_sets=list(SETS)) as recorder:
            recorder.log(epoch=0, examples=judged())
            with pytest.raises(WaterjarError, match=message):
                recorder.log(epoch=1, examples=examples)
            recorder.log(epoch=1, examples=judged(1))
        assert waterjar.verify(tmp_path / "run").state == "sealed"
        assert waterjar.open_run(tmp_path / "run")["examples"].sizes["step"] == 2

    def test_three_megabytes_for_ten_thousand_samples_and_a_hundred_steps(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        path = tmp_path / "run"
        with Recorder(path, {}, eval_sets=["test"]) as recorder:
            for step in range(100):
                margin = rng.normal(size=10_000)
                recorder.log(epoch=step, examples={"correct": {"test": margin > 0}, "margin": {"test": margin}})
        size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        assert size < 3e6  # of noise, which packs worst
        data = waterjar.open_run(path).load("examples")
        np.testing.assert_array_equal(data.correct.values, data.margin.values > 0)

    def test_outputs_are_of_the_same_examples(self, tmp_path: Path) -> None:
        logits = {name: RNG.normal(size=(size, 4)) for name, size in SETS.items()}
        with Recorder(tmp_path / "run", {}, eval_sets=list(SETS), classes=list("abcd")) as recorder:
            recorder.log(epoch=0, examples=judged(), snapshot={"outputs": {"logits": logits}})
            with pytest.raises(WaterjarError, match="example=3"):
                recorder.log(epoch=1, snapshot={"outputs": {"logits": {**logits, "small": np.ones((2, 4))}}})
        data = waterjar.open_run(tmp_path / "run")["outputs"]
        assert data.logits.dims == ("snapshot", "repeat", "example", "class")
        assert data["class"].values.tolist() == list("abcd")
        np.testing.assert_array_equal(data.logits.values[0, 0, 3:], logits["large"])

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_outputs_keep_the_dtype_they_come_in(self, tmp_path: Path, dtype: type) -> None:
        logits = np.array([[1000.123, -0.1], [7e4 if dtype != np.float16 else 6e4, 1e-7]], dtype)
        with Recorder(tmp_path / "run", {}, eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, snapshot={"outputs": {"logits": logits}})
        stored = waterjar.open_run(tmp_path / "run")["outputs"].logits
        assert stored.dtype == dtype
        np.testing.assert_array_equal(stored.values[0, 0], logits)

    def test_outputs_of_another_dtype_are_wished_for_and_never_infinite(self, tmp_path: Path) -> None:
        storage = Storage(snapshot_dtype="float16", example_dtype="float32")
        with Recorder(tmp_path / "run", {}, eval_sets=["a"], storage=storage) as recorder:
            with pytest.raises(WaterjarError, match=r"outputs\['logits'\] holds 70000.0, too large for float16"):
                recorder.log(epoch=0, snapshot={"outputs": {"logits": [[70000.0, 0.0]]}})
            recorder.log(epoch=0, snapshot={"outputs": {"logits": [[1000.123, np.inf]]}})
        assert waterjar.open_run(tmp_path / "run")["outputs"].logits.values.tolist() == [[[[1000.0, np.inf]]]]

    def test_seeds_of_a_cell_are_joined(self, tmp_path: Path) -> None:
        for seed in (1, 2):
            with Recorder(tmp_path / str(seed), {"learner": "x"}, seeds=[seed], eval_sets=list(SETS)) as recorder:
                recorder.once("examples", label={"small": [0, 0, 0], "large": [seed] * 5})
                recorder.log(epoch=0, examples=judged(seed))
        (found,) = waterjar.open_study(tmp_path).load("examples").values()
        assert found.correct.sizes == {"step": 1, "repeat": 2, "example": 8}
        assert found.label.values[:, -1].tolist() == [1, 2]


class TestMonitorAndProbes:
    def test_any_name_by_step(self, tmp_path: Path) -> None:
        path = tmp_path / "run"
        with Recorder(path, {}, seeds=[1, 2]) as recorder:
            for step in range(4):
                recorder.log(epoch=step, monitor={"emergence_ratio": [step, step + 0.5]})
                if step % 2:
                    recorder.probe(
                        "hessian",
                        {"trace": [1.0, 2.0], "top": step * np.ones(2)},
                    )
            recorder.log(
                epoch=4, monitor={"routing_entropy": [0.1, 0.2]}, probes={"sharpness": missing("never_reached")}
            )
        tree = xr.open_datatree(path, engine="zarr")
        monitor = tree["monitor"].to_dataset()
        np.testing.assert_array_equal(monitor.emergence_ratio.values[:4, 1], [0.5, 1.5, 2.5, 3.5])
        assert (
            np.isnan(monitor.emergence_ratio.values[4]).all() and (monitor.emergence_ratio_reason.values[4] == 1).all()
        )
        assert tree["probes/hessian"].step.values.tolist() == [1, 3]
        assert tree["probes/hessian"]["top"].values.tolist() == [[1.0, 1.0], [3.0, 3.0]]
        assert tree["probes/sharpness"].sharpness_reason.values.tolist() == [[5, 5]]

    @pytest.mark.parametrize("name", ["step", "a b", "x_reason", "repeat", "../x", "", "visit", 3])
    def test_names_that_are_none(self, tmp_path: Path, name: Any) -> None:
        with Recorder(tmp_path / "run", {}) as recorder:
            with pytest.raises(WaterjarError, match="is no name for a variable"):
                recorder.log(epoch=0, monitor={name: 1.0})
            with pytest.raises(WaterjarError, match="is no name for a variable|expected letters"):
                recorder.log(epoch=0, probes={name: 1.0} if name not in ("a b", "") else {name: {"x": 1.0}})
            recorder.log(epoch=0, train={"loss": 1.0})


def test_names_that_are_none_are_called_what_they_are(tmp_path: Path) -> None:
    map_, features = np.ones((1, 1, 2, 2)), np.ones((1, 2, 3))
    with Recorder(tmp_path / "run", {}, eval_sets=["a"]) as recorder:
        for options, message in (
            ({"probes": {"a b": {"x": 1.0}}}, "^probe 'a b': expected letters, digits"),
            ({"probes": {"zarr.json": {"x": 1.0}}}, "^probe 'zarr.json' is not a name for a probe"),
            ({"snapshot": {"features": {"zarr.json": features}}}, "^layer 'zarr.json' is not a name for a layer"),
            ({"snapshot": {"features": {"Zarr.JSON": features}}}, "^layer 'Zarr.JSON' is not a name for a layer"),
            ({"snapshot": {"attribution": {"a b": map_}}}, "^method 'a b': expected letters, digits"),
            ({"monitor": {"größe": 1.0}}, r"'größe' is no name for a variable: letters, digits, _ \(ASCII\)"),
        ):
            with pytest.raises(WaterjarError, match=message):
                recorder.log(epoch=0, **options)
        with pytest.raises(WaterjarError, match="^probe 'a b': expected letters"):
            Recorder(tmp_path / "other", {}, variables={"probes/a b/x": Variable(("step", "repeat"), "x")})
        recorder.log(epoch=0, monitor={"x": 1.0})


class TestVisits:
    def test_a_task_that_is_trained_again_is_another_visit(self, tmp_path: Path) -> None:
        with Recorder(tmp_path / "run", {}, tasks=["x", "y"]) as recorder:
            for task, epoch in (("x", 0), ("x", 1), ("y", 0), ("y", 1), ("x", 0), ("x", 1)):
                recorder.log(epoch=epoch, train_task=task, train={"loss": 1.0})
            with pytest.raises(WaterjarError, match=r"epoch=0.0 goes backwards.*say visit=3"):
                recorder.log(epoch=0, train_task="x", train={"loss": 1.0})
            with pytest.raises(WaterjarError, match="visit=5: expected 2 or 3"):
                recorder.log(epoch=0, train_task="x", visit=5, train={"loss": 1.0})
            with pytest.raises(WaterjarError, match="visit=2: expected 3,"):
                recorder.log(epoch=0, train_task="y", visit=2, train={"loss": 1.0})
            recorder.log(epoch=0, train_task="x", visit=3, train={"loss": 1.0})
        data = waterjar.open_run(tmp_path / "run")["train"]
        assert data.visit.values.tolist() == [0, 0, 1, 1, 2, 2, 3]
        assert data.total_epoch.values.tolist() == [0, 1, 1, 2, 2, 3, 3]

    def test_a_resumed_run_knows_its_visit(self, tmp_path: Path) -> None:
        def record(rows: list[tuple[str, int]], at: int | None) -> None:
            recorder = Recorder(tmp_path / "run", {}, tasks=["x", "y"], resume=True, resume_at=at)
            for task, epoch in rows:
                recorder.log(epoch=epoch, train_task=task, train={"loss": 1.0})
            recorder.__exit__(KeyError, KeyError(), None)

        record([("x", 0), ("y", 0), ("x", 0), ("y", 0)], None)
        record([("x", 1), ("y", 0)], 2)
        assert waterjar.open_run(tmp_path / "run")["train"].visit.values.tolist() == [0, 1, 2, 2, 3]


class TestArraysOfSnapshots:
    def test_attention_by_layer_where_layers_differ(self, tmp_path: Path) -> None:
        cls = {"block0": RNG.random((1, 6, 2, 5)), "block1": RNG.random((1, 6, 4, 3))}
        with Recorder(tmp_path / "run", {}, eval_sets=["a"], labels={"head": ["h0", "h1"]}) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
            with pytest.raises(WaterjarError, match="head=2"):
                recorder.snapshot(attention={name: {"cls": one} for name, one in cls.items()})
            recorder.snapshot(attention={"block0": {"cls": cls["block0"], "value_norm": cls["block0"]}})
            recorder.once("attention", token_share=np.zeros((1, 1, 6, 5)))
        run = waterjar.open_run(tmp_path / "run")
        data = xr.open_datatree(run.path, engine="zarr")["attention/block0"].to_dataset()
        assert data.cls.dims == ("snapshot", "repeat", "eval_set", "sample", "head", "token")
        assert data["head"].values.tolist() == ["h0", "h1"]
        np.testing.assert_array_equal(data.cls.values[0, 0], cls["block0"])
        assert run["attention"].token_share.shape == (1, 1, 6, 5)

    def test_streams_by_name(self, tmp_path: Path) -> None:
        logits, prints = RNG.random((2, 6, 3, 4)), RNG.random((3, 7))
        names = ["left", "middle", "right"]
        with Recorder(tmp_path / "run", {}, eval_sets=["a", "b"], labels={"stream": names}) as recorder:
            shot = {
                "logits": logits, "fingerprint": prints, "anchor_affinity": RNG.random((3, 9)),
                "affinity": RNG.random((2, 6, 3, 9)), "route_index": RNG.integers(5, size=(2, 6, 3, 2, 4)),
            }  # fmt: skip
            recorder.log(epoch=0, snapshot={"streams": shot, "attribution": {"grad-cam": RNG.random((2, 6, 8, 8))}})
        tree = xr.open_datatree(tmp_path / "run", engine="zarr")
        data = tree["streams"].to_dataset()
        assert data.stream.values.tolist() == names
        np.testing.assert_array_equal(data.logits.sel(stream="right", eval_set="b").values[0, 0], logits[1, :, 2])
        np.testing.assert_array_equal(data.fingerprint.values[0, 0], prints)
        assert data.route_index.dtype == np.int64
        assert tree["attribution/grad-cam/map"].dims == ("snapshot", "repeat", "eval_set", "sample", "row", "column")

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ({"repeat": ["a"]}, "none of ours"), ({"stream": ["a", "a"]}, "different, non-empty names"),
            ([1], "expected a mapping"), ({"a/b": ["x"]}, "expected a dimension such as"),
            ({"streams": ["x"]}, "did you mean 'stream'"),
        ],
    )  # fmt: skip
    def test_labels_that_are_none(self, tmp_path: Path, labels: Any, message: str) -> None:
        with pytest.raises(WaterjarError, match=message):
            Recorder(tmp_path / "run", {}, labels=labels)


def record_source(path: Path, seed: int = 1) -> Path:
    with Recorder(path, {"learner": "x"}, seeds=[seed]) as recorder:
        for step in range(3):
            recorder.log(epoch=step, train={"loss": 1.0}, snapshot={"weights": np.ones((1, 3))})
    return path


class TestProbeRuns:
    def probe(self, path: Path, source: Path, name: str = "sharpness", seed: int = 1) -> None:
        with Recorder(path, {"probe": name}, seeds=[seed], source=source) as recorder:
            for step in (0, 2):
                recorder.log(epoch=step, step=step, probes={name: 10.0 + step})

    def test_a_study_shows_it_with_its_source(self, tmp_path: Path) -> None:
        from waterjar.diagnose import plasticity
        from waterjar.diagnose.study import diagnose

        for seed in (1, 2):
            record_source(tmp_path / f"run{seed}", seed)
        before = diagnose(waterjar.open_study(tmp_path), families=["plasticity"])
        self.probe(tmp_path / "probe1", tmp_path / "run1")
        study = waterjar.open_study(tmp_path)
        assert [entry.name for entry in study.entries] == ["run1", "run2"] and len(study.cells) == 1
        assert [entry.name for entry in study.probe_runs] == ["probe1"] and study.notes == []
        for opened in (study, study.confirmed(), waterjar.open_study(tmp_path)):  # by the index, too
            assert opened.run("run1")["probes/sharpness"].sharpness.values.tolist() == [[10.0], [12.0]]
            assert "probes/sharpness" not in opened.run("run2").groups
        after = diagnose(study, families=["plasticity"])  # what was kept of before is stale
        assert np.isnan(before.results["plasticity"].sharpness_final.values).all()
        np.testing.assert_array_equal(after.results["plasticity"].sharpness_final.values.ravel(), [12.0, np.nan])
        assert set(after.seals) == {"run1", "run2", "probe1"}
        told = CliRunner().invoke(app, ["ls", str(tmp_path)]).output
        assert "2 runs, 1 cells" in told and "probe1: probe run of run1" in told
        shown = json.loads(CliRunner().invoke(app, ["show", str(tmp_path / "probe1"), "--json"]).output)
        assert shown["source"]["root_hash"] == study.entries[0].root_hash and shown["schema"] == 2
        alone = plasticity.measure(study.run("run1"))
        np.testing.assert_array_equal(alone.sharpness.values, [[10.0, np.nan, 12.0]])

    @pytest.mark.parametrize("schema", [1, 2])
    def test_its_steps_stand_where_those_of_the_source_do(self, tmp_path: Path, schema: int) -> None:
        """Tasks a, b, a: a probe that looks at two of the steps does not count visits and epochs by itself."""
        names = ("train_task", "train_task_index", "visit", "epoch", "total_epoch", "effective_epoch")
        path = tmp_path / "run"
        with Recorder(path, {"learner": "x"}, seeds=[1], tasks=["a", "b"]) as recorder:
            for task in "aba":
                for epoch in range(3):
                    recorder.log(epoch=epoch, train_task=task, train={"loss": 1.0})
        source = without_visits(path) if schema == 1 else path
        with Recorder(tmp_path / "probe", {"probe": "p"}, seeds=[1], tasks=["a", "b"], source=source) as recorder:
            recorder.log(epoch=2, step=2, train_task="a", probes={"p": 1.0})
            recorder.log(epoch=2, step=5, train_task="b", visit=1, probes={"p": 1.0})
            for other, there in (({"visit": 1}, 2), ({"total_epoch": 4.0}, 6.0), ({"effective_epoch": 0.0}, 2.0)):
                with pytest.raises(WaterjarError, match=f"step=8 of a probe run has .*: its source has {there} there"):
                    recorder.log(epoch=2, step=8, train_task="a", probes={"p": 1.0}, **other)
            with pytest.raises(WaterjarError, match="step=5 goes backwards"):
                recorder.log(epoch=2, step=5, train_task="b", probes={"p": 1.0})
            recorder.log(epoch=1, step=7, train_task="a", probes={"p": 1.0})  # its epoch is before that of step 5
            recorder.log(epoch=2, step=8, train_task="a", total_epoch=6, probes={"p": 1.0})
        found = waterjar.open_study(tmp_path).run("run").load("probes/p")
        assert found.visit.values.tolist() == [0, 1, 2, 2] and found.total_epoch.values.tolist() == [2, 4, 5, 6]
        own = waterjar.open_run(source).load("train").sel(step=[2, 5, 7, 8])
        for name in names if schema == 2 else (one for one in names if one != "visit"):
            np.testing.assert_array_equal(found[name].values, own[name].values)

    def test_what_no_study_can_join(self, tmp_path: Path) -> None:
        source = record_source(tmp_path / "elsewhere" / "run")
        study = tmp_path / "study"
        record_source(study / "run", 2)
        self.probe(study / "lost", source)
        assert waterjar.open_study(study).notes == [
            f"lost looked into {str(waterjar.open_run(source).root_hash)[:12]}, which is not here: it is left out"
        ]
        self.probe(study / "one", study / "run", seed=2)
        self.probe(study / "two", study / "run", seed=2)
        found = waterjar.open_study(study)
        assert found.notes[1:] == ["one and two both have /probes/sharpness of run: it is left out"]
        assert "probes/sharpness" not in found.run("run").groups and found.load("train")
        self.probe(study / "three", study / "run", name="trace", seed=2)
        assert "probes/trace" in waterjar.open_study(study).run("run").groups  # the others are there

    def test_what_is_outside_of_probes_is_told(self, tmp_path: Path) -> None:
        source = record_source(tmp_path / "run")
        with Recorder(tmp_path / "probe", {"probe": "p"}, seeds=[1], source=source) as recorder:
            recorder.log(epoch=1, step=1, probes={"p": 1.0}, monitor={"m": 1.0}, train={"loss": 1.0})
        study = waterjar.open_study(tmp_path)
        assert "monitor" not in study.run("run").groups
        (note,) = study.notes
        assert (
            "probe, a probe run of run, recorded /monitor, /train, which is not shown with its source: waterjar report"
            in note
        )
        assert note in CliRunner().invoke(app, ["ls", str(tmp_path), "--json"]).stderr.replace("\n", " ")

    def test_seeds_that_were_probed_at_other_steps(self, tmp_path: Path) -> None:
        for seed in (1, 2, 3):
            record_source(tmp_path / f"run{seed}", seed)
        for seed, steps in ((1, (0, 1, 2)), (2, (0,)), (3, (0, 2))):
            options = {"seeds": [seed], "source": tmp_path / f"run{seed}"}
            with Recorder(tmp_path / f"probe{seed}", {"probe": "p"}, **options) as recorder:
                for step in steps:
                    recorder.log(epoch=step, step=step, probes={"p": 1.0})
        (found,) = waterjar.open_study(tmp_path).load("probes/p").values()
        assert found.directory.values.tolist() == ["run1", "run2", "run3"]
        assert found.p_reason.values.tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 0]]  # all were trained to the end
        shutil.rmtree(tmp_path / "probe1")
        with Recorder(tmp_path / "probe1", {"probe": "p"}, seeds=[1], source=tmp_path / "run1") as recorder:
            recorder.log(epoch=1, step=1, probes={"p": 1.0})
        with pytest.raises(WaterjarError, match=r"^probe1 \(probe run of run1\) has step labels that a longer run"):
            waterjar.open_study(tmp_path).load("probes/p")

    def test_refused(self, tmp_path: Path) -> None:
        source = record_source(tmp_path / "run")
        self.probe(tmp_path / "probe", source)
        with Recorder(tmp_path / "steps", {"probe": "x"}, seeds=[1], source=source) as recorder:
            with pytest.raises(WaterjarError, match="its source has no such step"):
                recorder.log(epoch=99, step=99, probes={"x": 1.0})
            with pytest.raises(WaterjarError, match=r"its source has \('0', 1.0\) there"):
                recorder.log(epoch=2, step=1, probes={"x": 1.0})
            recorder.log(epoch=1, step=1, probes={"x": 1.0})
        for options, message in (
            ({"source": source, "config": {"learner": "x"}, "seeds": [1]}, "config is that of the source"),
            ({"source": source, "config": {}, "seeds": [2]}, r"seeds=\[2\], but the source has \[1\]"),
            ({"source": tmp_path / "probe", "config": {}, "seeds": [1]}, "is a probe run itself"),
            ({"source": tmp_path / "nowhere", "config": {}, "seeds": [1]}, "is not a run"),
        ):
            with pytest.raises(WaterjarError, match=message):
                Recorder(tmp_path / "new", **options)
        with Recorder(tmp_path / "open", {"a": 1}) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
            with pytest.raises(WaterjarError, match="is recording: expected a sealed run"):
                Recorder(tmp_path / "new", {}, source=tmp_path / "open")


class TestAnnotations:
    def test_beside_the_seal(self, tmp_path: Path) -> None:
        run = record_source(tmp_path / "run")
        before = waterjar.open_run(run).root_hash
        assert waterjar.open_run(run).annotations is None
        written = write_annotations(run, {"chance": 0.1, "eval_task": {"digits": 0}})
        found = waterjar.open_run(run)
        assert found.annotations == written and written.entries["chance"] == 0.1 and len(written.digest) == 64
        assert (waterjar.verify(run).state, found.root_hash) == ("sealed", before)
        assert waterjar.verify(run).extra == []

    def test_damage_is_told(self, tmp_path: Path) -> None:
        write_annotations(tmp_path, {"note": "x"})
        text = (tmp_path / FILE).read_bytes()
        for place in range(0, len(text), 7):
            (tmp_path / FILE).write_bytes(text[:place] + bytes([text[place] ^ 4]) + text[place + 1 :])
            with pytest.raises(DamagedError, match=r"annotations.json is damaged"):
                read_annotations(tmp_path)
