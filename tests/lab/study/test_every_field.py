"""What is declared is what is measured: every field of every declaration changes what comes out.

Each field stands in one table below with another value: the numbers that are recorded with it must be others (a
changed identity of the run does not count). Fields that only steer how it is computed, and those of the analysis, have
tables of their own. A field that is in no table fails `test_every_field_is_in_a_table`.
"""

from __future__ import annotations

import copy
import functools
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import BaseModel

pytest.importorskip("torch")

import torch

import waterjar
from lab.study.in_this_process import InThisProcess
from tiny_lab import TASKS
from waterjar.diagnose.baseline import find_baselines
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.study import diagnose
from waterjar.lab import data, shortcuts, study
from waterjar.lab.data import ImageData
from waterjar.lab.evaluation import ACCURACIES, Tally, performance
from waterjar.lab.study import declare, expand, kinds
from waterjar.lab.study.runner import train_job
from waterjar.view.outputs import write_outputs
from waterjar.view.report.composing import compose
from waterjar.view.report.model import model_of
from waterjar.view.report.renderers import as_json

pytestmark = pytest.mark.torch


class Changed(NamedTuple):
    """Another value of a field."""

    value: Any
    beside: dict[str, Any] = {}  # noqa: RUF012 - never written to
    """Dotted fields that have these values in both declarations, so that the field has something to act on."""


