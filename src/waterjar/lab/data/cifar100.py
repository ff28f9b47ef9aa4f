"""CIFAR-100: 100 classes in 20 superclasses (Krizhevsky, "Learning multiple layers of features", 2009).

From the official archive, the directory it unpacks to, or an .npz with all or some of its superclasses. Members
of the archive are read, never unpacked to disk; the pickles in it are read by `waterjar.run.plain_pickle`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from waterjar.errors import WaterjarError
from waterjar.lab.data import npz
from waterjar.lab.data._download import data_home, download
from waterjar.lab.data._image_data import ImageData, image_data
from waterjar.run.plain_pickle import read_plain_pickle
from waterjar.run.store import read_file

URL = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
ARCHIVE_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"
FOLDER = "cifar-100-python"
UNPACKED = 2**28
"""Bytes that the archive unpacks to, at most: it is 186 MB."""
MEMBER_MD5 = {
    "train": "16019d7e3df5f24257cddd939b257f8d",
    "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "meta": "7973b15100ade9c7d40fb424638fde48",
}

CLASSES_OF_SUPERCLASS = {
    "aquatic_mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food_containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit_and_vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household_electrical_devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household_furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large_carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large_man-made_outdoor_things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large_natural_outdoor_scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large_omnivores_and_herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium_mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect_invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small_mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles_1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles_2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}
"""The official table, superclasses in the order of their numbers."""

SUPERCLASS_NAMES = tuple(CLASSES_OF_SUPERCLASS)
CLASS_NAMES = tuple(sorted(name for group in CLASSES_OF_SUPERCLASS.values() for name in group))
"""In the order of their numbers, which is that of the alphabet."""

Split = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Images, fine labels, coarse labels, sample ids."""


