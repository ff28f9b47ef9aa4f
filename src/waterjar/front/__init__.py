"""The front door for Python: one call each for measuring, a table, a comparison, a figure, a report.

`source` is a path (of a run, or of the directory above some), a `Run`, a `Study`, or a `Diagnosis`, which is what
`measure` gives: it is not measured again. The command line has the same under the same names, and both ask one function
which settings count (`diagnose.analysis.analysis_of`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterjar.front import plot
from waterjar.front.drawing import Plots
from waterjar.front.sources import Source, measured

if TYPE_CHECKING:
    import pandas as pd

    from waterjar.diagnose.study import Diagnosis

__all__ = ["Plots", "Source", "compare", "measure", "metrics", "plot", "report", "summary"]


def measure(
    source: Source,
    only: str | Sequence[str] | None = None,
    *,
    families: str | Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    baseline: str | None = None,
    fresh: bool = False,
) -> Diagnosis:
    """Measure how the runs learned: what the study declares, or all that it has the data for. A second call is instant.

    `found["continual"]` has the metrics of a family over cells and seeds, `found.table()` every number, and
    `found.passed_over` says why a family was not measured.

    Parameters
    ----------
    only : families or metrics that must be measured; it is an error if one cannot be.
    families : families to try; one that cannot be measured is passed over, with its reason.
    settings : such as {"threshold": 0.8}, {"rigidity.threshold": 0.8} or {"rigidity": {"threshold": 0.8}}.
    baseline : the name of a cell, or a scenario, that others are measured against; as declared where not given.
    fresh : measure again, whatever the cache has.
    """
    return measured(source, only, families=families, settings=settings, baseline=baseline, fresh=fresh)


def summary(
    source: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    numbers: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Metrics down, cells across by their names: mean over seeds, its interval, and how many seeds it is from.

    Without `metrics` those few of each family that matter most; else metrics, families or "all". A cell of the table
    reads "0.712 [0.650, 0.774], n = 3"; where no seed has a value it says why. With `numbers` there are columns (cell,
    mean), (cell, std), (cell, low), (cell, high), (cell, n) and (cell, missing) instead, and metrics go by their plain
    names. `table.attrs["interval"]` says what the intervals are.
    """
    from waterjar.front.tables import summary_table  # noqa: PLC0415 - pandas: not for `import waterjar`

    return summary_table(source, metrics, numbers=numbers, settings=settings)


def compare(
    source: Source,
    metric: str | Sequence[str] | None = None,
    baseline: str | None = None,
    *,
    paired: bool | None = None,
    test: str | None = None,
    correction: str | None = None,
    alpha: float | None = None,
    every_column: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Cells against a baseline, seed by seed: difference with its interval, corrected p, effect size.

    Without `metric` the few that matter are compared, without `baseline` what the study declares, else its first cell.
    `low` and `high` bound the difference, `n` is the seeds of `mean`, `n_compared` the pairs of the difference, and
    `improvement` is the probability that a seed of the cell is better than the same seed of the baseline.
    `p_corrected` is corrected over the `tests` of this table: over fewer where metrics are named than in the report,
    which has all that matter. Intervals are not corrected: one may be clear of 0 beside a p that is not small.
    `paired`, `test` ("paired_t", "wilcoxon", "permutation", "welch", "mann_whitney"), `correction` ("holm",
    "benjamini_hochberg") and `alpha` count as the study declares them where they are not given.
    `every_column` shows all that `diagnose.compare.compare_cells` gives.
    """
    from waterjar.front.tables import comparison  # noqa: PLC0415 - pandas

    return comparison(
        source,
        metric,
        baseline,
        tests={"paired": paired, "test": test, "correction": correction, "alpha": alpha},
        every_column=every_column,
        settings=settings,
    )


def metrics(family: str | None = None) -> pd.DataFrame:
    """All metrics, or those of a family: symbol, family, which way is better, what it is, its definition and source."""
    from waterjar.front.tables import metric_table  # noqa: PLC0415 - pandas

    return metric_table(family)


def report(
    source: Source,
    path: str | os.PathLike[str] | None = None,
    *,
    format: str | None = None,
    title: str = "",
    baseline: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write what a study shows as one page that opens offline, and return where it is.

    By default `report.html` in the study, and beside a single run. The format is what `path` ends in, or `format`:
    html, markdown, latex, json, csv, pdf or template.
    """
    from waterjar.front.written import write_report  # noqa: PLC0415 - the report's parts take their time

    return write_report(source, path, form=format, title=title, baseline=baseline, settings=settings)
