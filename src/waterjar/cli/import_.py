"""`waterjar import`: runs out of other people's formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli.export import FORMATS, Format, tell
from waterjar.cli.output import AsJson

NAME = "import"


def command(
    path: Annotated[Path, typer.Argument(help="results/{dataset}/{algorithm}, or a CSV file.")],
    out: Annotated[Path, typer.Option(help="The run to be made; of a CSV file, the study.")],
    kind: Format = "seed",
    as_json: AsJson = False,
) -> None:
    """Make a sealed run, or a study of them, of another format. Nothing in a file is ever executed."""
    from waterjar.errors import unknown_name  # noqa: PLC0415 - not for --help

    if kind not in FORMATS:
        raise unknown_name("--format", kind, FORMATS)
    if kind == "csv":
        from waterjar.run.formats.timeline_csv import from_csv  # noqa: PLC0415

        told = [{"path": str(from_csv(path, out).path), "notes": []}]
    else:
        from waterjar.run.formats.seed_layout import import_seed_layout  # noqa: PLC0415

        found = import_seed_layout(path, out)
        told = [{"path": str(found.run.path), "notes": found.notes}]
    tell(told, as_json, "note")
