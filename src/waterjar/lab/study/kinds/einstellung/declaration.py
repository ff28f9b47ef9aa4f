"""The declaration of a study of the Einstellung effect, validated, and expanded into runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from waterjar.diagnose.analysis import Analysis
from waterjar.errors import WaterjarError
from waterjar.lab import learners, networks
from waterjar.lab import shortcuts as shortcut_kinds
from waterjar.lab.config import (
    Augmentation,
    Planting,
    Recording,
    RunConfig,
    Scenario,
    Seed,
    Tasks,
    Training,
    with_options_spelled_out,
)
from waterjar.lab.evaluation import ACCURACIES, EVAL_SETS
from waterjar.lab.learners.sgd import Settings as BaselineSettings
from waterjar.lab.study.analysed import check_baseline, not_recorded, unfit
from waterjar.lab.study.kinds.einstellung.strategies import (
    Backbone,
    Strategy,
    backbone_of,
    faults_of_training,
    strategy_of,
    with_presets,
)
from waterjar.lab.study.parts import STRICT, Data, Resources, check_number, faulty
from waterjar.lab.study.spelling import with_analysis, with_resources
from waterjar.lab.study.sweep import combinations
from waterjar.lab.tasks import TASKS
from waterjar.run.faults import faults

_LISTS = ("seeds", "backbones", "strategies", "scenarios")
_SWEPT = ("tasks", "shortcut", "augmentation", "training", "recording", "baseline")
"""The sections whose settings can be swept: data, seeds, networks and learners have lists of their own."""


DEFAULT_ANALYSIS: Mapping[str, Any] = {
    "families": None,
    "export_formats": ["png"],
    "baseline": {
        "where": {"scenario": "scratch_t2"},
        # The first task, which the baseline never sees, is no condition of the comparison.
        "ignore": ["learner_settings", "options", "recording", "augmentation.t1", "training.epochs_t1"],
        "tell": ["training.batch_size", "training.epochs_t2"],
    },
    "lead": "rigidity",
}
"""The section `analysis` where a file is silent; it is written into the study."""


class Declaration(BaseModel):
    """A study of the Einstellung effect."""

    model_config = STRICT

    kind: Literal["einstellung"]
    experiment_name: str = "einstellung"
    data: Data = Data()
    seeds: tuple[Seed, ...] = (42, 123, 456)
    backbones: tuple[str | Backbone, ...] = ("small_cnn",)
    strategies: tuple[str | Strategy, ...] = ("sgd", "ewc_on", "derpp")
    scenarios: tuple[Scenario, ...] = ("scratch_t2", "interleaved", "sequential")
    baseline: dict[str, Any] = Field(default_factory=dict)
    """Settings of the learner behind scratch_t2 and interleaved, such as its lr."""
    tasks: Tasks = Tasks()
    shortcut: Planting = Planting()
    augmentation: Augmentation = Augmentation()
    training: Training = Training()
    recording: Recording = Recording()
    sweep: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Dotted setting -> values: every combination is run, such as {"shortcut.rate": [0.25, 0.5, 1.0]}."""
    resources: Resources = Resources()
    analysis: Analysis = Analysis.model_validate(DEFAULT_ANALYSIS)


def declare(content: Mapping[str, Any], where: str = "study") -> Declaration:
    """Validate a declaration, and every run that it expands to; a wrong one is a `WaterjarError`, a fault a line."""
    declaration = _validated(content, where)
    found = [fault for name in _LISTS for fault in _repeated(name, getattr(declaration, name))]
    if found:
        raise faulty(where, found)
    written = declaration.training.model_fields_set | _swept_training(declaration.sweep)
    strategies = tuple(with_presets(one, written) for one in declaration.strategies)
    declaration = declaration.model_copy(update={"strategies": strategies})
    found = unfit(declaration.analysis, [len(TASKS)], ACCURACIES)
    if not declaration.sweep:
        of_accuracies = {family: list(EVAL_SETS) for family in ("rigidity", "continual")}
        found += not_recorded(declaration.analysis, declaration.recording.features, of_accuracies)
    if found:
        raise faulty(where, found)
    check_baseline(declaration.analysis, [run.to_plain() for run in expand(declaration, where)], where)
    return declaration


def expand(declaration: Declaration, where: str = "study") -> list[RunConfig]:
    """All runs of a study. The baselines do not depend on a strategy and are run once per backbone and seed.

    A sweep over what a run does not use, such as the baselines' lr beside `sequential`, gives that run once.
    """
    _check_number(declaration, where)
    variants = _variants(declaration, where)
    runs = _runs(variants[0], variants[0], where)
    known = {run.model_dump_json() for run in runs}
    for variant in variants[1:]:
        more = [(run.model_dump_json(), run) for run in _runs(variant, variants[0], where)]
        runs += [run for text, run in more if text not in known]
        known |= {text for text, _ in more}
    return runs


def _runs(variant: Declaration, first: Declaration, where: str) -> list[RunConfig]:
    """The runs of one combination of a sweep; `first` is the first one, whose values stand in for unused settings."""
    runs = []
    for backbone, seed, scenario in itertools.product(variant.backbones, variant.seeds, variant.scenarios):
        used = _as_used(variant, first, scenario)
        strategies = variant.strategies if scenario == "sequential" else (_baseline(variant, scenario),)
        runs += [_config(used, backbone, seed, scenario, strategy, where) for strategy in strategies]
    return runs


