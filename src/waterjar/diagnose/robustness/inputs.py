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

    def table(self, name: str, first: Sequence[str], second: Sequence[str], shape: tuple[int, ...]) -> Result:
        """Numbers over (first, *shape), of names along the two dimensions that they have; as `number` has them."""
        values = np.full((len(first), len(second)), np.nan)
        codes = np.full(values.shape, NOT_RECORDED, np.uint8)
        if name in self.arrays:
            dims, own, why = self.arrays[name]
            known = [{label: place for place, label in enumerate(self.labels[dim])} for dim in dims]
            rows = [i for i, label in enumerate(first) if label in known[0]]
            columns = [i for i, label in enumerate(second) if label in known[1]]
            at = np.ix_([known[0][first[i]] for i in rows], [known[1][second[i]] for i in columns])
            values[np.ix_(rows, columns)], codes[np.ix_(rows, columns)] = own[at], why[at]
        return Result.of(values.reshape(len(first), *shape), codes.reshape(len(first), *shape))

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
        ladders, shifts = self.axes["ladder"], self.axes["shift"]
        labels = [shift_label(ladder, shift, level) for ladder in ladders for shift in shifts for level in SEVERITIES]
        shape = len(ladders), len(shifts), len(SEVERITIES)
        return {end: of.table(name + end, self.axes[models], labels, shape) for end in ENDS}

    def attack_table(self, of: Found, name: str, models: str) -> dict[str, Result]:
        """A number and its bounds over (model or other_model, attack, eps)."""
        attacks, radii = self.axes["attack"], self.axes["eps"]
        labels = [attack_label(attack, eps) for attack in attacks for eps in radii]
        return {end: of.table(name + end, self.axes[models], labels, (len(attacks), len(radii))) for end in ENDS}


def with_bounds(name: str, numbers: Sequence[Result]) -> dict[str, Result]:
    """`<name>_low` and `<name>_high` of a number between its bounds."""
    return {f"{name}_low": numbers[1], f"{name}_high": numbers[2]}


def named(name: str, tables: Mapping[str, Result]) -> dict[str, Result]:
    """A table and those of its bounds by their names."""
    return {f"{name}{end}": table for end, table in tables.items()}
