"""Reports of studies that are empty, tiny, broken or unfinished: a sensible page that says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import waterjar
from recording import EINSTELLUNG_SETS, einstellung, record
from view.report.studies import frames_of
from waterjar.errors import WaterjarError
from waterjar.run.study import study_at
from waterjar.view.report import Model, compose, model_of
from waterjar.view.report.blocks import Callout, Report, Text, Verdicts
from waterjar.view.report.renderers.html import render
from waterjar.view.report.renderers.markdown import render as as_markdown


def report_of(path: Path, **settings: object) -> Report:
    return compose(model_of(study_at(path), **settings))  # type: ignore[arg-type]


@pytest.fixture
def copied(small: Model, tmp_path: Path) -> Path:
    """A study to break, with what was measured of it."""
    return Path(shutil.copytree(small.study.path, tmp_path / "s"))


def names(report: Report) -> list[str]:
    return [part.name for part in report.sections]


def test_an_empty_study(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "s", {"experiment_name": "nothing yet"})
    report = report_of(tmp_path / "s")
    assert names(report) == ["summary", "settings"]
    first = report.sections[0].blocks[0]
    assert isinstance(first, Callout) and first.title == "The study is empty"
    assert "nothing yet" in render(report) and "The study is empty" in render(report)
    assert "plotly.js" not in render(report)  # no chart, no library
    assert "listed under Seals" not in render(report)  # there is no such section
    assert "Seals" not in as_markdown(report, {})


def test_one_run(tmp_path: Path) -> None:
    path = record(tmp_path / "one")
    report = report_of(path)
    assert "1 run: sgd, 1 seed (0)" in report.lead
    assert {"summary", "learning", "plasticity", "seals"} <= set(names(report))
    assert report.status.kind == "good" and report.status.text.startswith("Its seal holds")
    assert report.status.text.endswith("since it was recorded.")
    assert not [block for block in report.sections[0].blocks if isinstance(block, Text)]  # nobody asked for rigidity


def test_a_verdict_that_was_wanted_and_is_not_there_is_told(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "s", {"analysis": {"lead": "rigidity"}})
    record(tmp_path / "s" / "one")
    texts = [block.text for block in report_of(tmp_path / "s").sections[0].blocks if isinstance(block, Text)]
    assert len(texts) == 1 and texts[0].startswith("There is no verdict on rigidity: ")


def test_one_epoch(tmp_path: Path) -> None:
    for seed in (1, 2):
        einstellung(tmp_path / "s" / f"a{seed}", scenario="scratch_t2", seed=seed, epochs=1)
        einstellung(tmp_path / "s" / f"b{seed}", seed=seed, epochs=1)
    report = report_of(tmp_path / "s")
    assert {"summary", "rigidity", "learning"} <= set(names(report))
    assert "within 1 epoch, so" in render(report)


def test_nothing_but_epoch_0(tmp_path: Path) -> None:
    for seed in (1, 2):
        einstellung(tmp_path / "s" / f"a{seed}", scenario="scratch_t2", seed=seed, epochs=0)
        einstellung(tmp_path / "s" / f"b{seed}", seed=seed, epochs=0)
    page = render(report_of(tmp_path / "s"))
    assert "Nobody reaches" not in page and "has no value in training (not recorded)" in page
    assert '<span class="badge">not measured</span>' in page and "not settled by" not in page
    assert "AD has no value at any threshold" in page and "did a learner and its baseline both" not in page


def test_a_metric_that_is_nan_throughout(tmp_path: Path) -> None:
    for seed in (1, 2):
        with waterjar.Recorder(tmp_path / "s" / f"r{seed}", {"learner": "sgd"}, seeds=[seed], eval_sets=["test"]) as r:
            for epoch in range(3):
                r.log(epoch=epoch, performance={"accuracy": [np.nan]})
    report = report_of(tmp_path / "s")
    assert "missing" in names(report)
    assert "NaN" not in render(report).split('id="payload"')[1].split("</script>")[0]
    assert "not_a_number" in render(report)


def test_an_open_run_is_said_to_be_open(tmp_path: Path) -> None:
    path = tmp_path / "s"
    einstellung(path / "base", scenario="scratch_t2")
    recorder = waterjar.Recorder(
        path / "open", {"learner": "sgd"}, seeds=[1], eval_sets=EINSTELLUNG_SETS, tasks=["t1", "t2"]
    )
    recorder.log(train_task="t1", epoch=0, performance={"accuracy": dict.fromkeys(EINSTELLUNG_SETS, 0.1)})
    report = report_of(path)
    recorder.close()
    assert report.status.kind == "warning" and "1 of 2 runs is not sealed yet (open): its" in report.status.text


def test_a_tampered_run_is_left_out_and_named_with_its_chunk(copied: Path) -> None:
    path = copied
    victim = next(
        file for file in sorted((path / "sgd-1").rglob("c/*")) if "macro_accuracy" in str(file) or file.is_file()
    )
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(bytes(data))
    report = report_of(path)
    assert "11 runs" in report.lead
    assert report.status.kind == "bad" and "1 run unreadable and left out (sgd-1)" in report.status.text
    page = render(report)
    assert "is not what was sealed" in page
    assert "What does not hold" in page and "changed: array" in page


def test_a_damaged_run_is_left_out_and_named(copied: Path) -> None:
    path = copied
    (path / "er-1" / "zarr.json").write_text("{")
    report = report_of(path)
    assert "11 runs" in report.lead
    assert report.status.kind == "bad" and "unreadable and left out (er-1)" in report.status.text
    assert "is damaged" in render(report)


def test_a_run_without_a_chunk_takes_nobody_with_it(copied: Path) -> None:
    shutil.rmtree(copied / "er-1" / "performance" / "macro_accuracy" / "c")
    report = report_of(copied)
    assert "11 runs" in report.lead and {"rigidity", "learning"} <= set(names(report))
    assert report.status.kind == "bad" and "1 run unreadable and left out (er-1)" in report.status.text
    page = render(report)
    assert "could not read" in page and "macro_accuracy/c/0/0/0" in page
    whole = copied.parent / "whole"
    shutil.copytree(copied, whole)
    shutil.rmtree(whole / "er-1")
    (whole / "ledger.jsonl").unlink()
    told, without = (frames_of(one)["verdicts"] for one in (report, report_of(whole)))
    assert told.equals(without)  # the very numbers of the others


def test_no_run_can_be_read_to_the_end(tmp_path: Path) -> None:
    record(tmp_path / "s" / "a")
    victim = next(file for file in sorted((tmp_path / "s" / "a").rglob("*")) if file.is_dir() and file.name == "c")
    shutil.rmtree(victim)
    report = report_of(tmp_path / "s")
    first = report.sections[0].blocks[0]
    assert isinstance(first, Callout) and first.title == "Nothing to show"


def test_only_damaged_runs(tmp_path: Path) -> None:
    record(tmp_path / "s" / "a")
    (tmp_path / "s" / "a" / "zarr.json").write_text("{")
    report = report_of(tmp_path / "s")
    assert "can be read" in report.lead
    first = report.sections[0].blocks[0]
    assert isinstance(first, Callout) and first.title == "Nothing to show"


def test_a_run_that_only_the_ledger_knows(copied: Path) -> None:
    path = copied
    shutil.rmtree(path / "sgd-2")
    report = report_of(path)
    assert report.status.kind == "bad" and "sealed once and gone (sgd-2)" in report.status.text


def test_a_study_without_a_baseline(tmp_path: Path) -> None:
    for seed in (1, 2):
        einstellung(tmp_path / "s" / f"a{seed}", seed=seed)
        einstellung(tmp_path / "s" / f"b{seed}", learner="er", seed=seed)
    report = report_of(tmp_path / "s")
    page = render(report)
    assert "There is no baseline to compare with" in page
    assert '<span class="badge">no baseline</span>' in page


def test_another_baseline(copied: Path) -> None:
    path = copied
    report = report_of(path, baseline="interleaved")
    assert "Compared with interleaved" in render(report)


def test_some_runs_alone(copied: Path) -> None:
    path = copied
    study = study_at(path, "learner != er")
    assert "9 runs" in compose(model_of(study, where="learner != er")).lead
    with pytest.raises(WaterjarError, match="no run of .* has learner=nobody"):
        study_at(path, "learner=nobody")


def test_seeds_that_are_all_the_same_have_no_interval(tmp_path: Path) -> None:
    sets = dict.fromkeys(EINSTELLUNG_SETS, 0.7)
    for seed in (1, 2, 3):
        for name, scenario in (("base", "scratch_t2"), ("sgd", "sequential")):
            config = {"method": name, "scenario": scenario, "learner": "sgd"}
            run = tmp_path / "s" / f"{name}{seed}"
            with waterjar.Recorder(
                run, config, seeds=[seed], eval_sets=EINSTELLUNG_SETS, tasks=["t1", "t2"]
            ) as recorder:
                for epoch in range(3):
                    performance = {"accuracy": sets, "macro_accuracy": sets}
                    recorder.log(train_task="t2", epoch=epoch, performance=performance)
    report = report_of(tmp_path / "s")
    told = next(block for block in report.shown if isinstance(block, Verdicts))
    facts = dict(told.verdicts[0].facts)
    assert facts["A patch ↑\naccuracy with the shortcut"] == "0.700\nthe same in all 3 seeds"
    page = as_markdown(report, {})
    assert "0.700, the same in all 3 seeds" in page and "[0.700, 0.700]" not in page and "[0.000, 0.000]" not in page


def test_a_title_of_ones_own(tmp_path: Path) -> None:
    report = report_of(record(tmp_path / "one"), title="Mine")
    assert report.title == "Mine"
