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
        ("chance", ["a", "b", "c"], r"setting 'chance' is \['a', 'b', 'c'\]: expected a number"),
        ("chance", [0.5, None, 0.5], "or a list of one for every task, or null"),
        ("chance", 1.0, "setting 'chance' is 1.0"),
        ("chance", float("nan"), "setting 'chance' is nan"),
        ("chance", True, "setting 'chance' is true"),
        ("chance", "0.5", "setting 'chance' is '0.5'"),
        ("chance", float("inf"), "setting 'chance' is inf"),
        ("chance", [0.5, float("nan"), 0.5], "setting 'chance' is "),
        ("chance", [0.5, True, 0.5], "setting 'chance' is "),
        ("chance", [[0.5, 0.5, 0.5]], "or a list of one"),
        ("chance", {"a": 1}, "or a list of one"),
        ("chance", np.array([0.5, 2.0, 0.5]), r"\[0.5, 2.0, 0.5\]"),
        ("eps", "abc", "setting 'eps' is 'abc': expected a small number that is not below 0"),
        ("eps", None, "setting 'eps' is empty: expected a small number"),
        ("eps", float("nan"), "setting 'eps' is nan"),
        ("eps", -1, "setting 'eps' is -1"),
        ("eps", "1e-8", "setting 'eps' is '1e-8'"),
        ("eps", float("inf"), "setting 'eps' is inf"),
        ("eps", True, "setting 'eps' is true"),
        ("eps", np.array([1.0, 2.0]), "a small number"),
        ("eval_sets", 3, "setting 'eval_sets' is 3: expected a list of names, each once, or null"),
        ("eval_sets", ["set 0", 1], "a list of names"),
        ("eval_sets", b"set", "a list of names"),
        ("eval_sets", [], "a list of names"),
        ("eval_sets", ["set 0", "set 0"], "a list of names, each once"),
        ("floor_at_chance", "maybe", "setting 'floor_at_chance' is 'maybe': expected true or false"),
        ("bounded", 2, "setting 'bounded' is 2: expected true or false"),
        ("bounded", None, "setting 'bounded' is empty"),
        ("variable", [1], r"setting 'variable' is \[1\]: expected one of accuracy"),
        ("variable", np.array(["accuracy", "loss"]), "setting 'variable' is .*: expected one of accuracy"),
        ("integrator", 3, "setting 'integrator' is 3: expected one of"),
        ("metric_type", None, "setting 'metric_type' is empty: expected one of"),
        ("forgetting_reference", None, "setting 'forgetting_reference' is empty: expected one of max, learned"),
    ],
)
def test_what_is_wrong_is_one_error_that_says_so(run, name, value, says):
    with pytest.raises(WaterjarError, match=f"continual: (setting ')?{name}") as error:
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
