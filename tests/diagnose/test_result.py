"""Numbers that know why they are missing: one, or an array of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from waterjar.diagnose import Result
from waterjar.diagnose.result import (
    CHANCE_UNKNOWN,
    EMPTY_SET,
    INSIDE_CONE,
    NEVER_REACHED,
    NO_BASELINE,
    NO_EVAL_SET,
    NO_RUN,
    NOT_A_NUMBER,
    NOT_ASKED,
    NOT_RECORDED,
    NOT_UNIQUE,
    ONE_TASK,
    RUN_ENDED,
    UNDEFINED,
    UNSOLVED,
)
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

NAN = math.nan
VALUES = hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32))


def test_codes_are_those_of_the_schema() -> None:
    codes = [0, NOT_RECORDED, NOT_A_NUMBER, EMPTY_SET, RUN_ENDED, NEVER_REACHED, UNDEFINED]
    codes += [CHANCE_UNKNOWN, NO_BASELINE, NO_RUN, NO_EVAL_SET, INSIDE_CONE, UNSOLVED, NOT_UNIQUE, ONE_TASK]
    codes += [NOT_ASKED]
    words = ["present", "not_recorded", "not_a_number", "empty_set", "run_ended", "never_reached", "undefined"]
    words += ["chance_unknown", "no_baseline", "no_run", "no_eval_set", "inside_cone", "unsolved", "not_unique"]
    words += ["one_task", "not_asked"]
    assert [REASONS[code] for code in codes] == words and len(REASONS) == len(words)


class TestOne:
    def test_a_number_and_a_reason_exclude_each_other(self) -> None:
        with pytest.raises(WaterjarError, match="NaN has a reason"):
            Result(NAN)
        with pytest.raises(WaterjarError, match="NaN has a reason"):
            Result(1.0, "undefined")
        with pytest.raises(WaterjarError, match="did you mean 'undefined'"):
            Result.missing("undefind")

    def test_code_is_the_stored_one(self) -> None:
        assert REASONS[Result.missing("never_reached").code] == "never_reached"
        assert np.isnan(float(Result.missing("undefined")))
        assert Result(2.0).code == 0

    def test_what_it_is_made_of(self) -> None:
        found = Result(2.0, n=10, standard_error=0.5)
        assert (float(found), found.n, found.standard_error, found.is_missing) == (2.0, 10, 0.5, False)
        assert np.asarray(found).shape == () and np.asarray(found) == 2.0
        gone = Result.missing("never_reached", "0.6 was not reached", n=10, censored=True)
        assert gone.is_missing and gone.censored and gone.n == 10 and math.isnan(gone.standard_error)

    def test_infinity_is_a_number(self) -> None:
        assert float(Result(math.inf)) == math.inf

    def test_it_shows_what_is_not_as_usual(self) -> None:
        assert repr(Result(2.0)) == "Result(2.0)"
        assert repr(Result(2.0, n=3, standard_error=0.25)) == "Result(2.0, n=3, standard_error=0.25)"
        assert repr(Result.missing("undefined", "why")) == "Result(nan, reason='undefined', n=0, note='why')"

    def test_of_one_number_is_one_number(self) -> None:
        assert repr(Result.of(0.5, n=3)) == "Result(0.5, n=3)"
        assert Result.of(np.float64(NAN)).reason == "undefined"
        assert Result.of(NAN, NOT_RECORDED).reason == "not_recorded"


class TestArray:
    def test_reasons_are_codes(self) -> None:
        found = Result.of([0.5, NAN, NAN], [0, NEVER_REACHED, 0], n=[3, 0, 1])
        assert found.reason.tolist() == found.code.tolist() == [0, NEVER_REACHED, UNDEFINED]
        assert found.reason.dtype == np.uint8 and found.n.tolist() == [3, 0, 1]

    def test_a_reason_beside_a_number_counts_for_nothing(self) -> None:
        assert Result.of([0.5, NAN], NOT_RECORDED).reason.tolist() == [0, NOT_RECORDED]

    def test_nan_has_a_reason_and_a_number_has_none(self) -> None:
        for codes in ([0, 0], [UNDEFINED, UNDEFINED]):
            with pytest.raises(WaterjarError, match="NaN has a reason"):
                Result(np.array([0.5, NAN]), np.array(codes, np.uint8))

    def test_as_an_array(self) -> None:
        found = Result.of([[1.0, 2.0], [3.0, NAN]])
        np.testing.assert_array_equal(found, [[1.0, 2.0], [3.0, NAN]])
        assert found[0].tolist() == [1.0, 2.0] and found[:, 0].tolist() == [1.0, 3.0] and found[0, 1] == 2.0
        assert np.asarray(found, np.float32).dtype == np.float32
        copy = np.array(found)
        copy[:] = 0
        assert found[0, 0] == 1.0
        assert found.n.shape == (2, 2)

    def test_an_array_is_no_float(self) -> None:
        with pytest.raises(TypeError):
            float(Result.of([1.0, 2.0]))

    def test_it_shows_its_arrays(self) -> None:
        assert "array([0.5])" in repr(Result.of([0.5])) and "reason=array([0]" in repr(Result.of([0.5]))

    def test_stack(self) -> None:
        parts = [Result(1.0, n=4, standard_error=0.1), Result.missing("run_ended", censored=True)]
        found = Result.stack(parts)
        np.testing.assert_array_equal(found.value, [1.0, NAN])
        np.testing.assert_array_equal(found.standard_error, [0.1, NAN])
        assert found.reason.tolist() == [0, RUN_ENDED] and found.n.tolist() == [4, 0]
        assert found.censored.tolist() == [False, True]

    def test_a_stack_of_none(self) -> None:
        assert Result.stack([]).value.shape == (0,) and Result.stack([]).reason.shape == (0,)


@given(VALUES, st.integers(0, len(REASONS) - 1))
def test_what_is_missing_always_has_a_reason(values: np.ndarray, code: int) -> None:
    before = values.copy()
    found = Result.of(values, code)
    np.testing.assert_array_equal(np.isnan(found.value), found.reason > 0)
    np.testing.assert_array_equal(np.asarray(found), before)
    np.testing.assert_array_equal(values, before)
    assert set(found.reason[np.isnan(values)].tolist()) <= {code or UNDEFINED}


@given(st.lists(st.one_of(st.floats(allow_nan=False), st.sampled_from(REASONS[1:]))))
def test_a_stack_is_what_was_put_on_it(parts: list[float | str]) -> None:
    found = Result.stack([Result.missing(one) if isinstance(one, str) else Result(one) for one in parts])
    told = [
        REASONS[code] if code else value
        for value, code in zip(found.value.tolist(), found.reason.tolist(), strict=True)
    ]
    assert told == parts
