"""Which cell a learner is compared with: the same settings, the same data, and what is said where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import waterjar
from diagnose.rigidity.einstellung_runs import write_run
from diagnose.rigidity.test_measure import BASELINE, BY_EPOCH, cell, learner, why
from waterjar import WaterjarError
from waterjar.diagnose import rigidity

BETTER = {**BASELINE, "t2_shortcut_normal": [0.9] * 5}


def measured(folder: Path, **settings: Any) -> Any:
    return rigidity.measure(waterjar.open_study(folder), **{**BY_EPOCH, **settings})


def note(part: Any) -> str:
    return str(part["baseline_note"].values)


def test_the_one_with_the_same_settings_is_taken(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    write_run(tmp_path, "scratch_t2", "sgd", 1, BETTER, backbone="vit")
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    write_run(tmp_path, "sequential", "derpp", 1, learner(1), backbone="vit")
    result = measured(tmp_path)
    assert cell(result, "derpp, backbone=small_cnn")["ad"].values.tolist() == [-2]
    assert cell(result, "derpp, backbone=vit")["ad"].values.tolist() == [1]
    named = measured(tmp_path, baseline="scratch_t2, backbone=vit")
    assert cell(named, "derpp, backbone=small_cnn")["ad"].values.tolist() == [1]
    assert "differs in backbone" in str(cell(named, "derpp, backbone=small_cnn")["baseline_note"].values)


def test_the_one_with_the_same_learning_rate_is_preferred(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, learner_settings={"lr": 0.01})
    write_run(tmp_path, "scratch_t2", "sgd", 1, BETTER, learner_settings={"lr": 0.1})
    write_run(tmp_path, "sequential", "derpp", 1, learner(1), learner_settings={"lr": 0.1, "alpha": 0.5})
    assert cell(measured(tmp_path), "derpp")["ad"].values.tolist() == [1]


def test_two_that_fit_equally_are_an_error(tmp_path: Path) -> None:
    for rate in (0.1, 0.2):
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, learner_settings={"lr": rate})
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    with pytest.raises(WaterjarError, match=r"2 possible baselines: 'scratch_t2, lr=0.1', 'scratch_t2, lr=0.2'"):
        measured(tmp_path)


def test_none_that_fits_is_said(tmp_path: Path) -> None:
    other = {"data": "x", "backbone": "vit", "shortcut": {"rate": 1.0, "eval_rate": 0.5}, "tasks": 3}
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, **other)
    write_run(tmp_path, "sequential", "derpp", 1, learner(1), **{**other, "data": "y"}, size=1)
    part = cell(measured(tmp_path), "derpp")
    assert "no 'scratch_t2' has the same settings" in str(part["baseline_note"].values)
    assert why(part, "ad") == ["no_baseline"]


def test_many_differences_are_counted(tmp_path: Path) -> None:
    keys = "abcdef"
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, **dict.fromkeys(keys, 1))
    write_run(tmp_path, "sequential", "derpp", 1, learner(1), **dict.fromkeys(keys, 2))
    assert "a, b, c, d and 2 more" in str(cell(measured(tmp_path), "derpp")["baseline_note"].values)


def test_a_timeline_of_another_lab(tmp_path: Path) -> None:
    lines = ["method,seed,epoch_eff,split,acc"]
    for method, curve in {"Scratch": [0.2, 0.4, 0.7], "Mine": [0.7, 0.7, 0.7]}.items():
        for epoch, value in enumerate(curve, start=1):
            lines.append(f"{method},0,{epoch},t2_shortcut_normal,{value}")
            lines.append(f"{method},0,{epoch},t2_shortcut_masked,0.1")
    (tmp_path / "timeline.csv").write_text("\n".join(lines) + "\n")
    study = waterjar.from_csv(tmp_path / "timeline.csv", tmp_path / "out")
    with pytest.raises(WaterjarError, match="variable 'macro_accuracy' is unknown"):
        rigidity.measure(study)
    result = rigidity.measure(study, variable="accuracy", checkpoint="last", baseline="Scratch", **BY_EPOCH)
    part = cell(result, "Mine")
    assert part["ad"].values.tolist() == [-2] and part["sfr_rel"].values == pytest.approx([0.0])


class TestData:
    def test_a_baseline_on_other_data_is_none(self, tmp_path: Path) -> None:
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, fingerprint="A")
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), fingerprint="B")
        part = cell(measured(tmp_path), "derpp")
        assert why(part, "pd") == why(part, "ad") == ["no_baseline"]
        assert note(part) == "no 'scratch_t2' has the same settings: 'scratch_t2' differs in data_fingerprint"

    def test_the_one_on_the_same_data_is_taken(self, tmp_path: Path) -> None:
        write_run(tmp_path, "scratch_t2", "sgd", 1, BETTER, fingerprint="A")
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, fingerprint="B")
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), fingerprint="B")
        part = cell(measured(tmp_path), "derpp")
        assert part["ad"].values.tolist() == [-2] and note(part) == ""

    def test_what_is_known_to_be_the_same_is_preferred(self, tmp_path: Path) -> None:
        write_run(tmp_path, "scratch_t2", "sgd", 1, BETTER)
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, fingerprint="B", learner_settings={"lr": 0.5})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), fingerprint="B")
        assert cell(measured(tmp_path), "derpp")["ad"].values.tolist() == [-2]

    @pytest.mark.parametrize(("theirs", "own", "silent"), [(None, "B", "scratch_t2"), ("A", None, "derpp")])
    def test_a_side_that_does_not_say_is_taken_with_a_note(
        self, tmp_path: Path, theirs: str | None, own: str | None, silent: str
    ) -> None:
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, fingerprint=theirs)
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), fingerprint=own)
        part = cell(measured(tmp_path), "derpp")
        assert part["ad"].values.tolist() == [-2]
        assert note(part) == f"'{silent}' has no data fingerprint: whether both saw the same data is not known"

    def test_one_that_was_named_is_taken_and_the_note_says_it(self, tmp_path: Path) -> None:
        write_run(tmp_path, "sequential", "er", 1, BASELINE, fingerprint="A", backbone="vit")
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), fingerprint="B")
        write_run(tmp_path, "sequential", "gpm", 1, learner(1))
        result = measured(tmp_path, baseline="er")
        part = cell(result, "derpp")
        assert part["ad"].values.tolist() == [-2]
        assert note(part) == "the baseline 'er' differs in data_fingerprint, backbone"
        said = "the baseline 'er' differs in backbone; 'gpm' has no data fingerprint"
        assert note(cell(result, "gpm")).startswith(said)
        assert note(cell(result, "er")) == ""


RULE = {
    "where": {"scenario": "scratch_t2"},
    "ignore": ["learner_settings", "recording", "augmentation.t1", "training.epochs_t1"],
    "tell": ["training.batch_size", "training.epochs_t2"],
}
"""As the laboratory declares it: a baseline of another length is one, and the difference is told."""


class TestLength:
    def test_nothing_but_the_restricted_delay_is_cut(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        short = {name: values[:4] for name, values in BASELINE.items()}
        write_run(tmp_path, "scratch_t2", "sgd", 1, short, training={"epochs_t2": 3})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4})
        part = cell(measured(tmp_path), "derpp")
        assert note(part).startswith("the baseline 'scratch_t2' differs in training.epochs_t2 (3, not 4); recorded are")
        assert float(part["budget"]) == 3
        assert part["checkpoint_epoch"].values.tolist() == [4]  # its best, though the baseline ended at 3
        assert part["pd"].values == pytest.approx([0.4 - 0.8]) and part["ad"].values.tolist() == [-2]
        by_id = cell(
            measured(tmp_path, baseline=str(cell(measured(tmp_path), "scratch_t2")["cell_id"].values)), "derpp"
        )
        assert "differs in training.epochs_t2" in note(by_id)
        assert by_id["pd"].values.tolist() == part["pd"].values.tolist()

    def test_without_a_rule_it_is_none(self, tmp_path: Path) -> None:
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, training={"epochs_t2": 3, "batch_size": 4})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4, "batch_size": 8})
        part = cell(measured(tmp_path), "derpp")
        assert why(part, "pd") == ["no_baseline"]
        assert "'scratch_t2' differs in training.epochs_t2, training.batch_size" in note(part)

    def test_everything_that_differs_is_told_and_what_is_ignored_is_not(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        theirs = {"epochs_t1": 0, "epochs_t2": 3, "batch_size": 4}
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, training=theirs, learner_settings={"lr": 0.5})
        own = {"epochs_t1": 2, "epochs_t2": 4, "batch_size": 8}
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training=own)
        said = "the baseline 'scratch_t2' differs in training.epochs_t2 (3, not 4), training.batch_size (4, not 8)"
        part = cell(measured(tmp_path), "derpp")
        assert note(part) == said and part["ad"].values.tolist() == [-2]

    def test_another_difference_is_one_too_many(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, training={"epochs_t2": 3}, backbone="vit")
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4})
        part = cell(measured(tmp_path), "derpp")
        assert why(part, "pd") == ["no_baseline"]
        assert note(part) == "no 'scratch_t2' has the same settings: 'scratch_t2' differs in backbone"

    def test_one_of_two_is_not_chosen(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        for epochs in (3, 5):
            write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, training={"epochs_t2": epochs})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4})
        with pytest.raises(WaterjarError, match="2 possible baselines: 'scratch_t2, epochs_t2=3'"):
            measured(tmp_path)

    def test_the_one_of_the_same_length_is(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        for epochs, curves in ((3, BETTER), (4, BASELINE)):
            write_run(tmp_path, "scratch_t2", "sgd", 1, curves, training={"epochs_t2": epochs})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4})
        part = cell(measured(tmp_path), "derpp")
        assert part["ad"].values.tolist() == [-2] and note(part) == ""

    def test_one_on_other_data_does_not_count_and_one_that_does_not_say_does(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        write_run(tmp_path, "scratch_t2", "sgd", 1, BETTER, fingerprint="A")
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, training={"epochs_t2": 3})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), fingerprint="B", training={"epochs_t2": 4})
        part = cell(measured(tmp_path), "derpp")
        assert part["ad"].values.tolist() == [-2]
        assert "(3, not 4)" in note(part) and "has no data fingerprint" in note(part)


class TestRule:
    def test_where_may_name_any_settings(self, tmp_path: Path) -> None:
        where = {"scenario": "sequential", "learner_settings.lr": 0.5}
        waterjar.create_study(tmp_path, {"analysis": {"baseline": {"where": where, "ignore": ["learner_settings"]}}})
        write_run(tmp_path, "sequential", "er", 1, BASELINE, learner_settings={"lr": 0.5})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1))
        result = measured(tmp_path)
        part = cell(result, "derpp")
        assert part["ad"].values.tolist() == [-2] and str(part["baseline"].values) == "er"
        assert str(cell(result, "er")["pattern"].values) == "baseline"

    def test_one_that_nothing_fits_is_said(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": {"where": {"scenario": "elsewhere"}}}})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1))
        part = cell(measured(tmp_path), "derpp")
        assert why(part, "ad") == ["no_baseline"]
        assert note(part) == "the study has no cell with the scenario 'elsewhere'"

    def test_a_name_that_is_given_goes_before_it(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
        write_run(tmp_path, "sequential", "er", 1, BETTER)
        write_run(tmp_path, "sequential", "derpp", 1, learner(1))
        assert cell(measured(tmp_path), "derpp")["ad"].values.tolist() == [-2]
        assert cell(measured(tmp_path, baseline="er"), "derpp")["ad"].values.tolist() == [1]
        assert why(cell(measured(tmp_path, baseline=None), "derpp"), "ad") == ["no_baseline"]