GLYPHS = {"alphabets": 4, "characters": 2, "train_per_class": 8, "test_per_class": 4}
BASE: dict[str, dict[str, Any]] = {
    "einstellung": {
        "kind": "einstellung",
        "data": {"name": "glyphs", "settings": GLYPHS},
        "seeds": [1],
        "backbones": [{"name": "mlp", "settings": {"hidden": [4]}}],
        "strategies": [{"learner": "er", "settings": {"buffer_size": 4}}],
        "scenarios": ["sequential"],
        "tasks": TASKS.model_dump(mode="json"),
        "training": {"epochs_t1": 1, "epochs_t2": 2},
        "recording": {"features": ["penultimate"], "samples": 4},
        "resources": {"device": "cpu"},
    },
    "binary": {
        "kind": "binary",
        "data": {"name": "glyphs", "settings": GLYPHS},
        "tasks": {"number": 2},
        "repeats": 1,
        "algorithms": [{"learner": "sl"}],
        "network": {"name": "mlp", "settings": {"hidden": [4, 3]}},
        "training": {"epochs": 2, "batch_size": 8},
        "experts": False,
        "recording": {"features": ["penultimate"], "samples": 4},
        "resources": {"engine": "loop", "device": "cpu"},
    },
}
AUGMENTATION = {
    "padding": 2,
    "flip": False,
    "rotation": 40.0,
    "translation": 0.3,
    "scale": [0.5, 0.6],
    "brightness": 0.9,
    "contrast": 0.9,
    "saturation": 0.9,
    "hue": 0.4,
}
L2_INIT = [{"learner": "sgd", "options": [{"name": "l2_init"}]}]
RECORDED: dict[str, dict[str, Changed]] = {
    "einstellung": {
        "data.name": Changed("npz", {"data.settings": {}}),
        "data.settings": Changed({**GLYPHS, "seed": 1}),
        "seeds": Changed([2]),
        "backbones": Changed(["small_cnn"]),
        "backbones.name": Changed("small_cnn", {"backbones.settings": {}}),
        "backbones.settings": Changed({"hidden": [5]}),
        "strategies": Changed(["sgd"]),
        "strategies.learner": Changed("derpp"),
        "strategies.preset": Changed("ewc_on_einstellung", {"strategies": [{"learner": "ewc_on"}]}),
        "strategies.settings": Changed({"buffer_size": 4, "lr": 0.3}),
        "strategies.training": Changed({"batch_size": 5}),
        "strategies.options": Changed(["l2_init"]),
        "strategies.options.name": Changed("shrink_and_perturb", {"strategies": L2_INIT}),
        "strategies.options.settings": Changed({"strength": 0.5}, {"strategies": L2_INIT}),
        "scenarios": Changed(["sequential", "scratch_t2"]),
        "baseline": Changed({"lr": 0.3}, {"scenarios": ["scratch_t2"]}),
        "tasks.t1_superclasses": Changed([1, 0]),
        "tasks.t2_superclasses": Changed([3, 2]),
        "tasks.shortcut_superclasses": Changed([2]),
        "tasks.validation": Changed(0.5),
        "shortcut.kind": Changed("patch"),  # the only one there is, see `test_a_shortcut_has_a_kind`
        "shortcut.rate": Changed(1.0),
        "shortcut.eval_rate": Changed(0.0),
        "shortcut.mask": Changed("mean"),
        "shortcut.settings": Changed({"size": 9}),
        **{f"augmentation.t1.{name}": Changed(value) for name, value in AUGMENTATION.items()},
        **{f"augmentation.t2.{name}": Changed(value) for name, value in AUGMENTATION.items()},
        "training.epochs_t1": Changed(2),
        "training.epochs_t2": Changed(1),
        "training.batch_size": Changed(5),
        "training.precision": Changed("bfloat16"),
        "recording.features": Changed([]),
        "recording.weights": Changed(True),
        "recording.every": Changed(2),
        "recording.samples": Changed(3),
        "recording.class_accuracy": Changed(False),
        "recording.examples": Changed(True),
        "recording.train_examples": Changed(2, {"recording.examples": True}),
        "recording.outputs": Changed(True, {"recording.examples": True}),
        "sweep": Changed({"shortcut.rate": [0.5, 1.0]}),
    },
    "binary": {
        "data.name": Changed("npz", {"data.settings": {}}),
        "data.settings": Changed({**GLYPHS, "seed": 1}),
        "channels": Changed(1),
        "tasks.number": Changed(3),
        "tasks.classes_per_task": Changed(3),
        "tasks.classes": Changed([0, 3, 4, 5]),
        "tasks.train_per_class": Changed(4),
        "tasks.test_per_class": Changed(3),
        "repeats": Changed(2),
        "seed": Changed(1),
        "seeds": Changed([5]),
        "algorithms": Changed(["rl"]),
        "algorithms.learner": Changed("rl"),
        "algorithms.settings": Changed({"entropy": 0.5}, {"algorithms.learner": "rl"}),
        "algorithms.options": Changed(["l2_init"]),
        "algorithms.options.name": Changed("replay", {"algorithms.options": [{"name": "l2_init"}]}),
        "algorithms.options.settings": Changed({"strength": 0.5}, {"algorithms.options": [{"name": "l2_init"}]}),
        "algorithms.training": Changed({"lr_features": 0.5}),
        "network.name": Changed("cnn", {"network.settings": {}}),
        "network.settings": Changed({"hidden": [5, 3]}),
        "training.epochs": Changed(3),
        "training.batch_size": Changed(5),
        "training.log_frequency": Changed(2),
        "training.lr_features": Changed(0.5),
        "training.lr_readout": Changed(0.5),
        "training.optimiser.name": Changed("adam"),
        "training.optimiser.settings": Changed({"momentum": 0.9}, {"training.optimiser": {"name": "sgd"}}),
        "training.fresh_optimiser": Changed(False, {"training.optimiser": {"name": "adam"}}),
        "experts": Changed(True),
        "random_baseline": Changed(True),
        "multitask": Changed(True),
        "recording.features": Changed([]),
        "recording.eval_tasks": Changed([0]),
        "recording.examples": Changed(True),
        "recording.train_examples": Changed(2, {"recording.examples": True}),
        "recording.samples": Changed(2),
        "recording.weights": Changed(True),
        "recording.every": Changed(2),
        "sweep": Changed({"training.lr_features": [0.05, 0.5]}),
    },
}
"""Field -> another value, with which other numbers are recorded."""

