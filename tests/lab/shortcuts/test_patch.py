"""The patch: where it is, what it changes, and the masks, against loops and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import spsolve

from waterjar.errors import WaterjarError
from waterjar.lab.augmentation import T1, apply, epoch_parameters
from waterjar.lab.shortcuts import build
from waterjar.lab.shortcuts.patch import Settings, shape_pixels

pytestmark = pytest.mark.torch

INDEX = np.arange(60) * 997
FILLS = ("black", "mean", "noise", "inpaint")


def pictures(count: int = 60, height: int = 32, width: int = 32) -> torch.Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(1)) * 0.9 + 0.05


def test_default_is_a_magenta_square_of_sixteen_pixels() -> None:
    images = pictures()
    patch = build("patch", (32, 32))
    result = patch.inject(images, INDEX, "train")
    for before, after, (top, left, bottom, right) in zip(images, result, patch.region(INDEX, "train"), strict=True):
        expected = before.clone()
        expected[0, top:bottom, left:right] = 1.0
        expected[1, top:bottom, left:right] = 0.0
        expected[2, top:bottom, left:right] = 1.0
        assert (bottom - top, right - left) == (4, 4)
        assert torch.equal(after, expected)


@pytest.mark.parametrize("shape", ["square", "disc", "cross"])
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("opacity", [1.0, 0.4])
def test_mistake_4_the_mask_covers_every_trace_of_the_patch(shape: str, fill: str, opacity: float) -> None:
    images = pictures()
    patch = build("patch", (32, 32), size=5, shape=shape, opacity=opacity)
    patched = patch.inject(images, INDEX, "test")
    assert (patched != images).flatten(1).any(dim=1).all()
    assert torch.equal(patch.mask(patched, INDEX, "test", fill), patch.mask(images, INDEX, "test", fill))
    outside = torch.ones_like(images, dtype=torch.bool)
    for k, (top, left, bottom, right) in enumerate(patch.region(INDEX, "test")):
        outside[k, :, top:bottom, left:right] = False
    assert torch.equal(patched[outside], images[outside])
    assert torch.equal(patch.mask(images, INDEX, "test", fill)[outside], images[outside])


def test_places_are_uniform_and_differ_between_splits_and_seeds() -> None:
    index = np.arange(29 * 29 * 40)
    patch = build("patch", (32, 32))
    boxes = patch.region(index, "train")
    counts = np.bincount(boxes[:, 0] * 29 + boxes[:, 1], minlength=29 * 29)
    assert len(counts) == 29 * 29 and stats.chisquare(counts).pvalue > 1e-3
    for other in (patch.region(index, "test"), build("patch", (32, 32), seed_offset=7).region(index, "train")):
        assert (other == boxes).all(axis=1).mean() < 0.01
    assert np.array_equal(patch.region(index, "train"), boxes)


@pytest.mark.parametrize(
    ("location", "corner"),
    [("top_left", (0, 0)), ("top_right", (0, 26)), ("bottom_left", (18, 0)), ("bottom_right", (18, 26))],
)
def test_fixed_corners(location: str, corner: tuple[int, int]) -> None:
    boxes = build("patch", (24, 32), size=6, location=location).region(INDEX, "train")
    assert (boxes == [*corner, corner[0] + 6, corner[1] + 6]).all()


@given(st.integers(4, 12), st.integers(4, 12), st.integers(1, 4), st.sampled_from(FILLS), st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_a_sample_has_the_same_bits_alone_or_in_a_batch(
    height: int, width: int, size: int, fill: str, seed: int
) -> None:
    patch = build("patch", (height, width), size=min(size, height - 1, width - 1), opacity=0.7, seed_offset=seed)
    images = pictures(9, height, width)
    before = images.clone()
    patched, masked = patch.inject(images, INDEX[:9], "train"), patch.mask(images, INDEX[:9], "train", fill)
    for k in (0, 4, 8):
        one = slice(k, k + 1)
        assert torch.equal(patch.inject(images[one], INDEX[one], "train"), patched[one])
        assert torch.equal(patch.mask(images[one], INDEX[one], "train", fill), masked[one])
    assert torch.equal(images, before)


def test_opacity_blends() -> None:
    images = pictures()
    result = build("patch", (32, 32), opacity=0.25, colour=(0, 255, 51), location="top_left").inject(
        images, INDEX, "train"
    )
    colour = np.array([0.0, 1.0, 0.2]).reshape(1, 3, 1, 1)
    expected = 0.75 * images[:, :, :4, :4].double().numpy() + 0.25 * colour
    np.testing.assert_allclose(result[:, :, :4, :4].numpy(), expected, atol=1e-6)


def test_shapes_are_drawn_as_they_should_be() -> None:
    def drawn(size: int, shape: str) -> list[str]:
        grid = np.full((size, size), ".")
        grid[tuple(shape_pixels(Settings(size=size, shape=shape)))] = "#"
        return ["".join(row) for row in grid]

    assert drawn(5, "disc") == [".###.", "#####", "#####", "#####", ".###."]
    assert drawn(4, "cross") == [".##.", "####", "####", ".##."]
    assert drawn(1, "disc") == drawn(1, "cross") == ["#"]
    assert drawn(3, "square") == ["###"] * 3


def test_mean_fill_is_the_mean_of_what_is_outside() -> None:
    images = pictures(7)
    patch = build("patch", (32, 32), size=9)
    masked = patch.mask(images, INDEX[:7], "test", "mean")
    for image, result, (top, left, bottom, right) in zip(
        images.double().numpy(), masked.numpy(), patch.region(INDEX[:7], "test"), strict=True
    ):
        inside = np.zeros((32, 32), dtype=bool)
        inside[top:bottom, left:right] = True
        for channel in range(3):
            np.testing.assert_allclose(result[channel][inside], image[channel][~inside].mean(), atol=1e-6)


def test_noise_fill_is_uniform_noise_of_its_own_for_every_sample() -> None:
    images = torch.zeros(200, 3, 32, 32)
    patch = build("patch", (32, 32), size=8, location="top_left")
    noise = patch.mask(images, np.arange(200), "test", "noise")[:, :, :8, :8]
    assert stats.kstest(noise.flatten().numpy(), "uniform").pvalue > 1e-3
    assert len(torch.unique(noise[:, 0, 0, 0])) > 190
    assert not torch.equal(noise[0, 0], noise[0, 1])
    other = patch.mask(images, np.arange(200), "train", "noise")[:, :, :8, :8]
    assert not torch.equal(noise, other)


def laplace_by_sparse_solver(plane: np.ndarray, box: np.ndarray) -> np.ndarray:
    """The same boundary problem over the whole picture: known pixels are equations of their own."""
    height, width = plane.shape
    matrix, right = lil_matrix((plane.size, plane.size)), plane.astype(np.float64).ravel().copy()
    for y in range(height):
        for x in range(width):
            here = y * width + x
            if not (box[0] <= y < box[2] and box[1] <= x < box[3]):
                matrix[here, here] = 1.0
                continue
            around = [(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)]
            around = [(v, u) for v, u in around if 0 <= v < height and 0 <= u < width]
            matrix[here, here] = len(around)
            right[here] = 0.0
            for v, u in around:
                matrix[here, v * width + u] = -1.0
    return spsolve(matrix.tocsr(), right).reshape(height, width)


@pytest.mark.parametrize("location", ["random", "top_left", "bottom_right", "top_right"])
def test_inpaint_solves_the_laplace_equation(location: str) -> None:
    images = pictures(4, 10, 12)
    patch = build("patch", (10, 12), size=4, location=location)
    masked = patch.mask(images, INDEX[:4], "test", "inpaint")
    for image, result, box in zip(images.numpy(), masked.numpy(), patch.region(INDEX[:4], "test"), strict=True):
        for channel in range(3):
            np.testing.assert_allclose(result[channel], laplace_by_sparse_solver(image[channel], box), atol=1e-6)


def test_inpaint_continues_a_ramp_exactly_and_stays_in_range() -> None:
    ramp = torch.linspace(0, 1, 32).expand(1, 3, 32, 32).contiguous()
    patch = build("patch", (32, 32), size=6)
    inner = next(i for i in range(999) if 0 < patch.region(np.array([i]), "test")[0, 1] < 26)
    result = patch.mask(ramp, np.array([inner]), "test", "inpaint")
    assert torch.allclose(result, ramp, atol=1e-6)
    white = torch.ones(20, 3, 32, 32)
    assert patch.mask(white, INDEX[:20], "test", "inpaint").max() <= 1.0


def test_drawn_after_augmentation_the_patch_is_always_whole() -> None:
    raw = np.random.default_rng(0).integers(0, 200, (60, 32, 32, 3), dtype=np.uint8)
    images = apply(raw, epoch_parameters(T1, 0, "t2", 0, INDEX, image_size=(32, 32)))
    result = build("patch", (32, 32)).inject(images, INDEX, "train")
    magenta = (result == torch.tensor([1.0, 0.0, 1.0])[:, None, None]).all(dim=1)
    assert (magenta.sum(dim=(1, 2)) == 16).all()


@pytest.mark.parametrize("size", [(3, 32), (32, 3)])
def test_an_image_smaller_than_the_patch_is_an_error(size: tuple[int, int]) -> None:
    with pytest.raises(WaterjarError, match=r"a patch of 4x4 does not fit into images of .* up to 3"):
        build("patch", size)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"size": 0}, "setting 'size' is 0"),
        ({"colour": (256, 0, 0)}, "setting 'colour.0.' is 256"),
        ({"opacity": 0.0}, "setting 'opacity' is 0.0"),
        ({"location": "middle"}, "location: name 'middle' is unknown"),
        ({"shape": "star"}, "shape: name 'star' is unknown"),
    ],
)
def test_wrong_settings_are_errors(wrong: dict[str, object], match: str) -> None:
    with pytest.raises(WaterjarError, match=match):
        build("patch", (32, 32), **wrong)


def test_wrong_batches_are_errors() -> None:
    patch = build("patch", (32, 32))
    for images, index in (
        (torch.zeros(2, 3, 16, 16), INDEX[:2]),
        (torch.zeros(2, 1, 32, 32), INDEX[:2]),
        (torch.zeros(2, 3, 32, 32, dtype=torch.uint8), INDEX[:2]),
        (torch.zeros(3, 32, 32), INDEX[:3]),
        (torch.zeros(2, 3, 32, 32), INDEX[:3]),
    ):
        with pytest.raises(WaterjarError, match=r"the shortcut takes float images|2 images, but 3"):
            patch.inject(images, index, "train")
        with pytest.raises(WaterjarError, match=r"the shortcut takes float images|2 images, but 3"):
            patch.mask(images, index, "train")
    with pytest.raises(WaterjarError, match=r"mask fill 'blak' is unknown: did you mean 'black'\?"):
        patch.mask(pictures(2), INDEX[:2], "test", "blak")  # type: ignore[arg-type]


@pytest.mark.parametrize("fill", ["mean", "inpaint"])
def test_a_patch_over_the_whole_image_leaves_nothing_to_fill_from(fill: str) -> None:
    with pytest.raises(WaterjarError, match="nothing of the image is left"):
        build("patch", (4, 4)).mask(torch.zeros(1, 3, 4, 4), INDEX[:1], "test", fill)  # type: ignore[arg-type]


def test_an_empty_batch_stays_empty() -> None:
    patch = build("patch", (32, 32))
    empty = torch.empty(0, 3, 32, 32)
    assert patch.inject(empty, INDEX[:0], "train").shape == empty.shape
    assert patch.mask(empty, INDEX[:0], "train", "inpaint").shape == empty.shape


def test_other_memory_formats_and_dtypes_give_the_same_picture() -> None:
    images, patch = pictures(), build("patch", (32, 32))
    last = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(patch.inject(last, INDEX, "train"), patch.inject(images, INDEX, "train"))
    assert patch.inject(images.double(), INDEX, "train").dtype == torch.float64
