"""Declarations: every fault is one clear error before any training."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip("torch")

from waterjar import WaterjarError
from waterjar.lab import data, learners, study
from waterjar.lab.config import Planting, Training
from waterjar.lab.einstellung import run_id_of
from waterjar.lab.study import declare, expand
from waterjar.lab.study.parts import Resources
from waterjar.run.identity import identify

pytestmark = pytest.mark.torch


def test_baselines_once_per_backbone_and_seed() -> None:
    declaration = declare({"kind": "einstellung", "seeds": [1, 2], "backbones": ["small_cnn", {"name": "mlp"}]})
    runs = expand(declaration)
    counts: dict[tuple[str, str], int] = {}
    for run in runs:
        counts[run.scenario, run.learner] = counts.get((run.scenario, run.learner), 0) + 1
    assert counts == {
        ("scratch_t2", "sgd"): 4,
        ("interleaved", "joint"): 4,
        ("sequential", "sgd"): 4,
        ("sequential", "ewc_on"): 4,
        ("sequential", "derpp"): 4,
    }


def test_defaults_are_those_of_the_specification() -> None:
    run = expand(declare({"kind": "einstellung"}))[0]
    assert run.tasks.t1_superclasses == tuple(range(8))
    assert run.tasks.t2_superclasses == (8, 9, 10, 11)
    assert run.tasks.shortcut_superclasses == (8,)
    assert (run.shortcut.rate, run.shortcut.eval_rate, run.shortcut.mask) == (0.5, 1.0, "black")
    assert run.shortcut.settings["size"] == 4
    assert run.shortcut.settings["colour"] == [255, 0, 255]
    assert run.shortcut.settings["location"] == "random"
    assert (run.augmentation.t1.rotation, run.augmentation.t1.translation, run.augmentation.t1.scale) == (
        15,
        0.1,
        (0.8, 1.2),
    )
    assert (run.augmentation.t2.rotation, run.augmentation.t2.translation, run.augmentation.t2.scale) == (
        10,
        0.05,
        (0.95, 1.05),
    )
    assert declare({"kind": "einstellung"}).seeds == (42, 123, 456)


def test_presets_and_settings() -> None:
    strategy = {"learner": "derpp", "preset": "derpp_einstellung", "settings": {"alpha": 0.3}}
    content = {"kind": "einstellung", "strategies": [strategy], "scenarios": ["sequential"], "seeds": [1]}
    (run,) = expand(declare(content))
    assert (run.learner_settings["alpha"], run.learner_settings["beta"]) == (0.3, 0.5)
    assert run.learner_settings["buffer_size"] == 500


PRESET = {"kind": "einstellung", "scenarios": ["sequential", "scratch_t2"], "seeds": [1]}


def trained(**changes: Any) -> list[tuple[int, int, int]]:
    runs = expand(declare({**PRESET, **changes}))
    return [(run.training.epochs_t1, run.training.epochs_t2, run.training.batch_size) for run in runs]


@pytest.mark.parametrize("strategy", [{"preset": "ewc_on_einstellung"}, {"learner": "ewc_on"}, "ewc_on"])
def test_a_preset_brings_its_training_and_a_bare_learner_does_not(strategy: Any) -> None:
    brought = (100, 100, 64) if "preset" in strategy else (10, 10, 32)
    assert trained(strategies=[strategy]) == [brought, (10, 10, 32)], "the baseline keeps the file's"


def test_what_is_written_or_swept_goes_before_a_preset() -> None:
    strategies = [{"preset": "ewc_on_einstellung"}]
    written = trained(strategies=strategies, training={"epochs_t1": 10})  # the default, and yet written
    assert written == [(10, 100, 64), (10, 10, 32)]
    assert trained(strategies=strategies, training=Training(batch_size=8)) == [(100, 100, 8), (10, 10, 8)]
    swept = trained(strategies=strategies, sweep={"training.epochs_t2": [2, 3]})
    assert swept == [(100, 2, 64), (10, 2, 32), (100, 3, 64), (10, 3, 32)]
    sections = trained(strategies=strategies, sweep={"training": [{"batch_size": 5}, {"batch_size": 6}]})
    assert sections == [(100, 100, 5), (10, 10, 5), (100, 100, 6), (10, 10, 6)]
    own = [{"preset": "ewc_on_einstellung", "training": {"batch_size": 7}}]
    assert trained(strategies=own, training={"batch_size": 5}) == [(100, 100, 7), (10, 10, 5)]


def test_every_preset_says_what_is_read() -> None:
    for name in learners.names():
        for preset in learners.presets(name).values():
            assert set(preset.training) <= {"n_epochs", "batch_size"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "ed27ca625e037ea1 6f69ba88ab6313f3 550145ad411f889a 59b4a8c426387276 d8aa137e544605c2"),
        (
            {
                "strategies": [
                    {"learner": "derpp", "preset": "derpp_einstellung"},
                    {"learner": "ewc_on", "preset": "ewc_on_einstellung", "settings": {"lr": 0.03}},
                ],
                "training": {"epochs_t1": 10, "epochs_t2": 10, "batch_size": 32},
            },
            "ed27ca625e037ea1 6f69ba88ab6313f3 d8aa137e544605c2 e5bf59e621bdf49c",
        ),
        (
            {
                "scenarios": ["sequential"],
                "strategies": ["derpp", {"learner": "er", "settings": {"lr": 0.1}}],
                "sweep": {"training.batch_size": [16, 32]},
            },
            "c1f27e0ff20067d0 3e887998777a93ce d8aa137e544605c2 0deae72409fb5829",
        ),
    ],
)
def test_runs_keep_the_identity_that_they_had(changes: dict[str, Any], expected: str) -> None:
    """What is hashed is what it was before presets brought their training, and before learners had options."""
    usual = {"kind": "einstellung", "seeds": [1], "backbones": [{"name": "small_cnn", "settings": {"norm": "none"}}]}
    runs = expand(declare({**usual, **changes}))
    before = [{key: value for key, value in run.to_plain().items() if key != "options"} for run in runs]
    assert [identify(plain, [1], "data", numerics=1)[0] for plain in before] == expected.split()
    assert not {run_id_of(run, "data") for run in runs} & set(expected.split())  # whose numbers were others


def test_a_declaration_that_was_written_into_a_study_declares_the_same_study() -> None:
    declaration = declare(
        {
            **PRESET,
            "strategies": ["sgd", {"preset": "derpp_einstellung"}],
            "training": {"epochs_t2": 7},
            "sweep": {"training.batch_size": [4, 8]},
            "analysis": {"threshold": 0.8},
        }
    )
    again = declare(declaration.model_dump(mode="json"))
    assert again == declaration
    assert expand(again) == expand(declaration)


def test_a_sweep_is_every_combination() -> None:
    sweep = {"shortcut.rate": [0.25, 1.0], "shortcut.settings.size": [2, 4], "training.epochs_t2": [3]}
    content = {"kind": "einstellung", "seeds": [1], "scenarios": ["scratch_t2"], "sweep": sweep}
    runs = expand(declare(content))
    found = {(run.shortcut.rate, run.shortcut.settings["size"], run.training.epochs_t2) for run in runs}
    assert found == {(0.25, 2, 3), (0.25, 4, 3), (1.0, 2, 3), (1.0, 4, 3)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sceds": [1]}, r"setting 'sceds' is unknown: did you mean 'seeds'\?"),
        ({"shortcut": {"rat": 0.5}}, r"'shortcut.rat' is unknown: did you mean 'shortcut.rate'"),
        ({"shortcut": {"rate": 1.3}}, r"'shortcut.rate' is 1.3: expected at most 1"),
        ({"shortcut": {"settings": {"sise": 4}}}, r"'shortcut.settings.sise' is unknown: did you mean '.*\.size'"),
        ({"shortcut": {"kind": "pach"}}, r"shortcut 'pach' is unknown: did you mean 'patch'"),
        ({"tasks": {"t2_superclasses": [7, 8, 9]}}, r"superclasses \[7\] are in T1 and in T2"),
        ({"tasks": {"shortcut_superclasses": [3]}}, r"shortcut superclasses \[3\] are not in T2"),
        ({"tasks": {"shortcut_superclasses": [8, 9, 10, 11]}}, "at least one without it is needed as a control"),
        ({"tasks": {"t1_superclasses": []}}, "at least one"),
        ({"strategies": ["derp"]}, r"learner 'derp' is unknown: did you mean 'derpp'"),
        ({"strategies": [{"learner": "derpp", "settings": {"bufer_size": 3}}]}, r"did you mean '.*\.buffer_size'"),
        ({"strategies": [{"learner": "derpp", "preset": "x"}]}, "preset 'x' is unknown"),
        ({"strategies": ["sgd", "sgd"]}, r"strategies\[1\] is the same as strategies\[0\]"),
        ({"strategies": ["sgd", {"learner": "sgd"}]}, r"strategies\[1\] is the same as strategies\[0\]"),
        ({"backbones": ["resnet"]}, r"network 'resnet' is unknown: did you mean 'resnet18'"),
        ({"scenarios": ["scratch"]}, r"study: scenarios\[0\]: name 'scratch' is unknown: did you mean 'scratch_t2'"),
        ({"scenarios": "sequential"}, r"'scenarios' is 'sequential': expected a list, such as \['sequential'\]"),
        ({"seeds": []}, r"'seeds' is empty: at least one is needed"),
        ({"seeds": [7, 8, 7]}, r"seeds\[2\] is the same as seeds\[0\], .* leave one out"),
        ({"seeds": [-1]}, r"'seeds\[0\]' is -1: expected at least 0"),
        ({"seeds": [True]}, r"'seeds\[0\]' is true: expected a whole number"),
        ({"seeds": [2**63]}, r"seeds\[0\]"),
        ({"seeds": [1.5]}, r"'seeds\[0\]' is 1.5: expected a whole number$"),
        ({"seeds": ["12"]}, r"'seeds\[0\]' is '12': expected a whole number: write 12$"),
        ({"shortcut": {"rate": True}}, r"'shortcut.rate' is true: expected a number"),
        ({"shortcut": {"rate": math.nan}}, r"'shortcut.rate' is nan: expected a finite number$"),
        ({"shortcut": {"settings": {"opacity": True}}}, r"'shortcut.settings.opacity' is true: expected a number"),
        ({"shortcut": {"settings": {"colour": [1, 2]}}}, r"'shortcut.settings.colour' is \[1, 2\]: expected 3 values"),
        (
            {"augmentation": {"t1": {"rotation": math.inf}}},
            r"'augmentation.t1.rotation' is inf: expected a finite number",
        ),
        ({"augmentation": {"t1": {"flipp": True}}}, r"did you mean 'augmentation.t1.flip'"),
        ({"training": {"epochs_t1": 0}}, r"'training.epochs_t1' is 0: expected at least 1"),
        ({"training": {"epochs_t1": 10.0}}, r"'training.epochs_t1' is 10.0: expected a whole number: write 10$"),
        ({"training": None}, r"'training' is empty: expected a mapping \(epochs_t1, .*\)"),
        ({"epochs_t1": 3}, r"'epochs_t1' is unknown: did you mean 'training.epochs_t1'"),
        ({"experiment_name": 2024}, r"'experiment_name' is 2024: expected text: write \"2024\"$"),
        ({"recording": {"weights": "yes"}}, r"'recording.weights' is 'yes': expected true or false$"),
        ({"recording": {"features": ["a", "a"]}}, r"'recording.features' .* must be different ones"),
        (
            {"strategies": ["sgd", {"learner": "ewc_on", "lambd": 3}]},
            r"^study: setting 'strategies\[1\].lambd' is unknown: did you mean '.*\.settings.e_lambda'\? .*$",
        ),
        ({"strategies": [{"learner": "sgd", "presett": "x"}]}, r"did you mean 'strategies\[0\].preset'"),
        (
            {"strategies": [{"learner": "sgd", "settings": {"lr": "1e-2"}}]},
            r"'strategies\[0\].settings.lr' is '1e-2': expected a number: write 0.01, without quotes$",
        ),
        (
            {"strategies": [{"learner": "sgd", "settings": [1]}]},
            r"'strategies\[0\].settings' is \[1\]: expected a mapping",
        ),
        (
            {"strategies": [3]},
            r"^study: setting 'strategies\[0\]' is 3: expected a name or a mapping \(learner, .*\)$",
        ),
        ({"strategies": [{"settings": {}}]}, r"^study: setting 'strategies\[0\].learner' is missing$"),
        ({"strategies": [{"learner": 3}]}, r"^study: setting 'strategies\[0\].learner' is 3: expected text.*$"),
        ({"backbones": [{"name": "vit", "setings": {}}]}, r"did you mean 'backbones\[0\].settings'"),
        ({"backbones": [{"name": "vit", "settings": {"dept": 3}}]}, r"did you mean 'backbones\[0\].settings.depth'"),
        ({"baseline": {"lrr": 0.1}}, r"'baseline.lrr' is unknown: did you mean 'baseline.lr'"),
        ({"baseline": {"lr": True}}, r"'baseline.lr' is true"),
        ({"data": {"name": "glyph"}}, r"data: data set 'glyph' is unknown: did you mean 'glyphs'"),
        ({"data": {"settings": {"alphabet": 3}}}, r"did you mean 'data.settings.alphabets'"),
        ({"data": {"name": "npz"}}, r"'data.settings.path' is missing"),
        (
            {"data": {"name": "npz", "settings": {"path": "x.npz", "name": "../x"}}},
            r"data.settings.name.*letters, digits",
        ),
        ({"analysis": {"export_formats": ["png", 3]}}, r"'analysis.export_formats\[1\]' is 3: expected text"),
        ({"analysis": None}, r"'analysis' is empty: expected a mapping \(families, .*\)"),
        ({"analysis": {"famlies": ["cost"]}}, r"'analysis.famlies' is unknown: did you mean 'analysis.families'\?"),
        (
            {"analysis": {"thresold": 0.5}},
            r"'analysis.thresold' is unknown: did you mean 'analysis.settings.rigidity.threshold'\?",
        ),
        ({"analysis": {"threshold": 3}}, r"study: analysis.settings.rigidity: setting 'threshold' is 3: expected"),
        ({"analysis": {"threshold": 0.5, "adaptation_threshold": 0.5}}, r"rigidity.threshold is given twice"),
        ({"analysis": {"eval_sets": ["a"]}}, r"analysis: setting eval_sets: .* have it; write .*\.eval_sets"),
        ({"analysis": {"figures": True, "generate_plots": True}}, "generate_plots is another word for figures"),
        ({"analysis": {"families": ["rigiditi"]}}, "analysis.families: family 'rigiditi' .* did you mean 'rigidity'"),
        ({"analysis": {"lead": "costs"}}, "analysis.lead: family 'costs' is unknown: did you mean 'cost'"),
        (
            {"analysis": {"baseline": 3}},
            r"'analysis.baseline' is 3: expected a name or a mapping \(where, ignore, tell\)",
        ),
        ({"analysis": {"baseline": {"wher": {}, "where": {}}}}, r"did you mean 'analysis.baseline.where'"),
        ({"analysis": {"tests": {"alpha": 2}}}, r"'analysis.tests.alpha' is 2: .*less than 1"),
        ({"analysis": {"statistical_tests": {"test": "t"}}}, r"analysis.tests.test: name 't' is unknown"),
        ({"max_parallel_jobs": 2, "resources": {"workers": 3}}, r"max_parallel_jobs is another .* \(2 and 3\)"),
        ({"max_parallel_jobs": 0}, r"'resources.workers' is 0"),
        ({"gpu_memory_limit": -1}, r"'resources.gpu_memory_limit' is -1"),
        ({"checkpoint_frequency": "epoch"}, r"resources.checkpoint_frequency: name 'epoch' .* Known: 'task', 'best'"),
        ({"max_paralel_jobs": 2}, r"'max_paralel_jobs' is unknown"),
        ({"resources": {"gpu_memory": 2}}, r"did you mean 'resources.gpu_memory_limit'"),
        (
            {"strategies": [{"preset": "derp_einstellung"}]},
            r"^study: strategies\[0\]: preset 'derp_einstellung' is unknown: did you mean 'derpp_einstellung'",
        ),
        ({"strategies": [{"learner": "er", "preset": "derpp_einstellung"}]}, "learner 'er': preset"),
        (
            {"strategies": ["sgd", {"learner": "er", "training": {"batchsize": 2}}]},
            r"did you mean 'strategies\[1\].training.batch_size'",
        ),
        (
            {"strategies": [{"preset": "derpp_einstellung"}, {"learner": "derpp", "preset": "derpp_einstellung"}]},
            r"strategies\[1\] is the same as strategies\[0\]",
        ),
        ({"training": {"batch_size": 0}}, "batch_size"),
        ({"training": {"lr": 0.1}}, r"training.*lr"),
        ({"sweep": {"shortcut.rat": [1]}}, "sweep over 'shortcut.rat' is unknown: did you mean 'shortcut.rate'"),
        ({"sweep": {"shortcutt.rate": [1]}}, "sweep over 'shortcutt.rate' is unknown: did you mean 'shortcut.rate'"),
        ({"sweep": {"shortcut.settings.sise": [1]}}, "did you mean 'shortcut.settings.size'"),
        ({"sweep": {"shortcut.rate": [2]}}, "sweep: setting 'shortcut.rate' is 2: "),
        ({"sweep": {"shortcut.rate": [True]}}, "sweep: setting 'shortcut.rate' is true: expected a number"),
        ({"sweep": {"shortcut.rate": [0.5, 0.5]}}, "sweep over 'shortcut.rate' has the value 0.5 twice"),
        ({"sweep": {"shortcut.rate": 0.5}}, r"'sweep.shortcut.rate' is 0.5: expected a list, such as \[0.5\]"),
        (
            {"sweep": {"training.epochs_t1": list(range(1, 999)), "training.epochs_t2": list(range(1, 999))}},
            "that would be 14940060 runs, 996004 combinations",
        ),
        ({"sweep": {"shortcut.rate": []}}, "sweep over 'shortcut.rate' has no values"),
        ({"sweep": {"shortcut.rate": [1, 1.0]}}, "sweep over 'shortcut.rate' has the value 1.0 twice"),
        (
            {"sweep": {"shortcut.rate": [0.3, 0.4], "shortcut": [{"rate": 0.1}]}},
            r"sweep over 'shortcut' has the value {'rate': 0.1}, which gives 'shortcut.rate', and that is swept",
        ),
        (
            {"sweep": {"augmentation": [None], "augmentation.t1.flip": [True]}},
            r"'augmentation' has the value None, in which 'augmentation.t1.flip' cannot be swept",
        ),
        ({"sweep": {"data.settings.seed": [1, 2]}}, "only settings of tasks, shortcut"),
        ({"strategies": ["joint"]}, "it is the scenario interleaved"),
        ({"resources": {"device": "gpu"}}, "device"),
        ({"kind": "einstelung"}, "kind: name 'einstelung' is unknown: did you mean 'einstellung'"),
        ({"kind": None}, "kind is missing: expected kind: binary or kind: einstellung$"),
    ],
)
def test_faults(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=message) as raised:
        declare({"kind": "einstellung", **changes})
    assert len(str(raised.value).splitlines()) == 1, "one fault, one line"


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    with pytest.raises(WaterjarError, match="could not read"):
        study.read(file)
    for text, message in (
        ("a: [", "is not YAML"),
        ("- 1", "is not a mapping"),
        ("!!python/object/apply:os.system ['x']", "os.system is not read"),
        ("kind: einstellung\nseedz: [1]", "study.yaml: setting 'seedz' is unknown"),
    ):
        file.write_text(text)
        with pytest.raises(WaterjarError, match=message):
            study.read(file)


SEED = """
experiment_name: "einstellung_effect_analysis"
seeds: [42, 123, 456]
backbones: ["resnet18", "vit"]
strategies: ["sgd", "derpp", "ewc_on"]
scenarios: ["scratch_t2", "interleaved", "sequential"]

