"""A kind of study: a coin that is thrown. Every run is one coin, with what chance would give as its accuracy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from waterjar.diagnose.analysis import Analysis
from waterjar.lab.checkpoint import Progress
from waterjar.lab.data import ImageData
from waterjar.lab.loop import Experiment, Phase, Usage
from waterjar.lab.study.job import RunPlan
from waterjar.lab.study.parts import Data, Resources
from waterjar.run.faults import parse_settings
from waterjar.run.identity import identify

TEMPLATE = "kind: coin\ndata: {name: stripes}\nseeds: [0, 1]\nthrows: 4   # epochs\n"
HEADLINE = "heads"


class Config(BaseModel):
    """One run."""

    data: str
    seed: int
    throws: int


class Declaration(BaseModel):
    """A study: a run per seed."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["coin"]
    data: Data = Data(name="stripes")
    seeds: tuple[int, ...] = (0,)
    throws: int = 4
    resources: Resources = Resources()
    analysis: Analysis = Analysis(families=("continual",), figures=False)


def declare(content: Mapping[str, Any], where: str = "study") -> Declaration:
    """Validate a declaration."""
    return parse_settings(Declaration, content, where)


def expand(declaration: Declaration, where: str = "study") -> list[Config]:
    """The configs of its runs."""
    return [Config(data=declaration.data.name, seed=seed, throws=declaration.throws) for seed in declaration.seeds]


def plan(config: Config, data: ImageData, resources: Resources) -> RunPlan:
    """A config over the data."""
    run_id = identify(_plain(config), [config.seed], data.fingerprint)[0]
    return RunPlan(f"coin-{config.seed}", run_id, config.throws * len(data.train_labels), _phases(config))


def check(configs: Sequence[Config], data: ImageData) -> None:
    """There is nothing that could fail."""


class Coin(Experiment):
    """One run: every epoch is a throw, for which chance alone is needed, and so nothing is kept between them."""

    def __init__(self, config: Config, data: ImageData) -> None:
        self.phases = _phases(config)
        self._config = config
        self._data = data
        self._throws = np.random.default_rng(config.seed).random((config.throws + 1, len(data.test_labels))) < 0.5

    def recorder(self) -> dict[str, Any]:
        fingerprint, sizes = self._data.fingerprint, {"heads": len(self._data.test_labels)}
        about = {"config": _plain(self._config), "seeds": [self._config.seed], "data_fingerprint": fingerprint}
        return {**about, "eval_sets": {"heads": 0}, "eval_sizes": sizes, "tasks": ["coin"]}

    def parts(self) -> Mapping[str, list[str]]:
        return {"data": [self._config.data]}

    def train(self, at: Progress, stop: int) -> None: ...

    def evaluated(self, at: Progress) -> dict[str, Any]:
        return {"performance": {"accuracy": {"heads": self._throws[at.epoch].mean()}}}

    def usage(self, at: Progress) -> Usage:
        return Usage(len(self._data.train_labels) if at.epoch else 0, 0, 0)

    def state(self) -> Any:
        return {}

    def load_state(self, state: Any) -> None: ...


def experiment(
    config: Mapping[str, Any],
    data: ImageData,
    resources: Mapping[str, Any],
    scratch: Path,
    begun: Path | None = None,
) -> Coin:
    """What is thrown."""
    return Coin(Config.model_validate(dict(config)), data)


def pace_key(config: Config) -> tuple[str, str]:
    """All coins are alike."""
    return "coin", ""


def headline(path: Path, root: Mapping[str, Any]) -> float | None:
    """Nothing is watched."""
    return None


def _phases(config: Config) -> tuple[Phase, ...]:
    return (Phase("coin", config.throws, 1),)


def _plain(config: Config) -> dict[str, Any]:
    return {"kind": "coin", "method": "coin", **config.model_dump()}
