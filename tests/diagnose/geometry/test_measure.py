"""Geometry over the snapshots of runs: the same numbers as on arrays, in any order, on any executor, resumed."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from waterjar.diagnose import geometry
from waterjar.diagnose.coupling import coupled
from waterjar.diagnose.geometry import SnapshotGeometry, manifold_geometry, simulated_capacity
from waterjar.diagnose.measuring import Unit, measure_unit
from waterjar.diagnose.pieces import Parts, PieceRunner
from waterjar.diagnose.registry import forget, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.study import FOLDER, diagnose
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

SETTINGS = {"n_t": 20, "subsamples": None}
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(4, 2, 2, 12, 9)) + np.repeat(RNG.normal(size=(3, 9)) * 6, 4, axis=0)
"""(snapshot, repeat, eval_set, sample, unit)"""
LABELS = np.tile(np.repeat([0, 1, 2], 4), (2, 2, 1))


def record(path: Path, seeds: tuple[int, ...] = (7, 8), *, labels: bool = True, wild: bool = False) -> Path:
    with waterjar.Recorder(
        path, {"learner": "sgd"}, seeds=list(seeds), eval_sets={"a": 0, "b": 1}, tasks=["first", "second"]
    ) as recorder:
        if labels:
            recorder.once("probe_samples", label=LABELS[: len(seeds)])
        for step in range(4):
            features = FEATURES[step][: len(seeds)].copy()
            if wild and step == 2:
                features[0, 0, 0, 0] = np.nan
            recorder.log(
                train_task="first" if step < 2 else "second",
                epoch=step if step < 2 else step - 1,
                performance={"accuracy": np.full((2, len(seeds)), 0.5)},
                snapshot={"features": {"one": features, "two": features[..., :5] + 1}},
            )
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Run:
    return waterjar.open_run(record(tmp_path_factory.mktemp("geometry") / "run"))


def measured(run: waterjar.Run, pieces: PieceRunner, **settings: Any) -> xr.Dataset:
    unit = Unit(run.path.name, (run,), "", pieces=pieces)
    return measure_unit(geometry.FAMILY, unit, geometry.FAMILY.settings({**SETTINGS, **settings}))


def stream(seed: int, *words: int) -> np.random.SeedSequence:
    key = [w for word in words for w in (word, 0)]
    return np.random.SeedSequence(seed, spawn_key=(*key, 0))


def test_the_labelled_numbers_are_those_of_the_arrays(run: waterjar.Run) -> None:
    found = geometry.measure(run, **SETTINGS, simulate_every=2, n_trials=30)
    assert found["capacity"].dims == ("repeat", "snapshot", "layer")
    for step, repeat in ((0, 0), (3, 1)):
        points, labels = FEATURES[step, repeat].reshape(-1, 9), LABELS[repeat].ravel().astype(str)
        rng = stream(0, (7, 8)[repeat], 1 if step < 2 else 2, step)
        alone = manifold_geometry(points, labels, n_t=20, rng=rng)
        place = {"snapshot": step, "repeat": repeat, "layer": "one"}
        for name in ("capacity", "radius", "dimension", "center_axis_alignment", "axis_alignment_inner"):
            assert float(found[name].sel(place)) == float(alone[name]), name
            assert float(found[f"{name}_se"].sel(place)) == alone[name].standard_error, name
        np.testing.assert_array_equal(found["manifold_radius"].sel(place), alone["manifold_radius"])
        simulated = simulated_capacity(points, labels, n_trials=30, rng=rng)
        assert float(found["simulated_capacity"].sel(place)) == float(simulated["capacity"])
        error = abs(float(simulated["capacity"]) - float(alone["capacity"])) / float(alone["capacity"])
        assert float(found["capacity_relative_error"].sel(place)) == pytest.approx(error)
    # total epochs 0, 1, 2, 3: every second one, and the last
    there = np.isfinite(found["simulated_capacity"].isel(repeat=0, layer=0).values)
    assert there.tolist() == [True, False, True, True]
    assert REASONS[int(found["simulated_capacity_reason"].isel(repeat=0, layer=0, snapshot=1))] == "not_asked"
    last = found["capacity"].isel(snapshot=-1).mean("layer")
    np.testing.assert_allclose(found["capacity_final"], last)
    assert found["capacity"].attrs["direction"] == "higher"


def test_alone_or_among_others_in_threads_or_processes_the_bits_are_the_same(run: waterjar.Run) -> None:
    whole = measured(run, PieceRunner())
    xr.testing.assert_equal(whole, geometry.measure(run, **SETTINGS))
    with ThreadPoolExecutor(2) as pool:
        xr.testing.assert_identical(whole, measured(run, PieceRunner(pool)))
    with ProcessPoolExecutor(1) as pool:
        xr.testing.assert_identical(whole, measured(run, PieceRunner(pool)))
    one = geometry.measure(run, layers=["two"], **SETTINGS)
    xr.testing.assert_equal(one["capacity"], whole["capacity"].sel(layer=["two"]))


def test_a_seed_has_its_own_draws_and_keeps_them_in_any_run(tmp_path: Path, run: waterjar.Run) -> None:
    alone = geometry.measure(waterjar.open_run(record(tmp_path / "alone", seeds=(7,))), **SETTINGS)
    together = geometry.measure(run, **SETTINGS)
    np.testing.assert_array_equal(alone["capacity"].isel(repeat=0), together["capacity"].isel(repeat=0))


def test_common_draws_are_the_same_at_all_snapshots(run: waterjar.Run) -> None:
    found = geometry.measure(run, draws="common", **SETTINGS)
    points, labels = FEATURES[2, 0].reshape(-1, 9), LABELS[0].ravel().astype(str)
    alone = manifold_geometry(points, labels, n_t=20, rng=stream(0, 7))
    assert float(found["capacity"].sel(snapshot=2, repeat=0, layer="one")) == float(alone["capacity"])


def test_manifolds_of_tasks_and_of_some_sets(run: waterjar.Run) -> None:
    apart = geometry.measure(run, manifolds="task_class", **SETTINGS)
    assert apart["manifold"].values.tolist() == ["a:0", "a:1", "a:2", "b:0", "b:1", "b:2"]
    assert geometry.measure(run, eval_sets=["b"], **SETTINGS)["manifold"].values.tolist() == ["0", "1", "2"]


def test_repeats_with_other_classes_have_their_own_manifolds(tmp_path: Path) -> None:
    """The first repeat tells 0, 1, 2 apart, the second 0, 5 and no more: neither number lands under another name."""
    labels = LABELS.copy()
    labels[1] = np.where(labels[1] == 0, 0, 5)
    with waterjar.Recorder(
        tmp_path / "run", {}, seeds=[7, 8], eval_sets={"a": 0, "b": 1}, tasks=["first", "second"]
    ) as recorder:
        recorder.once("probe_samples", label=labels)
        recorder.log(
            train_task="first", epoch=0, performance={"accuracy": np.zeros((2, 2))},
            snapshot={"features": {"one": FEATURES[0]}},
        )  # fmt: skip
    found = geometry.measure(waterjar.open_run(tmp_path / "run"), **SETTINGS)
    assert found["manifold"].values.tolist() == ["0", "1", "2", "5"]
    radius = found["manifold_radius"].isel(snapshot=0, layer=0)
    alone = [
        manifold_geometry(
            FEATURES[0, r].reshape(-1, 9), labels[r].ravel().astype(str), n_t=20, rng=stream(0, 7 + r, 1, 0)
        )
        for r in range(2)
    ]
    np.testing.assert_array_equal(radius.sel(repeat=0), [*alone[0]["manifold_radius"].value, np.nan])
    zero, five = alone[1]["manifold_radius"].value
    np.testing.assert_array_equal(radius.sel(repeat=1), [zero, np.nan, np.nan, five])
    why = found["manifold_radius_reason"].isel(snapshot=0, layer=0)
    assert [REASONS[int(code)] for code in why.sel(repeat=0)] == ["present"] * 3 + ["empty_set"]
    assert [REASONS[int(code)] for code in why.sel(repeat=1)] == ["present", "empty_set", "empty_set", "present"]


@pytest.mark.parametrize("what", ["one class", "zero"])
def test_reasons_of_manifolds_are_those_of_the_snapshot(tmp_path: Path, what: str) -> None:
    with waterjar.Recorder(
        tmp_path / "run", {}, seeds=[7, 8], eval_sets={"a": 0, "b": 1}, tasks=["first", "second"]
    ) as recorder:
        recorder.once("probe_samples", label=LABELS * (what == "zero"))
        recorder.log(
            train_task="first", epoch=0, performance={"accuracy": np.zeros((2, 2))},
            snapshot={"features": {"one": FEATURES[0] * (what != "zero")}},
        )  # fmt: skip
    found = geometry.measure(waterjar.open_run(tmp_path / "run"), **SETTINGS)
    for name in ("capacity", "manifold_dimension", "manifold_radius", "nonunique_share"):
        assert np.isnan(found[name]).all()
        assert {REASONS[int(code)] for code in found[f"{name}_reason"].values.ravel()} == {"undefined"}


def test_share_of_draws_with_other_solutions_is_beside_the_others(run: waterjar.Run) -> None:
    found = geometry.measure(run, **SETTINGS)
    assert found["nonunique_share"].dims == ("repeat", "snapshot", "layer")
    assert "not unique" in found["nonunique_share"].attrs["long_name"]
    assert (found["nonunique_share"].sel(layer="one") >= 0).all()


def test_anchors_that_are_a_choice_are_missing_in_the_table(tmp_path: Path) -> None:
    """In layer `few` of three units the cone of 24 points is everything, in `same` points are parallel."""
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[7, 8], eval_sets={"a": 0, "b": 0}, tasks=["first"]) as recorder:
        recorder.once("probe_samples", label=LABELS)
        few = np.random.default_rng(1).standard_normal((2, 2, 12, 3))
        same = np.random.default_rng(1).standard_normal((2, 2, 12, 40))
        same[:, 1] = 2 * same[:, 0]
        recorder.log(
            train_task="first", epoch=0, performance={"accuracy": np.zeros((2, 2))},
            snapshot={"features": {"few": few, "same": same, "one": FEATURES[0]}},
        )  # fmt: skip
    found = geometry.measure(waterjar.open_run(tmp_path / "run"), **SETTINGS)
    of_few, of_same, of_one = (found.sel(layer=name) for name in ("few", "same", "one"))
    for name in ("radius", "axis_alignment", "capacity_approx", "utility", "inactive_share", "manifold_dimension"):
        assert {REASONS[code] for code in of_few[f"{name}_reason"].values.ravel()} == {"inside_cone"}, name
        assert {REASONS[code] for code in of_same[f"{name}_reason"].values.ravel()} == {"not_unique"}, name
        assert np.isfinite(of_one[name]).all(), name
    assert np.isfinite(of_few["capacity"]).all() and np.isfinite(of_few["capacity_se"]).all()
    assert (of_few["inside_share"] > 0.9).all() and (of_one["inside_share"] == 0).all()
    assert np.isfinite(of_same["capacity"]).all() and (of_same["inside_share"] == 0).all()
    assert (of_same["nonunique_share"] > 0.9).all() and (of_one["nonunique_share"] == 0).all()
    assert (found["left_out_draws"] == 0).all()
    assert {REASONS[code] for code in found["radius_final_reason"].values} == {"not_unique"}


def test_what_goes_together_by_arithmetic() -> None:
    """capacity = utility (1 + R^-2) / D; the formula without utility; b and c; the two conventions of an alignment."""
    for one, other in (
        ("capacity", "capacity_approx"),
        ("capacity", "dimension"),
        ("capacity", "radius"),
        ("capacity", "utility"),
        ("capacity_approx", "dimension"),
        ("capacity_approx", "radius"),
        ("dimension", "radius"),
        ("radius", "utility"),
        ("capacity_relative_error", "simulated_capacity"),
        ("axis_alignment", "axis_alignment_inner"),
        ("center_alignment", "center_alignment_inner"),
        ("center_axis_alignment", "center_axis_alignment_inner"),
    ):
        assert coupled(one, other) and coupled(other, one), (one, other)
    for one, other in (
        ("capacity", "simulated_capacity"),
        ("radius", "axis_alignment"),
        ("capacity", "inactive_share"),
    ):
        assert not coupled(one, other), (one, other)


def test_subsamples_are_the_same_over_time(run: waterjar.Run) -> None:
    found = geometry.measure(run, n_t=20, subsamples=3, draws="common")
    again = geometry.measure(run, n_t=20, subsamples=3, draws="common", eval_sets=["a", "b"])
    xr.testing.assert_equal(found["capacity"], again["capacity"])
    few = geometry.measure(run, n_t=20, subsamples=1, draws="common")
    assert float(few["capacity"].mean()) > float(found["capacity"].mean())  # single points are easier to separate


def test_nan_touches_its_snapshot_and_repeat_alone(tmp_path: Path, run: waterjar.Run) -> None:
    wild = geometry.measure(waterjar.open_run(record(tmp_path / "wild", wild=True)), **SETTINGS)
    sound = geometry.measure(run, **SETTINGS)
    gone = np.isnan(wild["capacity"])
    assert gone.sel(snapshot=2, repeat=0).all() and int(gone.sum()) == 2  # both layers
    assert REASONS[int(wild["capacity_reason"].sel(snapshot=2, repeat=0, layer="one"))] == "not_a_number"
    xr.testing.assert_equal(wild["capacity"].where(~gone, 0), sound["capacity"].where(~gone, 0))


def test_stopped_and_begun_again_it_goes_on(run: waterjar.Run, tmp_path: Path) -> None:
    whole = measured(run, PieceRunner())

    def stop(done: int, total: int) -> None:
        assert total == 8
        if done == 5:
            raise KeyboardInterrupt

    parts = Parts(tmp_path / "parts")
    with pytest.raises(KeyboardInterrupt):
        measured(run, PieceRunner(watch=stop, parts=parts))
    kept = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "parts").glob("*.npz")}
    assert len(kept) == 5
    xr.testing.assert_identical(whole, measured(run, PieceRunner(parts=parts)))
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "parts").glob("*.npz")}
    assert {name: after[name] for name in kept} == kept and len(after) == 8
    next((tmp_path / "parts").glob("*.npz")).write_bytes(b"damaged")
    xr.testing.assert_identical(whole, measured(run, PieceRunner(parts=parts)))
    parts.clear()
    assert not (tmp_path / "parts").exists()


def test_through_the_front_door(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    record(folder / "one", seeds=(7,))
    record(folder / "two", seeds=(8,))
    seen: list[float] = []
    study = waterjar.open_study(folder)
    with ThreadPoolExecutor(2) as pool:
        found = diagnose(
            study,
            only=["capacity"],
            settings={"geometry": SETTINGS},
            executor=pool,
            watch=lambda _, done, __: seen.append(done),
        )
    assert seen == sorted(seen) and seen[-1] == 2 and len(set(seen)) > 8
    assert not (folder / FOLDER / "parts").exists() or not list((folder / FOLDER / "parts").iterdir())
    table = found.table(["capacity"])
    assert table.seed.tolist() == [7, 8] and table.value.notna().all()
    assert set(diagnose(study, only=["geometry"], settings={"geometry": SETTINGS}).origin["geometry"].values()) == {
        "cached"
    }


def test_a_metric_from_outside_is_one_function(run: waterjar.Run) -> None:
    about = {"family": "geometry", "formula": "-", "citation": "-", "needs": ("features",)}

    @metric("radius_spread", long_name="spread of radii", summary="radius_spread_final", **about)  # type: ignore[arg-type]
    def radius_spread(geometry: SnapshotGeometry) -> Result:
        return Result(float(np.ptp(geometry["manifold_radius"].value)), n=geometry["radius"].n)

    @metric("center_spread", long_name="spread of centres", dims=("manifold",), **about)  # type: ignore[arg-type]
    def center_spread(geometry: SnapshotGeometry, *, center: bool) -> Result:
        assert not center
        return geometry.over_manifolds("manifold_dimension")

    try:
        found = geometry.measure(run, **SETTINGS)
    finally:
        forget("radius_spread")
        forget("center_spread")
    radius = found["manifold_radius"]
    xr.testing.assert_equal(
        found["radius_spread"].drop_attrs(), (radius.max("manifold") - radius.min("manifold")).rename("radius_spread")
    )
    np.testing.assert_allclose(found["radius_spread_final"], found["radius_spread"].isel(snapshot=-1).mean("layer"))
    np.testing.assert_array_equal(found["center_spread"], found["manifold_dimension"])
    assert "radius_spread" not in geometry.measure(run, **SETTINGS)


def test_a_run_without_any_standard_error_says_so(tmp_path: Path) -> None:
    """Beside others in a study, what it lacks would else be told as not recorded."""
    one = tmp_path / "run"
    with waterjar.Recorder(one, {}, seeds=[7, 8], eval_sets={"a": 0, "b": 1}, tasks=["first", "second"]) as recorder:
        recorder.once("probe_samples", label=LABELS)
        recorder.log(
            train_task="first", epoch=0, performance={"accuracy": np.zeros((2, 2))},
            snapshot={"features": {"one": FEATURES[0] * np.nan}},
        )  # fmt: skip
    found = geometry.measure(waterjar.open_run(one), **SETTINGS)
    assert np.isnan(found["capacity_se"]).all()
    assert {REASONS[code] for code in found["capacity_se_reason"].values.ravel()} == {"not_a_number"}


def test_what_cannot_be_is_said(run: waterjar.Run, tmp_path: Path) -> None:
    for settings, message in (
        ({"manifolds": "klass"}, "geometry: manifolds: name 'klass' is unknown: did you mean 'class'"),
        ({"draws": "comon"}, "did you mean 'common'"),
        ({"subsamples": 0}, "setting 'subsamples' is 0: expected a whole number, at least 1, or null"),
        ({"simulate_every": 0}, "expected a number above 0, or null"),
        ({"simulate_every": "often"}, "expected a number above 0, or null"),
        ({"layers": ["thre"]}, "layers 'thre' is unknown"),
        ({"eval_sets": ["c"]}, "eval_sets 'c' is unknown"),
        ({"seed": -1}, "setting 'seed' is -1: expected a whole number from 0 on"),
        ({"n_t": 2.5}, "setting 'n_t' is 2.5: expected a whole number, at least 2 draws"),
        ({"n_t": 1}, "setting 'n_t' is 1: expected a whole number, at least 2 draws"),
        ({"subsamples": 2.5}, "setting 'subsamples' is 2.5: expected a whole number"),
        ({"n_trials": 0}, "setting 'n_trials' is 0: expected a whole number, at least 1"),
        ({"layers": []}, "expected a list of names, each once"),
        ({"eval_sets": []}, "expected a list of names, each once"),
        ({"layers": ["one", "one"]}, "expected a list of names, each once"),
        ({"layers": 0}, "setting 'layers' is 0: expected a list of names"),
        ({"center": 1}, "setting 'center' is 1: expected true or false"),
        ({"inactive": "foo"}, "inactive: name .foo. is unknown"),
        ({"dichotomies": "unifrom"}, "did you mean .uniform."),
    ):
        with pytest.raises(WaterjarError, match=message):
            geometry.measure(run, **{**SETTINGS, **settings})  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="has recorded no features and probe_samples"):
        geometry.measure(waterjar.open_run(record(tmp_path / "bare", labels=False)), **SETTINGS)
