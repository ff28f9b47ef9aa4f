"""The characters of the glyphs: strokes, in alphabets that each have a manner of their own.

A stroke is (y0, x0, y1, x1, bulge): the ends, and tan(angle / 4) of the arc between them; 0 is a straight line. An
alphabet is a lattice of points, a number of strokes, a curvature and a way to join them. Its characters are drawn at
random in this manner and then made alike in all that is not shape: centre of the ink at the origin, equal spread
around it, and equal ink, so that neither place nor size nor amount names the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.lab.counter_hash import between, hash_words, integers, permutation, uniform
from waterjar.lab.data._glyph_render import draw_ink

SPREAD = 7.0  # pixels: root mean square distance of the ink from its centre
INK = 125.0  # pixels covered by a character, strokes that cross or meet counted once
INK_RANGE = 0.04  # relative: how far a character may be from it before its width makes up for the rest
HALF_WIDTH = 1.2  # pixels: nominal half width of a stroke
CANVAS = 32
_POINTS = 24  # along a stroke, for centre and spread
_CANDIDATES = 64
_CORRECTIONS = 3  # rounds of moving the ink, as drawn, to its place
_WIDE = 48  # pixels: a picture that no character leaves
_SHIFTS = (-2, 0, 2)
_BLUR = np.exp(-0.5 * (np.subtract.outer(np.arange(CANVAS), np.arange(CANVAS)) / 1.5) ** 2)

LATTICES = ("grid", "ring", "star", "columns", "hexagon")
CURVATURES = ("straight", "gentle", "round", "mixed")
JOINS = ("path", "fan", "free")
STROKES = (3, 4)


@dataclass(frozen=True)
class Manner:
    """How one alphabet writes."""

    lattice: str
    curvature: str
    join: str
    strokes: int
    turn: float


def manner_of(seed: int, alphabet: int) -> Manner:
    """The manner of an alphabet: all combinations in a shuffled order, each with a turn of the lattice of its own."""
    combinations = list(product(LATTICES, CURVATURES, JOINS, STROKES))
    order = permutation(len(combinations), "glyph manner", seed)
    lattice, curvature, join, strokes = combinations[order[alphabet % len(combinations)]]
    turn = float(between(-0.4, 0.4, "glyph turn", seed, alphabet))
    return Manner(lattice, curvature, join, strokes, turn)


def lattice_points(manner: Manner) -> NDArray[np.float64]:
    """Points (point, 2) that strokes of the alphabet run between."""
    points: list[tuple[float, float]]
    if manner.lattice == "grid":
        points = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    elif manner.lattice == "columns":
        points = [(y, x) for y in (-1.2, -0.4, 0.4, 1.2) for x in (-0.7, 0.7)]
    else:
        corners = {"ring": 8, "star": 5, "hexagon": 6}[manner.lattice]
        angles = 2 * np.pi * np.arange(corners) / corners
        points = [(-np.cos(angle), np.sin(angle)) for angle in angles]
        if manner.lattice != "ring":
            points.append((0.0, 0.0))
    cosine, sine = np.cos(manner.turn), np.sin(manner.turn)
    turned: NDArray[np.float64] = np.array(points) @ np.array([[cosine, sine], [-sine, cosine]])
    return turned


def candidates(manner: Manner, *words: int) -> NDArray[np.float64]:
    """Many characters (candidate, stroke, 5) in one manner, not yet made alike."""
    points = lattice_points(manner)
    number = np.arange(_CANDIDATES)[:, None]
    stroke = np.arange(manner.strokes)[None, :]
    key: tuple[str | int, ...] = ("glyph stroke", *words)
    start = integers(len(points), *key, number, stroke, 0)
    # Never back to where it starts.
    end = (start + 1 + integers(len(points) - 1, *key, number, stroke, 1)) % len(points)
    if manner.join == "fan":
        start = np.broadcast_to(start[:, :1], start.shape)
        others = np.argsort(hash_words(*key, number, np.arange(len(points) - 1), 4), axis=1)
        end = (start + 1 + others[:, : manner.strokes]) % len(points)
    elif manner.join == "path":
        walk = [start[:, 0]]
        for k in range(manner.strokes):
            walk.append((walk[-1] + 1 + integers(len(points) - 1, *key, number[:, 0], k, 1)) % len(points))
        start, end = np.stack(walk[:-1], axis=1), np.stack(walk[1:], axis=1)
    bulge = {"straight": 0.0, "gentle": 0.35, "round": 0.8, "mixed": 0.6}[manner.curvature]
    sign = 1 - 2 * integers(2, *key, number, stroke, 2)
    curved = (uniform(*key, number, stroke, 3) < 0.5) if manner.curvature == "mixed" else np.ones(start.shape)
    bulges = bulge * sign * curved
    # Each character has its own slightly irregular lattice: else a straight fan could be drawn in few ways.
    axes = np.arange(2 * len(points)).reshape(1, len(points), 2)
    own = points + between(-0.25, 0.25, "glyph lattice", *words, number[:, :, None], axes)
    strokes: NDArray[np.float64] = np.concatenate([own[number, start], own[number, end], bulges[..., None]], axis=-1)
    pairs = np.sort(np.minimum(start, end) * len(points) + np.maximum(start, end), axis=1)
    no_twice = (np.diff(pairs, axis=1) != 0).all(axis=1)
    kept: NDArray[np.float64] = strokes[no_twice]
    return kept


def arc_lengths(strokes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Length of each stroke: chord times angle / (2 sin(angle / 2)), with angle = 4 atan(bulge)."""
    chord = np.hypot(strokes[..., 2] - strokes[..., 0], strokes[..., 3] - strokes[..., 1])
    half = 2 * np.arctan(np.abs(strokes[..., 4]))
    return chord * np.where(half > 1e-9, half / np.sin(np.where(half > 1e-9, half, 1.0)), 1.0)


