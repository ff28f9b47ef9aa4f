"""Few seeds that differ do not show that nothing was learned; equal ones do not show that something was."""

from __future__ import annotations

import numpy as np
import pytest

from waterjar.diagnose.rigidity.guessing import above_guessing, shown_above


@pytest.mark.parametrize("seeds", [(0.45, 0.95), (0.2, 0.9, 0.3), (0.11, 0.3)])
def test_few_seeds_that_are_all_above_leave_it_open(seeds: tuple[float, ...]) -> None:
    assert above_guessing(seeds, 0.1, None, 0.95) is None
    assert shown_above(seeds, 0.1, None, 0.95) is False


@pytest.mark.parametrize("classes", [2, 3, 5, 7, 10, 20, 60, 100])
@pytest.mark.parametrize("seeds", [2, 3, 6, 12])
def test_a_constant_answer_is_guessing_in_single_precision_too(classes: int, seeds: int) -> None:
    values = np.full(seeds, 1 / classes, np.float32).astype(np.float64)
    assert above_guessing(values, 1 / classes, None, 0.95) is False


def test_equal_seeds_count_when_there_are_enough() -> None:
    assert above_guessing([0.5] * 5, 0.1, None, 0.95) is None
    assert above_guessing([0.5] * 6, 0.1, None, 0.95) is True


def test_seeds_around_chance_have_not_learned() -> None:
    assert above_guessing([0.11, 0.09, 0.12], 0.1, None, 0.95) is False
