"""Settings: what is right in numpy's types too, and one clear error for what is not."""

import json

import numpy as np
import pytest

from diagnose.continual.by_hand import record
from waterjar.diagnose.continual import FAMILY, measure
from waterjar.errors import WaterjarError

OF_LOSS = {
    "remembering": ("lower", "1"),
    "zero_shot": ("lower", "1"),
    "forward_transfer": ("higher", "1"),
    "learning_time": ("lower", "epoch"),
    "forgetting_rate": ("lower", "nat/epoch"),
    "max_dip": ("lower", "nat"),
    "backward_transfer": ("higher", "nat"),
    "forward_transfer_gem": ("higher", "nat"),
    "forgetting": ("lower", "nat"),
    "intransigence": ("lower", "nat"),
}
"""Direction and units; averages of accuracy have no value of a loss, and keep theirs."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record(tmp_path_factory.mktemp("settings") / "run", loss=True)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("chance", "abc", r"a number in \[0, 1\), as 1 / \(number of classes\), or a list"),
        ("chance", ["a", "b", "c"], r"chance=\['a', 'b', 'c'\]: expected a number"),
        ("chance", [0.5, None, 0.5], "or a list of one for every task, or None"),
        ("chance", 1.0, "chance=1.0"),
        ("chance", float("nan"), "chance=nan"),
        ("chance", True, "chance=True"),
        ("chance", "0.5", "chance='0.5'"),
        ("chance", float("inf"), "chance=inf"),
        ("chance", [0.5, float("nan"), 0.5], "chance="),
        ("chance", [0.5, True, 0.5], "chance="),
        ("chance", [[0.5, 0.5, 0.5]], "or a list of one"),
        ("chance", {"a": 1}, "or a list of one"),
        ("chance", np.array([0.5, 2.0, 0.5]), r"\[0.5, 2.0, 0.5\]"),
        ("eps", "abc", "eps='abc': expected a small number that is not below 0"),
        ("eps", None, "eps=None: expected a small number"),
        ("eps", float("nan"), "eps=nan"),
        ("eps", -1, "eps=-1"),
        ("eps", "1e-8", "eps='1e-8'"),
        ("eps", float("inf"), "eps=inf"),
        ("eps", True, "eps=True"),
        ("eps", np.array([1.0, 2.0]), "a small number"),
        ("eval_sets", 3, "eval_sets=3: expected a list of names, each once, or None"),
        ("eval_sets", ["set 0", 1], "a list of names"),
        ("eval_sets", b"set", "a list of names"),
        ("eval_sets", [], "a list of names"),
        ("eval_sets", ["set 0", "set 0"], "a list of names, each once"),
        ("floor_at_chance", "maybe", "floor_at_chance='maybe': expected True or False"),
        ("bounded", 2, "bounded=2: expected True or False"),
        ("bounded", None, "bounded=None"),
        ("variable", [1], r"variable '\[1\]' is unknown"),
        ("variable", np.array(["accuracy", "loss"]), "variable .* is unknown"),
        ("integrator", 3, "integrator '3' is unknown"),
        ("metric_type", None, "metric_type 'None' is unknown"),
        ("forgetting_reference", None, "forgetting_reference 'None' is unknown.*'max', 'learned'"),
    ],
)
def test_what_is_wrong_is_one_error_that_says_so(run, name, value, says):
    with pytest.raises(WaterjarError, match=f"continual: {name}") as error:
        measure(run, **{name: value})
    assert error.match(says)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ({"chance": np.float32(0.25)}, {"chance": 0.25}),
        ({"chance": np.array(0.25)}, {"chance": 0.25}),
        ({"chance": np.array([0.25, 0.5, 0.5])}, {"chance": [0.25, 0.5, 0.5]}),
        ({"chance": (np.float64(0.25), 0, np.int64(0))}, {"chance": [0.25, 0.0, 0.0]}),
        ({"eps": np.float64(0.5)}, {"eps": 0.5}),
        ({"eps": np.array(1)}, {"eps": 1.0}),
        ({"bounded": np.bool_(False), "floor_at_chance": np.True_}, {"bounded": False, "floor_at_chance": True}),
        ({"eval_sets": np.array(["set 0", "set 1", "set 2"])}, {"eval_sets": ["set 0", "set 1", "set 2"]}),
        ({"integrator": np.str_("auc")}, {"integrator": "auc"}),
        ({"eps": 1}, {"eps": 1.0}),
    ],
)
def test_numbers_of_numpy_are_numbers(run, given, plain):
    one, other = measure(run, **given), measure(run, **plain)
    assert one.identical(other)
    settings = json.loads(one.attrs["settings"])
    assert {name: settings[name] for name in plain} == plain


def test_of_a_loss_every_variable_says_its_direction_and_units(run):
    found = measure(run, metric_type="loss")
    for metric_name, expected in OF_LOSS.items():
        metric = FAMILY.metrics[metric_name]
        for name in {metric.name, metric.scalar}:
            assert (found[name].attrs["direction"], found[name].attrs["units"]) == expected, name
    for metric in FAMILY.metrics.values():
        if metric.on_loss == "undefined":
            assert np.isnan(found[metric.name]).all()
            assert found[metric.name].attrs["direction"] == metric.direction
            assert found[metric.name].attrs["units"] == metric.units
