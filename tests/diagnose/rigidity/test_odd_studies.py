"""Studies in which something is missing, uneven or wrong: the right answer, or an error that says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from diagnose.rigidity.einstellung_runs import SETS, write_run
from diagnose.rigidity.test_measure import BASELINE, BY_EPOCH, OTHERS, cell, learner, why
from waterjar import WaterjarError
from waterjar.diagnose import rigidity


def measured(folder: Path, **settings: Any) -> Any:
    return rigidity.measure(waterjar.open_study(folder), **{**BY_EPOCH, **settings})


def test_a_shortcut_that_was_never_injected(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    write_run(tmp_path, "sequential", "derpp", 2, learner(2), patched=0)
    with pytest.raises(WaterjarError, match=r"derpp: no training image .*seed 2: patched_images is 0"):
        measured(tmp_path)


@pytest.mark.parametrize(("key", "words"), [("rate", "no training image"), ("eval_rate", "do not show it")])
def test_a_shortcut_that_the_config_switches_off(tmp_path: Path, key: str, words: str) -> None:
    shortcut = {"rate": 0.5, "eval_rate": 1.0, key: 0.0}
    write_run(tmp_path, "sequential", "derpp", 1, learner(1), shortcut=shortcut)
    with pytest.raises(WaterjarError, match=f"{key} is 0: .*{words}"):
        measured(tmp_path)


def test_a_shortcut_that_nobody_counted(tmp_path: Path) -> None:
    path = write_run(tmp_path, "sequential", "derpp", 1, learner(1), patched=None, shortcut="a patch")
    result = measured(tmp_path)
    assert why(cell(result, "derpp"), "patched_images") == ["not_recorded"]
    assert "unknown whether the shortcut was there" in result.attrs["shortcut_injected"]
    assert np.isnan(rigidity.measure(waterjar.open_run(path))["patched_images"].values).all()


def test_without_a_baseline_the_delay_is_the_epoch_and_says_so(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
    part = cell(measured(tmp_path), "derpp")
    assert part["ad"].values.tolist() == part["adaptation_epoch"].values.tolist() == [1, 0, 2]
    assert str(part["ad_kind"].values) == "epochs_to_threshold"
    assert "no cell with the scenario 'scratch_t2'" in str(part["baseline_note"].values)
    for name in ("pd", "sfr_rel", "ad_restricted"):
        assert why(part, name) == ["not_recorded"] * 3
    assert part["sfr"].values == pytest.approx([0.6, 0.5, 0.4])
    assert str(part["pattern"].values) == "inconclusive" and "has no baseline" in str(part["sentence"].values)


def test_a_baseline_that_is_not_wanted(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    assert str(cell(measured(tmp_path, baseline=None), "derpp")["ad_kind"].values) == "epochs_to_threshold"


def test_a_single_run(tmp_path: Path) -> None:
    run = waterjar.open_run(write_run(tmp_path, "sequential", "derpp", 1, learner(1)))
    result = rigidity.measure(run, **BY_EPOCH)
    assert result["sfr"].dims == ("repeat",) and result["seed"].values.tolist() == [1]
    assert result["ad"].values.tolist() == [1.0] and why(result, "pd") == ["not_recorded"]
    assert "measure the study" in str(result["baseline_note"].values)


def test_a_run_without_performance(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, provenance=False) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
    with pytest.raises(WaterjarError, match="no group 'performance'"):
        rigidity.measure(waterjar.open_run(tmp_path / "run"))


def test_one_seed_has_values_and_no_interval(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    part = cell(measured(tmp_path), "derpp")
    assert float(part["ad_mean"]) == -2 and float(part["ad_n"]) == 1
    for name in ("ad_std", "ad_low", "ad_high", "seeds_needed", "ad_restricted_bootstrap_low"):
        assert why(part, name) == ["undefined"], name
    assert str(part["pattern"].values) == "inconclusive"
    assert "One seed does not settle" in str(part["sentence"].values)
    assert "no interval" in str(part["sentence"].values)


def test_seeds_without_a_partner(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
    for seed in (2, 3):
        write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
    part = cell(measured(tmp_path), "derpp")
    assert part["seed"].values.tolist() == [1, 2, 3]
    for name in ("ad", "pd", "sfr_rel"):
        assert why(part, name) == ["not_recorded", "present", "not_recorded"], name
    assert why(part, "sfr") == ["not_recorded", "present", "present"]
    assert float(part["ad_n"]) == 1 and float(part["sfr_n"]) == 2
    assert cell(measured(tmp_path, checkpoint="last"), "derpp")["pd"].values[1] == pytest.approx(0.6 - 0.7)


def test_a_run_that_ended_early_has_no_final_accuracy(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
    for seed in (1, 2):
        write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
    write_run(tmp_path, "sequential", "derpp", 3, {name: values[:2] for name, values in learner(3).items()})
    part = cell(measured(tmp_path), "derpp")
    for name in ("ad", "pd", "sfr", "sfr_rel", "adaptation_epoch", "ad_censored_learner", "checkpoint_step"):
        assert why(part, name) == ["present", "present", "run_ended"], name
    assert int(part["ad_n_censored_learner"]) == 0  # it was not observed long enough to be called censored
    assert part["pd"].values[:2] == pytest.approx([-0.4, -0.3])


def test_a_baseline_of_another_length_is_compared_within_the_shorter_budget(tmp_path: Path) -> None:
    short = {name: values[:4] for name, values in BASELINE.items()}
    write_run(tmp_path, "scratch_t2", "sgd", 1, short, training={"epochs_t2": 3})
    write_run(tmp_path, "sequential", "derpp", 1, learner(1), training={"epochs_t2": 4})
    part = cell(measured(tmp_path), "derpp")
    assert "differs in training.epochs_t2" in str(part["baseline_note"].values)  # not taken by itself
    named = cell(measured(tmp_path, baseline=str(cell(measured(tmp_path), "scratch_t2")["cell"].values)), "derpp")
    assert "was named; it differs in training.epochs_t2" in str(named["baseline_note"].values)
    assert float(named["budget"]) == 3
    assert named["checkpoint_epoch"].values.tolist() == [3]  # best within 3 epochs, not at 4
    assert named["pd"].values == pytest.approx([0.4 - 0.8])
    censored = cell(measured(tmp_path, baseline="scratch_t2", threshold=0.75), "derpp")
    assert censored["ad_restricted"].values.shape == (1,)


def test_restricted_delay_with_a_longer_learner(tmp_path: Path) -> None:
    short = {name: values[:3] for name, values in BASELINE.items()}
    write_run(tmp_path, "base", "sgd", 1, short, method="base")
    slow = {**OTHERS, "t2_shortcut_normal": [0.0, 0.0, 0.0, 0.0, 0.9]}
    write_run(tmp_path, "sequential", "derpp", 1, slow)
    part = cell(measured(tmp_path, baseline="base"), "derpp")
    assert part["adaptation_epoch"].values.tolist() == [4]
    assert why(part, "ad") == why(part, "ad_restricted") == ["never_reached"]  # nobody got there within 2 epochs
    assert cell(measured(tmp_path, baseline="base", threshold=0.3), "derpp")["ad_restricted"].values.tolist() == [0]


def test_nan_in_one_seed_touches_that_seed_only(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
    broken: dict[str, list[Any]] = learner(2, t2_shortcut_normal=[0.1, float("nan"), 0.7, 0.7, float("nan")])
    for seed, curves in {1: learner(1), 2: broken, 3: learner(3)}.items():
        write_run(tmp_path, "sequential", "derpp", seed, curves)
    part = cell(measured(tmp_path), "derpp")
    for name in ("ad", "pd", "sfr", "worst_group_accuracy"):
        assert why(part, name) == ["present", "not_a_number", "present"], name
    assert why(part, "masked_accuracy") == ["present"] * 3
    assert part["ad"].values[[0, 2]].tolist() == [-2, -1] and float(part["ad_n"]) == 2


def test_an_empty_set_is_missing_and_not_0(tmp_path: Path) -> None:
    masked = [waterjar.missing("empty_set")] * 5
    write_run(tmp_path, "sequential", "derpp", 1, learner(1, t2_shortcut_masked=masked))
    part = cell(measured(tmp_path), "derpp")
    assert why(part, "sfr") == ["empty_set"]
    assert "How much it relies on the shortcut is unknown" in str(part["sentence"].values)


def test_a_validation_that_broke_picks_among_the_others(tmp_path: Path) -> None:
    nan = float("nan")
    write_run(tmp_path, "sequential", "derpp", 1, learner(1, t2_validation=[0.9, 0.1, 0.3, nan, nan]))
    write_run(tmp_path, "sequential", "er", 1, learner(1, t2_validation=[0.9, nan, nan, nan, nan]))
    result = measured(tmp_path)
    assert cell(result, "derpp")["checkpoint_epoch"].values.tolist() == [2]
    assert why(cell(result, "er"), "patched_accuracy") == ["not_a_number"]


def test_interleaved_counts_joint_epochs(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    write_run(tmp_path, "interleaved", "joint", 1, learner(3))
    part = cell(measured(tmp_path), "interleaved")
    assert part["ad"].values.tolist() == [-1] and part["checkpoint_step"].values.tolist() == [4]


def test_the_evaluation_before_t2_is_epoch_0_also_where_t2_logs_none(tmp_path: Path) -> None:
    with waterjar.Recorder(
        tmp_path / "run", {"method": "mine"}, eval_sets=SETS, tasks=["t1", "t2"], provenance=False
    ) as recorder:
        for task, epoch, value in (("t1", 0, 0.9), ("t1", 1, 0.65), ("t2", 1, 0.3), ("t2", 2, 0.8)):
            recorder.log(train_task=task, epoch=epoch, performance={"macro_accuracy": dict.fromkeys(SETS, value)})
    part = cell(measured(tmp_path, threshold=0.6), "mine")
    assert part["adaptation_epoch"].values.tolist() == [0]
    assert cell(measured(tmp_path, threshold=0.7), "mine")["adaptation_epoch"].values.tolist() == [2]


def test_epochs_under_one_key_are_an_error(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {"method": "mine"}, eval_sets=SETS, tasks=2, provenance=False) as recorder:
        for task, epoch, effective in ((0, 1, 1), (1, 1, 1), (1, 2, 2), (1, 2, 2)):
            values = {"macro_accuracy": dict.fromkeys(SETS, 0.5)}
            recorder.log(train_task=task, epoch=epoch, effective_epoch=effective, performance=values)
    with pytest.raises(WaterjarError, match="mine: effective_epoch has 2 twice"):
        measured(tmp_path)


def test_accuracies_in_percent_are_an_error(tmp_path: Path) -> None:
    write_run(tmp_path, "sequential", "derpp", 1, learner(1, t2_shortcut_masked=[10.0] * 5))
    with pytest.raises(WaterjarError, match="derpp: macro_accuracy on t2_shortcut_masked has 10"):
        measured(tmp_path)


def test_a_last_task_that_has_not_begun(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    begun = write_run(tmp_path, "sequential", "er", 1, learner(1))
    with waterjar.Recorder(
        tmp_path / "early",
        {**waterjar.open_run(begun).config, "method": "late", "learner": "late"},
        seeds=[1],
        eval_sets=SETS,
        tasks=["t1", "t2"],
        provenance=False,
    ) as recorder:
        recorder.log(train_task="t1", epoch=0, performance={"macro_accuracy": dict.fromkeys(SETS, 0.9)})
    result = measured(tmp_path)
    for name in ("ad", "pd", "sfr", "adaptation_epoch", "t1_accuracy"):
        assert why(cell(result, "late"), name) == ["not_recorded"], name
    assert cell(result, "er")["ad"].values.tolist() == [-2]
    early = cell(measured(tmp_path, baseline="late"), "er")  # a baseline that has not begun limits nobody
    assert why(early, "pd") == ["not_recorded"] and early["patched_accuracy"].values == pytest.approx([0.8])


def test_epochs_at_which_the_variable_was_not_logged(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {"method": "mine"}, eval_sets=SETS, tasks=2, provenance=False) as recorder:
        values = {"macro_accuracy": dict.fromkeys(SETS, 0.5)}
        recorder.log(train_task=0, epoch=1, effective_epoch=1, performance=values)
        recorder.log(train_task=1, epoch=0, effective_epoch=1, performance={"accuracy": dict.fromkeys(SETS, 0.5)})
    part = cell(measured(tmp_path), "mine")
    for name in ("sfr", "adaptation_epoch"):
        assert why(part, name) == ["not_recorded"], name


class TestBaselines:
    def test_the_one_with_the_same_settings_is_taken(self, tmp_path: Path) -> None:
        better = {**BASELINE, "t2_shortcut_normal": [0.9] * 5}
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
        write_run(tmp_path, "scratch_t2", "sgd", 1, better, backbone="vit")
        write_run(tmp_path, "sequential", "derpp", 1, learner(1))
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), backbone="vit")
        result = measured(tmp_path)
        assert cell(result, "derpp, backbone=small_cnn")["ad"].values.tolist() == [-2]
        assert cell(result, "derpp, backbone=vit")["ad"].values.tolist() == [1]
        named = measured(tmp_path, baseline="scratch_t2, backbone=vit")
        assert cell(named, "derpp, backbone=small_cnn")["ad"].values.tolist() == [1]
        assert "differs in backbone" in str(cell(named, "derpp, backbone=small_cnn")["baseline_note"].values)

    def test_the_one_with_the_same_learning_rate_is_preferred(self, tmp_path: Path) -> None:
        better = {**BASELINE, "t2_shortcut_normal": [0.9] * 5}
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, learner_settings={"lr": 0.01})
        write_run(tmp_path, "scratch_t2", "sgd", 1, better, learner_settings={"lr": 0.1})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), learner_settings={"lr": 0.1, "alpha": 0.5})
        assert cell(measured(tmp_path), "derpp")["ad"].values.tolist() == [1]

    def test_two_that_fit_equally_are_an_error(self, tmp_path: Path) -> None:
        for rate in (0.1, 0.2):
            write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, learner_settings={"lr": rate})
        write_run(tmp_path, "sequential", "derpp", 1, learner(1))
        with pytest.raises(WaterjarError, match=r"2 possible baselines: 'scratch_t2, lr=0.1', 'scratch_t2, lr=0.2'"):
            measured(tmp_path)

    def test_none_that_fits_is_said(self, tmp_path: Path) -> None:
        other = {"data": "x", "backbone": "vit", "shortcut": {"rate": 1.0, "eval_rate": 0.5}, "tasks": 3}
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, **other)
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), **{**other, "data": "y"}, size=1)
        part = cell(measured(tmp_path), "derpp")
        assert "no 'scratch_t2' has the same settings" in str(part["baseline_note"].values)
        assert str(part["ad_kind"].values) == "epochs_to_threshold"

    def test_many_differences_are_counted(self, tmp_path: Path) -> None:
        keys = "abcdef"
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE, **dict.fromkeys(keys, 1))
        write_run(tmp_path, "sequential", "derpp", 1, learner(1), **dict.fromkeys(keys, 2))
        assert "a, b, c, d and 2 more" in str(cell(measured(tmp_path), "derpp")["baseline_note"].values)

    def test_a_timeline_of_another_lab(self, tmp_path: Path) -> None:
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
