"""Declarations: every fault is one clear error before any training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from waterjar import WaterjarError
from waterjar.lab import study
from waterjar.lab.study import declare, expand

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
    assert declare({"kind": "einstellung"}).analysis.threshold == 0.6


def test_presets_and_settings() -> None:
    strategy = {"learner": "derpp", "preset": "derpp_einstellung", "settings": {"alpha": 0.3}}
    content = {"kind": "einstellung", "strategies": [strategy], "scenarios": ["sequential"], "seeds": [1]}
    (run,) = expand(declare(content))
    assert (run.learner_settings["alpha"], run.learner_settings["beta"]) == (0.3, 0.5)
    assert run.learner_settings["buffer_size"] == 500


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
        ({"shortcut": {"rate": 1.3}}, r"'shortcut.rate' is 1.3: .*less than or equal to 1"),
        ({"shortcut": {"settings": {"sise": 4}}}, r"setting 'sise' is unknown: did you mean 'size'"),
        ({"shortcut": {"kind": "pach"}}, r"shortcut 'pach' is unknown: did you mean 'patch'"),
        ({"tasks": {"t2_superclasses": [7, 8, 9]}}, r"superclasses \[7\] are in T1 and in T2"),
        ({"tasks": {"shortcut_superclasses": [3]}}, r"shortcut superclasses \[3\] are not in T2"),
        ({"tasks": {"shortcut_superclasses": [8, 9, 10, 11]}}, "at least one without it is needed as a control"),
        ({"tasks": {"t1_superclasses": []}}, "at least one"),
        ({"strategies": ["derp"]}, r"learner 'derp' is unknown: did you mean 'derpp'"),
        ({"strategies": [{"learner": "derpp", "settings": {"bufer_size": 3}}]}, "did you mean 'buffer_size'"),
        ({"strategies": [{"learner": "derpp", "preset": "x"}]}, "preset 'x' is unknown"),
        ({"strategies": ["sgd", "sgd"]}, "strategies .* must be different ones"),
        ({"backbones": ["resnet"]}, r"network 'resnet' is unknown: did you mean 'resnet18'"),
        ({"scenarios": ["scratch"]}, "scenarios"),
        ({"seeds": []}, r"seeds \[\] must be different ones, at least one"),
        ({"seeds": [-1]}, "seeds"),
        ({"training": {"batch_size": 0}}, "batch_size"),
        ({"training": {"lr": 0.1}}, r"training.*lr"),
        ({"sweep": {"shortcut.rat": [1]}}, "sweep over 'shortcut.rat' is unknown: did you mean 'shortcut.rate'"),
        ({"sweep": {"shortcut.rate": [2]}}, "shortcut.rate"),
        ({"sweep": {"shortcut.rate": []}}, "sweep over 'shortcut.rate' has no values"),
        ({"sweep": {"data.settings.seed": [1, 2]}}, "only settings of tasks, shortcut"),
        ({"strategies": ["joint"]}, "it is the scenario interleaved"),
        ({"resources": {"device": "gpu"}}, "device"),
        ({"kind": "other"}, "kind"),
        ({"kind": None}, "kind is missing; kind: einstellung would be right"),
    ],
)
def test_faults(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        declare({"kind": "einstellung", **changes})


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    with pytest.raises(WaterjarError, match="could not read"):
        study.read(file)
    for text, message in (
        ("a: [", "is not YAML"),
        ("- 1", "is not a mapping"),
        ("!!python/object/apply:os.system ['x']", "is not YAML"),
        ("kind: einstellung\nseedz: [1]", "study.yaml: setting 'seedz' is unknown"),
    ):
        file.write_text(text)
        with pytest.raises(WaterjarError, match=message):
            study.read(file)


def test_the_seeds_own_sweep_is_a_declaration() -> None:
    """The plan's einstellung_sweep.yaml: its sections carry over under the names they have there."""
    content = {
        "kind": "einstellung",
        "experiment_name": "einstellung_effect_analysis",
        "seeds": [42, 123, 456],
        "backbones": ["resnet18", "vit"],
        "strategies": ["sgd", "derpp", "ewc_on"],
        "scenarios": ["scratch_t2", "interleaved", "sequential"],
        "resources": {"workers": 2},
        "analysis": {
            "attention_analysis": True,
            "statistical_tests": True,
            "generate_plots": True,
            "export_formats": ["csv", "json", "png"],
        },
    }
    assert len(expand(declare(content))) == 3 * 2 * (2 + 3)


def test_augmentation_that_is_not_given_keeps_its_defaults() -> None:
    run = expand(declare({"kind": "einstellung", "augmentation": {"t1": {"rotation": 3}}}))[0]
    assert (run.augmentation.t1.rotation, run.augmentation.t1.scale, run.augmentation.t2.rotation) == (
        3,
        (0.8, 1.2),
        10,
    )
