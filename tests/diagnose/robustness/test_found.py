"""Accuracies, what is retained and differences, of answers that were written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from waterjar import WaterjarError
from waterjar.diagnose.robustness import (
    Robustness,
    attack_result,
    condition_of,
    effective_robustness,
    raised_flags,
    shift_result,
    to_dataset,
)
from waterjar.diagnose.robustness.conditions import average_labels

MODELS = ("collective", "ensemble")
CONDITIONS = ("clean", "seed/blur/3", "seed/contrast/3", "cifar_c/blur/1", "fgsm/0.03", "worst/8:255")


def answers(*rows: str) -> np.ndarray:
    """A row of 0 and 1 for each condition."""
    return np.array([[sign == "1" for sign in row] for row in rows])


@pytest.fixture
def found() -> Robustness:
    collective = answers("11111000", "11110000", "11000000", "11111000", "10000000", "00000000")
    ensemble = answers("11101111", "10100010", "00100000", "11101111", "00000011", "00000000")
    return Robustness(MODELS, CONDITIONS, np.stack([collective, ensemble]))


class TestByHand:
    def test_accuracy(self, found):
        assert found.accuracy[0].tolist() == [
            [5 / 8, 4 / 8, 2 / 8, 5 / 8, 1 / 8, 0],
            [7 / 8, 3 / 8, 1 / 8, 7 / 8, 2 / 8, 0],
        ]
        bounds = stats.binomtest(5, 8).proportion_ci(0.95, method="wilson")
        np.testing.assert_allclose([found.accuracy[1][0, 0], found.accuracy[2][0, 0]], bounds)

    def test_retained_is_of_samples_that_all_had_right(self, found):
        assert found.kept.tolist() == [True, True, True, False, True, False, False, False]
        assert found.retained[0].tolist() == [[1, 3 / 4, 2 / 4, 1, 1 / 4, 0], [1, 2 / 4, 1 / 4, 1, 0, 0]]

    def test_differences(self, found):
        assert found.difference[0].tolist() == [[-2 / 8, 1 / 8, 1 / 8, -2 / 8, -1 / 8, 0]]
        assert found.retained_difference[0].tolist() == [[0, 1 / 4, 1 / 4, 0, 1 / 4, 0]]
        z, p, q = stats.norm.ppf(0.975), 3 / 6, 2 / 6  # blur at 3 of the four: gained one, lost none; plus one of each
        assert found.retained_difference[1][0, 1] == pytest.approx(
            2 / 6 - 1 / 6 - z * np.sqrt((2 / 6 + 1 / 6 - 1 / 36) / 6)
        )
        assert p > q

    def test_averages(self, found):
        assert list(found.averages) == ["cifar_c/1", "cifar_c/all", "seed/3", "seed/all"]
        assert found.average_accuracy[0][:, 2].tolist() == [3 / 8, 2 / 8]
        assert found.average_retained_difference[0][0, 2] == 1 / 4
        low, high = (end[0, 2] for end in found.average_retained_difference[1:])
        assert low < 1 / 4 < high

    def test_more_robust_only_because_it_is_better_when_clean(self):
        """Both lose the same samples: the difference in accuracy is there, that in what is retained is not."""
        better, worse = answers("1111111110", "1111100000"), answers("1111111000", "1111100000")
        found = Robustness(("a", "b"), ("clean", "seed/blur/3"), np.stack([better, worse]))
        assert found.retained_difference[0][0, 1] == 0.0 and found.difference[0][0, 0] > 0

    def test_nothing_in_common(self):
        right = np.stack([answers("10", "10"), answers("01", "01")])
        found = Robustness(("a", "b"), ("clean", "fgsm/0.03"), right)
        assert np.isnan(found.retained[0]).all() and np.isnan(found.retained_difference[0]).all()

    def test_one_model(self):
        found = Robustness(("a",), ("clean", "fgsm/0.03"), answers("11", "10")[None])
        assert found.difference[0].shape == (0, 2) and found.average_accuracy[0].shape == (1, 0)
        assert to_dataset(found).sizes["other_model"] == 0


class TestKeysOfTheSeed:
    def test_shifts(self, found):
        result = shift_result(found)
        assert result == {"clean": 5 / 8, "blur": 4 / 8, "contrast": 2 / 8, "avg_shifted": 3 / 8, "robustness": 0.6}
        assert shift_result(found, "ensemble", "cifar_c", 1)["robustness"] == 1.0
        with pytest.raises(WaterjarError, match="severity 4"):
            shift_result(found, severity=4)

    def test_attacks(self, found):
        assert attack_result(found) == {"clean_acc": 5 / 8, "adv_acc": 1 / 8, "robustness": 1 / 5}
        assert attack_result(found, "ensemble", "worst", "8/255")["adv_acc"] == 0
        with pytest.raises(WaterjarError, match="pgd/0.03"):
            attack_result(found, attack="pgd")
        with pytest.raises(WaterjarError, match="did you mean 'ensemble'"):
            attack_result(found, "ensembles")

    def test_nothing_right_when_clean(self):
        nothing = Robustness(("a",), ("clean", "fgsm/0.03"), answers("00", "00")[None])
        assert np.isnan(attack_result(nothing)["robustness"])

    def test_as_a_dataset(self, found):
        data = to_dataset(found)
        assert data.retained.sel(model="ensemble", condition="seed/blur/3") == 2 / 4
        assert data.average_retained_difference.sel(other_model="ensemble", average="seed/3") == 1 / 4
        assert int(data.n) == 8 and int(data.n_retained) == 4
        np.testing.assert_array_equal(data.correct, found.correct)


class TestEffective:
    def test_is_a_regression_of_logits(self):
        rng = np.random.default_rng(0)
        clean, shifted = rng.uniform(0.5, 0.95, 6), rng.uniform(0.2, 0.7, 6)
        line = stats.linregress(special.logit(clean), special.logit(shifted))
        expected = 0.6 - special.expit(line.intercept + line.slope * special.logit(0.8))
        assert effective_robustness(0.8, 0.6, clean, shifted) == pytest.approx(expected)

    def test_needs_three_that_differ(self):
        assert np.isnan(effective_robustness(0.8, 0.6, [0.7, 0.9], [0.5, 0.6]))
        assert np.isnan(effective_robustness(0.8, 0.6, [0.7, 0.7, 0.7], [0.5, 0.6, 0.7]))

    def test_of_answers(self):
        """References on the diagonal of the logits: a model that loses nothing beyond them has none, another has."""
        n, rng = 4000, np.random.default_rng(1)

        def right(share: float) -> np.ndarray:
            return rng.random(n) < share

        references = np.stack([np.stack([right(p), right(p)]) for p in (0.6, 0.7, 0.8, 0.9)])
        models = np.stack([np.stack([right(0.75), right(0.75)]), np.stack([right(0.85), right(0.6)])])
        found = Robustness(("a", "b"), ("clean", "seed/blur/3"), models, references=references)
        value, low, high = found.effective
        assert low[0, 1] < 0 < high[0, 1] and abs(value[0, 1]) < 0.03
        assert abs(value[1, 1] + 0.25) < 0.03 and low[1, 1] < value[1, 1] < high[1, 1] < -0.2
        np.testing.assert_allclose(found.average_effective[0][:, 0], value[:, 1])

    def test_covers(self):
        """Nominally 95 %: 100 times, references on the diagonal."""
        rng, covered = np.random.default_rng(0), 0
        for _ in range(100):
            references = rng.random((4, 2, 300)) < np.array([0.6, 0.7, 0.8, 0.9])[:, None, None]
            model = rng.random((1, 2, 300)) < np.array([0.85, 0.6])[:, None]
            found = Robustness(("a",), ("clean", "seed/blur/3"), model, references=references, resamples=200)
            covered += found.effective[1][0, 1] < -0.25 < found.effective[2][0, 1]
        assert covered > 85

    def test_without_references_and_of_attacks(self, found):
        assert np.isnan(found.effective[0]).all() and np.isnan(found.average_effective[0]).all()
        natural = found.correct[:, found.natural]
        few = Robustness(MODELS, CONDITIONS, found.correct, references=natural)
        assert np.isnan(few.effective[0]).all()
        more = np.concatenate([natural, natural[:, :, ::-1] | natural])
        many = Robustness(MODELS, CONDITIONS, found.correct, references=more)
        assert np.isnan(many.effective[0][:, 4:]).all() and not np.isnan(many.effective[0][:, :4]).any()

    def test_the_same_seed_gives_the_same_bits(self, found):
        references = np.random.default_rng(0).random((3, 4, 8)) < 0.6
        one, again = (Robustness(MODELS, CONDITIONS, found.correct, references=references) for _ in range(2))
        np.testing.assert_array_equal(one.effective, again.effective)


class TestConditions:
    def test_parts(self):
        assert condition_of("clean").kind == "clean"
        blur, pgd = condition_of("cifar_c/blur/5"), condition_of("pgd/8:255")
        assert (blur.kind, blur.ladder, blur.name, blur.severity) == ("shift", "cifar_c", "blur", 5)
        assert (pgd.kind, pgd.name, pgd.eps) == ("attack", "pgd", "8/255")
        assert average_labels(["clean", "pgd/0.1"]) == {}

    @pytest.mark.parametrize("label", ["", "blur", "seed/blur/x", "seed//3", "a/b/c/1", "/0.03"])
    def test_no_condition(self, label):
        with pytest.raises(WaterjarError, match="expected clean"):
            condition_of(label)

    def test_flags_at_their_limit(self):
        assert raised_flags({"square_beats_white_box": 0.02}) == ()
        assert raised_flags({"square_beats_white_box": 0.03, "output_randomness": 1e-9}) == (
            "output_randomness", "square_beats_white_box",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"correct": np.zeros((2, 6, 8))}, "expected True and False"),
        ({"correct": np.zeros((2, 5, 8), bool)}, "correct has shape"),
        ({"conditions": ("fgsm/0.03", *CONDITIONS[1:])}, "each once|'clean' as the first"),
        ({"conditions": ("seed/blur/1", *CONDITIONS[1:])}, "'clean' as the first"),
        ({"models": ("a", "a")}, "each once"),
        ({"references": np.zeros((3, 6, 8), bool)}, "references have shape"),
    ],
)
def test_what_is_wrong_is_said(found, change, words):
    settings = {"models": MODELS, "conditions": CONDITIONS, "correct": found.correct, **change}
    with pytest.raises(WaterjarError, match=words):
        Robustness(**settings)
