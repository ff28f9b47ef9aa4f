"""Every metric, declared once. From here come the command line, the report's columns and docs/metrics.md.

A family is a package (or module) of `diagnose` with a `FAMILY`: it says which inputs it can build of what a run has
recorded. A metric is a function under `@metric`: the type of its first argument names the input that it reads, `dims`
the dimensions of what it gives, and its keyword arguments the settings of the family that it takes.

    @metric("spread", family="plasticity", long_name="...", formula="...", citation="...", summary="spread_final")
    def spread(features: Representation) -> Result: ...

The family builds each input once and hands it to all metrics that read it. A metric that asks for what its family
cannot build, or for a setting or dimension that it does not have, is refused when it is declared. All are found by
importing what stands in the family's folder: a new metric is one new file.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from waterjar.diagnose.declaration import reads, refuse_names, refuse_parts, refuse_unfit, refuse_words
from waterjar.diagnose.outside import SHELF, declare_from_outside
from waterjar.errors import WaterjarError, unknown_name

if TYPE_CHECKING:
    import xarray as xr

    from waterjar.diagnose.feeds import Lack
    from waterjar.diagnose.measuring import Loaded, Unit
    from waterjar.run.reader import Run

Scope = Literal["run", "cell"]
Direction = Literal["higher", "lower", "zero", "none"]
"""Which way is better; `zero` where both sides of 0 are findings, `none` where it depends."""
OnLoss = Literal["same", "flipped", "undefined"]
IntervalBy = Literal["t", "auto"]

ARROWS: dict[Direction, str] = {"higher": "↑", "lower": "↓", "zero": "→0", "none": ""}
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Beside:
    """A further variable that a metric gives: its dimensions behind those of the input, and what it is."""

    dims: tuple[str, ...] = ()
    long_name: str = ""
    units: str = "1"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else stands beside its numbers, such as a direction."""

    @property
    def labels(self) -> dict[str, Any]:
        """The attributes of the variable."""
        found = {"long_name": self.long_name, "units": self.units, **self.attributes}
        return {key: value for key, value in found.items() if value}


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
    """What must have been recorded: groups, or `group/variable` of the schema, or `performance[eval_set]`."""
    compute: Callable[..., Any]
    """compute(input, **settings) -> Result, or (Result, {name: Result}) where there is more `beside` it."""
    input: type
    """What it reads: the type of its first argument."""
    dims: tuple[str, ...] = ()
    """Of what it gives, behind those that the input has its place in."""
    takes: tuple[str, ...] = ()
    """Settings of the family that it takes by keyword."""
    summary: str = ""
    """The variable with ONE number per seed, where the metric itself has more; empty where it is that variable."""
    symbol: str = ""
    """As papers write it, if they do: AD."""
    unlike: str = ""
    """What its name may be taken for, where it is something else; said beside it in tables."""
    relative: bool = False
    """Whether it is a difference to the baseline already, seed by seed: tests then are against 0."""
    matters: int = 0
    """Its place among the few of its family that are shown where nobody names any; 0 for the others."""
    beside: Mapping[str, Beside] = field(default_factory=dict)
    on_loss: OnLoss = "undefined"
    """Of a loss in the place of an accuracy: as it is, with the other direction, or without a meaning."""
    loss_units: str = ""
    """Units of a loss, where the metric has those of what it is made of."""
    loss_name: str = ""
    """Its long name where it is made of losses, if that of accuracies would mislead."""
    optional: str = ""
    """The setting that asks for it, such as rigidity.composite=true: else it is not in the result at all."""
    between_seeds: bool = False
    """Whether it compares seeds with each other, so that one seed's value depends on the others."""
    interval: IntervalBy = "t"
    """How its mean over seeds is bounded: by t, or by t below ten seeds and the BCa bootstrap from there (`auto`)."""
    made_of: tuple[str, ...] = ()
    """Metrics, or what others are made of, that it is a sum, difference or ratio of; see `coupled`."""
    same_as: Callable[[Any], str] | None = None
    """same_as(result of its family): the metric that it is by definition there, or nothing; then the two count once."""
    origin: str = ""
    """The package and its version, of a metric from outside."""

    @property
    def edition(self) -> int | str:
        """Changes whenever its numbers may: the version, and of a metric from outside that of its package, too."""
        return f"{self.version} of {self.origin}" if self.origin else self.version

    @property
    def label(self) -> str:
        """For a column or an axis: symbol or name, and the arrow that says which way is better."""
        return f"{self.symbol or self.name} {ARROWS[self.direction]}".strip()

    @property
    def caution(self) -> str:
        """What must stand beside a name that misleads: what it is, which way is better, what it is not; else empty."""
        return f"{self.label}: {self.long_name}; {self.unlike}" if self.unlike else ""

    @property
    def scalar(self) -> str:
        """The name of the variable with one number per seed."""
        return self.summary or self.name

    @property
    def own_range(self) -> tuple[float, float]:
        """The range that the interval of a cell's mean keeps to; that of a difference to the baseline is a plain t."""
        return (-math.inf, math.inf) if self.relative else self.range

    @property
    def bounding(self) -> dict[str, Any]:
        """How the mean over seeds is bounded: settings of `stats.mean_interval`."""
        return {"within": self.own_range, "method": self.interval}

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
            "version": self.edition,
        }


