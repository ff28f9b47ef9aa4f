"""Shifts against scipy.ndimage and closed forms, and what their draws depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage, stats

torch = pytest.importorskip("torch")

from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.draws import Draws  # noqa: E402
from waterjar.probe.shifts import SEVERITIES, SHELF, ladders_of, on_ladder, shift  # noqa: E402
from waterjar.probe.shifts.blur import LADDERS as BLURS  # noqa: E402
from waterjar.probe.shifts.rotation import rotate  # noqa: E402

pytestmark = pytest.mark.torch
PAIRS = [(ladder, name) for name in SHELF.names() for ladder in ladders_of(name)]


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).uniform(0, 1, (6, 3, 9, 12))


def draws_of(name, severity, samples, seed=0):
    return Draws(seed, range(samples), "shift", name, severity)


class TestLadders:
    def test_which_there_are(self):
        assert SHELF.names() == ("blur", "contrast", "gaussian_noise", "rotation")
        assert on_ladder("seed") == SHELF.names()
        assert on_ladder("cifar_c") == ("blur", "contrast", "gaussian_noise")

    def test_the_published_values(self):
        from waterjar.probe.shifts import contrast, gaussian_noise, rotation

        assert gaussian_noise.LADDERS["cifar_c"][1] == (0.04, 0.06, 0.08, 0.09, 0.10)
        assert contrast.LADDERS["cifar_c"][1] == (0.75, 0.5, 0.4, 0.3, 0.15)
        assert BLURS["cifar_c"][1] == (0.4, 0.6, 0.7, 0.8, 1.0)
        third = [module.LADDERS["seed"][1][2] for module in (gaussian_noise, contrast, rotation)]
        assert third == [0.1, 0.5, 30.0] and BLURS["seed"][1][2] == (2, 2.0)

    @pytest.mark.parametrize(("ladder", "name"), PAIRS)
    def test_more_is_further_away(self, ladder, name):
        pictures = np.random.default_rng(1).uniform(0.3, 0.7, (200, 1, 8, 8))
        far = [float(np.abs(shift(pictures, name, s, ladder=ladder) - pictures).mean()) for s in SEVERITIES]
        assert far[0] > 0 and far[-1] > far[2] > far[0]


class TestClosedForms:
    def test_noise(self, images):
        flat = np.full((400, 1, 10, 10), 0.5)
        for ladder, severity, std in [("seed", 3, 0.1), ("cifar_c", 1, 0.04), ("seed", 5, 0.5 / 3)]:
            away = (shift(flat, "gaussian_noise", severity, ladder=ladder) - 0.5).ravel()
            inside = away[np.abs(away) < 0.5]
            assert stats.kstest(inside / std, "norm").pvalue > 1e-3
        moved = shift(images, "gaussian_noise", 3)
        expected = images + 0.1 * draws_of("gaussian_noise", 3, 6).normal((3, 9, 12))
        np.testing.assert_allclose(moved, expected.clip(0, 1), atol=1e-9)

    def test_contrast_that_is_drawn(self, images):
        factor = draws_of("contrast", 3, 6).uniform((1, 1, 1), 0.5, 1.5)
        grey = np.tensordot([0.2989, 0.587, 0.114], images, ([0], [1]))
        mean = grey.mean((1, 2))[:, None, None, None]
        expected = (factor * images + (1 - factor) * mean).clip(0, 1)
        np.testing.assert_allclose(shift(images, "contrast", 3), expected, atol=1e-9)

    @pytest.mark.parametrize("severity", SEVERITIES)
    def test_contrast_of_the_ladder(self, images, severity):
        factor = (0.75, 0.5, 0.4, 0.3, 0.15)[severity - 1]
        mean = images.mean((2, 3), keepdims=True)
        found = shift(images, "contrast", severity, ladder="cifar_c")
        np.testing.assert_allclose(found, (images - mean) * factor + mean, atol=1e-9)

    def test_draws_are_torchvisions(self):
        """Half of the images get more contrast; sigmas and angles fill their ranges."""
        many = 2000
        factors = Draws(0, range(many), "shift", "contrast", 3).uniform((), 0.5, 1.5)
        angles = Draws(0, range(many), "shift", "rotation", 3).uniform((), -30, 30)
        assert stats.kstest(factors, "uniform", (0.5, 1.0)).pvalue > 1e-3
        assert stats.kstest(angles, "uniform", (-30, 60)).pvalue > 1e-3


class TestAgainstScipy:
    @pytest.mark.parametrize("severity", SEVERITIES)
    def test_blur_of_the_ladder(self, images, severity):
        sigma = (0.4, 0.6, 0.7, 0.8, 1.0)[severity - 1]
        expected = ndimage.gaussian_filter(images, (0, 0, sigma, sigma), mode="nearest", truncate=4.0)
        np.testing.assert_allclose(shift(images, "blur", severity, ladder="cifar_c"), expected, atol=1e-9)

    @pytest.mark.parametrize("severity", SEVERITIES)
    def test_blur_that_is_drawn(self, images, severity):
        radius, largest = (1, 1, 2, 3, 3)[severity - 1], 2 * severity / 3
        sigmas = draws_of("blur", severity, 6).uniform((), 0.1, largest)
        found = shift(images, "blur", severity)
        for image, sigma, own in zip(images, sigmas, found, strict=True):
            expected = ndimage.gaussian_filter(image, (0, sigma, sigma), mode="mirror", radius=(0, radius, radius))
            np.testing.assert_allclose(own, expected, atol=1e-9)

    @pytest.mark.parametrize("degrees", [-73.0, -30.0, 5.0, 45.0, 90.0])
    def test_rotation(self, images, degrees):
        smooth = ndimage.gaussian_filter(images, (0, 0, 1, 1))
        angle = np.deg2rad(degrees)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        middle = (np.array(images.shape[2:]) - 1) / 2
        found = rotate(torch.from_numpy(smooth), torch.full((6,), degrees), "bilinear").numpy()
        for image, own in zip(smooth.reshape(-1, 9, 12), found.reshape(-1, 9, 12), strict=True):
            expected = ndimage.affine_transform(image, turn, middle - turn @ middle, order=1, mode="grid-constant")
            np.testing.assert_allclose(own, expected, atol=1e-9)
        whole = ndimage.rotate(smooth[0, 0], degrees, reshape=False, order=1, mode="grid-constant")
        np.testing.assert_allclose(found[0, 0], whole, atol=1e-9)

    def test_nearest_pixels(self, images):
        """Away from ties, as scipy's order 0."""
        found = rotate(torch.from_numpy(images), torch.full((6,), 17.0)).numpy()
        expected = ndimage.rotate(images, 17.0, axes=(3, 2), reshape=False, order=0, mode="grid-constant")
        turned = ndimage.rotate(images, -17.0, axes=(3, 2), reshape=False, order=0, mode="grid-constant")
        assert max((np.isclose(found, one)).mean() for one in (expected, turned)) > 0.97


