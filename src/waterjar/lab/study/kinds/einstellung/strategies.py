"""What a study of the Einstellung effect puts beside each other: strategies and backbones, and what presets bring."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, Field, model_validator

from waterjar.errors import WaterjarError
from waterjar.lab import learners, networks
from waterjar.lab.config import OptionChoice, Training, options_in_full
from waterjar.lab.study.parts import STRICT
from waterjar.run.faults import Behind, faults, unknown

_BRINGS = {"n_epochs": ("epochs_t1", "epochs_t2"), "batch_size": ("batch_size",)}
"""What a preset says of the training around its learner -> the settings of `training` that it stands for."""


class Strategy(BaseModel):
    """A learner with its settings, those of a preset first, and options."""

    model_config = STRICT

    learner: str = ""
    """May be left out where a preset is named: it is the learner that the preset is of."""
    preset: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    """What differs from the training of the others, such as its batch_size; a preset brings its own."""
    options: tuple[str | OptionChoice, ...] = ()
    """What it does beside what its name says, such as `redo`."""

    @model_validator(mode="after")
    def _each_option_once(self) -> Strategy:
        options_in_full(self.chosen_options)
        return self

    @property
    def chosen_options(self) -> tuple[OptionChoice, ...]:
        """Its options, none of them a bare name."""
        return tuple(OptionChoice(name=one) if isinstance(one, str) else one for one in self.options)

    @model_validator(mode="before")
    @classmethod
    def _of_its_preset(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or "learner" in values or not isinstance(values.get("preset"), str):
            return values
        with contextlib.suppress(WaterjarError):  # told where the names are judged
            return {**values, "learner": learners.learner_of(values["preset"])}
        return values

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the learner; those of a preset come first."""
        name, preset = values.get("learner"), values.get("preset")
        if "learner" not in values:
            if not isinstance(preset, str):
                return Behind([f"setting '{at}.learner' is missing"])
            try:
                name = learners.learner_of(preset)
            except WaterjarError as error:
                return Behind([f"{at}: {error}"])
        there = learners.SHELF.behind(name, at)
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
        return networks.SHELF.behind(values.get("name"), at)


def strategy_of(given: str | Strategy) -> Strategy:
    """A bare name is short for a strategy with nothing but its learner."""
    return Strategy(learner=given) if isinstance(given, str) else given


def backbone_of(given: str | Backbone) -> Backbone:
    """A bare name is short for a backbone with nothing but it."""
    return Backbone(name=given) if isinstance(given, str) else given


def faults_of_training(strategies: object) -> list[str]:
    """What is wrong with the training that strategies have of their own."""
    entries = strategies if isinstance(strategies, list | tuple) else ()
    given = [(place, entry.get("training")) for place, entry in enumerate(entries) if isinstance(entry, Mapping)]
    return [
        fault
        for place, own in given
        if isinstance(own, Mapping)
        for fault in faults(Training, own, f"strategies[{place}].training")
    ]


def with_presets(given: str | Strategy, written: Collection[str]) -> str | Strategy:
    """A strategy with the training that its preset brings, but for what was `written` (or swept) for all of them.

    >>> with_presets(Strategy(preset="derpp_einstellung"), ["epochs_t2"]).training
    {'epochs_t1': 100, 'batch_size': 32}
    """
    if isinstance(given, str) or given.preset is None:
        return given
    brought = learners.presets(given.learner)[given.preset].training
    settings = {name: value for key, value in brought.items() for name in _BRINGS[key] if name not in written}
    return given.model_copy(update={"training": {**settings, **given.training}})
