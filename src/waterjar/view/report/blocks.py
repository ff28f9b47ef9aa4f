"""What a report is made of, before anybody decides whether it becomes HTML, LaTeX or a page of a PDF.

A block holds text as it is: escaping is the renderer's work. Whatever shows numbers also holds them, as the tidy
table that it was made from, so that every format can hand the data on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from waterjar.diagnose.study import Diagnosis

Kind = Literal["good", "note", "warning", "bad"]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of short texts; a pair is a term and what is said of it."""

    items: tuple[str | tuple[str, str], ...]


@dataclass(frozen=True)
class Callout:
    """Something that a reader must not miss."""

    kind: Kind
    title: str
    text: str = ""


@dataclass(frozen=True)
class Table:
    """A table for the eye, and the data behind it for everything else."""

    name: str
    """Unique in a report; files are named after it."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    frame: pd.DataFrame
    caption: str = ""
    numeric: tuple[int, ...] = ()
    """Positions of the columns that are set to the right."""


@dataclass(frozen=True)
class Key:
    """A line of a chart's legend: `group` names the traces that belong to it."""

    group: str
    label: str
    colour: str
    dash: str = "solid"
    symbol: str = ""


@dataclass(frozen=True)
class Chart:
    """Panels for plotly, each a figure of its own so that they flow with the width of the page."""

    name: str
    title: str
    panels: tuple[Mapping[str, Any], ...]
    """plotly figures, as plain data: `data` and `layout`. Names in them are escaped for plotly."""
    frame: pd.DataFrame
    """The numbers that are drawn, tidy."""
    caption: str
    alt: str
    """What there is to see, for readers who cannot see it."""
    keys: tuple[Key, ...] = ()
    wide: bool = False
    """Whether a panel needs the whole width."""
    figure: str = ""
    """The figure of `waterjar.view.figures` that draws the same numbers for paper."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What that figure is called with."""


@dataclass(frozen=True)
class Code:
    """Text that is kept to the letter: a declaration, say."""

    title: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What is to be said about one learner."""

    name: str
    pattern: str
    """As `diagnose.rigidity` names it."""
    short: str
    """The pattern in two or three words."""
    sentence: str
    facts: tuple[tuple[str, str], ...]
    """(label, value with interval and n)"""


@dataclass(frozen=True)
class Verdicts:
    """One verdict per learner."""

    name: str
    title: str
    verdicts: tuple[Verdict, ...]
    frame: pd.DataFrame
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """An image from a file, in the page itself."""

    caption: str
    png: bytes


@dataclass(frozen=True)
class Pictures:
    """A few images in a row."""

    name: str
    pictures: tuple[Picture, ...]
    caption: str


Block = Heading | Text | Items | Callout | Table | Chart | Code | Verdicts | Pictures


@dataclass(frozen=True)
class Section:
    """A part of the report, with a name to link to."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """A whole report, ready for a renderer."""

    title: str
    lead: str
    """What was run, in one sentence."""
    status: Callout
    """Whether the numbers can be trusted: the seals."""
    sections: tuple[Section, ...]
    roots: tuple[str, ...]
    """The root hashes of the runs behind it."""
    source: Diagnosis | None = None
    """What the figures of `waterjar.view.figures` are drawn from, for formats that print."""

    @property
    def shown(self) -> list[Table | Chart | Verdicts]:
        """All that shows numbers, in order; each has a name, and the data behind it as a `frame`."""
        return [one for section in self.sections for one in section.blocks if isinstance(one, Table | Chart | Verdicts)]
