"""One shape for every labelled image set: arrays, names, stable sample ids and a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images with fine labels, in superclasses. Make one with `image_data`, which works out the fingerprint.

    A class may be without images (a part of a data set keeps its numbering), but never in one split alone.
    """

    name: str
    train_images: NDArray[np.uint8]
    """(train, height, width, 3), C-contiguous; in memory or memory-mapped."""
    test_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    """(train,) fine class of each image."""
    test_labels: NDArray[np.int64]
    train_index: NDArray[np.int64]
    """(train,) the sample's id in the ORIGINAL data set: it survives taking a part. It counts per split."""
    test_index: NDArray[np.int64]
    class_names: tuple[str, ...]
    superclass_names: tuple[str, ...]
    class_superclass: NDArray[np.int64]
    """(class,) superclass of each fine class."""
    fingerprint: str
    """sha256 over arrays and names, the same in memory, memory-mapped or from another kind of file."""

    def __post_init__(self) -> None:
        """Refuse what does not hang together."""
        _check(self)

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width."""
        return int(self.train_images.shape[1]), int(self.train_images.shape[2])

    @property
    def present_classes(self) -> NDArray[np.int64]:
        """The fine classes that have images, sorted."""
        return np.unique(self.train_labels)

    def classes_of(self, superclasses: Iterable[int]) -> NDArray[np.int64]:
        """The fine classes of some superclasses: superclass by superclass as given, sorted within each."""
        present = np.zeros(len(self.class_names), dtype=np.bool_)
        present[self.present_classes] = True
        chosen: list[NDArray[np.int64]] = []
        for superclass in superclasses:
            if not 0 <= superclass < len(self.superclass_names):
                raise unknown_name(f"{self.name}: superclass", superclass, range(len(self.superclass_names)))
            classes = np.flatnonzero(self.class_superclass == superclass)
            if not present[classes].all():
                here = np.unique(self.class_superclass[present]).tolist()
                raise WaterjarError(
                    f"{self.name}: superclass {superclass} ({self.superclass_names[superclass]}) has no images "
                    f"in this copy, which holds superclasses {here}"
                )
            chosen.append(classes)
        return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.int64)


def image_data(
    name: str,
    *,
    train: tuple[NDArray[np.uint8], NDArray[np.integer], NDArray[np.integer]],
    test: tuple[NDArray[np.uint8], NDArray[np.integer], NDArray[np.integer]],
    class_names: Sequence[str],
    superclass_names: Sequence[str],
    class_superclass: NDArray[np.integer],
) -> ImageData:
    """Bring (images, fine labels, sample ids) of both splits into the one form, checked and fingerprinted."""
    arrays: dict[str, NDArray[Any]] = {}
    for split, (images, labels, index) in (("train", train), ("test", test)):
        arrays[f"{split}_images"] = images if images.flags.c_contiguous else np.ascontiguousarray(images)
        arrays[f"{split}_labels"] = _whole(f"{name}: {split} labels", labels)
        arrays[f"{split}_index"] = _whole(f"{name}: {split} ids", index)
    arrays["class_superclass"] = _whole(f"{name}: superclasses", class_superclass)
    names = tuple(str(label) for label in class_names), tuple(str(label) for label in superclass_names)
    return ImageData(
        name=name,
        class_names=names[0],
        superclass_names=names[1],
        fingerprint=fingerprint(arrays, *names),
        **arrays,
    )


def _whole(what: str, values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Labels and ids as int64; a float that became a label would hide a fault of the file."""
    if not np.issubdtype(values.dtype, np.integer):
        raise WaterjarError(f"{what} must be whole numbers, not {values.dtype}")
    return np.ascontiguousarray(values, dtype=np.int64)


def fingerprint(
    arrays: Mapping[str, NDArray[Any]],
    class_names: Sequence[str],
    superclass_names: Sequence[str],
    contents: Callable[[str], Iterable[bytes]] | None = None,
) -> str:
    """sha256 over names, and over name, shape and little-endian bytes of each array in the order of names.

    The data set's own name is left out: the same images from two kinds of files are the same data. `contents` gives
    the bytes of an array by its name, part by part, for those that are not to be touched in memory.
    """
    digest = hashlib.sha256()
    for names in (class_names, superclass_names):
        digest.update(f"{len(names)}\n".encode())
        for name in names:
            digest.update(f"{len(name.encode())} {name}\n".encode())
    for key in sorted(arrays):
        array = arrays[key]
        digest.update(f"{key} {array.dtype.str[1:]} {array.shape}\n".encode())
        if contents is None:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(little.reshape(-1).view(np.uint8).data)
            continue
        for part in contents(key):
            digest.update(part)
    return digest.hexdigest()


