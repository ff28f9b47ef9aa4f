"""Logits from anywhere become a run: what goes in comes out, and what is wrong is one clear sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from waterjar import WaterjarError, from_logits
from waterjar.run.formats import export_as
from waterjar.run.study import open_study

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 6, 3))
LABELS = np.arange(6) % 3


def test_all_that_can_be_given(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "isolated": {"a": A + 1, "b": B - 1},
        "pooled": {"a": RNG.normal(size=(6, 2)), "b": RNG.normal(size=(6, 4))},
        "routing": {"a": RNG.random((6, 2, 2)), "b": RNG.random((6, 2, 2))},
        "route_index": {"a": RNG.integers(5, size=(6, 2, 2)), "b": RNG.integers(5, size=(6, 2, 2))},
        "fingerprints": {"a": [1.0, 2.0], "b": [0.0, 1.0]},
        "affinities": {"a": RNG.random((6, 4)), "b": RNG.random((6, 4))},
        "gradient_norms": {"a": RNG.random(6), "b": RNG.random(6)},
    }
    run = from_logits(
        tmp_path / "study" / "run", {"a": A, "b": B}, collective=A + B, labels=LABELS, parameters=30,
        trainable_parameters=20, stream_parameters={"b": 5, "a": 4}, classes=["x", "y", "z"], **given,
    )  # fmt: skip
    data = xr.open_datatree(tmp_path / "study" / "run", engine="zarr")["streams"].to_dataset()
    assert data.stream.values.tolist() == ["a", "b"] and data["class"].values.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(data.logits.sel(stream="b").values[0, 0, 0], B)
    np.testing.assert_array_equal(data.isolated_logits.sel(stream="a").values[0, 0, 0], A + 1)
    np.testing.assert_array_equal(data.collective_logits.values[0, 0, 0], A + B)
    np.testing.assert_array_equal(data.pooled.sel(stream="a").values[0, 0, 0, :, :2], given["pooled"]["a"])
    assert np.isnan(data.pooled.sel(stream="a").values[..., 2:]).all()
    np.testing.assert_array_equal(data.route_index.sel(stream="b").values[0, 0, 0], given["route_index"]["b"])
    assert data.stream_parameters.values.tolist() == [[4, 5]] and data.parameters.values.tolist() == [30]
    assert run["probe_samples"].label.values.tolist() == [[LABELS.tolist()]]
    assert waterjar.verify(run.path).state == "sealed"
    (made,) = export_as("npy", open_study(tmp_path / "study"), tmp_path / "out")
    np.testing.assert_array_equal(np.load(made.path / "streams" / "logits.npy")[0, 0, 0, :, 1], B)


def test_the_gate_of_a_mixture_of_experts_counts_for_all(tmp_path: Path) -> None:
    gate = RNG.dirichlet(np.ones(2), size=6)
    run = from_logits(tmp_path / "run", {"a": A, "b": B}, routing=gate, labels=LABELS)
    weights, index = run["streams"].route_weight.values[0, 0, 0], run["streams"].route_index.values[0, 0, 0]
    assert weights.shape == (6, 2, 1, 2) and (weights[:, 0] == weights[:, 1]).all()
    np.testing.assert_array_equal(weights[:, 0, 0], gate)
    assert (index == [0, 1]).all()


def test_torch_goes_in_as_it_is(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    run = from_logits(tmp_path / "run", {"a": torch.tensor(A, requires_grad=True)}, labels=torch.tensor(LABELS))
    np.testing.assert_array_equal(run["streams"].logits.values[0, 0, 0, :, 0], A)


def test_the_same_arrays_are_the_same_run(tmp_path: Path) -> None:
    one, same, other = (
        from_logits(tmp_path / name, {"a": values}, labels=LABELS).run_id
        for name, values in (("1", A), ("2", A.copy()), ("3", B))
    )
    assert one == same != other


def test_seeds_and_epochs(tmp_path: Path) -> None:
    values = RNG.normal(size=(3, 2, 6, 3))
    run = from_logits(tmp_path / "run", {"a": values}, labels=LABELS, seeds=[7, 8], epochs=[0, 1, 5])
    data = run["streams"]
    assert data.total_epoch.values.tolist() == [0, 1, 5] and data.seed.values.tolist() == [7, 8]
    np.testing.assert_array_equal(data.logits.values[2, 1, 0, :, 0], values[2, 1])


@pytest.mark.parametrize(
    ("streams", "more", "message"),
    [
        ({}, {}, "expected at least one stream"),
        ([A], {}, "expected a mapping name of a stream"),
        ({"a": A[0]}, {}, r"streams\['a'\]\['test'\] has shape \(3,\): expected \(sample, class\)"),
        ({"a": A, "b": B[:, :2]}, {}, "minus infinity for those that it does not know"),
        ({"a": A, "b": B[:4]}, {}, r"has shape \(4, 3\) on 'test', 'a' has \(6, 3\): expected the same$"),
        ({"a": {"x": A}, "b": {"y": B}}, {}, r"is of the sets \['y'\], 'a' of \['x'\]"),
        ({"a": A}, {"collective": "median"}, "collective 'median' is unknown"),
        ({"a": A}, {"collective": A[:2]}, "collective_logits has 2 samples of 'test'; expected 6"),
        ({"a": A}, {"collective": {"other": A}}, r"collective_logits is of the sets \['other'\]"),
        ({"a": A}, {"labels": LABELS[:3]}, "expected 6 whole numbers, one a sample"),
        ({"a": A}, {"labels": LABELS + 0.5}, "expected 6 whole numbers, one a sample"),
        ({"a": A}, {"labels": LABELS + 1}, "go from 1 to 3; expected 0 to 2"),
        ({"a": A}, {"labels": {"x": LABELS}}, r"labels are of the sets \['x'\]"),
        ({"a": A}, {"pooled": {"b": A}}, r"pooled: \['b'\]; expected a mapping with each of the streams \['a'\]"),
        ({"a": A}, {"route_index": np.zeros((6, 1), int)}, "route_index without routing"),
        ({"a": A}, {"routing": A, "route_index": A}, "expected whole numbers"),
        ({"a": A, "b": B}, {"fingerprints": {"a": [1.0], "b": [1.0, 2.0]}}, r"has shape \(2,\), 'a' has \(1,\)"),
        ({"a": A}, {"stream_parameters": {"b": 1}}, "expected one of each of"),
        ({"a": A[None]}, {"epochs": [0, 1]}, r"epochs=\[0.0, 1.0\]: expected 1, as many as the logits have"),
        ({"a": A[None]}, {"seeds": [0, 1]}, r"seeds=\[0, 1\]: expected 1"),
        ({"a": A[:0]}, {}, "has no sample: leave it out"),
        ({"a": A[None][:0]}, {"seeds": []}, "expected at least one of each"),
        ({"a": A}, {"collective": A[:, :2]}, "collective has 2 classes on 'test': expected 3, as streams"),
        ({"a": A}, {"isolated": {"a": A[:, :2]}}, "isolated has 2 classes on 'test': expected 3, as streams"),
        ({"a": {"x": A, "y": A[:, :2]}}, {}, r"streams have \{'x': 3, 'y': 2\} classes by set: expected the same"),
        ({"a": A[:, :0]}, {"collective": "vote"}, r"streams have \{'test': 0\} classes by set: .* at least one"),
        ({"a": A}, {"classes": ["p", "q"]}, r"classes=\['p', 'q'\]: expected 3 names"),
        ({"a": A[None]}, {"epochs": ["x"]}, r"epochs\[0\]='x': expected a number"),
        ({"a": A[None]}, {"epochs": "x"}, "epochs='x': expected a list of numbers"),
        ({"a": A[None]}, {"epochs": 3}, "epochs=3: expected a list of numbers"),
        ({"a": np.stack([A, B])}, {"epochs": [0, np.nan]}, r"epochs\[1\]=nan: a coordinate must be a finite number"),
        ({"a": np.stack([A, B])}, {"epochs": [3, 1]}, r"epochs=\[3.0, 1.0\]: expected numbers from 0 on, in order"),
        ({"a": A[None]}, {"epochs": [-1]}, "expected numbers from 0 on, in order"),
        ({"a": A}, {"routing": np.abs(A), "route_index": np.full((6, 3), 10**9)}, "to 1000000000: .* fewer than 65536"),
        ({"a": A}, {"routing": np.abs(A), "route_index": np.full((6, 3), -5)}, "goes from -5 to -5: .* -1 for nowhere"),
        ({"a": A}, {"parameters": -3}, "parameters=-3: expected a number of parameters, from 0 on"),
        ({"a": A}, {"stream_parameters": {"a": -3}}, "stream_parameters=-3: expected a number of parameters"),
        ({"a": A}, {"parameters": 5, "trainable_parameters": 9}, "trainable_parameters=9 of parameters=5"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, streams: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        from_logits(tmp_path / "run", streams, **more)
    assert not (tmp_path / "run").exists()


def test_who_does_not_say_an_epoch_claims_no_untrained_network(tmp_path: Path) -> None:
    assert from_logits(tmp_path / "run", {"a": A}, labels=LABELS)["streams"].total_epoch.values.tolist() == [1.0]


def test_probabilities_are_refused_or_their_logs_taken(tmp_path: Path) -> None:
    shares = {name: np.exp(one) / np.exp(one).sum(1, keepdims=True) for name, one in (("a", A), ("b", B))}
    for argument, given in (
        ("streams", {"streams": shares}),
        ("streams", {"streams": {name: one.astype(np.float16) for name, one in shares.items()}}),
        ("collective", {"streams": {"a": A, "b": B}, "collective": shares["a"]}),
        ("isolated", {"streams": {"a": A, "b": B}, "isolated": shares}),
    ):
        with pytest.raises(WaterjarError, match=f"{argument}.*look like probabilities.*probabilities=True"):
            from_logits(tmp_path / "refused", **given)
    whole = (shares["a"] + shares["b"]) / 2
    run = from_logits(tmp_path / "run", shares, collective=whole, isolated=shares, labels=LABELS, probabilities=True)[
        "streams"
    ]
    for name, one in (("a", A), ("b", B)):
        expected = one - np.log(np.exp(one).sum(1, keepdims=True))
        np.testing.assert_allclose(run.logits.sel(stream=name).values[0, 0, 0], expected)
        np.testing.assert_allclose(run.isolated_logits.sel(stream=name).values[0, 0, 0], expected)
    np.testing.assert_allclose(np.exp(run.collective_logits.values[0, 0, 0]), whole)
    with pytest.raises(WaterjarError, match=r"streams\['b'\] on 'test': expected probabilities"):
        from_logits(tmp_path / "refused", {"a": shares["a"], "b": B}, probabilities=True)
    as_logits = from_logits(tmp_path / "logits", shares, probabilities=False)["streams"]
    np.testing.assert_array_equal(as_logits.logits.sel(stream="a").values[0, 0, 0], shares["a"])
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"streams": {}}, r"streams=\{\}: expected at least one stream"),
        ({"streams": [A, B]}, "streams is a list: expected a mapping"),
        ({"streams": {1: A, 2: B}}, "streams: 1 is a int: expected names that are text, as '1'"),
        ({"streams": {"a": np.stack([A, A])}, "epochs": [1, 1]}, r"epochs=\[1.0, 1.0\]: .*in order, each once"),
    ],
)
def test_names_and_epochs_that_cannot_be(tmp_path: Path, given: dict[str, Any], match: str) -> None:
    with pytest.raises(WaterjarError, match=match):
        from_logits(tmp_path / "run", **given)
