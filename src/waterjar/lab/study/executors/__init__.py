"""Where the runs of a study are computed, one executor a file: on this machine, on a dask cluster, through Slurm.

A new executor is a module here whose name is its name, with a pydantic model `Settings` and
`open_pool(settings, needs)`, which returns a `Pool`. Nothing here changes a number, so nothing of it is part of a run's
identity. Processes on other machines work on the same files: they need a file system that all see under one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError
from waterjar.lab.study.executors._pool import Future, LostWorkerError, Needs, Pool, reason
from waterjar.run.faults import Behind, parse_settings
from waterjar.run.shelf import Shelf

__all__ = [
    "Choice",
    "Future",
    "LostWorkerError",
    "Needs",
    "Pool",
    "names",
    "open_pool",
    "parse",
    "reason",
    "spelled_out",
]


SHELF = Shelf("", "executor", __name__)
names = SHELF.names


class Choice(BaseModel):
    """An executor by name; settings are those of its module."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str = "local"
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def behind(cls, values: Mapping[str, object], at: str) -> Behind:
        """The settings of the executor."""
        return SHELF.behind(values.get("name", "local"), at)


def spelled_out(given: object) -> object:
    """What a person wrote as the fields of `Choice`: a bare name, or settings beside the name.

    >>> spelled_out("dask")
    {'name': 'dask'}
    >>> spelled_out({"name": "dask", "workers": 4})
    {'name': 'dask', 'settings': {'workers': 4}}
    """
    if isinstance(given, str):
        return {"name": given}
    if not isinstance(given, Mapping) or not isinstance(given.get("settings", {}), Mapping):
        return given  # told where the types are judged
    beside = {key: value for key, value in given.items() if key not in Choice.model_fields}
    own = {key: value for key, value in given.items() if key in Choice.model_fields}
    return {**own, "settings": {**beside, **given.get("settings", {})}} if beside else own


def parse(given: object, where: str) -> Choice:
    """An executor as a person wrote it; a wrong one is a `WaterjarError`."""
    written = spelled_out(given)
    if not isinstance(written, Mapping):
        raise WaterjarError(
            f"{where}: expected {' or '.join(names())}, or a mapping such as {{name: dask, workers: 4}}"
        )
    return parse_settings(Choice, written, where)


def open_pool(choice: Choice, needs: Needs) -> Pool:
    """Start what runs the calls."""
    module: Any = SHELF.module(choice.name)
    pool: Pool = module.open_pool(parse_settings(module.Settings, choice.settings, f"executor {choice.name}"), needs)
    return pool
