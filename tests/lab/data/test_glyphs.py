"""Glyphs: the drawing against closed forms, and the promise that shape alone carries the class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import hash_words
from waterjar.lab.data import ImageData, load
from waterjar.lab.data import _glyph_shapes as shapes
from waterjar.lab.data._glyph_render import LOOK, draw_ink, paint_images

CLASSES = 60


@pytest.fixture(scope="module")
def glyphs() -> ImageData:
    return load("glyphs", train_per_class=120, test_per_class=60)


def stroke(*numbers: float) -> NDArray[np.float64]:
    return np.array([[numbers]], dtype=np.float64)


# The drawing.


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9), st.floats(-1.5, 1.5))
@settings(max_examples=60, deadline=None)
def test_ink_is_the_distance_to_the_stroke(y0: float, x0: float, y1: float, x1: float, bulge: float) -> None:
    if np.hypot(y1 - y0, x1 - x0) < 1.0 or abs(bulge) < 0.02:
        bulge = 0.0
    strokes, half = stroke(y0, x0, y1, x1, bulge), 1.2
    points = _dense_points(strokes[0, 0])
    grid = np.stack(np.mgrid[:32, :32], axis=-1) - 15.5
    distance = np.sqrt(((grid[:, :, None] - points) ** 2).sum(axis=-1)).min(axis=-1)
    np.testing.assert_allclose(draw_ink(strokes, half, 32)[0], np.clip(half - distance + 0.5, 0, 1), atol=0.02)


def _dense_points(one: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points on the arc by the circle through both ends and the apex, with no formula of the module's."""
    start, end, bulge = one[:2], one[2:4], one[4]
    along = np.linspace(0, 1, 800)[:, None]
    if bulge == 0.0:
        return start + along * (end - start)
    chord = end - start
    apex = (start + end) / 2 + bulge / 2 * np.array([-chord[1], chord[0]])
    # Centre: the point equally far from start, end and apex, from two linear equations.
    system = 2 * np.stack([end - start, apex - start])
    centre = np.linalg.solve(system, [end @ end - start @ start, apex @ apex - start @ start])
    angles = [np.arctan2(*(point - centre)) for point in (start, apex, end)]
    first = (angles[1] - angles[0] + np.pi) % (2 * np.pi) - np.pi
    second = (angles[2] - angles[1] + np.pi) % (2 * np.pi) - np.pi
    turned = angles[0] + along * (first + second)
    return centre + np.hypot(*(start - centre)) * np.concatenate([np.sin(turned), np.cos(turned)], axis=1)


def test_lengths_and_points_of_arcs() -> None:
    half_circle = np.array([[0.0, -1.0, 0.0, 1.0, 1.0]])
    assert shapes.arc_lengths(half_circle)[0] == pytest.approx(np.pi)
    np.testing.assert_allclose(np.hypot(*shapes.arc_points(half_circle)[0].T), 1.0)
    line = np.array([[0.0, 0.0, 3.0, 4.0, 0.0]])
    assert shapes.arc_lengths(line)[0] == pytest.approx(5.0)
    points = shapes.arc_points(line)[0]
    np.testing.assert_allclose(points[:, 1] * 3, points[:, 0] * 4, atol=1e-12)


def test_a_pixel_is_ground_under_stray_under_ink_plus_light_and_noise() -> None:
    look = dict.fromkeys(LOOK, 0.0)
    look |= {"half_width": 1.0, "ink_r": 0.8, "ground_g": 0.6, "stray_b": 0.4, "slope_x": 0.01}
    out = np.empty((1, 32, 32, 3), dtype=np.uint8)
    far = stroke(0.0, -8.0, 0.0, 8.0, 0.0)
    arguments = (
        far,
        far + np.array([10, 0, 10, 0, 0]),
        np.array([list(look.values())]),
        np.array([5], dtype=np.uint64),
    )
    paint_images(*arguments, out)
    slope = 0.01 * (np.arange(32) - 15.5)
    for row, channel, value in ((0, 1, 0.6), (15, 0, 0.8), (25, 2, 0.4)):
        expected = np.clip(value + slope[10:20], 0, 1) * 255
        np.testing.assert_allclose(out[0, row, 10:20, channel], expected, atol=1.0)
    arguments[2][0, LOOK.index("noise")] = 0.1
    noisy = np.empty_like(out)
    paint_images(*arguments, noisy)
    bits = hash_words(np.arange(1))  # noise is uniform: its spread is that of U(-0.1, 0.1)
    spread = (noisy[0, :8, :, 1].astype(float) - out[0, :8, :, 1]).std() / 255
    assert bits.size == 1 and spread == pytest.approx(0.1 / np.sqrt(3), rel=0.1)


