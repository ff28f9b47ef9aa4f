"""Attacks against closed forms, finite differences, and what every attack must keep to."""

from __future__ import annotations

import copy
import itertools
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from robust_models import CLASSES, MEAN, STD, TwoClasses, blobs, normalised, trained  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.attacks import SHELF, Victim, attack, cross_entropy, dlr, margin, radius, worst  # noqa: E402
from waterjar.probe.attacks._apgd import checkpoints  # noqa: E402
from waterjar.probe.attacks.square import share_at  # noqa: E402

pytestmark = pytest.mark.torch
QUICK = {
    "fgsm": {},
    "pgd": {"steps": 5},
    "apgd_ce": {"steps": 10, "restarts": 2},
    "apgd_dlr": {"steps": 10, "restarts": 2},
    "square": {"queries": 70},
    "noise": {},
}
"""Every attack, in little time."""
NORMALISE = (MEAN, STD)


def test_every_attack_is_tried_here():
    assert set(SHELF.names()) == set(QUICK)


class TestSlopes:
    @pytest.mark.parametrize("loss", [cross_entropy, dlr, margin])
    def test_by_finite_differences(self, loss):
        images, labels = blobs(3)
        victim = Victim(copy.deepcopy(trained()).double(), NORMALISE, torch.device("cpu"))
        pixels = images.double()
        values, slope, _ = victim.slope(pixels, labels, loss)
        step = 1e-6
        for place in [(0, 0, 0), (1, 3, 4), (0, 7, 2), (1, 5, 5)]:
            moved = torch.zeros_like(pixels)
            moved[(slice(None), *place)] = step
            up, down = (loss(victim.logits(pixels + sign * moved), labels) for sign in (1, -1))
            numeric = ((up - down) / (2 * step)).detach()
            torch.testing.assert_close(slope[(slice(None), *place)], numeric, rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(values, loss(victim.logits(pixels), labels).detach())

    def test_the_normalisation_is_part_of_it(self):
        """The slope by pixels is that by normalised values over std."""
        images, labels = blobs(4)
        inside = Victim(trained(), NORMALISE, torch.device("cpu")).slope(images, labels, cross_entropy)[1]
        outside = Victim(trained(), None, torch.device("cpu")).slope(normalised(images), labels, cross_entropy)[1]
        torch.testing.assert_close(inside, outside / torch.tensor(STD)[:, None, None])

    @given(st.floats(0.01, 100), st.floats(-50, 50), st.integers(0, 2**31))
    @settings(max_examples=30)
    def test_no_scale_or_shift_of_logits_changes_the_ratio(self, scale, shift, seed):
        rng = np.random.default_rng(seed)
        logits, labels = torch.from_numpy(rng.normal(size=(6, 5))), torch.from_numpy(rng.integers(0, 5, 6))
        torch.testing.assert_close(dlr(logits, labels), dlr(scale * logits + shift, labels), rtol=1e-6, atol=1e-8)

    def test_the_sign_of_both_margins_is_the_answer(self):
        logits, labels = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)), torch.arange(200) % 5
        wrong = logits.argmax(1) != labels
        for loss in (margin, dlr):
            assert ((loss(logits, labels) > 0) == wrong).all()


class TestClosedForm:
    """Of two classes and w x + b, an attacker of eps takes eps sum |w| of the margin if no pixel is at its end."""

    @pytest.fixture(scope="class")
    @classmethod
    def linear(cls):
        rng = np.random.default_rng(3)
        images = torch.from_numpy(rng.uniform(0.2, 0.8, (300, 1, 5, 5)))
        weights = torch.from_numpy(rng.normal(size=(1, 5, 5)))
        model = TwoClasses(weights, -float((images.flatten(1) @ weights.flatten()).median()))
        score = model(images)[:, 0].detach()
        return model, images, (score < 0).long(), score.abs().numpy(), float(weights.abs().sum())

    @pytest.mark.parametrize("how", ["fgsm", "pgd", "apgd_ce"])
    @pytest.mark.parametrize("eps", [0.01, 0.05, 0.15])
    def test_robust_accuracy(self, linear, how, eps):
        model, images, labels, score, size = linear
        found = attack(model, images, labels, how, eps=eps, **QUICK[how])
        assert found.clean_accuracy == 1.0
        np.testing.assert_array_equal(found.right, score > eps * size)
        assert 0 < found.accuracy < 1 or eps > 0.1

    def test_black_box_and_noise_do_no_more(self, linear):
        model, images, labels, score, size = linear
        for how in ("square", "noise"):
            found = attack(model, images, labels, how, eps=0.1, **QUICK[how])
            assert (found.right >= (score > 0.1 * size)).all()
        assert found.accuracy > (score > 0.1 * size).mean()

    def test_square_gets_there_in_time(self, linear):
        model, images, labels, score, size = linear
        found = attack(model, images, labels, "square", eps=0.1, queries=2000)
        assert abs(found.accuracy - (score > 0.1 * size).mean()) < 0.05

    def test_one_step_is_along_the_sign(self, linear):
        model, images, labels, *_ = linear
        found = attack(model, images, labels, "fgsm", eps=0.05)
        away = torch.where(labels == 0, -1.0, 1.0)[:, None, None, None] * model.weights.detach().sign()
        torch.testing.assert_close(found.images, images + 0.05 * away)


