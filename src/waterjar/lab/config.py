"""What one run of the Einstellung experiment is: resolved, validated, and all of it in the run's identity."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from waterjar.errors import WaterjarError, unknown_name
from waterjar.lab import shortcuts
from waterjar.lab.augmentation import T1, T2, AugmentationSettings
from waterjar.lab.grown import Grown
from waterjar.lab.learners import Precision
from waterjar.lab.learning import options as option_shelf
from waterjar.lab.shortcuts import Fill
from waterjar.run.faults import Behind

Scenario = Literal["scratch_t2", "interleaved", "sequential"]
Device = Literal["auto", "cpu", "cuda", "mps"]


def _no_truth_value(value: object) -> object:
    """Pydantic would take True for 1."""
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


Share = Annotated[float, Field(ge=0.0, le=1.0), BeforeValidator(_no_truth_value)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_no_truth_value)]
ListedCount = Annotated[Count, Field(le=10_000)]
"""Of what gets a name or a seed each."""
Number = Annotated[int, Field(ge=0), BeforeValidator(_no_truth_value)]
Seed = Annotated[int, Field(ge=0, lt=2**63), BeforeValidator(_no_truth_value)]

Chosen = TypeVar("Chosen", bound="Choice")

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Tasks(BaseModel):
    """Which superclasses make up the two tasks, and in which of them the shortcut is planted."""

    model_config = _STRICT

    t1_superclasses: tuple[Number, ...] = tuple(range(8))
    t2_superclasses: tuple[Number, ...] = (8, 9, 10, 11)
    shortcut_superclasses: tuple[Number, ...] = (8,)
    validation: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    """Share of the T2 train images of each class that is held out to pick the checkpoint."""

    @model_validator(mode="after")
    def _fit_together(self) -> Tasks:
        for name in ("t1_superclasses", "t2_superclasses", "shortcut_superclasses"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} {list(values)} must be different superclasses, at least one")
        both = sorted(set(self.t1_superclasses) & set(self.t2_superclasses))
        if both:
            raise ValueError(f"superclasses {both} are in T1 and in T2: the tasks must not overlap")
        outside = sorted(set(self.shortcut_superclasses) - set(self.t2_superclasses))
        if outside:
            raise ValueError(f"shortcut superclasses {outside} are not in T2, which has {list(self.t2_superclasses)}")
        if set(self.shortcut_superclasses) == set(self.t2_superclasses):
            raise ValueError("every T2 superclass carries the shortcut: at least one without it is needed as a control")
        return self


class Planting(BaseModel):
    """The shortcut, how often it is planted, and how it is masked."""

    model_config = _STRICT

    kind: str = "patch"
    rate: Share = 0.5
    """Share of the train (and validation) images of shortcut classes that carry it."""
    eval_rate: Share = 1.0
    """The same for the `normal` evaluation sets."""
    mask: Fill = "black"
    settings: dict[str, Any] = Field(default_factory=dict)
    """Those of the kind: size, colour, shape, opacity, location, seed_offset of a patch."""

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the kind."""
        return shortcuts.SHELF.behind(values.get("kind", "patch"), at)


class Augmentation(BaseModel):
    """What happens to training images of either task."""

    model_config = _STRICT

    t1: AugmentationSettings = T1
    t2: AugmentationSettings = T2

    @field_validator("t1", "t2", mode="before")
    @classmethod
    def _over_the_defaults(cls, given: object, info: ValidationInfo) -> object:
        """Settings that are not given keep the task's defaults, as everywhere else."""
        defaults = {"t1": T1, "t2": T2}[str(info.field_name)]
        return {**defaults.model_dump(), **given} if isinstance(given, dict) else given


class Training(BaseModel):
    """How long, in which batches, in which precision."""

    model_config = _STRICT

    epochs_t1: Count = 10
    epochs_t2: Count = 10
    """Also the number of joint epochs in `interleaved`, each of which sees every T2 image once."""
    batch_size: Count = 32
    precision: Precision = "float32"


