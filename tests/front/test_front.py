"""The front door: the same tables from every source, by hand and by scipy."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import waterjar as wj
from front.two_methods import AFTER, LEARNED, write
from waterjar import front
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError
from waterjar.run.notebook import FrontDoor

FORGOTTEN = {name: [LEARNED - ends[0] for ends in by_seed.values()] for name, by_seed in AFTER.items()}


class TestSummary:
    def test_numbers_are_means_over_seeds(self, kept: Path) -> None:
        table = wj.summary(kept, ["average_accuracy", "forgetting"], numbers=True)
        assert table.index.tolist() == ["average_accuracy", "forgetting"]
        for method, by_seed in AFTER.items():
            ends = [np.mean(ends) for ends in by_seed.values()]
            assert table.loc["average_accuracy", (method, "mean")] == pytest.approx(np.mean(ends))
            assert table.loc["forgetting", (method, "mean")] == pytest.approx(np.mean(FORGOTTEN[method]))
            assert table.loc["forgetting", (method, "std")] == pytest.approx(np.std(FORGOTTEN[method], ddof=1))
            assert table.loc["forgetting", (method, "n")] == 3

    def test_text_says_mean_interval_and_n(self, kept: Path) -> None:
        table = wj.summary(kept)
        (line,) = [name for name in table.index if name.startswith("average_accuracy")]
        assert line == "average_accuracy (ACC) ↑" and table.columns.tolist() == ["naive", "replay"]
        mean = np.mean([np.mean(ends) for ends in AFTER["naive"].values()])
        assert table.loc[line, "naive"].startswith(f"{mean:.3f} [") and table.loc[line, "naive"].endswith("], n = 3")
        assert "95 %" in table.attrs["interval"]

    def test_the_same_from_every_source(self, kept: Path) -> None:
        study = wj.open_study(kept)
        tables = [wj.summary(source) for source in (kept, str(kept), study, study.measure())]
        tables += [study.summary(), study.measure().summary()]
        for table in tables[1:]:
            pd.testing.assert_frame_equal(table, tables[0])

    def test_a_run_is_a_study_of_one(self, kept: Path) -> None:
        run = wj.open_run(kept / "0")
        table = run.summary("average_accuracy", numbers=True)
        assert table.loc["average_accuracy", ("naive", "mean")] == pytest.approx(np.mean(AFTER["naive"][1]))
        assert table.loc["average_accuracy", ("naive", "n")] == 1
        pd.testing.assert_frame_equal(table, wj.summary(kept / "0", "average_accuracy", numbers=True))

    def test_families_and_all(self, kept: Path) -> None:
        whole, family = wj.summary(kept, "all"), wj.summary(kept, "continual")
        assert set(family.index) <= set(whole.index) and len(family) > len(wj.summary(kept))

    def test_what_is_missing_says_why(self, kept: Path) -> None:
        table = wj.summary(kept, "intransigence")
        assert table.iloc[0, 0].startswith("3 of 3 ")

    def test_a_seed_that_lacks_a_value_is_counted(self, tmp_path: Path) -> None:
        write(tmp_path, {"naive": {1: [0.25, 0.75], 2: [0.5, float("nan")]}})
        table = wj.summary(tmp_path, "average_accuracy", numbers=True)
        assert table.loc["average_accuracy", ("naive", "n")] == 1
        assert "1 of 2" in table.loc["average_accuracy", ("naive", "missing")]
        assert "1 of 2" in wj.summary(tmp_path, "average_accuracy").iloc[0, 0]

    def test_wrong_names(self, kept: Path) -> None:
        with pytest.raises(WaterjarError, match="did you mean 'forgetting'"):
            wj.summary(kept, "forgeting")
        with pytest.raises(WaterjarError, match="no run has recorded"):
            wj.summary(kept, "dormant_units")
        with pytest.raises(WaterjarError, match="no run has recorded"):
            wj.summary(wj.measure(kept), "dormant_units")
        with pytest.raises(WaterjarError, match=r"expected a path, a run .* a study"):
            wj.summary(3)  # type: ignore[arg-type]
        with pytest.raises(WaterjarError, match="not a directory"):
            wj.summary(kept / "nowhere")

    def test_of_nothing(self, tmp_path: Path) -> None:
        with wj.Recorder(tmp_path / "run", {}, provenance=False) as recorder:
            recorder.log(epoch=0, train={"learning_rate": 1.0})
        with pytest.raises(WaterjarError, match=r"nothing could be measured(.|\n)*continual: "):
            wj.summary(tmp_path)


class TestMeasure:
    def test_settings_in_every_spelling(self, kept: Path) -> None:
        ways = [{"integrator": "auc"}, {"continual.integrator": "auc"}, {"continual": {"integrator": "auc"}}]
        for settings in ways:
            assert wj.measure(kept, "continual", settings=settings).settings("continual")["integrator"] == "auc"
        with pytest.raises(WaterjarError, match="given twice"):
            wj.measure(kept, settings={**ways[1], **ways[2]})
        with pytest.raises(WaterjarError, match="expected a mapping"):
            wj.measure(kept, settings="auc")  # type: ignore[arg-type]

    def test_a_diagnosis_is_not_measured_again_and_keeps_its_settings(self, kept: Path) -> None:
        found = wj.measure(kept, "continual", settings={"integrator": "auc"})
        assert wj.measure(found) is found
        again = found.measure("continual", settings={"eps": 1e-3})
        assert again.settings("continual")["integrator"] == "auc" and again.settings("continual")["eps"] == 1e-3

    def test_families_are_tried_and_only_must_be(self, kept: Path) -> None:
        assert "rigidity" in wj.measure(kept, families=["rigidity", "continual"]).passed_over
        with pytest.raises(WaterjarError):
            wj.measure(kept, "rigidity")


class TestCompare:
    def test_it_is_a_paired_t_test(self, kept: Path) -> None:
        table = wj.compare(kept, "forgetting", baseline="naive").set_index("cell")
        expected = stats.ttest_rel(FORGOTTEN["replay"], FORGOTTEN["naive"])
        assert table.loc["replay", "p"] == pytest.approx(expected.pvalue)
        assert table.loc["replay", "difference"] == pytest.approx(
            np.mean(FORGOTTEN["replay"]) - np.mean(FORGOTTEN["naive"])
        )
        low, high = expected.confidence_interval()
        assert table.loc["replay", ["low", "high"]].tolist() == pytest.approx([low, high])
        assert table.loc["replay", "improvement"] == 1.0 and set(table["baseline"]) == {"naive"}

    def test_another_baseline_turns_the_sign(self, kept: Path) -> None:
        one = wj.compare(kept, "forgetting", "naive").set_index("cell").loc["replay", "difference"]
        other = (
            wj.open_study(kept).compare("forgetting", baseline="replay").set_index("cell").loc["naive", "difference"]
        )
        assert one == pytest.approx(-other)

    def test_every_column(self, kept: Path) -> None:
        assert {"roots", "n_unmatched", "std"} <= set(wj.compare(kept, "forgetting", every_column=True))

    def test_it_says_over_how_many_tests_p_is_corrected(self, kept: Path) -> None:
        one, all_of_them = wj.compare(kept, "forgetting"), wj.compare(kept)
        assert set(one["tests"]) == {one.attrs["tests"]} == {1}
        tests = all_of_them.attrs["tests"]
        assert tests == all_of_them["p"].notna().sum() > 1 and set(all_of_them["tests"]) == {tests}
        assert "not corrected" in one.attrs["interval"] and "not corrected" in str(wj.compare.__doc__)

    def test_an_unknown_baseline(self, kept: Path) -> None:
        with pytest.raises(WaterjarError, match="naive"):
            wj.compare(kept, "forgetting", baseline="naiv")


class TestReport:
    def test_it_is_written_where_the_command_writes_it(self, mine: Path) -> None:
        pytest.importorskip("plotly")
        study = wj.open_study(mine)
        assert study.report() == mine / "report.html" and "naive" in (mine / "report.html").read_text()
        assert wj.open_run(mine / "0").report(format="markdown") == mine / "0-report.md"
        assert wj.report(mine, mine / "x.md", title="Mine") == mine / "x.md"
        assert (mine / "x.md").read_text().startswith("# Mine")

    def test_of_a_diagnosis_it_has_its_numbers(self, mine: Path) -> None:
        found = wj.measure(mine, "continual", settings={"integrator": "auc"})
        text = found.report(mine / "x.md").read_text()
        assert "auc" in text and "auc" not in wj.report(mine, mine / "y.md").read_text()

    def test_wrong_format(self, mine: Path) -> None:
        with pytest.raises(WaterjarError, match="did you mean 'html'"):
            wj.report(mine, format="htlm")


def test_a_metric_without_a_value_is_told_as_it_was_asked_for(mine: Path) -> None:
    for word in ("AD", "ad"):
        with pytest.raises(WaterjarError, match=f"metric '{word}' has no value here: it compares"):
            wj.compare(mine, word)
    assert set(wj.compare(mine, ["ACC", "forgetting"])["metric"]) == {"average_accuracy", "forgetting"}


def test_metrics_has_directions_and_definitions() -> None:
    table = wj.metrics()
    assert (
        table.loc["forgetting", "direction"] == "lower is better" and table.loc["average_accuracy", "symbol"] == "ACC"
    )
    assert (table["definition"].str.len() > 0).all() and table.index.is_unique
    assert set(wj.metrics("drift")["family"]) == {"drift"}
    with pytest.raises(WaterjarError, match="did you mean 'continual'"):
        wj.metrics("continal")


def test_methods_have_the_signatures_of_the_functions() -> None:
    for name in ("measure", "summary", "compare", "report"):
        (_, *own), (_, *theirs) = (
            inspect.signature(getattr(owner, name)).parameters.values() for owner in (FrontDoor, front)
        )
        assert own == theirs, name
    assert all(issubclass(kind, FrontDoor) for kind in (wj.Run, wj.Study, Diagnosis))


class TestNames:
    def test_rooms_are_packages(self) -> None:
        from waterjar.stats import tost

        assert wj.diagnose is sys.modules["waterjar.diagnose"] and wj.stats.tost is tost
        assert {"diagnose", "stats", "probe", "view", "plot", "summary", "watch"} <= set(dir(wj))

    def test_importing_it_imports_nothing(self) -> None:
        code = (
            "import sys, waterjar\n"
            "dir(waterjar)\n"
            "heavy = {'numpy', 'pandas', 'xarray', 'torch', 'matplotlib', 'zarr'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
            "waterjar.plot; waterjar.summary; waterjar.report\n"
            "heavy = {'pandas', 'xarray', 'torch', 'matplotlib'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
            "waterjar.diagnose; assert waterjar.diagnose is sys.modules['waterjar.diagnose']\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)