STEERING = {
    "resources.workers": "test_every_field.py::test_workers_are_processes_at_a_time",
    "resources.threads": "test_every_field.py::test_resources_reach_the_training",
    "resources.device": "test_every_field.py::test_resources_reach_the_training",
    "resources.checkpoint_seconds": "test_every_field.py::test_resources_reach_the_training",
    "resources.engine": "test_every_field.py::test_resources_reach_the_training",
    "resources.executor.name": "executors/test_executors.py::test_the_one_that_is_declared_runs_the_study",
    "resources.executor.settings": "executors/test_executors.py::test_the_one_that_is_declared_runs_the_study",
    "resources.gpu_memory_limit": "test_remarks.py::test_runs_that_took_more_than_the_limit_are_named",
    "resources.checkpoint_frequency": "test_every_field.py::test_resources_reach_the_training",
}
"""Field that only steers how it is computed -> the test that it does."""

ANALYSIS = {
    "families": "test_every_field.py::test_what_is_declared_of_the_analysis_counts",
    "settings": "test_every_field.py::test_what_is_declared_of_the_analysis_counts",
    "lead": "test_every_field.py::test_what_is_declared_of_the_analysis_counts",
    "baseline": "test_every_field.py::test_the_rule_of_a_baseline_counts",
    "baseline.where": "test_every_field.py::test_the_rule_of_a_baseline_counts",
    "baseline.ignore": "test_every_field.py::test_the_rule_of_a_baseline_counts",
    "baseline.tell": "test_every_field.py::test_the_rule_of_a_baseline_counts",
    "attention_analysis": "test_remarks.py::test_words_that_are_not_acted_on_yet",
    "figures": "../../view/test_outputs.py::test_figures_by_name_in_every_format",
    "export_formats": "../../view/test_outputs.py::test_formats",
    "tests": "../../view/test_outputs.py::test_without_tests_nothing_is_tested",
    "tests.test": "../../view/test_outputs.py::test_tests_are_as_declared",
    "tests.paired": "../../view/test_outputs.py::test_tests_are_as_declared",
    "tests.correction": "../../view/test_outputs.py::test_tests_are_as_declared",
    "tests.alpha": "../../view/test_outputs.py::test_alpha_moves_intervals",
}
"""Field of the section `analysis` -> the test that it counts."""

ELSEWHERE = {
    "kind": "test_declaration.py::test_faults",
    "experiment_name": "test_every_field.py::test_the_name_stands_in_the_study",
    "preset": "test_every_field.py::test_a_preset_of_the_analysis_is_written_out",
}
"""Field that names the study, its kind or a preset -> the test that it counts."""


def declaration_of(kind: str) -> type[BaseModel]:
    return typing.get_type_hints(kinds.of(kind).declare)["return"]  # type: ignore[no-any-return]


def leaves(model: type[BaseModel], at: str = "") -> Iterator[str]:
    """Dotted names of all fields: those of sections, and lists and choices of models beside the fields in them."""
    for name, field in model.model_fields.items():
        inner = list(models_in(field.annotation))
        if [field.annotation] != inner:
            yield f"{at}{name}"
        for one in inner:
            yield from leaves(one, f"{at}{name}.")


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models_in(part)