@pytest.mark.parametrize(("ladder", "name"), PAIRS)
class TestEveryShift:
    def test_stays_in_pixels_and_keeps_its_type(self, images, ladder, name):
        before = images.copy()
        for given in (images, images.astype(np.float32), torch.from_numpy(images), torch.from_numpy(images).float()):
            found = shift(given, name, 5, ladder=ladder)
            assert type(found) is type(given) and found.dtype == given.dtype and found.shape == given.shape
            assert float(found.min()) >= 0 and float(found.max()) <= 1
        np.testing.assert_array_equal(images, before)

    def test_an_image_does_not_depend_on_its_batch(self, images, ladder, name):
        whole = shift(images, name, 3, ladder=ladder)
        some = shift(images[[4, 1]], name, 3, ladder=ladder, index=[4, 1])
        np.testing.assert_allclose(whole[[4, 1]], some, atol=1e-12)

    def test_the_seed_counts(self, images, ladder, name):
        first, again, other = (shift(images, name, 3, ladder=ladder, seed=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert np.array_equal(first, other) == (ladder == "cifar_c" and name != "gaussian_noise")

    def test_no_global_number_is_drawn(self, images, ladder, name):
        before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        shift(images, name, 3, ladder=ladder)
        assert torch.equal(before[0], torch.get_rng_state())
        np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_grey_images_and_those_without_a_channel(images):
    grey = images[:, 0]
    for ladder, name in PAIRS:
        np.testing.assert_array_equal(
            shift(grey, name, 2, ladder=ladder), shift(grey[:, None], name, 2, ladder=ladder)[:, 0]
        )


def test_a_shift_of_ones_own(images):
    def fog(images, severity, draws):
        return images + 0.1 * severity * torch.from_numpy(draws.uniform((1, 1, 1))).to(images)

    found = shift(images, fog, 2)
    assert found.shape == images.shape and (found >= images - 1e-7).all()
    np.testing.assert_array_equal(shift(images[3:], fog, 2, index=[3, 4, 5]), found[3:])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"how": "blurr"}, "did you mean 'blur'"),
        ({"how": "rotation", "ladder": "cifar_c"}, "ladder 'cifar_c' is unknown"),
        ({"how": "blur", "severity": 0}, "from 1 to 5"),
        ({"how": "blur", "severity": True}, "from 1 to 5"),
        ({"how": 3}, "or a function"),
        ({"how": lambda images, severity, draws: images[:1]}, "expected images of shape"),
        ({"how": "blur", "images": np.full((1, 1, 2, 2), 0.5)}, "expected more than"),
        ({"how": "blur", "images": np.full((1, 4), 0.5)}, "channel, row, column"),
        ({"how": "blur", "images": np.full((1, 1, 8, 8), 1.5)}, "pixels in"),
    ],
)
def test_what_is_wrong_is_said(images, arguments, words):
    with pytest.raises(WaterjarError, match=words):
        shift(**{"images": images, **arguments})


def test_no_such_ladder():
    with pytest.raises(WaterjarError, match="ladder 'cifar' is unknown"):
        on_ladder("cifar")
