"""A kind of study: a coin that is thrown. Every run is one coin, with what chance would give as its accuracy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

import waterjar
from waterjar.diagnose.analysis import Analysis
from waterjar.lab.data import ImageData
from waterjar.lab.study.job import Job, RunPlan
from waterjar.lab.study.kinds import Cost, Run
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
    return RunPlan(f"coin-{config.seed}", run_id, images=config.throws * len(data.train_labels), epochs=config.throws)


def check(configs: Sequence[Config], data: ImageData) -> None:
    """There is nothing that could fail."""


def train(
    config: Mapping[str, Any], data: ImageData, path: Path, checkpoints: Path, resources: Mapping[str, Any]
) -> Path:
    """Throw it; a run that was stopped is thrown again from its beginning."""
    given = Config.model_validate(dict(config))
    throws = np.random.default_rng(given.seed).random((given.throws, len(data.test_labels))) < 0.5
    with waterjar.Recorder(
        path,
        _plain(given),
        seeds=[given.seed],
        eval_sets={"heads": 0},
        tasks=["coin"],
        data_fingerprint=data.fingerprint,
    ) as recorder:
        for epoch, heads in enumerate(throws):
            recorder.log(epoch=epoch, train_task="coin", performance={"accuracy": {"heads": heads.mean()}})
    return path


def pace_key(config: Config) -> tuple[str, str]:
    """All coins are alike."""
    return "coin", ""


def headline(path: Path, root: Mapping[str, Any]) -> float | None:
    """Nothing is watched."""
    return None


def rehearse(job: Job, data: ImageData, resources: Resources, run: Run, seconds: float) -> tuple[float, float]:
    """A throw takes no time."""
    return 0.001, 0.0


def cost(job: Job, data: ImageData, tried: float) -> Cost:
    """What is left of a run."""
    return Cost(tried * job.epochs, bytes=20_000, temporary_bytes=0)


def _plain(config: Config) -> dict[str, Any]:
    return {"kind": "coin", "method": "coin", **config.model_dump()}
