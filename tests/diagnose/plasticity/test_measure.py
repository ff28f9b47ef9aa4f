"""Plasticity of recorded runs: labels, references, reasons, memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import waterjar
from recording import as_by_another_tool
from waterjar.diagnose import plasticity
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.snapshots import RunArrays
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run.codec import Storage
from waterjar.run.schema import REASONS, Variable

STEPS, REPEATS = 6, 2
OF_FEATURES = [
    "active_units",
    "dormant_units",
    "effective_rank",
    "feature_norm",
    "feature_variance",
    "spectral_stable_rank",
    "stable_rank",
]


def arrays(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """features by layer (snapshot, repeat, eval_set, sample, unit), weights by tensor (snapshot, repeat, ...)."""
    rng = np.random.default_rng(seed)
    features = {
        "late": np.maximum(rng.standard_normal((STEPS, REPEATS, 2, 7, 5)), 0).astype(np.float32),
        "early": rng.standard_normal((STEPS, REPEATS, 2, 7, 3)).astype(np.float32),
    }
    weights = {
        "head.weight": rng.standard_normal((STEPS, REPEATS, 4, 3)).astype(np.float32),
        "head.bias": rng.standard_normal((STEPS, REPEATS, 4)).astype(np.float32),
        "norm.running_mean": np.full((STEPS, REPEATS, 4), 100.0, np.float32),
        "norm.num_batches_tracked": np.full((STEPS, REPEATS), 5000.0, np.float32),
    }
    return features, weights


def record(
    path: Path, features: dict[str, np.ndarray], weights: dict[str, np.ndarray], once: Any = None, **settings: Any
) -> waterjar.Run:
    """Two tasks of three snapshots; the gradient's norm is the step."""
    options = {"seeds": [3, 4], "eval_sets": {"a": 0, "b": 1}, "tasks": ["first", "second"], **settings}
    with waterjar.Recorder(path, {"learner": "sgd"}, **options) as recorder:
        if once is not None:
            recorder.once("weights", **once)
        for step in range(STEPS):
            shot: dict[str, Any] = {}
            if features:
                shot["features"] = {layer: values[step] for layer, values in features.items()}
            if weights:
                shot["weights"] = {name: values[step] for name, values in weights.items()}
            task, epoch = divmod(step, 3)
            given = {"loss": np.ones(REPEATS)} | ({"gradient_norm": np.full(REPEATS, step)} if step else {})
            recorder.log(train_task=task, epoch=epoch + task, train=given, snapshot=shot or None)
    return waterjar.open_run(path)


@pytest.fixture
def run(tmp_path: Path) -> waterjar.Run:
    return record(tmp_path / "run", *arrays())


