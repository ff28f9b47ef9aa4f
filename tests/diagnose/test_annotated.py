"""Numbers of an annotated run are those of one that had recorded the same, bit for bit, and name the annotation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import waterjar
from run.annotated_runs import CLASSES, files_of, labels, record
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.run.annotations import read_annotations

ABOVE_CHANCE = ("remembering_mean", "zero_shot_mean", "forward_transfer_mean", "forgetting_rate_mean", "max_dip_mean")
TOLD: dict[str, Any] = {"eval_task": {"a": "A", "b": "B"}, "classes": CLASSES}
FAMILIES = ("continual", "drift", "geometry", "plasticity")


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies of the same numbers: `whole` has recorded all, `bare` no tasks of sets, no classes and no labels."""
    folder = tmp_path_factory.mktemp("annotated")
    for seed in (0, 1):
        record(folder / "whole" / f"m-{seed}", whole=True, seed=seed)
        record(folder / "bare" / f"m-{seed}", whole=False, seed=seed)
    return folder


def same_bits(one: xr.Dataset, other: xr.Dataset) -> None:
    """All but names of folders."""
    assert set(one.variables) == set(other.variables)
    for name, variable in one.variables.items():
        a, b = variable.values, other.variables[name].values
        assert a.dtype == b.dtype and a.shape == b.shape, name
        assert (a == b).all() if a.dtype.kind == "O" else a.tobytes() == b.tobytes(), name
        assert variable.attrs == other.variables[name].attrs, name


def names(result: xr.Dataset) -> dict[str, str]:
    """run -> hash of its annotations, as a result says."""
    return dict(json.loads(result.attrs.get("annotations", "{}")))


def test_like_recorded_in_every_family(studies: Path) -> None:
    bare, whole = waterjar.open_study(studies / "bare"), diagnose(waterjar.open_study(studies / "whole"))
    sealed = files_of(studies / "bare" / "m-0")
    before = diagnose(bare)
    assert "geometry" in before.passed_over and before.results["continual"]["forgetting_mean"].isnull().all()
    assert set(before.table(["forgetting"])["reason"]) == {"no_eval_set"}
    bare.annotate(**TOLD)
    for seed in (0, 1):
        waterjar.open_run(studies / "bare" / f"m-{seed}").annotate(probe_labels=labels(seed))
    after = diagnose(waterjar.open_study(studies / "bare"))
    assert files_of(studies / "bare" / "m-0") == sealed
    for family in FAMILIES:
        same_bits(after.results[family], whole.results[family])
        study = read_annotations(studies / "bare")
        own = [read_annotations(studies / "bare" / f"m-{seed}") for seed in (0, 1)]
        assert study is not None and None not in own
        told = {f"m-{seed}": f"{own[seed].digest} {study.digest}" for seed in (0, 1)}  # type: ignore[union-attr]
        assert names(after.results[family]) == told
        assert names(whole.results[family]) == {}
    assert not after.results["continual"]["remembering_mean"].isnull().any()
    assert after.results["geometry"].sizes["snapshot"] == 8
    _named(after, study.digest)


def _named(found: Diagnosis, digest: str) -> None:
    """The hash of the study's annotations stands in tables, JSON, figures, comparisons and the report."""
    from waterjar.diagnose.compare import compare_cells
    from waterjar.view.results import roots_in

    assert all(f"+{digest}" in root.split() for root in found.roots.values())
    assert {one["digest"].split()[-1] for one in found.plain()["annotations"].values()} == {digest}
    assert f"+{digest}" in roots_in(found) and f"+{digest}" in roots_in(found.results["continual"])
    assert f"+{digest[:11]}" in compare_cells(found, ["average_accuracy"])["roots"].iloc[0].split()


def test_tables_of_both_doors_name_the_hash(studies: Path, tmp_path: Path) -> None:
    """The words of the command line, `.attrs` of the tables of Python, and whatever leaves the store."""
    from typer.testing import CliRunner

    from waterjar.cli.main import app

    for method in ("m", "n"):
        for seed in (0, 1):
            record(tmp_path / "study" / f"{method}-{seed}", whole=False, seed=seed, method=method)
    study = waterjar.open_study(tmp_path / "study")
    study.annotate(**TOLD)
    known = read_annotations(study.path)
    assert known is not None
    told = dict.fromkeys((entry.name for entry in study.entries), known.digest)
    found = diagnose(study, only=["continual"])
    assert waterjar.summary(found, "forgetting").attrs["annotations"] == told
    for every in (False, True):
        assert waterjar.compare(found, "forgetting", every_column=every).attrs["annotations"] == told
    line = f"annotated: 4 of 4 runs (m-0, m-1, n-0, …), sha256 {known.digest}"
    both = {"diagnose": "--only forgetting", "compare": "--metrics forgetting --no-figures"}
    for command, options in both.items():
        for machine in ("", "--csv", "--json"):
            asked = [command, str(study.path), *options.split(), *machine.split()]
            said = CliRunner().invoke(app, asked)
            assert said.exit_code == 0, said.output
            assert (known.digest if machine == "--json" else line) in said.output, asked
    latex = CliRunner().invoke(app, ["compare", str(study.path), *both["compare"].split(), "--latex"])
    assert f"% {line}" in latex.stdout
    export = CliRunner().invoke(app, ["export", str(study.path), "--format", "npy", "--out", str(tmp_path / "npy")])
    assert json.loads((tmp_path / "npy" / "m-0" / "about.json").read_text())["annotations"] == known.digest, export
    csv = CliRunner().invoke(app, ["export", str(study.path), "--format", "csv", "--out", str(tmp_path / "x.csv")])
    assert known.digest in csv.output
    plain = diagnose(waterjar.open_study(studies / "whole"), only=["continual"])
    assert "annotations" not in waterjar.summary(plain, "forgetting").attrs and not plain.annotation_lines


