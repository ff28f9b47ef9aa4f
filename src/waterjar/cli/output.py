"""Printing: rich tables for people, JSON for programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.run.shown import json_text, visible

if TYPE_CHECKING:
    from rich.table import Table

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


def table(title: str, columns: Sequence[str]) -> Table:
    """A table in the house style; cells are escaped by `row`."""
    from rich import box  # noqa: PLC0415 - not for --help
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    made = Table(title=visible(title), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    made.min_width = len(title)
    for column in columns:
        made.add_column(escape(visible(column)), overflow="fold")
    return made


def row(made: Table, *cells: object) -> None:
    """Add a row; what comes from a file is text, never markup."""
    from rich.text import Text  # noqa: PLC0415

    made.add_row(*(cell if isinstance(cell, Text) else Text(visible(str(cell))) for cell in cells))


def print_rich(*parts: object) -> None:
    """Print tables and texts to the terminal, or plainly into a pipe."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 1000)
    for part in parts:
        console.print(visible(part) if isinstance(part, str) else part)


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