class TestFeatures:
    def test_every_repeat_snapshot_and_layer_by_itself(self, run: waterjar.Run) -> None:
        features, _ = arrays()
        found = plasticity.measure(run)
        assert found["layer"].values.tolist() == ["early", "late"]
        assert found["effective_rank"].dims == ("repeat", "snapshot", "layer")
        for name in ("effective_rank", "stable_rank", "dormant_units", "active_units", "feature_norm"):
            for layer, values in features.items():
                for step in range(STEPS):
                    for r in range(REPEATS):
                        alone = getattr(plasticity, name)(values[step, r].reshape(14, -1))
                        told = float(found[name].sel(repeat=r, snapshot=step, layer=layer))
                        assert told == float(alone)
        last = found["effective_rank"].isel(snapshot=-1).mean("layer")
        np.testing.assert_allclose(found["effective_rank_final"], last)
        assert found["effective_rank_final"].attrs["citation"].startswith("Roy")
        assert found["seed"].values.tolist() == [3, 4]

    def test_settings(self, run: waterjar.Run) -> None:
        features, _ = arrays()
        found = plasticity.measure(run, tau=0.9, energy=0.5, eval_sets=["b"])
        f = features["late"][2, 1, 1]
        assert float(found["stable_rank"].sel(repeat=1, snapshot=2, layer="late")) == float(
            plasticity.stable_rank(f, energy=0.5)
        )
        assert float(found["dormant_units"].sel(repeat=1, snapshot=2, layer="late")) == float(
            plasticity.dormant_units(f, tau=0.9)
        )
        with pytest.raises(WaterjarError, match="eval_sets 'c' is unknown"):
            plasticity.measure(run, eval_sets=["c"])

    def test_nan_is_nan_for_that_repeat_snapshot_and_layer_alone(self, tmp_path: Path) -> None:
        features, weights = arrays()
        clean = plasticity.measure(record(tmp_path / "clean", features, weights))
        features["late"][2, 1, 0, 3, 1] = np.nan
        features["late"][5, 0, 1, 0, 0] = np.inf
        weights["head.bias"][3, 0, 2] = np.nan
        found = plasticity.measure(record(tmp_path / "run", features, weights))
        of_weights = ["weight_magnitude", "weight_change_init", "weight_change_task"]
        for name in [*OF_FEATURES, *of_weights]:  # but no rank of weights: the bias, which is hurt here, is no matrix
            gone = np.isnan(found[name]) & ~np.isnan(clean[name])
            assert gone.any()
            np.testing.assert_array_equal(found[name].where(~gone), clean[name].where(~gone))
            codes = reasons_of(found, name).values[gone.values]
            assert set(codes) == {REASONS.index("not_a_number")}
        rank = np.isnan(found["effective_rank"])
        assert {tuple(place) for place in np.argwhere(rank.values)} == {(1, 2, 1), (0, 5, 1)}
        assert np.isnan(found["effective_rank_final"].values).tolist() == [True, False]

    def test_coordinates_and_task_ends(self, run: waterjar.Run) -> None:
        found = plasticity.measure(run)
        assert found["train_task"].values.tolist() == ["first"] * 3 + ["second"] * 3
        assert found["epoch"].values.tolist() == [0, 1, 2, 1, 2, 3]
        assert found["total_epoch"].values.tolist() == [0, 1, 2, 3, 4, 5]
        assert found["task_end"].values.tolist() == [False, False, True, False, False, True]


class TestWeights:
    def test_magnitude_and_changes_without_buffers(self, run: waterjar.Run) -> None:
        _, weights = arrays()
        w = np.concatenate([weights[name].reshape(STEPS, REPEATS, -1) for name in ("head.weight", "head.bias")], axis=2)
        w = w.astype(np.float64)
        found = plasticity.measure(run)
        np.testing.assert_allclose(found["weight_magnitude"], np.sqrt((w**2).mean(axis=2)).T)
        np.testing.assert_allclose(found["weight_change_init"], np.sqrt(((w - w[0]) ** 2).mean(axis=2)).T)
        start = w[[0, 0, 0, 2, 2, 2]]
        np.testing.assert_allclose(found["weight_change_task"], np.sqrt(((w - start) ** 2).mean(axis=2)).T)
        np.testing.assert_allclose(found["weight_change_task_final"], found["weight_change_task"].isel(snapshot=-1))
        assert found["parameter"].values.tolist() == ["head.weight", "head.bias"]
        bias = found["weight_magnitude_by_parameter"].sel(parameter="head.bias")
        np.testing.assert_allclose(bias, np.sqrt((weights["head.bias"].astype(float) ** 2).mean(axis=2)).T)
        everything = plasticity.measure(run, buffers=[])["weight_magnitude"]
        assert float(everything.min()) > 100  # what buffers would make of it

    def test_rank_of_each_matrix(self, run: waterjar.Run) -> None:
        _, weights = arrays()
        found = plasticity.measure(run)
        alone = plasticity.weight_effective_rank(weights["head.weight"][4, 1])
        rank = found["weight_effective_rank"].sel(repeat=1, snapshot=4)
        assert float(rank.sel(parameter="head.weight")) == float(alone)
        codes = reasons_of(found, "weight_effective_rank").sel(parameter="head.bias").values
        assert (codes == REASONS.index("undefined")).all()
        last = found["weight_effective_rank"].sel(parameter="head.weight").isel(snapshot=-1)
        np.testing.assert_allclose(found["weight_effective_rank_final"], last)

    def test_recorded_initial_weights_come_first(self, tmp_path: Path) -> None:
        _, weights = arrays()
        initial = {name: np.zeros_like(values[0]) for name, values in weights.items()}
        run = record(tmp_path / "run", {}, weights, once={"initial": initial})
        found = plasticity.measure(run)
        np.testing.assert_allclose(found["weight_change_init"], found["weight_magnitude"])
        assert (reasons_of(found, "feature_norm_final") == REASONS.index("not_recorded")).all()

    def test_without_a_start_there_is_no_change_since(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}) as recorder:
            for epoch in range(1, 4):  # the first snapshot is of a network that was trained already
                recorder.log(epoch=epoch, train={"loss": 1.0}, snapshot={"weights": np.full((1, 3), float(epoch))})
        found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
        assert found["parameter"].values.tolist() == ["all"]  # no table
        np.testing.assert_allclose(found["weight_magnitude"], [[1, 2, 3]])
        assert (reasons_of(found, "weight_change_init") == REASONS.index("not_recorded")).all()
        assert (reasons_of(found, "weight_change_init_final") == REASONS.index("not_recorded")).all()
        assert (reasons_of(found, "weight_effective_rank_final") == REASONS.index("undefined")).all()