# Resource configuration
gpu_memory_limit: 8000 # MB
max_parallel_jobs: 2
checkpoint_frequency: "task" # Save after each task

# Analysis configuration
analysis:
  attention_analysis: true # Enable for ViT only
  statistical_tests: true
  generate_plots: true
  export_formats: ["csv", "json", "png"]
"""
"""The seed's einstellung_sweep.yaml as it stands."""


def test_the_seeds_own_sweep_is_a_declaration(tmp_path: Path) -> None:
    file = tmp_path / "einstellung_sweep.yaml"
    file.write_text(f"kind: einstellung\n{SEED}")
    declaration = study.read(file)
    assert len(expand(declaration)) == 3 * 2 * (2 + 3)
    assert (declaration.resources.workers, declaration.resources.gpu_memory_limit) == (2, 8000)
    analysis = declaration.analysis
    assert (analysis.tests, analysis.figures, analysis.export_formats) == (True, True, ("csv", "json", "png"))
    assert analysis.lead == "rigidity"
    said = study.notes(declaration.model_copy(update={"resources": Resources(**SEEDS_RESOURCES)}))
    assert ["limits nothing" in said[0], *("not acted on yet" in line for line in said[1:])] == [True] * 2


def test_the_seeds_own_sweep_on_glyphs_can_be_planned(tmp_path: Path) -> None:
    content = {
        "kind": "einstellung",
        **yaml.safe_load(SEED),
        "data": {"name": "glyphs", "settings": {"train_per_class": 10, "test_per_class": 4}},
        "backbones": ["mlp", "small_cnn"],
        "training": {"epochs_t1": 1, "epochs_t2": 1},
    }
    images = data.load("glyphs", train_per_class=10, test_per_class=4)
    assert len(study.plan(declare(content), tmp_path / "out", images)) == 3 * 2 * (2 + 3)


