"""What cannot be a point, a label, a count or a seed is said in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from waterjar.diagnose.geometry.inputs import at_least, checked_rng, real_points, sortable_labels
from waterjar.errors import WaterjarError


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.ones((2, 2)) + 1j, "must be real"),
        (np.ma.masked_array(np.eye(2), np.eye(2) > 0), "masked"),  # type: ignore[no-untyped-call]
        ([[1, 2], [3]], "not an array of numbers"),
        ([["a", "b"]], "not an array of numbers"),
    ],
)
def test_points(points: object, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        real_points(points)  # type: ignore[arg-type]


def test_a_masked_array_without_masks_is_an_array() -> None:
    assert (real_points(np.ma.masked_array(np.eye(2))) == np.eye(2)).all()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, "a"], "mixed types .number, text."),
        (np.array([1, "a", None], object), "mixed types"),
        ([1, None], "mixed types"),
        (np.array([None, None]), "mixed types .NoneType."),
        (np.array([0.0, np.nan]), "1 are NaN"),
        (np.array(["2020-01-01", "NaT"], "datetime64[D]"), "1 are NaT"),
        (np.ma.masked_array([1, 2], [True, False]), "masked"),  # type: ignore[no-untyped-call]
        ([[1], [2, 3]], "one label per point"),
        (np.array([1j, 2]), "labels of type complex128"),
    ],
)
def test_labels(labels: object, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        sortable_labels(labels)  # type: ignore[arg-type]


def test_labels_that_have_an_order() -> None:
    assert sortable_labels(np.array(["b", "a"], object)).dtype.kind == "U"
    assert sortable_labels(np.array([2, 1], object)).dtype.kind == "i"
    assert sortable_labels([2.0, 1]).tolist() == [2, 1]


def test_counts_and_seeds() -> None:
    assert at_least("n", np.int64(3), 1, "") == 3 and checked_rng(np.uint8(4)) == 4
    for value in (2.5, "3", True, None):
        with pytest.raises(WaterjarError, match="whole number"):
            at_least("n", value, 1, "from 1 on")
    with pytest.raises(WaterjarError, match="n=0: from 1 on"):
        at_least("n", 0, 1, "from 1 on")
    sequence = np.random.SeedSequence(1)
    assert checked_rng(sequence) is sequence
    for rng in (None, -1, 0.5, "a", np.random.default_rng(0)):
        with pytest.raises(WaterjarError, match="SeedSequence"):
            checked_rng(rng)
