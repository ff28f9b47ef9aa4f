"""How numbers are written, in tables, reports and on the command line: with units, intervals and how many seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from waterjar.diagnose.registry import ARROWS, Metric
from waterjar.run.notebook import counted
from waterjar.view.short_names import short

__all__ = [
    "counted",
    "estimate",
    "estimate_or_reason",
    "label",
    "listed",
    "long_label",
    "no_width",
    "number",
    "one_line",
    "panel_title",
    "quantity",
    "shorten",
    "size_of",
]

_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_NONE = "–"
_NOISE = 1e-12
"""Beside what it belongs to (its interval, the size of its values), less than this is rounding, and is written as 0."""
_APART = ("n =", "the same in all", "spread unknown", "between")
"""What small print begins with that running text sets off by a comma."""


def number(value: float) -> str:
    """Three decimals near 1, three digits elsewhere; a dash where there is none.

    >>> [number(x) for x in (0.12345, -13.81, 1.23e9, 0.00004, float("nan"))]
    ['0.123', '−13.8', '1.23 × 10⁹', '4 × 10⁻⁵', '–']
    """
    if math.isnan(value):
        return _NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value != 0 and not 5e-4 <= abs(value) < 1e5:
        mantissa, _, power = f"{value:.3g}".partition("e")
        if not power:
            return mantissa.replace("-", "−")
        raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{mantissa} × 10{raised}".replace("-", "−")
    return (f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}").replace("-", "−")


def quantity(value: float, units: str = "1") -> str:
    """A number in its units; bytes as MB and the like.

    >>> quantity(6.27e6, "byte"), quantity(90.0, "s"), quantity(0.5)
    ('6.27 MB', '90.0 s', '0.500')
    """
    if math.isnan(value):
        return _NONE
    if units == "byte":
        for size, word in _SIZES:
            if abs(value) >= size:
                return f"{value / size:.3g} {word}"
        return f"{value:.0f} B"
    return number(value) if units in ("1", "") else f"{number(value)} {units}"


def estimate(
    mean: float,
    low: float,
    high: float,
    n: int | None = None,
    units: str = "1",
    *,
    scale: float = 0.0,
    between_seeds: bool = False,
) -> str:
    r"""A mean, its interval, and how many seeds it is from. What tables may set in small print stands after a newline.

    `scale` is how large such values are (see `size_of`): what is nothing beside it, or beside the interval, is
    rounding, and is written as 0. A metric that compares seeds with each other (`between_seeds`) is the same in two of
    them by construction, which is not said to be a finding.

    >>> estimate(0.5, 0.4, 0.6, 3)
    '0.500\n[0.400, 0.600], n = 3'
    >>> estimate(0.5, float("nan"), float("nan"), 1)
    '0.500\nn = 1'
    >>> estimate(0.5, 0.5, 0.5, 3)
    '0.500\nthe same in all 3 seeds'
    >>> estimate(1.7e-18, -20.0, 20.0, 3), estimate(1.7e-18, float("nan"), float("nan"), 1, scale=1.0)
    ('0.000\n[−20.0, 20.0], n = 3', '0.000\nn = 1')
    >>> estimate(0.5, 0.5, 0.5, 2, between_seeds=True)
    '0.500\nbetween 2 seeds'
    """
    known = [abs(value) for value in (scale, low, high) if math.isfinite(value)]
    mean, low, high = (0.0 if abs(value) < _NOISE * max(known) else value for value in (mean, low, high))
    seeds = "" if n is None else f"n = {n}"
    if math.isnan(mean):
        return _NONE + (f"\n{seeds}" if n else "")
    if math.isnan(low) or math.isnan(high):
        return quantity(mean, units) + (f"\n{seeds}" if seeds else "")
    if no_width(low, high, scale):
        # no spread was seen, which is not to say that there is none: brackets without width would claim that
        alike = f"between {n} seeds" if between_seeds else f"the same in all {n} seeds"
        return f"{quantity(mean, units)}\n" + (alike if n else "spread unknown")
    # a mean that is tiny beside its interval needs no more decimals than that
    unit = "" if units in ("1", "", "byte") else f" {units}"  # said once, behind the interval
    own = units if units == "byte" else "1"
    write = _decimals if own == "1" and 5e-4 <= max(abs(low), abs(high)) < 10 else quantity
    texts = [write(value, own) for value in (mean, low, high)]
    return f"{texts[0]}\n[{texts[1]}, {texts[2]}]{unit}" + (f", {seeds}" if seeds else "")


def no_width(low: float, high: float, scale: float = 0.0) -> bool:
    """Whether an interval has no width but for rounding: all seeds have the same value.

    Rounding is told by the bounds themselves, and by `scale`, as in `estimate`: a norm may be as small as 1e-34 and
    still differ between seeds, a difference of accuracies may not.

    >>> no_width(1e-34, 5e-34), no_width(1e-34, 5e-34, 1.0), no_width(0.3, 0.1 + 0.2)
    (False, True, True)
    """
    return math.isclose(low, high, rel_tol=1e-9, abs_tol=_NOISE * scale)


def size_of(metric: Metric) -> float:
    """How large values of a metric are, where its range says so; 0 of one that may be as small as it likes.

    What has either sign and no bound is a difference or a slope of ordinary numbers, such as epochs: 1.

    >>> from waterjar.diagnose.registry import find_metric
    >>> [size_of(find_metric(name)) for name in ("sfr", "ad", "seconds")]
    [1.0, 1.0, 0.0]
    """
    low, high = metric.range
    if math.isinf(low):
        return 1.0
    return max(abs(low), abs(high)) if math.isfinite(high) else 0.0


def estimate_or_reason(line: Any, metric: Metric, units: str = "1", *, with_n: bool = False) -> str:
    """A line of `cells_over_seeds` in a cell of a table: mean and interval, or why there is none.

    Where the head of a row has its units, they are left out here, but for bytes, which are written as MB and the like.
    """
    if line is None:
        return _NONE
    if not line.n:
        return str(line.missing) or _NONE
    alike = no_width(line.low, line.high, size_of(metric))
    about: dict[str, Any] = {"scale": size_of(metric), "between_seeds": metric.between_seeds}
    text = estimate(line.mean, line.low, line.high, line.n if with_n or alike else None, units, **about)
    return f"{text} ({line.missing})" if line.missing and not with_n else text


def _decimals(value: float, _: str) -> str:
    return f"{value:.3f}".replace("-", "−").replace("−0.000", "0.000")


def one_line(text: str) -> str:
    r"""A text of a table's cell in running text.

    >>> one_line("0.500\n[0.400, 0.600], n = 3")
    '0.500 [0.400, 0.600], n = 3'
    """
    return text.replace("\n", ", " if text.partition("\n")[2].startswith(_APART) else " ")


def label(metric: Metric) -> str:
    """A metric as a column or an axis names it: symbol, units, and the arrow that says which way is better.

    >>> from waterjar.diagnose.registry import find_metric
    >>> label(find_metric("ad")), label(find_metric("seconds"))
    ('AD (epoch)', 'seconds (s) ↓')
    """
    units = "" if metric.units in ("1", "", "byte") else f" ({metric.units})"
    return f"{metric.symbol or metric.name.replace('_', ' ')}{units} {ARROWS[metric.direction]}".strip()


def long_label(metric: Metric) -> str:
    """A metric's label with its name beside the symbol; in a table the name is set in small print.

    >>> from waterjar.diagnose.registry import find_metric
    >>> long_label(find_metric("capacity")), long_label(find_metric("seconds"))
    ('alpha ↑\\ncapacity', 'seconds (s) ↓')
    """
    plain = metric.name.replace("_", " ")
    known = not metric.symbol or metric.symbol.lower().replace("_", " ") == plain
    return label(metric) if known else f"{label(metric)}\n{plain}"


def panel_title(metric: Metric) -> str:
    """A metric over a panel: "capacity (alpha) ↑"."""
    first, _, name = long_label(metric).partition("\n")
    if not name:
        return first
    return f"{name} ({metric.symbol}) {ARROWS[metric.direction]}".strip()


def listed(names: Iterable[str], most: int = 6, *, longest: int | None = None) -> str:
    """Names in a row: "a, b and c"; the rest is counted, and names are shortened to `longest` characters.

    >>> listed(["a", "b", "c"]), listed("abcdefgh", 3), listed(["a"])
    ('a, b and c', 'a, b, c and 5 more', 'a')
    """
    known = list(names)
    if longest is not None:
        shown = short(known, longest)
        known = [shown[name] for name in known]
    if len(known) > most:
        return ", ".join(known[:most]) + f" and {len(known) - most} more"
    return " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)


def shorten(text: str, most: int) -> str:
    """A text that fits, with an ellipsis where something is left out.

    >>> shorten("abcdefgh", 5), shorten("abc", 5)
    ('abcd…', 'abc')
    """
    return text if len(text) <= most else text[: most - 1] + "…"
