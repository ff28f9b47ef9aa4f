"""The declaration of a study of continual binary tasks, validated, and expanded into runs: one per algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from waterjar.diagnose.analysis import Analysis
from waterjar.errors import WaterjarError
from waterjar.lab import networks
from waterjar.lab.binary import BinaryConfig
from waterjar.lab.binary.class_tasks import task_name
from waterjar.lab.binary.config import (
    Recording,
    Tasks,
    Training,
    check_eval_tasks,
    check_repeats,
    parse_config,
)
from waterjar.lab.binary.engines import EngineName
from waterjar.lab.config import ListedCount, OptionChoice, Seed, with_options_spelled_out
from waterjar.lab.learning import objectives
from waterjar.lab.study.analysed import check_baseline, not_recorded, unfit
from waterjar.lab.study.parts import STRICT, Data, check_number, faulty
from waterjar.lab.study.parts import Resources as CommonResources
from waterjar.lab.study.spelling import with_analysis, with_resources
from waterjar.lab.study.sweep import combinations
from waterjar.run.faults import Behind, faults, unknown

PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "seed": {
        "plasticity": {"tau": 0.1, "energy": 0.99},
        "geometry": {"n_t": 50, "simulate_every": 100, "n_trials": 100},
    },
}
"""Name -> family -> settings of the analysis; `seed` has those that the experiment's first authors wrote down."""
_SWEPT = ("tasks", "training", "network", "recording")
"""The sections whose settings can be swept: algorithms and repeats have lists of their own."""


class Network(BaseModel):
    """The network of all algorithms."""

    model_config = STRICT

    name: str = "cnn"
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the network."""
        return networks.SHELF.behind(values.get("name", "cnn"), at)


class Algorithm(BaseModel):
    """A learner with its options: one run with all repeats."""

    model_config = STRICT

    learner: str
    settings: dict[str, Any] = Field(default_factory=dict)
    options: tuple[str | OptionChoice, ...] = ()
    training: dict[str, Any] = Field(default_factory=dict)
    """What differs from the training of the others, such as its learning rates."""

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the learner."""
        return objectives.SHELF.behind(values.get("learner"), at)


class Resources(CommonResources):
    """How it is computed."""

    engine: EngineName = "auto"
    """How the repeats of a run are trained: loop, vmap, processes, or what suits the device.

    vmap rounds otherwise, so that its runs are others."""


