"""What cannot be measured, or not of all streams, is told in one clear sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from diagnose.collective.by_hand import last, measured, random_streams, sure_of, why
from waterjar.diagnose import collective
from waterjar.diagnose.collective import Routing, anchor_entropy, dead_anchors
from waterjar.diagnose.collective._routing_entropy import normalised
from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import UNDEFINED


def remarks(found: Any) -> str:
    return str(found["collective_remarks"].values)


def test_a_rule_that_does_not_make_the_recorded_collective_makes_no_coalitions(tmp_path: Path) -> None:
    """Contributions would be those of another collective, and not sum to the accuracy of this one."""
    streams, labels = random_streams()
    rng = np.random.default_rng(1)
    gated = rng.normal(size=(200, 4)) + sure_of(labels, 4, 4.0)
    found = measured(tmp_path, streams, collective=gated, labels=labels, settings={"rule": "vote"})
    assert last(found, "collective_accuracy") == (gated.argmax(1) == labels).mean()
    for name in ("shapley_accuracy", "shapley_log_likelihood", "ablation", "interaction"):
        assert np.isnan(last(found, name)).all() and reasons_of(found, name).values.min() > 0
    assert why(found, "shapley_accuracy") == "not_recorded"
    assert remarks(found) == (
        "seed 0: no contributions of streams that are removed: rule= does not make the recorded logits of the "
        "collective of its streams' outputs: its coalitions would be those of another one"
    )
    (tmp_path / "other").mkdir()
    mean = np.mean(list(streams.values()), axis=0)
    own = measured(tmp_path / "other", streams, collective=mean, labels=labels, settings={"rule": "mean_logit"})
    gained = last(own, "collective_accuracy") - last(own, "chance")
    assert last(own, "shapley_accuracy")[0].sum() == pytest.approx(gained) and remarks(own) == ""


def test_a_rule_that_cannot_be_checked_is_believed(tmp_path: Path) -> None:
    """Logits stored so coarsely that they tell nothing of probabilities do not speak against it."""
    streams, labels = random_streams()
    coarse = {name: (900 + one).astype(np.float16) for name, one in streams.items()}
    whole = np.mean([one.astype(np.float64) for one in coarse.values()], axis=0).astype(np.float16)
    found = measured(tmp_path, coarse, collective=whole, labels=labels)
    assert np.isnan(last(found, "shapley_accuracy")).all()
    (tmp_path / "other").mkdir()
    told = measured(tmp_path / "other", coarse, collective=whole, labels=labels, settings={"rule": "mean_logit"})
    assert not np.isnan(last(told, "shapley_accuracy")[0]).any() and remarks(told) == ""


def routed(bad: float, samples: slice = slice(None)) -> dict[str, Any]:
    """Route weights of three streams, those of the second bad."""
    weights = {name: np.random.default_rng(i).dirichlet(np.ones(4), 200) for i, name in enumerate(NAMES)}
    weights["s01"][samples] = bad
    return {"routing": weights}


def printed(bad: float) -> dict[str, Any]:
    prints = {name: np.random.default_rng(i).normal(size=5) for i, name in enumerate(NAMES)}
    return {"fingerprints": prints | {"s01": np.full(5, bad)}}


NAMES = ("s00", "s01", "s02")
_NO_WEIGHTS = "has route weights that are NaN, infinite or negative: passed over in all that is said of routing"
_NO_DIRECTION = (
    "has a fingerprint without a direction (numbers that are not finite, or 0 throughout): passed over in "
    "fingerprint_diversity"
)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (routed(np.nan), _NO_WEIGHTS),
        (routed(-1.0), _NO_WEIGHTS),
        (routed(np.inf, slice(3, 4)), _NO_WEIGHTS),
        (routed(0.0, slice(3, 4)), "has route weights that are all 0 for some sample: passed over in what is made of "
         "weights"),
        (printed(np.nan), _NO_DIRECTION),
        (printed(0.0), _NO_DIRECTION),
        ({"affinities": {"s00": np.ones(3), "s01": np.full(3, np.nan), "s02": np.ones(3)}},
         "has affinities that are not finite: passed over in anchor_entropy and dead_anchors"),
    ],
)  # fmt: skip
def test_a_stream_that_is_passed_over_is_told(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    """The others are measured as if they were alone."""
    streams, labels = random_streams()
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels, **given)
    assert remarks(found) == f"seed 0: stream s01 {words}"
    (tmp_path / "two").mkdir()
    kept = {key: {name: one for name, one in values.items() if name != "s01"} for key, values in given.items()}
    two = {name: one for name, one in streams.items() if name != "s01"}
    other = measured(tmp_path / "two", two, collective="mean_logit", labels=labels, **kept)
    assert remarks(other) == ""
    for name in ("routing_entropy", "load_imbalance", "fingerprint_diversity", "anchor_entropy", "dead_anchors"):
        np.testing.assert_allclose(last(found, name), last(other, name), atol=1e-12)
    own = {"routing": "routing_entropy", "fingerprints": "fingerprint_diversity", "affinities": "anchor_entropy"}
    assert np.isfinite(last(found, own[next(iter(given))]))


def test_a_fingerprint_of_zeros_is_undefined_at_its_own_places(tmp_path: Path) -> None:
    streams, labels = random_streams()
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels, **printed(0.0))
    matrix, codes = last(found, "fingerprint_similarity"), reasons_of(found, "fingerprint_similarity").values[0, -1]
    assert np.isnan(matrix[1]).all() and np.isnan(matrix[:, 1]).all() and not np.isnan(matrix[::2, ::2]).any()
    assert (codes[1] == UNDEFINED).all() and (codes[::2, ::2] == 0).all()
    (tmp_path / "all").mkdir()
    zeros = {"fingerprints": dict.fromkeys(NAMES, np.zeros(5))}
    nothing = measured(tmp_path / "all", streams, collective="mean_logit", labels=labels, **zeros)
    assert why(nothing, "fingerprint_diversity") == "undefined"
    assert remarks(nothing) == f"seed 0: streams s00, s01, s02 have{_NO_DIRECTION.removeprefix('has')}"


def test_controls_that_are_passed_over_are_told(tmp_path: Path) -> None:
    streams, labels = random_streams()
    rng = np.random.default_rng(0)
    features = {name: sure_of(labels, 4, 2.0) + rng.normal(size=(200, 4)) for name in NAMES}
    features["s02"][4, 1] = np.nan
    alone = streams | {"s00": np.full((200, 4), np.nan)}
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels, pooled=features, isolated=alone)
    assert np.isnan(last(found, "individual_accuracy_probe")).tolist() == [False, False, True]
    assert np.isnan(last(found, "individual_accuracy_isolated")).tolist() == [True, False, False]
    assert remarks(found).split("; ") == [
        "seed 0: stream s00 has no answer alone to some sample (streams/isolated_logits): passed over as a stream "
        "alone",
        "seed 0: stream s02 has features that are missing or not finite (streams/pooled): passed over as a stream "
        "under a probe",
    ]


@pytest.mark.parametrize("where", ["test", "val", "train"])
def test_a_stream_that_no_probe_can_read_is_not_chosen_as_the_best(where: str, tmp_path: Path) -> None:
    """It would be the best by its probe, but for one feature that is not finite."""
    rng, labels = np.random.default_rng(1), {}
    for name in ("train", "val", "test"):
        labels[name] = rng.integers(0, 3, 60)
    streams = {
        stream: {name: rng.normal(size=(60, 3)) + np.eye(3)[own] for name, own in labels.items()} for stream in "ab"
    }
    pooled = {"a": {name: np.eye(3)[own] for name, own in labels.items()}, "b": streams["b"]}
    pooled["a"][where][0, 0] = np.nan
    run = waterjar.from_logits(tmp_path / "run", streams, collective="mean_logit", labels=labels, pooled=pooled)
    found = collective.measure(run)
    own = last(found, "individual_accuracy_probe")
    assert last(found, "best_individual_probe") == own[1]
    assert last(found, "emergence_ratio_probe") == last(found, "collective_accuracy") / own[1]
    words = {"val": "on validation data (streams/pooled): not chosen as the best under a probe"}
    assert np.isnan(own[0]) == (where != "val")
    assert words.get(where, "not finite (streams/pooled): passed over as a stream under a probe") in remarks(found)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [2, 12])
def test_a_label_without_probability_is_told(count: int, tmp_path: Path) -> None:
    """What is infinite or undefined for it has its reason in the remarks, and no warning of numpy reaches anybody."""
    streams, labels = random_streams(count=count)
    certain = {name: np.where(one < one.max(1, keepdims=True), -np.inf, one) for name, one in streams.items()}
    found = measured(tmp_path, certain, collective="mean_probability", labels=labels)
    assert np.isinf(last(found, "nll_individual")).all() and np.isnan(last(found, "shapley_log_likelihood")).all()
    who = f"{count} of {count} streams" if count > 4 else "streams s00, s01 and the collective"
    assert f"seed 0: {who} gave the label of some sample no probability (a logit of minus infinity)" in remarks(found)


def test_negative_affinities_are_told(tmp_path: Path) -> None:
    streams, labels = random_streams()
    given = {"s00": [-1.0, 1.0, 1.0], "s01": [0.0, 1.0, 1.0], "s02": [0.5, 1.0, 1.0]}
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels, affinities=given)
    assert why(found, "anchor_entropy") == why(found, "dead_anchors") == "undefined"
    assert remarks(found) == (
        "seed 0: the mean affinity to 1 of 3 anchors is negative: anchor_entropy and dead_anchors are undefined"
    )


@pytest.mark.parametrize("count", range(2, 40))
def test_normalised_entropies_are_one_at_most(count: int) -> None:
    even = np.full(count, 0.1)
    assert 1.0 - 1e-12 < float(anchor_entropy(even)) <= 1.0
    routing = Routing(["a"], even[None, None, None], None, None, 0)
    assert 1.0 - 1e-12 < float(normalised(routing)) <= 1.0
    assert anchor_entropy([np.inf, 1.0]).reason == dead_anchors([np.inf, 1.0]).reason == "not_a_number"


def test_one_sample_bounds_nothing(tmp_path: Path) -> None:
    """A ratio of one sample has no interval; a share has one, which is wide."""
    streams, labels = random_streams(n=1)
    streams = dict.fromkeys(streams, sure_of(labels, 4))
    found = measured(tmp_path, streams, collective="mean_logit", labels=labels)
    assert last(found, "emergence_ratio") == 1.0
    assert why(found, "emergence_ratio_low") == why(found, "emergence_ratio_high") == "undefined"
    assert last(found, "collective_accuracy_low") < 0.25 and last(found, "collective_accuracy_high") == 1.0


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (("train",), "run is scored on train, a set that trains, since it has recorded no other"),
        (("val",), "run is scored on val, a set that chooses, since it has recorded no other"),
        (("train", "val"), "run is scored on val, a set that chooses, since it has recorded no other"),
        (("val", "test"), ""),
    ],
)
def test_a_set_that_is_scored_for_want_of_another_is_told(sets: tuple[str, ...], words: str, tmp_path: Path) -> None:
    streams, labels = random_streams(n=40)
    given = {name: dict.fromkeys(sets, one) for name, one in streams.items()}
    found = measured(tmp_path, given, collective="mean_logit", labels=dict.fromkeys(sets, labels))
    assert remarks(found) == words and found.attrs["scored_sets"] == sets[-1]
    told = collective.measure(waterjar.open_run(tmp_path / "run"), resamples=5, test=sets[-1])
    assert remarks(told) == ""  # somebody chose it
