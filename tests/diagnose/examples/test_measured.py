"""Examples of recorded runs: when an evaluation counts, what is missing and why, and pairs of cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from waterjar import WaterjarError
from waterjar.diagnose import examples
from waterjar.diagnose.examples import AnswerPair
from waterjar.diagnose.result import NO_BASELINE, NO_RUN
from waterjar.stats import crossed_interval, mcnemar_p
from waterjar.testing import check_metric

ROWS = [(task, epoch) for task in ("x", "y") for epoch in range(3)]
SETS = {"x_all": 0, "y_all": 1}


def record(
    path: Path,
    correct: dict[str, Any],
    *,
    seed: int = 1,
    rows: list[tuple[str, int]] = ROWS,
    margin: dict[str, Any] | None = None,
    method: str = "sgd",
    static: dict[str, Any] | None = None,
) -> waterjar.Run:
    """`correct` has (step, example) of every set."""
    recorder = waterjar.Recorder(
        path, {"method": method}, seeds=[seed], eval_sets=SETS, tasks=["x", "y"], classes=["a", "b"], provenance=False
    )
    with recorder:
        for name, own in (static or {}).items():
            recorder.once("examples", **{name: own})
        for step, (task, epoch) in enumerate(rows):
            found = {"correct": {name: np.asarray(values)[[step]] for name, values in correct.items()}}
            if margin is not None:
                found["margin"] = {name: np.asarray(values)[[step]] for name, values in margin.items()}
            recorder.log(train_task=task, epoch=epoch, examples=found)
    return waterjar.open_run(path)


def columns(*texts: str) -> np.ndarray:
    """(step, example) of one text per example: 1, 0, and - where nobody looked."""
    return np.array([[{"1": 1.0, "0": 0.0, "-": np.nan}[sign] for sign in text] for text in texts]).T


#                       x: 0 1 2  y: 0 1 2
CORRECT = {
    "x_all": columns("011101", "100000", "010010", "000000"),
    "y_all": columns("111001", "000011", "101000"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Run:
    margin = {name: np.where(values > 0, 2.0, -1.0) for name, values in CORRECT.items()}
    margin["x_all"] = margin["x_all"] + np.arange(6)[:, None]
    return record(tmp_path_factory.mktemp("run") / "run", CORRECT, margin=margin)


def test_an_example_counts_from_its_own_training_on(run: waterjar.Run) -> None:
    found = examples.measure(run).isel(repeat=0)
    assert found["example"].values.tolist()[:2] == ["x_all/0", "x_all/1"]
    #  x counts from its epoch 1 on: 11101, 00000, 10010, 00000; y from its own: 01, 11, 00
    events = found["forgetting_events"].values
    np.testing.assert_array_equal(events, [1, np.nan, 2, np.nan, 0, 0, np.nan])
    assert found["forgetting_events_reason"].values.tolist() == [0, 5, 0, 5, 0, 0, 5]  # never_reached
    assert float(found["forgetting_events_mean"]) == pytest.approx(3 / 4)
    np.testing.assert_allclose(found["forgetting_events_by_set"].values, [1.5, 0.0])
    assert int(found["forgetting_events_n_left_out"]) == 3
    assert float(found["never_learned_share"]) == pytest.approx(3 / 7)
    np.testing.assert_allclose(found["never_learned_share_by_set"].values, [2 / 4, 1 / 3])
    assert float(found["unforgettable_share"]) == pytest.approx(2 / 7)
    np.testing.assert_array_equal(found["first_learned"].values, [1, np.nan, 1, np.nan, 2, 1, np.nan])
    assert float(found["first_learned_median"]) == 2.0  # the fourth of seven
    assert found["first_learned_by_set"].values[0] == 1.0
    assert float(found["example_accuracy"]) == pytest.approx(3 / 7)


def test_since_and_learned_for_good(run: waterjar.Run) -> None:
    every = examples.measure(run, since="all").isel(repeat=0)
    np.testing.assert_array_equal(every["forgetting_events"].values, [1, 1, 2, np.nan, 1, 0, 2])
    start = examples.measure(run, since="start").isel(repeat=0)  # y: 001, 011, 000
    np.testing.assert_array_equal(start["forgetting_events"].values, [1, 1, 2, np.nan, 0, 0, np.nan])
    good = examples.measure(run, learned="for_good").isel(repeat=0)
    #  epochs since the training of x began: those of y come behind its two
    np.testing.assert_array_equal(good["first_learned"].values[[0, 4, 5]], [4, 2, 1])
    assert good["first_learned_reason"].values[2] == 5


def test_area_is_over_the_training_of_the_own_task(run: waterjar.Run) -> None:
    found = examples.measure(run).isel(repeat=0)["area_under_margin"].values
    assert found[0] == ((2 + 1) + (2 + 2)) / 2  # epochs 1 and 2 of x
    assert found[4] == (-1 + 2) / 2
    whole = examples.measure(run, aum_over="all").isel(repeat=0)["area_under_margin"].values
    assert whole[0] == ((2 + 1) + (2 + 2) + (2 + 3) + (-1 + 4) + (2 + 5)) / 5


def test_margins_that_are_no_numbers(tmp_path: Path) -> None:
    margin = {name: np.where(values > 0, 2.0, -1.0) for name, values in CORRECT.items()}
    margin["x_all"][2, 0] = np.nan
    margin["x_all"][2, 2] = 1e30  # infinite as a half float
    margin["y_all"][0, 0] = np.nan  # before its training
    found = examples.measure(record(tmp_path / "run", CORRECT, margin=margin)).isel(repeat=0)
    assert found["forgetting_events_reason"].values.tolist() == [2, 5, 0, 5, 0, 0, 5]  # not_a_number
    assert found["area_under_margin_reason"].values.tolist() == [2, 0, 6, 0, 0, 0, 0]  # undefined
    assert int(found["forgetting_events_mean_reason"]) == 2
    assert found["forgetting_events_by_set"].values[1] == 0.0


def test_joint_training_trains_every_task_and_one_task_alone_leaves_the_other_undefined(tmp_path: Path) -> None:
    rows = [("joint", epoch) for epoch in range(6)]
    joint = examples.measure(record(tmp_path / "joint", CORRECT, rows=rows)).isel(repeat=0)
    np.testing.assert_array_equal(joint["forgetting_events"].values, [1, np.nan, 2, np.nan, 1, 0, 1])
    alone = examples.measure(record(tmp_path / "y", CORRECT, rows=[("y", e) for e in range(6)])).isel(repeat=0)
    assert alone["forgetting_events_reason"].values.tolist()[:4] == [6] * 4  # x was never trained
    assert np.isnan(alone["forgetting_events_mean"]) and int(alone["forgetting_events_mean_reason"]) == 6
    assert alone["forgetting_events_by_set"].values[1] == pytest.approx((1 + 0 + 1) / 3)
    one = examples.measure(waterjar.open_run(tmp_path / "y"), eval_sets=["y_all"]).isel(repeat=0)
    assert float(one["forgetting_events_mean"]) == pytest.approx(2 / 3)


def test_train_examples_stand_apart(tmp_path: Path) -> None:
    correct = {**CORRECT, "train": columns("010101", "000001")}
    static = {"task": {"x_all": [[0] * 4], "y_all": [[1] * 3], "train": [[0, 1]]}}
    run = record(tmp_path / "run", correct, static=static)
    found = examples.measure(run).isel(repeat=0)
    assert found.attrs["judged_sets"] == "x_all, y_all"
    assert found["eval_set"].values.tolist() == ["x_all", "y_all", "train"]
    np.testing.assert_array_equal(found["forgetting_events"].values[-2:], [2, 0])
    assert float(found["forgetting_events_mean"]) == pytest.approx(3 / 4)
    train = examples.measure(run, eval_sets=["train"]).isel(repeat=0)
    assert float(train["forgetting_events_mean"]) == 1.0
    with pytest.raises(WaterjarError, match="set of examples 'z'"):
        examples.measure(run, eval_sets=["z"])


def study(folder: Path, answers: dict[str, dict[int, np.ndarray]]) -> waterjar.Study:
    """Method -> seed -> the last answers on both sets, which are those of all steps."""
    waterjar.create_study(folder)
    for method, seeds in answers.items():
        for seed, last in seeds.items():
            correct = {"x_all": np.tile(last[:20], (6, 1)), "y_all": np.tile(last[20:], (6, 1))}
            record(folder / f"{method}-{seed}", correct, seed=seed, method=method)
    return waterjar.open_study(folder)


def test_pairs_seeds_and_samples(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ease = rng.random(50)
    answers = {
        method: {seed: (ease + 0.4 * rng.random(50) > level) * 1.0 for seed in (1, 2, 3)}
        for method, level in (("base", 0.7), ("better", 0.5))
    }
    found = examples.measure(study(tmp_path / "study", answers), baseline="base")
    for seed in (1, 2, 3):
        own, other = answers["better"][seed], answers["base"][seed]
        gained, lost = int(((own == 1) & (other == 0)).sum()), int(((own == 0) & (other == 1)).sum())
        one = found.sel(cell="better", seed=seed)
        assert (float(one["mcnemar_gained"]), float(one["mcnemar_lost"])) == (gained, lost)
        assert float(one["mcnemar_gain"]) == pytest.approx((gained - lost) / 50)
        assert float(one["mcnemar_p"]) == pytest.approx(mcnemar_p(gained, lost))
        kappa = examples.error_consistency(own.astype(int), other.astype(int))
        assert float(one["error_consistency"]) == pytest.approx(float(kappa.kappa))
        assert float(one["error_consistency_highest"]) == pytest.approx(float(kappa.highest))
    base, better = found.sel(cell="base"), found.sel(cell="better")
    assert base["mcnemar_gain"].values.tolist() == [0, 0, 0] and base["mcnemar_p"].values.tolist() == [1, 1, 1]
    assert np.isnan(base["error_consistency"].values).all()
    table = np.stack(list(answers["better"].values()))
    expected = crossed_interval(table, within=(0, 1))
    assert float(better["example_accuracy_low"]) == pytest.approx(expected.low)
    gains = crossed_interval(table - np.stack(list(answers["base"].values())))
    assert (float(better["mcnemar_gain_low"]), float(better["mcnemar_gain_high"])) == pytest.approx(
        (gains.low, gains.high)
    )
    seeds = [examples.error_consistency(table[0].astype(int), table[k].astype(int)).kappa for k in (1, 2)]
    assert float(better["error_consistency_seeds"].sel(seed=1)) == pytest.approx(np.mean([float(k) for k in seeds]))


def test_without_a_partner(tmp_path: Path) -> None:
    answers = {"base": {1: np.ones(50)}, "other": {1: np.arange(50) % 2 * 1.0, 2: np.ones(50)}}
    made = study(tmp_path / "study", answers)
    found = examples.measure(made, baseline="base").sel(cell="other")
    assert found["mcnemar_gain_reason"].values.tolist() == [0, NO_RUN]
    none = examples.measure(made, baseline=None).sel(cell="other")
    assert set(none["mcnemar_gain_reason"].values) == {NO_BASELINE}
    assert not np.isnan(none["example_accuracy"].values).any()


def test_other_images_are_not_paired(tmp_path: Path) -> None:
    """Where every seed has images of its own, no two seeds are compared, and the interval is over seeds."""
    folder = tmp_path / "study"
    waterjar.create_study(folder)
    for seed, last in ((1, CORRECT), (2, CORRECT)):
        static = {"sample_index": {"x_all": [np.arange(4) + 10 * seed], "y_all": [np.arange(3)]}}
        record(folder / f"a-{seed}", last, seed=seed, method="a", static=static)
        record(folder / f"b-{seed}", last, seed=seed, method="b")
    found = examples.measure(waterjar.open_study(folder), baseline="b").sel(cell="a")
    assert set(found["error_consistency_seeds_reason"].values) == {6}
    assert set(found["mcnemar_gain_reason"].values) == {6}
    assert not bool(found["same_examples"])
    assert str(found["example_accuracy_interval"].values) == "t_logit"


def test_a_run_that_ended_early_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    waterjar.create_study(folder)
    record(folder / "1", CORRECT, seed=1)
    record(folder / "2", CORRECT, seed=2, rows=ROWS[:4])
    found = examples.measure(waterjar.open_study(folder), baseline=None).isel(cell=0)
    assert found["forgetting_events_mean_reason"].values.tolist() == [0, 4]  # run_ended
    assert found["example_accuracy_reason"].values.tolist() == [0, 4]


def test_right_alone_may_be_recorded(tmp_path: Path) -> None:
    found = examples.measure(record(tmp_path / "run", CORRECT)).isel(repeat=0)
    assert set(found["area_under_margin_reason"].values) == {1}  # not_recorded
    assert float(found["never_learned_share"]) == pytest.approx(3 / 7)


def test_directions() -> None:
    right, wrong = np.array([1, 1, 0], np.uint8), np.array([1, 0, 0], np.uint8)
    better, worse = AnswerPair(right, wrong, None, False), AnswerPair(wrong, right, None, False)
    assert check_metric("mcnemar_gain", better=better, worse=worse) == ()


def test_with_all_evaluations_epochs_are_those_of_the_run(run: waterjar.Run, tmp_path: Path) -> None:
    found = examples.measure(run, since="all").isel(repeat=0)
    np.testing.assert_array_equal(found["first_learned"].values, [1, 0, 1, np.nan, 0, 3, 0])
    margin = {name: np.where(values > 0, 2.0, -1.0) for name, values in CORRECT.items()}
    alone = record(tmp_path / "y", CORRECT, rows=[("y", e) for e in range(6)], margin=margin)
    area = examples.measure(alone, since="all").isel(repeat=0)
    assert area["area_under_margin_reason"].values.tolist() == [6] * 4 + [0] * 3  # x was never trained


def test_without_answers_there_is_nothing_to_measure(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[1], eval_sets=SETS, tasks=["x", "y"]) as recorder:
        recorder.once("examples", label={"x_all": [[0]], "y_all": [[1]]})
        recorder.log(train_task="x", epoch=0, performance={"accuracy": [0.5, 0.5]})
    with pytest.raises(WaterjarError, match="expected examples/correct"):
        examples.measure(waterjar.open_run(tmp_path / "run"))