def arc_points(strokes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (..., stroke, point, 2) at equal steps along each stroke."""
    along = (np.arange(_POINTS) + 0.5) / _POINTS
    ends = strokes[..., None, 0:2], strokes[..., None, 2:4]
    half = 2 * np.arctan(strokes[..., 4])[..., None]
    turned = np.where(np.abs(half) > 1e-9, half, 1.0)
    # On the unit chord from (-1/2, 0) to (1/2, 0): a circle through both ends, apex at bulge / 2.
    angle = turned * (2 * along - 1)
    forward = np.where(np.abs(half) > 1e-9, np.sin(angle) / (2 * np.sin(turned)), along - 0.5)
    sideways = np.where(np.abs(half) > 1e-9, (np.cos(angle) - np.cos(turned)) / (2 * np.sin(turned)), 0.0)
    chord = ends[1] - ends[0]
    normal = np.stack([-chord[..., 1], chord[..., 0]], axis=-1)
    return (ends[0] + ends[1]) / 2 + forward[..., None] * chord + sideways[..., None] * normal


def made_alike(strokes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Characters in pixels, the centre of their line at the origin, its spread `SPREAD`."""
    lengths = arc_lengths(strokes)
    points = arc_points(strokes)
    weight = (lengths / lengths.sum(axis=1, keepdims=True))[..., None] / _POINTS
    centre = (points * weight[..., None]).sum(axis=(1, 2))
    spread = np.sqrt(((points - centre[:, None, None]) ** 2 * weight[..., None]).sum(axis=(1, 2, 3)))
    size = SPREAD / spread
    moved = strokes.copy()
    moved[..., 0:2] = (strokes[..., 0:2] - centre[:, None]) * size[:, None, None]
    moved[..., 2:4] = (strokes[..., 2:4] - centre[:, None]) * size[:, None, None]
    return moved


def ink_made_alike(strokes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for the ink as drawn, where strokes that meet count once.

    The centres of line and ink are up to a pixel apart: enough to tell some classes by their place alone.
    """
    moved = strokes.copy()
    for _ in range(_CORRECTIONS):
        centre, spread = ink_place(draw_ink(moved, HALF_WIDTH, _WIDE))
        for end in (0, 2):
            moved[..., end : end + 2] = (moved[..., end : end + 2] - centre[:, None]) * (SPREAD / spread)[:, None, None]
    return moved


def ink_place(ink: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre (character, 2), from the middle of the picture, and spread (character,) of ink (character, side, side)."""
    place = np.arange(ink.shape[1]) - (ink.shape[1] - 1) / 2
    total = ink.sum(axis=(1, 2))
    rows, columns = ink.sum(axis=2), ink.sum(axis=1)
    centre = np.stack([rows @ place, columns @ place], axis=1) / total[:, None]
    square = (rows @ place**2 + columns @ place**2) / total
    return centre, np.sqrt(square - (centre**2).sum(axis=1))


def signature(ink: NDArray[np.float64]) -> NDArray[np.float64]:
    """The ink (character, CANVAS, CANVAS), blurred, with zero mean and unit norm: to compare shapes by."""
    blurred: NDArray[np.float64] = _BLUR @ ink @ _BLUR.T
    blurred -= blurred.mean(axis=(1, 2), keepdims=True)
    blurred /= np.sqrt((blurred**2).sum(axis=(1, 2), keepdims=True))
    return blurred


def likeness(signatures: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest correlation of each character with any other, over small shifts, and with its mirror image.

    The mirror counts because training images are flipped.
    """
    flat = others.reshape(len(others), CANVAS * CANVAS)
    best = np.full(len(signatures), -1.0)
    for picture in (signatures, signatures[:, :, ::-1]):
        for down, right in product(_SHIFTS, _SHIFTS):
            shifted = np.roll(picture, (down, right), axis=(1, 2)).reshape(len(picture), CANVAS * CANVAS)
            best = np.maximum(best, (shifted @ flat.T).max(axis=1, initial=-1.0))
    return best


def characters(seed: int, alphabets: int, per_alphabet: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Strokes (class, stroke, 5) of all characters, alphabet by alphabet, and their half widths (class,).

    Unused strokes are NaN. Each character is the first candidate unlike all before it; more alphabets leave the
    earlier ones as they are.
    """
    chosen = np.full((alphabets * per_alphabet, max(STROKES), 5), np.nan)
    pictures = np.zeros((len(chosen), CANVAS, CANVAS))
    for alphabet in range(alphabets):
        manner = manner_of(seed, alphabet)
        for k in range(per_alphabet):
            place = alphabet * per_alphabet + k
            chosen[place, : manner.strokes], pictures[place] = _unlike(manner, pictures[:place], (seed, alphabet, k))
    return chosen, HALF_WIDTH * INK / draw_ink(chosen, HALF_WIDTH, CANVAS).sum(axis=(1, 2))


def _ink_error(ink: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each character's ink is from `INK`, relative to it."""
    error: NDArray[np.float64] = np.abs(ink.sum(axis=(1, 2)) / INK - 1)
    return error


def _unlike(
    manner: Manner, pictures: NDArray[np.float64], words: tuple[int, int, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first character in a manner that is unlike the given ones; what counts as unlike slowly weakens."""
    for attempt, limit in enumerate(np.linspace(0.75, 0.95, 41)):
        found = made_alike(candidates(manner, *words, attempt))
        # Most candidates have far too little or too much ink: the costly steps are for the others.
        found = ink_made_alike(found[_ink_error(draw_ink(found, HALF_WIDTH, CANVAS)) < 2 * INK_RANGE])
        ink = draw_ink(found, HALF_WIDTH, CANVAS)
        right = _ink_error(ink) < INK_RANGE
        found, shapes = found[right], signature(ink[right])
        fits = np.flatnonzero(likeness(shapes, pictures) < limit)
        if len(fits):
            return found[fits[0]], shapes[fits[0]]
    raise WaterjarError(
        f"glyphs: no further character unlike the {len(pictures)} before it: ask for fewer alphabets or characters"
    )
