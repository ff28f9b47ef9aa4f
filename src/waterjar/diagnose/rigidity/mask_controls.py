"""Controls: what a mask does by itself, so that its damage is not called reliance."""

from __future__ import annotations

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.quantities import minus

_SOURCE = "waterjar, after Gu & Shi, The Einstellung Rigidity Index"


@metric(
    "mask_damage",
    family="rigidity",
    long_name="what the same mask costs classes that never carried the shortcut",
    formula="A*(t2_nonshortcut_normal) - A*(t2_nonshortcut_masked)",
    direction="zero",
    range=(-1.0, 1.0),
    citation=_SOURCE,
    needs=("performance[t2_nonshortcut_normal]", "performance[t2_nonshortcut_masked]"),
    made_of=("nonshortcut_accuracy",),
)
def _on_other_classes(pair: Pair) -> Result:
    return minus(pair.final("nonshortcut"), pair.final("nonshortcut_masked"))


@metric(
    "random_mask_damage",
    family="rigidity",
    long_name="what a mask of equal area elsewhere costs the shortcut classes, the shortcut left visible",
    formula="A*(t2_shortcut_normal) - A*(t2_shortcut_random_mask)",
    direction="zero",
    range=(-1.0, 1.0),
    citation=_SOURCE,
    needs=("performance[t2_shortcut_normal]", "performance[t2_shortcut_random_mask]"),
    made_of=("patched_accuracy", "random_mask_accuracy"),
)
def _elsewhere(pair: Pair) -> Result:
    return minus(pair.final("normal"), pair.final("random_mask"))


@metric(
    "cue_gain",
    family="rigidity",
    long_name="what the shortcut adds to the clean image; no mask is involved, and a black square is itself a cue",
    formula="A*(t2_shortcut_normal) - A*(t2_shortcut_clean)",
    direction="zero",
    range=(-1.0, 1.0),
    citation=_SOURCE,
    needs=("performance[t2_shortcut_normal]", "performance[t2_shortcut_clean]"),
    made_of=("patched_accuracy", "clean_accuracy"),
)
def _over_clean(pair: Pair) -> Result:
    return minus(pair.final("normal"), pair.final("clean"))
