"""What a spawned worker does with a cached image set.

Of its own name: a worker imports it anew, and other people's packages install a `tests` that stands before ours.
"""

from __future__ import annotations

from pathlib import Path

from waterjar.lab.data import from_cache


def open_in_worker(directory: str) -> tuple[int, float]:
    """Checksum of the images a worker sees, and the share of its map that is private memory."""
    data = from_cache(directory)
    total = int(data.train_images.sum())
    size = private = 0
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            inside = line.endswith("train_images.npy")
        elif inside and line.startswith("Size:"):
            size += int(line.split()[1])
        elif inside and line.startswith("Private_Dirty:"):
            private += int(line.split()[1])
    return total, private / size
