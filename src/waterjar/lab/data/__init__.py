"""Image data sets, one a file, found by module name.

A data set is a module with a pydantic `Settings` and `load(settings) -> ImageData`.
"""

from __future__ import annotations

from waterjar.lab.data._cache import from_cache, to_cache
from waterjar.lab.data._image_data import ImageData, channel_statistics, image_data
from waterjar.run.shelf import SHELVES

__all__ = ["SHELF", "ImageData", "channel_statistics", "from_cache", "image_data", "load", "names", "to_cache"]

SHELF = SHELVES["data"]
names = SHELF.names


def load(name: str, /, **settings: object) -> ImageData:
    """Load a data set by its name.

    >>> load("glyphs", alphabets=2, characters=2, train_per_class=3, test_per_class=1).train_images.shape
    (12, 32, 32, 3)
    """
    data: ImageData = SHELF.module(name).load(SHELF.parse(name, settings))
    return data
