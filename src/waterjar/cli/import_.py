"""`waterjar import`: runs out of other people's formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli.export import SEED, Format, Listing, list_formats, tell
from waterjar.cli.measured import read_sets
from waterjar.cli.output import AsJson
from waterjar.cli.progress import working

NAME = "import"


def command(
    path: Annotated[Path | None, typer.Argument(help="results/{dataset}/{algorithm}, or a CSV file.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run to be made; of a CSV file, the study.")] = None,
    kind: Format = SEED,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the format; of csv splits=[before, after]."),
    ] = None,
    listing: Listing = False,
    as_json: AsJson = False,
) -> None:
    """Make a sealed run, or a study of them, of another format. Nothing in a file is ever executed."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415 - not for --help
    from waterjar.run import formats  # noqa: PLC0415

    if listing:
        list_formats(as_json)
        return
    if path is None or out is None:
        raise WaterjarError("expected a file and a place: waterjar import FILE --out PLACE")
    formats.SHELF.check(kind, "--format")
    with working(f"importing {path}"):
        made = formats.import_from(kind, path, out, read_sets(sets))
    tell(made, as_json, "note")
