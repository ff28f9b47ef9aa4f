"""Any labelled images of your own, from one .npz file.

Needed: `train_x` and `test_x` uint8 (n, height, width, 3), or grey without the last axis or with 1;
`train_fine` and `test_fine`, class numbers from 0. Optional: `train_coarse` and `test_coarse`, superclass
numbers (else each class is its own superclass); `train_index` and `test_index`, sample ids (else 0 ... n - 1);
`fine_names` and `coarse_names`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, field_validator

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab.data._cache import fault_of_name
from waterjar.lab.data._image_data import ImageData, image_data
from waterjar.run.npz_file import FAULTS, names_in_npz, read_npz

REQUIRED = ("train_x", "train_fine", "test_x", "test_fine")
OPTIONAL = ("train_coarse", "test_coarse", "train_index", "test_index", "fine_names", "coarse_names")
_MOST_CLASSES = 100_000
"""More are only taken where there are as many images: every class gets a name."""

Arrays = Mapping[str, NDArray[np.generic]]


class Settings(BaseModel):
    """Where the file is, and what to call it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    name: str = "npz"
    """Part of the name of a directory of the study."""

    @field_validator("name")
    @classmethod
    def _usable(cls, name: str) -> str:
        fault = fault_of_name(name)
        if fault:
            raise ValueError(fault)
        return name


def load(settings: Settings) -> ImageData:
    """Read the file of the settings."""
    arrays = read_arrays(settings.path)
    fine = {split: integers(settings.path, arrays, f"{split}_fine") for split in ("train", "test")}
    classes = _count(settings.path, "fine", list(fine.values()))
    class_names = _names(arrays, "fine_names", classes, "class")
    class_superclass = _superclasses(settings.path, arrays, fine, len(class_names))
    superclasses = _count(settings.path, "coarse", [class_superclass])
    superclass_names = _names(arrays, "coarse_names", superclasses, "superclass")
    absent = np.flatnonzero(class_superclass < 0)
    if len(absent):
        class_superclass[absent] = len(superclass_names)
        superclass_names.append("without_images")
    splits = {}
    for split in ("train", "test"):
        images = colour(settings.path, f"{split}_x", arrays[f"{split}_x"])
        has_index = f"{split}_index" in arrays
        index = integers(settings.path, arrays, f"{split}_index") if has_index else np.arange(len(images))
        splits[split] = (images, fine[split], index)
    return image_data(
        settings.name,
        train=splits["train"],
        test=splits["test"],
        class_names=class_names,
        superclass_names=superclass_names,
        class_superclass=class_superclass,
    )


def read_arrays(
    path: Path, required: Sequence[str] = REQUIRED, optional: Sequence[str] = OPTIONAL
) -> dict[str, NDArray[np.generic]]:
    """Some arrays of an .npz file, no pickles, or one clear error."""
    if not path.is_file():
        raise WaterjarError(f"there is no file {path}: set `path` to an .npz file with {', '.join(required)}")
    try:
        with path.open("rb") as file:
            if file.read(6) == npy.MAGIC_PREFIX:
                raise WaterjarError(f"{path} holds a single array, not an .npz archive of several")
            arrays = read_npz(file, (*required, *optional))
            stored = names_in_npz(file)
    except FAULTS as error:
        why = str(error) or type(error).__name__
        raise WaterjarError(f"{path} cannot be read as an .npz file of plain arrays: {why}") from error
    for name in required:
        if name not in arrays:
            raise unknown_name(f"{path} lacks an array: needed", name, stored)
    return arrays


def integers(path: Path, arrays: Arrays, name: str) -> NDArray[np.int64]:
    """A list of whole numbers of the file."""
    values = arrays[name]
    if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
        raise WaterjarError(f"{path}: {name} must be a list of whole numbers, not {values.dtype} {values.shape}")
    return values.astype(np.int64)


def colour(path: Path, name: str, images: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Images with three channels; grey ones are repeated."""
    if images.dtype != np.uint8:
        raise WaterjarError(
            f"{path}: {name} is {images.dtype}, but images are uint8, 0 to 255: scale and round them first"
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim == 4 and images.shape[-1] == 1:
        images = np.repeat(images, 3, axis=-1)
    return images.astype(np.uint8, copy=False)


def _count(path: Path, which: str, labels: Sequence[NDArray[np.int64]]) -> int:
    """How many classes labels speak of, counted from 0; a part of a larger set keeps its numbers."""
    most = max(_MOST_CLASSES, sum(map(len, labels)))
    largest = max(int(part.max(initial=-1)) for part in labels)
    if largest >= most:
        raise WaterjarError(f"{path}: {which} label {largest} is too large: expected numbers from 0 to {most - 1}")
    return largest + 1


def _names(arrays: Arrays, key: str, count: int, what: str) -> list[str]:
    """The names of the file, or numbered ones."""
    if key in arrays:
        return [str(name) for name in arrays[key].tolist()]
    return [f"{what}_{number}" for number in range(count)]


def _superclasses(path: Path, arrays: Arrays, fine: Mapping[str, NDArray[np.int64]], classes: int) -> NDArray[np.int64]:
    """The superclass of each class from the labels of both splits, which must agree; -1 without images."""
    if not {"train_coarse", "test_coarse"} <= arrays.keys():
        return np.arange(classes)
    table = np.full(classes, -1, dtype=np.int64)
    for split, labels in fine.items():
        coarse = integers(path, arrays, f"{split}_coarse")
        if coarse.shape != labels.shape or labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
            raise WaterjarError(f"{path}: {split}_fine and {split}_coarse do not fit together, or to fine_names")
        for label in np.unique(labels):
            owners = np.unique(coarse[labels == label])
            if len(owners) > 1 or table[label] not in {-1, owners[0]}:
                raise WaterjarError(f"{path}: class {label} has images in several superclasses")
            table[label] = owners[0]
    return table
