"""Images per CPU second of augmentation, patch and normalisation: one core, batch 32."""

from __future__ import annotations

import time

import numpy as np
import torch

from waterjar.lab import augmentation
from waterjar.lab.augmentation import AugmentationSettings
from waterjar.lab.counter_hash import epoch_order, hash_words
from waterjar.lab.shortcuts import build, inject_where, selected

COUNT, BATCH, ROUNDS = 20_000, 32, 5
MEAN, STD = torch.tensor([0.5071, 0.4867, 0.4408]), torch.tensor([0.2675, 0.2565, 0.2761])


def images_per_second(settings: AugmentationSettings, images: np.ndarray, patched: bool) -> float:
    """The best of some rounds: noise only ever makes it slower."""
    index = np.arange(COUNT, dtype=np.int64)
    shortcut = build("patch", (32, 32))
    seconds = []
    for epoch in range(ROUNDS + 1):  # the first one compiles
        start = time.process_time()
        order = epoch_order(0, "t1", epoch, COUNT)
        parameters = augmentation.epoch_parameters(settings, 0, "t1", epoch, index[order], image_size=(32, 32))
        carries = selected(shortcut, index[order], "train", 0.5)
        for first in range(0, COUNT, BATCH):
            batch = slice(first, first + BATCH)
            floats = augmentation.apply(images, parameters[batch], rows=order[batch])
            if patched:
                floats = inject_where(shortcut, floats, index[order[batch]], "train", carries[batch])
            augmentation.normalise(floats, MEAN, STD)
        seconds.append(time.process_time() - start)
    return COUNT / min(seconds[1:])


def main() -> None:
    torch.set_num_threads(1)
    images = (hash_words("bench", np.arange(COUNT * 384)).view(np.uint8)).reshape(COUNT, 32, 32, 3)
    for name, settings in (("crop, flip", augmentation.CROP_FLIP), ("T1", augmentation.T1)):
        for patched in (False, True):
            speed = images_per_second(settings, images, patched)
            print(f"{name:12} {'with patch' if patched else 'no patch':12} {speed:12,.0f} images / CPU second")


if __name__ == "__main__":
    main()
