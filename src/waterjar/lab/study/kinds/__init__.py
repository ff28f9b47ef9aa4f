"""Kinds of studies, one a folder: what can be declared, which runs that makes, how one is trained and what it costs.

A new kind is a module here whose name is the kind, with the functions of `Kind`, and lab/templates/<kind>.yaml, the
commented declaration that `waterjar new` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from waterjar.diagnose.analysis import Analysis
from waterjar.lab.data import ImageData
from waterjar.lab.study.job import Job, RunPlan
from waterjar.lab.study.parts import Data, Resources
from waterjar.run.shelf import SHELVES

Run = Callable[..., Any]
"""Call a function in a worker process, and wait: run(function, *arguments)."""


class Declared(Protocol):
    """What a declaration of every kind has; it is a pydantic model."""

    @property
    def kind(self) -> str:
        """Of study."""
        ...

    @property
    def data(self) -> Data:
        """The data set."""
        ...

    @property
    def resources(self) -> Resources:
        """How it is computed."""
        ...

    @property
    def analysis(self) -> Analysis:
        """What is measured and drawn of it, and how."""
        ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
        """As pydantic's."""
        ...

    def model_dump(self, **how: Any) -> dict[str, Any]:
        """As pydantic's."""
        ...


@dataclass(frozen=True)
class Cost:
    """What is left of one run."""

    seconds: float
    bytes: int
    temporary_bytes: int
    """More bytes, which it takes while it runs and gives back: its last checkpoint."""


class Kind(Protocol):
    """What a kind of study can do."""

    HEADLINE: str
    """What `shown` is, as the head of a column."""

    def declare(self, content: Mapping[str, Any], where: str) -> Declared:
        """Validate a declaration and all its runs."""
        ...

    def expand(self, declaration: Any, where: str) -> list[Any]:
        """The configs of its runs, each a pydantic model."""
        ...

    def plan(self, config: Any, data: ImageData, resources: Any) -> RunPlan:
        """A config over the data; resources are the declaration's, for what of them changes the numbers."""
        ...

    def check(self, configs: Sequence[Any], data: ImageData) -> None:
        """Build what the runs are made of, so that a fault shows before the first of them."""
        ...

    def train(
        self, config: Mapping[str, Any], data: ImageData, path: Path, checkpoints: Path, resources: Mapping[str, Any]
    ) -> Path:
        """Train a run to its end, from its last checkpoint if there is one."""
        ...

    def pace_key(self, config: Any) -> tuple[str, str]:
        """What its speed hangs on: the network, and all the rest; runs with the same go at the same pace."""
        ...

    def headline(self, path: Path, root: Mapping[str, Any]) -> float | None:
        """An accuracy to watch a run by, from its last step."""
        ...

    def rehearse(self, job: Job, data: ImageData, resources: Resources, run: Run, seconds: float) -> tuple[Any, float]:
        """Small copies of a run, really run for about so long: what they took, and how long warming up took."""
        ...

    def cost(self, job: Job, data: ImageData, tried: Any) -> Cost:
        """What is left of a run, from what `rehearse` found."""
        ...


SHELF = SHELVES["kinds"]
names = SHELF.names


def of(kind: str) -> Kind:
    """A kind by its name."""
    found: Any = SHELF.module(kind)
    return found  # type: ignore[no-any-return]