def test_all_faults_are_told_at_once() -> None:
    content = {"kind": "einstellung", "sceds": 1, "shortcut": {"rate": 2}, "strategies": ["derp"], "seeds": [True, 1.0]}
    with pytest.raises(WaterjarError) as raised:
        declare(content, "my.yaml")
    lines = str(raised.value).splitlines()
    assert len(lines) == 5
    assert all(line.startswith("my.yaml: ") for line in lines)


def test_a_nested_setting_and_the_baselines_can_be_swept() -> None:
    sweep = {"baseline.lr": [0.1, 0.2], "augmentation.t1.rotation": [0, 5]}
    content = {"kind": "einstellung", "seeds": [1], "scenarios": ["interleaved"], "sweep": sweep}
    found = [(run.learner_settings["lr"], run.augmentation.t1.rotation) for run in expand(declare(content))]
    assert found == [(0.1, 0), (0.1, 5), (0.2, 0), (0.2, 5)]


def test_whole_sections_and_models_are_taken() -> None:
    content = {
        "kind": "einstellung",
        "training": Training(epochs_t1=3),
        "seeds": (np.int64(4),),
        "shortcut": {"rate": 1},
    }
    declaration = declare(content)
    assert (declaration.training.epochs_t1, declaration.seeds, declaration.shortcut.rate) == (3, (4,), 1.0)


