"""Draw strokes as anti-aliased signed-distance fields: compiled, one image after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numba
import numpy as np
from numpy.typing import NDArray

from waterjar.lab.counter_hash import mix64

_mix = cast("Callable[[np.uint64], np.uint64]", numba.njit(nogil=True)(mix64))

# Columns of the look of an image: `paint_images`.
LOOK = (
    "half_width",
    *(f"ink_{channel}" for channel in "rgb"),
    *(f"ground_{channel}" for channel in "rgb"),
    *(f"stray_{channel}" for channel in "rgb"),
    *(f"{layer}_{what}" for layer in ("ground", "fine", "ink") for what in ("wave_y", "wave_x", "phase", "height")),
    "slope_y",
    "slope_x",
    "noise",
)
_STRAY = 7
_WAVES = _STRAY + 3
_SLOPE = _WAVES + 12
_NOISE = _SLOPE + 2


@numba.njit(nogil=True)
def _arc(stroke: NDArray[np.float64], arc: NDArray[np.float64]) -> None:
    """What the distance to a stroke needs: centre, radius, direction to the apex, cosine of half its angle.

    With b = tan(angle / 4) and chord c: radius c (1 + b^2) / (4 |b|), cos(angle / 2) = (1 - b^2) / (1 + b^2). A
    straight line has radius 0.
    """
    y0, x0, y1, x1, bulge = stroke
    chord = math.hypot(y1 - y0, x1 - x0)
    if abs(bulge) < 0.02 or chord < 1e-6:
        arc[2] = 0.0
        return
    sign = 1.0 if bulge > 0 else -1.0
    # The normal that `arc_points` uses: (-dx, dy) of the chord (dy, dx).
    normal_y, normal_x = -(x1 - x0) / chord * sign, (y1 - y0) / chord * sign
    b = abs(bulge)
    back = chord * (1 - b * b) / (4 * b)
    arc[0] = (y0 + y1) / 2 - normal_y * back
    arc[1] = (x0 + x1) / 2 - normal_x * back
    arc[2] = chord * (1 + b * b) / (4 * b)
    arc[3] = normal_y
    arc[4] = normal_x
    arc[5] = (1 - b * b) / (1 + b * b)


@numba.njit(nogil=True)
def _distance(y: float, x: float, stroke: NDArray[np.float64], arc: NDArray[np.float64]) -> float:
    """Distance of a point to a stroke."""
    y0, x0, y1, x1 = stroke[0], stroke[1], stroke[2], stroke[3]
    if arc[2] == 0.0:
        dy, dx = y1 - y0, x1 - x0
        square = dy * dy + dx * dx
        along = 0.0 if square < 1e-12 else ((y - y0) * dy + (x - x0) * dx) / square
        along = min(max(along, 0.0), 1.0)
        return math.sqrt((y - y0 - along * dy) ** 2 + (x - x0 - along * dx) ** 2)
    ry, rx = y - arc[0], x - arc[1]
    radius = math.sqrt(ry * ry + rx * rx)
    if ry * arc[3] + rx * arc[4] >= arc[5] * radius:
        away: float = abs(radius - arc[2])
        return away
    first = (y - y0) ** 2 + (x - x0) ** 2
    second = (y - y1) ** 2 + (x - x1) ** 2
    return math.sqrt(min(first, second))


@numba.njit(nogil=True)
def _coverage(strokes: NDArray[np.float64], half_width: float, side: int, ink: NDArray[np.float64]) -> None:
    """Ink (side, side) in [0, 1] of one character around the middle of the picture: a ramp one pixel wide.

    Only the box around each stroke is looked at: no point of an arc up to a half circle is further from its chord
    than bulge chord / 2, and none of a longer arc further than two radii from its ends.
    """
    ink[:] = 0.0
    arc = np.zeros(6)
    middle = (side - 1) / 2.0
    for k in range(len(strokes)):
        stroke = strokes[k]
        if math.isnan(stroke[0]):
            break
        _arc(stroke, arc)
        bulge, chord = abs(stroke[4]), math.hypot(stroke[2] - stroke[0], stroke[3] - stroke[1])
        reach = half_width + 0.5 + (bulge * chord / 2 if bulge <= 1.0 else 2 * arc[2])
        first_row = max(0, math.floor(min(stroke[0], stroke[2]) + middle - reach))
        last_row = min(side - 1, math.ceil(max(stroke[0], stroke[2]) + middle + reach))
        first_column = max(0, math.floor(min(stroke[1], stroke[3]) + middle - reach))
        last_column = min(side - 1, math.ceil(max(stroke[1], stroke[3]) + middle + reach))
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                away = _distance(row - middle, column - middle, stroke, arc)
                covered = min(max(half_width - away + 0.5, 0.0), 1.0)
                ink[row, column] = max(ink[row, column], covered)


@numba.njit(nogil=True)
def draw_ink(strokes: NDArray[np.float64], half_width: float, side: int) -> NDArray[np.float64]:
    """Ink (character, side, side) of characters (character, stroke, 5) in pixels from the middle."""
    ink = np.zeros((len(strokes), side, side))
    for k in range(len(strokes)):
        _coverage(strokes[k], half_width, side, ink[k])
    return ink


@numba.njit(nogil=True)
def paint_images(
    strokes: NDArray[np.float64],
    strays: NDArray[np.float64],
    look: NDArray[np.float64],
    keys: NDArray[np.uint64],
    out: NDArray[np.uint8],
) -> None:
    """Images (n, side, side, 3) of strokes (n, stroke, 5) over stray ones, with the given look (n, column of `LOOK`).

    A pixel is ground, under the stray strokes' colour, under the ink, each by its coverage; plus waves and a slope
    of light, plus noise that is a hash of (key, pixel).
    """
    side = out.shape[1]
    ink, stray = np.empty((side, side)), np.empty((side, side))
    light = np.empty((3, side, side))
    middle = (side - 1) / 2.0
    for b in range(len(strokes)):
        one = look[b]
        _coverage(strokes[b], one[0], side, ink)
        _coverage(strays[b], one[0], side, stray)
        for layer in range(3):
            _wave(one[_WAVES + 4 * layer : _WAVES + 4 * layer + 4], light[layer])
        for row in range(side):
            for column in range(side):
                a, s = ink[row, column], stray[row, column]
                slope = one[_SLOPE] * (row - middle) + one[_SLOPE + 1] * (column - middle)
                waves = (1 - a) * (light[0, row, column] + light[1, row, column]) + a * light[2, row, column]
                bits = _mix(keys[b] + np.uint64(row * side + column))
                for channel in range(3):
                    # 21 of the 64 bits a channel, centred: uniform in [-1, 1).
                    part = (bits >> np.uint64(21 * channel)) & np.uint64(0x1FFFFF)
                    noise = one[_NOISE] * (part * 2.0**-20 - 1.0)
                    under = (1 - s) * one[4 + channel] + s * one[_STRAY + channel]
                    colour = (1 - a) * under + a * one[1 + channel]
                    value = colour + waves + slope + noise
                    out[b, row, column, channel] = np.uint8(min(max(value, 0.0), 1.0) * 255.0 + 0.5)


@numba.njit(nogil=True)
def _wave(wave: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """height cos(wave_y y + wave_x x + phase), by the sum formula: trigonometry per row and column, not per pixel."""
    side = len(out)
    cosines, sines = np.empty(side), np.empty(side)
    for column in range(side):
        cosines[column] = wave[3] * math.cos(wave[1] * column + wave[2])
        sines[column] = wave[3] * math.sin(wave[1] * column + wave[2])
    for row in range(side):
        cosine, sine = math.cos(wave[0] * row), math.sin(wave[0] * row)
        for column in range(side):
            out[row, column] = cosine * cosines[column] - sine * sines[column]
