"""Images of one's own, from an .npz file."""

from __future__ import annotations

import dataclasses
import zipfile
from pathlib import Path

import numpy as np
import pytest

from waterjar.errors import WaterjarError
from waterjar.lab.data import load, to_cache

IMAGES = np.random.default_rng(0).integers(0, 256, (8, 6, 6, 3), dtype=np.uint8)


def write(path: Path, **changes: np.ndarray | None) -> Path:
    arrays: dict[str, np.ndarray | None] = {
        "train_x": IMAGES[:4],
        "train_fine": np.array([0, 1, 2, 3], dtype=np.uint8),
        "test_x": IMAGES[4:],
        "test_fine": np.array([3, 2, 1, 0]),
        **changes,
    }
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_the_least_there_can_be(tmp_path: Path) -> None:
    data = load("npz", path=write(tmp_path / "a.npz"))
    assert np.array_equal(data.train_images, IMAGES[:4])
    assert data.train_labels.tolist() == [0, 1, 2, 3] and data.train_labels.dtype == np.int64
    assert data.train_index.tolist() == data.test_index.tolist() == [0, 1, 2, 3]
    assert data.class_names == ("class_0", "class_1", "class_2", "class_3")
    assert data.class_superclass.tolist() == [0, 1, 2, 3]
    assert data.superclass_names == ("superclass_0", "superclass_1", "superclass_2", "superclass_3")


def test_everything_there_can_be(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.npz",
        train_coarse=np.array([0, 0, 1, 1]),
        test_coarse=np.array([1, 1, 0, 0]),
        train_index=np.array([7, 5, 3, 1]),
        test_index=np.array([2, 4, 6, 8]),
        fine_names=np.array(["p", "q", "r", "s"]),
        coarse_names=np.array(["x", "y"]),
        something_else=np.zeros(3),
    )
    data = load("npz", path=path, name="mine")
    assert data.name == "mine" and data.class_names == ("p", "q", "r", "s")
    assert data.superclass_names == ("x", "y") and data.class_superclass.tolist() == [0, 0, 1, 1]
    assert data.train_index.tolist() == [7, 5, 3, 1] and data.test_index.tolist() == [2, 4, 6, 8]


def test_a_part_of_a_larger_set_keeps_its_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.npz",
        train_fine=np.array([0, 1, 4, 5]),
        test_fine=np.array([5, 4, 1, 0]),
        train_coarse=np.array([0, 0, 2, 2]),
        test_coarse=np.array([2, 2, 0, 0]),
        fine_names=np.array(list("abcdef")),
        coarse_names=np.array(["x", "y", "z"]),
    )
    data = load("npz", path=path)
    assert data.classes_of([2, 0]).tolist() == [4, 5, 0, 1]
    assert data.superclass_names == ("x", "y", "z", "without_images")
    assert data.class_superclass[[2, 3]].tolist() == [3, 3]


@pytest.mark.parametrize("grey", [IMAGES[..., 0], IMAGES[..., :1]])
def test_grey_images_get_three_equal_channels(tmp_path: Path, grey: np.ndarray) -> None:
    data = load("npz", path=write(tmp_path / "a.npz", train_x=grey[:4], test_x=grey[4:]))
    assert np.array_equal(data.test_images, np.repeat(IMAGES[4:, ..., :1], 3, axis=-1))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"train_x": None}, "lacks an array: needed 'train_x' is unknown"),
        ({"train_x": IMAGES[:4] / 255.0}, "train_x is float64, but images are uint8"),
        ({"train_fine": np.array([0.0, 1, 2, 3])}, "train_fine must be a list of whole numbers"),
        ({"train_fine": np.array([0, 1, 2])}, "4 train images, but labels"),
        ({"train_coarse": np.array([0, 1, 2, 3]), "test_coarse": np.array([3, 2, 1, 1])}, "class 0 has images in"),
        ({"train_coarse": np.array([0, 1]), "test_coarse": np.array([3, 2, 1, 0])}, "do not fit together"),
        (
            {"train_fine": np.array([0, 1, 2, 10**9])},
            "fine label 1000000000 is too large: expected numbers from 0 to 99999",
        ),
        (
            {"train_coarse": np.array([0, 1, 2, 2**62]), "test_coarse": np.array([2**62, 2, 1, 0])},
            "coarse label 4611686018427387904 is too large",
        ),
        ({"fine_names": np.array(["only"])}, "train labels run from 0 to 3, but there are 1"),
        ({"fine_names": np.array(["a", None], dtype=object)}, "cannot be read as an .npz file of plain arrays"),
    ],
)
def test_a_wrong_file_is_one_error(tmp_path: Path, changes: dict[str, np.ndarray], match: str) -> None:
    with pytest.raises(WaterjarError, match=match):
        load("npz", path=write(tmp_path / "a.npz", **changes))


def test_no_file_no_archive_or_half_of_one(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match=r"there is no file .*missing.npz: set `path`"):
        load("npz", path=tmp_path / "missing.npz")
    with pytest.raises(WaterjarError, match="setting 'path' is missing"):
        load("npz")
    whole = write(tmp_path / "a.npz").read_bytes()
    for name, contents in (("half", whole[: len(whole) // 2]), ("text", b"hello"), ("empty", b"")):
        path = tmp_path / f"{name}.npz"
        path.write_bytes(contents)
        with pytest.raises(WaterjarError, match="cannot be read as an .npz file"):
            load("npz", path=path)
    np.save(tmp_path / "single.npy", IMAGES)
    with pytest.raises(WaterjarError, match="holds a single array"):
        load("npz", path=tmp_path / "single.npy")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".hidden", "", "-x", "a" * 65, "a\n", "a\\b", "a b", "/x"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    """It becomes part of the name of a directory."""
    with pytest.raises(WaterjarError, match=r"'name' is .*: .*must be letters, digits and"):
        load("npz", path=write(tmp_path / "a.npz"), name=name)
    data = load("npz", path=tmp_path / "a.npz", name="größe-2.0_b")
    with pytest.raises(WaterjarError, match="the image set cannot be cached: name"):
        to_cache(dataclasses.replace(data, name=name), tmp_path / "study" / "data")
    assert not (tmp_path / "study").exists()
    assert to_cache(data, tmp_path / "study" / "data").parent == tmp_path / "study" / "data"


def test_archives_that_lie_are_one_error(tmp_path: Path) -> None:
    """What an archive can lie about is in tests/run/test_npz_file.py."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000,)}".ljust(118) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("train_x.npy", data)
    with pytest.raises(WaterjarError, match=r"x.npz cannot be read as an .npz file of plain arrays: train_x is \(1000"):
        load("npz", path=tmp_path / "x.npz")