def changed(content: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The content with another value of a dotted field; in a list of mappings it is that of the first."""
    found = copy.deepcopy(content)
    place: Any = found
    *sections, last = path.split(".")
    for section in sections:
        place = place.setdefault(section, {})
        place = place[0] if isinstance(place, list) else place
    place[last] = value
    return found


@functools.cache
def images(name: str, settings: tuple[tuple[str, Any], ...]) -> ImageData:
    return data.load(name, **dict(settings))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], list[str]]:
    """Declaration -> hashes of the numbers that its runs record; nothing is trained twice under one name."""
    known: dict[str, str] = {}
    folder = tmp_path_factory.mktemp("runs")

    def run(content: dict[str, Any]) -> list[str]:
        declaration: Any = declare(content)
        settings = declaration.data.settings
        there = images(declaration.data.name, tuple(sorted(settings.items())))
        found = []
        for config in expand(declaration):
            key = f"{declaration.experiment_name} {config.model_dump_json()} {there.fingerprint}"
            if key not in known:
                path = folder / str(len(known))
                resources = declaration.resources.model_dump(mode="json")
                plain = config.model_dump(mode="json")
                planned = kinds.of(declaration.kind).plan(config, there, declaration.resources)
                cache, beside = data.to_cache(there, folder / "data"), str(folder / f"{path.name}-c")
                train_job(declaration.kind, plain, planned.run_id, str(path), str(cache), beside, resources)
                known[key] = waterjar.open_run(path).attributes["seal"]["content"]
            found.append(known[key])
        return found

    return run


@pytest.fixture(scope="module")
def npz(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data set of its own in a file."""
    there = data.load("glyphs", **{**GLYPHS, "seed": 3})
    file = tmp_path_factory.mktemp("npz") / "own.npz"
    coarse = there.class_superclass
    np.savez(
        file,
        train_x=there.train_images,
        train_fine=there.train_labels,
        train_coarse=coarse[there.train_labels],
        test_x=there.test_images,
        test_fine=there.test_labels,
        test_coarse=coarse[there.test_labels],
    )
    return str(file)


@pytest.mark.parametrize("kind", kinds.names())
def test_every_field_is_in_a_table(kind: str) -> None:
    analysis = [f"analysis.{name}" for name in ANALYSIS]
    tables = [*RECORDED[kind], *STEERING, *analysis, *ELSEWHERE]
    there = list(leaves(declaration_of(kind)))
    assert set(there) <= set(tables), "a field that nobody tests: is it read at all?"
    assert set(RECORDED[kind]) <= set(there)
    assert len(tables) == len(set(tables)), "in two tables"


@pytest.mark.parametrize("reference", sorted({*STEERING.values(), *ANALYSIS.values(), *ELSEWHERE.values()}))
def test_every_test_that_is_named_is_there(reference: str) -> None:
    file, _, name = reference.partition("::")
    assert f"def {name}(" in (Path(__file__).parent / file).read_text()


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind in RECORDED for path in RECORDED[kind] if path != "shortcut.kind"]
)
def test_another_value_records_other_numbers(
    kind: str, path: str, recorded: Callable[[dict[str, Any]], list[str]], npz: str
) -> None:
    value, beside = RECORDED[kind][path]
    before = BASE[kind]
    for name, given in beside.items():
        before = changed(before, name, given)
    if path == "seeds" and kind == "binary":  # one way or the other to say how many
        before = changed(changed(before, "repeats", None), "seeds", [4])
    after = changed(before, path, value)
    if path == "data.name":
        before, after = changed(before, "data.settings", GLYPHS), changed(after, "data.settings", {"path": npz})
    if path == "strategies.preset":  # the learner follows from it
        del after["strategies"][0]["learner"]
    assert recorded(after) != recorded(before)


@pytest.mark.parametrize("kind", kinds.names())
def test_the_same_declaration_records_the_same_numbers(
    kind: str, recorded: Callable[[dict[str, Any]], list[str]]
) -> None:
    """Without that, other numbers would mean nothing."""
    assert recorded({**BASE[kind], "experiment_name": "again"}) == recorded(BASE[kind])


def test_a_shortcut_has_a_kind() -> None:
    """There is one so far; another one is refused by name, and belongs into the table above once it is there."""
    assert shortcuts.names() == ("patch",)


def test_resources_reach_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    numbers: list[int] = []
    monkeypatch.setattr(
        "waterjar.lab.loop.train", lambda make, *_, **how: seen.update(how, made=make(False)) or note_threads()
    )

    def note_threads() -> None:
        numbers.append(torch.get_num_threads())
        seen["made"].close()

    cache = str(data.to_cache(data.load("glyphs", **GLYPHS), tmp_path / "data"))
    for kind, more in (("einstellung", {}), ("binary", {"engine": "vmap"})):
        kept = {"checkpoint_seconds": 7.0, "checkpoint_frequency": "task"}
        declaration = declare({**BASE[kind], "resources": {"device": "cpu", "threads": 2, **kept, **more}})
        config = expand(declaration)[0].model_dump(mode="json")
        resources = declaration.resources.model_dump(mode="json")
        train_job(kind, config, "id", str(tmp_path / kind), cache, str(tmp_path / "c"), resources)
        assert (seen["device"], seen["checkpoint_seconds"], seen["keep"]) == ("cpu", 7.0, "task")
        assert seen["made"].recorder()["config"]["device"] == "cpu" and numbers[-1] == 2
        assert seen["made"].recorder()["config"].get("engine") == more.get("engine")


