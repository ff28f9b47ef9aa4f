"""Small studies whose reports are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import waterjar
from recording import EINSTELLUNG_SETS, einstellung
from waterjar.view.report.blocks import Chart, Report

NASTY = (
    '<script>window.pwned=1</script><img src=x onerror="window.pwned=2">\'"`${1}`%{x}</script><!--'
    "\u2028\u2029 <b>bold</b> &amp; $x^2$ 🦊 "
)
LONG = NASTY + "long " * 2000


def einstellung_study(path: Path, seeds: tuple[int, ...] = (1, 2, 3), **settings: Any) -> Path:
    """Baseline, joint training and two learners; one is late and leans on the shortcut."""
    waterjar.create_study(path, {"experiment_name": "a small study", "note": settings.pop("note", "")})
    for seed in seeds:
        jitter = {"epochs": 6, "final": 0.8 + 0.02 * (seed % 2)}
        einstellung(path / f"scratch-{seed}", scenario="scratch_t2", seed=seed, **jitter)
        einstellung(path / f"joint-{seed}", scenario="interleaved", learner="joint", seed=seed, **jitter)
        einstellung(path / f"sgd-{seed}", seed=seed, delay=1 + seed % 2, masked=0.3, **jitter)
        einstellung(path / f"er-{seed}", learner="er", seed=seed, **{**jitter, "final": 0.7 + 0.01 * seed})
    return path


def full_study(path: Path) -> Path:
    """As above, and with features, labels and weights: every section has something to tell."""
    waterjar.create_study(path, {"experiment_name": "everything"})
    for scenario, learner in (("scratch_t2", "sgd"), ("sequential", "sgd"), ("sequential", "er")):
        for seed in (1, 2, 3):
            _with_features(path / f"{scenario}-{learner}-{seed}", scenario, learner, seed)
    return path


def _with_features(path: Path, scenario: str, learner: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(scenario), len(learner)])
    config = {
        "method": learner if scenario == "sequential" else scenario,
        "scenario": scenario,
        "learner": learner,
        "backbone": "mlp",
        "data": "toy",
        "shortcut": {"kind": "patch", "rate": 0.5},
        "training": {"epochs_t1": 2, "epochs_t2": 3},
        "seed": seed,
    }
    probes = ["t1_all", "t2_shortcut_normal"]
    labels = np.tile(np.repeat([0, 1, 2], 6), (1, 2, 1))
    tasks = [("t1", 0), ("t1", 1), ("t1", 2)] if scenario == "sequential" else []
    tasks += [("t2", epoch) for epoch in range(4)]
    settings: dict[str, Any] = {"eval_sets": EINSTELLUNG_SETS, "tasks": ["t1", "t2"], "probe_sets": probes}
    with waterjar.Recorder(path, config, seeds=[seed], **settings) as recorder:
        recorder.once("probe_samples", label=labels)
        for step, (task, epoch) in enumerate(tasks):
            accuracy = {
                name: 0.2 * epoch * (task in name or "t1" in name) + 0.05 * rng.random() for name in EINSTELLUNG_SETS
            }
            features = rng.random((2, 18, 8), dtype=np.float32) + 0.3 * step * np.eye(8, dtype=np.float32)[labels[0]]
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": accuracy, "macro_accuracy": accuracy},
                train={"patched_images": 10.0 * (task == "t2")},
                resources={"seconds": 1.0 + seed / 10, "images": 100, "flops": 1e9, "peak_memory": 2e8},
                snapshot={"features": {"penultimate": features}, "weights": {"w": rng.random((8, 3))}},
            )


def nasty_study(path: Path) -> Path:
    """Names, settings and data that try to break out of the page."""
    waterjar.create_study(path, {"experiment_name": NASTY, "note": LONG, NASTY: [LONG]})
    for scenario, method in (("scratch_t2", "scratch_t2"), ("sequential", NASTY), ("sequential", LONG)):
        for seed in (1, 2):
            config = {"method": method, "scenario": scenario, "learner": "sgd", "note": NASTY, "seed": seed}
            sets = {name: task for name, task in EINSTELLUNG_SETS.items() if "clean" not in name}
            run = path / f"run {len(list(path.iterdir()))} <i>{scenario}"
            with waterjar.Recorder(run, config, seeds=[seed], eval_sets=sets, tasks=["<u>t1", "t2"]) as recorder:
                for epoch in range(4):
                    value = dict.fromkeys(sets, 0.2 * epoch + 0.01 * seed)
                    recorder.log(
                        train_task="t2",
                        epoch=epoch,
                        performance={"accuracy": value, "macro_accuracy": value},
                        train={"patched_images": 5.0},
                        resources={"seconds": 1.0},
                    )
    return path


def charts_of(report: Report) -> list[Chart]:
    """All charts, in order."""
    return [one for one in report.shown if isinstance(one, Chart)]


def frames_of(report: Report) -> dict[str, pd.DataFrame]:
    """name -> the data behind every chart and table."""
    return {one.name: one.frame for one in report.shown}
