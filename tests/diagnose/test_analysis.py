"""What counts: the command line, then the study's declaration, then the defaults; and it counts everywhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import waterjar
from diagnose.rigidity.einstellung_runs import write_run
from diagnose.rigidity.test_measure import BASELINE, cell, learner
from waterjar.cli.main import app
from waterjar.diagnose import analysis, cost, rigidity
from waterjar.diagnose.analysis import SHARED, Analysis, Baseline, analysis_of, by_family
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.registry import families
from waterjar.diagnose.sensitivity import sensitivity
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError

RULE = {"where": {"scenario": "scratch_t2"}, "tell": ["training.epochs_t2"]}


def declare(folder: Path, section: Any) -> waterjar.Study:
    """A study of nothing but its declaration."""
    return waterjar.open_study(waterjar.create_study(folder, {"analysis": section}, replace=True))


def write(folder: Path) -> None:
    for seed in (1, 2, 3):
        write_run(folder, "scratch_t2", "sgd", seed, BASELINE)
        write_run(folder, "sequential", "derpp", seed, learner(seed))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a declared window of 1 and a threshold of 0.4: E is 1, 0, 2 of the learner at 0.6, and 0, 0, 2 at 0.4."""
    made: Path = tmp_path_factory.mktemp("declared")
    section = {"settings": {"rigidity": {"threshold": 0.4, "window": 1}}, "families": ["rigidity", "cost"]}
    waterjar.create_study(made, {"analysis": section})
    write(made)
    return made


class TestOrder:
    def test_nothing_said_is_the_defaults(self, tmp_path: Path) -> None:
        write(tmp_path)
        found = analysis_of(waterjar.open_study(tmp_path))
        assert found == Analysis() and found.test_settings == analysis.Tests() and found.rule is None
        assert found.settings_of(rigidity.FAMILY).threshold == 0.6

    def test_what_is_given_goes_before_what_is_declared(self, tmp_path: Path) -> None:
        settings = {"rigidity": {"threshold": 0.8, "window": 2}}
        study = declare(tmp_path, {"settings": settings, "tests": {"alpha": 0.1}, "lead": "cost"})
        declared = analysis_of(study)
        assert declared.settings == settings and declared.test_settings.alpha == 0.1 and declared.lead == "cost"
        given = {"rigidity": {"threshold": 0.5}, "continual": {"eps": 0.1}}
        found = analysis_of(study, settings=given, families=["rigidity", "continual"], tests=analysis.Tests(alpha=0.2))
        own = found.settings_of(rigidity.FAMILY)
        assert (own.threshold, own.window, own.margin) == (0.5, 2, 0.05)  # given, declared, default
        assert found.settings["continual"] == {"eps": 0.1}
        assert found.families == ("rigidity", "continual") and found.test_settings.alpha == 0.2 and found.lead == "cost"
        assert declared.settings == settings  # as it was

    def test_settings_of_what_is_not_measured_are_refused(self, tmp_path: Path) -> None:
        study = declare(tmp_path, {"families": ["cost"]})
        with pytest.raises(WaterjarError, match="geometry.n_t: only cost are measured"):
            analysis_of(study, settings={"geometry": {"n_t": 5}})
        assert analysis_of(study, families=["geometry"], settings={"geometry": {"n_t": 5}}).families == ("geometry",)

    def test_none_is_not_given(self, tmp_path: Path) -> None:
        study = declare(tmp_path, {"lead": "cost", "baseline": "er"})
        assert analysis_of(study, lead=None, baseline=None) == analysis_of(study)

    def test_an_unknown_family_that_is_given(self, tmp_path: Path) -> None:
        with pytest.raises(WaterjarError, match="family 'rigidty' is unknown: did you mean 'rigidity'"):
            analysis_of(declare(tmp_path, {}), settings={"rigidty": {}})