def test_chance_is_classes_to_the_bit(studies: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        record(tmp_path / "study" / f"m-{seed}", whole=False, seed=seed)
    study = waterjar.open_study(tmp_path / "study")
    study.annotate(eval_task=TOLD["eval_task"])
    assert set(diagnose(study, only=["continual"]).table(["remembering"])["reason"]) == {"chance_unknown"}
    whole = diagnose(waterjar.open_study(studies / "whole"), only=["continual"])
    results = []
    for chance in (0.5, {"A": 0.5, "B": 0.5}):
        found = diagnose(waterjar.open_study(tmp_path / "study").annotate(chance=chance), only=["continual"])
        assert set(found.origin["continual"].values()) == {"changed: m-0, m-1"}  # an annotation changed
        same_bits(found.results["continual"], whole.results["continual"])
        results.append(found)
    assert set(diagnose(study, only=["continual"]).origin["continual"].values()) == {"cached"}
    # 0.25 by hand: P = (A - c) / (1 - c)
    study.annotate(chance=0.25)
    found = diagnose(study, only=["continual"]).results["continual"]
    assert (found["chance"].values == 0.25).all()
    dips = [one["max_dip"].values for one in (found, results[0].results["continual"])]
    np.testing.assert_allclose(dips[0] * 0.75, dips[1] * 0.5, rtol=1e-12)  # a difference of two: (a - b) / (1 - c)
    setting = diagnose(study, only=["continual"], settings={"continual": {"chance": 0.5}}).results["continual"]
    assert (setting["chance"].values == 0.5).all()  # a setting counts before it


def test_a_chance_that_is_not_that_of_the_classes_counts_and_is_told(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from waterjar.cli.main import app

    run = waterjar.open_run(record(tmp_path / "study" / "m-0", whole=True))
    said = "chance counts as 0.2, as annotated; guessing among the 2 classes of the run gets 0.5"
    for told, words in (("0.2", said), ("0.5", "")):
        for place in (run.path, run.path.parent):
            done = CliRunner().invoke(app, ["annotate", str(place), "--chance", told])
            assert done.exit_code == 0 and ("chance counts as" in done.output) == bool(words) and words in done.output
        found = diagnose(waterjar.open_study(run.path.parent), only=["continual"])
        assert found.notes("continual") == ([("m", words)] if words else [])
        assert (found.results["continual"]["chance"].values == float(told)).all()


def test_never_said_that_the_loop_did_not_log_it(tmp_path: Path) -> None:
    """Where chance is unknown, that is the reason of whatever needs it, and of nothing else."""
    run = waterjar.open_run(record(tmp_path / "study" / "run", whole=False)).annotate(eval_task=TOLD["eval_task"])
    found = diagnose(waterjar.open_study(run.path.parent), only=["continual"])
    reasons = found.table().set_index("metric")["reason"].to_dict()
    unknown = {metric for metric, reason in reasons.items() if reason == "chance_unknown"}
    assert unknown == {name.removesuffix("_mean") for name in ABOVE_CHANCE}
    assert "not_recorded" not in reasons.values()
    assert "waterjar annotate" in str(found.results["continual"]["chance_note"].values)


def test_seeds_of_a_cell_that_are_told_different_things(tmp_path: Path) -> None:
    for seed in (0, 1):
        record(tmp_path / "study" / f"m-{seed}", whole=False, seed=seed)
        waterjar.open_run(tmp_path / "study" / f"m-{seed}").annotate(
            eval_task=TOLD["eval_task"], chance=0.1 + seed / 10
        )
    with pytest.raises(WaterjarError, match=r"chance of m-0 is 0.1, of m-1 0.2: runs of one cell must agree"):
        diagnose(waterjar.open_study(tmp_path / "study"), only=["continual"])


def test_the_report_names_them(studies: Path) -> None:
    pytest.importorskip("jinja2")
    from waterjar.view.report.composing import compose
    from waterjar.view.report.model import model_of

    run = waterjar.open_run(studies / "whole" / "m-0").annotate(note="<b>looked at\x1b</b>", chance=0.5)
    try:
        assert run.annotations is not None
        study = waterjar.open_study(studies / "whole")
        model = model_of(study, measure=lambda part, **given: diagnose(part, families=["cost"]))
        report = compose(model)
        assert f"+{run.annotations.digest}" in report.roots
        blocks = {block.name: block for one in report.sections for block in one.blocks if hasattr(block, "frame")}
        assert blocks["annotations"].frame.to_dict("records") == [
            {"run": "m-0", "annotation": json.dumps(run.annotations.entries), "sha256": run.annotations.digest}
        ]
    finally:
        run.annotate(remove="all")


def test_a_note_measures_nothing_anew(tmp_path: Path) -> None:
    for seed in (0, 1):
        record(tmp_path / "study" / f"m-{seed}", whole=False, seed=seed)
    study = waterjar.open_study(tmp_path / "study").annotate(**TOLD)
    diagnose(study)
    study.annotate(note="looked at")
    waterjar.open_run(tmp_path / "study" / "m-0").annotate(note="twice")
    again = diagnose(waterjar.open_study(study.path))
    assert {why for units in again.origin.values() for why in units.values()} == {"cached"}
    known = read_annotations(study.path)
    assert known is not None and all(one.digest.endswith(known.digest) for one in again.annotations.values())
    study.annotate(chance=0.3)
    changed = diagnose(waterjar.open_study(study.path), only=["continual"])
    assert set(changed.origin["continual"].values()) != {"cached"}
