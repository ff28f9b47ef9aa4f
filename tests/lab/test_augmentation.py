"""Augmentation against loops in numpy, against scipy's affine transform, and against its own promises."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from waterjar.errors import WaterjarError
from waterjar.lab.augmentation import (
    COLUMNS,
    CROP_FLIP,
    NONE,
    T1,
    T2,
    AugmentationParameters,
    AugmentationSettings,
    apply,
    epoch_parameters,
    normalise,
    to_float,
)

pytestmark = pytest.mark.torch

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
INDEX = np.arange(1000, 1040)
EVERYTHING = AugmentationSettings(
    rotation=20, translation=0.2, scale=(0.7, 1.3), brightness=0.4, contrast=0.4, saturation=0.4, hue=0.2
)


def drawn(chosen: AugmentationSettings, index: NDArray[np.int64] = INDEX, epoch: int = 0) -> AugmentationParameters:
    return epoch_parameters(chosen, 7, "t1", epoch, index, image_size=(32, 32))


def column(parameters: AugmentationParameters, name: str) -> NDArray[np.float64]:
    return parameters.table[:, COLUMNS.index(name)]


def with_columns(parameters: AugmentationParameters, **values: float) -> AugmentationParameters:
    table = parameters.table.copy()
    for name, value in values.items():
        table[:, COLUMNS.index(name.replace("_", " "))] = value
    return replace(parameters, table=table)


def crop_flip_by_loop(
    images: NDArray[np.uint8], parameters: AugmentationParameters, padding: int
) -> NDArray[np.float32]:
    out = []
    for image, row in zip(images, parameters.table, strict=True):
        top, left, flip = (int(row[COLUMNS.index(name)]) for name in ("crop top", "crop left", "flip"))
        padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
        cut = padded[top : top + image.shape[0], left : left + image.shape[1]]
        out.append((cut[:, ::-1] if flip else cut).transpose(2, 0, 1).astype(np.float32) / np.float32(255))
    return np.stack(out)


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12), st.integers(0, 6), st.booleans(), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_crop_and_flip_equal_a_loop_over_samples(
    count: int, height: int, width: int, padding: int, flip: bool, seed: int
) -> None:
    padding = min(padding, min(height, width) - 1)
    images = np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)
    chosen = AugmentationSettings(padding=padding, flip=flip)
    parameters = epoch_parameters(chosen, seed, 0, 0, np.arange(count), image_size=(height, width))
    expected = crop_flip_by_loop(images, parameters, padding)
    assert np.array_equal(apply(images, parameters).numpy(), expected)


def test_every_crop_and_both_flips_occur_equally_often() -> None:
    parameters = drawn(CROP_FLIP, np.arange(81_000))
    places = column(parameters, "crop top") * 9 + column(parameters, "crop left")
    counts = np.bincount(places.astype(np.int64), minlength=81)
    assert len(counts) == 81 and abs(counts - 1000).max() < 5 * math.sqrt(1000)
    assert abs(column(parameters, "flip").mean() - 0.5) < 4 * 0.5 / math.sqrt(81_000)


def affine_by_scipy(image: NDArray[np.uint8], row: NDArray[np.float64], padding: int) -> NDArray[np.float64]:
    top, left, flip, angle, down, right, scale = row[:7]
    cosine, sine = math.cos(angle), math.sin(angle)
    inverse = np.array([[cosine, sine], [-sine, cosine]]) / scale
    middle = (np.array(image.shape[:2]) - 1) / 2
    shift = np.array([top - padding - down, left - padding - right])
    offset = inverse @ (shift - middle) + middle
    planes = [
        ndimage.affine_transform(
            image[..., channel].astype(np.float64), inverse, offset, order=1, mode="grid-constant", cval=0.0
        )
        for channel in range(3)
    ]
    moved = np.stack(planes)
    return (moved[:, :, ::-1] if flip else moved) / 255.0


@pytest.mark.parametrize("chosen", [T1, T2, AugmentationSettings(rotation=180, translation=1.0, scale=(0.3, 3.0))])
def test_affine_equals_scipy(chosen: AugmentationSettings) -> None:
    still = chosen.model_copy(update={"brightness": 0.0, "contrast": 0.0, "saturation": 0.0})
    parameters = drawn(still)
    result = apply(IMAGES, parameters).numpy()
    for image, row, moved in zip(IMAGES, parameters.table, result, strict=True):
        np.testing.assert_allclose(moved, affine_by_scipy(image, row, still.padding), atol=2e-7)


def test_affine_with_nothing_to_do_is_crop_and_flip_exactly() -> None:
    parameters = with_columns(drawn(T1), rotation=0, shift_down=0, shift_right=0, scale=1)
    still = T1.model_copy(update={"brightness": 0.0, "contrast": 0.0, "saturation": 0.0})
    result = apply(IMAGES, replace(parameters, settings=still))
    assert np.array_equal(result.numpy(), crop_flip_by_loop(IMAGES, parameters, 4))


def test_rotation_is_anticlockwise_and_a_shift_goes_down_and_right() -> None:
    image = np.zeros((1, 5, 5, 3), dtype=np.uint8)
    image[0, 2, 4] = 255  # right of the middle
    chosen = AugmentationSettings(padding=0, flip=False, rotation=90, translation=0.5)
    base = epoch_parameters(chosen, 0, 0, 0, np.arange(1), image_size=(5, 5))
    turned = apply(image, with_columns(base, rotation=math.pi / 2, shift_down=0, shift_right=0))
    assert turned[0, 0].round(decimals=6).nonzero().tolist() == [[0, 2]]  # now above it
    moved = apply(image, with_columns(base, rotation=0, shift_down=1, shift_right=-2))
    assert moved[0, 0].nonzero().tolist() == [[3, 2]]


LUMA = np.array([0.299, 0.587, 0.114])


def jitter_by_numpy(image: NDArray[np.float64], row: NDArray[np.float64]) -> NDArray[np.float64]:
    brightness, contrast, saturation, hue = row[7:]
    image = np.clip(image * brightness, 0, 1)
    image = np.clip(contrast * image + (1 - contrast) * np.tensordot(LUMA, image, 1).mean(), 0, 1)
    image = np.clip(saturation * image + (1 - saturation) * np.tensordot(LUMA, image, 1)[None], 0, 1)
    to_yiq = np.array([LUMA, [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]])
    turn = np.array(
        [[1, 0, 0], [0, math.cos(hue), -math.sin(hue)], [0, math.sin(hue), math.cos(hue)]], dtype=np.float64
    )
    if hue:
        image = np.clip(np.tensordot(np.linalg.inv(to_yiq) @ turn @ to_yiq, image, 1), 0, 1)
    return image


@pytest.mark.parametrize(("hue", "tolerance"), [(0.0, 1e-6), (0.3, 4e-3)])
def test_jitter_equals_numpy(hue: float, tolerance: float) -> None:
    # The tolerance with hue is the three decimals that YIQ's published inverse is given with.
    chosen = AugmentationSettings(padding=0, flip=False, brightness=0.6, contrast=0.6, saturation=0.6, hue=hue)
    parameters = drawn(chosen)
    result = apply(IMAGES, parameters).numpy()
    for image, row, coloured in zip(IMAGES, parameters.table, result, strict=True):
        np.testing.assert_allclose(coloured, jitter_by_numpy(image.transpose(2, 0, 1) / 255.0, row), atol=tolerance)


def test_parameters_stay_in_their_ranges_and_fill_them() -> None:
    parameters = drawn(T1, np.arange(20_000))
    for name, low, high in (
        ("rotation", -math.radians(15), math.radians(15)),
        ("shift down", -3.2, 3.2),
        ("shift right", -3.2, 3.2),
        ("scale", 0.8, 1.2),
        ("brightness", 0.8, 1.2),
        ("contrast", 0.8, 1.2),
        ("saturation", 0.8, 1.2),
    ):
        values = column(parameters, name)
        assert values.min() >= low and values.max() <= high
        assert values.max() - values.min() > 0.99 * (high - low), name
    assert not column(parameters, "hue").any()
    correlation = np.corrcoef(parameters.table[:, :10].T) - np.eye(10)
    assert abs(correlation).max() < 5 / math.sqrt(20_000)


def test_the_tables_of_the_specification() -> None:
    assert (T1.padding, T1.flip, T1.rotation, T1.translation, T1.scale) == (4, True, 15, 0.1, (0.8, 1.2))
    assert (T1.brightness, T1.contrast, T1.saturation, T1.hue) == (0.2, 0.2, 0.2, 0.0)
    assert (T2.padding, T2.flip, T2.rotation, T2.translation, T2.scale) == (4, True, 10, 0.05, (0.95, 1.05))
    assert (T2.brightness, T2.contrast, T2.saturation, T2.hue) == (0.15, 0.15, 0.15, 0.0)
    assert (CROP_FLIP.padding, CROP_FLIP.flip, CROP_FLIP.moves, CROP_FLIP.colours) == (4, True, False, False)


@pytest.mark.parametrize("chosen", [CROP_FLIP, T1, EVERYTHING])
def test_a_sample_has_the_same_bits_alone_in_a_batch_and_in_any_order(chosen: AugmentationSettings) -> None:
    together = apply(IMAGES, drawn(chosen))
    order = np.random.default_rng(1).permutation(len(INDEX))
    shuffled = apply(IMAGES, drawn(chosen, INDEX[order]), rows=order)
    assert torch.equal(shuffled, together[torch.from_numpy(order)])
    for k in (0, 17, 39):
        alone = apply(IMAGES[k : k + 1], drawn(chosen, INDEX[k : k + 1]))
        assert torch.equal(alone[0], together[k])
    sliced = apply(IMAGES, drawn(chosen)[5:12], rows=np.arange(5, 12))
    assert torch.equal(sliced, together[5:12])


def test_mistake_3_every_epoch_task_and_seed_augments_differently() -> None:
    reference = drawn(CROP_FLIP)
    others = [
        drawn(CROP_FLIP, epoch=1),
        epoch_parameters(CROP_FLIP, 8, "t1", 0, INDEX, image_size=(32, 32)),
        epoch_parameters(CROP_FLIP, 7, "t2", 0, INDEX, image_size=(32, 32)),
    ]
    for other in others:
        same = (other.table == reference.table)[:, :3].all(axis=1).mean()
        assert same < 0.1  # by chance 1 / 162
    assert np.array_equal(drawn(CROP_FLIP).table, reference.table)


def test_images_stay_in_the_unit_interval_and_the_input_is_not_touched() -> None:
    before = IMAGES.copy()
    result = apply(IMAGES, drawn(EVERYTHING))
    assert result.dtype == torch.float32 and result.shape == (40, 3, 32, 32)
    assert result.min() >= 0 and result.max() <= 1
    assert np.array_equal(IMAGES, before)


def test_to_float_and_no_augmentation_are_the_image_and_nothing_else() -> None:
    expected = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).float().div(255)
    assert torch.equal(to_float(IMAGES), expected)
    assert torch.equal(to_float(IMAGES, np.array([3, 3, 0])), expected[[3, 3, 0]])
    assert torch.equal(apply(IMAGES, drawn(NONE)), expected)
    assert to_float(IMAGES, np.empty(0, dtype=np.int64)).shape == (0, 3, 32, 32)


def test_read_only_images_are_fine() -> None:
    frozen = IMAGES.copy()
    frozen.flags.writeable = False
    assert torch.equal(apply(frozen, drawn(T1)), apply(IMAGES, drawn(T1)))


def test_normalise_is_the_formula_and_leaves_its_input() -> None:
    images = to_float(IMAGES)
    before = images.clone()
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
    expected = (before.double().numpy() - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(normalise(images, mean, std).numpy(), expected, atol=1e-6)
    assert torch.equal(images, before)
    assert torch.equal(normalise(images, torch.tensor(mean), torch.tensor(std)), normalise(images, mean, std))
    flat = normalise(torch.full((1, 3, 2, 2), 0.5), (0.5, 0.5, 0.5), std)
    assert not flat.any()


@pytest.mark.parametrize(
    ("images", "rows", "match"),
    [
        (IMAGES.astype(np.float32), None, "uint8"),
        (IMAGES[..., :1], None, "uint8 images"),
        (IMAGES.transpose(0, 2, 1, 3), None, "C-contiguous"),
        (IMAGES, np.arange(1, 41), "rows must be"),
        (IMAGES, -np.arange(40), "rows must be"),
        (IMAGES, np.arange(39), "parameters for 40 images"),
        (IMAGES[:, :16].copy(), None, r"but 40 images of \(16, 32\)"),
    ],
)
def test_wrong_input_is_an_error(images: NDArray[np.uint8], rows: NDArray[np.int64] | None, match: str) -> None:
    with pytest.raises(WaterjarError, match=match):
        apply(images, drawn(CROP_FLIP), rows=rows)


def test_wrong_settings_are_errors() -> None:
    with pytest.raises(WaterjarError, match="padding 4 must be below"):
        epoch_parameters(CROP_FLIP, 0, 0, 0, INDEX, image_size=(4, 32))
    for wrong in ({"scale": (1.2, 0.8)}, {"rotation": -1}, {"brightness": 1.5}, {"rotate": 5}):
        with pytest.raises(ValueError, match="AugmentationSettings"):
            AugmentationSettings(**wrong)
