"""Every metric, declared once. From here come the CLI, the report's columns and docs/metrics.md.

A family is a package (or module) of `diagnose` with a `FAMILY`; a metric is a function in it under `@metric`. Both
are found by importing what stands in the folder: a new metric is one new file.

    @metric("pd", family="rigidity", long_name="performance deficit", ...)
    def _deficit(pair: Pair) -> xr.DataArray: ...

What the decorated function is given and gives back is its family's affair: the family's `measure` calls every metric
of the family, and labels what comes back with the declaration.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from waterjar.errors import WaterjarError, unknown_name

if TYPE_CHECKING:
    import xarray as xr

Scope = Literal["run", "cell", "study"]
Direction = Literal["higher", "lower", "zero", "none"]
"""Which way is better; `zero` where any distance from 0 says something, `none` where it depends."""

ARROWS: dict[Direction, str] = {"higher": "↑", "lower": "↓", "zero": "→0", "none": ""}
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """What a metric is: enough for a table's column, a figure's axis and a line of the catalogue."""

    name: str
    family: str
    long_name: str
    formula: str
    units: str
    direction: Direction
    range: tuple[float, float]
    citation: str
    version: int
    """Raised whenever the numbers may change: results of an older version are computed again."""
    needs: tuple[str, ...]
    """What must have been recorded: groups, or `group/variable`, or `performance[eval_set]`."""
    compute: Callable[..., Any]
    summary: str = ""
    """The variable with ONE number per seed, where the metric itself has more; empty where it is that variable."""
    symbol: str = ""
    """As papers write it, if they do: AD."""
    relative: bool = False
    """Whether it is a difference to the baseline already, seed by seed: tests then are against 0."""

    @property
    def label(self) -> str:
        """For a column or an axis: symbol or name, and the arrow that says which way is better."""
        return f"{self.symbol or self.name} {ARROWS[self.direction]}".strip()

    @property
    def scalar(self) -> str:
        """The name of the variable with one number per seed."""
        return self.summary or self.name

    @property
    def attributes(self) -> dict[str, Any]:
        """What stands beside the numbers in every result."""
        low, high = self.range
        return {
            "long_name": self.long_name,
            "units": self.units,
            "direction": self.direction,
            "valid_min": low,
            "valid_max": high,
            "citation": self.citation,
            "version": self.version,
        }


@dataclass(frozen=True)
class Family:
    """A group of metrics that are measured together."""

    name: str
    title: str
    scope: Scope
    """What is measured, and cached, at once: a run, a cell (its runs joined along repeat) or the whole study."""
    needs: tuple[str, ...]
    """Groups without which there is nothing to measure (`a|b`: one of them); a run that lacks them is passed over."""
    measure: Callable[..., xr.Dataset]
    """measure(run or study, **settings) -> Dataset over (cell, seed, ...) or, of one run, over (repeat, ...)."""
    version: int = 1
    """Of what the metrics share: reading, pairing, labelling."""

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings and their defaults, as the signature of `measure` has them."""
        parameters = inspect.signature(self.measure).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    @property
    def in_pieces(self) -> bool:
        """Whether `measure` takes a `Job`: it is long, and can go on where it was stopped."""
        return "job" in inspect.signature(self.measure).parameters

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, those given in the place of the defaults; an unknown one is an error."""
        for name in given:
            if name not in self.defaults:
                raise unknown_name(f"{self.name}: setting", name, self.defaults)
        full = {**self.defaults, **given}
        try:  # a result says in JSON how it was made
            json.dumps(full, default=_plain)
        except (TypeError, ValueError) as error:
            raise WaterjarError(f"{self.name}: settings are numbers, text, lists and the like: {error}") from None
        return {name: _plain(value) for name, value in full.items()}

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of this family, by name."""
        return {name: m for name, m in metrics().items() if m.family == self.name}

    @property
    def versions(self) -> str:
        """Changes whenever a number of this family may change."""
        own = {name: m.version for name, m in sorted(self.metrics.items())}
        return json.dumps({self.name: self.version, **own})


def _plain(value: Any) -> Any:
    """Numpy's numbers and arrays as Python's."""
    return value.tolist() if hasattr(value, "tolist") else value


_METRICS: dict[str, Metric] = {}


def metric(
    name: str,
    *,
    family: str,
    long_name: str,
    formula: str,
    units: str = "1",
    direction: Direction = "none",
    range: tuple[float, float] = (-math.inf, math.inf),
    citation: str,
    version: int = 1,
    needs: tuple[str, ...],
    summary: str = "",
    symbol: str = "",
    relative: bool = False,
) -> Callable[[Function], Function]:
    """Declare the decorated function as a metric; it is returned as it is."""

    def declare(function: Function) -> Function:
        declared = Metric(
            name=name,
            family=family,
            long_name=long_name,
            formula=formula,
            units=units,
            direction=direction,
            range=range,
            citation=citation,
            version=version,
            needs=needs,
            compute=function,
            summary=summary,
            symbol=symbol,
            relative=relative,
        )
        other = _METRICS.get(name)
        if other is not None and other.compute.__module__ != function.__module__:
            raise WaterjarError(
                f"metric '{name}' is declared in {other.compute.__module__} and in {function.__module__}: "
                "a name means one thing"
            )
        _METRICS[name] = declared
        return function

    return declare


@functools.cache
def families() -> dict[str, Family]:
    """Every family that stands in this package, by name."""
    import waterjar.diagnose as package  # noqa: PLC0415 - the package imports us

    found: dict[str, Family] = {}
    for item in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{item.name}")
        family = getattr(module, "FAMILY", None)
        if isinstance(family, Family):
            found[family.name] = family
            if item.ispkg:
                for inner in pkgutil.iter_modules(module.__path__):
                    importlib.import_module(f"{module.__name__}.{inner.name}")
    return dict(sorted(found.items()))


def metrics() -> dict[str, Metric]:
    """Every metric of every family, by name."""
    families()
    return dict(sorted(_METRICS.items(), key=lambda item: (item[1].family, item[0])))


def find_metric(name: str) -> Metric:
    """One metric, or an error that names the nearest."""
    known = metrics()
    if name not in known:
        raise unknown_name("metric", name, known)
    return known[name]
