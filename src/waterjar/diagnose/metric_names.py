"""What a metric may be called, it and the variables that it gives."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from waterjar.errors import WaterjarError

if TYPE_CHECKING:
    from waterjar.diagnose.registry import Metric

_TAKEN = ("repeat", "seed", "cell", "name", "scenario", "run", "directory", "step", "snapshot", "layer", "group")
"""Names of dimensions and labels of results."""


def refuse_names(declared: Metric, metrics: Iterable[Metric], families: Collection[str]) -> None:
    """Refuse names that stand for something else already: another metric's numbers must not be written over."""
    own = {declared.name, declared.scalar, *declared.beside}
    for name in sorted(own):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name.endswith(("_reason", "_se")):
            raise WaterjarError(
                f"metric '{declared.name}': {name!r}: expected a name of small letters, digits and _, which does not "
                "end in _reason or _se"
            )
        if name in _TAKEN or name in families:
            raise WaterjarError(f"metric '{declared.name}': '{name}' is the name of something else; expected another")
    for other in metrics:
        shared = own & {other.name, other.scalar, *other.beside}
        if other.name != declared.name and other.family == declared.family and shared:
            raise WaterjarError(f"metric '{declared.name}': '{min(shared)}' is of the metric '{other.name}'")
