"""What probes of robustness recorded in a run, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import NOT_RECORDED
from waterjar.diagnose.robustness.conditions import SEVERITIES, attack_label, condition_of
from waterjar.diagnose.robustness.flags import FLAGS
from waterjar.diagnose.robustness.inputs import Found, RobustnessProbe
from waterjar.diagnose.snapshots import RunArrays, final
from waterjar.errors import unknown_name
from waterjar.run.schema import REASON

PROBES = ("robustness", "robustness_pairs", "attack_flags", "stream_failure")
_CONTROLS = ("ensemble", "best_stream")
"""Controls in the order in which one is chosen; else the first that there is."""
_TITLES = {
    "model": "model",
    "other_model": "model that the first one is held against",
    "ladder": "ladder of severities",
    "shift": "shift",
    "severity": "severity",
    "attack": "attack",
    "eps": "largest change of a pixel",
    "failure": "streams that fail",
    "flag": "sign that slopes are hidden",
}


class LoadedProbes(Loaded):
    """The probes of one run."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        (self.run,) = unit.runs
        arrays = RunArrays(self.run)
        self.groups = {name: self.run.load(f"probes/{name}") for name in PROBES if f"probes/{name}" in self.run.groups}
        steps = sorted({int(step) for group in self.groups.values() for step in group["step"].values})
        self.place = {step: i for i, step in enumerate(steps)}
        self.axes = self._axes()
        self.settings = settings
        self.model, self.control = self._models()
        axes = {
            dim: (dim, np.array(names, np.int64 if dim == "severity" else object), {"long_name": _TITLES[dim]})
            for dim, names in self.axes.items()
        }
        about = {"robustness_model": self.model, "robustness_control": self.control}
        super().__init__(unit, {"snapshot": steps, **arrays.coordinates(steps), **axes}, about)

    def _axes(self) -> dict[str, tuple[Any, ...]]:
        """Names along the dimensions of curves, of what was recorded."""

        def of(group: str, dim: str) -> tuple[str, ...]:
            found = self.groups.get(group)
            return () if found is None or dim not in found.coords else tuple(map(str, found[dim].values))

        conditions = [condition_of(label) for label in of("robustness", "condition")]
        shifts = [one for one in conditions if one.kind == "shift"]
        attacks = [one for one in conditions if one.kind == "attack"]
        return {
            "model": of("robustness", "model"),
            "other_model": of("robustness_pairs", "other_model"),
            "ladder": tuple(dict.fromkeys(one.ladder for one in shifts)),
            "shift": tuple(dict.fromkeys(one.name for one in shifts)),
            "severity": SEVERITIES,
            "attack": tuple(dict.fromkeys(one.name for one in attacks)),
            "eps": tuple(dict.fromkeys(one.eps for one in attacks)),
            "failure": of("stream_failure", "failure"),
            "flag": tuple(FLAGS),
        }

    def _models(self) -> tuple[str, str]:
        """The model that is looked at, and its control; empty where there is none."""
        models, others = self.axes["model"], self.axes["other_model"]
        wanted, against = self.settings.model, self.settings.control
        if wanted is not None and models and wanted not in models:
            raise unknown_name(f"{self.run.path}: model", wanted, models)
        if against is not None and others and against not in others:
            raise unknown_name(f"{self.run.path}: control", against, others)
        control = next((name for name in (*_CONTROLS, *others) if name in others), "")
        return wanted or (models[0] if models else ""), against or control

    def inputs(self, wanted: Collection[type]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        """One of every repeat and step."""
        settings = self.settings
        eps = settings.epsilon if settings.epsilon is not None else next(iter(self.axes["eps"]), "")
        shown = eps if isinstance(eps, str) else f"{eps:g}"
        readers = {name: _Reader(group) for name, group in self.groups.items()}
        for repeat in range(len(self.run.seeds)):
            for step, place in self.place.items():
                own, pairs, flags, failure = (
                    readers[name].at(step, repeat) if name in readers else Found() for name in PROBES
                )
                yield (
                    RobustnessProbe(
                        own,
                        pairs,
                        flags,
                        failure,
                        {dim: tuple(map(str, names)) for dim, names in self.axes.items()},
                        self.model,
                        self.control if self.axes["model"][:1] == (self.model,) else "",
                        f"{settings.ladder}/{settings.severity}",
                        attack_label(settings.attack, shown) if shown else "",
                    ),
                    (repeat, place),
                )

    def summary(self, metric: Metric, table: Table) -> Variables:
        """The value at the last step at which its own probe was taken."""
        group = self.groups.get(metric.needs[0].partition("/")[2])
        if group is None or not group.sizes["step"]:
            shape = (len(table.values), 1)
            return final(metric, np.full(shape, np.nan), np.full(shape, NOT_RECORDED, np.uint8))
        at = self.place[int(group["step"].values[-1])]
        return final(metric, table.values[:, [at]], table.reasons[:, [at]])


class _Reader:
    """The arrays of one probe, by step and repeat."""

    def __init__(self, group: xr.Dataset) -> None:
        self.steps = {int(step): i for i, step in enumerate(group["step"].values)}
        self.tables = {
            str(name): (
                tuple(map(str, array.dims)),
                array.values.astype(np.float64),
                reasons_of(group, str(name)).values,
            )
            for name, array in group.data_vars.items()
            if not str(name).endswith(REASON) and array.dims[:2] == ("step", "repeat")
        }
        self.labels = {
            str(dim): tuple(map(str, group[dim].values)) for dim in group.sizes if dim in group.coords and dim != "step"
        }

    def at(self, step: int, repeat: int) -> Found:
        if step not in self.steps:
            return Found()
        row = self.steps[step], repeat
        arrays = {
            name: (dims[2:], np.asarray(values[row]), np.asarray(codes[row]))
            for name, (dims, values, codes) in self.tables.items()
        }
        return Found(arrays, self.labels)
