"""Studies of kind binary: every fault is one clear error before any training; one command does it all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import waterjar
from lab.study.in_this_process import InThisProcess
from waterjar.cli.main import app
from waterjar.errors import WaterjarError
from waterjar.lab import data, study
from waterjar.lab.binary import BinaryConfig, run_id_of, train_binary
from waterjar.lab.study import estimate as estimating
from waterjar.lab.study.progress import glance, look
from waterjar.run.identity import identify

GLYPHS = {"alphabets": 3, "characters": 2, "train_per_class": 16, "test_per_class": 4}
SMALL: dict[str, Any] = {
    "kind": "binary",
    "data": {"name": "glyphs", "settings": GLYPHS},
    "tasks": {"number": 3},
    "repeats": 2,
    "algorithms": ["sl"],
    "network": {"name": "mlp", "settings": {"hidden": [8, 6]}},
    "training": {"epochs": 2, "batch_size": 16},
    "recording": {"features": ["penultimate"], "samples": 6, "weights": True},
    "resources": {"engine": "loop"},
}


def declaration(**changes: Any) -> Any:
    return study.declare({**SMALL, **changes})


def test_one_run_per_algorithm_and_combination() -> None:
    algorithms = ["sl", {"learner": "rl", "training": {"lr_readout": 0.5}}, {"learner": "sl", "options": ["replay"]}]
    runs = study.expand(declaration(algorithms=algorithms, sweep={"training.lr_features": [0.1, 0.2]}))
    assert [(run.method, run.training.lr_features, run.training.lr_readout) for run in runs] == [
        ("sl", 0.1, 0.05), ("rl", 0.1, 0.5), ("sl+replay", 0.1, 0.05),
        ("sl", 0.2, 0.05), ("rl", 0.2, 0.5), ("sl+replay", 0.2, 0.05),
    ]  # fmt: skip
    assert len({run.repeat_seeds for run in runs}) == 1  # algorithms are paired by seed


def test_a_run_is_what_its_config_alone_would_be() -> None:
    (run,) = study.expand(
        declaration(algorithms=[{"learner": "rl", "settings": {"entropy": 0.1}, "options": ["redo"]}])
    )
    assert run == BinaryConfig(
        data="glyphs",
        tasks=SMALL["tasks"],
        repeats=2,
        learner="rl",
        learner_settings={"entropy": 0.1},
        options=[{"name": "redo"}],
        network="mlp",
        network_settings=SMALL["network"]["settings"],
        training=SMALL["training"],
        recording=SMALL["recording"],
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithms": []}, "setting 'algorithms' is empty"),
        ({"algorithms": ["sgd"]}, "algorithms[0]: learner 'sgd' is unknown"),
        ({"algorithms": ["sl", "sl"]}, "algorithms[1] is the same as algorithms[0], which declares one run twice"),
        ({"algorithms": [{"learner": "rl", "settings": {"basline": "none"}}]},
         "did you mean 'algorithms[0].settings.baseline'"),
        ({"algorithms": [{"learner": "sl", "options": ["replai"]}]},
         "option 'replai' is unknown: did you mean 'replay'?"),
        ({"algorithms": [{"learner": "sl", "options": [{"name": "replay", "settings": {"siz": 3}}]}]},
         "did you mean 'algorithms[0].options[0].settings.size'"),
        ({"algorithms": [{"learner": "sl", "training": {"lr_feature": 1.0}}]},
         "did you mean 'algorithms[0].training.lr_features'"),
        ({"algorithms": [{"learner": "sl", "training": {"epochs": 5, "log_frequency": 2}}]},
         "does not divide the 5 epochs"),
        ({"algorithms": [{"learner": "sl", "options": ["redo", "redo"]}]}, "each at most once"),
        ({"network": {"name": "cnm"}}, "did you mean 'cnn'"),
        ({"network": {"name": 3}}, "setting 'network.name' is 3"),
        ({"network": {"name": "vit", "settings": {"dept": 3}}}, "did you mean 'network.settings.depth'"),
        ({"training": {"epochs": 10, "log_frequency": 4}}, "log_frequency 4 does not divide the 10 epochs"),
        ({"training": {"optimiser": {"name": "adm"}}}, "did you mean 'adam'"),
        ({"repeats": None}, "study: give `repeats`"),
        ({"repeats": 0}, "repeats"),
        ({"repeats": 3, "seeds": [1, 2]}, "repeats 3, but 2 seeds"),
        ({"tasks": {"numbr": 3}}, "did you mean 'tasks.number'"),
        ({"seeds": [1, 1], "repeats": None}, "study: seeds [1, 1] must be different ones"),
        ({"recording": {"eval_tasks": [3]}}, "study: recording.eval_tasks [3]: tasks are 0 to 2"),
        ({"recording": {"eval_tasks": []}}, "setting 'recording.eval_tasks' is []: no task would be recorded"),
        ({"resources": {"engine": "vmapp"}}, "did you mean 'vmap'"),
        ({"analysis": {"families": ["geometri"]}}, "did you mean 'geometry'"),
        ({"analysis": {"families": [[]]}}, "'analysis.families' is [[]]: expected a list of names"),
        ({"analysis": {"settings": {"geometry": {"nt": 3}}}},
         "analysis.settings.geometry: setting 'nt' is unknown: did you mean 'n_t'?"),
        ({"analysis": {"settings": {"geometry": {"n_t": -3}}}}, "settings.geometry: setting 'n_t' is -3: expected"),
        ({"analysis": {"settings": {"geometry": {"inactive": "foo"}}}}, "geometry: inactive"),
        ({"analysis": {"settings": {"geometry": {"simulate_every": "often"}}}}, "setting 'simulate_every' is"),
        ({"analysis": {"settings": {"geometry": {"layers": 0}}}}, "geometry: setting 'layers' is 0: expected"),
        ({"analysis": {"settings": {"geometry": {"layers": ["fc9"]}}}},
         "analysis.settings.geometry: layers 'fc9' is unknown"),
        ({"analysis": {"layers": ["fc9"]}}, "analysis.settings.geometry: layers 'fc9' is unknown"),
        ({"analysis": {"settings": {"plasticity": {"eval_sets": ["task_003"]}}}},
         "analysis.settings.plasticity: eval_sets 'task_003' is unknown: did you mean"),
        ({"analysis": {"settings": {"continual": {"chance": [0.5, 0.5]}}}},
         "analysis.settings.continual: chance=[0.5, 0.5]: expected one number, or one for every task of a run, which"),
        ({"analysis": {"settings": {"continual": {"variable": "macro_accuracy"}}}},
         "analysis.settings.continual: variable 'macro_accuracy' is unknown: did you mean 'accuracy'?"),
        ({"analysis": {"families": ["rigidity"], "settings": {"rigidity": {"variable": "random_accuracy"}}}},
         "analysis.settings.rigidity: variable 'random_accuracy' is unknown"),
        ({"analysis": {"settings": {"continual": {"chance": 3}}}}, "continual: setting 'chance' is 3: expected"),
        ({"analysis": {"families": ["rigidity"], "settings": {"rigidity": {"window": 0}}}}, "setting 'window' is 0"),
        ({"analysis": {"families": ["drift"], "settings": {"drift": {"matrix": -1}}}}, "drift: setting 'matrix' is -1"),
        ({"analysis": {"settings": {"plasticity": {"energy": 3}}}}, "plasticity: setting 'energy' is 3"),
        ({"analysis": {"families": ["continual"], "settings": {"geometry": {}}}}, "geometry is not among"),
        ({"preset": "sed"}, "preset 'sed' is unknown: did you mean 'seed'?"),
        ({"preset": 3}, "setting 'preset' is 3: expected text"),
        ({"max_parallel_jobs": 2, "resources": {"workers": 1}}, "max_parallel_jobs is another word"),
        ({"sweep": {"training.lr_feature": [1.0]}}, "did you mean 'training.lr_features'"),
        ({"sweep": {"repeats": [1, 2]}}, "only settings of tasks, training, network, recording can be swept"),
        ({"sweep": {"training.epochs": list(range(1, 20_000))}}, "at most 10000 are one study"),
        ({"tasks": {"number": 10**12}}, "setting 'tasks.number' is 1000000000000: expected at most 10000"),
        ({"repeats": 10**12}, "setting 'repeats' is 1000000000000: expected at most 10000"),
        ({"sweep": {"tasks.number": [10**12]}}, "is 1000000000000: expected at most 10000"),
        ({"random_baseline": True, "training": {"lr_readout": 0.0}}, "learns by its readout alone"),
    ],
)  # fmt: skip
def test_faults(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=re.escape(message)) as told:
        declaration(**changes)
    assert len(str(told.value)) < 400  # not the whole declaration


@pytest.mark.parametrize("changes", [{}, {"preset": "seed"}])
def test_runs_keep_the_identity_that_they_had(changes: dict[str, Any]) -> None:
    """What is hashed is what it was before analyses had presets, and before memories had more settings."""
    algorithms = ["sl", {"learner": "rl", "options": ["replay"]}]
    content = {"kind": "binary", "tasks": {"number": 2}, "repeats": 2, "algorithms": algorithms, **changes}
    runs = study.expand(study.declare(content))
    found = [identify(run.to_plain(), run.repeat_seeds, "data", ("engine",), numerics=1)[0] for run in runs]
    assert found == ["64d998a71d00ea79", "c5fd9421689e9c9e"]
    assert not {run_id_of(run, "data") for run in runs} & set(found)  # whose numbers were others


def test_settings_of_the_network_can_be_swept() -> None:
    runs = study.expand(declaration(sweep={"network.settings.hidden": [[4, 3], [5, 3]]}))
    assert [run.network_settings["hidden"] for run in runs] == [[4, 3], [5, 3]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": {"number": 4}}, "expected at most 3 tasks"),
        ({"tasks": {"number": 1, "train_per_class": 17}}, "has 16 train images: expected at most 16"),
        ({"tasks": {"number": 1, "classes_per_task": 7}}, "classes_per_task is 7, but glyphs has 6 classes"),
        ({"recording": {"features": ["penultimat"]}}, "did you mean 'penultimate'"),
        ({"recording": {"features": ["penultimate"], "samples": 10}}, "expected at most 8"),
        (
            {"network": {"name": "vit"}, "algorithms": [{"learner": "sl", "options": ["redo"]}]},
            "option 'redo' renews single units, and needs a network that is a plain chain of layers",
        ),
    ],
)
def test_faults_that_show_beside_the_data(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match=re.escape(message)):
        study.plan(declaration(**changes), tmp_path / "out", data.load("glyphs", **GLYPHS))


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_study_runs_and_is_passed_over(tmp_path: Path, repeats: int) -> None:
    declared = declaration(repeats=repeats, training={"epochs": 2, "log_frequency": 2, "batch_size": 16})
    images = data.load("glyphs", **GLYPHS)
    (job,) = study.plan(declared, tmp_path / "out", images)
    assert (job.images, job.epochs, job.status) == (3 * 2 * 32 * repeats, 6, "todo")
    done = study.run(declared, tmp_path / "out", executor=InThisProcess())
    (entry,) = done.entries
    assert entry.name == f"sl-mlp-{job.run_id[:8]}"
    found = look(job)
    assert (found.status, found.epochs, found.images, found.steps) == ("sealed", job.epochs, job.images, 6)
    run = done.run(entry.name)
    assert found.headline == pytest.approx(run["performance"].accuracy.values[-1, 2].mean())
    alone = train_binary(job.config, images, tmp_path / "alone", checkpoints=tmp_path / "c", engine="loop")
    seal = waterjar.open_run(alone).attributes["seal"]
    assert run.attributes["seal"]["content"] == seal["content"]
    before = (job.path / "zarr.json").read_bytes()
    study.run(declared, tmp_path / "out", executor=InThisProcess())
    assert (job.path / "zarr.json").read_bytes() == before


@pytest.mark.slow
def test_repeats_in_processes_within_a_worker(tmp_path: Path) -> None:
    """A worker of the pool may have processes of its own; they give the bits of the loop."""
    declared = declaration(tasks={"number": 1}, resources={"engine": "processes"})
    (entry,) = study.run(declared, tmp_path / "out").entries
    one = waterjar.open_run(tmp_path / "out" / entry.name)
    (other,) = study.run(declaration(tasks={"number": 1}), tmp_path / "loop", executor=InThisProcess()).entries
    two = waterjar.open_run(tmp_path / "loop" / other.name)
    assert one.attributes["config"]["engine"] == "processes"
    assert one.attributes["seal"]["content"] == two.attributes["seal"]["content"]


def test_runs_under_way_are_looked_at(tmp_path: Path) -> None:
    images = data.load("glyphs", **GLYPHS)
    (job,) = study.plan(declaration(), tmp_path / "out", images)
    assert glance(job).headline is None
    with waterjar.Recorder(
        job.path, {}, seeds=[1], eval_sets={"task_000": 0, "task_001": 1}, tasks=["task_000", "task_001"]
    ) as recorder:
        for task, epoch, accuracy in (("task_000", 0, [0.5, 0.25]), ("task_001", 0, [0.75, 0.125])):
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": accuracy},
                resources={"images": 0, "seconds": 1.0},
            )
        assert look(job).headline == 0.125


def test_what_a_run_costs_is_scaled_up_from_a_part(tmp_path: Path) -> None:
    settings = {**GLYPHS, "train_per_class": 64}
    images = data.load("glyphs", **settings)
    found = {}
    for epochs, name in ((2, "short"), (20, "long")):
        declared = declaration(
            data={"name": "glyphs", "settings": settings},
            training={"epochs": epochs, "batch_size": 4},
            resources={"engine": "auto"},
        )
        jobs = study.plan(declared, tmp_path / name, images)
        found[name] = estimating.estimate(declared, jobs, images)
    short, long = (next(iter(found[name].costs.values())) for name in ("short", "long"))
    assert long.seconds > 3 * short.seconds > 0.0
    assert long.bytes > 2 * short.bytes
    assert short.temporary_bytes > 4 * 2 * 2 * (3072 * 8 + 8 * 6 + 6 * 2)  # weights of learner and expert, twice
    study.run(declared, tmp_path / "long", executor=InThisProcess())
    taken = sum(file.stat().st_size for file in (tmp_path / "long").glob("sl-*/**/*") if file.is_file())
    assert long.bytes == pytest.approx(taken, rel=0.5)
    assert estimating.estimate(declared, jobs, images).seconds == 0.0


def test_a_task_alone_can_be_estimated(tmp_path: Path) -> None:
    images = data.load("glyphs", **GLYPHS)
    declared = declaration(tasks={"number": 1, "classes": [2, 4]}, recording={"weights": False}, experts=False)
    jobs = study.plan(declared, tmp_path, images)
    assert estimating.estimate(declared, jobs, images).seconds > 0.0


def cli(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(found.exception, WaterjarError):
        raise found.exception
    return found.exit_code, found.stdout


def test_the_template_is_valid(tmp_path: Path) -> None:
    code, _ = cli("new", tmp_path / "b.yaml", "--kind", "binary")
    assert code == 0
    assert "{" + "out}" not in (tmp_path / "b.yaml").read_text()
    runs = study.expand(study.read(tmp_path / "b.yaml"))
    assert [run.method for run in runs] == ["sl", "rl", "sl+replay", "sl+shrink_and_perturb"]
    with pytest.raises(WaterjarError, match="did you mean 'binary'"):
        cli("new", tmp_path / "c.yaml", "--kind", "binari")


def test_one_command_trains_measures_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", InThisProcess)
    monkeypatch.chdir(tmp_path)
    geometry = {"n_t": 10}
    content = {**SMALL, "algorithms": ["sl", "rl"], "analysis": {"settings": {"geometry": geometry}}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(content))
    code, text = cli("run", "small.yaml", "--json")
    assert code == 0
    told = json.loads(text)
    assert told["study"] == "small"
    assert [run["method"] for run in told["runs"]] == ["sl", "rl"]  # as declared
    assert np.shape(list(told["runs"][0]["accuracy"].values())) == (3, 2)
    assert (tmp_path / "small" / "report.html").exists()
    for method in ("sl", "rl"):
        drawn = {file.name for file in (tmp_path / "small" / "figures" / "glyphs" / method).glob("*.png")}
        assert {"plasticine_metrics_glyphs.png", "manifold_metrics_glyphs.png", "learning_curves.png"} <= drawn
    code, text = cli("run", "small.yaml")
    assert code == 0
    for word in ("zero_shot", "forward_transfer", "capacity", "waterjar compare small"):
        assert word in text
    code, text = cli("run", "small.yaml", "--train-only", "--json")
    assert json.loads(text)["outputs"] == {}


def test_runs_of_an_earlier_declaration_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", InThisProcess)
    for algorithms in (["rl"], ["sl"]):
        (tmp_path / "small.yaml").write_text(yaml.safe_dump({**SMALL, "algorithms": algorithms}))
        assert cli("run", tmp_path / "small.yaml", "--train-only")[0] == 0
    both = waterjar.open_study(tmp_path / "small")
    assert [entry.config["method"] for entry in both.entries] == ["sl", "rl"]  # the declared one first
    assert both.undeclared == [entry.name for entry in both.entries if entry.config["method"] == "rl"]
    code, text = cli("diagnose", tmp_path / "small", "--only", "continual")
    said = f"1 of 2 runs: not of the study's present declaration: {both.undeclared[0]}"
    assert code == 0 and said in text
    listed = CliRunner().invoke(app, ["ls", str(tmp_path / "small"), "--json"])
    assert {entry["config"]["method"]: entry["declared"] for entry in json.loads(listed.stdout)} == {
        "sl": True,
        "rl": False,
    }
    assert said in listed.stderr
    assert cli("ls", tmp_path / "small")[1].count("no") > 0 and "declared" in cli("ls", tmp_path / "small")[1]


def test_stopped_in_the_analysis_it_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", InThisProcess)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("waterjar.diagnose.study.diagnose", stop)
    (tmp_path / "a b.yaml").write_text(yaml.safe_dump(SMALL))
    result = CliRunner().invoke(app, ["run", str(tmp_path / "a b.yaml"), "--workers", "2"])
    assert result.exit_code == 130
    assert result.stderr.endswith(f"stopped; go on with: waterjar run '{tmp_path / 'a b.yaml'}' --workers 2\n")


def test_a_sweep_over_the_number_of_tasks_ends_with_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", InThisProcess)
    content = {**SMALL, "sweep": {"tasks.number": [2, 3]}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(content))
    code, text = cli("run", tmp_path / "small.yaml", "--train-only")
    assert code == 0
    (line,) = [line for line in text.splitlines() if "task_002" in line]
    assert "–" in line.split()


def test_what_was_not_recorded_is_said_and_costs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", InThisProcess)
    recorded = {**SMALL, "recording": {"features": [], "weights": False}}
    content = {**recorded, "analysis": {"figures": False, "families": ["continual", "plasticity", "geometry"]}}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(content))
    code, text = cli("run", tmp_path / "small.yaml", "--json")
    assert code == 1  # they are declared
    assert {"plasticity", "geometry"} <= set(json.loads(text)["passed_over"])
    assert json.loads(text)["outputs"].keys() == {"report.html"}
    result = CliRunner().invoke(app, ["run", str(tmp_path / "small.yaml")])
    assert result.exit_code == 1 and "zero_shot" in result.stdout
    assert "declared and not measured: plasticity, geometry; all else is done" in result.stderr
    assert cli("run", tmp_path / "small.yaml", "--train-only")[0] == 0
    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**recorded, "analysis": {"figures": False}}))
    code, text = cli("run", tmp_path / "small.yaml", "--json")  # what is not declared is not missed
    assert code == 0 and json.loads(text)["passed_over"] == {}


@pytest.mark.parametrize(
    ("recording", "families"),
    [
        ({}, ["continual", "plasticity", "geometry"]),
        ({"features": []}, ["continual", "plasticity"]),
        ({"features": [], "weights": False}, ["continual"]),
        ({"weights": False}, ["continual", "plasticity", "geometry"]),
    ],
)
def test_where_a_file_is_silent_what_it_records_is_measured(recording: dict[str, Any], families: list[str]) -> None:
    for preset in (None, "seed"):
        assert list(declaration(recording=recording, preset=preset).analysis.families or ()) == families
