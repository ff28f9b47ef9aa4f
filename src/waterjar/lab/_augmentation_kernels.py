"""The inner loops of `augmentation`: compiled, one image after the other.

An image's result must not depend on its neighbours in the batch, to the last bit. Vectorised tensor
operations do not promise that (the end of an array may take another code path than its middle); a loop over
images does.

Not cached on disk: numba's cache does not notice a change in an imported function, and compiling takes a
second.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

# The columns of a parameter table: one row says what happens to one image.
COLUMNS = (
    "crop top",
    "crop left",
    "flip",
    "rotation",  # radians
    "shift down",  # pixels
    "shift right",
    "scale",
    "brightness",
    "contrast",
    "saturation",
    "hue",  # radians
)
TOP, LEFT, FLIP, ROTATION, DOWN, RIGHT, SCALE, BRIGHTNESS, CONTRAST, SATURATION, HUE = range(len(COLUMNS))

RED, GREEN, BLUE = 0.299, 0.587, 0.114  # luma of ITU-R BT.601
_U = np.uint64  # unsigned indices: numba then leaves out its test for negative ones, and loops vectorise


@numba.njit(nogil=True)
def crop_flip(
    images: NDArray[np.uint8],
    rows: NDArray[np.int64],
    table: NDArray[np.float64],
    padding: int,
    out: NDArray[np.float32],
) -> None:
    """Cut each zero-padded image at its place, mirror it where asked, scale to [0, 1].

    images (n, height, width, 3); table (batch, column); out (batch, 3, height, width).
    """
    height, width = images.shape[1], images.shape[2]
    plane = height * width
    planar = np.empty(3 * plane, np.uint8)
    for b in range(rows.size):
        image = images[rows[b]].reshape(-1)
        down, right = int(table[b, TOP]) - padding, int(table[b, LEFT]) - padding
        first, last = max(0, -right), min(width, width - right)
        count = _U(max(0, last - first))
        if down != 0 or right != 0:
            planar[:] = 0
        for y in range(max(0, -down), min(height, height - down)):
            source = _U(((y + down) * width + first + right) * 3)
            if table[b, FLIP] != 0.0:
                target = _U(y * width + width - 1 - first)
                for k in range(count):
                    planar[target - k] = image[source + _U(3) * k]
                    planar[target - k + _U(plane)] = image[source + _U(3) * k + _U(1)]
                    planar[target - k + _U(2 * plane)] = image[source + _U(3) * k + _U(2)]
            else:
                target = _U(y * width + first)
                for k in range(count):
                    planar[target + k] = image[source + _U(3) * k]
                    planar[target + k + _U(plane)] = image[source + _U(3) * k + _U(1)]
                    planar[target + k + _U(2 * plane)] = image[source + _U(3) * k + _U(2)]
        result = out[b].reshape(-1)
        for k in range(_U(3 * plane)):
            result[k] = np.float32(planar[k]) / np.float32(255)


@numba.njit(nogil=True)
def affine_crop_flip(
    images: NDArray[np.uint8],
    rows: NDArray[np.int64],
    table: NDArray[np.float64],
    padding: int,
    out: NDArray[np.float32],
) -> None:
    """As `crop_flip`, with scale, rotation and translation before it, all in ONE bilinear sampling.

    The pixel (y, x) of the result shows the place c + R(-angle) (p - shift - c) / scale of the image, where
    p = (y + top - padding, x + left - padding), x mirrored first, and c the centre. Outside is black; a positive
    angle turns anticlockwise.
    """
    height, width = images.shape[1], images.shape[2]
    middle_y, middle_x = (height - 1) / 2.0, (width - 1) / 2.0
    for b in range(rows.size):
        image = images[rows[b]]
        scale = table[b, SCALE]
        cosine, sine = math.cos(table[b, ROTATION]) / scale, math.sin(table[b, ROTATION]) / scale
        down = table[b, TOP] - padding - table[b, DOWN] - middle_y
        right = table[b, LEFT] - padding - table[b, RIGHT] - middle_x
        for y in range(height):
            v = y + down
            for x in range(width):
                u = (width - 1 - x if table[b, FLIP] != 0.0 else x) + right
                source_y = cosine * v + sine * u + middle_y
                source_x = cosine * u - sine * v + middle_x
                y0, x0 = math.floor(source_y), math.floor(source_x)
                part_y, part_x = source_y - y0, source_x - x0
                for c in range(3):
                    total = 0.0
                    for i in range(2):
                        row = y0 + i
                        if row < 0 or row >= height:
                            continue
                        weight = part_y if i else 1.0 - part_y
                        if 0 <= x0 < width:
                            total += weight * (1.0 - part_x) * image[row, x0, c]
                        if -1 <= x0 < width - 1:
                            total += weight * part_x * image[row, x0 + 1, c]
                    out[b, c, y, x] = np.float32(total / 255.0)


@numba.njit(nogil=True)
def jitter_colours(images: NDArray[np.float32], table: NDArray[np.float64]) -> None:
    """Brightness, contrast, saturation, hue, in place on (batch, 3, height, width).

    With grey = luma and m = the mean luma of the image: x b, then x c + (1 - c) m, then x s + (1 - s) grey,
    then a turn in the chroma plane; each is clamped to [0, 1].
    """
    low, high = np.float32(0), np.float32(1)
    for b in range(images.shape[0]):
        red, green, blue = images[b, 0].reshape(-1), images[b, 1].reshape(-1), images[b, 2].reshape(-1)
        size = red.size
        factor = np.float32(table[b, BRIGHTNESS])
        flat = images[b].reshape(-1)
        for k in range(flat.size):
            flat[k] = min(max(flat[k] * factor, low), high)
        mean = 0.0
        for k in range(size):
            mean += RED * red[k] + GREEN * green[k] + BLUE * blue[k]
        factor = np.float32(table[b, CONTRAST])
        rest = np.float32((1.0 - table[b, CONTRAST]) * (mean / size))
        for k in range(flat.size):
            flat[k] = min(max(flat[k] * factor + rest, low), high)
        factor = np.float32(table[b, SATURATION])
        other = np.float32(1.0 - table[b, SATURATION])
        for k in range(size):
            grey = np.float32(RED) * red[k] + np.float32(GREEN) * green[k] + np.float32(BLUE) * blue[k]
            red[k] = min(max(red[k] * factor + other * grey, low), high)
            green[k] = min(max(green[k] * factor + other * grey, low), high)
            blue[k] = min(max(blue[k] * factor + other * grey, low), high)
        if table[b, HUE] != 0.0:
            _rotate_hue(red, green, blue, table[b, HUE])


@numba.njit(nogil=True)
def _rotate_hue(red: NDArray[np.float32], green: NDArray[np.float32], blue: NDArray[np.float32], angle: float) -> None:
    """Turn the chroma (I, Q) of NTSC's YIQ by an angle; the luma Y is kept."""
    cosine, sine = math.cos(angle), math.sin(angle)
    for k in range(red.size):
        luma = RED * red[k] + GREEN * green[k] + BLUE * blue[k]
        in_phase = 0.5959 * red[k] - 0.2746 * green[k] - 0.3213 * blue[k]
        quadrature = 0.2115 * red[k] - 0.5227 * green[k] + 0.3112 * blue[k]
        i, q = cosine * in_phase - sine * quadrature, sine * in_phase + cosine * quadrature
        red[k] = np.float32(min(max(luma + 0.956 * i + 0.619 * q, 0.0), 1.0))
        green[k] = np.float32(min(max(luma - 0.272 * i - 0.647 * q, 0.0), 1.0))
        blue[k] = np.float32(min(max(luma - 1.106 * i + 1.703 * q, 0.0), 1.0))
