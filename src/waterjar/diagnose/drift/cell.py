"""Drift of the runs of one cell: each by itself, then between their seeds."""

from __future__ import annotations

from typing import Any

import xarray as xr

from waterjar.diagnose.drift.cloud import Cloud
from waterjar.diagnose.drift.measuring import Measurement, kind_of
from waterjar.diagnose.drift.moment import Siblings
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.snapshots import Recording
from waterjar.run.reader import Run


def measure_cell(runs: list[Run], metrics: dict[str, Metric], settings: dict[str, Any]) -> list[xr.Dataset]:
    """One Dataset per run, over (repeat, ...)."""
    measurements = [Measurement(Recording(run), metrics, settings) for run in runs]
    for measurement in measurements:
        measurement.run()
        measurement.put_curves()
    between = {name: metric for name, metric in metrics.items() if kind_of(metric) is Siblings}
    for layer in dict.fromkeys(layer for measurement in measurements for layer in measurement.layers):
        clouds = _last_clouds(measurements, layer)
        for name, metric in between.items():
            results = iter(metric.compute(Siblings(clouds)))
            for measurement in measurements:
                own = [next(results) for _ in measurement.recording.seeds]
                if layer in measurement.layers:
                    measurement.put_siblings(measurement.layers.index(layer), name, own)
    return [measurement.labelled() for measurement in measurements]


def _last_clouds(measurements: list[Measurement], layer: str) -> list[Cloud | None]:
    """Of every seed; None where it is not of the samples, or not of the snapshot, of the first seed."""
    found: list[Cloud | None] = []
    common: tuple[object, ...] | None = None
    for measurement in measurements:
        recording = measurement.recording
        for r in range(len(recording.seeds)):
            if layer not in measurement.layers:
                found.append(None)
                continue
            cloud = measurement.last_cloud(layer, r)
            known = "probe_samples/sample_index" in recording
            samples = recording.whole("probe_samples/sample_index")[r].tobytes() if known else b""
            label = recording.labels(f"features/{layer}")[-1]
            own = (label, len(cloud.features), tuple(measurement.sets), samples)
            common = common or own
            found.append(cloud if own == common else None)
    return found
