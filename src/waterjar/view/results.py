"""What figures of diagnostics share: from a source to what was measured, and from that to tidy tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.analysis import analysis_of, by_family
from waterjar.diagnose.labelled import reasons_of, side_by_side
from waterjar.diagnose.measuring import study_of as study_of_run
from waterjar.diagnose.over_seeds import CONFIDENCE, mean_table
from waterjar.diagnose.registry import Family, find_family, find_metric
from waterjar.diagnose.result import NO_RUN, NOT_RECORDED
from waterjar.diagnose.settings import dump
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.diagnose.training_order import visit_names_of
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.reader import Run
from waterjar.run.schema import REASON
from waterjar.run.study import Study

Source = Run | Study | Diagnosis | xr.Dataset
"""What a figure may be given; a Dataset is the result of the figure's family."""


def study_of(source: Source, why: str = "this figure shows recorded curves") -> Study:
    """The runs behind a source; a single run as a study of one."""
    if isinstance(source, Study):
        return source
    if isinstance(source, Diagnosis):
        return source.study
    if isinstance(source, Run):
        return study_of_run(source)
    raise WaterjarError(f"{why}: expected a run, a study or a diagnosis, not {_what(source)}")


def cell_labels(study: Study) -> dict[str, str]:
    """cell -> its name; a cell without one goes by the directory of its run."""
    return {cell: name or study.cells[cell][0].name for cell, name in study.cell_names.items()}


def cell_order(source: Source, shown: Iterable[str]) -> list[str]:
    """All cells of a source in its order, also those that a figure leaves out: what colours are handed out by, so that
    a cell has the same one in every figure. Names that only the figure has (`shown`) come last.
    """
    shown = list(shown)
    if isinstance(source, xr.Dataset):
        known = [str(name) for name in source["cell"].values] if "cell" in source.dims else []
    else:
        study = study_of(source)
        known = list((study.cell_names if "" in shown else cell_labels(study)).values())
    return list(dict.fromkeys([*known, *shown]))


def diagnosis_of(source: Source, needs: Sequence[str], settings: Mapping[str, Any]) -> Diagnosis:
    """What was measured of the families needed, or is measured now (`a|b`: whichever of them can be).

    `settings` go to the family that has them (`family.name` where several do); those that are not given count as the
    diagnosis has them, or as the study declares them. A diagnosis is taken as it is, unless it was measured with other
    settings than those given.
    """
    study = study_of(source, "this figure needs to know the runs")
    names = [name for need in needs for name in need.split("|")]
    own = by_family(settings, among=names)
    before = source if isinstance(source, Diagnosis) else Diagnosis(study, {}, analysis=analysis_of(study))
    results: dict[str, xr.Dataset] = {}
    refused: dict[str, str] = {}
    for need in needs:
        able = _wanted(need.split("|"), before, own)
        for name in able:
            known, used, given = before.results.get(name), before.settings(name), own.get(name, {})
            try:
                if known is not None and (not given or dump(find_family(name).settings({**used, **given})) == used):
                    results[name] = known
                else:
                    results[name] = _measure(source, before, find_family(name), {**used, **given})
            except WaterjarError as error:
                if len(able) == 1 or name in own:
                    raise
                refused[name] = str(error)
        if not any(name in results for name in able):
            raise WaterjarError("nothing could be measured: " + "; ".join(f"{k}: {v}" for k, v in refused.items()))
    return replace(before, results={**before.results, **results}, passed_over={**before.passed_over, **refused})


def _wanted(able: list[str], before: Diagnosis, own: Mapping[str, Any]) -> list[str]:
    """Of families that a figure could show, those measured already or asked for; else those that are declared."""
    known = [name for name in able if name in before.results or name in own]
    declared = before.analysis.families
    return known or [name for name in able if declared is None or name in declared] or able