class Choice(BaseModel):
    """Something found by its name, and its settings."""

    model_config = _STRICT

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class OptionChoice(Choice):
    """An option of a learner."""

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the option."""
        return option_shelf.SHELF.behind(values.get("name"), at)


def in_full(shelf: Any, chosen: Chosen) -> Chosen:
    """A choice with all its settings written out, so that a default that changes is another run."""
    settings = shelf.parse(chosen.name, chosen.settings).model_dump(mode="json")
    return chosen.model_copy(update={"settings": settings})


def with_options_spelled_out(entry: object) -> object:
    """A learner as a study file has it; the bare name of an option is short for a mapping with nothing but it.

    >>> with_options_spelled_out({"learner": "sl", "options": ["redo"]})
    {'learner': 'sl', 'options': [{'name': 'redo'}]}
    """
    if isinstance(entry, Mapping) and isinstance(entry.get("options"), list | tuple):
        return {**entry, "options": [{"name": one} if isinstance(one, str) else one for one in entry["options"]]}
    return entry


def options_in_full(chosen: tuple[OptionChoice, ...]) -> tuple[OptionChoice, ...]:
    """Options, each at most once; a `ValueError` for pydantic."""
    names = [one.name for one in chosen]
    if len(set(names)) < len(names):
        raise ValueError(f"options {names}: expected each at most once")
    return tuple(in_full(option_shelf, one) for one in chosen)


class ExampleRecording(Grown):
    """Whether single examples are kept."""

    model_config = _STRICT
    ADDED: ClassVar = ("examples", "train_examples", "outputs")

    examples: bool = False
    """Whether every example of every evaluation set is kept at every evaluation: right or wrong, and its margin."""
    train_examples: Number = 0
    """With `examples`, so many training images of each task as well (all, where it has fewer), not augmented."""

    @model_validator(mode="after")
    def _train_examples_are_examples(self) -> Self:
        if self.train_examples and not self.examples:
            raise ValueError(
                f"train_examples is {self.train_examples}, and no examples are recorded: expected examples: true, too"
            )
        return self


class Recording(ExampleRecording):
    """What is kept beside accuracies: single examples, and features of some layers and weights every so many epochs."""

    model_config = _STRICT

    features: tuple[str, ...] = ()
    """Layers; see the network."""
    weights: bool = False
    every: Count = 1
    samples: Count = 100
    """Images of each evaluation set whose features are kept; the same ones all along."""
    class_accuracy: bool = True
    outputs: bool = False
    """With `examples`, the logits of all of them as well, `every` so many epochs: seeds then make an ensemble."""

    @model_validator(mode="after")
    def _outputs_are_of_examples(self) -> Self:
        if self.outputs and not self.examples:
            raise ValueError("outputs are those of examples, and none are recorded: expected examples: true, too")
        return self

    @field_validator("features")
    @classmethod
    def _each_once(cls, features: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(features)) < len(features):
            raise ValueError(f"layers {list(features)} must be different ones")
        return features


class RunConfig(BaseModel):
    """One run: one scenario, learner, network and seed."""

    model_config = _STRICT
    NUMERICS: ClassVar = 2
    """Version of the numbers that a config gives, part of a run's identity.

    2: learners are those of binary tasks with one repeat (gradients by logits are written out, memories draw by
    hashes), and `mlp` reads an image pixel after pixel.
    """

    kind: Literal["einstellung"] = "einstellung"
    scenario: Scenario
    learner: str
    learner_settings: dict[str, Any]
    options: tuple[OptionChoice, ...] = ()
    """What the learner does beside what its name says."""
    backbone: str
    backbone_settings: dict[str, Any]
    data: str
    tasks: Tasks = Tasks()
    shortcut: Planting = Planting()
    augmentation: Augmentation = Augmentation()
    training: Training = Training()
    recording: Recording = Recording()
    seed: Seed = 0

    @field_validator("options")
    @classmethod
    def _options_in_full(cls, chosen: tuple[OptionChoice, ...]) -> tuple[OptionChoice, ...]:
        return options_in_full(chosen)

    @property
    def method(self) -> str:
        """What it is called in tables: the learner with its options, or the baseline that it is."""
        return self.learner_with_options if self.scenario == "sequential" else self.scenario

    @property
    def learner_with_options(self) -> str:
        """Names, as they are written."""
        return "+".join([self.learner, *(one.name for one in self.options)])

    @property
    def chosen_options(self) -> list[tuple[str, dict[str, Any]]]:
        """Options by name."""
        return [(one.name, one.settings) for one in self.options]

    @property
    def full_backbone_settings(self) -> dict[str, Any]:
        """Those given, and those that options add."""
        return {**self.backbone_settings, **option_shelf.network_settings(self.chosen_options)}

    @property
    def parts(self) -> dict[str, list[str]]:
        """What it is made of: shelf -> names."""
        return {
            "data": [self.data],
            "shortcuts": [self.shortcut.kind],
            "networks": [self.backbone],
            "learners": [self.learner],
            "options": [one.name for one in self.options],
        }

    def to_plain(self) -> dict[str, Any]:
        """As plain data, the way it stands in the run; `method` is there for those who list runs."""
        return {"method": self.method, **self.model_dump(mode="json")}


def resolve_device(device: Device) -> str:
    """The device to compute on; `auto` takes an accelerator where there is one."""
    import torch  # noqa: PLC0415 - kept out of the way of those who only read configs

    if device not in get_args(Device):
        raise unknown_name("device", device, get_args(Device))
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return next(name for name, is_there in there.items() if is_there)
    if not there[device]:
        raise WaterjarError(f"device '{device}' is not there: use auto or cpu")
    return device


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