@pytest.mark.parametrize("how", QUICK)
class TestEveryAttack:
    @given(
        eps=st.sampled_from([0.003, "seed", "8/255", 0.3, 1.0]),
        mean=st.floats(-1, 1),
        std=st.floats(0.05, 3),
        seed=st.integers(0, 2**31),
        ends=st.booleans(),
    )
    @settings(max_examples=8)
    def test_stays_within_eps_and_in_pixels(self, how, eps, mean, std, seed, ends):
        images, labels = blobs(6, seed % 1000)
        images = images.round() if ends else images
        found = attack(trained(), images, labels, how, eps=eps, normalise=(mean, std), seed=seed, **QUICK[how])
        assert float((found.images - images).abs().max()) <= radius(eps) + 1e-6
        assert float(found.images.min()) >= 0.0 and float(found.images.max()) <= 1.0
        model = copy.deepcopy(trained()).eval()
        right = model((found.images - mean) / std).argmax(1) == labels
        np.testing.assert_array_equal(found.right, right.numpy())

    def test_an_image_does_not_depend_on_its_batch(self, how):
        images, labels = blobs(12)
        images = images.double()
        model = copy.deepcopy(trained()).double()
        options = {"eps": 0.1, "normalise": NORMALISE, **QUICK[how]}
        whole = attack(model, images, labels, how, **options)
        parts = attack(model, images, labels, how, batch_size=5, **options)
        places = [7, 2, 11]
        some = attack(model, images[places], labels[places], how, index=places, **options)
        torch.testing.assert_close(whole.images, parts.images)
        torch.testing.assert_close(whole.images[places], some.images)

    def test_the_same_seed_gives_the_same_bits_and_another_does_not(self, how):
        images, labels = blobs(8)
        first, again, other = (
            attack(trained(), images, labels, how, eps=0.02, normalise=NORMALISE, seed=seed, **QUICK[how]).images
            for seed in (0, 0, 1)
        )
        assert torch.equal(first, again)
        assert torch.equal(first, other) == (how == "fgsm")

    def test_the_model_is_not_touched(self, how):
        images, labels = blobs(6)
        model = copy.deepcopy(trained()).train()
        model[0].eval()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        before = copy.deepcopy(model.state_dict())
        modes = [module.training for module in model.modules()]
        torch.manual_seed(5), np.random.seed(5), random.seed(5)  # noqa: NPY002
        states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
        given_images = images.clone()
        with torch.inference_mode():
            attack(model, images, labels, how, eps=0.1, normalise=NORMALISE, **QUICK[how])
        assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
        assert all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters())
        assert modes == [module.training for module in model.modules()]
        assert torch.equal(states[0], torch.get_rng_state()) and states[2] == random.getstate()
        np.testing.assert_array_equal(states[1], np.random.get_state()[1])  # noqa: NPY002
        assert torch.equal(images, given_images)

    def test_images_that_are_wrong_already_stay_as_they_are(self, how):
        if how in ("fgsm", "noise"):
            pytest.skip("of one step, and literal")
        images, labels = blobs(8)
        wrong = (labels + 1) % CLASSES
        found = attack(trained(), images, wrong, how, eps=0.1, normalise=NORMALISE, **QUICK[how])
        np.testing.assert_array_equal(found.images[~found.clean_right], images[~found.clean_right])
        assert not found.clean_right.all() and not found.right[~found.clean_right].any()


class TestStrength:
    @pytest.fixture(scope="class")
    @classmethod
    def results(cls):
        images, labels = blobs(96, seed=1)
        full = QUICK | {"pgd": {"steps": 20, "restarts": 2}, "apgd_ce": {"steps": 30, "restarts": 2}}
        return {
            how: attack(trained(), images, labels, how, eps=0.06, normalise=NORMALISE, **options)
            for how, options in full.items()
        }

    def test_more_steps_do_more(self, results):
        accuracy = {how: one.accuracy for how, one in results.items()}
        assert accuracy["noise"] > accuracy["fgsm"] >= accuracy["pgd"] >= accuracy["apgd_ce"] > 0
        assert results["noise"].clean_accuracy > 0.9

    def test_the_worst_is_worse_than_each(self, results):
        found = worst(list(results.values()))
        assert found.how == "worst"
        expected = np.all([one.right & one.clean_right for one in results.values()], 0)
        np.testing.assert_array_equal(found.right, expected)
        model = copy.deepcopy(trained()).eval()
        seen = (model(normalised(found.images)).argmax(1) == torch.arange(96) % CLASSES).numpy()
        np.testing.assert_array_equal(found.right, seen)

    def test_restarts_do_not_do_less(self):
        images, labels = blobs(64, seed=2)
        few, many = (
            attack(trained(), images, labels, "pgd", eps=0.06, normalise=NORMALISE, steps=3, restarts=n) for n in (1, 6)
        )
        assert (many.right <= few.right).all() and many.right.sum() < few.right.sum()

    def test_the_last_point_of_a_walk(self):
        images, labels = blobs(16)
        options = {"eps": 0.05, "normalise": NORMALISE, "steps": 1, "random_start": False}
        one = attack(trained(), images, labels, "pgd", take="last", step_size=0.05, **options)
        step = attack(trained(), images, labels, "fgsm", eps=0.05, normalise=NORMALISE)
        torch.testing.assert_close(one.images, step.images)


