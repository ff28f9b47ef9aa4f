"""Cue conflict: the shortcut on images of classes that it does not belong to."""

from __future__ import annotations

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import minus


@metric(
    "cue_conflict",
    family="rigidity",
    long_name="accuracy lost where the shortcut contradicts the image",
    formula="A*(t2_nonshortcut_normal) - A*(t2_nonshortcut_patched)",
    direction="zero",
    range=(-1.0, 1.0),
    citation="Geirhos et al. 2019, ImageNet-trained CNNs are biased towards texture",
    needs=("performance[t2_nonshortcut_normal]", "performance[t2_nonshortcut_patched]"),
    made_of=("nonshortcut_accuracy",),
)
def _conflict(pair: Pair) -> Result:
    return minus(pair.final("nonshortcut"), pair.final("nonshortcut_patched"))