class TestWords:
    def test_other_words_mean_the_same(self, tmp_path: Path) -> None:
        section = {"statistical_tests": False, "generate_plots": ["accuracy"], "adaptation_threshold": 0.7}
        found = analysis_of(declare(tmp_path, section))
        assert found.tests is False and found.figures == ("accuracy",)
        assert found.settings == {"rigidity": {"threshold": 0.7}}

    @pytest.mark.parametrize(
        "section",
        [
            {"statistical_tests": True, "tests": False},
            {"tests": False, "statistical_tests": True},
            {"generate_plots": True, "figures": True},
            {"adaptation_threshold": 0.7, "rigidity.threshold": 0.7},
            {"rigidity.threshold": 0.7, "adaptation_threshold": 0.7},
        ],
    )
    def test_both_are_an_error(self, tmp_path: Path, section: dict[str, Any]) -> None:
        with pytest.raises(WaterjarError, match="is another word for .*, and both are given: leave one out"):
            analysis_of(declare(tmp_path, section))

    @pytest.mark.parametrize(
        "section",
        [
            {"adaptation_threshold": 0.7, "threshold": 0.8},
            {"adaptation_threshold": 0.7, "settings": {"rigidity": {"threshold": 0.8}}},
            {"threshold": 0.7, "settings": {"rigidity": {"threshold": 0.7}}},
            {"threshold": 0.7, "rigidity.threshold": 0.7},
        ],
    )
    def test_so_is_a_setting_in_two_places(self, tmp_path: Path, section: dict[str, Any]) -> None:
        with pytest.raises(WaterjarError, match="threshold is given twice"):
            analysis_of(declare(tmp_path, section))

    def test_settings_at_the_top_are_those_of_the_family_that_has_them(self, tmp_path: Path) -> None:
        section = {"threshold": 0.8, "rigidity.window": 2, "eps": 0.1, "settings": {"rigidity": {"margin": 0.1}}}
        found = analysis_of(declare(tmp_path, section))
        assert found.settings == {
            "rigidity": {"margin": 0.1, "threshold": 0.8, "window": 2},
            "continual": {"eps": 0.1},
        }

    def test_chance_is_one_thing_and_goes_to_all_that_have_it(self, tmp_path: Path) -> None:
        assert by_family({"chance": 0.5}) == {"continual": {"chance": 0.5}, "rigidity": {"chance": 0.5}}
        assert by_family({"chance": 0.5}, among=["continual"]) == {"continual": {"chance": 0.5}}
        only = analysis_of(declare(tmp_path / "a", {"families": ["rigidity"], "chance": 0.5}))
        assert only.settings == {"rigidity": {"chance": 0.5}}
        own = analysis_of(declare(tmp_path / "b", {"settings": {"continual": {"chance": 0.1}}, "rigidity.chance": 0.5}))
        assert own.settings == {"continual": {"chance": 0.1}, "rigidity": {"chance": 0.5}}
        for section in (
            {"chance": 0.5, "rigidity.chance": 0.5},
            {"chance": 0.5, "settings": {"rigidity": {"chance": 1}}},
        ):
            with pytest.raises(WaterjarError, match="chance is given twice"):
                analysis_of(declare(tmp_path / "c", section))

    def test_one_that_several_have_is_a_question(self) -> None:
        with pytest.raises(
            WaterjarError, match=r"setting variable: continual and rigidity have it; write continual.var"
        ):
            by_family({"variable": "accuracy"}, among=["continual", "rigidity"])

    def test_a_new_family_takes_no_word_from_an_old_one(self) -> None:
        """Study files that say `seed` or `ridge` keep their meaning: a new setting is named after what it is of."""
        asked = {"threshold": "rigidity", "eps": "continual", "tau": "plasticity", "ridge": "drift", "seed": "geometry"}
        assert by_family(dict.fromkeys(asked, 1)) == {family: {name: 1} for name, family in asked.items()}
        owners = Counter(name for family in families().values() for name in family.settings_model.model_fields)
        assert {name for name, n in owners.items() if n > 1} == {*SHARED, "eval_sets", "variable"}