@pytest.mark.parametrize("model", [lambda: Training(epochs_t1=True), lambda: Planting(rate=True)])
def test_configs_take_no_truth_value_for_a_number(model: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="a number is needed, not true or false"):
        model()


def test_augmentation_that_is_not_given_keeps_its_defaults() -> None:
    run = expand(declare({"kind": "einstellung", "augmentation": {"t1": {"rotation": 3}}}))[0]
    assert (run.augmentation.t1.rotation, run.augmentation.t1.scale, run.augmentation.t2.rotation) == (
        3,
        (0.8, 1.2),
        10,
    )


SEEDS_RESOURCES: dict[str, Any] = {"device": "cpu", "gpu_memory_limit": 8000, "checkpoint_frequency": "task"}
SWEEPABLE: dict[str, Any] = {"kind": "einstellung", "seeds": [1], "strategies": ["sgd", "er"]}


def counted(sweep: dict[str, list[Any]], **changes: Any) -> dict[str, int]:
    runs = expand(declare({**SWEEPABLE, **changes, "sweep": sweep}))
    assert len({run.model_dump_json() for run in runs}) == len(runs)
    methods = [run.method for run in runs]
    return {method: methods.count(method) for method in dict.fromkeys(methods)}


def test_a_sweep_runs_once_what_it_does_not_change() -> None:
    assert counted({"baseline.lr": [0.1, 0.2]}) == {"scratch_t2": 2, "interleaved": 2, "sgd": 1, "er": 1}
    assert counted({"training.epochs_t1": [1, 2, 3]}) == {"scratch_t2": 1, "interleaved": 1, "sgd": 3, "er": 3}
    rotations = {"augmentation.t1.rotation": [0, 5], "training.epochs_t2": [1, 2]}
    assert counted(rotations) == {"scratch_t2": 2, "interleaved": 4, "sgd": 4, "er": 4}


def test_a_run_has_the_same_settings_with_and_without_a_sweep() -> None:
    """The first value stands in, so that runs which are there already stay the study's."""
    plain = [expand(declare({**SWEEPABLE, "training": {"epochs_t1": epochs}})) for epochs in (4, 7)]
    swept = expand(declare({**SWEEPABLE, "sweep": {"training.epochs_t1": [4, 7]}}))
    assert swept == plain[0] + [run for run in plain[1] if run.scenario == "sequential"]


def test_a_section_and_settings_in_it_can_be_swept_together() -> None:
    sections = [{"rate": 0.1}, {"rate": 0.2}]
    for sweep in (
        {"shortcut": sections, "shortcut.settings.size": [3, 5]},
        {"shortcut.settings.size": [3, 5], "shortcut": sections},
    ):
        runs = expand(declare({**SWEEPABLE, "scenarios": ["scratch_t2"], "sweep": sweep}))
        found = {(run.shortcut.rate, run.shortcut.settings["size"]) for run in runs}
        assert found == {(0.1, 3), (0.1, 5), (0.2, 3), (0.2, 5)}
        assert len(runs) == 4
    assert sections == [{"rate": 0.1}, {"rate": 0.2}]
