"""A few images as a network sees them, beside the runs of a study: for whoever has never heard of the experiment.

They are no part of a run, nor of its seal; a report shows whatever PNG files stand in the study's folder `pictures`.
"""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from waterjar.errors import UnwrittenError
from waterjar.lab.evaluation import EvaluationSet, Normalisation, Treatment, treated
from waterjar.lab.shortcuts import Fill
from waterjar.lab.tasks import TwoTasks
from waterjar.run.disk import write_file

FOLDER = "pictures"
_SIDE = 96
"""Pixels that a small image is enlarged to, at least."""


_AS_THEY_ARE = Normalisation(torch.zeros(3), torch.ones(3))
_WANTED: tuple[tuple[str, Treatment], ...] = (
    ("1 T1, {}", "clean"),
    ("2 T2, {}", "clean"),
    ("3 T2, {} with the shortcut", "patched"),
    ("4 T2, {} masked", "masked"),
)


def show_images(tasks: TwoTasks, folder: Path, fill: Fill) -> None:
    """Write one image of T1, and one of T2's shortcut classes as it is, with the shortcut, and with it masked.

    Files that are there stay: all runs of a study show the same. A disk that takes none costs no training.
    """
    labels = tasks.labels["test"]
    of_t1 = np.flatnonzero((labels >= 0) & (labels < tasks.n_t1))[:1]
    with_cue = np.flatnonzero((labels >= tasks.n_t1) & tasks.is_shortcut[labels])[:1]
    for task, (words, treatment) in zip((0, 1, 1, 1), _WANTED, strict=True):
        rows = with_cue if task else of_t1
        if not len(rows):
            continue
        name = re.sub(r"[^A-Za-z0-9 _-]+", " ", tasks.class_names[labels[rows[0]]])[:40]
        target = folder / f"{words.format(name)}.png"
        if target.exists():
            continue
        chosen = EvaluationSet(treatment, task, "test", rows, treatment)
        seen = treated(tasks, chosen, rows, _AS_THEY_ARE, fill)[0]
        pixels = (seen.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
        try:
            write_file(target, as_png(pixels))
        except UnwrittenError:
            return


def as_png(pixels: NDArray[np.uint8]) -> bytes:
    """(row, column, 3) as a PNG, small images enlarged by a whole number."""
    times = max(1, -(-_SIDE // max(pixels.shape[:2])))
    large = pixels.repeat(times, 0).repeat(times, 1)
    height, width = large.shape[:2]
    raw = b"".join(b"\0" + line.tobytes() for line in large)  # every line unfiltered
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
