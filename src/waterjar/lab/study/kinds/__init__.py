"""Kinds of studies, one a folder: what can be declared, which runs that makes, how one is trained and what it costs.

A new kind is a module here whose name is the kind, with the functions of `Kind`, among them the `Experiment` that the
loop trains, and lab/templates/<kind>.yaml, the commented declaration that `waterjar new` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from waterjar.diagnose.analysis import Analysis
from waterjar.lab.data import ImageData
from waterjar.lab.loop import Experiment
from waterjar.lab.study.job import RunPlan
from waterjar.lab.study.parts import Data, Resources
from waterjar.run.shelf import SHELVES


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


class Kind(Protocol):
    """What a kind of study can do.

    It may have more: `fitted(config, data)`, a config that asks for no more images than there are, so that its runs can
    be rehearsed over a few; `illustrate(config, data, folder)`, which draws into the study's folder.
    """

    HEADLINE: str
    """What `headline` is, as the head of a column."""

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

    def experiment(
        self,
        config: Mapping[str, Any],
        data: ImageData,
        resources: Mapping[str, Any],
        scratch: Path,
        begun: Path | None = None,
    ) -> Experiment:
        """What is trained, from plain data; `begun` is its run, if it was begun before.

        `scratch` is a folder for what other processes have to find. Where `resources` tell of as many workers as there
        are cores, there are no other processes.
        """
        ...

    def pace_key(self, config: Any) -> tuple[str, str]:
        """What its speed hangs on: the network, and all the rest; runs with the same go at the same pace."""
        ...

    def headline(self, path: Path, root: Mapping[str, Any]) -> float | None:
        """An accuracy to watch a run by, from its last step."""
        ...


SHELF = SHELVES["kinds"]
names = SHELF.names


def of(kind: str) -> Kind:
    """A kind by its name."""
    found: Any = SHELF.module(kind)
    return found  # type: ignore[no-any-return]