class Declaration(BaseModel):
    """A study of continual binary tasks."""

    model_config = STRICT

    kind: Literal["binary"]
    preset: str | None = None
    """Settings of the analysis that go by one name, see `PRESETS`; the file's own go before them."""
    experiment_name: str = "binary"
    data: Data = Data()
    channels: Literal[1, 3] = 3
    tasks: Tasks
    repeats: ListedCount | None = None
    seed: Seed = 0
    seeds: tuple[Seed, ...] | None = None
    algorithms: tuple[str | Algorithm, ...] = ("sl", "rl")
    network: Network = Network()
    training: Training = Training()
    experts: bool = True
    random_baseline: bool = False
    multitask: bool = False
    recording: Recording = Recording(features=("penultimate",), weights=True)
    sweep: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Dotted setting -> values: every combination is run, such as {"training.lr_features": [0.01, 0.05]}."""
    resources: Resources = Resources()
    analysis: Analysis = Analysis()

    @model_validator(mode="after")
    def _fit_together(self) -> Declaration:
        check_repeats(self.repeats, self.seeds)
        check_eval_tasks(self.recording, self.tasks)
        return self


def declare(content: Mapping[str, Any], where: str = "study") -> Declaration:
    """Validate a declaration, and every run that it expands to."""
    declaration = _validated(content, where)
    found = [] if declaration.algorithms else ["setting 'algorithms' is empty: at least one is needed"]
    if not declaration.sweep:  # where they are swept, what is not recorded is told later
        every = [task_name(task) for task in range(declaration.tasks.number)]
        kept = declaration.recording.eval_tasks
        some = every if kept is None else [task_name(task) for task in kept]
        sets = {family: every if family == "continual" else some for family in declaration.analysis.settings}
        found += not_recorded(declaration.analysis, declaration.recording.features, sets)
    if found:
        raise faulty(where, found)
    runs = expand(declaration, where)
    beside = {"random_accuracy": declaration.random_baseline, "multitask_accuracy": declaration.multitask}
    accuracies = ["accuracy", *(name for name, there in beside.items() if there)]
    found = unfit(declaration.analysis, [run.tasks.number for run in runs], accuracies)
    if found:
        raise faulty(where, found)
    check_baseline(declaration.analysis, [run.to_plain() for run in runs], where)
    return declaration


def expand(declaration: Declaration, where: str = "study") -> list[BinaryConfig]:
    """The runs of a study, algorithm by algorithm for every combination of the sweep."""
    combined = math.prod(len(values) for values in declaration.sweep.values())
    check_number(combined * len(declaration.algorithms), combined, where)
    runs: dict[str, str] = {}
    found: list[BinaryConfig] = []
    for variant in _variants(declaration, where):
        for place, algorithm in enumerate(variant.algorithms):
            at = f"algorithms[{place}]"
            config = _config(variant, _algorithm(algorithm), at, where)
            first = runs.setdefault(config.model_dump_json(), at)
            if len(runs) == len(found):
                raise WaterjarError(
                    f"{where}: {at} is the same as {first}, which declares one run twice: leave one out"
                )
            found.append(config)
    return found


def _validated(content: Mapping[str, Any], where: str) -> Declaration:
    whole, found = with_resources(content)
    if isinstance(whole.get("algorithms"), list | tuple):  # a bare name is short for a mapping with nothing but it
        whole["algorithms"] = [_spelled_out(entry) for entry in whole["algorithms"]]
    preset = whole.get("preset")
    if isinstance(preset, str) and preset not in PRESETS:
        found.append(unknown("preset", preset, preset, PRESETS))
    settings = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
    whole, more = with_analysis(whole, _default_analysis(whole), settings)
    found += faults(Declaration, whole) + more
    if found:
        raise faulty(where, found)
    return Declaration.model_validate(whole)


def _default_analysis(whole: Mapping[str, Any]) -> dict[str, Any]:
    """The section `analysis` where a file is silent: what is recorded is measured, all compared with the first."""
    default: dict[str, Any] = {"families": _measurable(whole.get("recording")), "lead": "continual"}
    algorithms = whole.get("algorithms")
    given = Declaration.model_fields["algorithms"].default if algorithms is None else algorithms
    first = given[0] if isinstance(given, list | tuple) and given else None
    method = _method(_spelled_out(first))
    if method is None:
        return default  # told where the types are judged
    ignore = ["learner_settings", "options", "recording", "engine"]  # vmap differs by rounding alone
    return {**default, "baseline": {"where": {"method": method}, "ignore": ignore, "tell": ["training"]}}


def _measurable(recording: object) -> list[str]:
    """The families that are measured where a file is silent, without those for which it has nothing recorded."""
    usual = Declaration.model_fields["recording"].default
    told = recording if isinstance(recording, Mapping) else {}
    features, weights = (told.get(key, getattr(usual, key)) for key in ("features", "weights"))
    needs = {"continual": True, "plasticity": features or weights, "geometry": features}
    return [family for family, there in needs.items() if there]


def _method(algorithm: object) -> str | None:
    """What the runs of an algorithm are called, as `BinaryConfig.method` has it; None of one that is none."""
    plain = algorithm.model_dump() if isinstance(algorithm, Algorithm) else algorithm
    if not isinstance(plain, Mapping):
        return None
    options = plain.get("options")
    given = options if isinstance(options, list | tuple) else ()
    names = [one.get("name") if isinstance(one, Mapping) else one for one in given]
    return "+".join(map(str, [plain.get("learner"), *names]))


def _spelled_out(entry: object) -> object:
    return {"learner": entry} if isinstance(entry, str) else with_options_spelled_out(entry)


def _algorithm(given: str | Algorithm) -> Algorithm:
    return Algorithm(learner=given) if isinstance(given, str) else given


def _config(declaration: Declaration, algorithm: Algorithm, at: str, where: str) -> BinaryConfig:
    training = {**declaration.training.model_dump(mode="json"), **algorithm.training}
    found = faults(Training, training, f"{at}.training") if algorithm.training else []
    if found:
        raise faulty(where, found)
    shared = declaration.model_dump(
        mode="json",
        include={
            "channels", "tasks", "experts", "random_baseline", "multitask", "recording", "repeats", "seed", "seeds"
        },
    )  # fmt: skip
    options = [{"name": one} if isinstance(one, str) else one.model_dump(mode="json") for one in algorithm.options]
    return parse_config(
        {
            **shared,
            "data": declaration.data.name,
            "training": training,
            "learner": algorithm.learner,
            "learner_settings": algorithm.settings,
            "options": options,
            "network": declaration.network.name,
            "network_settings": declaration.network.settings,
        },
        f"{where}: {at}",
    )


def _variants(declaration: Declaration, where: str) -> list[Declaration]:
    """One declaration per combination of the sweep."""
    if not declaration.sweep:
        return [declaration]
    content = declaration.model_dump(mode="json", exclude={"sweep"})
    settings = networks.SHELF.module(declaration.network.name).Settings
    more = [f"network.settings.{name}" for name in settings.model_fields]
    swept = combinations(content, declaration.sweep, where, sections=_SWEPT, more=more)
    return [_validated(variant, f"{where}: sweep") for variant in swept]
