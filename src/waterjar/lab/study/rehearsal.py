"""Where small copies of runs are tried out for an estimate, and what files take on a disk."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.lab.data import ImageData, image_data

_BLOCK = 4096  # bytes that file systems usually allot at a time, to files and to folders


class NoRoomError(WaterjarError):
    """A copy could not be written."""


def few_of(data: ImageData, classes: Iterable[int], train: int, test: int) -> ImageData:
    """The first so many train and test images of some classes."""
    chosen = list(classes)

    def rows(labels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        return np.sort(np.concatenate([np.flatnonzero(labels == fine)[:count] for fine in chosen]))

    trained, tested = rows(data.train_labels, train), rows(data.test_labels, test)
    return image_data(
        data.name,
        train=(data.train_images[trained], data.train_labels[trained], data.train_index[trained]),
        test=(data.test_images[tested], data.test_labels[tested], data.test_index[tested]),
        class_names=data.class_names,
        superclass_names=data.superclass_names,
        class_superclass=data.class_superclass,
    )


@contextlib.contextmanager
def rehearsal_folder() -> Iterator[Path]:
    """A folder for a copy, removed again. What could not be written there is an error that says how to get room."""
    try:
        with tempfile.TemporaryDirectory(prefix="waterjar-rehearsal-") as name:
            try:
                yield Path(name)
            except NoRoomError:
                raise
            except (OSError, WaterjarError) as error:
                if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
                    raise _no_room(error, f"below {Path(name).parent}", allotted(Path(name))) from error
                raise
    except OSError as error:  # there is no such folder, or it is full already
        raise _no_room(error, "to a folder for temporary files", 0) from error


def _no_room(error: Exception, place: str, written: int) -> NoRoomError:
    return NoRoomError(
        f"a small copy of a run, to be tried out for the estimate, could not be written {place}: {error}. It had "
        f"{written} bytes there and needs more: set the environment variable TMPDIR to a folder with more room"
    )


def allotted(folder: Path) -> int:
    """Bytes that a folder takes on a disk that is allotted in blocks: files rounded up, and folders."""
    if not folder.exists():
        return 0
    paths = [folder, *folder.rglob("*")]
    return sum(-(-path.stat().st_size // _BLOCK) * _BLOCK if path.is_file() else _BLOCK for path in paths)
