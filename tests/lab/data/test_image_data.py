"""The one form of every image set: checks, fingerprint, channel statistics, cache."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.data.in_a_worker import open_in_worker
from waterjar.errors import WaterjarError
from waterjar.lab.data import ImageData, channel_statistics, from_cache, image_data, load, names, to_cache

RNG_IMAGES = np.random.default_rng(0).integers(0, 256, (18, 5, 7, 3), dtype=np.uint8)

Split = tuple[NDArray[np.uint8], NDArray[np.integer], NDArray[np.integer]]


def small(**changes: object) -> ImageData:
    """Six classes in three superclasses; superclass 1 (classes 1 and 4) has no images."""
    present = np.array([0, 2, 3, 5])
    arguments: dict[str, object] = {
        "train": (RNG_IMAGES[:12], np.tile(present, 3), np.arange(100, 112)),
        "test": (RNG_IMAGES[12:16], present, np.arange(4)),
        "class_names": list("abcdef"),
        "superclass_names": ["x", "y", "z"],
        "class_superclass": np.array([0, 1, 2, 0, 1, 2]),
    }
    return image_data("small", **{**arguments, **changes})  # type: ignore[arg-type]


def test_the_data_sets_are_found_by_name() -> None:
    assert {"cifar100", "glyphs", "npz"} <= set(names())
    with pytest.raises(WaterjarError, match=r"data set 'glyph' is unknown: did you mean 'glyphs'\?"):
        load("glyph")
    with pytest.raises(WaterjarError, match=r"setting 'alphabet' is unknown: did you mean 'alphabets'\?"):
        load("glyphs", alphabet=3)


def test_classes_of_superclasses_in_the_order_asked_for() -> None:
    data = small()
    assert data.classes_of([2, 0]).tolist() == [2, 5, 0, 3]
    assert data.classes_of([]).tolist() == []
    assert data.present_classes.tolist() == [0, 2, 3, 5]
    assert data.image_size == (5, 7)


def test_a_superclass_without_images_or_unknown_is_an_error() -> None:
    with pytest.raises(WaterjarError, match=r"superclass 1 \(y\) has no images .* holds superclasses \[0, 2\]"):
        small().classes_of([0, 1])
    with pytest.raises(WaterjarError, match="superclass '3' is unknown"):
        small().classes_of([3])


def changed(values: NDArray[np.int64], place: int, value: int) -> NDArray[np.int64]:
    values = values.copy()
    values[place] = value
    return values


LABELS, IDS = np.tile([0, 2, 3, 5], 3), np.arange(12)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"train": (RNG_IMAGES[:12].astype(np.float32), LABELS, IDS)}, "must be uint8"),
        ({"train": (RNG_IMAGES[:12, :, :, :2], LABELS, IDS)}, "must be uint8"),
        ({"train": (RNG_IMAGES[:0], LABELS[:0], IDS[:0])}, "with n > 0"),
        ({"train": (RNG_IMAGES[:12], LABELS[:11], IDS)}, "12 train images, but labels"),
        ({"train": (RNG_IMAGES[:12], LABELS, IDS[:5])}, "12 train images, but labels"),
        ({"train": (RNG_IMAGES[:12], LABELS.astype(np.float64), IDS)}, "must be whole numbers"),
        ({"train": (RNG_IMAGES[:12], changed(LABELS, 0, 6), IDS)}, "train labels run from 0 to 6, but there are 6"),
        ({"train": (RNG_IMAGES[:12], changed(LABELS, 0, -1), IDS)}, "train labels run from -1"),
        ({"train": (RNG_IMAGES[:12], LABELS, changed(IDS, 0, 5))}, "ids repeat"),
        ({"test": (RNG_IMAGES[12:16, :4], np.array([0, 2, 3, 5]), np.arange(4))}, r"train images \(5, 7, 3\), test"),
        ({"test": (RNG_IMAGES[12:16], np.array([0, 2, 3, 3]), np.arange(4))}, r"class 5 \(f\) has no test images"),
        ({"test": (RNG_IMAGES[12:17], np.array([0, 2, 3, 5, 1]), np.arange(5))}, r"class 1 \(b\) has no train"),
        ({"class_superclass": np.array([0, 1, 2, 0, 0, 2])}, r"class 4 \(e\) of superclass x has no images"),
        ({"class_superclass": np.array([0, 1, 2])}, "6 classes, but superclasses for"),
        ({"class_superclass": np.array([0, 1, 2, 0, 1, 3])}, "superclass outside 0 to 2"),
    ],
)
def test_what_does_not_hang_together_is_one_error(changes: dict[str, object], match: str) -> None:
    with pytest.raises(WaterjarError, match=match):
        small(**changes)


def test_the_dataclass_itself_checks_layout_and_types() -> None:
    data = small()
    with pytest.raises(WaterjarError, match="C-contiguous"):
        replace(data, train_images=np.asfortranarray(data.train_images))
    with pytest.raises(WaterjarError, match="must be int64"):
        replace(data, train_labels=data.train_labels.astype(np.int32))


def test_fingerprint_hangs_on_contents_and_not_on_storage(tmp_path: Path) -> None:
    reference = small().fingerprint
    strided = np.repeat(RNG_IMAGES, 2, axis=0)[::2][:12]
    narrow = small(train=(strided, np.tile([0, 2, 3, 5], 3).astype(np.uint8), np.arange(100, 112, dtype=">i4")))
    assert narrow.fingerprint == reference
    assert from_cache(to_cache(small(), tmp_path)).fingerprint == reference
    brighter = RNG_IMAGES[:12].copy()
    brighter[3, 2, 1, 0] ^= 1
    others = [
        small(train=(brighter, np.tile([0, 2, 3, 5], 3), np.arange(100, 112))),
        small(train=(RNG_IMAGES[:12], np.tile([2, 0, 3, 5], 3), np.arange(100, 112))),
        small(train=(RNG_IMAGES[:12], np.tile([0, 2, 3, 5], 3), np.arange(101, 113))),
        small(class_names=["a", "b", "c", "d", "ef", ""]),
        small(superclass_names=["x", "y", "zz"]),
        small(class_superclass=np.array([2, 1, 0, 2, 1, 0])),
    ]
    assert len({reference, *(other.fingerprint for other in others)}) == len(others) + 1


def test_channel_statistics_are_those_of_numpy() -> None:
    mean, std = channel_statistics(RNG_IMAGES)
    scaled = RNG_IMAGES.reshape(-1, 3) / 255.0
    np.testing.assert_allclose(mean, scaled.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(std, scaled.std(axis=0), rtol=1e-12)
    rows = np.array([3, 3, 9])
    np.testing.assert_allclose(
        channel_statistics(RNG_IMAGES, rows)[0], (RNG_IMAGES[rows] / 255).mean(axis=(0, 1, 2)), rtol=1e-12
    )
    with pytest.raises(WaterjarError, match="at least one image"):
        channel_statistics(RNG_IMAGES, rows[:0])


def test_cache_gives_the_same_data_memory_mapped_and_read_only(tmp_path: Path) -> None:
    data = small()
    directory = to_cache(data, tmp_path / "deep" / "cache")
    opened = from_cache(directory)
    assert isinstance(opened.train_images, np.memmap) and not opened.train_images.flags.writeable
    for name in ("train_images", "test_images", "train_labels", "test_labels", "train_index", "test_index"):
        stored, original = getattr(opened, name), getattr(data, name)
        assert stored.dtype == original.dtype and np.array_equal(stored, original)
    assert np.array_equal(opened.class_superclass, data.class_superclass)
    assert (opened.name, opened.class_names, opened.superclass_names) == ("small", tuple("abcdef"), ("x", "y", "z"))


def test_cache_is_written_once_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    directory = to_cache(small(), tmp_path)
    stamp = (directory / "train_images.npy").stat().st_mtime_ns
    assert to_cache(small(), tmp_path) == directory
    assert (directory / "train_images.npy").stat().st_mtime_ns == stamp
    assert [path.name for path in tmp_path.iterdir()] == [directory.name]


def test_a_quicker_writer_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        to_cache(small(), tmp_path)  # another process finishes just before us
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    assert from_cache(to_cache(small(), tmp_path)).fingerprint == small().fingerprint
    assert len(list(tmp_path.iterdir())) == 1


def test_a_writer_that_dies_leaves_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WaterjarError, match="No space"):
        to_cache(small(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_cache_says_so(tmp_path: Path) -> None:
    directory = to_cache(small(), tmp_path)
    with (directory / "train_images.npy").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(WaterjarError, match=r"damaged \(train_images.npy no longer has the contents"):
        from_cache(directory)
    (directory / "train_images.npy").write_bytes(b"nonsense")
    with pytest.raises(WaterjarError, match="damaged"):
        from_cache(directory)
    (directory / "train_images.npy").unlink()
    with pytest.raises(WaterjarError, match="delete it, it will be made again"):
        from_cache(directory)
    (directory / "data.json").write_text("{")
    with pytest.raises(WaterjarError, match="damaged"):
        from_cache(directory)
    (directory / "data.json").write_text("[1]")
    with pytest.raises(WaterjarError, match=r"damaged \(data.json is not a mapping\)"):
        from_cache(directory)
    (directory / "data.json").write_text(json.dumps({"name": "small"}))
    with pytest.raises(WaterjarError, match="lacks class_names, fingerprint"):
        from_cache(directory)
    with pytest.raises(WaterjarError, match="holds no cached image set"):
        from_cache(tmp_path)


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("class_superclass.npy", b", 'shape'", b"[[[[[[[[["),
        ("train_images.npy", b"'|u1'", b"'tu1'"),
        ("test_index.npy", b"NUMPY\x01", b"NUMPY\x03"),
        ("train_labels.npy", b"'<i8'", b"'<M8'"),
        ("data.json", b'"name": "small"', b'"name": 0.5'),
        ("data.json", b'"fingerprint": "', b'"fingerprint": ["x"], "more": "'),
        ("data.json", b'"superclass_names": [', b'"superclass_names": [1, '),
        ("data.json", b'"superclass_names": [', b'"superclass_names": -1, "more": ['),
    ],
)
def test_a_forged_cache_is_one_error(tmp_path: Path, file: str, before: bytes, after: bytes) -> None:
    directory = to_cache(small(), tmp_path)
    good = (directory / file).read_bytes()
    assert before in good
    (directory / file).write_bytes(good.replace(before, after))
    with pytest.raises(WaterjarError, match=r"is damaged .*: delete it, it will be made again"):
        from_cache(directory)


def _flip(file: Path) -> None:
    about, data = file.stat(), bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def _other(file: Path) -> None:
    description = json.loads((file.parent / "data.json").read_text())
    (file.parent / "data.json").write_text(json.dumps({**description, "fingerprint": "0" * 64}))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_flip, "train_images.npy no longer has the contents that were stored"),
        (Path.unlink, "No such file"),
        (lambda file: file.write_bytes(b""), "damaged"),
        (_other, "other data than its name says"),
        (lambda file: (file.parent / "data.json").unlink(), "holds no cached image set"),
        (lambda file: (shutil.rmtree(file.parent), file.parent.write_text("x")), "damaged"),
    ],
)
def test_who_has_the_data_makes_a_damaged_copy_again_and_says_so(
    tmp_path: Path, harm: Callable[[Path], object], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    directory = to_cache(small(), tmp_path)
    good = {file.name: file.read_bytes() for file in directory.iterdir()}
    assert to_cache(small(), tmp_path) == directory and caplog.records == []
    harm(directory / "train_images.npy")
    assert to_cache(small(), tmp_path) == directory
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == good
    assert [file.name for file in tmp_path.iterdir()] == [directory.name]
    (told,) = [record.getMessage() for record in caplog.records]
    assert why in told and told.endswith(": it is made again") and "delete it" not in told


@pytest.mark.parametrize("name", ["train_images", "test_images", "test_labels", "train_index", "class_superclass"])
def test_a_worker_refuses_a_copy_in_which_a_bit_has_flipped_and_names_the_file(tmp_path: Path, name: str) -> None:
    """Size and time are as they were: nothing but the bytes tells."""
    directory = to_cache(small(), tmp_path)
    _flip(directory / f"{name}.npy")
    with pytest.raises(WaterjarError, match=rf"is damaged \({name}.npy no longer has the contents that were stored\)"):
        from_cache(directory)


def test_a_copy_of_an_earlier_version_has_no_checksums_of_its_files(tmp_path: Path) -> None:
    directory = to_cache(small(), tmp_path)
    description = json.loads((directory / "data.json").read_text())
    assert description.pop("sha256").keys() == {file.stem for file in directory.glob("*.npy")}
    (directory / "data.json").write_text(json.dumps(description))
    assert from_cache(directory).fingerprint == small().fingerprint
    _flip(directory / "test_images.npy")
    with pytest.raises(WaterjarError, match="its contents no longer have the fingerprint"):
        from_cache(directory)
    description["class_names"][0] = "z"
    (to_cache(small(), tmp_path / "new") / "data.json").write_text(json.dumps({**description, "sha256": {}}))
    with pytest.raises(WaterjarError, match="its contents no longer have the fingerprint"):
        from_cache(tmp_path / "new" / directory.name)


def test_a_name_that_has_changed_is_told_of_its_file(tmp_path: Path) -> None:
    directory = to_cache(small(), tmp_path)
    file = directory / "data.json"
    file.write_text(file.read_text().replace('"a"', '"c"', 1))
    with pytest.raises(WaterjarError, match=r"data.json no longer has the contents"):
        from_cache(directory)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux's memory map")
def test_workers_share_one_copy(disk_path: Path) -> None:
    data = load("glyphs", alphabets=1, characters=2, train_per_class=100, test_per_class=1)
    directory = to_cache(data, disk_path)
    os.sync()  # pages that are not on the disk yet count as the process's own, and tests do not wait for it
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(open_in_worker, [str(directory)] * 2)
    assert results == [(int(data.train_images.sum()), 0.0)] * 2


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("4096 requested and 0 written")])
def test_a_full_disk_is_an_error_with_the_bytes_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    data = small()
    size = sum(getattr(data, name).nbytes for name in (
        "train_images", "test_images", "train_labels", "test_labels", "train_index", "test_index", "class_superclass",
    ))  # fmt: skip
    monkeypatch.setattr("waterjar.lab.data._cache.npy.write_array", full)
    with pytest.raises(
        WaterjarError, match=rf"{size} bytes, to {tmp_path}/new/small-\w+: .*(space|requested)"
    ) as raised:
        to_cache(data, tmp_path / "new")
    assert "bytes are free on its disk: make room there" in str(raised.value)
    assert not list((tmp_path / "new").iterdir())


def test_a_cache_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WaterjarError, match="could not write the copy of the image set.*(exists|Not a directory)"):
        to_cache(small(), tmp_path / "file")