class TestSteps:
    def test_gradient_norm_is_that_of_the_step(self, run: waterjar.Run) -> None:
        found = plasticity.measure(run)
        np.testing.assert_array_equal(found["gradient_norm"].isel(repeat=0), [np.nan, 1, 2, 3, 4, 5])
        assert reasons_of(found, "gradient_norm").values[0, 0] == REASONS.index("not_recorded")
        assert found["gradient_norm_final"].values.tolist() == [5, 5]

    def test_what_was_not_recorded_says_so(self, run: waterjar.Run, tmp_path: Path) -> None:
        found = plasticity.measure(run)
        assert (reasons_of(found, "sharpness") == REASONS.index("not_recorded")).all()
        assert (reasons_of(found, "random_label_epochs_final") == REASONS.index("not_recorded")).all()
        features, _ = arrays()
        alone = plasticity.measure(record(tmp_path / "features", features, {}))
        for name in ("weight_magnitude", "weight_change_task_final", "weight_effective_rank"):
            assert (reasons_of(alone, name) == REASONS.index("not_recorded")).all()
        np.testing.assert_array_equal(alone["feature_norm"], found["feature_norm"])

    def test_logged_nan_has_a_reason(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}) as recorder:
            for epoch, norm in enumerate((np.nan, 2.0)):
                recorder.log(epoch=epoch, train={"gradient_norm": norm}, snapshot={"weights": np.ones((1, 3))})
        found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
        assert reasons_of(found, "gradient_norm").values.tolist() == [[REASONS.index("not_a_number"), 0]]

    def test_probes_of_other_families_make_no_rows(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}, seeds=[0]) as recorder:
            for step in range(3):
                recorder.log(epoch=step, train={"loss": 1.0})
                if step == 0:
                    recorder.snapshot(weights=np.ones((1, 3)))
                recorder.probe("sharpness" if step == 1 else "somebody_elses", 2.0)
        found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
        assert found["snapshot"].values.tolist() == [0, 1]

    def test_probes_stand_at_their_steps(self, tmp_path: Path) -> None:
        dims = ("repeat", "m")
        variables = {f"probes/sharpness{end}": Variable(dims, "x") for end in ("", "_step", "_why")}
        with waterjar.Recorder(tmp_path / "run", {}, variables=variables) as recorder:
            for epoch in range(3):
                shot = {"weights": np.ones((1, 3))} if epoch != 1 else None
                recorder.log(epoch=epoch, train={"loss": 1.0}, snapshot=shot)
            recorder.once(
                "probes",
                sharpness=np.array([[7.0, np.nan]]),
                sharpness_step=np.array([[0, 1]]),
                sharpness_why=np.array([[0, REASONS.index("never_reached")]], np.uint8),
            )
        found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
        assert found["snapshot"].values.tolist() == [0, 1, 2]  # step 1 has a probe, but no snapshot
        np.testing.assert_array_equal(found["sharpness"], [[7.0, np.nan, np.nan]])
        codes = reasons_of(found, "sharpness").values[0].tolist()
        assert codes == [0, REASONS.index("never_reached"), REASONS.index("not_recorded")]
        assert reasons_of(found, "sharpness_final").values.tolist() == [REASONS.index("never_reached")]
        assert found["total_epoch"].values.tolist() == [0, 1, 2]


