"""What metrics of robustness read: what probes found at one step, of one repeat, by name and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from waterjar.diagnose.result import NOT_RECORDED, Codes, Floats, Result
from waterjar.diagnose.robustness.conditions import SEVERITIES, attack_label, shift_label

ENDS = ("", "_low", "_high")


@dataclass(frozen=True, eq=False)
class Found:
    """What one probe found: its arrays, without step and repeat."""

    arrays: Mapping[str, tuple[tuple[str, ...], Floats, Codes]] = field(default_factory=dict)
    """Name -> dimensions, values, and why some are missing."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Dimension -> names along it."""

    def number(self, name: str, *at: str) -> Result:
        """One number, by the names along its dimensions; `not_recorded` where there is none of these names."""
        if name not in self.arrays:
            return Result.missing("not_recorded", f"'{name}' was not recorded")
        dims, values, codes = self.arrays[name]
        place: list[int] = []
        for dim, label in zip(dims, at, strict=True):
            if label not in self.labels[dim]:
                return Result.missing("not_recorded", f"{dim} '{label}' was not recorded")
            place.append(self.labels[dim].index(label))
        return Result.of(values[tuple(place)], codes[tuple(place)])

    def bounded(self, name: str, *at: str) -> tuple[Result, Result, Result]:
        """A number and its bounds."""
        found = [self.number(name + end, *at) for end in ENDS]
        return found[0], found[1], found[2]


@dataclass(frozen=True, eq=False)
class RobustnessProbe:
    """What probes of robustness found at one step, of one repeat."""

    own: Found
    """/probes/robustness."""
    pairs: Found
    """/probes/robustness_pairs: the first model less each other."""
    flags: Found
    """/probes/attack_flags."""
    failure: Found
    """/probes/stream_failure."""
    axes: Mapping[str, tuple[str, ...]]
    """Names along the dimensions of curves, over all steps: model, other_model, ladder, shift, attack, eps, ..."""
    model: str
    """The model that is looked at; empty where there is none."""
    control: str
    """The model that it is held against; empty where there is none."""
    average: str
    """`<ladder>/<severity>`, of the one number per step."""
    attacked: str
    """`<attack>/<eps>`, of the one number per step; empty where nothing was attacked."""

    @property
    def clean(self) -> Result:
        """The clean accuracy of the model."""
        return self.own.number("accuracy", self.model, "clean")

    def relative_to_clean(self, number: Result) -> Result:
        """A number over the clean accuracy; `undefined` where that is 0."""
        gone = next((one for one in (number, self.clean) if one.is_missing), None)
        if gone is not None:
            return gone
        if not float(self.clean):
            return Result.missing("undefined", "nothing was right when clean")
        return Result(float(number) / float(self.clean))

    def severity_curves(self, of: Found, name: str, models: str) -> dict[str, Result]:
        """A number and its bounds over (model or other_model, ladder, shift, severity)."""
        axes = (self.axes[models], self.axes["ladder"], self.axes["shift"], tuple(map(str, SEVERITIES)))
        labels = [
            [model, shift_label(ladder, shift, int(severity))]
            for model in axes[0]
            for ladder in axes[1]
            for shift in axes[2]
            for severity in axes[3]
        ]
        return self._table(of, name, labels, [len(axis) for axis in axes])

    def attack_table(self, of: Found, name: str, models: str) -> dict[str, Result]:
        """A number and its bounds over (model or other_model, attack, eps)."""
        axes = (self.axes[models], self.axes["attack"], self.axes["eps"])
        labels = [[m, attack_label(attack, eps)] for m in axes[0] for attack in axes[1] for eps in axes[2]]
        return self._table(of, name, labels, [len(axis) for axis in axes])

    @staticmethod
    def _table(of: Found, name: str, labels: Sequence[Sequence[str]], shape: Sequence[int]) -> dict[str, Result]:
        found = {}
        for end in ENDS:
            numbers = [of.number(name + end, *at) for at in labels]
            values = np.array([float(one) for one in numbers], np.float64).reshape(shape)
            codes = np.array([one.code for one in numbers], np.uint8).reshape(shape)
            found[end] = Result.of(values, np.where(np.isnan(values) & (codes == 0), NOT_RECORDED, codes))
        return found


def with_bounds(name: str, numbers: Sequence[Result]) -> dict[str, Result]:
    """`<name>_low` and `<name>_high` of a number between its bounds."""
    return {f"{name}_low": numbers[1], f"{name}_high": numbers[2]}


def named(name: str, tables: Mapping[str, Result]) -> dict[str, Result]:
    """A table and those of its bounds by their names."""
    return {f"{name}{end}": table for end, table in tables.items()}
