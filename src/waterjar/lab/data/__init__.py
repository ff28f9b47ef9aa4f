"""Image data sets, one a file, found by module name.

A data set is a module with a pydantic `Settings` and `load(settings) -> ImageData`.
"""

from __future__ import annotations

import sys

from waterjar.lab import by_name
from waterjar.lab.data._cache import from_cache, to_cache
from waterjar.lab.data._image_data import ImageData, channel_statistics, image_data
from waterjar.run.faults import parse_settings

__all__ = ["ImageData", "channel_statistics", "from_cache", "image_data", "load", "names", "to_cache"]


def names() -> tuple[str, ...]:
    """The data sets there are."""
    return by_name.names_in(sys.modules[__name__])


def load(name: str, /, **settings: object) -> ImageData:
    """Load a data set by its name.

    >>> load("glyphs", alphabets=2, characters=2, train_per_class=3, test_per_class=1).train_images.shape
    (12, 32, 32, 3)
    """
    module = by_name.module_in(sys.modules[__name__], "data set", name)
    parsed = parse_settings(module.Settings, settings, f"data set '{name}'")
    data: ImageData = module.load(parsed)
    return data
