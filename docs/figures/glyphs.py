"""Draw docs/figures/glyphs.png: a row per alphabet, its five characters, four samples of each."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from waterjar.lab.data import load

SAMPLES, GAP = 4, 2


def main() -> None:
    """Tile the images into one picture; gaps separate characters, thin lines samples."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  # after the backend is chosen

    data = load("glyphs", train_per_class=SAMPLES, test_per_class=1)
    alphabets, characters = len(data.superclass_names), len(data.class_names) // len(data.superclass_names)
    side = data.image_size[0]
    cell = SAMPLES * (side + 1) + 4 * GAP
    sheet = np.full((alphabets * (side + GAP), characters * cell, 3), 255, dtype=np.uint8)
    for row, label in enumerate(data.train_labels):
        alphabet, character = divmod(int(label), characters)
        top, left = alphabet * (side + GAP), character * cell + (row % SAMPLES) * (side + 1)
        sheet[top : top + side, left : left + side] = data.train_images[row]
    figure, axes = plt.subplots(figsize=(9.6, 5.6), layout="constrained")
    axes.imshow(sheet, interpolation="nearest")
    axes.set_yticks(np.arange(alphabets) * (side + GAP) + side / 2, [f"alphabet {k}" for k in range(alphabets)])
    centres = np.arange(characters) * cell + SAMPLES * (side + 1) / 2
    axes.set_xticks(centres, [f"character {k}" for k in range(characters)])
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=9)
    axes.spines[:].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