class TestSchedules:
    def test_checkpoints(self):
        """Those of the paper: p = 0.22, 0.41, 0.57, 0.70, 0.80, 0.87, 0.93, 0.99."""
        assert checkpoints(100) == [22, 41, 57, 70, 80, 87, 93, 99]
        assert checkpoints(1) == [1] and checkpoints(10)[0] == 3

    def test_windows_shrink(self):
        shares = [share_at(query, 5000) for query in range(1, 5000)]
        assert shares[0] == 0.8 and all(a >= b for a, b in itertools.pairwise(shares))
        assert shares[-1] == 0.8 / 512


class TestModels:
    def test_tuples_callables_and_methods(self):
        images, labels = blobs(10)
        network = copy.deepcopy(trained()).eval()

        class Collective(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = network

            def forward(self, images):
                return self.body(images), {"individual_logits": {}}

            def named(self, images):
                return self.body(images)

        whole = Collective()
        options = {"eps": 0.05, "normalise": NORMALISE}
        expected = attack(network, images, labels, "fgsm", **options).images
        for model in (whole, whole.named, lambda x: whole(x)[:1], network.forward):
            torch.testing.assert_close(attack(model, images, labels, "fgsm", **options).images, expected)

    def test_numpy_and_plain_vectors(self):
        rng = np.random.default_rng(0)
        images, labels = rng.uniform(0.2, 0.8, (20, 6)), np.arange(20) % 2
        model = TwoClasses(torch.from_numpy(rng.normal(size=6)).float(), 0.0)
        for how, options in QUICK.items():
            if how == "apgd_dlr":
                with pytest.raises(WaterjarError, match="three classes"):
                    attack(model, images, labels, how)
            else:
                assert attack(model, images, labels, how, **options).images.shape == (20, 6)

    def test_an_attack_of_ones_own(self):
        def darken(victim, images, labels, *, eps, draws, share=1.0):
            return (images - share * eps).clamp_min(0)

        images, labels = blobs(4)
        found = attack(trained(), images, labels, darken, eps=0.1, normalise=NORMALISE, share=0.5)
        assert found.how == "darken"
        torch.testing.assert_close(found.images, (images - 0.05).clamp_min(0))

    def test_one_that_cheats_is_refused(self):
        images, labels = blobs(4)
        with pytest.raises(WaterjarError, match="moves a pixel by"):
            attack(trained(), images, labels, lambda v, x, y, *, eps, draws: x + 2 * eps, normalise=NORMALISE)

    def test_a_model_of_nan_is_never_right(self):
        images, labels = blobs(4)
        found = attack(lambda x: torch.full((len(x), 3), torch.nan) * x.sum(), images, labels % 3, "pgd", steps=2)
        assert not found.clean_right.any() and not found.right.any()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"images": torch.ones(2, 1, 2, 2) * 2}, "expected pixels in \\[0, 1\\]"),
            ({"images": torch.full((2, 1, 2, 2), torch.nan)}, "expected pixels"),
            ({"images": torch.ones(2, 1, 2, 2, dtype=torch.uint8)}, "floating-point"),
            ({"images": torch.ones(0, 1, 2, 2)}, "no image"),
            ({"labels": [0]}, "labels have shape"),
            ({"labels": [0.5, 1.0]}, "whole number"),
            ({"labels": [0, 9]}, "classes"),
            ({"labels": [-1, 0]}, "from 0 on"),
            ({"how": "pdg"}, "did you mean 'pgd'"),
            ({"eps": 0.0}, "more than 0"),
            ({"eps": "8/0"}, "expected a number, a fraction"),
            ({"eps": 8}, "at most 1"),
            ({"stepz": 3}, "did you mean 'steps'"),
            ({"steps": 0}, "1 or more"),
            ({"batch_size": 0}, "1 or more"),
            ({"normalise": (0.5, 0.0)}, "std above 0"),
            ({"normalise": ([0.5] * 3, [0.5] * 3)}, "3 numbers for images of 1 channels"),
            ({"index": [0]}, "index has shape"),
            ({"seed": -1}, "from 0 on"),
            ({"model": 3}, "cannot be called"),
            ({"model": lambda x: x}, "expected logits"),
        ],
    )
    def test_what_is_wrong_is_said(self, change, words):
        arguments = {
            "model": lambda x: x.flatten(1), "images": torch.ones(2, 1, 2, 2), "labels": [0, 1], "how": "pgd", **change,
        }  # fmt: skip
        with pytest.raises(WaterjarError, match=words):
            attack(**arguments)
