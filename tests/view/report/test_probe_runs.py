"""Numbers of a probe run are as good as its seal: a report counts and names it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

import waterjar
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.study import diagnose
from waterjar.view.report.blocks import Table
from waterjar.view.report.composing import compose
from waterjar.view.report.model import Model, model_of
from waterjar.view.results import roots_in

SETTINGS = {"eval_sets": {"a": 0}, "tasks": ["a"]}
WEIGHTS = {"weights": np.ones((1, 3))}


def record(folder: Path, seeds: tuple[int, ...] = (1, 2), *, sealed: bool = True) -> Path:
    """A run and its probe run of every seed; the last probe run is left open, if `sealed` is not so."""
    for seed in seeds:
        source = folder / f"run{seed}"
        with waterjar.Recorder(source, {"learner": "x"}, seeds=[seed], **SETTINGS) as recorder:
            for epoch in range(3):
                recorder.log(train_task="a", epoch=epoch, performance={"accuracy": [0.5]}, snapshot=WEIGHTS)
        about = {"seeds": [seed], "source": source, "tasks": ["a"]}
        with (
            contextlib.suppress(KeyboardInterrupt),
            waterjar.Recorder(folder / f"probe{seed}", {"probe": "sharpness"}, **about) as recorder,
        ):
            for step in range(3):
                recorder.log(train_task="a", epoch=step, step=step, probes={"sharpness": 10.0 + step})
            if not sealed and seed == seeds[-1]:
                raise KeyboardInterrupt
    return folder


def model(folder: Path, where: str = "") -> Model:
    study = waterjar.open_study(folder)
    return model_of(study.select(where) if where else study)


def test_probe_runs_are_counted_and_named(tmp_path: Path) -> None:
    found = model(record(tmp_path))
    assert found.status.text.startswith("All 4 runs, 2 of them probe runs, are sealed, and their seals hold")
    report = compose(found)
    (section,) = [one for one in report.sections if one.name == "seals"]
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert [row[0] for row in table.rows] == [
        "run1", "probe1 (probe run of run1)", "run2", "probe2 (probe run of run2)",
    ]  # fmt: skip
    every = {waterjar.open_run(tmp_path / name).root_hash for name in ("run1", "run2", "probe1", "probe2")}
    assert set(report.roots) == every
    assert set(roots_in(found.diagnosis)) == every  # stamped on figures


def test_an_open_one_is_unfinished(tmp_path: Path) -> None:
    found = model(record(tmp_path, sealed=False))
    assert found.status.kind == "warning"
    assert "1 of 4 runs is not sealed yet (probe2 (probe run of run2))" in found.status.text


def test_one_that_was_changed_is_named(tmp_path: Path) -> None:
    record(tmp_path)
    chunk = next(file for file in (tmp_path / "probe1" / "probes").rglob("c/*") if file.is_file())
    chunk.write_bytes(chunk.read_bytes()[::-1])  # it cannot be read any more, which costs its numbers and no other
    found = model(tmp_path)
    assert found.status.kind == "bad" and "(probe1 (probe run of run1))" in found.status.text
    values = found.diagnosis.table(["sharpness", "weight_magnitude"]).set_index(["metric", "seed"])["value"]
    assert np.isnan(values["sharpness", 1]) and values["sharpness", 2] == 12.0 and values["weight_magnitude", 1] == 1.0


def test_runs_that_are_left_out_take_theirs_with_them(tmp_path: Path) -> None:
    found = model(record(tmp_path, sealed=False), "seed = 1")
    assert found.status.text.startswith("All 2 runs, 1 of them probe runs,")
    assert found.study.notes == [] and [entry.name for entry in found.study.probe_runs] == ["probe1"]


def test_the_column_root_has_them(tmp_path: Path) -> None:
    diagnosis = diagnose(waterjar.open_study(record(tmp_path, sealed=False)), families=["plasticity"])
    (cell,) = diagnosis.study.cells
    run, probe = (waterjar.open_run(tmp_path / name).root_hash for name in ("run1", "probe1"))
    assert diagnosis.roots[cell, 1] == f"{run} {probe}"
    assert diagnosis.roots[cell, 2] == f"{waterjar.open_run(tmp_path / 'run2').root_hash} unsealed"


def test_so_has_a_comparison(tmp_path: Path) -> None:
    record(tmp_path)
    with waterjar.Recorder(tmp_path / "other", {"learner": "y"}, seeds=[1], **SETTINGS) as recorder:
        recorder.log(train_task="a", epoch=0, performance={"accuracy": [0.5]}, snapshot=WEIGHTS)
    diagnosis = diagnose(waterjar.open_study(tmp_path), families=["plasticity"])
    roots = compare_cells(diagnosis, ["weight_magnitude"]).set_index("group")["roots"]
    runs = [waterjar.open_run(tmp_path / name) for name in ("run1", "probe1", "run2", "probe2")]
    assert roots["x"].split() == [str(run.root_hash)[:12] for run in runs]
