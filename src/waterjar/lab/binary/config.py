"""What one run of the binary-task experiment is: resolved, validated, and all of it in the run's identity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from waterjar.errors import WaterjarError
from waterjar.lab import networks
from waterjar.lab.config import (
    Choice,
    Count,
    ExampleRecording,
    ListedCount,
    Number,
    OptionChoice,
    Seed,
    in_full,
    options_in_full,
)
from waterjar.lab.learning import objectives, optimisers, options
from waterjar.run.faults import Behind, parse_settings

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
_REPEAT_SEEDS = 0  # spawn keys of the config's seed
Rate = Annotated[float, Field(ge=0.0)]


class Tasks(BaseModel):
    """How many tasks, each of how many classes, out of which classes."""

    model_config = _STRICT

    number: ListedCount
    """T."""
    classes_per_task: Annotated[int, Field(ge=2)] = 2
    """K: a task tells K classes apart, which get the labels 0 ... K - 1."""
    classes: tuple[Number, ...] | None = None
    """Fine classes to draw from; None for all that have images."""
    train_per_class: Count | None = None
    """Train images of each class (those with the smallest hashes of their ids); None for all."""
    test_per_class: Count | None = None

    @field_validator("classes")
    @classmethod
    def _each_once(cls, classes: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if classes is not None and len(set(classes)) < len(classes):
            raise ValueError(f"classes {list(classes)} must be different ones")
        return classes


class OptimiserChoice(Choice):
    """An optimiser."""

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the optimiser."""
        return optimisers.SHELF.behind(values.get("name"), at)


class Training(BaseModel):
    """How long, in which batches, at which rates."""

    model_config = _STRICT

    epochs: Count = 20
    """Of each task."""
    batch_size: Count = 128
    log_frequency: Count = 1
    """Epochs between evaluations; it divides `epochs`."""
    lr_features: Rate = 0.05
    """Of everything before the readout."""
    lr_readout: Rate = 0.05
    optimiser: OptimiserChoice = OptimiserChoice(name="sgd")
    fresh_optimiser: bool = True
    """Forget momenta at the start of each task."""

    @model_validator(mode="after")
    def _whole_intervals(self) -> Training:
        if self.epochs % self.log_frequency:
            fitting = [n for n in range(1, self.epochs + 1) if self.epochs % n == 0]
            nearest = sorted(sorted(fitting, key=lambda n: abs(n - self.log_frequency))[:4])
            raise ValueError(
                f"log_frequency {self.log_frequency} does not divide the {self.epochs} epochs of a task, whose end "
                f"would not be evaluated: {', '.join(map(str, nearest))} would"
            )
        return self


