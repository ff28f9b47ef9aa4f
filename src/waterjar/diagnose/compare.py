"""Cells against their baseline, metric by metric, in one tidy table that is corrected once."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from waterjar.diagnose.rigidity.baseline import find_baselines
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError
from waterjar.stats.corrections import correct
from waterjar.stats.table import compare_many

_CORRECTED = ["p_corrected", "correction", "family", "family_size", "family_missing", "significant"]


def compare_cells(
    diagnosis: Diagnosis,
    names: Sequence[str],
    *,
    baseline: str,
    paired: bool = True,
    test: str | None = None,
    correction: str = "holm",
    family: Sequence[str] = (),
    alpha: float = 0.05,
) -> pd.DataFrame:
    """One row per metric and cell: mean with interval, difference to its baseline, corrected p, effect size.

    `baseline` is a scenario (every cell is compared with the cell of that scenario which has its settings: one per
    backbone, say) or the name of one cell. The columns are those of `stats.compare_many`, with `baseline` beside
    them. Cells without a baseline keep their means, and `reason` says why they are not compared.
    """
    study = diagnosis.study
    found, notes = find_baselines(study, baseline)
    if not any(found.values()):
        raise WaterjarError(f"baseline '{baseline}': {next(iter(notes.values()))}")
    rows = diagnosis.table(names).rename(columns={"name": "group"})
    shown = study.cell_names
    parts = []
    for base in dict.fromkeys(found.values()):
        members = [cell for cell, other in found.items() if other == base]
        block = rows[rows.cell.isin(members)][["metric", "group", "seed", "value"]]
        if base is None:
            for cell in members:
                alone = block[block.group == shown[cell]]
                made = compare_many(alone, baseline=shown[cell], paired=paired, alpha=alpha)
                parts.append(made.assign(is_baseline=False, baseline="", reason=notes.get(cell, "")))
        else:
            made = compare_many(block, baseline=shown[base], paired=paired, test=test, alpha=alpha)
            parts.append(made.assign(baseline=shown[base]))
    table = pd.concat(parts, ignore_index=True).drop(columns=_CORRECTED)
    order = {name: i for i, name in enumerate(names)}
    table = table.iloc[
        sorted(range(len(table)), key=lambda i: (order[table.metric[i]], table.baseline[i], not table.is_baseline[i]))
    ].reset_index(drop=True)
    table = correct(table, family=family, method=correction)
    table["significant"] = table["p_corrected"] <= alpha
    return table
