"""What holds for every shortcut: found by name, chosen samples, control regions, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from waterjar.errors import WaterjarError
from waterjar.lab import shortcuts
from waterjar.lab.shortcuts import build, inject_where, mask_random_region, random_region, selected

pytestmark = pytest.mark.torch

PATCH = build("patch", (32, 32))
INDEX = np.arange(20_000)


def test_kinds_are_found_by_name() -> None:
    assert "patch" in shortcuts.names()
    assert not any(name.startswith("_") for name in shortcuts.names())
    with pytest.raises(WaterjarError, match=r"shortcut 'pach' is unknown: did you mean 'patch'\?"):
        build("pach", (32, 32))
    with pytest.raises(WaterjarError, match="setting 'sise' is unknown: did you mean 'size'"):
        build("patch", (32, 32), sise=3)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_adds_samples_to_those_of_a_lower_one(one: float, other: float) -> None:
    low, high = sorted((one, other))
    few, many = (selected(PATCH, INDEX[:500], "train", rate) for rate in (low, high))
    assert not (few & ~many).any()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_share_is_the_rate(rate: float) -> None:
    count = int(selected(PATCH, INDEX, "train", rate).sum())
    assert stats.binomtest(count, len(INDEX), rate).pvalue > 1e-3


def test_all_at_one_and_none_at_zero() -> None:
    assert selected(PATCH, INDEX, "train", 1.0).all()
    assert not selected(PATCH, INDEX, "train", 0.0).any()


def test_the_choice_hangs_on_sample_split_and_seed_alone() -> None:
    train = selected(PATCH, INDEX, "train", 0.5)
    order = np.random.default_rng(0).permutation(len(INDEX))
    assert np.array_equal(selected(PATCH, INDEX[order], "train", 0.5), train[order])
    other_seed = build("patch", (32, 32), seed_offset=43)
    for other in (selected(PATCH, INDEX, "test", 0.5), selected(other_seed, INDEX, "train", 0.5)):
        assert abs((other == train).mean() - 0.5) < 4 * 0.5 / math.sqrt(len(INDEX))


def test_the_choice_says_nothing_of_the_place() -> None:
    carries = selected(PATCH, INDEX, "train", 0.5)
    tops = PATCH.region(INDEX, "train")[:, 0]
    assert stats.ks_2samp(tops[carries], tops[~carries]).pvalue > 1e-3


@pytest.mark.parametrize("rate", [1.3, -0.1, float("nan")])
def test_a_rate_that_is_no_share_is_an_error(rate: float) -> None:
    with pytest.raises(WaterjarError, match="the injection rate is"):
        selected(PATCH, INDEX, "train", rate)


@given(st.integers(1, 9), st.integers(8, 20), st.integers(8, 20), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_a_control_region_is_inside_of_equal_size_and_never_touches_the_patch(
    size: int, height: int, width: int, seed: int
) -> None:
    shortcut = build("patch", (height, width), size=min(size, height // 3, width), seed_offset=seed)
    own, other = shortcut.region(INDEX[:50], "test"), random_region(shortcut, INDEX[:50], "test")
    assert np.array_equal(other[:, 2:] - other[:, :2], own[:, 2:] - own[:, :2])
    assert (other[:, :2] >= 0).all() and (other[:, 2:] <= (height, width)).all()
    apart = (other[:, :2] >= own[:, 2:]) | (other[:, 2:] <= own[:, :2])
    assert apart.any(axis=1).all()


def test_control_regions_are_uniform_over_the_free_places() -> None:
    corner = build("patch", (6, 6), size=2, location="top_left")
    boxes = random_region(corner, INDEX, "test")
    places = boxes[:, 0] * 5 + boxes[:, 1]
    free = [top * 5 + left for top in range(5) for left in range(5) if top >= 2 or left >= 2]
    counts = np.bincount(places, minlength=25)
    assert counts.sum() == counts[free].sum()
    assert stats.chisquare(counts[free]).pvalue > 1e-3


def test_no_room_for_a_control_region_is_an_error() -> None:
    with pytest.raises(WaterjarError, match="no room beside a 6x6 region"):
        random_region(build("patch", (8, 8), size=6), INDEX[:3], "test")


def test_control_mask_fills_an_equal_area_and_leaves_the_patch() -> None:
    images = torch.rand(50, 3, 32, 32, generator=torch.Generator().manual_seed(0)) + 0.01
    patched = PATCH.inject(images, INDEX[:50], "test")
    masked = mask_random_region(PATCH, patched, INDEX[:50], "test")
    assert ((masked == 0).all(dim=1).sum(dim=(1, 2)) == 16).all()
    for image, (top, left, bottom, right) in zip(masked, PATCH.region(INDEX[:50], "test"), strict=True):
        assert (image[:, top:bottom, left:right] == torch.tensor([1.0, 0.0, 1.0])[:, None, None]).all()


def test_inject_where_touches_the_chosen_images_only() -> None:
    images = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    before = images.clone()
    carries = np.array([True, False, False, True, False, True, True, False])
    result = inject_where(PATCH, images, INDEX[:8], "train", carries)
    everywhere = PATCH.inject(images, INDEX[:8], "train")
    which = torch.from_numpy(carries)
    assert torch.equal(result[which], everywhere[which])
    assert torch.equal(result[~which], images[~which])
    assert torch.equal(images, before)
    assert torch.equal(inject_where(PATCH, images, INDEX[:8], "train", np.zeros(8, dtype=bool)), images)
    with pytest.raises(WaterjarError, match="8 images, but a choice of shape"):
        inject_where(PATCH, images, INDEX[:8], "train", carries[:4])


def test_a_misspelt_split_is_an_error_not_another_place() -> None:
    with pytest.raises(WaterjarError, match=r"split 'tset' is unknown: did you mean 'test'\?"):
        PATCH.region(INDEX[:3], "tset")  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="split 'val' is unknown"):
        selected(PATCH, INDEX[:3], "val", 0.5)  # type: ignore[arg-type]