def _measure(source: Source, before: Diagnosis, family: Family, given: Mapping[str, Any]) -> xr.Dataset:
    """A family that was not measured before, or with other settings."""
    if not given and family.name in before.passed_over:
        raise WaterjarError(before.passed_over[family.name])
    if isinstance(source, Run):  # beside a lone run nothing is kept
        found = family.measure(source, **given)
        return side_by_side({source.cell_id: found}, before.study).assign_attrs(found.attrs)
    settings = {family.name: {**before.analysis.settings.get(family.name, {}), **given}}
    baseline = None if family.compared and "baseline" in given else before.analysis.baseline_name
    made = diagnose(before.study, only=[family.name], settings=settings, baseline=baseline)
    return made.results[family.name]


def settings_used(source: Source, family: str) -> dict[str, Any]:
    """All settings of a family: those it was measured with, or as they would count if it were measured now."""
    if isinstance(source, Diagnosis) and family in source.results:
        return source.settings(family)
    analysis = source.analysis if isinstance(source, Diagnosis) else analysis_of(study_of(source))
    return dump(analysis.settings_of(find_family(family)))


def level_of(source: Source, family: str = "") -> float:
    """The level of intervals that counts: a family's own, or that of the analysis (1 - alpha of its tests)."""
    if isinstance(source, xr.Dataset):
        return float(json.loads(source.attrs.get("settings", "{}")).get("confidence", CONFIDENCE))
    if isinstance(source, Diagnosis):
        return source.confidence(family)
    analysis = analysis_of(study_of(source))
    return float(analysis.settings.get(family, {}).get("confidence", analysis.confidence))


def result_of(source: Source, family: str, settings: Mapping[str, Any]) -> xr.Dataset:
    """The result of a family: given as it is, taken from a diagnosis, or measured (of a study through its cache)."""
    if isinstance(source, xr.Dataset):
        if source.attrs.get("family") != family:
            raise _not_shown(source, family)
        if settings:
            raise WaterjarError(f"{', '.join(settings)}: a result is shown as it was measured; measure it with them")
        return source
    if not isinstance(source, Run | Study | Diagnosis):
        raise _not_shown(source, family)
    return diagnosis_of(source, [family], settings).results[family]


def _not_shown(source: object, family: str) -> WaterjarError:
    return WaterjarError(f"expected a run, a study, a diagnosis or a result of {family}.measure, not {_what(source)}")


def _what(source: object) -> str:
    if isinstance(source, xr.Dataset):
        return f"a result of {source.attrs.get('family', 'something else')}"
    return type(source).__name__


def roots_in(source: Source) -> list[str | None]:
    """The root hashes of the runs that a source is made from, of their probe runs, and behind `+` of annotations."""
    if isinstance(source, xr.Dataset):
        told = json.loads(source.attrs.get("annotations", "{}")).values()
        return [*json.loads(source.attrs.get("root_hashes", "{}")).values(), *_hashes(told)]
    study = study_of(source)
    runs = [one.root_hash for entry in study.entries for one in (entry, *study.probes_of(entry))]
    return [*runs, *_hashes(known.digest for known in study.annotations.values())]


def _hashes(digests: Iterable[str]) -> list[str]:
    """Those of a study, which all of its runs have, once."""
    return list(dict.fromkeys(f"+{one}" for digest in digests for one in digest.split()))


def dataset_name(source: Source) -> str:
    """The data set that all runs name in their settings; empty where they name none, or several."""
    if isinstance(source, xr.Dataset):
        return ""
    named = {str(entry.config.get("data") or entry.config.get("dataset") or "") for entry in study_of(source).entries}
    return named.pop() if len(named) == 1 else ""


