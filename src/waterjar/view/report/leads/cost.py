"""What a run takes, in orders of magnitude."""

from __future__ import annotations

from waterjar.view.report.leads._claims import FEW, Mean, means_of, row
from waterjar.view.report.model import Model

TITLE = "Cost"
ORDER = 90
_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"), (1e-3, "millisecond"))


def sentences(model: Model) -> list[str]:
    """Seconds of a run, and how many times as long the dearest takes as the cheapest."""
    if "cost" not in model.diagnosis.results:
        return []
    lines = sorted(means_of(model, "seconds"), key=lambda one: one.mean)
    if not lines or lines[0].mean <= 0:
        return []
    if len(lines) == 1:
        return [f"A run of {lines[0].cell} takes {_time(lines[0].mean)}."]
    shown = lines if len(lines) <= FEW else [lines[0], lines[-1]]
    ends = "" if len(lines) <= FEW else f", of {len(lines)} learners the quickest and the slowest"
    told = row([f"{_time(one.mean)} ({one.cell})" for one in shown])
    return [f"A run takes {told}{ends}.{_times(lines[0], lines[-1])}"]


def _time(seconds: float) -> str:
    """About how long: one digit, or two.

    >>> [_time(x) for x in (0.26, 3.4, 95.0, 7300.0)]
    ['260 milliseconds', '3.4 seconds', '1.6 minutes', '2 hours']
    """
    size, word = next(((size, word) for size, word in _UNITS if seconds >= size), _UNITS[-1])
    text = f"{float(f'{seconds / size:.2g}'):g}"
    return f"{text} {word}" + ("" if text == "1" else "s")


def _times(least: Mean, most: Mean) -> str:
    """How many times as long, where the intervals of the two are apart."""
    if least.n < 2 or most.n < 2 or not least.high < most.low:
        return ""
    return f" {most.cell} takes {most.mean / least.mean:.2g} times as long as {least.cell}."