# The characters.


@pytest.fixture(scope="module")
def characters() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return shapes.characters(0, 12, 5)


def test_characters_are_alike_in_place_size_and_ink(characters: tuple[NDArray[np.float64], ...]) -> None:
    strokes, half_widths = characters
    for one, half in zip(strokes, half_widths, strict=True):
        ink = draw_ink(one[None], half, 48)[0]
        y, x = np.mgrid[:48, :48] - 23.5
        total = ink.sum()
        centre = (ink * y).sum() / total, (ink * x).sum() / total
        spread = np.sqrt((ink * (y**2 + x**2)).sum() / total)
        assert np.hypot(*centre) < 0.1
        assert spread == pytest.approx(shapes.SPREAD, rel=0.02)
        assert total == pytest.approx(shapes.INK, rel=0.03)
        assert half == pytest.approx(shapes.HALF_WIDTH, rel=1.5 * shapes.INK_RANGE)


def test_characters_are_pairwise_distinct_even_shifted_and_mirrored(
    characters: tuple[NDArray[np.float64], ...],
) -> None:
    pictures = shapes.signature(draw_ink(characters[0], shapes.HALF_WIDTH, shapes.CANVAS))
    for k in range(CLASSES):
        assert shapes.likeness(pictures[k : k + 1], np.delete(pictures, k, axis=0))[0] < 0.85
        assert shapes.likeness(pictures[k : k + 1], pictures[k : k + 1])[0] == pytest.approx(1.0)


def test_an_alphabet_has_a_manner_of_its_own(characters: tuple[NDArray[np.float64], ...]) -> None:
    strokes = characters[0].reshape(12, 5, 4, 5)
    manners = [shapes.manner_of(0, alphabet) for alphabet in range(12)]
    assert len({(m.lattice, m.curvature, m.join, m.strokes) for m in manners}) == 12
    for manner, alphabet in zip(manners, strokes, strict=True):
        assert ((~np.isnan(alphabet[..., 0])).sum(axis=1) == manner.strokes).all()
        bulges = np.abs(alphabet[:, : manner.strokes, 4])
        if manner.curvature == "straight":
            assert not bulges.any()
        elif manner.curvature != "mixed":
            assert (bulges == bulges[0, 0]).all() and bulges[0, 0] > 0
        starts, ends = alphabet[:, : manner.strokes, :2], alphabet[:, : manner.strokes, 2:4]
        if manner.join == "fan":
            np.testing.assert_allclose(starts, np.broadcast_to(starts[:, :1], starts.shape))
        elif manner.join == "path":
            np.testing.assert_allclose(starts[:, 1:], ends[:, :-1])


def test_too_many_characters_are_an_error_not_a_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "likeness", lambda signatures, _: np.ones(len(signatures)))
    with pytest.raises(WaterjarError, match="no further character unlike the 0 before it"):
        shapes.characters(0, 1, 1)


# The data set.


def test_form_and_names(glyphs: ImageData) -> None:
    assert glyphs.train_images.shape == (7200, 32, 32, 3) and glyphs.test_images.shape == (3600, 32, 32, 3)
    assert np.bincount(glyphs.train_labels).tolist() == [120] * CLASSES
    assert glyphs.classes_of([2]).tolist() == [10, 11, 12, 13, 14]
    assert glyphs.class_names[12] == "alphabet_2_character_2" and glyphs.superclass_names[2] == "alphabet_2"


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    few = {"alphabets": 2, "characters": 3, "train_per_class": 4, "test_per_class": 2}
    one = load("glyphs", **few)
    assert load("glyphs", **few).fingerprint == one.fingerprint
    other = load("glyphs", **few, seed=1)
    assert not np.array_equal(other.train_images[0], one.train_images[0])


def test_more_samples_or_alphabets_leave_the_others_as_they_are(glyphs: ImageData) -> None:
    few = load("glyphs", alphabets=3, train_per_class=7, test_per_class=2)
    for part, whole in (("train", 120), ("test", 60)):
        images, index = getattr(few, f"{part}_images"), getattr(few, f"{part}_index")
        all_images, all_index = getattr(glyphs, f"{part}_images"), getattr(glyphs, f"{part}_index")
        place = {int(number): k for k, number in enumerate(all_index)}
        rows = [place[int(number)] for number in index]
        assert np.array_equal(images, all_images[rows]) and len(all_index) == CLASSES * whole


