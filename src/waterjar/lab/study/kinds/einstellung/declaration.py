"""The declaration of a study of the Einstellung effect, validated, and expanded into runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from waterjar.errors import WaterjarError
from waterjar.lab import learners, networks
from waterjar.lab import shortcuts as shortcut_kinds
from waterjar.lab.by_name import module_in
from waterjar.lab.config import (
    Augmentation,
    Count,
    Planting,
    Recording,
    RunConfig,
    Scenario,
    Seed,
    Tasks,
    Training,
)
from waterjar.lab.faults import Behind, behind_name, faults, unknown
from waterjar.lab.learners.sgd import Settings as BaselineSettings
from waterjar.lab.study.parts import STRICT, Data, Resources, check_number, faulty
from waterjar.lab.study.sweep import combinations

_LISTS = ("seeds", "backbones", "strategies", "scenarios")
_SWEPT = ("tasks", "shortcut", "augmentation", "training", "recording", "baseline")
"""The sections whose settings can be swept: data, seeds, networks and learners have lists of their own."""


class Strategy(BaseModel):
    """A learner with its settings; a preset's come first."""

    model_config = STRICT

    learner: str
    preset: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the learner; those of a preset come first."""
        name, preset = values.get("learner"), values.get("preset")
        there = behind_name(learners, "learner", name, at)
        if there.settings is None or not isinstance(preset, str):
            return there
        known = learners.presets(str(name))
        if preset not in known:
            return Behind([f"{at}: {unknown(f'learner {name!r}: preset', preset, preset, known)}"], there.settings)
        return there._replace(preset=known[preset].settings)


class Backbone(BaseModel):
    """A network with its settings."""

    model_config = STRICT

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the network."""
        return behind_name(networks, "network", values.get("name"), at)


class Analysis(BaseModel):
    """What the diagnosis of the study uses; runs do not depend on it."""

    model_config = STRICT

    threshold: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.6
    window: Count = 3
    statistical_tests: bool = True
    attention_analysis: bool = False
    generate_plots: bool = True
    export_formats: tuple[Literal["csv", "json", "png", "pdf", "svg", "latex", "markdown", "html"], ...] = (
        "csv",
        "json",
        "png",
    )


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
    analysis: Analysis = Analysis()


def declare(content: Mapping[str, Any], where: str = "study") -> Declaration:
    """Validate a declaration, and every run that it expands to; a wrong one is a `WaterjarError`, a fault a line."""
    declaration = _validated(content, where)
    found = [fault for name in _LISTS for fault in _repeated(name, getattr(declaration, name))]
    if found:
        raise faulty(where, found)
    expand(declaration, where)
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
    whole = dict(content)
    for name, key in (("strategies", "learner"), ("backbones", "name")):
        if isinstance(whole.get(name), list | tuple):  # a bare name is short for a mapping with nothing but it
            whole[name] = [{key: entry} if isinstance(entry, str) else entry for entry in whole[name]]
    found = faults(Declaration, whole)
    if isinstance(whole.get("baseline"), Mapping):
        found += faults(BaselineSettings, whole["baseline"], "baseline")
    if found:
        raise faulty(where, found)
    return Declaration.model_validate(dict(content))


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
        value = {"strategies": _strategy, "backbones": _backbone}.get(name, str)(value)
    return repr(value)


def _strategy(given: str | Strategy) -> Strategy:
    return Strategy(learner=given) if isinstance(given, str) else given


def _backbone(given: str | Backbone) -> Backbone:
    return Backbone(name=given) if isinstance(given, str) else given


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
    network, chosen = _backbone(backbone), _strategy(strategy)
    if scenario == "sequential" and chosen.learner == "joint":
        raise WaterjarError(
            f"{where}: strategy 'joint' trains all tasks at once: it is the scenario interleaved, not sequential"
        )
    settings = learners.parse(chosen.learner, chosen.settings, chosen.preset)
    return RunConfig(
        scenario=scenario,
        learner=chosen.learner,
        learner_settings=settings.model_dump(mode="json"),
        backbone=network.name,
        backbone_settings=networks.parse(network.name, network.settings).model_dump(mode="json"),
        data=declaration.data.name,
        tasks=declaration.tasks,
        shortcut=_planting(declaration.shortcut),
        augmentation=declaration.augmentation,
        training=declaration.training,
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
        for kind in shortcut_kinds.names()
        for name in module_in(shortcut_kinds, "shortcut", kind).Settings.model_fields
    ]
    settings += [f"baseline.{name}" for name in BaselineSettings.model_fields]
    swept = combinations(content, declaration.sweep, where, sections=_SWEPT, more=settings)
    return [_validated(variant, f"{where}: sweep") for variant in swept]


def _check_number(declaration: Declaration, where: str) -> None:
    combined = math.prod(len(values) for values in declaration.sweep.values())
    per_seed = sum(len(declaration.strategies) if name == "sequential" else 1 for name in declaration.scenarios)
    check_number(combined * len(declaration.backbones) * len(declaration.seeds) * per_seed, combined, where)
