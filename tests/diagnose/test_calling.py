"""What metrics are given is read-only, and what goes wrong in one is one error that names it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import waterjar
from waterjar.diagnose import registry
from waterjar.diagnose.calling import Lock, worked_out
from waterjar.diagnose.drift.inputs import Comparison
from waterjar.diagnose.plasticity import Representation
from waterjar.diagnose.registry import forget, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.testing import small_study

ABOUT = {"long_name": "l", "formula": "f", "citation": "c", "summary": "aaa_mine_final"}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    return small_study(tmp_path_factory.mktemp("small"), seeds=(1, 2))


@pytest.fixture
def declare() -> Iterator[Callable[..., None]]:
    """Declare a function as the metric `aaa_mine`, which is measured before all others; from a package, if it says."""

    def declared(function: Callable[..., Any], family: str, origin: str = "") -> None:
        metric("aaa_mine", family=family, needs=("features",), **ABOUT)(function)
        registry._METRICS["aaa_mine"] = dataclasses.replace(registry._METRICS["aaa_mine"], origin=origin)

    yield declared
    forget("aaa_mine")


@dataclasses.dataclass(frozen=True)
class Inner:
    values: np.ndarray

    @worked_out
    def twice(self) -> np.ndarray:
        return 2 * self.values


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    more: dict[str, list[np.ndarray]]
    found: Result


def outer() -> Outer:
    return Outer(Inner(np.ones(2)), {"a": [np.ones(3)]}, Result.of([1.0, 2.0]))


def locked(given: object) -> Lock:
    lock = Lock()
    lock.close(given)
    return lock


class TestLock:
    @pytest.mark.parametrize(
        "of",
        [
            lambda x: x.inner.values,
            lambda x: x.inner.twice,
            lambda x: x.more["a"][0],
            lambda x: x.found.value,
        ],
    )
    def test_arrays_cannot_be_written_to(self, of: Callable[[Outer], np.ndarray]) -> None:
        given = outer()
        locked(given).check()
        with pytest.raises(ValueError, match="read-only"):
            of(given)[0] = 5

    @pytest.mark.parametrize(
        "change",
        [
            lambda x: x.more.clear(),
            lambda x: x.more.update(b=[]),
            lambda x: x.more["a"].append(np.ones(1)),
        ],
    )
    def test_what_holds_them_is_watched(self, change: Callable[[Outer], None]) -> None:
        given = outer()
        kept = locked(given)
        given.inner.twice  # noqa: B018 - what is worked out changes nothing
        kept.check()
        change(given)
        with pytest.raises(WaterjarError, match="it changes its input"):
            kept.check()

    def test_a_buffer_under_an_input_stays_its_owners(self) -> None:
        buffer = np.zeros((3, 2))
        locked(Inner(buffer[1]))
        buffer[1] = 7

    def test_what_a_plain_cached_property_made_is_locked_after_the_metric(self) -> None:
        given = outer()
        kept = locked(given)
        vars(given.inner)["later"] = later = np.ones(2)
        kept.check()
        assert not later.flags.writeable


@pytest.mark.parametrize(
    ("family", "change"),
    [
        ("plasticity", lambda x: x.features.fill(0)),
        ("plasticity", lambda x: x.singular_values.fill(0)),  # the first who asks for it, too
        ("drift", lambda x: x.now.centred.fill(0)),
    ],
)
def test_one_that_writes_into_its_input_costs_no_other_its_number(
    study: waterjar.Study, declare: Callable[..., None], family: str, change: Callable[[Any], None]
) -> None:
    def of_features(x: Representation) -> Result:
        change(x)
        return Result(1.0)

    def of_two(x: Comparison) -> Result:
        change(x)
        return Result(1.0)

    expected = diagnose(study, families=[family]).table()
    declare(of_features if family == "plasticity" else of_two, family, "their-package 1.0")
    found = diagnose(study, families=[family, "cost"])
    assert list(found.results) == ["cost"]
    why = found.passed_over[family]
    assert why.startswith("metric 'aaa_mine' of their-package 1.0: it changes its input, which other metrics get, too")
    forget("aaa_mine")  # as if the package had gone
    again = diagnose(study, families=[family])
    assert not again.passed_over
    assert again.table().equals(expected)  # and nothing wrong was kept


def test_chosen_snapshots_are_compared_with_the_same_care(study: waterjar.Study, declare: Callable[..., None]) -> None:
    def of_two(x: Comparison) -> Result:
        if x.now is x.other:  # in the matrix of moments alone, or of the first snapshot
            raise KeyError("boom")
        return Result(1.0)

    declare(of_two, "drift", "their-package 1.0")
    with pytest.raises(WaterjarError, match=r"metric 'aaa_mine' of their-package 1.0 failed: KeyError: 'boom'"):
        diagnose(study, only=["drift"], settings={"drift": {"matrix": 2}})


def test_an_error_of_any_type_of_one_from_outside_names_it_and_costs_no_other_family(
    study: waterjar.Study, declare: Callable[..., None]
) -> None:
    def broken(x: Representation) -> Result:
        raise ZeroDivisionError("boom")

    declare(broken, "plasticity", "their-package 1.0")
    found = diagnose(study, families=["plasticity", "cost"])
    assert found.passed_over == {"plasticity": "metric 'aaa_mine' of their-package 1.0 failed: ZeroDivisionError: boom"}
    assert list(found.results) == ["cost"]
    with pytest.raises(WaterjarError, match="metric 'aaa_mine' of their-package 1.0") as error:
        diagnose(study, only=["aaa_mine"])
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_one_of_ours_is_a_fault_of_ours(study: waterjar.Study, declare: Callable[..., None]) -> None:
    """Whoever reads the traceback is told which metric it was."""

    def broken(x: Representation) -> Result:
        raise ZeroDivisionError("boom")

    declare(broken, "plasticity")
    with pytest.raises(ZeroDivisionError) as error:
        diagnose(study, families=["plasticity"])
    assert error.value.__notes__ == ["metric 'aaa_mine'"]
