"""Printing: rich tables for people, JSON for programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.run.shown import json_text, visible

if TYPE_CHECKING:
    from rich.table import Table

_TEXT, _GAP, _EDGES = 24, 3, 2
"""Characters that a text must have to be read, and those between two columns of a table and around it."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def print_json(value: Any) -> None:
    """Print plain data as JSON; numbers that JSON does not have become text ("inf")."""
    sys.stdout.write(json_text(_finite(value), indent=2) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def table(title: str, columns: Sequence[str], whole: Collection[str] = ()) -> Table:
    """A table in the house style; cells are escaped by `row`.

    The first column says what a row is about: it is never broken into lines, nor are those that are `whole`. Where
    those follow the first one, they say so with it.
    """
    from rich import box  # noqa: PLC0415 - not for --help
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    made = Table(title=visible(title), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    made.min_width = len(title)
    for i, column in enumerate(columns):
        made.add_column(escape(visible(column)), overflow="fold", no_wrap=i == 0 or column in whole)
    return made


def row(made: Table, *cells: object) -> None:
    """Add a row; what comes from a file is text, never markup."""
    from rich.text import Text  # noqa: PLC0415

    made.add_row(*(cell if isinstance(cell, Text) else Text(visible(str(cell))) for cell in cells))


def print_rich(*parts: object, piped: int = 1000) -> None:
    """Print tables and texts to the terminal, or plainly into a pipe, `piped` columns wide.

    A table of more columns than the terminal has room for goes on below, with the columns that say what a row is about.
    """
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else piped)
    for part in parts:
        for piece in _folded(part, console.width) if isinstance(part, Table) else [part]:
            console.print(visible(piece) if isinstance(piece, str) else piece)


def _folded(made: Table, width: int) -> list[Table]:
    """A table as one or several that fit; a column of long texts is no wider than it must be, and wraps."""
    from rich.text import Text  # noqa: PLC0415

    made.min_width = min(made.min_width or 0, width)
    cells = [[Text.from_markup(str(column.header)), *column.cells] for column in made.columns]
    sizes = [max(cell.cell_len for cell in own if isinstance(cell, Text)) for own in cells]
    words = [max(len(word) for cell in own for word in (str(cell).split() or [""])) for own in cells]
    made.columns[0].no_wrap = sizes[0] <= width - _TEXT
    needs = [
        size if column.no_wrap else min(size, max(_TEXT, word))
        for column, size, word in zip(made.columns, sizes, words, strict=True)
    ]
    about = next((i for i, column in enumerate(made.columns) if i and not column.no_wrap), len(made.columns))
    keys = list(range(about if about < len(made.columns) else 1))
    groups: list[list[int]] = [[]]
    for i, need in list(enumerate(needs))[len(keys) :]:
        there = [*keys, *groups[-1]]
        if groups[-1] and sum(needs[k] + _GAP for k in there) + need > width - _EDGES:
            groups.append([])
        groups[-1].append(i)
    if len(groups) == 1:
        return [made]
    pieces: list[Table] = []
    for group in groups:
        piece = table(made.title if not pieces and isinstance(made.title, str) else "", [])
        piece.min_width = made.min_width if not pieces else 0
        for i in (*keys, *group):
            piece.add_column(made.columns[i].header, overflow="fold", no_wrap=made.columns[i].no_wrap)
        for line in zip(*([*made.columns[i].cells] for i in (*keys, *group)), strict=True):
            piece.add_row(*line)
        pieces.append(piece)
    return pieces


def coloured(state: str) -> Any:
    """A state as coloured text."""
    from rich.text import Text  # noqa: PLC0415

    colours = {
        "sealed": "green",
        "tampered": "bold red",
        "damaged": "bold red",
        "missing": "bold red",
        "invalid": "bold red",
    }
    return Text(state, style=colours.get(state, "yellow"))