class TestFaults:
    @pytest.mark.parametrize(
        ("section", "says"),
        [
            ({"families": ["rigidty"]}, "analysis.families: family 'rigidty' is unknown: did you mean 'rigidity'"),
            ({"lead": "cots"}, "analysis.lead: family 'cots' is unknown: did you mean 'cost'"),
            ({"settings": {"rigidty": {}}}, "analysis.settings: family 'rigidty' is unknown: did you mean 'rigidity'"),
            (
                {"settings": {"rigidity": {"treshold": 1}}},
                "analysis.settings.rigidity: setting 'treshold' is unknown: did you mean 'threshold'",
            ),
            (
                {"settings": {"rigidity": {"threshold": 60}}},
                "analysis.settings.rigidity: setting 'threshold' is 60: expected an acc",
            ),
            ({"treshold": 0.6}, "analysis: setting 'treshold' is unknown: did you mean 'threshold'"),
            ({"rigidty.threshold": 0.6}, "analysis: setting: family 'rigidty' is unknown: did you mean 'rigidity'"),
            ({"rigidity.treshold": 0.6}, "rigidity: analysis: setting 'treshold' is unknown: did you mean"),
            ({"baseline": "er", "settings": {"rigidity": {"baseline": "gpm"}}}, "baseline is given twice"),
            ({"families": ["cost"], "threshold": 0.8, "lead": "rigidity"}, "rigidity is not among analysis.families"),
            ({"settings": 3}, "setting 'analysis.settings' is 3: expected a mapping"),
            ({"settings": 3, "threshold": 0.6}, "setting 'analysis.settings' is 3: expected a mapping"),
            (
                {"settings": {"rigidity": 3}, "threshold": 0.6},
                "setting 'analysis.settings.rigidity' is 3: expected a mapping",
            ),
            ({"tests": {"alpha": 2}}, "analysis.tests"),
            ({"tests": {"correction": "bonferoni"}}, "analysis.tests"),
            ({"baseline": {"ignore": []}}, "analysis.baseline"),
            ({"baseline": {"where": {"scenario": "x"}, "allow": []}}, "analysis.baseline"),
        ],
    )
    def test_what_is_wrong_is_one_error(self, tmp_path: Path, section: dict[str, Any], says: str) -> None:
        with pytest.raises(WaterjarError) as error:
            analysis_of(declare(tmp_path, section))
        assert str(error.value).startswith(f"{tmp_path}: ") and says in str(error.value)

    def test_every_fault_is_told(self, tmp_path: Path) -> None:
        settings = {"rigidity": {"threshold": 60, "window": 0}, "cots": {}}
        with pytest.raises(WaterjarError) as error:
            analysis_of(declare(tmp_path, {"lead": "x", "settings": settings}))
        lines = str(error.value).split("\n")
        assert len(lines) == 4 and all(line.startswith(f"{tmp_path}: analysis.") for line in lines)

    @pytest.mark.parametrize("section", [3, "rigidity", ["rigidity"], [], False, ""])
    def test_a_section_that_is_no_mapping(self, tmp_path: Path, section: Any) -> None:
        with pytest.raises(WaterjarError, match="analysis: expected a mapping of settings, not ") as error:
            analysis_of(declare(tmp_path, section))
        assert "\n" not in str(error.value)

    def test_an_empty_one_is_none(self, tmp_path: Path) -> None:
        assert analysis_of(declare(tmp_path, None)) == analysis_of(declare(tmp_path, {})) == Analysis()


