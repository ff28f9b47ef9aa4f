"""Results are kept metric by metric: what is new is computed, and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from diagnose.rigidity.einstellung_runs import write_run
from diagnose.rigidity.test_measure import BASELINE, learner
from diagnose.test_foundation import record
from waterjar.diagnose import Result, cost, registry, rigidity
from waterjar.diagnose.array_file import packed, read_whole
from waterjar.diagnose.cache import FOLDER
from waterjar.diagnose.measuring import Loaded, Unit
from waterjar.diagnose.registry import families, forget, metric
from waterjar.diagnose.result import NEVER_REACHED
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError

ABOUT: dict[str, Any] = {"family": "cost", "long_name": "x", "formula": "x", "citation": "x", "needs": ("resources",)}
NEW = "a metric is new, or has another version: steps_recorded"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each metric was computed."""
    counted: Counter[str] = Counter()

    def counting(declared: registry.Metric) -> registry.Metric:
        def compute(*args: Any, **settings: Any) -> Any:
            counted[declared.name] += 1
            return declared.compute(*args, **settings)

        return replace(declared, compute=compute)

    families()
    for name, declared in list(registry._METRICS.items()):
        if declared.family in ("cost", "rigidity"):
            monkeypatch.setitem(registry._METRICS, name, counting(declared))
    return counted


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    yield
    forget("steps_recorded")
    forget("gain")


@pytest.fixture
def study(tmp_path: Path) -> waterjar.Study:
    folder = waterjar.create_study(tmp_path / "study")
    for seed in (1, 2):
        record(folder / f"sgd-{seed}", seed)
    return waterjar.open_study(folder)


def steps_recorded(resources: cost.ResourceUse) -> Result:
    return resources.each(float(len(resources.recorded["seconds"])))


def never(resources: cost.ResourceUse) -> Result:
    return Result.of(np.full(resources.repeats, np.nan), NEVER_REACHED)


def gain(pair: rigidity.Pair) -> Result:
    return Result.of(pair.final("normal").value + 1.0)


def kept(study: waterjar.Study) -> tuple[Diagnosis, set[str]]:
    found = diagnose(study, only=["cost"])
    return found, set(found.origin["cost"].values())


def test_a_metric_from_outside_is_computed_alone(study: waterjar.Study, calls: Counter[str]) -> None:
    before, _ = kept(study)
    assert set(calls.values()) == {2}  # of each of two runs
    metric("steps_recorded", **ABOUT)(steps_recorded)
    found, origin = kept(study)
    assert origin == {NEW} and set(calls.values()) == {2}
    assert found.results["cost"]["steps_recorded"].values.tolist() == [[4.0, 4.0]]
    xr.testing.assert_equal(found.results["cost"].drop_vars("steps_recorded"), before.results["cost"])
    xr.testing.assert_identical(found.results["cost"], cost.measure(study))
    assert kept(study)[1] == {"cached"}


