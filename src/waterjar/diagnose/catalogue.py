"""docs/metrics.md, from the registry: `python -m waterjar.diagnose.catalogue docs/metrics.md`."""

from __future__ import annotations

import math
import sys

from waterjar.diagnose.registry import Family, Metric, families
from waterjar.run.disk import write_file

_HEAD = """# Metrics

<!-- Made from the registry by `make catalogue`; a test holds it true. Edit the declarations, not this file. -->

Every metric is declared once, in the file that computes it. `waterjar diagnose DIR` measures all that a study has the
data for; `--only NAME` picks a family or a metric, by its name or by its symbol (ACC). ↑ higher is better, ↓ lower is
better, →0 both sides of zero are findings. Missing values are NaN, and `<name>_reason` says
why. A metric with several numbers per seed has one per seed under the name in brackets (a mean, or the last value):
that number enters tables and tests.
"""


def catalogue() -> str:
    """The text of docs/metrics.md."""
    return "\n".join([_HEAD, *(_family(family) for family in families().values())])


def _family(family: Family) -> str:
    settings = ", ".join(f"`{name}={default!r}`" for name, default in family.defaults.items())
    lines = [
        f"## {family.title} (`{family.name}`)",
        "",
        f"Measured per {family.scope}; needs {_code(family.needs)}.{f' Settings: {settings}.' if settings else ''}",
        "",
        "| metric | what it is | definition | units, range | needs | source | version |",
        "|---|---|---|---|---|---|---|",
        *(_line(metric) for metric in family.metrics.values()),
        "",
    ]
    return "\n".join(lines)


def _line(metric: Metric) -> str:
    summary = f" (`{metric.summary}`)" if metric.summary else ""
    symbol = f" {metric.symbol}" if metric.symbol else ""
    units = "" if metric.units == "1" else f"{metric.units}, "
    arrow = metric.label.removeprefix(metric.symbol or metric.name).strip()
    cells = [
        f"`{metric.name}`{symbol} {arrow}{summary}".replace("  ", " "),
        f"{metric.long_name}; {metric.unlike}" if metric.unlike else metric.long_name,
        metric.formula,
        f"{units}[{_bound(metric.range[0])}, {_bound(metric.range[1])}]",
        _code(metric.needs),
        metric.citation,
        str(metric.edition),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|").strip() for cell in cells) + " |"


def _bound(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else ("∞" if value > 0 else "-∞")


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(" or ".join(f"`{part}`" for part in name.split("|")) for name in names)


if __name__ == "__main__":
    write_file(sys.argv[1], catalogue())
