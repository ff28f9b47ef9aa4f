"""Faults of settings: told by path, once each, with the nearest name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from waterjar.errors import WaterjarError
from waterjar.run.faults import Behind, describe, faults, parse_settings, unknown


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    depth: Annotated[int, Field(ge=1)] = 1


class Named(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def behind(cls, values: Any, at: str) -> Behind:
        return Behind([], Inner, {"depth": 2})


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: Annotated[int, Field(ge=1)] = 4
    ratio: float | None = None
    where: Path = Path()
    inner: Inner = Inner()
    pair: tuple[float, float] = (0.0, 1.0)
    colour: Literal["red", "blue"] | tuple[int, ...] = "red"
    either: int | float | str = 0
    table: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    named: tuple[str | Named, ...] = ()
    anything: Any = None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"ratio": None, "where": "x", "pair": [1, 2.5], "colour": [3], "either": "a", "anything": object()}, None),
        ({"named": ["x", {"name": "y", "settings": {"depth": 3}}, Named(name="z")], "inner": Inner()}, None),
        ({"size": 0}, "setting 'size' is 0: expected at least 1"),
        ({"size": "0.5"}, "setting 'size' is '0.5': expected a whole number"),
        ({"size": "many"}, "setting 'size' is 'many': expected a whole number"),
        ({"size": float("inf")}, "setting 'size' is inf: expected a whole number"),
        ({"ratio": "1e-3"}, "setting 'ratio' is '1e-3': expected a number: write 0.001, without quotes"),
        ({"ratio": "nan"}, "setting 'ratio' is 'nan': expected a number"),
        ({"ratio": [1]}, "setting 'ratio' is [1]: expected a number"),
        ({"where": 3}, "setting 'where' is 3: expected a path"),
        ({"inner": {"dpth": 1}}, "setting 'inner.dpth' is unknown: did you mean 'inner.depth'? Known: 'depth'"),
        ({"pair": [1, True]}, "setting 'pair[1]' is true: expected a number"),
        ({"pair": [1]}, "setting 'pair' is [1]: expected 2 values, not 1"),
        ({"colour": "rde"}, "colour: name 'rde' is unknown: did you mean 'red'? Known: 'red', 'blue'"),
        ({"colour": {"red": 1}}, "setting 'colour' is {'red': 1}: expected a value or a list"),
        ({"colour": [True]}, "setting 'colour[0]' is true: expected a whole number"),
        ({"either": True}, "setting 'either' is true: expected a whole number"),
        ({"table": {"a": [1, "x"]}}, "setting 'table.a[1]' is 'x': expected a whole number"),
        ({"table": [1]}, "setting 'table' is [1]: expected a mapping"),
        ({"named": [{"name": "x", "depth": 3}]},
         "setting 'named[0].depth' is unknown: did you mean 'named[0].settings.depth'? Known: 'name', 'settings'"),
        ({"named": [{"name": "x", "settings": {"depth": 0}}]},
         "setting 'named[0].settings.depth' is 0: expected at least 1"),
        ({"depth": 3}, "setting 'depth' is unknown: did you mean 'inner.depth'? Known: 'size', 'ratio', 'where', "
         "'inner', 'pair', 'colour', 'either', 'table', 'named', 'anything'"),
        ({"size": "x" * 500}, f"setting 'size' is '{'x' * 58}…{'x' * 19}': expected a whole number"),
    ],
)  # fmt: skip
def test_each_fault_once(values: dict[str, Any], expected: str | None) -> None:
    assert faults(Outer, values) == ([] if expected is None else [expected])


def test_all_at_once_and_where_they_stand() -> None:
    found = faults(Outer, {"size": 0, "sizee": 1, "inner": {"depth": True}}, "here[2]")
    assert [fault.split(":")[0] for fault in found] == [
        "setting 'here[2].sizee' is unknown",
        "setting 'here[2].inner.depth' is true",
        "setting 'here[2].size' is 0",
    ]


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("abc1", max_size=5)
    | st.sampled_from(["red", "1", "1e-2"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["depth", "name", "a"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(values=st.dictionaries(st.sampled_from([*Outer.model_fields, "sise"]), PLAIN, max_size=4))
def test_what_has_no_fault_is_what_pydantic_takes(values: dict[str, Any]) -> None:
    """Nothing that pydantic refuses goes through, nothing crashes, and no fault of ours is pydantic's double."""
    found = faults(Outer, values)
    try:
        Outer.model_validate(values)
    except ValidationError:
        assert found
    assert len({fault.split(":")[0] for fault in found}) == len(found)


def test_names() -> None:
    assert unknown("learner", "zzz", "zzz", ["a"]) == "learner 'zzz' is unknown. Known: 'a'"
    assert unknown("learner", "zzz", "zzz", []) == "learner 'zzz' is unknown. Known: none"
    assert describe(dict[str, int]) == "a mapping"
    assert describe(tuple[int, ...]) == "a list"
    assert describe(Literal["a"]) == "a value"


def test_settings_are_parsed_or_one_error_says_where_and_what() -> None:
    assert parse_settings(Inner, {"depth": 3}, "here").depth == 3
    with pytest.raises(WaterjarError) as error:
        parse_settings(Inner, {"depht": 3, "depth": 0}, "patch")
    text = str(error.value)
    assert "patch: setting 'depht' is unknown: did you mean 'depth'?" in text
    assert "patch: setting 'depth' is 0: " in text
