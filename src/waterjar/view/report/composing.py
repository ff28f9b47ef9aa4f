"""From a story to a report: every section that has something to say, in order.

A section is one file in `sections/`: TITLE, ORDER, `appears(story) -> bool` and `blocks(story) -> list[Block]`. A new
file there is a new section.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from typing import Protocol, cast

from waterjar.view.report import sections
from waterjar.view.report.blocks import Block, Report, Section
from waterjar.view.report.opening import lead, status
from waterjar.view.report.story import Story


class Teller(Protocol):
    """What a file in `sections/` has."""

    TITLE: str
    ORDER: int

    def appears(self, story: Story) -> bool:
        """Whether the study has what this section tells of."""
        ...

    def blocks(self, story: Story) -> list[Block]:
        """What it tells."""
        ...


@functools.cache
def tellers() -> dict[str, Teller]:
    """name -> section, in the order of the page."""
    found = {
        item.name: cast(Teller, import_module(f"{sections.__name__}.{item.name}"))
        for item in pkgutil.iter_modules(sections.__path__)
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1].ORDER))


def compose(story: Story) -> Report:
    """The report of a story."""
    told = []
    for name, teller in tellers().items():
        if teller.appears(story):
            told.append(Section(name, teller.TITLE, tuple(teller.blocks(story))))
    roots = tuple(seal.root for seal in story.seals if seal.root)
    return Report(story.title, lead(story), status(story), tuple(told), roots, story.diagnosis)
