"""Which interval tells a sign, what equal seeds show, and how the sentence says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from diagnose.rigidity.einstellung_runs import in_memory, measured_in_memory
from waterjar.diagnose.rigidity.guessing import equal_seeds_needed


def side_of(
    reached: Sequence[int | None], length: int, final: Sequence[float], masked: Sequence[float], every: float = 1.0
) -> xr.Dataset:
    """Seeds that reach 0.6 at an evaluation (None: never), end with an accuracy, and one with the shortcut masked."""
    normal = np.full((length, len(reached)), 0.1)
    for seed, at in enumerate(reached):
        if at is not None:
            normal[at:, seed] = 0.6
    normal[-1] = final
    hidden = np.tile(masked, (length, 1))
    best_at_the_end = np.tile(np.linspace(0, 1, length)[:, None], (1, len(reached)))
    curves = {"t2_shortcut_normal": normal, "t2_shortcut_masked": hidden, "t2_validation": best_at_the_end}
    return in_memory(curves, list(range(len(reached))), [every * i for i in range(length)])


def judged(own: xr.Dataset, other: xr.Dataset | None, **rules: Any) -> Mapping[str, Any]:
    found = measured_in_memory(own, other, ("mine", "base"), window=1, **rules)
    return {str(name): v.values[()] for name, v in found.items()}


FINAL, MASKED = [0.9, 0.8, 0.85], [0.1, 0.2, 0.15]


class TestWhichDelay:
    def test_without_censoring_it_is_its_own_also_beyond_the_smaller_budget(self) -> None:
        # the baseline has 4 epochs and gets there at 2; the learner has 9 and gets there at 6, 7, 8: AD 4, 5, 6
        found = judged(side_of([6, 7, 8], 10, FINAL, MASKED), side_of([2, 2, 2], 5, FINAL, MASKED))
        assert found["ad"].tolist() == [4, 5, 6] and found["ad_restricted"].tolist() == [2, 2, 2]
        assert str(found["ad_judged_by"]) == "ad"
        half = stats.t.isf(0.025, 2) / np.sqrt(3)
        assert f"(AD +5.0 [{5 - half:+.1f}, {5 + half:+.1f}])" in str(found["sentence"])
        assert "needs more epochs than base" in str(found["sentence"])

    def test_with_it_the_sentence_says_within_which_budget(self) -> None:
        found = judged(side_of([1, 2, 1], 6, FINAL, MASKED), side_of([4, None, 3], 6, [0.7, 0.5, 0.7], MASKED))
        assert str(found["ad_judged_by"]) == "ad_restricted"
        # min(E, 5): 1 - 4, 2 - 5, 1 - 3
        mean, half = -8 / 3, stats.t.isf(0.025, 2) * np.sqrt(1 / 3) / np.sqrt(3)
        words = f"(AD within 5 epochs {mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"
        assert f"{words}; never reached by the baseline in 1 of 3 seeds)" in str(found["sentence"])

    def test_a_seed_without_a_partner_does_not_censor(self) -> None:
        other = side_of([2, 3, 4], 6, FINAL, MASKED)
        other["macro_accuracy"][:, :, 2] = np.nan
        found = judged(side_of([1, 1, None], 6, [0.9, 0.8, 0.5], MASKED), other)
        assert str(found["ad_judged_by"]) == "ad" and float(found["ad_n_censored_learner"]) == 1
        assert "never reached by it in 1 of 3 seeds" in str(found["sentence"])


def test_signs_that_ten_thousand_seeds_would_not_show_are_said_too() -> None:
    own = side_of([3, 4, 5], 8, [0.9, 0.61, 0.75], [0.1, 0.2, 0.15])
    found = judged(own, side_of([2, 2, 5], 8, [0.61, 0.9, 0.7503], [0.2, 0.1, 0.4]))  # PD: a mean of 1e-4, spread .29
    assert np.isnan(found["pd_seeds_needed"]) and np.isnan(found["seeds_needed"])
    assert "would take more than 200: not with seeds alone" in str(found["sentence"])


class TestEqualSeeds:
    """Exactly equal in every seed: no width, and no knowledge of the spread either."""

    def equal(self, n: int, **rules: Any) -> Mapping[str, Any]:
        own = side_of([5] * n, 8, [0.7] * n, [0.1] * n)
        return judged(own, side_of([1] * n, 8, [0.9] * n, [0.6] * n), **rules)

    def test_a_sign_test_decides(self) -> None:
        for confidence in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
            n = equal_seeds_needed(confidence)
            assert stats.binomtest(n, n).pvalue <= 1 - confidence + 1e-12
            assert n == 2 or stats.binomtest(n - 1, n - 1).pvalue > 1 - confidence

    def test_few_are_not_clear_and_enough_are(self) -> None:
        for n, expected in ((2, "inconclusive"), (5, "inconclusive"), (6, "classical_einstellung")):
            found = self.equal(n)
            assert found["pd_low"] == found["pd_high"] == pytest.approx(0.2)
            assert str(found["pattern"]) == expected
            assert float(found["pd_seeds_needed"]) == float(found["sfr_rel_seeds_needed"]) == 6
            assert f"PD +0.200 in each of {n} seeds" in str(found["sentence"])
        text = str(self.equal(5)["sentence"])
        assert "(PD +0.200 in each of 5 seeds, spread unknown)" in text
        assert "ends neither clearly lower nor higher" in text
        assert "5 seeds do not settle the pattern; about 6 would show all three signs" in text
        assert str(self.equal(5, confidence=0.9)["pattern"]) == "classical_einstellung"

    def test_reliance_that_is_equal_is_not_called_absent(self) -> None:
        final = [0.7, 0.71, 0.69]  # slower, ends lower, and leans 0.3 more in each seed
        own = side_of([5, 5, 5], 8, final, [value - 0.6 for value in final])
        theirs = [0.9, 0.9, 0.91]
        other = side_of([1, 1, 1], 8, theirs, [value - 0.3 for value in theirs])
        assert str(judged(own, other)["pattern"]) == "inconclusive"

    def test_nor_is_it_benign(self) -> None:
        own = side_of([1] * 3, 8, [0.9] * 3, [0.5] * 3)
        assert str(judged(own, own)["pattern"]) == "inconclusive"
        six = side_of([1] * 6, 8, [0.9] * 6, [0.5] * 6)
        assert str(judged(six, six)["pattern"]) == "benign_transfer"

    def test_no_number_of_seeds_shows_a_delay_within_the_resolution(self) -> None:
        # evaluated every 2 epochs, one evaluation later in every seed
        other = side_of([1, 1, 1], 8, [0.9, 0.8, 0.7], [0.6, 0.5, 0.3], every=2.0)
        found = judged(side_of([2, 2, 2], 8, [0.65, 0.7, 0.62], [0.1, 0.1, 0.2], every=2.0), other)
        assert found["ad"].tolist() == [2, 2, 2]
        assert np.isnan(found["ad_seeds_needed"]) and np.isnan(found["seeds_needed"])
        assert "all three" not in str(found["sentence"])
        assert ("would show the sign of PD" in str(found["sentence"])) == (float(found["pd_seeds_needed"]) > 3)
        farther = judged(side_of([3, 3, 3], 8, [0.65, 0.7, 0.62], [0.1, 0.1, 0.2], every=2.0), other)
        assert float(farther["ad_seeds_needed"]) == 6  # as equal differences in accuracy: by a sign test


class TestWords:
    def test_what_is_unknown_is_not_called_unclear(self) -> None:
        own, other = side_of([1, 2, 3], 8, FINAL, MASKED), side_of([2, 2, 5], 8, FINAL, MASKED)
        for side in (own, other):
            side["macro_accuracy"][:] = np.nan
        text = str(judged(own, other)["sentence"])
        assert "whether it ends lower cannot be told (PD unknown)" in text
        assert "whether it leans on the shortcut cannot be told (SFR_rel unknown)" in text
        assert "clearly" not in text

    def test_a_level_that_is_not_the_usual_is_named(self) -> None:
        own, other = side_of([1, 2, 3], 8, FINAL, MASKED), side_of([2, 2, 5], 8, [0.7, 0.7, 0.8], FINAL)
        assert "% interval" not in str(judged(own, other)["sentence"])
        assert "; 50 % intervals)." in str(judged(own, other, confidence=0.5)["sentence"])
        assert "; 99.5 % intervals)." in str(judged(own, other, confidence=0.995)["sentence"])
        assert "; 50 % intervals." in str(judged(own, None, confidence=0.5)["sentence"])

    def test_thresholds_are_not_rounded(self) -> None:
        own = side_of([1, 2, 3], 8, FINAL, MASKED)
        assert "to reach 62.5 % on" in str(judged(own, own, threshold=0.625)["sentence"])

    def test_no_seed_settles_nothing(self) -> None:
        own, other = side_of([1, 1], 5, [0.9] * 2, [0.1] * 2), side_of([1, 1], 5, [0.9] * 2, [0.1] * 2)
        other = other.assign_coords(seed=("repeat", [7, 8]))
        text = str(judged(own, other)["sentence"])
        assert "No seed has the numbers of both" in text and "0 seeds" not in text

    def test_an_epoch_that_is_unknown(self) -> None:
        own = side_of([1, 1], 5, [0.9] * 2, [0.1] * 2)
        own["macro_accuracy"][0] = np.nan
        assert "shortcut classes: unknown." in str(judged(own, None)["sentence"])
