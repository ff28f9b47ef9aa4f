from __future__ import annotations

import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from recording import content
from tiny_lab import GLYPHS, TASKS

pytest.importorskip("torch")

import waterjar
from lab.study.in_this_process import InThisProcess
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.errors import BusyError
from waterjar.lab import data, study
from waterjar.lab.study import Declared, Job, declare, plan
from waterjar.lab.study.progress import JobProgress, glance, kind_of, look, rates, seconds_left

pytestmark = pytest.mark.torch

CONTENT: dict[str, Any] = {
    "kind": "einstellung",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "seeds": [1, 2],
    "backbones": [{"name": "small_cnn", "settings": {"width": 4}}],
    "strategies": ["sgd", {"learner": "er", "settings": {"buffer_size": 10}}],
    "tasks": TASKS.model_dump(mode="json"),
    "training": {"epochs_t1": 1, "epochs_t2": 2, "batch_size": 10},
    "resources": {"device": "cpu"},
}


def declaration(**changes: Any) -> Declared:
    return declare({**CONTENT, **changes})


def contents(found: waterjar.Study) -> dict[str, str]:
    return {run.path.name: run.attributes["seal"]["content"] for run in found}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    return study.run(declaration(), tmp_path_factory.mktemp("finished"), executor=InThisProcess())


def test_all_runs_are_there_and_sealed(finished: waterjar.Study) -> None:
    assert len(finished) == 2 * (2 + 2)
    assert {entry.status for entry in finished.entries} == {"sealed"}
    assert len(finished.cells) == 4
    joined = finished.load()
    assert {tuple(data.seed.values.tolist()) for data in joined.values()} == {(1, 2)}
    assert len(waterjar.run.ledger.entries(finished.path)) == 8
    assert finished.declaration["kind"] == "einstellung"


def test_with_two_spawned_workers_the_bits_are_the_same(finished: waterjar.Study, tmp_path: Path) -> None:
    again = study.run(declaration(resources={"workers": 2, "device": "cpu"}), tmp_path / "two")
    assert contents(again) == contents(finished)


def test_a_finished_study_runs_nothing_and_more_seeds_run_only_those(finished: waterjar.Study) -> None:
    executor = InThisProcess()
    study.run(declaration(), finished.path, executor=executor)
    assert executor.calls == 0
    plans = plan(declaration(seeds=[1, 2, 3]), finished.path, data.load("glyphs", **GLYPHS))
    assert sum(job.status == "todo" for job in plans) == 4
    changed = plan(declaration(training={"epochs_t1": 1, "epochs_t2": 3}), finished.path, data.load("glyphs", **GLYPHS))
    assert {job.status for job in changed} == {"todo"}