def test_a_metric_of_another_version_is_computed_alone(
    study: waterjar.Study, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(study)
    newer = replace(registry._METRICS["flops"], version=2)
    monkeypatch.setitem(registry._METRICS, "flops", newer)
    found, origin = kept(study)
    assert origin == {"a metric is new, or has another version: flops"}
    assert calls["flops"] == 4 and {n for name, n in calls.items() if name != "flops"} == {2}
    xr.testing.assert_identical(found.results["cost"], cost.measure(study))


def test_reasons_do_not_outlive_the_version_that_had_them(study: waterjar.Study) -> None:
    metric("steps_recorded", **ABOUT)(never)
    assert "steps_recorded_reason" in kept(study)[0].results["cost"]
    metric("steps_recorded", **ABOUT, version=2)(steps_recorded)
    found, origin = kept(study)
    assert origin == {NEW} and "steps_recorded_reason" not in found.results["cost"]
    xr.testing.assert_identical(found.results["cost"], cost.measure(study))


def test_a_metric_that_was_taken_back_is_gone(study: waterjar.Study, calls: Counter[str]) -> None:
    before, _ = kept(study)
    metric("steps_recorded", **ABOUT)(steps_recorded)
    kept(study)
    forget("steps_recorded")
    found, origin = kept(study)
    assert origin == {"a metric is gone"} and set(calls.values()) == {2}
    xr.testing.assert_identical(found.results["cost"], before.results["cost"])
    assert kept(study)[1] == {"cached"}


def test_what_stands_beside_is_made_anew_of_old_and_new(tmp_path: Path, calls: Counter[str]) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
        write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
    study = waterjar.open_study(tmp_path)
    diagnose(study, only=["rigidity"])
    metric("gain", **{**ABOUT, "family": "rigidity", "needs": ("performance",)})(gain)
    found = diagnose(study, only=["rigidity"]).results["rigidity"]
    assert set(calls.values()) == {2}  # once a cell
    assert "gain_mean" in found
    xr.testing.assert_identical(found, rigidity.measure(study))


@pytest.mark.parametrize("damage", [b"", b"no zip", None])
def test_a_damaged_file_counts_as_none(study: waterjar.Study, calls: Counter[str], damage: bytes | None) -> None:
    before, _ = kept(study)
    for file in (study.path / FOLDER).glob("cost-*.npz"):
        file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
    found, origin = kept(study)
    assert origin == {"new"} and set(calls.values()) == {4}
    xr.testing.assert_identical(found.results["cost"], before.results["cost"])


@pytest.mark.parametrize("meta", [b'{"made_of":' + b"[" * 100_000, b"\xff", b"[]", b'{"made_of": {"format": 2}}', b"5"])
def test_a_file_that_was_forged_whole_counts_as_none(study: waterjar.Study, calls: Counter[str], meta: bytes) -> None:
    """Its checksum holds: whoever wrote it computed it anew."""
    diagnose(study, only=["cost"])
    before = Counter(calls)
    for file in (study.path / FOLDER).glob("*.npz"):
        file.write_bytes(packed({"__meta__": np.frombuffer(meta, np.uint8)}))
    diagnose(study, only=["cost"])
    assert calls == before + before


@pytest.mark.parametrize("what", ["bytes", "dims", "no repeat"])
def test_a_result_that_was_forged_whole_counts_as_none(study: waterjar.Study, calls: Counter[str], what: str) -> None:
    diagnose(study, only=["cost"])
    before = Counter(calls)
    for file in (study.path / FOLDER).glob("cost-*.npz"):
        arrays = read_whole(file)
        meta = json.loads(arrays["__meta__"].tobytes())
        for i, about in enumerate(meta["variables"].values()):
            if what == "bytes":
                arrays[str(i)] = arrays[str(i)].astype("S4")
            else:
                about["dims"] = [True if what == "dims" else f"{dim}_" for dim in about["dims"]]
        arrays["__meta__"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        file.write_bytes(packed(arrays))
    diagnose(study, only=["cost"])
    assert calls == before + before


def test_a_refusal_is_kept_and_a_new_metric_finds_all_others(
    study: waterjar.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(unit: Unit, settings: Any) -> Loaded:
        asked.append(unit.name)
        raise WaterjarError("not with me")

    with monkeypatch.context() as patched:
        patched.setitem(families(), "cost", replace(cost.FAMILY, load=refuse))
        for _ in range(2):
            with pytest.raises(WaterjarError, match="not with me"):
                diagnose(study, only=["cost"])
        assert asked == ["sgd-1"]
    with pytest.raises(WaterjarError, match="not with me"):
        diagnose(study, only=["cost"])
    metric("steps_recorded", **ABOUT)(steps_recorded)
    found, origin = kept(study)
    assert origin == {"new"}
    xr.testing.assert_identical(found.results["cost"], cost.measure(study))


def test_other_settings_are_kept_beside(tmp_path: Path) -> None:
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    study = waterjar.open_study(tmp_path)

    def origin(threshold: float) -> str:
        found = diagnose(study, only=["rigidity"], settings={"rigidity": {"threshold": threshold}})
        return next(iter(found.origin["rigidity"].values()))

    assert [origin(0.6), origin(0.7), origin(0.6), origin(0.7)] == ["new", "new", "cached", "cached"]
