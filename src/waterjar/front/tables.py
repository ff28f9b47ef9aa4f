"""The tables of the front door: a summary, a comparison, the list of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from waterjar.diagnose.over_seeds import cells_over_seeds, interval_words
from waterjar.diagnose.registry import ARROWS, Metric, families, metric_name
from waterjar.diagnose.registry import metrics as all_metrics
from waterjar.errors import WaterjarError
from waterjar.front.sources import Source, measured, names_of
from waterjar.run.shown import visible
from waterjar.view.numbers import estimate_or_reason, one_line

if TYPE_CHECKING:
    from waterjar.diagnose.study import Diagnosis

ALL = "all"
_STATISTICS = ("mean", "std", "low", "high", "n", "missing")
_COLUMNS = {
    "metric": "metric",
    "group": "cell",
    "baseline": "baseline",
    "n": "n",
    "mean": "mean",
    "difference": "difference",
    "difference_low": "low",
    "difference_high": "high",
    "n_compared": "n_compared",
    "p_value": "p",
    "p_corrected": "p_corrected",
    "family_size": "tests",
    "significant": "significant",
    "effect_size": "effect",
    "effect_name": "effect_name",
    "improvement": "improvement",
    "reason": "reason",
}
"""Of a comparison, what is shown where not every column is wanted; `low` and `high` are those of the difference, and
p is corrected over so many `tests`."""
_BETTER = {"higher": "higher is better", "lower": "lower is better", "zero": "0 is neutral", "none": "it depends"}


def summary_table(
    source: Source,
    metrics: str | Sequence[str] | None,
    *,
    numbers: bool,
    settings: Mapping[str, Any] | None,
) -> pd.DataFrame:
    """See `waterjar.summary`."""
    words = None if metrics is None else [metric_name(word) for word in names_of(metrics) or ()]
    everything = words == [ALL]
    found = measured(source, None if everything else _to_measure(source, words), settings=settings)
    asked = None if words is None else [word if word in families() else found.name_of(word) for word in words]
    if asked is None or everything:
        _refuse_nothing(found)
    names = _names(found, asked, everything)
    rows = found.table(names)
    parts = [
        cells_over_seeds(part, found.confidence(str(family)), found.declared)
        for family, part in rows.groupby("family", sort=False)
    ]
    means = pd.concat(parts, ignore_index=True) if parts else cells_over_seeds(rows)
    means["cell"] = [visible(cell) for cell in means["cell"]]
    cells = [visible(name) for name in found.study.cell_names.values()]
    cells = [cell for cell in cells if cell in set(means["cell"])]
    lines = {(line.metric, line.cell): line for line in means.itertuples(index=False)}
    table = _numeric(lines, names, cells) if numbers else _texts(lines, names, cells, found)
    levels = [found.confidence(family) for family in dict.fromkeys(means["family"])]
    table.attrs = {"interval": interval_words(means["interval"], levels or 0.95), "study": str(found.study.path)}
    table.attrs |= _annotations(found)
    return table


def _annotations(found: Diagnosis) -> dict[str, dict[str, str]]:
    """Run -> hash of the annotations that counted (of both files, where its study has some, too), if any did."""
    told = {run: known.digest for run, known in found.annotations.items()}
    return {"annotations": told} if told else {}


def _to_measure(source: Source, asked: list[str] | None) -> list[str] | None:
    """What must be measured: of a diagnosis that has all that is asked for, nothing."""
    from waterjar.diagnose.study import Diagnosis  # noqa: PLC0415

    if asked is None or not isinstance(source, Diagnosis):
        return asked
    known = all_metrics()

    def there(name: str) -> bool:
        family = known[name].family if name in known else name
        return family in source.results or source.name_of(name) in source.recorded.quantities

    return None if all(map(there, asked)) else asked


def _refuse_nothing(found: Diagnosis) -> None:
    if not found.results and not found.ends:
        refused = "\n".join(f"{family}: {why}" for family, why in found.passed_over.items())
        raise WaterjarError(f"nothing could be measured of {found.study.path}:\n{refused}")


def _names(found: Diagnosis, asked: list[str] | None, everything: bool) -> list[str]:
    """The metrics of a table, family by family, the lead's first; those that matter come first in their family."""
    if asked is None and (few := found.main_metrics()):
        return [*few, *found.described]
    of_study = [*found.ends, *found.described]
    wanted = {*found.results, *of_study} if everything or asked is None else set(asked)
    recorded = of_study if everything or asked is None else asked
    names = [name for name in recorded if name not in families() and name not in all_metrics()]
    for family in found.order:
        own = [m for m in all_metrics().values() if m.family == family and m.scalar in found.results[family]]
        own.sort(key=lambda metric: (not metric.matters, metric.matters))
        names += [metric.name for metric in own if family in wanted or metric.name in wanted]
    for name in (wanted - set(names)) & set(all_metrics()):
        found.table([name])  # says why it is not there
    return names