def test_workers_are_processes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Pool(InThisProcess):
        def __init__(self, workers: int, **_: Any) -> None:
            super().__init__(workers)
            sizes.append(workers)

    monkeypatch.setattr("waterjar.lab.study.executors.local.LocalPool", Pool)
    for words in ({"resources": {"workers": 2, "device": "cpu"}}, {"max_parallel_jobs": 1, "seeds": [2, 3]}):
        study.run(declare({**BASE["einstellung"], "seeds": [1, 2], **words}), tmp_path)
    assert sizes == [2, 1]


def test_the_name_stands_in_the_study(tmp_path: Path) -> None:
    """From there a report takes its title."""
    for name in ("one", "two"):
        done = study.run(declare({**BASE["einstellung"], "experiment_name": name}), tmp_path, executor=InThisProcess())
        assert done.declaration["experiment_name"] == name


def test_a_preset_of_the_analysis_is_written_out() -> None:
    settings = declare({**BASE["binary"], "preset": "seed", "analysis": {"n_trials": 7}}).analysis.settings
    assert settings["geometry"] == {"n_t": 50, "simulate_every": 100, "n_trials": 7}
    assert declare(BASE["binary"]).analysis.settings == {}
    some = declare({**BASE["binary"], "preset": "seed", "analysis": {"families": ["plasticity"]}}).analysis
    assert some.settings["geometry"]["n_t"] == 50  # what is measured later counts as the preset has it, too


TWO = {
    "einstellung": {"scenarios": ["sequential", "scratch_t2"], "seeds": [1, 2], "strategies": ["sgd", "er"]},
    "binary": {"algorithms": ["sl", "rl"], "repeats": 2},
}
"""What is beside the base in studies with something to compare."""
COUNTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "einstellung": [
        ("values", {"families": ["cost", "continual"]}),
        ("values", {"settings": {"continual": {"integrator": "auc"}}}),
        ("values", {"integrator": "auc"}),
        ("values", {"adaptation_threshold": 0.05}),
        ("report", {"lead": "continual"}),
        ("comparison", {"baseline": "er"}),
    ],
    "binary": [
        ("values", {"families": ["cost", "continual"]}),
        ("values", {"settings": {"continual": {"integrator": "auc"}}}),
        ("values", {"chance": 0.25}),
        ("report", {"lead": "plasticity"}),
        ("comparison", {"baseline": "rl"}),
    ],
}
"""Kind -> (what changes, a section `analysis`)."""


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, Any]], dict[str, str]]:
    """Kind and section -> what the study's folder holds after its analysis: values, comparison, report."""
    known: dict[str, Path] = {}
    usual: dict[str, dict[str, str]] = {}

    def run(kind: str, section: dict[str, Any]) -> dict[str, str]:
        """What is usual is analysed once, and once again: without that, a difference would mean nothing."""
        if not section and kind not in usual:
            usual[kind] = analyse(kind, {})
            assert analyse(kind, {}) == usual[kind]
        return analyse(kind, section) if section else usual[kind]

    def analyse(kind: str, section: dict[str, Any]) -> dict[str, str]:
        declared = {"families": ["continual", "plasticity", "cost"], **section}
        if kind == "einstellung":
            declared["families"] = section.get("families", ["rigidity", "continual", "cost"])
        content = {**BASE[kind], **TWO[kind]}
        if kind not in known:
            known[kind] = tmp_path_factory.mktemp(kind)
            study.run(declare(content), known[kind], executor=InThisProcess())
        written = declare({**content, "analysis": {**declared, "figures": False}}).model_dump(mode="json")
        waterjar.create_study(known[kind], written, replace=True)
        found = diagnose(waterjar.open_study(known[kind]))
        report = as_json.render(compose(model_of(found.study)))
        return {"values": found.table().to_csv(), "comparison": compare_cells(found).to_csv(), "report": report}

    return run


@pytest.mark.parametrize(("kind", "what", "section"), [(k, *case) for k, cases in COUNTS.items() for case in cases])
def test_what_is_declared_of_the_analysis_counts(
    kind: str, what: str, section: dict[str, Any], analysed: Callable[[str, dict[str, Any]], dict[str, str]]
) -> None:
    usual, found = analysed(kind, {}), analysed(kind, section)
    assert found[what] != usual[what]