class Recording(ExampleRecording):
    """What is kept beside accuracies and losses, at every evaluation."""

    model_config = _STRICT

    features: tuple[str, ...] = ()
    """Layers; see the network. Maps are averaged over their pixels."""
    eval_tasks: tuple[Number, ...] | None = None
    """Tasks whose features are kept; None for all."""
    samples: Count = 50
    """Test images of each of these tasks, as evenly from its classes as can be; the same ones all along."""
    weights: bool = False
    every: Count = 1
    """Keep one of so many evaluations within a task; its start and its end are always kept."""

    @field_validator("eval_tasks")
    @classmethod
    def _not_empty(cls, tasks: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if tasks == ():
            raise ValueError("no task would be recorded: leave it out for all of them, or set features to [] for none")
        return tasks

    @field_validator("features", "eval_tasks")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if values is not None and len(set(values)) < len(values):
            raise ValueError(f"{list(values)} must be different ones")
        return values


def check_repeats(repeats: int | None, seeds: tuple[int, ...] | None) -> None:
    """Say how many repeats there are in one way, and each with a seed of its own; a `ValueError` for pydantic."""
    if seeds is None and repeats is None:
        raise ValueError("give `repeats`, how many there are, or `seeds`, one for each")
    if seeds is not None:
        if not seeds or len(set(seeds)) < len(seeds):
            raise ValueError(f"seeds {list(seeds)} must be different ones, one for each repeat")
        if repeats not in (None, len(seeds)):
            raise ValueError(f"repeats {repeats}, but {len(seeds)} seeds: leave one of them out")


def check_eval_tasks(recording: Recording, tasks: Tasks) -> None:
    """Tasks whose features are kept are tasks that there are; a `ValueError` for pydantic."""
    outside = [task for task in recording.eval_tasks or () if task >= tasks.number]
    if outside:
        raise ValueError(f"recording.eval_tasks {outside}: tasks are 0 to {tasks.number - 1}")


class BinaryConfig(BaseModel):
    """One run: R repeats of T tasks, trained by one learner with its options.

    >>> config = BinaryConfig(data="glyphs", tasks={"number": 3}, repeats=2, options=[{"name": "l2_init"}])
    >>> config.method, config.options[0].settings, len(config.repeat_seeds)
    ('sl+l2_init', {'strength': 0.001}, 2)
    """

    model_config = _STRICT

    NUMERICS: ClassVar = 2
    """Version of the numbers that a config gives, part of a run's identity.

    2: weights of convolutions lie in memory pixel after pixel, as images do.
    """

    kind: Literal["binary"] = "binary"
    data: str
    channels: Literal[1, 3] = 3
    """1 takes the mean of the three: for images that are grey anyway."""
    tasks: Tasks
    training: Training = Training()
    learner: str = "sl"
    learner_settings: dict[str, Any] = Field(default_factory=dict)
    options: tuple[OptionChoice, ...] = ()
    network: str = "cnn"
    network_settings: dict[str, Any] = Field(default_factory=dict)
    experts: bool = True
    """A fresh network per task and repeat, trained as if the task were its first."""
    random_baseline: bool = False
    """Lower bound: from the learner's first weights, only the readout learns; its features stay random."""
    multitask: bool = False
    """Upper bound: from the learner's first weights, as many batches, but of the images of ALL tasks."""
    recording: Recording = Recording()
    repeats: ListedCount | None = None
    """R; with `seeds` it may be left out."""
    seed: Seed = 0
    """From which the seeds of the repeats follow."""
    seeds: tuple[Seed, ...] | None = None
    """One per repeat, instead."""

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: Any) -> Any:
        """Settings behind a name are validated here and written out in full: all of them identify the run."""
        if not isinstance(values, Mapping):
            return values
        found = dict(values)
        for key, kind, usual in (("learner", objectives, "sl"), ("network", networks, "cnn")):
            name, given = found.get(key, usual), found.get(f"{key}_settings", {})
            if isinstance(name, str) and isinstance(given, Mapping):
                found[f"{key}_settings"] = kind.parse(name, given).model_dump(mode="json")
        return found

    @field_validator("options")
    @classmethod
    def _options_in_full(cls, chosen: tuple[OptionChoice, ...]) -> tuple[OptionChoice, ...]:
        return options_in_full(chosen)

    @field_validator("training")
    @classmethod
    def _optimiser_in_full(cls, training: Training) -> Training:
        return training.model_copy(update={"optimiser": in_full(optimisers, training.optimiser)})

    @model_validator(mode="after")
    def _fit_together(self) -> BinaryConfig:
        check_repeats(self.repeats, self.seeds)
        check_eval_tasks(self.recording, self.tasks)
        networks.parse(self.network, self.full_network_settings)  # whether it takes what the options ask of it
        return self

    @property
    def full_network_settings(self) -> dict[str, Any]:
        """Those given, and those that options add."""
        return {**self.network_settings, **options.network_settings(self.chosen_options)}

    @property
    def repeat_seeds(self) -> tuple[int, ...]:
        """One per repeat: those given, else a function of `seed` and the repeat's number, whatever R is."""
        if self.seeds is not None:
            return self.seeds
        keys = ((_REPEAT_SEEDS, repeat) for repeat in range(self.repeats or 0))
        return tuple(int(np.random.SeedSequence(self.seed, spawn_key=key).generate_state(1)[0]) for key in keys)

    @property
    def probe_tasks(self) -> tuple[int, ...]:
        """The tasks whose features are kept."""
        wanted = self.recording.eval_tasks
        return tuple(range(self.tasks.number)) if wanted is None else wanted

    @property
    def chosen_options(self) -> list[tuple[str, dict[str, Any]]]:
        """Options by name."""
        return [(one.name, one.settings) for one in self.options]

    @property
    def method(self) -> str:
        """What it is called in tables: the learner and its options."""
        return "+".join([self.learner, *(one.name for one in self.options)])

    @property
    def parts(self) -> dict[str, list[str]]:
        """What it is made of, of what can come from outside: shelf -> names."""
        return {"data": [self.data], "networks": [self.network], "options": [one.name for one in self.options]}

    def to_plain(self) -> dict[str, Any]:
        """As plain data, the way it stands in the run: with the seeds of the repeats in place of what gave them."""
        plain = self.model_dump(mode="json", exclude={"repeats", "seed"})
        return {"method": self.method, **plain, "seeds": list(self.repeat_seeds)}


def parse_config(values: Mapping[str, object], where: str = "config") -> BinaryConfig:
    """A config from plain data; all faults in one `WaterjarError`. The method follows from the rest: it is not read."""
    found = parse_settings(BinaryConfig, {key: value for key, value in values.items() if key != "method"}, where)
    if found.random_baseline and not found.training.lr_readout:
        raise WaterjarError(f"{where}: the random baseline learns by its readout alone, whose lr_readout is 0")
    return found
