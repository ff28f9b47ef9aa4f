"""What is odd is measured right, or missing for its true reason, with one sentence where something is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from diagnose.collective.by_hand import last, measured, random_streams, sure_of, why
from waterjar import WaterjarError
from waterjar.diagnose import collective
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import UNDEFINED
from waterjar.diagnose.study import diagnose
from waterjar.run.schema import REASONS

NEED_ROUTING = ("routing_entropy", "route_information", "load_imbalance", "routing_overlap", "routing_entropy_change")
NEED_PRINTS = ("fingerprint_diversity", "anchor_utilisation", "anchor_entropy", "dead_anchors")


def remarks(found: Any) -> str:
    return str(found["collective_remarks"].values)


def test_one_stream(tmp_path: Path) -> None:
    streams, labels = random_streams(count=1)
    found = measured(tmp_path, streams, collective="mean_probability", labels=labels)
    assert last(found, "emergence_ratio") == 1.0 and last(found, "error_reduction") == 0.0
    accuracy, chance = last(found, "collective_accuracy"), last(found, "chance")
    np.testing.assert_allclose(last(found, "shapley_accuracy")[0], [accuracy - chance])
    np.testing.assert_allclose(last(found, "ablation")[0], [accuracy - chance])
    for name in ("disagreement", "disagreement_error_ratio", "interaction"):
        assert np.isnan(last(found, name)).all()
    assert why(found, "disagreement") == "undefined"


def test_forty_streams(tmp_path: Path) -> None:
    streams, labels = random_streams(n=60, count=40)
    found = measured(tmp_path, streams, collective="mean_probability", labels=labels, settings={"shapley_samples": 60})
    shares = last(found, "shapley_accuracy")[0]
    gained = last(found, "collective_accuracy") - last(found, "chance")
    assert shares.sum() == pytest.approx(gained)
    error = last(found, "shapley_accuracy_se")[0]
    assert (error > 0).all() and error.max() < 0.03
    low, high = last(found, "shapley_accuracy_low")[0], last(found, "shapley_accuracy_high")[0]
    assert ((low < shares) & (shares < high) & (high - low > 2 * 1.9 * error)).all()
    assert not np.isnan(last(found, "ablation")[0]).any()
    assert np.isnan(last(found, "interaction")).all()
    code = reasons_of(found, "interaction").values[0, -1, 0, 0, 1]
    assert REASONS[code] == "not_recorded"  # all coalitions would be needed
    assert "40 streams: their interactions are missing, since they need all coalitions" in remarks(found)


@pytest.mark.parametrize("rule", ["mean_probability", "vote"])
def test_a_stream_of_nan_is_passed_over_and_said(tmp_path: Path, rule: str) -> None:
    streams, labels = random_streams()
    whole = np.mean(list(streams.values()), axis=0)
    streams["broken"] = np.full_like(whole, np.nan)
    found = measured(tmp_path, streams, collective=whole, labels=labels, settings={"rule": rule})
    each = last(found, "individual_accuracy")
    assert np.isnan(each[-1]) and not np.isnan(each[:-1]).any()
    assert last(found, "emergence_ratio") == last(found, "collective_accuracy") / np.nanmax(each)
    assert last(found, "disagreement_matrix").shape == (4, 4) and last(found, "disagreement") > 0
    assert str(found["collective_remarks"].values).split("; ") == [
        "seed 0: stream broken has no answer to some sample (logits that are NaN, or all minus infinity): passed over "
        "as a stream",
        "seed 0: no contributions of any stream, since the logits of one are not numbers",
    ]
    assert REASONS[reasons_of(found, "shapley_accuracy").values[0, -1, 0, 0]] == "not_a_number"


def test_all_streams_of_nan(tmp_path: Path) -> None:
    labels = np.arange(10) % 2
    found = measured(
        tmp_path, dict.fromkeys("ab", np.full((10, 2), np.nan)), collective=sure_of(labels, 2), labels=labels
    )
    assert last(found, "collective_accuracy") == 1.0
    for name in ("emergence_ratio", "disagreement", "oracle_accuracy", "ambiguity"):
        assert why(found, name) == "not_a_number"


def test_streams_that_know_different_classes(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match=r"'b'\] has shape \(4, 2\) on 'test', 'a' has \(4, 3\).*minus infinity"):
        waterjar.from_logits(tmp_path / "no", {"a": np.zeros((4, 3)), "b": np.zeros((4, 2))})
    labels = np.array([0, 1, 2, 2])
    partial = np.concatenate([sure_of(labels % 2, 2), np.full((4, 1), -np.inf)], 1)
    found = measured(tmp_path, {"a": sure_of(labels, 3), "b": partial}, collective="mean_probability", labels=labels)
    assert last(found, "individual_accuracy").tolist() == [1.0, 0.5]
    assert np.isinf(last(found, "nll_individual")[1]) and np.isfinite(last(found, "nll"))
    assert REASONS[reasons_of(found, "shapley_log_likelihood").values[0, -1, 0, 0]] == "undefined"


def test_without_routing_and_fingerprints(tmp_path: Path) -> None:
    streams, labels = random_streams()
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels)
    for name in (*NEED_ROUTING, *NEED_PRINTS):
        assert np.isnan(found[name].values).all()
        assert set(np.unique(reasons_of(found, name).values)) <= {REASONS.index("not_recorded")}
    assert why(found, "anchor_utilisation_final") == "not_recorded"
    for name in ("emergence_ratio_probe", "emergence_ratio_isolated", "parameter_efficiency", "gradient_contribution"):
        assert why(found, name) == "not_recorded"


def test_without_logits_of_the_collective(tmp_path: Path) -> None:
    streams, labels = random_streams()
    run = waterjar.from_logits(tmp_path / "run", streams, labels=labels)
    found = collective.measure(run, resamples=20)
    assert why(found, "emergence_ratio") == "not_recorded" and last(found, "disagreement") > 0
    assert "rule= says how its streams make them" in str(found["collective_remarks"].values)
    made = collective.measure(run, resamples=20, rule="mean_probability")
    (tmp_path / "other").mkdir()
    same = measured(
        tmp_path / "other", streams, collective="mean_probability", labels=labels, settings={"resamples": 20}
    )
    for name in ("emergence_ratio", "nll_calibrated", "emergence_ratio_high"):
        assert last(made, name) == last(same, name)
    np.testing.assert_allclose(last(made, "shapley_accuracy"), last(same, "shapley_accuracy"))


def test_a_best_stream_that_is_never_right(tmp_path: Path) -> None:
    labels = np.arange(20) % 2
    wrong = dict.fromkeys("ab", sure_of(1 - labels, 2))
    found = measured(tmp_path, wrong, collective=sure_of(labels, 2), labels=labels)
    assert last(found, "emergence_ratio") == np.inf and last(found, "best_individual") == 0.0
    assert last(found, "error_reduction") == 1.0 and why(found, "emergence_ratio_high") == "undefined"  # no upper bound
    (tmp_path / "none").mkdir()
    nobody = measured(tmp_path / "none", wrong, collective=wrong["a"], labels=labels)
    assert why(nobody, "emergence_ratio") == "undefined"


def test_a_best_stream_that_is_always_right(tmp_path: Path) -> None:
    labels = np.arange(20) % 2
    found = measured(tmp_path, dict.fromkeys("ab", sure_of(labels, 2)), collective="vote", labels=labels)
    assert last(found, "emergence_ratio") == 1.0 and why(found, "error_reduction") == "undefined"
    assert why(found, "disagreement_error_ratio") == why(found, "ensemble_improvement_rate") == "undefined"
    assert last(found, "ece") == pytest.approx(0.0)


def test_an_infinite_ratio_goes_through_tables(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "study")
    labels = np.arange(20) % 2
    for seed, guess in ((1, 1 - labels), (2, np.zeros(20, int))):
        waterjar.from_logits(
            tmp_path / "study" / f"run-{seed}", dict.fromkeys("ab", sure_of(guess, 2)), collective=sure_of(labels, 2),
            labels=labels, config={"method": "m", "seed": seed},
        )  # fmt: skip
    found = diagnose(waterjar.open_study(tmp_path / "study"), only=["emergence_ratio"])
    rows = found.table(["emergence_ratio"])
    assert sorted(rows.value) == [2.0, np.inf]


def test_two_seeds_only(tmp_path: Path) -> None:
    parts = [random_streams(seed=seed)[0] for seed in (0, 1)]
    labels = random_streams(seed=0)[1]
    streams = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    run = waterjar.from_logits(tmp_path / "run", streams, collective="mean_logit", labels=labels, seeds=[4, 9])
    found = collective.measure(run, resamples=20)
    assert found["seed"].values.tolist() == [4, 9] and not np.isnan(found["emergence_ratio_final"].values).any()


def test_sets_of_other_sizes(tmp_path: Path) -> None:
    """Filled up with NaN in the run, and not counted: the same as both sets in one."""
    streams, labels = random_streams(n=50)
    apart = {name: {"big": one[:40], "small": one[40:]} for name, one in streams.items()}
    told = {"big": labels[:40], "small": labels[40:]}
    found = measured(tmp_path, apart, collective="mean_probability", labels=told)
    (tmp_path / "other").mkdir()
    whole = measured(tmp_path / "other", streams, collective="mean_probability", labels=labels)
    for name in ("emergence_ratio", "emergence_ratio_low", "nll", "disagreement", "ece"):
        assert last(found, name) == pytest.approx(last(whole, name), abs=1e-12)
    np.testing.assert_allclose(last(found, "shapley_accuracy"), last(whole, "shapley_accuracy"), atol=1e-12)
    only = measured_again(tmp_path, test="small")
    assert only.attrs["scored_sets"] == "small" and last(only, "collective_accuracy") * 10 == pytest.approx(
        round(last(only, "collective_accuracy") * 10)
    )


def measured_again(path: Path, **settings: Any) -> Any:
    return collective.measure(waterjar.open_run(path / "run"), resamples=20, **settings)


def test_labels_that_were_not_recorded(tmp_path: Path) -> None:
    streams, _ = random_streams()
    gate = np.full((200, 3), 1 / 3)
    found = measured(tmp_path, streams, collective="mean_logit", routing=gate)
    assert why(found, "emergence_ratio") == why(found, "shapley_accuracy") == "not_recorded"
    assert last(found, "routing_entropy_normalised") == pytest.approx(1.0)
    assert "labels were not recorded" in str(found["collective_remarks"].values)
    assert why(found, "route_class_information") == "not_recorded" and last(found, "route_information") < 1e-12


def test_the_best_is_chosen_on_validation_data(tmp_path: Path) -> None:
    """`a` is better there, `b` where it is scored: the ratio is against `a`."""
    labels = np.arange(40) % 2
    good, bad = sure_of(labels, 2), sure_of(np.where(np.arange(40) < 10, labels, 1 - labels), 2)
    streams = {"a": {"val": good, "test": bad}, "b": {"val": bad, "test": good}}
    found = measured(tmp_path, streams, collective={"val": good, "test": good}, labels={"val": labels, "test": labels})
    assert last(found, "best_stream") == 0.0 and last(found, "best_individual") == 0.25
    assert last(found, "emergence_ratio") == 4.0 and found.attrs["scored_sets"] == "test"
    other = measured_again(tmp_path, validation="test", test="val")
    assert last(other, "best_stream") == 1.0
    with pytest.raises(WaterjarError, match="validation 'vl' is unknown"):
        measured_again(tmp_path, validation="vl")


def test_probes_are_trained_where_one_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = {name: np.eye(3)[labels] + 0.1 * rng.normal(size=(60, 3)) for name in "ab"}
    turned = np.roll(features["a"], 1, axis=1)  # where probes are trained, features say another class
    pooled = {"a": {"train": turned, "test": features["a"]}, "b": {"train": features["b"], "test": features["b"]}}
    logits = {name: dict.fromkeys(("train", "test"), sure_of(labels, 3)) for name in "ab"}
    found = measured(
        tmp_path, logits, collective="mean_logit", labels=dict.fromkeys(("train", "test"), labels), pooled=pooled
    )
    assert last(found, "individual_accuracy_probe").tolist() == [0.0, 1.0]
    left_out = measured_again(tmp_path, probe_on="test")
    assert last(left_out, "individual_accuracy_probe").tolist() == [1.0, 1.0]


def test_features_of_other_widths(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    pooled = {"a": np.eye(3)[labels] + 0.1 * rng.normal(size=(60, 3)), "b": rng.normal(size=(60, 5))}
    found = measured(tmp_path, dict.fromkeys("ab", sure_of(labels, 3)), collective="vote", labels=labels, pooled=pooled)
    each = last(found, "individual_accuracy_probe")
    assert each[0] == 1.0 and each[1] < 0.7 and last(found, "concatenated_accuracy") > 0.9


def test_snapshots_over_epochs(tmp_path: Path) -> None:
    """rho rises from 1, and the untrained network stands beside each number."""
    labels = np.arange(80) % 4
    guess = np.zeros(80, int)
    better = [guess, np.where(np.arange(80) < 40, labels, guess), labels, labels, labels]
    whole = np.stack([sure_of(one, 4) for one in better])
    streams = dict.fromkeys("ab", np.stack([sure_of(guess, 4)] * 5))
    gate = np.stack([np.full((80, 2), 0.5)] * 2 + [np.tile([0.99, 0.01], (80, 1))] * 3)
    found = measured(tmp_path, streams, collective=whole, labels=labels, epochs=[0, 1, 2, 3, 4], routing=gate)
    assert found["emergence_ratio"].values[0].tolist() == [1.0, 2.5, 4.0, 4.0, 4.0]
    assert float(found["emergence_ratio_initial"].values[0]) == 1.0 == float(found["emergence_start"].values[0])
    assert float(found["emergence_rise"].values[0]) == 3.0 and float(found["emergence_plateau"].values[0]) == 0.0
    assert float(found["routing_entropy_change"].values[0]) < -0.9
    course = str(found["collective_course"].values)
    assert course.startswith(
        "the course of rho is set aside: at the end the best stream's own head is, in some seed, not"
    )
    assert "rho changes" not in course and "routing entropy (normalised) changes by -0.9" in course
    late = waterjar.from_logits(
        tmp_path / "late", {"a": whole[1:]}, collective="vote", labels=labels, epochs=[1, 2, 3, 4]
    )
    able = collective.measure(late, resamples=5)
    assert why(able, "emergence_ratio_initial") == "not_recorded"
    assert "rho changes by +0" in str(able["collective_course"].values)  # heads that are no guesses are not set aside


def test_coalitions_as_they_were_recorded(tmp_path: Path) -> None:
    """Parity: removed, nothing is left; zeroed, the model has its own answer with all absent."""
    labels = np.arange(16) % 2
    names = ["removed:01", "removed:10", "removed:11", "zeroed:00", "zeroed:01", "zeroed:10"]
    right = np.stack([labels == 0, labels == 0, labels >= 0, labels == 1, labels == 0, labels == 0], -1)
    with waterjar.Recorder(
        tmp_path / "run", {}, eval_sets=["test"], labels={"stream": ["a", "b"], "coalition": names}
    ) as recorder:
        recorder.once("probe_samples", label=labels[None, None])
        shot = {
            "logits": np.stack([sure_of(labels * 0, 2)] * 2, 1), "collective_logits": sure_of(labels, 2),
            "coalition_correct": right, "coalition_log_likelihood": np.where(right, -0.1, -2.0),
        }  # fmt: skip
        recorder.log(epoch=1, snapshot={"streams": {key: one[None, None] for key, one in shot.items()}})
    run = waterjar.open_run(tmp_path / "run")
    assert run.array("streams/coalition_correct").dtype == np.uint8
    found = collective.measure(run, resamples=5)
    shares, pairs = last(found, "shapley_accuracy"), last(found, "interaction")
    np.testing.assert_allclose(shares[0], [0.25, 0.25])  # v(none) = 0.5, the majority; v(all) = 1
    np.testing.assert_allclose(pairs[0][0, 1], 0.5)
    np.testing.assert_allclose(shares[1].sum(), 1.0 - 0.5)  # all together is the collective itself
    np.testing.assert_allclose(last(found, "ablation")[:2], 0.5)
    assert np.isnan(shares[2]).all() and np.isnan(last(found, "ablation")[2]).all()


@pytest.mark.parametrize("label", ["gone:10", "removed:1", "removed:12", "removed"])
def test_coalitions_that_say_nothing(tmp_path: Path, label: str) -> None:
    labels = np.arange(4) % 2
    with waterjar.Recorder(
        tmp_path / "run", {}, eval_sets=["t"], labels={"stream": ["a", "b"], "coalition": [label]}
    ) as recorder:
        recorder.once("probe_samples", label=labels[None, None])
        shot = {"logits": np.zeros((1, 1, 4, 2, 2)), "coalition_correct": np.ones((1, 1, 4, 1), bool)}
        recorder.log(epoch=1, snapshot={"streams": shot})
    with pytest.raises(WaterjarError, match=f"coalition '{label}': expected one of removed, zeroed, resampled"):
        collective.measure(waterjar.open_run(tmp_path / "run"))


def test_streams_of_schema_1_are_refused_in_words(tmp_path: Path) -> None:
    from waterjar.run.rows import Row
    from waterjar.run.schema import variables_of

    recorder = waterjar.Recorder(tmp_path / "run", {}, eval_sets=["a"])
    recorder.log(epoch=0, performance={"accuracy": [[0.5]]})
    known = variables_of("streams", 1)["logits"]
    row = Row(np.zeros((1, 2, 3, 4)), None, known.dims[1:], known)
    with recorder._writer.transaction():
        recorder._writer.append("streams", "snapshot", recorder._progress, {"logits": row})
    recorder._writer.attributes["waterjar_schema"] = 1
    recorder.close()
    with pytest.raises(WaterjarError, match="'waterjar migrate' copies it into schema 2"):
        collective.measure(waterjar.open_run(tmp_path / "run"))


def test_only_fingerprints(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, labels={"stream": ["a", "b"]}) as recorder:
        recorder.log(epoch=0, snapshot={"streams": {"fingerprint": np.eye(2)[None]}})
    found = collective.measure(waterjar.open_run(tmp_path / "run"))
    assert last(found, "fingerprint_diversity") == 1.0 and why(found, "emergence_ratio") == "not_recorded"


def test_runs_of_a_cell_with_other_streams(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "study")
    for seed, names in ((1, "ab"), (2, "ac")):
        waterjar.from_logits(
            tmp_path / "study" / str(seed), dict.fromkeys(names, np.zeros((3, 2))), config={"method": "m", "seed": seed}
        )
    found = collective.measure(waterjar.open_study(tmp_path / "study"))
    assert "a run of the same cell" in str(found["collective_remarks"].values[0])
    assert set(found["disagreement_reason"].values.ravel().tolist()) == {UNDEFINED}


def test_no_shares_of_a_collective_that_no_rule_makes(tmp_path: Path) -> None:
    """A masked class has a logit of -1e9 in single precision: that hides nothing from who compares the rest."""
    streams, labels = random_streams()
    masked = {name: np.c_[one, np.full(len(one), -1e9)].astype(np.float32) for name, one in streams.items()}
    always = np.tile([5.0, 0.0, 0.0, 0.0, 0.0], (len(labels), 1)).astype(np.float32)
    found = measured(tmp_path, masked, collective=always, labels=labels)
    for name in ("shapley_accuracy", "ablation", "interaction"):
        assert np.isnan(last(found, name)).all() and why(found, name) == "not_recorded"
    assert "no rule makes the collective of its streams' outputs" in str(found["collective_remarks"].values)


def test_a_stream_of_nan_costs_the_collective_that_is_made_of_it(tmp_path: Path) -> None:
    streams, labels = random_streams()
    streams["s00"] = np.full_like(streams["s00"], np.nan)
    found = measured(tmp_path, streams, collective="mean_probability", labels=labels)
    assert why(found, "collective_accuracy") == why(found, "emergence_ratio") == "not_a_number"
    assert "the collective has no answer to 200 of 200 samples" in remarks(found)


def test_nan_on_a_validation_sample_costs_the_choice_only(tmp_path: Path) -> None:
    streams, labels = random_streams()
    both = {name: {"val": one.copy(), "test": one} for name, one in streams.items()}
    both["s00"]["val"][3, 0] = np.nan
    told = dict.fromkeys(("val", "test"), labels)
    whole = np.mean(list(streams.values()), axis=0)
    found = measured(tmp_path, both, collective={"val": whole, "test": whole}, labels=told)
    assert not np.isnan(last(found, "individual_accuracy")).any() and last(found, "best_stream") != 0
    assert not np.isnan(last(found, "shapley_accuracy")[0]).any()
    assert remarks(found) == "seed 0: stream s00 has no answer to some validation sample: not chosen as the best"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.inf, -np.inf, "row"])
def test_infinite_logits_cost_only_what_is_undefined(tmp_path: Path, bad: Any) -> None:
    """A half precision overflow in one stream; one class that is not known; a row without any answer."""
    streams, labels = random_streams()
    whole = np.mean(list(streams.values()), axis=0)
    streams["s00"] = streams["s00"].copy()
    streams["s00"][5, slice(None) if bad == "row" else 1] = -np.inf if bad == "row" else bad
    found = measured(tmp_path, streams, collective=whole, labels=labels)
    for name in ("emergence_ratio", "collective_accuracy", "nll_calibrated", "ece", "oracle_accuracy", "disagreement"):
        assert np.isfinite(last(found, name))
    each = last(found, "individual_accuracy")
    if bad == "row":
        assert np.isnan(each[0]) and "stream s00 has no answer to some sample" in remarks(found)
        assert np.isfinite(last(found, "ambiguity"))
    else:
        assert each[0] == np.mean(streams["s00"].argmax(1) == labels)
    if bad == np.inf:
        assert why(found, "ambiguity") == why(found, "shapley_accuracy") == "not_a_number"
        assert np.isnan(last(found, "nll_individual")).tolist() == [True, False, False]
        assert "stream s00 has infinite logits" in remarks(found)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_temperature_where_it_cannot_be_fitted(tmp_path: Path, bad: float) -> None:
    streams, labels = random_streams()
    whole = np.mean(list(streams.values()), axis=0)
    broken = whole.copy()
    broken[4, 1] = bad
    both = {name: dict.fromkeys(("val", "test"), one) for name, one in streams.items()}
    told = dict.fromkeys(("val", "test"), labels)
    found = measured(tmp_path, both, collective={"val": broken, "test": whole}, labels=told)
    assert np.isfinite(last(found, "nll"))
    assert why(found, "nll_calibrated") == why(found, "temperature") == "not_a_number"
    assert "the collective has no probabilities on validation data" in remarks(found)


def test_no_temperature_of_a_label_without_probability(tmp_path: Path) -> None:
    streams, labels = random_streams()
    whole = np.mean(list(streams.values()), axis=0)
    sure = whole.copy()
    sure[0, labels[0]] = -np.inf
    both = {name: dict.fromkeys(("val", "test"), one) for name, one in streams.items()}
    told = dict.fromkeys(("val", "test"), labels)
    found = measured(tmp_path, both, collective={"val": sure, "test": whole}, labels=told)
    assert why(found, "nll_calibrated") == "undefined"
    (tmp_path / "other").mkdir()
    found = measured(tmp_path / "other", streams, collective=sure, labels=labels)
    assert last(found, "nll") == last(found, "nll_calibrated") == np.inf and why(found, "temperature") == "undefined"


def test_the_order_of_many_streams_does_not_matter(tmp_path: Path) -> None:
    streams, labels = random_streams(count=10)
    backwards = dict(reversed(streams.items()))
    (tmp_path / "other").mkdir()
    one, other = (
        measured(path, own, collective="mean_probability", labels=labels)
        for path, own in ((tmp_path, streams), (tmp_path / "other", backwards))
    )
    for name in ("shapley_accuracy", "shapley_accuracy_se", "shapley_log_likelihood"):
        np.testing.assert_allclose(last(one, name)[0], last(other, name)[0][::-1], atol=1e-12)


def test_samples_without_a_label(tmp_path: Path) -> None:
    streams, labels = random_streams()
    gate = np.full((200, 3), 1 / 3)
    found = measured(tmp_path, streams, collective="vote", labels=np.full(200, -1), routing=gate)
    assert why(found, "emergence_ratio") == why(found, "shapley_accuracy") == "not_recorded"
    assert last(found, "routing_entropy_normalised") == pytest.approx(1.0)
    assert remarks(found) == "no sample of test has a label (probe_samples/label is -1): nothing can be scored"
    (tmp_path / "other").mkdir()
    some = measured(tmp_path / "other", streams, collective="vote", labels=np.where(np.arange(200) < 20, -1, labels))
    assert remarks(some).startswith("20 of 200 samples of test have no label, and are not scored; seed 0: the ")