def test_nothing_but_what_is_declared_is_measured(tmp_path: Path) -> None:
    """Also where the report has charts that other families could show."""
    content = {**BASE["binary"], **TWO["binary"], "analysis": {"families": ["continual"], "figures": False}}
    done = study.run(declare(content), tmp_path, executor=InThisProcess())
    write_outputs(diagnose(done), tmp_path)
    kept = {file.name.partition("-")[0] for file in (tmp_path / ".waterjar" / "diagnostics").glob("*.npz")}
    assert kept == {"continual"}


def test_engines_do_not_part_algorithms_from_their_baseline(tmp_path: Path) -> None:
    """They differ by rounding: an algorithm on one machine is compared with another's on the next."""
    content = {**BASE["binary"], **TWO["binary"], "analysis": {"families": ["continual"]}}
    for engine, learner in (("loop", "sl"), ("vmap", "rl")):
        words = {"resources": {"engine": engine, "device": "cpu"}, "algorithms": [learner]}
        study.run(declare({**content, **words}), tmp_path, executor=InThisProcess())
    waterjar.create_study(tmp_path, declare(content).model_dump(mode="json"), replace=True)
    done = waterjar.open_study(tmp_path)
    assert {run.config["engine"] for run in done} == {"loop", "vmap"}
    assert compare_cells(diagnose(done), ["average_accuracy"])["difference"].notna().any()


def test_another_rounding_is_another_run(tmp_path: Path) -> None:
    """The same folder keeps both, and neither is taken for the other."""
    for engine in ("loop", "auto", "processes", "vmap"):
        declared = declare({**BASE["binary"], **TWO["binary"], "resources": {"engine": engine, "device": "cpu"}})
        study.run(declared, tmp_path, executor=InThisProcess())
    engines = sorted((run.config["method"], run.config["engine"]) for run in waterjar.open_study(tmp_path))
    assert engines == [("rl", "loop"), ("rl", "vmap"), ("sl", "loop"), ("sl", "vmap")]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"baseline": "somebody"}, "analysis.baseline 'somebody' is unknown"),
        ({"baseline": {"where": {"scenaro": "scratch_t2"}}}, "did you mean 'scenario'"),
        ({"baseline": {"where": {"scenario": "scratch_t2"}, "ignore": ["recordin"]}}, "did you mean 'recording'"),
        ({"baseline": {"where": {}}}, "where is empty"),
        ({"settings": {"rigidity": {"baseline": "somebody"}}}, "analysis.baseline 'somebody' is unknown"),
        ({"families": ["cost"], "settings": {"rigidity": {"window": 1}}}, "rigidity is not among analysis.families"),
        ({"settings": {"geometry": {"layers": ["penultimat"]}}}, "did you mean 'penultimate'"),
        ({"settings": {"rigidity": {"eval_sets": {"masked": "t2_maskd"}}}}, "'t2_maskd' is unknown"),
        (
            {"settings": {"rigidity": {"chance": [0.1, 0.2, 0.3]}}},
            r"analysis.settings.rigidity: chance=\[0.1, 0.2, 0.3\]: expected .* every task of a run, which has 2",
        ),
        ({"settings": {"continual": {"chance": [0.1]}}}, r"settings.continual: chance=\[0.1\]: expected .* has 2"),
        ({"settings": {"rigidity": {"variable": "nosuch"}}}, "settings.rigidity: variable 'nosuch' is unknown. Known"),
        ({"settings": {"rigidity": {"variable": "class_accuracy"}}}, "variable 'class_accuracy' is unknown"),
        ({"tests": {"test": "welch"}}, "welch is a test of unpaired values"),
        ({"tests": {"test": "paired_t", "paired": False}}, "paired_t is a test of paired values"),
        ({"families": []}, "families"),
        ({"families": ["cost", "cost"]}, "families"),
        ({"families": ["cost"], "lead": "rigidity"}, "rigidity is not among analysis.families"),
    ],
)
def test_what_the_analysis_cannot_have_is_told_before_the_training(section: dict[str, Any], message: str) -> None:
    with pytest.raises(waterjar.WaterjarError, match=message):
        declare({**BASE["einstellung"], **TWO["einstellung"], "analysis": section})