@dataclass(frozen=True)
class Family:
    """A group of metrics that are measured together, of inputs that are built once."""

    name: str
    title: str
    scope: Scope
    """What is measured, and cached, at once: a run, or a cell (its runs joined along repeat)."""
    needs: tuple[str, ...]
    """Groups without which there is nothing to measure (`a|b`: one of them); a run that lacks them is passed over."""
    inputs: Mapping[type, tuple[str, ...]]
    """Every input that it can build -> the dimensions along which there is one of it; the first is `repeat`."""
    load: Callable[[Unit, Any], Loaded]
    """load(unit, settings): what is read of a unit."""
    signature: Callable[..., Any]
    """The function whose keyword arguments are the settings: names, types and defaults."""
    dims: tuple[str, ...] = ()
    """Dimensions that a metric may have behind those of its input, beside those that other inputs have."""
    version: int = 1
    """Of what the metrics share: reading, pairing, labelling."""
    compared: bool = False
    """Whether a cell is measured beside its baseline; it has a setting `baseline` then."""
    in_pieces: bool = False
    """Whether it is long, and goes on where it was stopped: `load` hands its work to the unit's `pieces`."""
    check: Callable[[Any], None] | None = None
    """Refuses settings that do not fit together."""
    feeds: Callable[[Run, Any], Iterable[Lack]] | None = None
    """feeds(run, settings): what a run lacks beside the `needs`, told from names and shapes alone (see `feeds`)."""

    def __post_init__(self) -> None:
        for declared in [m for m in _METRICS.values() if m.family == self.name]:
            refuse_unfit(declared, self)
        _FAMILIES[self.name] = self

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings and their defaults."""
        from waterjar.diagnose.settings import plain  # noqa: PLC0415 - pydantic takes its time

        return {name: plain(field.default) for name, field in self.settings_model.model_fields.items()}

    @functools.cached_property
    def settings_model(self) -> Any:
        """The settings as a pydantic model."""
        from waterjar.diagnose.settings import model_of  # noqa: PLC0415

        return model_of(self.signature, self.name)

    def settings(self, given: Mapping[str, Any]) -> Any:
        """All settings, those given in the place of the defaults, checked; what is wrong is one clear error."""
        from waterjar.diagnose.settings import parse  # noqa: PLC0415

        found = parse(self.settings_model, given, self.name)
        if self.check is not None:
            self.check(found)
        return found

    def measure(self, source: Any, **settings: Any) -> xr.Dataset:
        """Measure a run, over (repeat, ...), or a study, over (cell, seed, ...); nothing is kept."""
        from waterjar.diagnose.measuring import measure  # noqa: PLC0415

        return measure(self, source, settings)

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of this family, by name."""
        families()
        return {name: _METRICS[name] for name in sorted(_METRICS) if _METRICS[name].family == self.name}

    @property
    def versions(self) -> str:
        """Changes whenever a number of this family may change."""
        own = {name: m.edition for name, m in sorted(self.metrics.items())}
        return json.dumps({self.name: self.version, **own})