class Settings(BaseModel):
    """Where the data are, and whether to fetch them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = None
    """The archive, the directory it unpacks to, or an .npz; else the archive in the download directory."""
    download: bool = False
    """Fetch the archive (161 MB) to `path` if there is nothing."""


def load(settings: Settings) -> ImageData:
    """Load CIFAR-100 as the settings say, or say how to get it."""
    path = settings.path or data_home() / URL.rsplit("/", 1)[-1]
    if not path.exists():
        if not settings.download:
            raise WaterjarError(
                f"CIFAR-100 is not at {path}. Set `download: true` to fetch it there (161 MB), or run\n"
                f"    curl --create-dirs -o '{path}' {URL}\n"
                "or set `path` to the archive, to the directory it unpacks to, or to an .npz with its arrays"
            )
        if path.suffix not in {".gz", ".tgz"}:
            raise WaterjarError(f"`download` writes a .tar.gz archive, so `path` cannot be {path}")
        download(URL, path, ARCHIVE_MD5)
    if not path.is_file() and not path.is_dir():
        raise WaterjarError(f"{path} is neither a file nor a directory")
    splits = _from_npz(path) if path.suffix == ".npz" else _from_members(path)
    owner = superclass_of_class()
    for name, (_, fine, coarse, _) in splits.items():
        if not np.array_equal(owner[fine], coarse):
            raise WaterjarError(f"{path}: the superclasses of the {name} images are not those of CIFAR-100")
    train, test = ((images, fine, index) for images, fine, _, index in (splits[name] for name in ("train", "test")))
    return image_data(
        "cifar100",
        train=train,
        test=test,
        class_names=CLASS_NAMES,
        superclass_names=SUPERCLASS_NAMES,
        class_superclass=owner,
    )


def superclass_of_class() -> NDArray[np.int64]:
    """(class,) the superclass of each fine class, from the table.

    >>> superclass_of_class()[[4, 30, 55, 72, 95]].tolist()
    [0, 0, 0, 0, 0]
    """
    number = {name: k for k, names in enumerate(CLASSES_OF_SUPERCLASS.values()) for name in names}
    return np.array([number[name] for name in CLASS_NAMES], dtype=np.int64)


def _from_npz(path: Path) -> dict[str, Split]:
    """The splits of an .npz as `npz` describes it, in the order of the sample ids."""
    arrays = npz.read_arrays(path)
    result: dict[str, Split] = {}
    for split in ("train", "test"):
        if f"{split}_coarse" not in arrays:
            raise WaterjarError(f"{path} lacks the array {split}_coarse")
        images, fine = _images(path, split, arrays[f"{split}_x"]), arrays[f"{split}_fine"]
        # Without ids the file's own order counts, and the ids are not those of the official archive.
        index = arrays.get(f"{split}_index", np.arange(len(images)))
        numbers = _labels(path, split, fine, arrays[f"{split}_coarse"], index, count=len(images))
        order = np.argsort(numbers[2], kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            images, numbers = images[order], [values[order] for values in numbers]
        result[split] = (images, numbers[0], numbers[1], numbers[2])
    return result


def _from_members(path: Path) -> dict[str, Split]:
    """The splits of the archive or of its directory."""
    contents = _read_members(path)
    for name, data in contents.items():
        if hashlib.md5(data, usedforsecurity=False).hexdigest() != MEMBER_MD5[name]:
            raise WaterjarError(
                f"{path}: '{name}' does not have the published md5 {MEMBER_MD5[name]}: the file is damaged or "
                "not the official one. Delete it and set `download: true`"
            )
    names = read_plain_pickle(contents["meta"], f"{path}: meta")
    if names.get("fine_label_names") != list(CLASS_NAMES):
        raise WaterjarError(f"{path}: meta does not name the 100 classes of CIFAR-100")
    result: dict[str, Split] = {}
    for split in ("train", "test"):
        stored = read_plain_pickle(contents[split], f"{path}: {split}")
        missing = {"data", "fine_labels", "coarse_labels"} - stored.keys()
        if missing:
            raise WaterjarError(f"{path}: '{split}' lacks {', '.join(sorted(missing))}")
        flat = np.asarray(stored["data"])
        if flat.ndim != 2 or flat.shape[1] != 3072:
            raise WaterjarError(f"{path}: '{split}' holds images of shape {flat.shape}, not (n, 3072)")
        planes = _images(path, split, flat.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels = [np.asarray(stored[key]) for key in ("fine_labels", "coarse_labels")]
        numbers = _labels(path, split, *labels, np.arange(len(planes)), count=len(planes))
        result[split] = (planes, numbers[0], numbers[1], numbers[2])
    return result


def _read_members(path: Path) -> dict[str, bytes]:
    """The bytes of the three members, from the directory or straight out of the archive."""
    if path.is_dir():
        folder = path / FOLDER if (path / FOLDER).is_dir() else path
        missing = [name for name in MEMBER_MD5 if not (folder / name).is_file()]
        if missing:
            raise WaterjarError(f"{folder} lacks {', '.join(missing)} of CIFAR-100")
        try:
            return {name: read_file(folder, name) for name in MEMBER_MD5}
        except OSError as error:
            raise WaterjarError(f"could not read {folder}: {error.strerror}") from error
    contents: dict[str, bytes] = {}
    try:
        with path.open("rb") as packed:
            is_gzip = packed.read(2) == b"\x1f\x8b"
            packed.seek(0)
            unpacked = gzip.GzipFile(fileobj=packed) if is_gzip else packed
            with tarfile.open(fileobj=_AtMost(unpacked), mode="r:") as archive:
                for member in archive:
                    name = member.name.removeprefix(f"{FOLDER}/")
                    file = archive.extractfile(member) if member.isfile() and name in MEMBER_MD5 else None
                    if file is not None:
                        contents[name] = file.read()
    except (tarfile.TarError, OSError, EOFError, ValueError, MemoryError, zlib.error) as error:
        raise WaterjarError(
            f"{path} is not a readable archive ({error}): delete it and set `download: true`"
        ) from error
    missing = [name for name in MEMBER_MD5 if name not in contents]
    if missing:
        raise WaterjarError(f"{path} lacks {', '.join(missing)}: it is not the CIFAR-100 archive")
    return contents


class _AtMost(io.RawIOBase):
    """A file that gives no more than the archive unpacks to, whatever its headers call for."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= UNPACKED - self._file.tell():
            raise OSError(f"it unpacks to more than {UNPACKED} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence or not 0 <= offset <= UNPACKED:
            raise OSError(f"it unpacks to more than {UNPACKED} bytes")
        return self._file.seek(offset)

    def tell(self) -> int:
        return self._file.tell()


def _images(path: Path, split: str, images: NDArray[np.generic]) -> NDArray[np.uint8]:
    """C-contiguous uint8 images of CIFAR's size."""
    if images.dtype != np.uint8 or images.shape[1:] != (32, 32, 3):
        raise WaterjarError(f"{path}: {split} images are {images.dtype} {images.shape}, not uint8 (n, 32, 32, 3)")
    return np.ascontiguousarray(images, dtype=np.uint8)


def _labels(path: Path, split: str, *arrays: NDArray[np.generic], count: int) -> list[NDArray[np.int64]]:
    """Fine labels, coarse labels and ids, one of each per image, the classes in range."""
    for values, limit in zip(arrays, (100, 20, None), strict=True):
        if values.shape != (count,) or not np.issubdtype(values.dtype, np.integer):
            raise WaterjarError(f"{path}: {count} {split} images, but labels {values.dtype} {values.shape}")
        if limit is not None and count and (values.min() < 0 or values.max() >= limit):
            raise WaterjarError(f"{path}: {split} labels outside 0 to {limit - 1}")
    return [values.astype(np.int64) for values in arrays]
