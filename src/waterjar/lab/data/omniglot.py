"""Omniglot (Lake, Salakhutdinov and Tenenbaum 2015): 1,623 characters of 50 alphabets, 20 drawings of each.

From one .npz file: `x` uint8 (drawing, height, width), ink bright; `char`, the character of each drawing, and
`alphabet`, its alphabet, both counted from 0; `char_names` and `alphabet_names`. The 20 drawings of a character are by
20 people, in the same order: the last ones are the test images, so that these hands are new to the network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError
from waterjar.lab.data._image_data import ImageData, image_data
from waterjar.lab.data.npz import colour, integers, read_arrays

ARRAYS = ("x", "char", "alphabet", "char_names", "alphabet_names")


class Settings(BaseModel):
    """Where the file is, and how many drawings of each character are kept for testing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    test_per_class: Annotated[int, Field(ge=1)] = 5


def load(settings: Settings) -> ImageData:
    """Read the file of the settings."""
    path = settings.path
    arrays = read_arrays(path, ARRAYS, ())
    images = colour(path, "x", arrays["x"])
    characters, alphabets = integers(path, arrays, "char"), integers(path, arrays, "alphabet")
    names = [[str(name) for name in arrays[key].tolist()] for key in ("char_names", "alphabet_names")]
    if not len(images) == len(characters) == len(alphabets):
        raise WaterjarError(
            f"{path}: x, char and alphabet are of {len(images)}, {len(characters)}, {len(alphabets)} drawings"
        )
    for key, labels, known in (("char", characters, names[0]), ("alphabet", alphabets, names[1])):
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= len(known):
            raise WaterjarError(f"{path}: {key} counts from 0 to {len(known) - 1}, as many as {key}_names")
    owner = np.full(len(names[0]), -1, dtype=np.int64)
    owner[characters] = alphabets
    if (owner[characters] != alphabets).any() or (owner < 0).any():
        raise WaterjarError(f"{path}: every character must have drawings, all of them in one alphabet")
    test = _is_test(path, characters, settings.test_per_class)
    rows = np.arange(len(images))
    return image_data(
        "omniglot",
        train=(images[~test], characters[~test], rows[~test]),
        test=(images[test], characters[test], rows[test]),
        class_names=[f"{names[1][owner[i]]}/{name}" for i, name in enumerate(names[0])],
        superclass_names=names[1],
        class_superclass=owner,
    )


def _is_test(path: Path, characters: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """The last `count` drawings of each character."""
    fewest = int(np.bincount(characters).min())
    if fewest <= count:
        raise WaterjarError(
            f"{path}: a character has {fewest} drawings, of which test_per_class {count} leaves none to train with: "
            f"expected at most {fewest - 1}"
        )
    order = np.argsort(characters, kind="stable")
    ends = np.cumsum(np.bincount(characters))
    test = np.zeros(len(characters), np.bool_)
    test[order[(ends[:, None] - 1 - np.arange(count)).ravel()]] = True
    return test