def test_any_executor_will_do(finished: waterjar.Study, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        again = study.run(declaration(scenarios=["scratch_t2"]), tmp_path / "threads", executor=pool, poll_seconds=0.05)
    expected = contents(finished)
    assert contents(again) == {name: expected[name] for name in contents(again)}
    assert len(again) == 2


def test_a_failing_run_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    declared = declaration(scenarios=["scratch_t2"])
    jobs = plan(declared, tmp_path, data.load("glyphs", **GLYPHS))
    broken = tmp_path / ".waterjar" / "checkpoints" / jobs[0].path.name
    broken.mkdir(parents=True)
    (broken / "last.pt").write_bytes(b"x")
    with pytest.raises(WaterjarError, match=f"(?s)1 of 2 runs failed, 1 are complete .*{jobs[0].path.name}: .*last.pt"):
        study.run(declared, tmp_path, executor=InThisProcess())
    assert jobs[1].status == "sealed"
    (broken / "last.pt").unlink()
    assert len(study.run(declared, tmp_path, executor=InThisProcess())) == 2


def test_progress_is_read_from_the_runs(finished: waterjar.Study, tmp_path: Path) -> None:
    jobs = plan(declaration(), finished.path, data.load("glyphs", **GLYPHS))
    seen = {job.path.name: look(job) for job in jobs}
    for job in jobs:
        progress = seen[job.path.name]
        assert (progress.status, progress.epochs, progress.images) == ("sealed", job.epochs, job.images)
        assert progress.headline is not None
    assert seconds_left(jobs, seen, 1) == 0.0
    todo = plan(declaration(seeds=[9]), finished.path, data.load("glyphs", **GLYPHS))
    seen |= {job.path.name: look(job) for job in todo}
    speed = rates(jobs, seen)
    expected = sum(job.images / speed[kind_of(job)] for job in todo)
    assert seconds_left(jobs + todo, seen, 1) == pytest.approx(expected)
    assert seconds_left(todo, {job.path.name: look(job) for job in todo}, 1) is None
    with waterjar.Recorder(todo[0].path.parent / "bare", {}):
        pass


def test_images_counted_in_the_plan_are_those_recorded(finished: waterjar.Study) -> None:
    for job in plan(declaration(), finished.path, data.load("glyphs", **GLYPHS)):
        assert waterjar.open_run(job.path)["resources"].images.values.sum() == job.images


def cli(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def write(folder: Path, **changes: Any) -> Path:
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump({**CONTENT, **changes}))
    return file


def test_dry_run_says_what_would_run(tmp_path: Path, finished: waterjar.Study) -> None:
    file = write(tmp_path, scenarios=["scratch_t2"], resources={"device": "cpu", "workers": 2})
    code, text = cli("run", file, "--out", tmp_path / "out", "--dry-run", "--json")
    found = json.loads(text)
    assert code == 0
    assert [item["status"] for item in found["runs"]] == ["todo"] * 2
    assert found["seconds"] > max(item["seconds"] for item in found["runs"]) > 0
    assert found["bytes"] > sum(item["bytes"] for item in found["runs"]) > 1e6
    assert found["workers"] == 2
    assert not (tmp_path / "out").exists()
    code, text = cli("run", write(tmp_path), "--out", finished.path, "--dry-run")
    assert "0 of 8 runs left, about 0 s with 1 at a time" in text
    assert "about 0.0 MB of disk" in text


def test_run_ends_with_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", InThisProcess)
    file = write(tmp_path, seeds=[1], scenarios=["scratch_t2"])
    code, text = cli("run", file, "--out", tmp_path / "out", "--workers", "1")
    assert code == 0
    assert "t2_shortcut_masked" in text
    assert "scratch_t2" in text
    code, text = cli("run", file, "--out", tmp_path / "out", "--json")
    told = json.loads(text)
    assert told["study"] == str(tmp_path / "out") and "report.html" in told["outputs"]
    (found,) = told["runs"]
    last = waterjar.open_run(tmp_path / "out" / found["run"])["performance"].accuracy.isel(step=-1, repeat=0)
    assert found["accuracy"] == {str(name): float(last.sel(eval_set=name)) for name in last.eval_set.values}


def test_new_writes_a_file_that_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    code, text = cli("new", file)
    assert code == 0
    assert "--dry-run" in text
    assert len(study.expand(study.read(file))) == 3 * 5
    with pytest.raises(WaterjarError, match="is there already"):
        cli("new", file)
    assert json.loads(cli("new", file, "--force", "--json")[1]) == {"file": str(file), "kind": "einstellung"}
    with pytest.raises(WaterjarError, match="could not write"):
        cli("new", file / "where.yaml")


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path, finished: waterjar.Study) -> None:
    file = write(
        tmp_path, seeds=[1], scenarios=["sequential"], training={"epochs_t1": 400, "epochs_t2": 2, "batch_size": 10}
    )
    command = [sys.executable, "-m", "waterjar", "run", str(file), "--out", str(tmp_path / "out")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # A shell that was started in the background ignores Ctrl-C, and hands that on to the tests and to us.
    listen = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=listen, **pipes) as process:  # noqa: PLW1509
        for _ in range(600):
            time.sleep(0.1)
            if any((tmp_path / "out").glob("sequential-*/performance/accuracy/c")):
                break
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped; go on with: waterjar run" in error
    assert "Traceback" not in error.split("stopped;")[-1]
    (run, *_) = waterjar.open_study(tmp_path / "out")
    assert run.status in ("interrupted", "recording")
    assert not np.isnan(run.load("performance").accuracy.values).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"name": "cifar100", "settings": {"path": "nowhere.tar.gz"}}}, "CIFAR-100 is not at nowhere.tar.gz"),
        ({"data": {"name": "glyphs", "settings": {"alphabets": 3}}}, "superclass"),
        ({"shortcut": {"settings": {"size": 40}}}, "40"),
        ({"data": {"name": "glypse"}}, "data set 'glypse' is unknown: did you mean 'glyphs'"),
        ({"recording": {"features": ["penultimat"]}}, "layer 'penultimat' is unknown: did you mean 'penultimate'"),
        ({"shortcut": {"settings": {"size": 20}}}, "no room beside a 20x20 region"),
        (
            {"backbones": [{"name": "mlp", "settings": {"hidden": [2**63]}}]},
            r"network 'mlp' \(hidden=\(9223372036854775808,",
        ),
        ({"backbones": [{"name": "small_cnn", "settings": {"width": 2**40}}]}, "network 'small_cnn' .*cannot be built"),
        ({"augmentation": {"t1": {"padding": 40}}}, "padding 40"),
        ({"strategies": ["sgd", {"learner": "sgd", "settings": {"lr": 0.01}}]}, "twice|is the same as"),
    ],
)
def test_faults_show_before_any_training(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        study.run(declaration(**changes), tmp_path / "out", executor=InThisProcess())
    assert not (tmp_path / "out").exists()


def test_a_changed_copy_of_the_data_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    declared = declaration(scenarios=["scratch_t2"], seeds=[1])
    study.run(declared, tmp_path, executor=InThisProcess())
    (images,) = (tmp_path / ".waterjar" / "data").glob("*/train_images.npy")
    good = images.read_bytes()
    content = bytearray(good)
    content[5000] ^= 255
    images.write_bytes(content)
    study.run(declaration(scenarios=["scratch_t2"], seeds=[2]), tmp_path, executor=InThisProcess())
    assert images.read_bytes() == good
    told = [record.getMessage() for record in caplog.records]
    assert sum("train_images.npy no longer has the contents" in text for text in told) == 1


def stopped_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Declared, Job]:
    """A run killed after its first step and before its first checkpoint, then again right after it was resumed."""
    declared = declaration(scenarios=["scratch_t2"], seeds=[1])
    (job,) = plan(declared, tmp_path, data.load("glyphs", **GLYPHS))
    with monkeypatch.context() as patch:
        for name in ("_save_if_due", "go"):
            patch.setattr(f"waterjar.lab.loop.Loop.{name}", lambda *_: signal.default_int_handler(2, None))
            with pytest.raises(KeyboardInterrupt):
                study.run(declared, tmp_path, executor=InThisProcess())
    return declared, job


