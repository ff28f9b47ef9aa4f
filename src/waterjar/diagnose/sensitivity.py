"""How a metric depends on one setting: of the runs (patch size, rate ...) or of the diagnosis (threshold, window)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from waterjar.diagnose.over_seeds import over_seeds
from waterjar.diagnose.registry import Metric, families, find_metric
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.cells import flat, name_cells
from waterjar.run.identity import SEED_KEYS
from waterjar.run.study import Study
from waterjar.stats.correlation import correlate_pair

_WORDS = {("rigidity", "tau"): "threshold"}
"""What papers call a setting of a family's."""


def sensitivity(
    study: Study,
    metric: str,
    over: str,
    *,
    values: Sequence[Any] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    measure: Callable[..., Diagnosis] = diagnose,
) -> tuple[pd.DataFrame, pd.DataFrame, Diagnosis]:
    """A metric over one setting: (means with intervals, trends, and what was measured last).

    `over` is a key of the runs' config (`shortcut.rate`, or its end where that is unique; a shortcut's kind stands
    for `shortcut`: `patch.rate`), or a setting of the metric's family, which then is measured at each of `values`.

    The first table has one row per group of cells that differ in nothing else and value: group, setting, value,
    mean, low, high, n, n_missing, reason, interval. The second has per group Spearman's correlation of the metric with
    a numeric setting of the runs; a setting of the diagnosis has none, because there every run enters at every value.
    `measure` is what measures: `diagnose`, or a function like it that shows how far it is.
    """
    declared = find_metric(metric)
    metric = declared.name
    family = families()[declared.family]
    key = _WORDS.get((family.name, over), over)
    if key in family.settings_model.model_fields:
        points, found = _over_diagnosis(study, metric, key, values, settings or {}, measure)
        trends = pd.DataFrame()
    else:
        if values is not None:
            raise WaterjarError(
                f"values are for settings of {family.name}; '{over}' is one of the runs, which have theirs"
            )
        key = _config_key(over, study, list(family.settings_model.model_fields))
        points, found = _over_runs(study, metric, key, settings or {}, measure)
        trends = _trends(points)
    return _means(points, key, found.declared(metric), found.confidence(family.name)), trends, found


def _over_runs(
    study: Study,
    metric: str,
    key: str,
    settings: Mapping[str, Mapping[str, Any]],
    measure: Callable[..., Diagnosis],
) -> tuple[pd.DataFrame, Diagnosis]:
    if key in SEED_KEYS:
        raise WaterjarError(f"{key} is what results are averaged over: name another setting")
    configs = {cell: flat(entries[0].config) for cell, entries in study.cells.items()}
    with_key = {cell: config for cell, config in configs.items() if key in config}
    groups = _groups(study, with_key, key)
    found = measure(study, only=[metric], settings=settings)
    rows = found.table([metric])
    rows = rows[rows.cell_id.isin(list(with_key))]
    at = [with_key[cell][key] for cell in rows.cell_id]
    points = rows.assign(
        group=[groups[cell] for cell in rows.cell_id], at=pd.Series(at, index=rows.index, dtype=object)
    )
    if len({repr(value) for value in at}) < 2:
        raise WaterjarError(f"all runs have {key} = {at[0]!r}: a study with two values or more can show an influence")
    return points, found


def _groups(study: Study, configs: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, str]:
    """cell -> the name of the group of cells that differ from it in nothing but the key: settings and data alike."""
    names = name_cells(configs, leave_out=key)
    prints = {cell: str(study.open(study.cells[cell][0]).attributes.get("data_fingerprint")) for cell in configs}
    several = {name for name in names.values() if len({prints[cell] for cell in names if names[cell] == name}) > 1}
    return {cell: f"{name}, data {prints[cell][:8]}" if name in several else name for cell, name in names.items()}


def _over_diagnosis(
    study: Study,
    metric: str,
    key: str,
    values: Sequence[Any] | None,
    settings: Mapping[str, Mapping[str, Any]],
    measure: Callable[..., Diagnosis],
) -> tuple[pd.DataFrame, Diagnosis]:
    if not values:
        raise WaterjarError(
            f"{key} is a setting of the diagnosis: give the values to try, such as --values 0.4,0.5,0.6"
        )
    declared, parts = find_metric(metric), []
    if key in settings.get(declared.family, {}):
        raise WaterjarError(f"{key} is what the metric is shown over: give its values alone, and no setting of it")
    for value in values:
        own = {**settings.get(declared.family, {}), key: value}
        found = measure(study, only=[metric], settings={**settings, declared.family: own})
        part = found.table([metric])
        parts.append(part.assign(group=part["cell"], at=pd.Series([value] * len(part), index=part.index, dtype=object)))
    return pd.concat(parts, ignore_index=True), found


def _config_key(over: str, study: Study, own: list[str]) -> str:
    """The full key of a setting: as it is, or by its end; a kind stands for what it is the kind of."""
    configs = [flat(entries[0].config) for entries in study.cells.values()]
    known = list(dict.fromkeys(key for config in configs for key in config))
    if over in known:
        return over
    *before, last = over.split(".")
    kinds = {
        str(config[key]): key.removesuffix(".kind") for config in configs for key in config if key.endswith(".kind")
    }
    before = [kinds.get(part, part) for part in before]
    able = [key for key in known if key.split(".")[-1] == last and all(part in key for part in before)]
    if len(able) > 1:
        raise WaterjarError(f"'{over}' may be {' or '.join(able)}: write it in full")
    if not able:
        raise unknown_name("setting", over, [*known, *own])
    return able[0]


def _means(points: pd.DataFrame, key: str, declared: Metric, confidence: float) -> pd.DataFrame:
    rows = []
    for group, of_group in points.groupby("group", sort=False):
        for at in _in_order(of_group["at"]):
            part = of_group[[repr(value) == repr(at) for value in of_group["at"]]]
            found = over_seeds(part.value.to_numpy(float), part.reason.tolist(), confidence, **declared.bounding)
            numbers = (found.mean, found.low, found.high, found.n, found.seeds - found.n)
            rows.append((group, key, at, *numbers, found.why, found.interval))
    columns = ["group", "setting", "value", "mean", "low", "high", "n", "n_missing", "reason", "interval"]
    return pd.DataFrame(rows, columns=columns)


def _in_order(values: pd.Series) -> list[Any]:
    distinct = {repr(value): value for value in values}
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct.values())
    return sorted(distinct.values()) if numbers else [distinct[name] for name in sorted(distinct)]


def _trends(points: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for group, part in points.groupby("group", sort=False):
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in part["at"]):
            rows.append({"group": group, **correlate_pair(part["at"].astype(float), part["value"]).as_row()})
    return pd.DataFrame(rows)
