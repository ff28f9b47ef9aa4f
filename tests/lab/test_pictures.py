"""What a network saw, as PNG files beside the runs of a study."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from tiny_lab import tiny  # noqa: E402
from waterjar.lab.data import ImageData  # noqa: E402
from waterjar.lab.pictures import as_png, show_images  # noqa: E402
from waterjar.lab.tasks import arrange  # noqa: E402


def test_a_png_holds_the_pixels_enlarged_by_a_whole_number() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 24, 3), dtype=np.uint8)
    found = np.asarray(Image.open(io.BytesIO(as_png(pixels))))
    assert found.shape == (64, 96, 3)
    np.testing.assert_array_equal(found[::4, ::4], pixels)


def test_images_are_shown_as_they_are_with_the_shortcut_and_masked(glyphs: ImageData, tmp_path: Path) -> None:
    config = tiny()
    show_images(arrange(glyphs, config), tmp_path / "pictures", config.shortcut.mask)
    files = sorted((tmp_path / "pictures").iterdir())
    assert [file.name[:4] for file in files] == ["1 T1", "2 T2", "3 T2", "4 T2"]
    clean, patched, masked = (np.asarray(Image.open(file)).astype(int) for file in files[1:])
    changed, hidden = (abs(one - clean).sum(-1) > 0 for one in (patched, masked))
    assert 0 < changed.mean() < 0.5 and 0 < hidden.mean() < 0.5
    assert (masked[hidden] == 0).all() and not (changed & ~hidden & (clean.sum(-1) > 0)).any()
    before = files[0].stat().st_mtime_ns
    show_images(arrange(glyphs, config), tmp_path / "pictures", config.shortcut.mask)
    assert files[0].stat().st_mtime_ns == before
