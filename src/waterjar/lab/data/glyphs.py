"""Glyphs: coloured characters drawn by rule, in alphabets (superclasses) of characters (classes).

The data set that is always there: nothing to fetch, any number of classes and images, made in seconds from a seed.
SHAPE alone carries the class. Colours, texture, light, noise, place, size, slant and thickness are drawn from
(seed, split, sample id) by laws that are the same for all classes, so that a planted shortcut is the only one. No
image holds magenta, the colour of the patch.

How far that holds, by least squares on 60,000 test images of 60 classes (chance 1.67 %, standard deviation 0.05),
seeds 0 to 2: colour statistics 1.65 to 1.81 %, centre of the ink 1.67 to 1.76 %, its spread 1.71 to 1.85 %.

Sample k of a character is the same image however many samples, or further alphabets, are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from waterjar.lab.counter_hash import between, hash_words, integers, normal, uniform
from waterjar.lab.data._glyph_render import LOOK, draw_ink, paint_images
from waterjar.lab.data._glyph_shapes import CANVAS, HALF_WIDTH, characters, ink_place
from waterjar.lab.data._image_data import ImageData, image_data

MOST_CHARACTERS, MOST_SAMPLES = 1_000, 1_000_000
"""Limits that keep sample ids apart: id = (alphabet * MOST_CHARACTERS + character) * MOST_SAMPLES + sample."""

_AT_ONCE = 2_000  # images whose parameters stand in memory together
_WIDE = 40  # pixels: a picture that no character in the middle leaves

Draw = Callable[..., NDArray[np.float64]]


class Settings(BaseModel):
    """How many of what, and the seed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alphabets: Annotated[int, Field(ge=1, le=1000)] = 12
    characters: Annotated[int, Field(ge=1, le=MOST_CHARACTERS)] = 5
    """Characters in each alphabet."""
    train_per_class: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 500
    test_per_class: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 100
    seed: int = 0
    tremor: Annotated[float, Field(ge=0.0, le=4.0)] = 0.8
    """How unsteady the hand is: standard deviation of the ends of a stroke, in pixels."""
    strays: Annotated[int, Field(ge=0, le=16)] = 2
    """Strokes that mean nothing, under each character. Fewer make the classes easier."""


def load(settings: Settings) -> ImageData:
    """Draw the data set."""
    shapes = characters(settings.seed, settings.alphabets, settings.characters)
    alphabet = np.repeat(np.arange(settings.alphabets), settings.characters)
    return image_data(
        "glyphs",
        train=_split(settings, "train", settings.train_per_class, *shapes),
        test=_split(settings, "test", settings.test_per_class, *shapes),
        class_names=[
            f"alphabet_{a}_character_{k}" for a in range(settings.alphabets) for k in range(settings.characters)
        ],
        superclass_names=[f"alphabet_{a}" for a in range(settings.alphabets)],
        class_superclass=alphabet,
    )


