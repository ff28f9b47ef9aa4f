"""What a study found, in sentences: one file a family, found by its name.

A file `<family>.py` here whose name does not begin with `_` has

- `TITLE`: what its sentences are about, in a few words;
- `ORDER`: its place among the others; the family that a study declares as its lead comes first all the same;
- `sentences(model) -> list[str]`: what was found, the most important first; empty where nothing of it was measured.

Sentences are for somebody who has never read of the metric: numbers with their interval over seeds, p of differences,
and no claim that intervals do not carry. A new family brings its file; nothing else is edited.
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from waterjar.view.report.model import Model
from waterjar.view.short_names import short

_LONGEST = 40
"""Characters of a learner's name in a sentence."""


class LeadFile(Protocol):
    """What a file in this folder has."""

    TITLE: str
    ORDER: int

    def sentences(self, model: Model) -> list[str]:
        """What was found; nothing where there is nothing to say."""
        ...


class Told(NamedTuple):
    """What one file has to say of a study."""

    name: str
    title: str
    sentences: list[str]


@functools.cache
def lead_files() -> dict[str, LeadFile]:
    """name -> file, in the order of the page."""
    found = {
        item.name: cast(LeadFile, import_module(f"{__name__}.{item.name}"))
        for item in pkgutil.iter_modules(__path__)
        if not item.name.startswith("_")
    }
    return dict(sorted(found.items(), key=lambda pair: (pair[1].ORDER, pair[0])))


def _with_short_names(text: str, model: Model) -> str:
    """The names of learners as a sentence can hold them: the middle of a long one is left out."""
    shown = short(model.names.values(), _LONGEST)
    for name in sorted(shown, key=len, reverse=True):
        text = text.replace(name, shown[name]) if len(name) > _LONGEST else text
    return text


def told(model: Model) -> list[Told]:
    """What every file says of a study that has something to say; the lead that was declared comes first."""
    declared = model.diagnosis.analysis.lead
    made = [
        Told(name, one.TITLE, [_with_short_names(text, model) for text in one.sentences(model)])
        for name, one in lead_files().items()
    ]
    spoken = [one for one in made if one.sentences]
    return sorted(spoken, key=lambda one: (lead_files()[one.name].ORDER >= 0, one.name != declared))