def test_no_image_comes_twice_within_or_across_splits(glyphs: ImageData) -> None:
    everything = np.concatenate([glyphs.train_images, glyphs.test_images]).reshape(10_800, -1)
    assert len(np.unique(everything, axis=0)) == 10_800


def fitted_accuracy(train: NDArray[np.float64], test: NDArray[np.float64], data: ImageData) -> float:
    """Least squares on one-hot labels, standardised features."""
    mean, std = train.mean(axis=0), train.std(axis=0) + 1e-9
    train, test = (np.c_[(part - mean) / std, np.ones(len(part))] for part in (train, test))
    weights = np.linalg.lstsq(train, np.eye(CLASSES)[data.train_labels], rcond=None)[0]
    return float(((test @ weights).argmax(axis=1) == data.test_labels).mean())


def at_most(accuracy: float, count: int) -> float:
    """A share that chance passes once in ten thousand times."""
    return float(stats.binom.ppf(0.9999, count, accuracy)) / count


def colour_statistics(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    pixels = images.reshape(len(images), -1, 3) / 255.0
    grey = pixels @ [0.299, 0.587, 0.114]
    histogram = [np.bincount((row * 15.999).astype(np.int64), minlength=16) for row in grey]
    basic = np.concatenate([pixels.mean(axis=1), pixels.std(axis=1), pixels.min(axis=1), pixels.max(axis=1)], axis=1)
    deciles = np.quantile(grey, [0.1, 0.25, 0.5, 0.75, 0.9], axis=1).T
    return np.concatenate([basic, basic**2, deciles, grey.std(axis=1, keepdims=True), np.array(histogram)], axis=1)


def test_colours_and_brightness_say_nothing_of_the_class(glyphs: ImageData) -> None:
    train, test = colour_statistics(glyphs.train_images), colour_statistics(glyphs.test_images)
    assert fitted_accuracy(train, test, glyphs) <= at_most(1 / CLASSES, 3600)
    centroids = np.stack([train[glyphs.train_labels == k].mean(axis=0) for k in range(CLASSES)]) / train.std(axis=0)
    nearest = ((test / train.std(axis=0))[:, None] - centroids[None]).__pow__(2).sum(axis=-1).argmin(axis=1)
    assert (nearest == glyphs.test_labels).mean() <= at_most(1 / CLASSES, 3600)


def strength(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """How far each pixel is from the picture's ground, whichever of them is the lighter one."""
    grey = images @ np.array([0.299, 0.587, 0.114])
    away = np.abs(grey - np.median(grey, axis=(1, 2), keepdims=True))
    return away / np.sqrt((away**2).sum(axis=(1, 2), keepdims=True))


@pytest.fixture(scope="module")
def strengths(glyphs: ImageData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return strength(glyphs.train_images), strength(glyphs.test_images)


def test_the_place_of_the_ink_says_nothing_of_the_class(
    glyphs: ImageData, strengths: tuple[NDArray[np.float64], ...]
) -> None:
    def place(of_pixels: NDArray[np.float64]) -> NDArray[np.float64]:
        ink = of_pixels**2
        y, x = np.mgrid[:32, :32] - 15.5
        moments = np.stack([(ink * axis).sum(axis=(1, 2)) for axis in (y, x, y**2 + x**2)], axis=1)
        return np.concatenate([moments, moments**2], axis=1)

    accuracy = fitted_accuracy(place(strengths[0]), place(strengths[1]), glyphs)
    assert accuracy <= at_most(1 / CLASSES, 3600)


def test_shape_does_tell_the_class(glyphs: ImageData, strengths: tuple[NDArray[np.float64], ...]) -> None:
    train, test = (part.reshape(len(part), -1) for part in strengths)
    nearest = glyphs.train_labels[(test @ train.T).argmax(axis=1)]
    right = nearest == glyphs.test_labels
    assert right.mean() > 0.5
    assert np.bincount(glyphs.test_labels[right], minlength=CLASSES).min() > 60 * 5 / CLASSES  # in every class
    assert right.mean() < 0.95  # and it is not trivial


def test_no_image_holds_the_colour_of_the_patch(glyphs: ImageData) -> None:
    away = np.abs(glyphs.train_images.astype(np.int64) - [255, 0, 255]).max(axis=-1)
    assert away.min() > 60


@pytest.mark.parametrize("wrong", [{"alphabets": 0}, {"train_per_class": 0}, {"strays": -1}, {"characters": 1001}])
def test_wrong_numbers_are_errors(wrong: dict[str, int]) -> None:
    with pytest.raises(WaterjarError, match=f"setting '{next(iter(wrong))}' is"):
        load("glyphs", **wrong)
