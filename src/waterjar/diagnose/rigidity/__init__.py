"""Rigidity: the Einstellung Rigidity Index (AD, PD, SFR_rel), its controls and what they mean together.

Arrays: `adaptation_delay`, `performance_deficit`, `shortcut_reliance`. A study: `measure`. A new metric is one new
file here: a function of a `Pair` under `@metric`, which gives variables over (repeat, ...).
"""

from waterjar.diagnose.registry import Family
from waterjar.diagnose.rigidity.adaptation import adaptation_delay
from waterjar.diagnose.rigidity.composite import rigidity_composite
from waterjar.diagnose.rigidity.curves import first_epoch_at, trailing_mean
from waterjar.diagnose.rigidity.deficit import performance_deficit
from waterjar.diagnose.rigidity.export import export
from waterjar.diagnose.rigidity.measure import measure
from waterjar.diagnose.rigidity.pattern import Bounds, rigidity_pattern
from waterjar.diagnose.rigidity.reliance import shortcut_reliance
from waterjar.diagnose.rigidity.worst_group import worst_group_accuracy

FAMILY = Family(
    name="rigidity",
    title="Rigidity: the Einstellung Rigidity Index",
    scope="study",
    needs=("performance",),
    measure=measure,
    version=3,
)

__all__ = [
    "FAMILY",
    "Bounds",
    "adaptation_delay",
    "export",
    "first_epoch_at",
    "measure",
    "performance_deficit",
    "rigidity_composite",
    "rigidity_pattern",
    "shortcut_reliance",
    "trailing_mean",
    "worst_group_accuracy",
]
