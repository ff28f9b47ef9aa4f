"""What was measured and recorded of a study, as one tidy table: a row per metric, cell and seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.outside import SHELF
from waterjar.diagnose.recorded import FAMILY
from waterjar.diagnose.registry import Metric, find_metric, metric_words, metrics
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS

if TYPE_CHECKING:
    from waterjar.diagnose.study import Diagnosis

COLUMNS = ("family", "metric", "cell", "cell_id", "scenario", "seed", "value", "reason")
"""A cell goes by its name; `cell_id` is the hash of its settings and data."""
_Row = tuple[Any, ...]


def table(found: Diagnosis, names: Sequence[str] | None = None) -> pd.DataFrame:
    """One row per metric, cell and seed that was run; what is missing stays, with its reason.

    Metrics that were not measured are an error if asked for by name. What was recorded has rows, too, where it is
    asked for, takes the place of metrics (`ends`), or stands beside them (`described`).
    """
    rows: list[_Row] = []
    ran = {(entry.cell_id, seed) for entry in found.study.entries for seed in entry.seeds}
    usual = [*found.ends, *metrics(), *found.described] if names is None else []
    asked = [(word, found.name_of(word)) for word in names or ()]
    for word, name in [(name, name) for name in usual] or asked:
        if name not in metrics() and name in found.recorded.quantities:
            rows += _recorded(found, name)
            continue
        if name not in metrics():
            raise SHELF.absent(name, [*found.recorded.quantities, *metric_words()])
        metric = find_metric(name)
        result = found.results.get(metric.family)
        if result is None or metric.scalar not in result:
            if names is None:
                continue
            why = found.passed_over.get(metric.family, _unmeasured(metric))
            raise WaterjarError(f"metric '{word}' has no value here: {why}")
        values = result[metric.scalar].transpose("cell", "seed")
        codes = reasons_of(result, metric.scalar).transpose("cell", "seed").values
        cells = zip(*(values[key].values for key in ("cell", "cell_id", "scenario")), strict=True)
        seeds = [int(seed) for seed in values["seed"].values]
        rows += [
            (metric.family, metric.name, *map(str, about), seed, number, REASONS[code])
            for about, numbers, why in zip(cells, values.values.tolist(), codes, strict=True)
            for seed, number, code in zip(seeds, numbers, why, strict=True)
            if (str(about[1]), seed) in ran
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def rows_of(found: Diagnosis, names: Sequence[str]) -> pd.DataFrame:
    """The rows of some families and metrics, as far as they were measured, and of what was recorded by these names."""
    every, recorded = table(found, None), [found.name_of(name) for name in names if name not in found.results]
    kept = every[every["metric"].isin(names) | every["family"].isin(names)]
    own = [name for name in recorded if name not in metrics() and name in found.recorded.quantities]
    return pd.concat([table(found, own), kept], ignore_index=True) if own else kept


def _recorded(found: Diagnosis, name: str) -> Iterator[_Row]:
    for cell, entries in found.study.cells.items():
        shown, scenario = found.study.cell_names[cell], str(entries[0].config.get("scenario", ""))
        for value, reason, seed in zip(*found.recorded.last(name, shown), strict=True):
            yield FAMILY, name, shown, cell, scenario, seed, float(value), reason


def _unmeasured(metric: Metric) -> str:
    asked = f"it is measured on request alone: --set {metric.optional}"
    return asked if metric.optional else f"{metric.family} did not measure it"
