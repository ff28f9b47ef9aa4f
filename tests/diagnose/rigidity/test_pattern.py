from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterjar import WaterjarError
from waterjar.diagnose.rigidity import Bounds, rigidity_pattern
from waterjar.diagnose.rigidity.pattern import PATTERNS

UP, DOWN, UNCLEAR, NONE = Bounds(0.1, 0.2), Bounds(-0.2, -0.1), Bounds(-0.1, 0.1), Bounds(math.nan, math.nan)
SMALL = Bounds(-0.04, 0.04)


@pytest.mark.parametrize(
    ("ad", "pd", "sfr_rel", "expected"),
    [
        (UP, UP, UP, "classical_einstellung"),
        (DOWN, DOWN, UP, "shortcut_rigidity"),
        (UP, UP, DOWN, "slow_adaptation"),
        (UP, UP, UNCLEAR, "slow_adaptation"),
        (UP, UP, NONE, "inconclusive"),
        (UP, SMALL, SMALL, "benign_transfer"),
        (NONE, DOWN, DOWN, "benign_transfer"),
        (NONE, SMALL, SMALL, "benign_transfer"),
        (DOWN, DOWN, UNCLEAR, "inconclusive"),
        (UNCLEAR, DOWN, UP, "inconclusive"),
        (NONE, UP, UP, "inconclusive"),
        (UP, UNCLEAR, UP, "inconclusive"),
        (UNCLEAR, UNCLEAR, UNCLEAR, "inconclusive"),
        (NONE, NONE, NONE, "inconclusive"),
    ],
)
def test_patterns(ad: Bounds, pd: Bounds, sfr_rel: Bounds, expected: str) -> None:
    assert rigidity_pattern(ad, pd, sfr_rel) == expected


def test_the_margin_decides_what_is_benign() -> None:
    assert rigidity_pattern(UNCLEAR, UNCLEAR, UNCLEAR, margin=0.2) == "benign_transfer"
    assert rigidity_pattern(UNCLEAR, SMALL, SMALL, margin=0.01) == "inconclusive"
    with pytest.raises(WaterjarError, match="margin=-1"):
        rigidity_pattern(UP, UP, UP, margin=-1)


def test_an_interval_without_width_is_as_sharp_as_the_grid_of_epochs() -> None:
    assert not Bounds(-1, -1, 1.0).below
    assert Bounds(-2, -2, 1.0).below and not Bounds(-2, -2, 1.0).above
    assert Bounds(-1, -1).below
    assert not Bounds(1, 1, 1.0).above and Bounds(2, 2, 1.0).above
    assert Bounds(0.1, 0.5, 1.0).above


INTERVALS = st.builds(lambda low, width: Bounds(low, low + width), st.floats(-1, 1), st.floats(0, 1))


@given(INTERVALS, INTERVALS, INTERVALS)
def test_no_sign_is_claimed_by_an_interval_that_holds_0(ad: Bounds, pd: Bounds, sfr_rel: Bounds) -> None:
    found = rigidity_pattern(ad, pd, sfr_rel)
    assert found in PATTERNS
    if found in ("classical_einstellung", "shortcut_rigidity", "slow_adaptation"):
        assert not any(bounds.low <= 0 <= bounds.high for bounds in (ad, pd))
    if found in ("classical_einstellung", "shortcut_rigidity"):
        assert not sfr_rel.low <= 0 <= sfr_rel.high


def test_how_many_seeds_would_do_is_said_as_far_as_it_is_known() -> None:
    from waterjar.diagnose.rigidity.verdict import Estimate, _needed

    nan = float("nan")
    unclear = dict.fromkeys(("ad", "pd", "sfr_rel"), Estimate(0.1, Bounds(-0.1, 0.3), 3))
    assert _needed({"ad": 4.0, "pd": 9.0, "sfr_rel": 7.0}, unclear).startswith("; about 9 would show all three signs")
    partly = _needed({"ad": nan, "pd": 9.0, "sfr_rel": 7.0}, unclear)
    assert partly == "; about 9 would show the sign of PD and 7 that of SFR_rel, if means and spreads hold"
    assert _needed(dict.fromkeys(("ad", "pd", "sfr_rel"), nan), unclear) == ""
    many = _needed({"ad": 874.0, "pd": 9.0, "sfr_rel": 7.0}, unclear)
    assert many == "; all three signs would take more than 200: not with seeds alone"
    some = _needed({"ad": nan, "pd": 9.0, "sfr_rel": 201.0}, unclear)
    assert some.startswith("; the sign of SFR_rel would take more than 200: not with seeds alone; about 9 would show")
    assert "about 200 would" in _needed({"ad": nan, "pd": 200.0, "sfr_rel": nan}, unclear)


def test_no_seeds_are_asked_for_that_are_there() -> None:
    from waterjar.diagnose.rigidity.verdict import Estimate, _needed

    nan = float("nan")
    unclear, clear = Estimate(0.1, Bounds(-0.1, 0.3), 3), Estimate(0.2, Bounds(0.1, 0.3), 3)
    found = {"ad": unclear, "pd": clear, "sfr_rel": unclear}
    assert _needed({"ad": nan, "pd": 3.0, "sfr_rel": nan}, found) == "; the sign of PD is clear already"
    mixed = _needed({"ad": nan, "pd": 3.0, "sfr_rel": 8.0}, found)
    assert mixed == (
        "; the sign of PD is clear already; about 8 would show the sign of SFR_rel, if means and spreads hold"
    )
    both = _needed({"ad": 2.0, "pd": 3.0, "sfr_rel": nan}, {**found, "ad": clear})
    assert both == "; the signs of AD and PD are clear already"
    assert _needed({"ad": nan, "pd": nan, "sfr_rel": 3.0}, found) == ""  # as many as there are, and not clear