class TestItCountsEverywhere:
    def test_measure(self, folder: Path) -> None:
        study = waterjar.open_study(folder)
        found = rigidity.measure(study)
        assert cell(found, "derpp")["adaptation_epoch"].values.tolist() == [0, 0, 2]
        used = json.loads(found.attrs["settings"])
        assert (used["threshold"], used["window"], used["margin"]) == (0.4, 1, 0.05)
        explicit = rigidity.measure(study, threshold=0.6)
        assert cell(explicit, "derpp")["adaptation_epoch"].values.tolist() == [1, 0, 2]
        used = json.loads(explicit.attrs["settings"])
        assert (used["threshold"], used["window"]) == (0.6, 1)

    def test_measure_of_one_run(self, folder: Path) -> None:
        study = waterjar.open_study(folder)
        (name,) = [entry.name for entry in study.entries if entry.config["learner"] == "derpp" and entry.seeds == [1]]
        assert rigidity.measure(study.run(name))["adaptation_epoch"].values.tolist() == [0]
        assert rigidity.measure(study.run(name), threshold=0.6)["adaptation_epoch"].values.tolist() == [1]

    def test_diagnose(self, folder: Path) -> None:
        study = waterjar.open_study(folder)
        found = diagnose(study)
        assert cell(found.results["rigidity"], "derpp")["adaptation_epoch"].values.tolist() == [0, 0, 2]
        assert json.loads(found.results["rigidity"].attrs["settings"])["threshold"] == 0.4
        assert set(found.results) | set(found.passed_over) == {"rigidity", "cost"}  # those declared
        explicit = diagnose(study, only=["rigidity"], settings={"rigidity": {"threshold": 0.6}})
        assert cell(explicit.results["rigidity"], "derpp")["adaptation_epoch"].values.tolist() == [1, 0, 2]
        assert explicit.analysis.settings == {"rigidity": {"threshold": 0.6, "window": 1}}

    def test_sensitivity(self, folder: Path) -> None:
        study = waterjar.open_study(folder)
        means, _, last = sensitivity(study, "adaptation_epoch", "margin", values=[0.1])
        assert means[means.group == "derpp"]["mean"].tolist() == [pytest.approx(2 / 3)]
        assert json.loads(last.results["rigidity"].attrs["settings"])["threshold"] == 0.4
        means, _, _ = sensitivity(study, "adaptation_epoch", "threshold", values=[0.4, 0.6])
        assert means[means.group == "derpp"]["mean"].tolist() == [pytest.approx(2 / 3), 1.0]

    def test_compare(self, folder: Path) -> None:
        study = waterjar.open_study(folder)
        table = compare_cells(diagnose(study, only=["rigidity"]), ["adaptation_epoch"]).set_index("group")
        # the baseline reaches 0.4 at epoch 2
        assert table.loc["derpp", "mean"] == pytest.approx(2 / 3)
        assert table.loc["derpp", "difference"] == pytest.approx(2 / 3 - 2)
        given = diagnose(study, only=["rigidity"], settings={"rigidity": {"threshold": 0.6}})
        table = compare_cells(given, ["adaptation_epoch"]).set_index("group")
        assert table.loc["derpp", "difference"] == pytest.approx(1 - 3)

    def test_tests(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"window": 1, "tests": {"alpha": 0.2, "test": "permutation"}}})
        write(tmp_path)
        study = waterjar.open_study(tmp_path)
        found = compare_cells(diagnose(study, only=["rigidity"]), ["masked_accuracy"])
        assert set(found[~found.is_baseline].test) == {"permutation"}
        given = diagnose(study, only=["rigidity"], tests=analysis.Tests(test="wilcoxon"))
        assert set(compare_cells(given, ["masked_accuracy"]).query("not is_baseline").test) == {"wilcoxon"}

    def test_a_family_without_settings(self, folder: Path) -> None:
        with pytest.raises(WaterjarError, match="cost: setting 'threshold' is unknown"):
            cost.FAMILY.settings({"threshold": 0.6})


