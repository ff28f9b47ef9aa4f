"""Registry, results, labels, cache: what all families stand on."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from waterjar.diagnose import Result, cost, rigidity
from waterjar.diagnose import study as whole
from waterjar.diagnose.array_file import packed
from waterjar.diagnose.catalogue import catalogue
from waterjar.diagnose.labelled import concatenate, join_runs, reasons_of, side_by_side, variable
from waterjar.diagnose.measuring import Loaded, Unit
from waterjar.diagnose.registry import families, find_metric, forget, metric, metrics
from waterjar.diagnose.settings import dump
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

REPOSITORY = Path(__file__).resolve().parents[2]
MADE_OF = {"runs": {}, "metrics": {}, "version": 1, "beside": [], "format": 2}


def ask(family: str = "cost") -> Callable[[Any], Any]:
    """Declare a metric `asked`."""
    return metric("asked", family=family, long_name="x", formula="x", citation="x", needs=("resources",))


def of_resources(resources: cost.ResourceUse) -> Result:
    return resources.each(1.0)


def of_perhaps(resources: cost.ResourceUse | None) -> Result:
    raise NotImplementedError


def of_text(text: str) -> Result:
    raise NotImplementedError


def of_tau(resources: cost.ResourceUse, *, tau: float) -> Result:
    raise NotImplementedError


def of_source(resources: cost.ResourceUse, *, source: object) -> Result:
    raise NotImplementedError


def of_treshold(pair: rigidity.Pair, *, treshold: float) -> Result:
    raise NotImplementedError


def of_nowhere(resources: Nowhere) -> Result:  # type: ignore[name-defined] # noqa: F821
    raise NotImplementedError


def record(path: Path, seed: int = 0, steps: int = 4, seeds: list[int] | None = None, **config: object) -> Path:
    """A run that records accuracy and what it cost: 2 s, 10 images, 5 flops, 100 + step bytes a step."""
    settings = {"learner": "sgd", **config}
    with waterjar.Recorder(path, settings, seeds=seeds or [seed], eval_sets=["a"], tasks=["t"]) as recorder:
        for step in range(steps):
            recorder.log(
                epoch=step,
                performance={"accuracy": np.full((1, len(seeds or [seed])), 0.1 * step)},
                resources={"seconds": 2.0, "images": 10, "flops": 5.0, "peak_memory": 100.0 + step},
            )
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = waterjar.create_study(tmp_path_factory.mktemp("recorded") / "study")
    for learner in ("sgd", "er"):
        for seed in (1, 2) if learner == "sgd" else (2, 3):
            record(folder / f"{learner}-{seed}", seed, learner=learner)
    return folder


@pytest.fixture
def study(recorded: Path, tmp_path: Path) -> waterjar.Study:
    return waterjar.open_study(shutil.copytree(recorded, tmp_path / "study"))


class TestRegistry:
    def test_every_metric_is_declared_fully_and_belongs_to_a_family(self) -> None:
        for name, found in metrics().items():
            assert found.family in families()
            assert found.long_name and found.formula and found.citation and found.needs and found.units
            assert found.range[0] < found.range[1]
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name)

    def test_one_name_means_one_thing(self) -> None:
        declare = metric("seconds", family="other", long_name="x", formula="x", citation="x", needs=("train",))
        with pytest.raises(WaterjarError, match="declared in waterjar.diagnose.cost and in"):
            declare(of_resources)

    def test_unknown_names_give_the_nearest(self) -> None:
        with pytest.raises(WaterjarError, match="did you mean 'seconds'"):
            find_metric("second")
        with pytest.raises(WaterjarError, match="Known: none"):
            cost.FAMILY.settings({"tau": 1})

    def test_settings_are_the_keyword_arguments_of_measure(self) -> None:
        def measure(source: object, *, tau: float = 0.6, grid: tuple[float, ...] = (1.0,)) -> xr.Dataset:
            raise NotImplementedError

        family = replace(cost.FAMILY, name="f", signature=measure)
        assert dump(family.settings({"tau": 0.8})) == {"tau": 0.8, "grid": [1.0]}
        assert family.defaults == {"tau": 0.6, "grid": (1.0,)}
        with pytest.raises(WaterjarError, match="did you mean 'tau'"):
            family.settings({"tu": 1})

    def test_a_metric_that_reads_what_its_family_cannot_build_is_refused(self) -> None:
        with pytest.raises(WaterjarError) as refused:
            ask()(of_text)
        assert str(refused.value) == "metric 'asked' reads str, which cost cannot build: it has ResourceUse"
        assert "asked" not in metrics()

    def test_and_one_that_takes_a_setting_that_is_none(self) -> None:
        with pytest.raises(WaterjarError, match="metric 'asked': cost's setting 'tau' is unknown. Known: none"):
            ask()(of_tau)
        with pytest.raises(WaterjarError, match="metric 'asked': rigidity's setting 'treshold' is unknown: did you"):
            ask("rigidity")(of_treshold)
        with pytest.raises(WaterjarError, match="cost's setting 'source' is unknown"):  # no keyword argument
            ask()(of_source)

    def test_and_one_whose_first_argument_has_no_type(self) -> None:
        for untyped in (lambda: None, lambda resources: None):
            with pytest.raises(WaterjarError, match="metric 'asked': its first argument has no type"):
                ask()(untyped)
        with pytest.raises(WaterjarError, match="metric 'asked': the type of its input cannot be looked up"):
            ask()(of_nowhere)

    def test_and_one_of_a_family_that_there_is_not(self) -> None:
        families()
        with pytest.raises(WaterjarError, match="metric 'asked': family 'cots' is unknown: did you mean 'cost'"):
            ask("cots")(of_resources)
        assert "asked" not in metrics()

    def test_what_may_be_left_out_is_read_all_the_same(self) -> None:
        try:
            ask()(of_perhaps)
            assert find_metric("asked").input is cost.ResourceUse
        finally:
            forget("asked")

    def test_a_family_that_cannot_build_what_its_metrics_read_is_refused(self) -> None:
        with pytest.raises(WaterjarError, match="reads ResourceUse, which cost cannot build: it has str"):
            replace(cost.FAMILY, inputs={str: ("repeat",)})

    def test_labels_carry_the_arrow(self) -> None:
        assert find_metric("seconds").label == "seconds ↓"

    def test_docs_are_what_the_registry_says(self) -> None:
        assert (REPOSITORY / "docs/metrics.md").read_text() == catalogue(), "run `make catalogue`"


class TestLabels:
    def test_nan_gets_a_reason(self) -> None:
        found = variable("x", ["repeat"], np.array([1.0, np.nan, np.nan]), np.array([0, 6, 0], np.uint8))
        assert found["x_reason"].values.tolist() == [0, 6, REASONS.index("not_a_number")]
        with pytest.raises(ValueError, match="beside a number"):
            variable("x", ["repeat"], np.array([1.0]), np.array([6], np.uint8))

    def test_side_by_side_keeps_seeds_apart_and_says_what_is_missing(self, study: waterjar.Study) -> None:
        names = {name: cell for cell, name in study.cell_names.items()}
        parts = {
            names["sgd"]: xr.Dataset(
                {"x": ("repeat", [1.0, 2.0]), "n": ("repeat", [1, 2]), "word": ("repeat", ["p", "q"])},
                {"repeat": [0, 1], "seed": ("repeat", [1, 2])},
            ),
            names["er"]: xr.Dataset({"x": ("repeat", [3.0, 4.0])}, {"repeat": [0, 1], "seed": ("repeat", [2, 3])}),
        }
        joined = side_by_side(parts, study)
        assert joined["x"].sel(cell="sgd").values[:2].tolist() == [1.0, 2.0]
        assert joined["x"].sel(cell="er", seed=[2, 3]).values.tolist() == [3.0, 4.0]
        assert joined["x_reason"].sel(cell="sgd", seed=3) == REASONS.index("no_run")
        assert np.isnan(joined["n"].sel(cell="er")).all()
        assert joined["word"].sel(cell="er").values.tolist() == ["", "", ""]
        assert joined["cell_id"].values.tolist() == [names["sgd"], names["er"]]

    def test_joining_runs_of_different_length_fills_with_a_reason(self) -> None:
        long = xr.Dataset({"x": (("repeat", "step"), [[1.0, 2.0]])}, {"seed": ("repeat", [1]), "step": [0, 1]})
        short = xr.Dataset({"x": (("repeat", "step"), [[5.0]])}, {"seed": ("repeat", [2]), "step": [0]})
        joined = join_runs({"a": long, "b": short})
        np.testing.assert_array_equal(joined["x"], [[1.0, 2.0], [5.0, np.nan]])
        assert joined["x_reason"].values.tolist() == [[0, 0], [0, REASONS.index("not_recorded")]]
        assert joined["repeat"].values.tolist() == [0, 1]

    def test_a_variable_that_some_lack(self) -> None:
        one = xr.Dataset({"x": (("cell", "seed"), [[1.0]]), "flag": (("cell", "seed"), [[True]])}, {"seed": [1]})
        two = xr.Dataset({"y": (("cell", "seed"), [[2.0]])}, {"seed": [1]})
        joined = concatenate([one.assign_coords(cell=["a"]), two.assign_coords(cell=["b"])], "cell")
        assert reasons_of(joined, "y").values.tolist() == [[1], [0]]
        assert joined["flag"].values.tolist() == [[True], [False]]

    def test_a_comment_on_one_cell_is_none_on_the_others(self) -> None:
        def part(cell: str, **about: str) -> xr.Dataset:
            return xr.Dataset({"x": ("cell", [1.0], {"units": "epoch", **about})}, {"cell": [cell]})

        equal = part("a", comment="all values are equal")
        assert concatenate([equal, part("b")], "cell")["x"].attrs == {"units": "epoch"}
        assert concatenate([part("b"), equal], "cell")["x"].attrs == {"units": "epoch"}
        assert concatenate([equal, equal], "cell")["x"].attrs == equal["x"].attrs


class TestCost:
    def test_sums_maxima_and_shares(self, tmp_path: Path) -> None:
        run = waterjar.open_run(record(tmp_path / "r", seeds=[1, 2]))
        found = cost.measure(run)
        assert found["seconds"].values.tolist() == [4.0, 4.0]  # 4 steps of 2 s, two repeats at once
        assert found["images_per_second"].values.tolist() == [5.0, 5.0]
        assert found["peak_memory"].values.tolist() == [103.0, 103.0]
        assert [REASONS[c] for c in found["buffer_bytes_reason"].values] == ["not_recorded"] * 2
        assert found["seconds"].attrs["direction"] == "lower"

    def test_study_and_run_agree(self, study: waterjar.Study) -> None:
        found = cost.measure(study)
        assert found.sizes == {"cell": 2, "seed": 3}
        for entry in study.entries:
            alone = cost.measure(study.run(entry.name))
            assert found["flops"].sel(cell=study.cell_names[entry.cell_id], seed=entry.seeds[0]) == alone["flops"][0]

    def test_not_recorded(self, tmp_path: Path) -> None:
        with waterjar.Recorder(tmp_path / "r", {}, eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": [0.5]})
        with pytest.raises(WaterjarError, match="has recorded no resources: there is nothing to measure"):
            cost.measure(waterjar.open_run(tmp_path / "r"))


class TestDiagnose:
    def test_second_call_is_cached_and_equal(self, study: waterjar.Study) -> None:
        first, second = (diagnose(study, only=["cost"]) for _ in range(2))
        assert set(first.origin["cost"].values()) == {"new"}
        assert set(second.origin["cost"].values()) == {"cached"}
        xr.testing.assert_identical(first.results["cost"], second.results["cost"])
        assert set(second.seals.values()) == {"sealed"}
        assert set(diagnose(study, only=["seconds"], fresh=True).origin["cost"].values()) == {"new"}

    def test_cached_and_direct_results_agree(self, study: waterjar.Study) -> None:
        xr.testing.assert_identical(diagnose(study, only=["cost"]).results["cost"], cost.measure(study))

    def test_a_changed_run_is_noticed_and_its_seal_is_broken(self, study: waterjar.Study) -> None:
        diagnose(study, only=["cost"])
        file = next((study.path / "sgd-1/resources/seconds").rglob("c/*"))
        data = bytearray(file.read_bytes())
        data[3] ^= 1
        file.write_bytes(bytes(data))
        with pytest.raises(WaterjarError, match=r"sgd-1/resources/seconds/c/0 is damaged: it is not what was sealed"):
            diagnose(study, only=["cost"])
        again = diagnose(study, families=["cost"])
        assert again.seals["sgd-1"] == "tampered" and "is not what was sealed" in again.passed_over["cost"]
        others = diagnose(study.select(lambda entry: entry.name != "sgd-1"), only=["cost"])
        assert set(others.origin["cost"].values()) == {"cached"}

    def test_a_newer_family_is_noticed(self, study: waterjar.Study, monkeypatch: pytest.MonkeyPatch) -> None:
        diagnose(study, only=["cost"])
        monkeypatch.setitem(families(), "cost", replace(cost.FAMILY, version=2))
        assert set(diagnose(study, only=["cost"]).origin["cost"].values()) == {"the family has another version"}

    def test_a_new_run_costs_only_itself(self, study: waterjar.Study) -> None:
        diagnose(study, only=["cost"])
        record(study.path / "sgd-9", 9, learner="sgd")
        origin = diagnose(waterjar.open_study(study.path), only=["cost"]).origin["cost"]
        assert origin["sgd-9"] == "new" and origin["sgd-1"] == "cached"

    def test_damaged_cache_files_are_recomputed(self, study: waterjar.Study) -> None:
        first = diagnose(study, only=["cost"])
        for file in (study.path / whole.FOLDER).iterdir():
            file.write_bytes(b"no zip" if file.suffix == ".npz" else b"[")
        again = diagnose(study, only=["cost"])
        assert set(again.origin["cost"].values()) == {"new"}
        xr.testing.assert_identical(first.results["cost"], again.results["cost"])

    def test_a_single_bit_of_a_cache_file_is_noticed(self, study: waterjar.Study) -> None:
        first = diagnose(study, only=["cost"])
        file = next((study.path / whole.FOLDER).glob("cost-*.npz"))
        raw = file.read_bytes()
        directory = raw.rfind(b"PK\x01\x02")
        for place in (9, len(raw) // 2, directory + 8, directory + 10, directory + 32, len(raw) - 1):
            damaged = bytearray(raw)
            damaged[place] ^= 1
            file.write_bytes(bytes(damaged))
            again = diagnose(study, only=["cost"])
            assert "new" in again.origin["cost"].values()
            xr.testing.assert_identical(first.results["cost"], again.results["cost"])

    @pytest.mark.parametrize(
        "meta",
        [
            [],
            {},
            {"made_of": []},
            {"made_of": {"runs": {}}},
            {"made_of": {"runs": [], "metrics": {}, "version": 1, "beside": [], "format": 2}},
            {"made_of": {"runs": {}, "metrics": {}, "format": 2}, "variables": {}, "attrs": {}},
            {"made_of": MADE_OF, "variables": {}, "attrs": {}},
            {"made_of": MADE_OF, "variables": {"x": {"dims": [7]}}, "attrs": {}},
        ],
    )
    def test_strange_cache_files_are_recomputed(self, study: waterjar.Study, meta: object) -> None:
        first = diagnose(study, only=["cost"])
        for file in (study.path / whole.FOLDER).glob("*.npz"):
            file.write_bytes(packed({"__meta__": np.frombuffer(json.dumps(meta).encode(), np.uint8)}))
        (study.path / whole.FOLDER / "seals.json").write_text(json.dumps({"sgd-1": [], "sgd-2": ["x", "y"], "er-2": 3}))
        xr.testing.assert_identical(first.results["cost"], diagnose(study, only=["cost"]).results["cost"])

    def test_a_run_changed_with_its_time_set_back_is_noticed(self, study: waterjar.Study) -> None:
        diagnose(study, only=["cost"])
        file = next((study.path / "sgd-1/resources/seconds").rglob("c/*"))
        before, data = file.stat(), bytearray(file.read_bytes())
        data[3] ^= 1
        file.write_bytes(bytes(data))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert diagnose(study, families=["cost"]).seals["sgd-1"] == "tampered"

    def test_a_refusal_is_kept_and_given_up_when_runs_change(
        self, study: waterjar.Study, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []

        def refuse(unit: Unit, settings: object) -> Loaded:
            calls.append(unit)
            raise WaterjarError("not with me")

        monkeypatch.setitem(families(), "cost", replace(cost.FAMILY, scope="cell", load=refuse))
        for _ in range(2):
            assert diagnose(study).passed_over["cost"] == "not with me"
        assert len(calls) == 1
        record(study.path / "er-9", 9, learner="er")  # of the cell that refused, which comes first
        assert diagnose(waterjar.open_study(study.path)).passed_over["cost"] == "not with me"
        assert len(calls) == 2

    def test_an_older_format_is_recomputed(self, study: waterjar.Study, monkeypatch: pytest.MonkeyPatch) -> None:
        diagnose(study, only=["cost"])
        monkeypatch.setattr("waterjar.diagnose.cache._FORMAT", 99)
        assert "how results are kept" in next(iter(diagnose(study, only=["cost"]).origin["cost"].values()))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
    def test_a_read_only_study_is_measured_all_the_same(self, study: waterjar.Study) -> None:
        study.path.chmod(0o555)
        try:
            assert "not kept" in next(iter(diagnose(study, only=["cost"]).origin["cost"].values()))
        finally:
            study.path.chmod(0o755)

    def test_a_full_disk_costs_nothing_but_the_cache(
        self, study: waterjar.Study, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object, **__: object) -> str:
            raise WaterjarError("no space left")

        monkeypatch.setattr("waterjar.diagnose.cache.write_file", full)
        found = diagnose(study, only=["cost"])
        assert "not kept" in found.origin["cost"]["sgd-1"]
        assert float(found.results["cost"]["seconds"].sel(seed=1).max()) == 8.0

    def test_table_has_one_row_per_run_and_keeps_what_is_missing(self, study: waterjar.Study) -> None:
        table = diagnose(study, only=["cost"]).table(["seconds", "buffer_bytes"])
        assert len(table) == 8  # 4 runs x 2 metrics: no row for a seed that a cell was not run with
        assert set(table[table.metric == "buffer_bytes"].reason) == {"not_recorded"}
        assert table[table.metric == "seconds"].value.tolist() == [8.0] * 4

    def test_asked_for_by_name_a_refusal_is_an_error_else_a_note(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        with waterjar.Recorder(folder / "r", {"learner": "sgd"}, eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": [0.5]})
        study = waterjar.open_study(folder)
        found = diagnose(study)
        assert found.passed_over["cost"] == "no run has recorded resources"
        with pytest.raises(WaterjarError, match="metric 'seconds' has no value here: no run has recorded resources"):
            found.table(["seconds"])
        with pytest.raises(WaterjarError, match="no run has recorded resources"):
            diagnose(study, only=["seconds"])

    def test_bad_requests(self, study: waterjar.Study, tmp_path: Path) -> None:
        with pytest.raises(WaterjarError, match="did you mean 'cost'"):
            diagnose(study, only=["cst"])
        with pytest.raises(WaterjarError, match="family 'x' is unknown"):
            diagnose(study, settings={"x": {}})
        with pytest.raises(WaterjarError, match="no runs"):
            diagnose(waterjar.open_study(waterjar.create_study(tmp_path / "empty")))
        (study.path / "sgd-1/zarr.json").write_text(json.dumps({"node_type": "group", "zarr_format": 3})[:-3])
        with pytest.raises(WaterjarError, match="status != damaged"):
            diagnose(waterjar.open_study(study.path))

    def test_settings_are_plain(self) -> None:
        def measure(source: object, *, window: int = 3, levels: Any = (0.1,)) -> xr.Dataset:
            raise NotImplementedError

        family = replace(cost.FAMILY, name="f", signature=measure)
        given = dump(family.settings({"window": np.int64(2), "levels": np.array([0.5])}))
        assert given == {"window": 2, "levels": [0.5]} and type(given["window"]) is int
        with pytest.raises(WaterjarError, match="settings are numbers"):
            family.settings({"levels": object()})

    def test_progress_is_told(self, study: waterjar.Study) -> None:
        seen: list[tuple[str, int, int]] = []
        diagnose(study, only=["cost"], watch=lambda *step: seen.append(step))
        assert seen == [("cost", i, 4) for i in range(5)]


class TestCoordinates:
    def test_what_cells_disagree_about_is_kept_per_cell(self) -> None:
        def part(cell: str, steps: list[int], epochs: list[float], tasks: list[str]) -> xr.Dataset:
            return xr.Dataset(
                {"x": (("cell", "step"), [[1.0] * len(steps)])},
                {"cell": [cell], "step": steps, "epoch": ("step", epochs), "task": ("step", tasks)},
            )

        one, two = part("a", [0, 1], [0.0, 1.0], ["t1", "t1"]), part("b", [0, 1, 2], [0.0, 5.0, 6.0], ["t1"] * 3)
        joined = concatenate([one, two], "cell")
        np.testing.assert_array_equal(joined["epoch"].sel(cell="b"), [0.0, 5.0, 6.0])
        np.testing.assert_array_equal(joined["epoch"].sel(cell="a"), [0.0, 1.0, np.nan])
        assert joined["task"].dims == ("step",)  # they agree wherever both speak
        assert joined["task"].values.tolist() == ["t1"] * 3
