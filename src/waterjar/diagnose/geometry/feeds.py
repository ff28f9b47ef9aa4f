"""What a run, and the settings, need so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack
from waterjar.diagnose.geometry.snapshot import PLAIN
from waterjar.run.reader import Run

_SIMULATED = ("simulated_capacity", "capacity_relative_error")
_CROWDED = 2
"""Points per unit from which on a direction may well lie inside the cone of points whose classes are not well apart:
half of 2 N random points in N dimensions can be parted (Cover 1965), which then leaves half of the directions inside.
"""
_MANY = 4
"""Points per unit from which on they are too many for any layer of that width, whose units never all live: taking fewer
helps then. Below, dormant units are as likely the reason, and the samples that are left silence the same ones.
"""


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """Capacity is simulated on request alone; and many points in few dimensions have no anchors of their own."""
    yield from _crowded(run, settings)
    if settings.simulate_every is None:
        yield Lack("capacity is not simulated", "--set geometry.simulate_every=1", _SIMULATED, is_telling=False)


def _crowded(run: Run, settings: Any) -> Iterator[Lack]:
    """Layers with far fewer units than samples that count, by their shapes; whether it shows, the classes decide."""
    points, classes, crowded, overfull = 0, len(run.attributes.get("classes") or ()), {}, []
    manifolds = classes * (len(_sets(run, settings)) if settings.manifolds == "task_class" else 1)
    for key, node in run.nodes.items():
        if key.startswith("features/") and key.endswith("/features") and node["node_type"] == "array":
            layer = key.removeprefix("features/").removesuffix("/features")
            *_, recorded, samples, units = node["shape"]
            found = min(recorded, len(_sets(run, settings))) * samples
            if settings.subsamples is not None and manifolds:
                found = min(found, settings.subsamples * manifolds)
            if found >= _CROWDED * units > 0 and (settings.layers is None or layer in settings.layers):
                crowded[layer], points = units, max(points, found)
                overfull += [units] if found >= _MANY * units else []
    if crowded:
        shown = ", ".join(f"{layer} ({units})" for layer, units in list(crowded.items())[:3])
        more = f" and {len(crowded) - 3} more" if len(crowded) > 3 else ""
        fewer = max(min(overfull) // manifolds, 2) if overfull and manifolds else 0
        helps = 0 < fewer * manifolds < _MANY * min(overfull, default=0)
        yield Lack(
            f"up to {points} samples in a layer of few units, {shown}{more}: dimension, radius and alignments may be "
            "missing where units are few or dormant (inside_cone, not_unique)",
            "a wider layer"
            + (f"; if no unit is dormant, fewer samples (--set geometry.subsamples={fewer})" if helps else ""),
            (),
        )


def _sets(run: Run, settings: Any) -> list[str]:
    """The eval sets whose samples count: those asked for, else those called `..._all` or `..._normal`, else all."""
    sets = list(run.attributes["probe_sets"])
    if settings.eval_sets is not None:
        return [name for name in sets if name in settings.eval_sets]
    return [name for name in sets if name.endswith(PLAIN)] or sets