def channel_statistics(
    images: NDArray[np.uint8], rows: NDArray[np.int64] | None = None
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Mean and population standard deviation of each channel on the scale [0, 1], from whole-number sums.

    >>> channel_statistics(np.full((2, 1, 1, 3), 255, dtype=np.uint8))
    ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    """
    count = np.zeros((3, 256), dtype=np.int64)
    chosen = np.arange(len(images)) if rows is None else rows
    for start in range(0, len(chosen), 4096):  # a part at a time: memory-mapped images stay on disk
        part = images[chosen[start : start + 4096]].reshape(-1, 3)
        for channel in range(3):
            count[channel] += np.bincount(part[:, channel], minlength=256)
    if not count.sum():
        raise WaterjarError("channel_statistics needs at least one image")
    values = np.arange(256, dtype=np.int64)
    pixels = count.sum(axis=1)
    first, second = (count * values).sum(axis=1), (count * values**2).sum(axis=1)
    mean = first / pixels
    std = np.sqrt(np.maximum(second / pixels - mean**2, 0.0))
    return tuple((mean / 255).tolist()), tuple((std / 255).tolist())


def _check(data: ImageData) -> None:
    """The one place where an image set is looked over."""
    what = data.name
    for split, images, labels, index in (
        ("train", data.train_images, data.train_labels, data.train_index),
        ("test", data.test_images, data.test_labels, data.test_index),
    ):
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[-1] != 3 or 0 in images.shape:
            raise WaterjarError(
                f"{what}: {split} images must be uint8 (n, height, width, 3) with n > 0, "
                f"not {images.dtype} {images.shape}"
            )
        if not images.flags.c_contiguous:
            raise WaterjarError(f"{what}: {split} images must be C-contiguous")
        if labels.shape != (len(images),) or index.shape != (len(images),):
            raise WaterjarError(
                f"{what}: {len(images)} {split} images, but labels {labels.shape} and ids {index.shape}"
            )
        if labels.dtype != np.int64 or index.dtype != np.int64:
            raise WaterjarError(f"{what}: {split} labels and ids must be int64, not {labels.dtype}, {index.dtype}")
        if labels.min() < 0 or labels.max() >= len(data.class_names):
            raise WaterjarError(
                f"{what}: {split} labels run from {labels.min()} to {labels.max()}, "
                f"but there are {len(data.class_names)} class names (labels count from 0)"
            )
        if len(np.unique(index)) != len(index):
            raise WaterjarError(f"{what}: {split} sample ids repeat; each image needs its own")
    if data.train_images.shape[1:] != data.test_images.shape[1:]:
        raise WaterjarError(
            f"{what}: train images {data.train_images.shape[1:]}, test images {data.test_images.shape[1:]}"
        )
    if data.class_superclass.shape != (len(data.class_names),):
        raise WaterjarError(
            f"{what}: {len(data.class_names)} classes, but superclasses for {data.class_superclass.shape}"
        )
    if data.class_superclass.min() < 0 or data.class_superclass.max() >= len(data.superclass_names):
        raise WaterjarError(f"{what}: a class has a superclass outside 0 to {len(data.superclass_names) - 1}")
    _check_classes(data)


def _check_classes(data: ImageData) -> None:
    """No class in one split alone, no half superclass: an empty evaluation set has no accuracy."""
    train, test = (
        np.bincount(labels, minlength=len(data.class_names)) > 0 for labels in (data.train_labels, data.test_labels)
    )
    lonely = np.flatnonzero(train != test)
    if len(lonely):
        split = "test" if train[lonely[0]] else "train"
        raise WaterjarError(f"{data.name}: class {lonely[0]} ({data.class_names[lonely[0]]}) has no {split} images")
    superclasses = np.unique(data.class_superclass[train])
    torn = np.flatnonzero(np.isin(data.class_superclass, superclasses) & ~train)
    if len(torn):
        owner = data.superclass_names[data.class_superclass[torn[0]]]
        raise WaterjarError(
            f"{data.name}: class {torn[0]} ({data.class_names[torn[0]]}) of superclass {owner} has no images, "
            "though others of it have"
        )