def by_cell(result: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """(name, result over (repeat, ...)) of every cell; of one run, one with an empty name."""
    if "cell" not in result.dims:
        yield "", result
        return
    for i, name in enumerate(result["cell"].values):
        one = result.isel(cell=i)
        one = one.rename(seed="repeat").assign_coords(seed=("repeat", one["seed"].values))
        yield str(name), one.assign_coords(_agreed(one))


def _agreed(one: xr.Dataset) -> dict[str, tuple[str, Any]]:
    """Coordinates of snapshots that each seed has for itself, and about which all seeds of a cell agree: once.

    What a seed has not (it ended earlier, or another cell alone has it) says nothing.
    """
    found = {}
    for name, coordinate in one.coords.items():
        if coordinate.dims != ("repeat", "snapshot") or coordinate.dtype.kind == "b":
            continue
        values = coordinate.values
        there = values != "" if values.dtype.kind in "OU" else ~np.isnan(values.astype(float))
        first = values[there.argmax(axis=0), np.arange(values.shape[1])] if len(values) else values
        if ((values == first) | ~there).all():
            found[str(name)] = ("snapshot", first)
    return found


def repeats_of(one: xr.Dataset, name: str, *dims: str) -> tuple[Any, Any, Any]:
    """(values, reasons) over (repeat, *dims) and seeds of a variable, without the seeds that the cell has not."""
    values = one[name].transpose("repeat", *dims).values.astype(np.float64)
    codes = reasons_of(one, name).transpose("repeat", *dims).values
    gone = np.isnan(values) & np.isin(codes, (NOT_RECORDED, NO_RUN))
    kept = ~gone.reshape(len(values), -1).all(axis=1)
    return values[kept], codes[kept], np.atleast_1d(one["seed"].values)[kept]


def snapshot_table(
    result: xr.Dataset, metrics: Sequence[str], *, layer: str | None, over: str, band: str, confidence: float
) -> pd.DataFrame:
    """Metrics over snapshots: one row per metric, cell and snapshot, with mean and band over repeats.

    Columns metric, cell, layer, snapshot, train_task, `over`, mean, low, high, n, reason, interval.
    """
    parts = []
    for metric in metrics:
        within = find_metric(metric).own_range
        if metric not in result:
            known = [str(name) for name, array in result.items() if "snapshot" in array.dims]
            raise unknown_name("metric", metric, [name for name in known if not name.endswith(REASON)])
        for cell, whole in by_cell(result):
            one, chosen = pick_layer(whole, layer)
            if over not in one.coords or "snapshot" not in one[over].dims:
                raise unknown_name("over", over, [str(n) for n, c in one.coords.items() if c.dims == ("snapshot",)])
            if one[over].values.dtype.kind not in "iuf":
                raise WaterjarError(f"over={over}: expected an epoch or another number")
            visit_names_of(one)  # whatever it is drawn over, seeds that were trained otherwise have no course
            if "repeat" in one[over].dims:
                raise WaterjarError(f"over={over}: seeds of {cell} differ in it: expected what they have in common")
            there = ~np.isnan(one[over].values.astype(float))
            one = one.isel(snapshot=there)
            per_layer = "layer" in whole[metric].dims
            if per_layer and not chosen:  # no layer was recorded at all
                values, codes = np.empty((0, one.sizes["snapshot"])), None
            else:
                values, codes, _ = repeats_of(one, metric, "snapshot")
            about = {
                "metric": metric,
                "cell": cell,
                "layer": chosen if per_layer else "",
                "snapshot": one["snapshot"].values,
                "train_task": visit_names_of(one),
                over: one[over].values.astype(float),
            }
            means = mean_table(values, codes, band=band, within=within, confidence=confidence)
            parts.append(pd.DataFrame(about).join(means))
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {"confidence": confidence}
    return table


def pick_layer(one: xr.Dataset, layer: str | None) -> tuple[xr.Dataset, str]:
    """One layer, the one named or the last one, and its name."""
    known = [str(name) for name in one["layer"].values] if "layer" in one.dims else []
    if not known:
        return one, ""
    if layer is not None and layer not in known:
        raise unknown_name("layer", layer, known)
    chosen = layer or known[-1]
    return one.sel(layer=chosen), chosen
