"""The labelled level against numbers worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from diagnose.rigidity.einstellung_runs import SETS, write_run
from waterjar import WaterjarError
from waterjar.diagnose import labelled, rigidity
from waterjar.diagnose.registry import families
from waterjar.diagnose.rigidity.injection import injected
from waterjar.diagnose.study import diagnose
from waterjar.run.schema import REASONS

# epochs 0 ... 4 of T2. Baseline: 0.6 is reached at epoch 3; the first best validation among epochs 1 ... 4 is epoch 2
BASELINE = {
    "t2_shortcut_normal": [0.0, 0.2, 0.4, 0.6, 0.6],
    "t2_shortcut_masked": [0.0, 0.1, 0.1, 0.1, 0.1],
    "t2_validation": [0.9, 0.1, 0.3, 0.3, 0.2],
}
# Learners reach 0.6 at epochs 1, 0 and 2; their best validation is the last epoch
LEARNER = {
    1: [0.5, 0.7, 0.7, 0.8, 0.8],
    2: [0.6, 0.7, 0.7, 0.7, 0.7],
    3: [0.1, 0.1, 0.7, 0.7, 0.6],
}
OTHERS = {
    "t1_all": [0.9, 0.5, 0.4, 0.3, 0.2],
    "t2_shortcut_masked": [0.0, 0.1, 0.1, 0.1, 0.2],
    "t2_validation": [0.0, 0.1, 0.2, 0.3, 0.4],
    "t2_shortcut_clean": [0.0, 0.0, 0.0, 0.0, 0.25],
    "t2_shortcut_random_mask": [0.0, 0.0, 0.0, 0.0, 0.55],
    "t2_nonshortcut_normal": [0.0, 0.0, 0.0, 0.0, 0.65],
    "t2_nonshortcut_masked": [0.0, 0.0, 0.0, 0.0, 0.6],
    "t2_nonshortcut_patched": [0.0, 0.0, 0.0, 0.0, 0.15],
}
BY_EPOCH: dict[str, Any] = {"window": 1}


def learner(seed: int, **changes: list[Any]) -> dict[str, list[Any]]:
    return {**OTHERS, "t2_shortcut_normal": LEARNER[seed], **changes}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    for seed in (1, 2, 3):
        write_run(folder, "scratch_t2", "sgd", seed, BASELINE)
        write_run(folder, "sequential", "derpp", seed, learner(seed))
    return folder


def cell(result: xr.Dataset, name: str) -> xr.Dataset:
    (place,) = np.flatnonzero(result["cell"].values == name)
    return result.isel(cell=int(place))


def why(part: xr.Dataset, name: str) -> list[str]:
    if f"{name}_reason" not in part:
        assert not np.isnan(part[name].values).any()
        return ["present"] * part[name].size
    return [REASONS[code] for code in np.ravel(part[f"{name}_reason"].values).astype(int)]


def test_the_index_by_hand(folder: Path) -> None:
    part = cell(rigidity.measure(waterjar.open_study(folder), **BY_EPOCH), "derpp")
    assert part["seed"].values.tolist() == [1, 2, 3]
    assert part["adaptation_epoch"].values.tolist() == [1, 0, 2]
    assert part["baseline_adaptation_epoch"].values.tolist() == [3, 3, 3]
    assert part["ad"].values.tolist() == [-2, -3, -1]
    assert part["pd"].values == pytest.approx([0.4 - 0.8, 0.4 - 0.7, 0.4 - 0.6])
    assert part["sfr"].values == pytest.approx([0.6, 0.5, 0.4])
    assert part["sfr_rel"].values == pytest.approx([0.3, 0.2, 0.1])  # the baseline's own is 0.4 - 0.1
    assert part["checkpoint_epoch"].values.tolist() == [4, 4, 4]
    assert part["checkpoint_step"].values.tolist() == [7, 7, 7]  # three evaluations of T1 come before
    assert str(part["baseline"].values) == "scratch_t2" and str(part["baseline_note"].values) == ""


def test_the_controls_by_hand(folder: Path) -> None:
    part = cell(rigidity.measure(waterjar.open_study(folder), **BY_EPOCH), "derpp")
    expected = {
        "patched_accuracy": [0.8, 0.7, 0.6],
        "masked_accuracy": [0.2] * 3,
        "clean_accuracy": [0.25] * 3,
        "random_mask_accuracy": [0.55] * 3,
        "nonshortcut_accuracy": [0.65] * 3,
        "t1_accuracy": [0.2] * 3,
        "mask_damage": [0.05] * 3,
        "random_mask_damage": [0.25, 0.15, 0.05],
        "cue_gain": [0.55, 0.45, 0.35],
        "cue_conflict": [0.5] * 3,
        "worst_group_accuracy": [0.15] * 3,
        "patched_images": [28.0] * 3,
    }
    for name, values in expected.items():
        assert part[name].values == pytest.approx(values), name
    assert set(part["worst_group"].values) == {"other classes, cue present"}
    assert part["group_accuracy"].sel(group="shortcut classes, cue absent").values == pytest.approx([0.25] * 3)


def test_over_seeds(folder: Path) -> None:
    part = cell(rigidity.measure(waterjar.open_study(folder), **BY_EPOCH), "derpp")
    half = 4.302652729911275 / math.sqrt(3)  # t(2) at 97.5 %, over the root of n, times a standard deviation of 1
    assert float(part["ad_mean"]) == -2.0
    assert float(part["ad_std"]) == 1.0
    assert float(part["ad_low"]) == pytest.approx(-2 - half)
    assert float(part["ad_high"]) == pytest.approx(-2 + half)
    assert float(part["ad_n"]) == 3
    assert float(part["sfr_rel_mean"]) == pytest.approx(0.2)
    assert float(part["ad_restricted_mean"]) == -2.0  # nothing is censored
    assert float(part["ad_restricted_bootstrap_low"]) == pytest.approx(-2 - half)  # t: a bootstrap of three covers 74 %
    assert float(part["ad_restricted_bootstrap_high"]) == pytest.approx(-2 + half)
    assert "paired t interval of 3 pairs" in str(part["ad_restricted_bootstrap_note"].values)
    # AD -2 +- 2.5 is not clear of 0
    assert str(part["pattern"].values) == "inconclusive"
    text = str(part["sentence"].values)
    assert "not clearly slower or quicker" in text and "ends higher" in text and "3 seeds do not settle" in text
    # paired t, effect 2 standard deviations, power 80 %: five seeds (statsmodels TTestPower gives 4.22)
    assert float(part["ad_restricted_seeds_needed"]) == 5
    assert float(part["seeds_needed"]) == 5


def test_shortcut_rigidity_is_named(folder: Path) -> None:
    study = waterjar.open_study(folder)
    part = cell(rigidity.measure(study, confidence=0.8, **BY_EPOCH), "derpp")
    assert str(part["pattern"].values) == "shortcut_rigidity"
    assert "shortcut-induced rigidity" in str(part["sentence"].values)


def test_the_baseline_beside_itself(folder: Path) -> None:
    part = cell(rigidity.measure(waterjar.open_study(folder), **BY_EPOCH), "scratch_t2")
    for name in ("ad", "pd", "sfr_rel"):
        assert part[name].values.tolist() == [0, 0, 0]
    assert part["sfr"].values == pytest.approx([0.3] * 3)
    assert part["checkpoint_step"].values.tolist() == [2, 2, 2]
    assert str(part["pattern"].values) == "baseline" and "is the baseline" in str(part["sentence"].values)


def test_smoothing_by_hand(folder: Path) -> None:
    # trailing means of the learners: .5 .6 .633 .733 .767 | .6 .65 .667 .7 .7 | .1 .1 .3 .5 .667
    # and of the baseline: 0 .1 .2 .4 .533
    part = cell(rigidity.measure(waterjar.open_study(folder), threshold=0.4), "derpp")
    assert part["adaptation_epoch"].values.tolist() == [0, 0, 3]
    assert part["ad"].values.tolist() == [-3, -3, 0]


def test_the_last_checkpoint(folder: Path) -> None:
    result = rigidity.measure(waterjar.open_study(folder), checkpoint="last")
    assert cell(result, "scratch_t2")["patched_accuracy"].values == pytest.approx([0.6] * 3)
    assert cell(result, "derpp")["pd"].values == pytest.approx([0.6 - 0.8, 0.6 - 0.7, 0.0])


def test_the_grid_of_thresholds(folder: Path) -> None:
    grid = cell(rigidity.measure(waterjar.open_study(folder), thresholds=[0.3, 0.6, 0.65, 0.75], **BY_EPOCH), "derpp")
    nan = np.nan  # baseline reaches 0.3 at 2, 0.6 at 3, and no more
    expected = [[-2, -2, nan, nan], [-2, -3, nan, nan], [0, -1, nan, nan]]
    np.testing.assert_array_equal(grid["ad_by_threshold"].transpose("seed", "threshold").values, expected)
    assert grid["threshold"].values.tolist() == [0.3, 0.6, 0.65, 0.75]
    assert grid["ad_by_threshold_n_censored"].values.tolist() == [0, 0, 3, 3]
    np.testing.assert_allclose(grid["ad_by_threshold_mean"].values, [-4 / 3, -2, nan, nan])
    learners = grid["ad_by_threshold_censored_learner"].transpose("seed", "threshold").values
    assert learners.tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    # restricted to 4 epochs: seed 1 reaches .65 at 1 and .75 at 3; seed 2 at 1 and never; seed 3 at 2 and never.
    # So seeds 2 and 3 have three thresholds that say something: -2 -3 -3 and 0 -1 -2
    assert grid["ad_over_thresholds"].values == pytest.approx([-8 / 4, -8 / 3, -3 / 3])
    assert grid["ad_over_thresholds_n_left_out"].values.tolist() == [0, 1, 1]


def test_thresholds_that_nobody_reaches_are_no_delay_of_0(folder: Path) -> None:
    study = waterjar.open_study(folder)
    few = cell(rigidity.measure(study, thresholds=[0.3], **BY_EPOCH), "derpp")
    more = cell(rigidity.measure(study, thresholds=[0.3, 0.9, 0.95, 1.0], **BY_EPOCH), "derpp")
    assert more["ad_over_thresholds"].values.tolist() == few["ad_over_thresholds"].values.tolist() == [-2, -2, 0]
    assert more["ad_over_thresholds_n_left_out"].values.tolist() == [3, 3, 3]
    none = cell(rigidity.measure(study, thresholds=[0.9, 1.0], **BY_EPOCH), "derpp")
    assert why(none, "ad_over_thresholds") == ["never_reached"] * 3
    assert none["ad_over_thresholds_n_left_out"].values.tolist() == [2, 2, 2]
    assert why(none, "ad_over_thresholds_mean") == ["never_reached"]


def test_no_baseline_reaches_the_threshold(folder: Path) -> None:
    part = cell(rigidity.measure(waterjar.open_study(folder), threshold=0.7, **BY_EPOCH), "derpp")
    assert np.isnan(part["ad"].values).all() and why(part, "ad") == ["never_reached"] * 3
    assert np.isnan(float(part["ad_mean"])) and why(part, "ad_mean") == ["never_reached"]
    assert int(part["ad_n_censored_baseline"]) == 3 and int(part["ad_n_censored_learner"]) == 0
    assert part["ad_censored_baseline"].values.tolist() == [1, 1, 1]
    # within the budget of 4: learners 1, 1, 2, baselines 4, 4, 4
    assert part["ad_restricted"].values.tolist() == [-3, -3, -2]
    assert float(part["ad_restricted_mean"]) == pytest.approx(-8 / 3)
    assert float(part["ad_restricted_high"]) < 0
    for end in ("low", "high"):
        assert float(part[f"ad_restricted_bootstrap_{end}"]) == pytest.approx(float(part[f"ad_restricted_{end}"]))
    assert "paired t interval of 3 pairs" in str(part["ad_restricted_bootstrap_note"].values)
    assert "never reached by the baseline in 3 of 3 seeds" in str(part["sentence"].values)


def test_nobody_reaches_the_threshold(folder: Path) -> None:
    part = cell(rigidity.measure(waterjar.open_study(folder), threshold=0.95, **BY_EPOCH), "derpp")
    for name in ("ad", "ad_restricted"):
        assert why(part, name) == ["never_reached"] * 3
    assert int(part["ad_n_censored_baseline"]) == int(part["ad_n_censored_learner"]) == 3
    assert "cannot be told" in str(part["sentence"].values)


def test_the_composite_comes_on_request(folder: Path) -> None:
    study = waterjar.open_study(folder)
    assert "eri_composite" not in rigidity.measure(study, **BY_EPOCH)
    with pytest.raises(WaterjarError, match="on request alone: --set rigidity.composite=true"):
        diagnose(study, only=["rigidity"], settings={"rigidity": BY_EPOCH}).table(["eri_composite"])
    part = cell(rigidity.measure(study, composite=True, **BY_EPOCH), "derpp")
    # 0.4 AD / 4 + 0.4 PD + 0.2 SFR_rel
    assert part["eri_composite"].values == pytest.approx([-0.2 - 0.16 + 0.06, -0.3 - 0.12 + 0.04, -0.1 - 0.08 + 0.02])
    assert part["eri_composite"].attrs["weights"] == [0.4, 0.4, 0.2]
    other = cell(rigidity.measure(study, composite=True, weights=[1, 0, 0], **BY_EPOCH), "derpp")
    assert other["eri_composite"].values == pytest.approx([-0.5, -0.75, -0.25])
    censored = cell(rigidity.measure(study, composite=True, threshold=0.95), "derpp")
    assert why(censored, "eri_composite") == ["never_reached"] * 3


def test_what_it_was_made_of_is_in_the_result(folder: Path) -> None:
    study = waterjar.open_study(folder)
    result = rigidity.measure(study, threshold=0.5)
    settings = json.loads(result.attrs["settings"])
    assert settings["threshold"] == 0.5 and settings.keys() == families()["rigidity"].defaults.keys()
    assert json.loads(result.attrs["root_hashes"]) == {entry.name: entry.root_hash for entry in study.entries}
    assert injected(result, 6) == "patched training images were counted in every run"
    assert result["sfr"].attrs["citation"] and result["ad"].attrs["units"] == "epoch"
    assert result["ad_over_thresholds"].attrs["units"] == "epoch"
    for metric in families()["rigidity"].metrics.values():
        if metric.name != "eri_composite":
            assert result[metric.scalar].dims == ("cell", "seed"), metric.name
            assert f"{metric.scalar}_low" in result, metric.name


def test_nothing_depends_on_the_run_of_the_bootstrap(folder: Path) -> None:
    study = waterjar.open_study(folder)
    xr.testing.assert_identical(rigidity.measure(study), rigidity.measure(study))


def test_sets_of_other_names_and_other_variables(tmp_path: Path) -> None:
    names = {name: f"my_{name}" for name in SETS}
    curves = {names[name]: values for name, values in learner(1).items()}
    curves["t2_shortcut_normal"] = curves["my_t2_shortcut_normal"]
    sets = {**{names[name]: task for name, task in SETS.items()}, "t2_shortcut_normal": 1}
    del sets["my_t2_shortcut_normal"], sets["my_t2_validation"]
    write_run(tmp_path, "sequential", "sgd", 1, curves, sets=sets, variables=["task_macro_accuracy"])
    study = waterjar.open_study(tmp_path)
    mapping = {"masked": "my_t2_shortcut_masked"}
    with pytest.raises(WaterjarError, match=r"'t2_validation' \(validation\).*rigidity.checkpoint=last"):
        rigidity.measure(study, eval_sets=mapping, variable="task_macro_accuracy")
    result = rigidity.measure(study, eval_sets=mapping, variable="task_macro_accuracy", checkpoint="last")
    assert result["sfr"].values == pytest.approx(np.array([[0.6]]))
    assert why(cell(result, "sgd"), "cue_gain") == ["not_recorded"]  # a control that was not evaluated


def test_export_has_the_keys_of_the_seed(folder: Path) -> None:
    exported = rigidity.export(rigidity.measure(waterjar.open_study(folder), threshold=0.7, **BY_EPOCH))
    numbers = exported["derpp"]["relative_reliance"]
    assert numbers["mean"] == pytest.approx(0.2) and numbers["std"] == pytest.approx(0.1)
    assert (numbers["min"], numbers["max"]) == (pytest.approx(0.1), pytest.approx(0.3))
    assert numbers["n_seeds"] == 3
    assert numbers["confidence_interval"] == pytest.approx([0.2 - 0.24841, 0.2 + 0.24841], abs=1e-4)
    assert exported["derpp"]["absolute_reliance"]["seeds"] == {
        "1": pytest.approx(0.6),
        "2": pytest.approx(0.5),
        "3": pytest.approx(0.4),
    }
    assert exported["derpp"]["adaptation_epoch"]["seeds"] == {"1": 1.0, "2": 1.0, "3": 2.0}
    delay = exported["derpp"]["adaptation_delay"]
    assert delay["mean"] is None and delay["n_seeds"] == 0 and delay["confidence_interval"] is None
    assert json.loads(json.dumps(exported, allow_nan=False)) == exported
    with pytest.raises(WaterjarError, match="measure a study"):
        rigidity.export(xr.Dataset())


def test_a_study_is_its_runs_side_by_side(tmp_path: Path) -> None:
    """Also with seeds that a cell lacks."""
    for seed in (2, 3):
        write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
    write_run(tmp_path, "scratch_t2", "sgd", 2, BASELINE)
    study = waterjar.open_study(tmp_path)
    names = [f"{name}{end}" for name in ("sfr", "ad", "adaptation_epoch") for end in ("", "_reason")]
    parts = {}
    for name, entries in study.cells.items():
        runs = {entry.name: rigidity.measure(waterjar.open_run(tmp_path / entry.name)) for entry in entries}
        parts[name] = labelled.join_runs({key: run[[n for n in names if n in run]] for key, run in runs.items()})
    expected = labelled.side_by_side(parts, study)
    found = rigidity.measure(study, baseline=None)
    for variable in names:
        xr.testing.assert_equal(expected[variable], found[variable].transpose(*expected[variable].dims))


def test_how_a_mean_is_bounded_is_said_of_each_cell(tmp_path: Path) -> None:
    """From ten seeds on `ad_restricted` is bounded by a bootstrap; another cell of the study has three."""
    for seed in range(10):
        write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
        write_run(tmp_path, "sequential", "derpp", seed, learner(1 + seed % 3))
        if seed < 3:
            write_run(tmp_path, "sequential", "er", seed, learner(1 + seed))
    result = rigidity.measure(waterjar.open_study(tmp_path), **BY_EPOCH)
    found = {name: str(cell(result, name)["ad_restricted_interval"].values) for name in ("er", "derpp")}
    assert found == {"er": "t", "derpp": "bca_expanded"}
    for end in ("low", "high"):
        words = result[f"ad_restricted_{end}"].attrs["long_name"]
        assert words.endswith("er bound of the 95 % interval of the mean")