def _texts(lines: Mapping[Any, Any], names: list[str], cells: list[str], found: Diagnosis) -> pd.DataFrame:
    made = {}
    for name in names:
        metric = found.declared(name)
        made[_label(metric)] = [_text(lines.get((name, cell)), metric) for cell in cells]
    table = pd.DataFrame.from_dict(made, orient="index", columns=cells)
    return table.rename_axis(index="metric", columns="cell")


def _text(line: Any, metric: Metric) -> str:
    text = one_line(estimate_or_reason(line, metric, with_n=True))
    return f"{text} ({line.missing})" if line is not None and line.n and line.missing else text


def _label(metric: Metric) -> str:
    """A metric by the name that code calls it, with its symbol, units, and which way is better."""
    symbol = "" if metric.symbol.lower() == metric.name else metric.symbol
    about = [part for part in (symbol, metric.units if metric.units not in ("1", "") else "") if part]
    told = f" ({', '.join(about)})" if about else ""
    return f"{metric.name}{told} {ARROWS[metric.direction]}".strip()


def _numeric(lines: Mapping[Any, Any], names: list[str], cells: list[str]) -> pd.DataFrame:
    columns = pd.MultiIndex.from_product([cells, _STATISTICS], names=["cell", "over seeds"])
    none = (float("nan"),) * 4 + (0, "")
    rows = [[value for cell in cells for value in _statistics(lines.get((name, cell)), none)] for name in names]
    return pd.DataFrame(rows, index=pd.Index(names, name="metric"), columns=columns)


def _statistics(line: Any, none: tuple[Any, ...]) -> tuple[Any, ...]:
    return none if line is None else tuple(getattr(line, key) for key in _STATISTICS)


def comparison(
    source: Source,
    metric: str | Sequence[str] | None,
    baseline: str | None,
    *,
    tests: Mapping[str, Any],
    every_column: bool,
    settings: Mapping[str, Any] | None,
) -> pd.DataFrame:
    """See `waterjar.compare`."""
    from waterjar.diagnose.compare import compare_cells  # noqa: PLC0415
    from waterjar.diagnose.study import Diagnosis  # noqa: PLC0415

    names = names_of(metric)
    needed = _to_measure(source, names)
    same = isinstance(source, Diagnosis) and baseline in (None, source.analysis.baseline_name)
    if same or not _compared(source, names):  # of the others the baseline changes no number that is measured
        found = measured(source, needed, settings=settings, partly=True)
    else:
        found = measured(source, needed, settings=settings, baseline=baseline, partly=True)
    how = found.analysis.test_settings.with_given(tests)
    table = compare_cells(found, names, baseline=baseline, tests=how)
    table.attrs |= _annotations(found)
    if every_column:
        return table
    kept = table[[column for column in _COLUMNS if column in table]].rename(columns=_COLUMNS)
    kept["reason"] = [why or gone for why, gone in zip(kept["reason"], table["missing"], strict=True)]
    for column in ("cell", "baseline"):
        kept[column] = [visible(name) for name in kept[column]]
    kept.attrs = {
        "test": next((test for test in table["test"] if test), ""),
        "correction": str(table["correction"].iloc[0]) if len(table) else "",
        "tests": int(table["family_size"].max()) if len(table) else 0,
        "interval": "of the difference, t, "
        + "paired by seed, " * how.paired
        + "not corrected for the number of tests",
        **_annotations(found),
    }
    return kept


def _compared(source: Source, names: list[str] | None) -> bool:
    """Whether what is asked for is measured beside a baseline."""
    if names is None:
        return True
    known = all_metrics()
    return any(families()[known[name].family].compared for name in names if name in known)


def metric_table(family: str | None) -> pd.DataFrame:
    """See `waterjar.metrics`."""
    from waterjar.diagnose.registry import find_family  # noqa: PLC0415

    wanted = all_metrics().values() if family is None else find_family(family).metrics.values()
    rows = [
        {
            "metric": metric.name,
            "symbol": metric.symbol,
            "family": metric.family,
            "direction": _BETTER[metric.direction],
            "what": metric.long_name,
            "definition": metric.formula,
            "units": "" if metric.units == "1" else metric.units,
            "low": metric.range[0],
            "high": metric.range[1],
            "main": bool(metric.matters),
            "source": metric.citation,
        }
        for metric in wanted
    ]
    columns = [
        "metric",
        "symbol",
        "family",
        "direction",
        "what",
        "definition",
        "units",
        "low",
        "high",
        "main",
        "source",
    ]
    return pd.DataFrame(rows, columns=columns).set_index("metric")