class TestBaseline:
    def test_a_rule_or_a_name(self, tmp_path: Path) -> None:
        rule = analysis_of(declare(tmp_path, {"baseline": RULE}))
        assert rule.rule == Baseline(where={"scenario": "scratch_t2"}, tell=("training.epochs_t2",))
        assert rule.baseline_name == "scratch_t2" == rule.settings_of(rigidity.FAMILY).baseline
        name = analysis_of(declare(tmp_path, {"baseline": "er"}))
        assert name.rule is None and name.baseline_name == "er" == name.settings_of(rigidity.FAMILY).baseline
        none = analysis_of(declare(tmp_path, {}))
        assert none.baseline_name is None and none.settings_of(rigidity.FAMILY).baseline == "scratch_t2"

    def test_a_study_has_one_baseline_wherever_it_is_declared(self, tmp_path: Path) -> None:
        study = declare(tmp_path, {"settings": {"rigidity": {"baseline": "gpm", "window": 2}}})
        found = analysis_of(study)
        assert found.baseline_name == found.settings_of(rigidity.FAMILY).baseline == "gpm"
        assert found.settings == {"rigidity": {"window": 2}}
        for given in ({"baseline": "sgd"}, {"settings": {"rigidity": {"baseline": "sgd"}}}):
            found = analysis_of(study, **given)
            assert found.baseline_name == found.settings_of(rigidity.FAMILY).baseline == "sgd"
        with pytest.raises(WaterjarError, match="baseline is given twice, as sgd and as rigidity.baseline joint"):
            analysis_of(study, baseline="sgd", settings={"rigidity": {"baseline": "joint"}})
        none = analysis_of(study, settings={"rigidity": {"baseline": None}})
        assert none.settings_of(rigidity.FAMILY).baseline is None

    def test_a_name_that_is_given_keeps_what_the_rule_allows(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE, "window": 1}})
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, training={"epochs_t2": 4})
        write_run(tmp_path, "other", "sgd", 1, BASELINE, training={"epochs_t2": 3})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4})
        study = waterjar.open_study(tmp_path)
        assert analysis_of(study, baseline="scratch_t2") == analysis_of(study)
        given = diagnose(study, only=["rigidity"], baseline="other")
        said = "the baseline 'other' differs in training.epochs_t2 (3, not 4)"
        for found in (given.results["rigidity"], rigidity.measure(study, baseline="other")):
            assert str(cell(found, "derpp")["baseline_note"].values) == said
            assert cell(found, "derpp")["ad"].values.tolist() == [-2]
        table = compare_cells(given, ["masked_accuracy"]).set_index("group")
        assert table.loc["derpp", "baseline"] == "other" and table.loc["derpp", "baseline_note"] == said
        with pytest.raises(WaterjarError, match="baseline 'othr' is unknown: did you mean 'other'"):
            diagnose(study, only=["rigidity"], baseline="othr")


class TestOneLevel:
    """One level of intervals: that of the tests, unless a family is given its own."""

    def test_alpha_is_the_level_of_every_interval(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"tests": {"alpha": 0.2}, "window": 1}})
        write(tmp_path)
        study = waterjar.open_study(tmp_path)
        found = diagnose(study, only=["rigidity"])
        assert found.settings("rigidity")["confidence"] == found.confidence("rigidity") == 0.8
        own = cell(found.results["rigidity"], "derpp")
        compared = compare_cells(found, ["pd"]).set_index("group").loc["derpp"]
        means, _, _ = sensitivity(study, "pd", "threshold", values=[0.6])
        told = means.set_index("group").loc["derpp"]
        for low, high in ((compared.low, compared.high), (told.low, told.high)):
            assert (float(own["pd_low"]), float(own["pd_high"])) == pytest.approx((low, high), rel=1e-12)
        narrow = diagnose(study, only=["rigidity"], settings={"rigidity": {"confidence": 0.5}})
        assert narrow.confidence("rigidity") == 0.5 and narrow.confidence("cost") == 0.8

    def test_the_table_says_the_level_that_was_used(self, tmp_path: Path) -> None:
        write(tmp_path)
        shown = CliRunner().invoke(app, ["diagnose", str(tmp_path), "--only", "pd", "--set", "confidence=0.5"]).stdout
        assert "50 % t interval" in shown and "95 %" not in shown


