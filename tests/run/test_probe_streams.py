"""A probe run lends the streams that it recorded to a source without any; by its own path it is a study of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import waterjar
from waterjar.cli.main import app
from waterjar.cli.measured import warnings_of
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run.study import study_at
from waterjar.view.report import compose, model_of, write

LABELS = np.array([[[0, 1, 0, 1] * 20]])
RIGHT = np.array([0.5, 0.25])
"""Accuracies of the two streams, by hand."""


def streams(right: bool = True) -> dict[str, np.ndarray]:
    """(repeat, set, sample, stream, class): the first always says 0, the second is right in one of four."""
    said = np.tile([[0, 0, 0, 0], [0, 0, 1, 0]], 20)
    each = np.eye(2)[said].transpose(1, 0, 2)[None, None]
    whole = np.eye(2)[LABELS if right else 1 - LABELS]
    return {"logits": each, "isolated_logits": each, "collective_logits": whole}


def record(path: Path, *, source: Path | None = None, own: str = "streams", seed: int = 1, right: bool = True) -> Path:
    """A training of two epochs, or a look at its last one, with streams or labels or nothing of its own."""
    about = {"learner": "x"} if source is None else {"probe": path.name}
    given = {} if source is None else {"source": source}
    with waterjar.Recorder(
        path, about, seeds=[seed], eval_sets=["test"], eval_sizes={"test": 80}, labels={"stream": ["a", "b"]}, **given
    ) as recorder:
        if own:
            recorder.once("probe_samples", label=LABELS)
        for epoch in (0, 1) if source is None else (1,):
            shot = {"snapshot": {"streams": streams(right)}} if own == "streams" else {}
            recorder.log(epoch=epoch, step=epoch, performance={"accuracy": {"test": 0.5}}, **shot)
    return path


def test_streams_of_a_probe_run_stand_for_its_source(tmp_path: Path) -> None:
    record(tmp_path / "probe", source=record(tmp_path / "run", own=""))
    for study in (waterjar.open_study(tmp_path), waterjar.open_study(tmp_path).confirmed()):
        run = study.run("run")
        assert run.probed_by == ["probe"] and {"streams", "probe_samples"} <= set(run.groups)
        np.testing.assert_array_equal(run["probe_samples"].label.values, LABELS)
        assert run["streams"].snapshot.values.tolist() == [1] and run["performance"].step.values.tolist() == [0, 1]
    found = diagnose(waterjar.open_study(tmp_path), families=["collective"]).results["collective"]
    np.testing.assert_allclose(found.individual_accuracy.values.ravel(), RIGHT)
    assert found.collective_accuracy_final.item() == 1.0
    (note,) = waterjar.open_study(tmp_path).notes
    assert note.endswith(f"recorded /performance, which is not shown with its source: waterjar report {tmp_path}/probe")


@pytest.mark.parametrize("own", ["streams", "labels"])
def test_a_source_keeps_its_own(tmp_path: Path, own: str) -> None:
    record(tmp_path / "probe", source=record(tmp_path / "run", own=own, right=False))
    study = waterjar.open_study(tmp_path)
    run = study.run("run")
    assert run.probed_by == [] and ("streams" in run.groups) == (own == "streams")
    assert "/probe_samples, /streams, which is not shown with its source" in study.notes[0]


@pytest.mark.parametrize("right", [True, False])
def test_a_probe_of_another_network_is_told(right: bool, tmp_path: Path) -> None:
    record(tmp_path / "probe", source=record(tmp_path / "run", right=right))
    study = waterjar.open_study(tmp_path)
    said = [] if right else [
        "probe was not made of the network that run recorded at step 1, or not of the same samples: the collective has "
        "other logits of the set 'test' (accuracy 1.000, and 0.000 in run)"
    ]  # fmt: skip
    assert study.other_models == said
    assert all(one in warnings_of(diagnose(study, families=["cost"])) for one in said)


def test_of_two_probe_runs_with_streams_none_counts(tmp_path: Path) -> None:
    record(tmp_path / "run", own="")
    for name in ("one", "two"):
        record(tmp_path / name, source=tmp_path / "run")
    study = waterjar.open_study(tmp_path)
    assert "one and two both have /streams of run: it is left out" in study.notes
    assert not {"streams", "probe_samples"} & set(study.run("run").groups)
    why = "no run has recorded streams; one and two both have /streams of run: it is left out"
    found = diagnose(study)
    assert found.passed_over["collective"] == why
    with pytest.raises(WaterjarError, match=why):
        diagnose(study, only=["collective"])
    report = compose(model_of(study))
    with pytest.raises(WaterjarError, match=f"there is none here: {why}"):
        write(report, tmp_path / "r.results.md")
    assert f"Collectives: {why}" in write(report, tmp_path / "r.md").read_text().replace("**", "").replace(":.", ":")


def test_nor_is_it_kept_from_who_reads_of_other_runs(tmp_path: Path) -> None:
    record(tmp_path / "run1", own="")
    for name in ("one", "two"):
        record(tmp_path / name, source=tmp_path / "run1")
    record(tmp_path / "run2", seed=2)
    report = compose(model_of(waterjar.open_study(tmp_path), settings={"collective": {"resamples": 10}}))
    for name in ("r.md", "r.results.md"):
        assert "one and two both have /streams of run1: it is left out" in write(report, tmp_path / name).read_text()


def test_other_seeds_may_have_none_or_end_elsewhere(tmp_path: Path) -> None:
    record(tmp_path / "probe1", source=record(tmp_path / "run1", own=""))
    record(tmp_path / "run2", own="", seed=2)
    found = diagnose(waterjar.open_study(tmp_path), families=["collective"]).results["collective"]
    assert found.seed.values.tolist() == [1]
    np.testing.assert_array_equal(found.collective_accuracy_final.values.ravel(), [1.0])


def test_a_probe_run_by_its_path_is_a_study_of_one(tmp_path: Path) -> None:
    record(tmp_path / "probe", source=record(tmp_path / "run", right=False))  # the source has streams of its own
    study = study_at(tmp_path / "probe")
    assert [entry.name for entry in study.entries] == ["probe"] and not study.probe_runs and not study.notes
    assert [entry.name for entry in study_at(tmp_path / "run").entries] == ["run"]
    of_source, of_probe = (
        waterjar.measure(tmp_path / name, families=["collective"]).results["collective"] for name in ("run", "probe")
    )
    assert of_source.collective_accuracy_final.item() == 0.0 and of_probe.collective_accuracy_final.item() == 1.0
    assert of_probe.cell.values.tolist() == ["probe"]  # not a hash
    assert model_of(study, settings={"collective": {"resamples": 10}}).title == "probe"  # and not the folder around it


def test_every_command_opens_it(tmp_path: Path) -> None:
    path = str(record(tmp_path / "probe", source=record(tmp_path / "run", own="")))

    def run(*arguments: str) -> str:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == 0, found.output
        return found.output

    assert "collective_accuracy" in run("diagnose", path, "--only", "collective", "--csv")
    for where in (path, str(tmp_path)):
        run("report", where, "--format", "template", "--out", str(tmp_path / "out.md"))
        told = (tmp_path / "out.md").read_text()
        assert "| Collective Accuracy | 100.00%" in told and "| a | 50.00%" in told
