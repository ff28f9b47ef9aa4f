"""From what is known to a report: every section that has something to say, in order.

A section is one file in `sections/`: TITLE, ORDER and `blocks(model) -> list[Block]`, empty where it has nothing to
say. A new file there is a new section.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from typing import Protocol, cast

from waterjar.view.report import sections
from waterjar.view.report.blocks import Block, Report, Section
from waterjar.view.report.model import Model


class SectionFile(Protocol):
    """What a file in `sections/` has."""

    TITLE: str
    ORDER: int

    def blocks(self, model: Model) -> list[Block]:
        """What it tells; nothing where the study has nothing for it."""
        ...


@functools.cache
def section_files() -> dict[str, SectionFile]:
    """name -> section, in the order of the page."""
    found = {
        item.name: cast(SectionFile, import_module(f"{sections.__name__}.{item.name}"))
        for item in pkgutil.iter_modules(sections.__path__)
    }
    return dict(sorted(found.items(), key=lambda pair: pair[1].ORDER))


def compose(model: Model) -> Report:
    """The report of a study."""
    made = [Section(name, one.TITLE, tuple(one.blocks(model))) for name, one in section_files().items()]
    beside = dict.fromkeys(f"+{one}" for known in model.study.annotations.values() for one in known.digest.split())
    roots = (*(seal.root for seal in model.seals if seal.root), *beside)
    told = tuple(section for section in made if section.blocks)
    return Report(model.title, model.opening, model.status, told, roots, model.diagnosis)
