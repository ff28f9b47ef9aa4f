"""Shifts: images as a camera, the weather or a careless hand might have left them.

    shift(images, "blur", severity=3)                          pixels in [0, 1] in, and out
    shift(images, "contrast", severity=2, ladder="cifar_c")
    shift(images, fog, severity=4)                             fog(images, severity, draws) is a function of yours

Two ladders of severities 1 to 5. `seed` is that of the seed document, whose values (standard deviation 0.1, contrast
0.5, kernel 5, 30 degrees) stand at severity 3 and are scaled for the others. torchvision, whose transforms it names,
DRAWS: a contrast factor from U[0.5, 1.5], a blur of sigma from U[0.1, 2], an angle from U[-30, 30]; so do we, from a
seed.
`cifar_c` has the fixed values of CIFAR-10-C (Hendrycks & Dietterich 2019); it has no rotation.

What is drawn for an image depends on the seed, its number, the shift and the severity: not on the batch.

Every shift is a file here with `LADDERS`: name of a ladder -> a function (images, level, draws) -> images and its five
levels. Images are tensors (sample, channel, row, column); what leaves [0, 1] is clipped, as a camera would.
"""

from __future__ import annotations

from waterjar.probe.shifts._apply import OWN, SEVERITIES, SHELF, Shift, ladders_of, on_ladder, shift

__all__ = ["OWN", "SEVERITIES", "SHELF", "Shift", "ladders_of", "on_ladder", "shift"]
