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
from waterjar.diagnose.rigidity.injection import injected
from waterjar.run import rows


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
    assert "unknown whether the shortcut was there" in injected(result, 1)
    assert np.isnan(rigidity.measure(waterjar.open_run(path))["patched_images"].values).all()


def test_without_a_baseline_there_is_no_delay_and_the_epoch_is_named(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
    part = cell(measured(tmp_path), "derpp")
    assert part["adaptation_epoch"].values.tolist() == [1, 0, 2]
    assert "no cell with the scenario 'scratch_t2'" in str(part["baseline_note"].values)
    for name in ("ad", "pd", "sfr_rel", "ad_restricted", "ad_over_thresholds"):
        assert why(part, name) == ["no_baseline"] * 3
    assert why(part, "ad_mean") == ["no_baseline"]
    assert part["sfr"].values == pytest.approx([0.6, 0.5, 0.4])
    assert str(part["pattern"].values) == "inconclusive" and "has no baseline" in str(part["sentence"].values)
    # mean 1, standard deviation 1, t(2) at 97.5 % over the root of 3: 2.5; inside [0, inf): exp(± 2 asinh(2.5/2))
    assert "reaches 60 % on the shortcut classes at epoch E = 1.0 [0.1, 8.0]." in str(part["sentence"].values)
    text = str(cell(measured(tmp_path, threshold=0.75), "derpp")["sentence"].values)
    assert "E = 3.0, no interval; never reached in 2 of 3 seeds." in text
    text = str(cell(measured(tmp_path, threshold=0.95), "derpp")["sentence"].values)
    assert "reaches 95 % on the shortcut classes: never, in 3 of 3 seeds." in text


def test_a_baseline_that_is_not_wanted(tmp_path: Path) -> None:
    write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
    write_run(tmp_path, "sequential", "derpp", 1, learner(1))
    part = cell(measured(tmp_path, baseline=None), "derpp")
    assert why(part, "ad") == ["no_baseline"] and part["adaptation_epoch"].values.tolist() == [1]
    assert str(part["baseline_note"].values) == "no baseline was asked for"


def test_a_single_run(tmp_path: Path) -> None:
    run = waterjar.open_run(write_run(tmp_path, "sequential", "derpp", 1, learner(1)))
    result = rigidity.measure(run, **BY_EPOCH)
    assert result["sfr"].dims == ("repeat",) and result["seed"].values.tolist() == [1]
    assert result["adaptation_epoch"].values.tolist() == [1.0]
    assert why(result, "ad") == why(result, "pd") == ["no_baseline"]
    assert "measure the study" in str(result["baseline_note"].values)


def test_a_run_without_performance(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, provenance=False) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
    with pytest.raises(WaterjarError, match="run has recorded no performance"):
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
        assert why(part, name) == ["no_run", "present", "no_run"], name
    assert why(part, "sfr") == ["no_run", "present", "present"]
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


def test_accuracies_in_percent_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "check_accuracies", lambda values, name: None)  # a run of before it was refused
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
