"""The declaration of a study: a YAML file, validated, and expanded into runs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab import learners, networks
from waterjar.lab import shortcuts as shortcut_kinds
from waterjar.lab.by_name import parse_settings
from waterjar.lab.config import Augmentation, Count, Device, Planting, Recording, RunConfig, Scenario, Tasks, Training

_SWEPT = ("tasks", "shortcut", "augmentation", "training", "recording", "baseline")
_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Data(BaseModel):
    """Which data set; settings are those of its module."""

    model_config = _STRICT

    name: str = "glyphs"
    settings: dict[str, Any] = Field(default_factory=dict)


class Strategy(BaseModel):
    """A learner with its settings; a preset's come first."""

    model_config = _STRICT

    learner: str
    preset: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class Backbone(BaseModel):
    """A network with its settings."""

    model_config = _STRICT

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Resources(BaseModel):
    """How it is computed. Nothing here changes a number, so nothing here is part of a run's identity."""

    model_config = _STRICT

    workers: Count = 1
    """Runs at a time."""
    threads: Count = 1
    """Threads of torch in each of them. Sums in another order round otherwise, so keep it over a study."""
    device: Device = "auto"
    checkpoint_seconds: Annotated[float, Field(gt=0.0)] = 60.0


class Analysis(BaseModel):
    """What the diagnosis of the study uses; runs do not depend on it."""

    model_config = _STRICT

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

    model_config = _STRICT

    kind: Literal["einstellung"]
    experiment_name: str = "einstellung"
    data: Data = Data()
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...] = (42, 123, 456)
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


def read(path: Path) -> Declaration:
    """Read a declaration from a YAML file; everything wrong with it is said at once."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WaterjarError(f"could not read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WaterjarError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise WaterjarError(f"{path} is not a mapping of settings: `waterjar new` writes one to start from")
    return declare(content, str(path))


def declare(content: dict[str, Any], where: str = "study") -> Declaration:
    """Validate a declaration, and every run that it expands to."""
    if content.get("kind") is None:
        raise WaterjarError(f"{where}: kind is missing; kind: einstellung would be right")
    declaration = parse_settings(Declaration, content, where)
    for name in ("seeds", "backbones", "strategies", "scenarios"):
        values = getattr(declaration, name)
        if not values or len({repr(value) for value in values}) < len(values):
            raise WaterjarError(f"{where}: {name} {list(values)} must be different ones, at least one")
    expand(declaration, where)
    return declaration


def expand(declaration: Declaration, where: str = "study") -> list[RunConfig]:
    """All runs of a study. The baselines do not depend on a strategy and are run once per backbone and seed."""
    runs: list[RunConfig] = []
    for variant in _variants(declaration, where):
        for backbone, seed, scenario in itertools.product(variant.backbones, variant.seeds, variant.scenarios):
            strategies = variant.strategies if scenario == "sequential" else (_baseline(variant, scenario),)
            runs += [_config(variant, backbone, seed, scenario, strategy) for strategy in strategies]
    return runs


def _baseline(declaration: Declaration, scenario: Scenario) -> Strategy:
    learner = "sgd" if scenario == "scratch_t2" else "joint"
    return Strategy(learner=learner, settings=declaration.baseline)


def _config(
    declaration: Declaration, backbone: str | Backbone, seed: int, scenario: Scenario, strategy: str | Strategy
) -> RunConfig:
    network = Backbone(name=backbone) if isinstance(backbone, str) else backbone
    chosen = Strategy(learner=strategy) if isinstance(strategy, str) else strategy
    if scenario == "sequential" and chosen.learner == "joint":
        raise WaterjarError("strategy 'joint' trains all tasks at once: it is the scenario interleaved, not sequential")
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
    for key, values in declaration.sweep.items():
        if not values:
            raise WaterjarError(f"{where}: sweep over '{key}' has no values")
        if key.partition(".")[0] not in _SWEPT:
            raise WaterjarError(f"{where}: sweep over '{key}': only settings of {', '.join(_SWEPT)} can be swept")
    variants = []
    for values in itertools.product(*declaration.sweep.values()):
        content = declaration.model_dump(mode="json")
        content["sweep"] = {}
        for key, value in zip(declaration.sweep, values, strict=True):
            _assign(content, key, value, where)
        variants.append(parse_settings(Declaration, content, f"{where}: sweep"))
    return variants


def _assign(content: dict[str, Any], dotted: str, value: Any, where: str) -> None:
    *path, last = dotted.split(".")
    place: Any = content
    for part in path:
        if not isinstance(place, dict) or part not in place:
            raise unknown_name(f"{where}: sweep over", dotted, _dotted(content))
        place = place[part]
    if not isinstance(place, dict) or (last not in place and path[-1:] != ["settings"]):
        raise unknown_name(f"{where}: sweep over", dotted, _dotted(content))
    place[last] = value


def _dotted(content: dict[str, Any]) -> list[str]:
    names = []
    for section in ("tasks", "shortcut", "training", "recording"):
        names += [f"{section}.{key}" for key in content[section]]
    return names