class TestBaselinesThatAreNamed:
    def test_relative_metrics_are_not_mixed_with_another_baseline(self, tmp_path: Path) -> None:
        write(tmp_path)
        found = diagnose(waterjar.open_study(tmp_path), only=["rigidity"], settings={"rigidity": {"window": 1}})
        with pytest.raises(WaterjarError, match="pd was measured against scratch_t2"):
            compare_cells(found, ["pd"], baseline="derpp")
        assert len(compare_cells(found, ["masked_accuracy"], baseline="derpp")) == 2

    def test_a_rule_of_several_settings_takes_the_name_of_a_scenario(self, tmp_path: Path) -> None:
        rule = {"where": {"learner": "sgd", "scenario": "scratch_t2"}}
        waterjar.create_study(tmp_path, {"analysis": {"baseline": rule, "window": 1}})
        write(tmp_path)
        study = waterjar.open_study(tmp_path)
        assert analysis_of(study).baseline_name == "sgd, scratch_t2"
        found = analysis_of(study, baseline="sequential").rule
        assert found is not None and found.where == {"scenario": "sequential"}
        assert str(
            cell(diagnose(study, only=["pd"], baseline="sequential").results["rigidity"], "scratch_t2")[
                "baseline"
            ].values
        )

    def test_a_rule_of_one_setting_takes_its_values(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": {"where": {"learner": "sgd"}}}})
        for seed in (1, 2):
            for rate in (0.1, 0.2):
                write_run(tmp_path, "sequential", "derpp", seed, learner(seed), lr=rate)
                write_run(tmp_path, "sequential", "sgd", seed, BASELINE, lr=rate)
        found = analysis_of(waterjar.open_study(tmp_path), baseline="derpp").rule
        assert found is not None and found.where == {"learner": "derpp"}

    def test_null_is_the_usual_baseline(self, tmp_path: Path) -> None:
        assert analysis_of(declare(tmp_path, {"baseline": None})) == Analysis()


class TestGivenTests:
    @pytest.mark.parametrize(
        ("declared", "given", "paired", "test"),
        [
            ({"paired": False}, {"test": "paired_t"}, True, "paired_t"),
            ({"test": "wilcoxon"}, {"paired": False}, False, None),
            ({}, {"test": "welch"}, False, "welch"),
            ({"paired": False, "test": "welch"}, {"test": "permutation"}, False, "permutation"),
            ({"paired": False, "test": "welch"}, {}, False, "welch"),
        ],
    )
    def test_what_is_given_goes_first(self, declared: Any, given: Any, paired: bool, test: str | None) -> None:
        found = analysis.Tests(**declared).with_given(given)
        assert (found.paired, found.test) == (paired, test)

    def test_what_contradicts_itself_is_refused(self) -> None:
        with pytest.raises(WaterjarError):
            analysis.Tests().with_given({"test": "welch", "paired": True})


def test_a_shared_setting_goes_to_the_families_that_are_measured(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path, {"analysis": {"families": ["rigidity"]}})
    write(tmp_path)
    shown = CliRunner().invoke(app, ["diagnose", str(tmp_path), "--set", "chance=0.25", "--json"])
    assert json.loads(shown.stdout)["settings"]["rigidity"]["chance"] == 0.25
    with pytest.raises(WaterjarError, match="setting threshold is of rigidity: only continual are measured"):
        by_family({"threshold": 0.8}, among=["continual"])


def test_a_setting_that_is_tried_is_not_given_too(folder: Path) -> None:
    with pytest.raises(WaterjarError, match="threshold is what the metric is shown over"):
        sensitivity(
            waterjar.open_study(folder), "pd", "threshold", values=[0.4], settings={"rigidity": {"threshold": 0.5}}
        )
    shown = CliRunner().invoke(
        app, ["sensitivity", str(folder), "--metric", "pd", "--over", "threshold", "--values", "0.4,0.5"]
    )
    assert "threshold 0.5" not in shown.stderr and "window 1" in shown.stderr


def test_why_there_is_nothing_to_compare_by_is_said(tmp_path: Path) -> None:
    """Sets that are a plain list belong to no task: then no metric of tasks has a value."""
    for name in ("a", "b"):
        with waterjar.Recorder(tmp_path / name, {"learner": name}, seeds=[1], eval_sets=["test"]) as recorder:
            recorder.log(epoch=1, performance={"accuracy": [0.5]})
    found = diagnose(waterjar.open_study(tmp_path), families=["continual"])
    with pytest.raises(waterjar.WaterjarError, match="by: continual: no eval set belongs to a task.*annotate .*test=0"):
        compare_cells(found)
