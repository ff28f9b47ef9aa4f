"""A data set: stripes of four widths in four colours; a class is a width, a superclass a colour."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from waterjar.lab.data import ImageData, image_data

COLOURS = ((255, 64, 64), (64, 255, 64), (64, 64, 255), (255, 255, 64))


class Settings(BaseModel):
    """How many images there are."""

    model_config = ConfigDict(extra="forbid")
    per_class: int = Field(12, ge=2)


def load(settings: Settings) -> ImageData:
    """Draw them; the generator is the data set's own."""
    return image_data(
        "stripes",
        train=_draw(settings.per_class, 0),
        test=_draw(max(2, settings.per_class // 2), 1),
        class_names=[f"colour{colour}_width{width}" for colour in range(4) for width in (1, 2)],
        superclass_names=[f"colour{colour}" for colour in range(4)],
        class_superclass=np.repeat(np.arange(4), 2),
    )


def _draw(per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(8), per_class)
    width = 1 + labels % 2
    lit = (np.arange(8) // width[:, None] + generator.integers(0, 2, (len(labels), 1))) % 2
    images = lit[:, None, :, None] * np.array(COLOURS)[labels // 2][:, None, None, :] + np.zeros((1, 8, 1, 1), int)
    noisy = np.clip(images + generator.integers(-20, 20, images.shape), 0, 255).astype(np.uint8)
    return noisy, labels, np.arange(len(labels))