def test_a_run_cut_back_to_its_beginning_has_no_accuracy_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared, job = stopped_at_once(tmp_path, monkeypatch)
    assert waterjar.open_run(job.path)["performance"].sizes["step"] == 0
    assert look(job) == JobProgress("interrupted", 0, 0, 0, 0.0, None)
    seen: list[JobProgress] = []
    study.run(declared, tmp_path, executor=InThisProcess(), watch=lambda jobs, last: seen.append(look(jobs[0])))
    assert seen[-1].status == "sealed"


@pytest.mark.parametrize("text", ["", "{}", '{"attributes": {}}', '{"attributes": {"waterjar_schema": 1}}'])
def test_a_run_that_cannot_be_read_does_not_end_the_table(finished: waterjar.Study, tmp_path: Path, text: str) -> None:
    (job, *_) = plan(declaration(), tmp_path, data.load("glyphs", **GLYPHS))
    job.path.mkdir()
    (job.path / "zarr.json").write_text(text)
    before = JobProgress("recording", 2, 1, 60, 1.5, 0.25)
    assert glance(job).status == "unreadable"
    assert glance(job, before) is before
    assert not job.is_sealed
    there = plan(declaration(), finished.path, data.load("glyphs", **GLYPHS))[0]
    assert glance(there, before) == look(there)


