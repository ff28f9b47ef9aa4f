from __future__ import annotations

import pytest

from waterjar import WaterjarError
from waterjar.run.index import Entry
from waterjar.run.query import check_keys, parse

RUNS = [
    Entry(name, f"id{name}", "cell", status, seeds, config, {}, None)
    for name, status, seeds, config in [
        ("p", "sealed", [1], {"learner": "derpp", "patch": {"rate": 0.5}, "amp": True, "tag": "er-ace"}),
        ("q", "sealed", [2], {"learner": "sgd", "patch": {"rate": 1.0}, "amp": False, "temperature": None}),
        ("r", "recording", [1, 3], {"learner": "derpp", "lr": -0.1}),
    ]
]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("learner=derpp", "pr"),
        ("learner == 'derpp'", "pr"),
        ("learner != derpp", "q"),
        ("learner=derpp and seed in (1, 2)", "pr"),
        ("learner=derpp and seed in (3,)", "r"),
        ("seed=3", "r"),
        ("seed not in (1, 2)", "r"),
        ("patch.rate>0.5", "q"),
        ("patch.rate<=0.5 or status=recording", "pr"),
        ("not patch.rate>=0.5", "r"),
        ("amp=true", "p"),
        ("amp=false", "q"),
        ("temperature=null", "q"),
        ("lr=-0.1", "r"),
        ("tag='er-ace'", "p"),
        ("name=q or run_id=idp", "pq"),
        ("(learner=sgd or seed=3) and status in [sealed, recording]", "qr"),
    ],
)
def test_conditions(condition: str, names: str) -> None:
    assert "".join(entry.name for entry in RUNS if parse(condition)(entry)) == names


@pytest.mark.parametrize(
    "condition",
    ["", "learner=", "learner", "=derpp", "f(x)=1", "a=1=2", "x in 3", "1 < seed < 3", "lambda: 1", "tag=er-ace",
     "__import__('os').system('x')=1", "a is b", "x = (y for y in z)", "((((", "a=\x00", "'x"],
)  # fmt: skip
def test_what_is_not_a_condition(condition: str) -> None:
    with pytest.raises(WaterjarError, match="is not understood"):
        parse(condition)


@pytest.mark.parametrize("depth", [200, 1000, 2000, 20000])
@pytest.mark.parametrize(("start", "repeated", "end"), [("a", ".a", "=1"), ("", "not ", "a=1"), ("a=", "-", "1")])
def test_a_condition_nested_deeply_is_one_error(start: str, repeated: str, end: str, depth: int) -> None:
    with pytest.raises(WaterjarError, match=r"is nested deeper than 100 levels|is not understood"):
        parse(start + repeated * depth + end)
    parse(" or ".join(["a=1"] * depth))  # long is not deep


def test_incomparable_and_unknown() -> None:
    with pytest.raises(WaterjarError, match="learner of p cannot be compared with 3"):
        parse("learner < 3")(RUNS[0])
    with pytest.raises(WaterjarError, match="key 'lerner' is unknown: did you mean 'learner'"):
        check_keys("lerner=sgd", RUNS)
    check_keys("patch.rate=1 and seed=1", RUNS)