class TestStudies:
    def test_cells_and_seeds(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        for seed in (0, 2):
            record(folder / f"r{seed}", *arrays(seed), seeds=[seed, seed + 1])
        with waterjar.Recorder(folder / "other", {"learner": "er"}, eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": [0.5]})
        study = waterjar.open_study(folder)
        found = plasticity.measure(study)
        assert found["seed"].values.tolist() == [0, 1, 2, 3]
        one = plasticity.measure(waterjar.open_run(folder / "r2"))
        np.testing.assert_array_equal(found["stable_rank"].isel(cell=0).sel(seed=3), one["stable_rank"].sel(repeat=1))
        table = diagnose(study, only=["plasticity"]).table(["effective_rank", "sharpness"])
        assert len(table) == 8
        assert set(table[table.metric == "sharpness"].reason) == {"not_recorded"}
        assert table[table.metric == "effective_rank"].value.notna().all()

    def test_runs_with_and_without_weights(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "study")
        features, weights = arrays()
        alone = plasticity.measure(record(folder / "r0", features, weights, seeds=[0, 1]))
        record(folder / "r1", features, {}, seeds=[2, 3])
        found = plasticity.measure(waterjar.open_study(folder)).isel(cell=0)
        for name in ("weight_magnitude", "weight_effective_rank", "weight_magnitude_by_parameter"):
            np.testing.assert_array_equal(found[name].sel(seed=[0, 1]), alone[name])
            assert (reasons_of(found, name).sel(seed=[2, 3]) == REASONS.index("not_recorded")).all()

    def test_nothing_to_measure(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": [0.5]})
        with pytest.raises(WaterjarError, match="no features or weights"):
            plasticity.measure(waterjar.open_run(tmp_path / "run"))


class TestReading:
    @pytest.mark.parametrize("limit", [1, 150, 600, 10**6])
    def test_rows_of_any_chunks_and_repeats(self, tmp_path: Path, limit: int) -> None:
        features, weights = arrays()
        storage = Storage(snapshot_chunk_bytes=limit)
        run = record(tmp_path / "run", features, weights, storage=storage)
        arrays_of_run = RunArrays(run)
        for repeats in (slice(0, 2), slice(0, 1), slice(1, 2)):
            row = arrays_of_run.row("features/late/features", 4, repeats)
            np.testing.assert_array_equal(row, features["late"][4, repeats])
        for repeats in (slice(0, 3), slice(1, 3), slice(2, 5), slice(0, 5)):
            many = np.random.default_rng(0).standard_normal((2, 5, 1, 3, 4))
            path = tmp_path / f"many{repeats.start}{repeats.stop}"
            with waterjar.Recorder(path, {}, seeds=range(5), eval_sets=["a"], storage=storage) as recorder:
                for step in range(2):
                    shot = {"features": {"x": many[step]}}
                    recorder.log(epoch=step, train={"loss": np.ones(5)}, snapshot=shot)
            row = RunArrays(waterjar.open_run(path)).row("features/x/features", 1, repeats)
            np.testing.assert_array_equal(row, many[1, repeats])

    def test_blocks_of_repeats_give_the_same(self, run: waterjar.Run, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = plasticity.measure(run)
        from waterjar.diagnose.plasticity import loaded

        monkeypatch.setattr(loaded, "repeat_blocks", lambda n, _: [slice(i, i + 1) for i in range(n)])
        assert plasticity.measure(run).identical(whole)

    def test_a_run_rewritten_by_another_tool(self, run: waterjar.Run) -> None:
        whole = plasticity.measure(run)
        root = json.loads((run.path / "zarr.json").read_text())
        node = root["consolidated_metadata"]["metadata"]["features/late/features"]
        values = arrays()[0]["late"]
        shutil.rmtree(run.path / "features/late/features")
        with warnings.catch_warnings(action="ignore"):
            zarr.create_array(
                run.path,
                name="features/late/features",
                data=values,
                chunks=(2, 2, 2, 7, 5),
                compressors=zarr.codecs.GzipCodec(),
                dimension_names=node["dimension_names"],
            )
        written = json.loads((run.path / "features/late/features/zarr.json").read_text())
        root["consolidated_metadata"]["metadata"]["features/late/features"] = {**node, **written}
        as_by_another_tool(run.path, root)
        rewritten = waterjar.open_run(run.path)
        row = RunArrays(rewritten).row("features/late/features", 3, slice(1, 2))
        np.testing.assert_array_equal(row, values[3, 1:2])
        assert plasticity.measure(rewritten)["effective_rank"].equals(whole["effective_rank"])

    def test_a_missing_chunk_is_named(self, run: waterjar.Run) -> None:
        next(f for f in (run.path / "features/late/features/c/3").rglob("*") if f.is_file()).unlink()
        with pytest.raises(WaterjarError, match="could not read .*features/late"):
            plasticity.measure(run)

    @pytest.mark.slow
    def test_memory_does_not_grow_with_snapshots(self, tmp_path: Path) -> None:
        peaks = []
        code = (
            "import re, resource, sys, waterjar\n"
            "from pathlib import Path\n"
            "from waterjar.diagnose import plasticity\n"
            "plasticity.measure(waterjar.open_run(sys.argv[1]))\n"
            "status = Path('/proc/self/status')\n"  # what the system says of a process counts who started it, too
            "peak = re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1] if status.exists() else \\\n"
            "    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "print(int(peak) // 1024)\n"
        )
        rng = np.random.default_rng(0)
        for snapshots in (2, 14):
            path = tmp_path / str(snapshots)
            with waterjar.Recorder(path, {}, eval_sets=["a"], storage=Storage(compression="none")) as recorder:
                for step in range(snapshots):
                    values = rng.random((1, 1, 60_000, 16), dtype=np.float32)  # 4 MB
                    shot = {"features": {"x": values}, "weights": values.reshape(1, -1)}
                    recorder.log(epoch=step, train={"loss": 1.0}, snapshot=shot)
            told = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
            peaks.append(int(told.stdout))
        assert peaks[1] < peaks[0] + 40  # 12 more snapshots hold 92 MB
        assert peaks[1] < 1024


@pytest.mark.parametrize(("tasks", "visits"), [([0, 0, 0], [0, 0, 1]), ([0, 1, 0], [0, 1, 2])])
def test_ends_and_changes_are_those_of_visits(tmp_path: Path, tasks: list[int], visits: list[int]) -> None:
    """Weights 1, 3, 7: a task that is visited again at once, and one that is visited after another, without a shot."""
    with waterjar.Recorder(tmp_path / "run", {}, tasks=2) as recorder:
        for task, visit, weight in zip(tasks, visits, [1.0, 3.0, 7.0], strict=True):
            shot = {} if task else {"snapshot": {"weights": {"w": np.full((2, 2), weight)}}}
            recorder.log(train_task=task, visit=visit, epoch=visit + weight, train={"loss": 1.0}, **shot)
    found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
    ends = [False, True, True] if len(set(tasks)) == 1 else [True, True]
    assert found["task_end"].values.tolist() == ends
    before = 3.0 if len(set(tasks)) == 1 else 1.0  # at the end of the visit before
    assert found["weight_change_task"].values[0, -1] == pytest.approx(7.0 - before)