def _split(
    settings: Settings, split: str, per_class: int, strokes: NDArray[np.float64], half_widths: NDArray[np.float64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Images, labels and sample ids of one split, class by class."""
    labels = np.repeat(np.arange(len(strokes)), per_class)
    alphabet, character = np.divmod(labels, settings.characters)
    index = (alphabet * MOST_CHARACTERS + character) * MOST_SAMPLES + np.tile(np.arange(per_class), len(strokes))
    images = np.empty((len(labels), CANVAS, CANVAS, 3), dtype=np.uint8)
    for start in range(0, len(labels), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        sample = index[part]

        def draw(law: Draw, *arguments: float | str, sample: NDArray[np.int64] = sample) -> NDArray[np.float64]:
            """One number per sample; the last argument says what for."""
            *numbers, purpose = arguments
            return law(*numbers, f"glyph {purpose}", settings.seed, split, sample)

        paint_images(
            _handwriting(strokes[labels[part]], settings.tremor, draw),
            _strays(len(sample), settings.strays, draw),
            _look(half_widths[labels[part]], draw),
            hash_words("glyph pixels", settings.seed, split, sample),
            images[part],
        )
    return images, labels, index


def _handwriting(strokes: NDArray[np.float64], tremor: float, draw: Draw) -> NDArray[np.float64]:
    """Strokes (sample, stroke, 5) as a hand writes them: turned, slanted, resized, moved, unsteady."""
    angle = draw(between, -0.2, 0.2, "angle")
    slant = draw(between, -0.2, 0.2, "slant")
    tall = draw(between, 0.85, 1.15, "tall")
    wide = draw(between, 0.85, 1.15, "wide")
    cosine, sine = np.cos(angle), np.sin(angle)
    yy, yx = tall * cosine, wide * sine
    xy, xx = -tall * sine + slant, wide * cosine
    moved = np.empty(strokes.shape)
    for k in range(strokes.shape[1]):
        for end in (0, 2):
            y, x = strokes[:, k, end], strokes[:, k, end + 1]
            moved[:, k, end] = yy * y + yx * x + tremor * draw(normal, f"tremor {k} {end} y")
            moved[:, k, end + 1] = xy * y + xx * x + tremor * draw(normal, f"tremor {k} {end} x")
        moved[:, k, 4] = strokes[:, k, 4] + 0.1 * tremor * draw(normal, f"bulge {k}")
    # Tremor parts strokes that met, which moves the centre of the ink (0.2 pixels, in a direction of the class's own):
    # put each sample's ink back to the middle, as drawn, before it goes to its place.
    centre, _ = ink_place(draw_ink(moved, HALF_WIDTH, _WIDE))
    place = np.stack([draw(between, -3.0, 3.0, "down"), draw(between, -3.0, 3.0, "right")], axis=1) - centre
    for end in (0, 2):
        moved[..., end : end + 2] += place[:, None]
    return moved


def _strays(samples: int, count: int, draw: Draw) -> NDArray[np.float64]:
    """Strokes (sample, stroke, 5) that mean nothing, anywhere in the picture, under the character."""
    strokes = np.empty((samples, count, 5))
    for k in range(count):
        angle, length = draw(between, 0.0, np.pi, f"stray {k} angle"), draw(between, 4.0, 14.0, f"stray {k} length")
        middle = [draw(between, -14.0, 14.0, f"stray {k} {axis}") for axis in "yx"]
        half = [length / 2 * np.sin(angle), length / 2 * np.cos(angle)]
        ends = [place + sign * reach for sign in (-1, 1) for place, reach in zip(middle, half, strict=True)]
        strokes[:, k] = np.stack([*ends, draw(between, -0.7, 0.7, f"stray {k} bulge")], axis=1)
    return strokes


def _look(half_width: NDArray[np.float64], draw: Draw) -> NDArray[np.float64]:
    """Thickness, colours, texture and noise (sample, column of `LOOK`); no law here knows the class's shape."""
    columns: dict[str, NDArray[np.float64]] = {"half_width": half_width * draw(between, 0.7, 1.35, "width")}
    ground = draw(between, 0.2, 0.8, "ground light")
    step = draw(between, 0.2, 0.4, "contrast") * (1 - 2 * draw(integers, 2, "darker"))
    # Where the step leads out of [0.1, 0.9] it goes the other way, which then leads inside.
    ink = np.where(np.abs(ground + step - 0.5) <= 0.4, ground + step, ground - step)
    for name, light in (("ink", ink), ("ground", ground)):
        colour = _colour(light, draw(uniform, f"{name} hue"), draw(uniform, f"{name} saturation"))
        columns |= {f"{name}_{letter}": colour[:, k] for k, letter in enumerate("rgb")}
    towards_ink = draw(between, 0.3, 0.7, "stray strength")
    for letter in "rgb":
        columns[f"stray_{letter}"] = columns[f"ground_{letter}"] + towards_ink * (
            columns[f"ink_{letter}"] - columns[f"ground_{letter}"]
        )
    for layer, most, (slow, fast) in (
        ("ground", 0.08, (0.1, 0.5)),
        ("fine", 0.06, (0.6, 1.8)),
        ("ink", 0.08, (0.3, 1.5)),
    ):
        frequency = draw(between, slow, fast, f"{layer} frequency")
        direction = draw(between, 0.0, 2 * np.pi, f"{layer} direction")
        columns |= {
            f"{layer}_wave_y": frequency * np.sin(direction),
            f"{layer}_wave_x": frequency * np.cos(direction),
            f"{layer}_phase": draw(between, 0.0, 2 * np.pi, f"{layer} phase"),
            f"{layer}_height": draw(between, 0.0, most, f"{layer} height"),
        }
    columns["slope_y"] = draw(between, -0.004, 0.004, "slope y")
    columns["slope_x"] = draw(between, -0.004, 0.004, "slope x")
    columns["noise"] = draw(between, 0.0, 0.12, "noise")
    return np.stack([columns[name] for name in LOOK], axis=1)


def _colour(light: NDArray[np.float64], hue: NDArray[np.float64], strength: NDArray[np.float64]) -> NDArray[np.float64]:
    """RGB (sample, 3) in [0.05, 0.95] of a given luma; hues from 345 degrees up to 255, magenta's band left out."""
    position = ((345.0 + 270.0 * hue) % 360.0) / 60.0
    ramps = np.stack([np.abs(position - 3) - 1, 2 - np.abs(position - 2), 2 - np.abs(position - 4)], axis=1)
    pure = ramps.clip(0.0, 1.0)
    chroma = pure - (pure @ np.array([0.299, 0.587, 0.114]))[:, None]
    room = np.where(chroma > 0, 0.95 - light[:, None], light[:, None] - 0.05) / np.maximum(np.abs(chroma), 1e-9)
    colour: NDArray[np.float64] = light[:, None] + (strength * room.min(axis=1))[:, None] * chroma
    return colour