_METRICS: dict[str, Metric] = {}
_FAMILIES: dict[str, Family] = {}


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
    dims: tuple[str, ...] = (),
    summary: str = "",
    symbol: str = "",
    unlike: str = "",
    relative: bool = False,
    matters: int = 0,
    beside: Mapping[str, Beside] | None = None,
    on_loss: OnLoss = "undefined",
    loss_units: str = "",
    loss_name: str = "",
    optional: str = "",
    between_seeds: bool = False,
    interval: IntervalBy = "t",
    made_of: tuple[str, ...] = (),
    same_as: Callable[[Any], str] | None = None,
) -> Callable[[Function], Function]:
    """Declare the decorated function as a metric; it is returned as it is."""

    def declare(function: Function) -> Function:
        read, takes = reads(name, function)
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
            input=read,
            dims=dims,
            takes=takes,
            summary=summary,
            symbol=symbol,
            unlike=unlike,
            relative=relative,
            matters=matters,
            beside=beside or {},
            on_loss=on_loss,
            loss_units=loss_units,
            loss_name=loss_name,
            optional=optional,
            between_seeds=between_seeds,
            interval=interval,
            made_of=made_of,
            same_as=same_as,
        )
        other = _METRICS.get(name)
        if other is not None and other.compute.__module__ != function.__module__:
            raise WaterjarError(
                f"metric '{name}' is declared in {other.compute.__module__} and in {function.__module__}: "
                "a name means one thing"
            )
        refuse_names(declared, _METRICS.values(), _FAMILIES)
        refuse_words(declared)
        if family in _FAMILIES:
            refuse_unfit(declared, _FAMILIES[family])
        if families.cache_info().currsize:  # all are there: nothing will come that it is of
            if family not in _FAMILIES:
                raise unknown_name(f"metric '{name}': family", family, families())
            refuse_parts(declared, _METRICS.values())
        _METRICS[name] = declared
        return function

    return declare


def forget(name: str) -> None:
    """Take a metric out of the registry again: for tests, and notebooks that try one out."""
    _METRICS.pop(name, None)


@functools.cache
def families() -> dict[str, Family]:
    """Every family that stands in this package, by name; its metrics, and those from outside, are declared then."""
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
    for declared in _METRICS.values():
        refuse_parts(declared, _METRICS.values())
    declare_from_outside(_METRICS, _FAMILIES)
    return dict(sorted(found.items()))


def metrics() -> dict[str, Metric]:
    """Every metric of every family, by name."""
    families()
    return dict(sorted(_METRICS.items(), key=lambda item: (item[1].family, item[0])))


def find_metric(name: str) -> Metric:
    """One metric by its name, or by its symbol as it is printed (`ACC`); else an error that names the nearest.

    >>> find_metric("ACC").name
    'average_accuracy'
    """
    families()
    if name in _METRICS:
        return _METRICS[name]
    named = _by_symbol(name)
    if len(named) > 1:
        raise WaterjarError(f"metric '{name}' is the symbol of several: write {' or '.join(named)}")
    if not named:
        raise SHELF.absent(name, metric_words())
    return _METRICS[named[0]]


def metric_name(word: str) -> str:
    """The name of the metric that a word stands for: a name, or a symbol of one metric; any other word as it is.

    >>> metric_name("BWT"), metric_name("rigidity")
    ('backward_transfer', 'rigidity')
    """
    families()
    return word if word in _METRICS or not _by_symbol(word) else find_metric(word).name


def metric_words() -> list[str]:
    """All words that a metric goes by: names, and behind them the symbols."""
    found = metrics()
    return list(dict.fromkeys([*found, *(one.symbol for one in found.values() if one.symbol)]))


def _by_symbol(word: str) -> list[str]:
    return [name for name, one in _METRICS.items() if word and one.symbol == word]


def find_family(name: str) -> Family:
    """One family, or an error that names the nearest."""
    if name not in families():
        raise unknown_name("family", name, families())
    return families()[name]