def _as_used(variant: Declaration, first: Declaration, scenario: Scenario) -> Declaration:
    """A combination with the first one's values where the scenario has no use for them.

    Not with defaults: a run of a study without a sweep must keep its identity.
    """
    if scenario == "sequential" or variant is first:
        return variant
    training = variant.training.model_copy(update={"epochs_t1": first.training.epochs_t1})
    augmentation = variant.augmentation
    if scenario == "scratch_t2":  # interleaved shows images of T1, augmented as such
        augmentation = augmentation.model_copy(update={"t1": first.augmentation.t1})
    return variant.model_copy(update={"training": training, "augmentation": augmentation})


def _validated(content: Mapping[str, Any], where: str) -> Declaration:
    own, found = with_resources(content)
    own, more = with_analysis(own, DEFAULT_ANALYSIS)
    whole = dict(own)
    for name, key in (("strategies", "learner"), ("backbones", "name")):
        if isinstance(whole.get(name), list | tuple):  # a bare name is short for a mapping with nothing but it
            entries = [{key: entry} if isinstance(entry, str) else entry for entry in whole[name]]
            whole[name] = [with_options_spelled_out(entry) for entry in entries]
    found += faults(Declaration, whole) + faults_of_training(whole.get("strategies")) + more
    if isinstance(whole.get("baseline"), Mapping):
        found += faults(BaselineSettings, whole["baseline"], "baseline")
    if found:
        raise faulty(where, found)
    return Declaration.model_validate(own)


def _swept_training(sweep: Mapping[str, tuple[Any, ...]]) -> set[str]:
    """Settings of the training that are swept, alone or with the whole section."""
    alone = {key.removeprefix("training.") for key in sweep if key.startswith("training.")}
    sections = [value for value in sweep.get("training", ()) if isinstance(value, Mapping)]
    return alone.union(*sections)


def _repeated(name: str, values: tuple[object, ...]) -> list[str]:
    if not values:
        return [f"setting '{name}' is empty: at least one is needed"]
    seen: dict[str, int] = {}
    found = []
    for place, value in enumerate(values):
        first = seen.setdefault(_spelled_out(name, value), place)
        if first != place:
            found.append(f"{name}[{place}] is the same as {name}[{first}], which declares one run twice: leave one out")
    return found


def _spelled_out(name: str, value: object) -> str:
    """A bare name and a mapping with nothing but it are the same."""
    if isinstance(value, str):
        value = {"strategies": strategy_of, "backbones": backbone_of}.get(name, str)(value)
    return repr(value)


def _baseline(declaration: Declaration, scenario: Scenario) -> Strategy:
    learner = "sgd" if scenario == "scratch_t2" else "joint"
    return Strategy(learner=learner, settings=declaration.baseline)


def _config(
    declaration: Declaration,
    backbone: str | Backbone,
    seed: int,
    scenario: Scenario,
    strategy: str | Strategy,
    where: str,
) -> RunConfig:
    network, chosen = backbone_of(backbone), strategy_of(strategy)
    if scenario == "sequential" and chosen.learner == "joint":
        raise WaterjarError(
            f"{where}: strategy 'joint' trains all tasks at once: it is the scenario interleaved, not sequential"
        )
    settings = learners.parse(chosen.learner, chosen.settings, chosen.preset)
    return RunConfig(
        scenario=scenario,
        learner=chosen.learner,
        learner_settings=settings.model_dump(mode="json"),
        options=chosen.chosen_options,
        backbone=network.name,
        backbone_settings=networks.parse(network.name, network.settings).model_dump(mode="json"),
        data=declaration.data.name,
        tasks=declaration.tasks,
        shortcut=_planting(declaration.shortcut),
        augmentation=declaration.augmentation,
        training=Training.model_validate({**declaration.training.model_dump(), **chosen.training}),
        recording=declaration.recording,
        seed=seed,
    )


def _planting(planting: Planting) -> Planting:
    """The shortcut with all its settings spelled out, so that a default that changes is another run."""
    settings = shortcut_kinds.parse(planting.kind, planting.settings).model_dump(mode="json")
    return planting.model_copy(update={"settings": settings})


def _variants(declaration: Declaration, where: str) -> list[Declaration]:
    """One declaration per combination of the sweep."""
    if not declaration.sweep:
        return [declaration]
    content = declaration.model_dump(mode="json", exclude={"sweep"})
    settings = [
        f"shortcut.settings.{name}"
        for module in shortcut_kinds.SHELF.modules()[0].values()
        for name in module.Settings.model_fields
    ]
    settings += [f"baseline.{name}" for name in BaselineSettings.model_fields]
    swept = combinations(content, declaration.sweep, where, sections=_SWEPT, more=settings)
    return [_validated(variant, f"{where}: sweep") for variant in swept]


def _check_number(declaration: Declaration, where: str) -> None:
    combined = math.prod(len(values) for values in declaration.sweep.values())
    per_seed = sum(len(declaration.strategies) if name == "sequential" else 1 for name in declaration.scenarios)
    check_number(combined * len(declaration.backbones) * len(declaration.seeds) * per_seed, combined, where)