def test_chances_and_variables_are_those_of_every_run_of_a_sweep() -> None:
    wrong = {"settings": {"rigidity": {"chance": [0.1, 0.2, 0.3]}}}
    with pytest.raises(waterjar.WaterjarError, match="which has 2"):
        declare({**BASE["einstellung"], "sweep": {"recording.samples": [2, 4]}, "analysis": wrong})
    numbers = {"sweep": {"tasks.number": [2, 3]}, "analysis": {"settings": {"continual": {"chance": [0.5, 0.5]}}}}
    with pytest.raises(waterjar.WaterjarError, match="which has 3"):
        declare({**BASE["binary"], **numbers})


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("einstellung", {family: {"chance": [0.1, 0.2]} for family in ("rigidity", "continual")}),
        ("einstellung", {"rigidity": {"chance": 0.1, "variable": "task_macro_accuracy"}}),
        ("einstellung", {"continual": {"variable": "task_accuracy"}}),
        ("binary", {"continual": {"variable": "accuracy", "chance": 0.5}}),
        ("binary", {"continual": {"variable": "macro_accuracy", "metric_type": "loss"}}),
    ],
)
def test_chances_and_variables_that_runs_have(kind: str, settings: dict[str, Any]) -> None:
    declare({**BASE[kind], "analysis": {"settings": settings}})


def test_accuracies_of_a_set_are_those_that_are_recorded() -> None:
    ones = np.ones(2, np.int64)
    found = performance({"t1_all": Tally(ones, ones, ones, 0.5)}, ["t1_all"], by_class=False)
    assert {*ACCURACIES, "loss"} == set(found)


def test_a_baseline_by_its_name_keeps_the_rule_of_its_kind() -> None:
    """A preset's batch size and epochs are told, and part no learner from its baseline."""
    usual = declare(BASE["einstellung"]).analysis
    named = declare({**BASE["einstellung"], **TWO["einstellung"], "analysis": {"baseline": "scratch_t2"}}).analysis
    assert named.baseline == usual.baseline
    other = declare({**BASE["einstellung"], **TWO["einstellung"], "analysis": {"baseline": "er"}}).analysis
    assert other.rule is not None and usual.rule is not None
    assert (other.baseline_name, other.rule.tell) == ("er", usual.rule.tell)


def test_the_rule_of_a_baseline_counts(tmp_path: Path) -> None:
    """Which cells are compared, and what is said about it, hangs on every field of the rule."""

    def pairs(**rule: Any) -> tuple[set[str], str]:
        content = {**BASE["binary"], "algorithms": ["sl", "rl"], "analysis": {"baseline": rule}}
        analysis = declare(content).analysis
        found, said = find_baselines(there, analysis.baseline_name, analysis.rule)
        names = there.cell_names
        return {f"{names[cell]} - {names[other]}" for cell, other in found.items() if other}, " ".join(said.values())

    for method, lr in (("sl", 0.1), ("rl", 0.2)):
        config = {"method": method, "training": {"lr": lr}, "options": [method]}
        with waterjar.Recorder(tmp_path / method, config, seeds=[1], eval_sets={"test": 0}, tasks=["task"]) as recorder:
            recorder.log(train_task="task", epoch=0, performance={"accuracy": [0.5]})
    there = waterjar.open_study(tmp_path)
    assert pairs(where={"method": "sl"})[0] == {"sl - sl"}
    assert pairs(where={"method": "rl"})[0] == {"rl - rl"}
    assert pairs(where={"method": "sl"}, ignore=["options", "training"]) == ({"sl - sl", "rl - sl"}, "")
    found, said = pairs(where={"method": "sl"}, ignore=["options"], tell=["training"])
    assert found == {"sl - sl", "rl - sl"}
    assert "training.lr (0.1, not 0.2)" in said


def test_one_family_is_a_list_of_one() -> None:
    found = declare({**BASE["binary"], "analysis": {"families": "plasticity"}}).analysis
    assert found.families == ("plasticity",) and found.lead == "plasticity"