def test_runs_that_another_study_seals_meanwhile_are_complete(finished: waterjar.Study, tmp_path: Path) -> None:
    """An executor whose calls fail as they do beside another writer, which then is done."""

    class Overtaken(InThisProcess):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if "scratch_t2" in args[1]:
                super().submit(fn, *args)
            future.set_exception(WaterjarError(f"{args[1]} is being written by process 1: a run has one writer"))
            return future

    done = study.run(declaration(seeds=[1], scenarios=["scratch_t2"]), tmp_path, executor=Overtaken())
    assert [entry.status for entry in done.entries] == ["sealed"]
    with pytest.raises(
        BusyError, match=r"another process is writing 1 of 2 runs in .*; 1 are complete(?s:.*)Nothing failed"
    ):
        study.run(declaration(scenarios=["scratch_t2", "interleaved"], seeds=[2]), tmp_path, executor=Overtaken())


def test_a_study_is_not_put_into_a_run_or_below_a_file(finished: waterjar.Study, tmp_path: Path) -> None:
    run = finished.path / finished.entries[0].name
    before = content(run)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    for out, message in (
        (run, "is a run: a study needs a folder beside the runs"),
        (run / "performance" / "new", "is inside the run"),
        (tmp_path / "link" / "x", "is inside the run"),
        (tmp_path / "file", "file is a file, not a folder"),
        (tmp_path / "file" / "below" / "it", "file is a file, not a folder"),
        (tmp_path / ("x" * 300), "cannot hold a study: File name too long"),
    ):
        with pytest.raises(WaterjarError, match=message):
            study.run(declaration(), out, executor=InThisProcess())
        with pytest.raises(WaterjarError, match=message):
            cli("run", write(tmp_path), "--out", out, "--dry-run")
    assert content(run) == before
    assert plan(declaration(), tmp_path / "foreign" / "out", data.load("glyphs", **GLYPHS))


def test_the_command_to_go_on_with_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "run", lambda *_, **__: signal.default_int_handler(2, None))
    folder = tmp_path / "my studies; rm x"
    folder.mkdir()
    file, out = write(folder), folder / "o'ut"
    for more in ((), ("--workers", "3")):
        result = CliRunner().invoke(app, ["run", str(file), "--out", str(out), *more])
        assert result.exit_code == 130
        hint = result.stderr.partition("go on with: ")[2].splitlines()[0]
        assert shlex.split(hint) == ["waterjar", "run", str(file), "--out", str(out), *more]


def test_a_bit_that_flips_while_the_study_runs_is_found_by_the_next_run(tmp_path: Path) -> None:
    """Numbers of images that have changed would be sealed as those of the others; the same command mends it."""

    class Flipping(InThisProcess):
        def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
            if self.calls == 1:
                (file,) = tmp_path.glob("study/.waterjar/data/*/train_images.npy")
                flipped = bytearray(file.read_bytes())
                flipped[-1] ^= 1
                file.write_bytes(flipped)
            return super().submit(fn, *args)

    declared = declaration(strategies=["sgd"], scenarios=["scratch_t2"], training={"epochs_t1": 1, "epochs_t2": 1})
    expected = contents(study.run(declared, tmp_path / "whole", executor=InThisProcess()))
    with pytest.raises(WaterjarError, match=r"1 of 2 runs failed, 1 are complete.*\n.*train_images.npy no longer has"):
        study.run(declared, tmp_path / "study", executor=Flipping())
    assert contents(study.run(declared, tmp_path / "study", executor=InThisProcess())) == expected
