"""Omniglot from its .npz file: which drawings are for testing, names, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from waterjar import WaterjarError
from waterjar.lab.data import load

pytestmark = pytest.mark.torch
REAL = Path(__file__).resolve().parents[3] / "../shared/data/omniglot_28.npz"


def written(path: Path, **changes: Any) -> Path:
    char = np.array([0, 1, 0, 1, 2, 2, 0, 1, 2])
    arrays = {
        "x": np.arange(9 * 4, dtype=np.uint8).reshape(9, 2, 2), "char": char, "alphabet": np.array([0, 0, 1])[char],
        "char_names": np.array(["a", "b", "a"]), "alphabet_names": np.array(["Greek", "Latin"]),
    }  # fmt: skip
    arrays |= changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


def test_the_last_drawings_are_for_testing(tmp_path: Path) -> None:
    data = load("omniglot", path=written(tmp_path / "o.npz"), test_per_class=1)
    assert data.test_index.tolist() == [6, 7, 8]
    assert data.train_index.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.train_labels.tolist() == [0, 1, 0, 1, 2, 2]
    assert data.train_images[3].tolist() == [[[12] * 3, [13] * 3], [[14] * 3, [15] * 3]]
    assert data.class_names == ("Greek/a", "Greek/b", "Latin/a")
    assert data.class_superclass.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"char": None}, "lacks an array.*char"),
        ({"x": np.zeros((9, 2, 2))}, "x is float64, but images are uint8"),
        ({"char": np.zeros(4, int)}, "of 9, 4, 9 drawings"),
        ({"alphabet": np.array([0, 0, 1, 0, 1, 1, 0, 0, 1])}, "all of them in one alphabet"),
        ({"char_names": np.array(["a", "b"])}, "char counts from 0 to 1"),
        ({"char_names": np.array(["a", "b", "c", "d"])}, "every character must have drawings"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        load("omniglot", path=written(tmp_path / "o.npz", **changes), test_per_class=1)


def test_something_is_left_to_train_with(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="has 3 drawings.*at most 2"):
        load("omniglot", path=written(tmp_path / "o.npz"), test_per_class=3)


@pytest.mark.skipif(not REAL.exists(), reason="no Omniglot beside the repository")
def test_the_real_one() -> None:
    data = load("omniglot", path=REAL)
    assert data.train_images.shape == (1623 * 15, 28, 28, 3)
    assert (np.bincount(data.test_labels) == 5).all()
    assert len(data.class_names) == 1623 and len(data.superclass_names) == 50
