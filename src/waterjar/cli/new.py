"""`waterjar new`: a commented declaration to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli import completing
from waterjar.cli.output import AsJson, print_json
from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file

NAME = "new"


def command(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.yaml"),
    kind: Annotated[
        str,
        typer.Option(help="Of study: einstellung, binary, or another package's.", autocompletion=completing.kinds),
    ] = "einstellung",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented study declaration."""
    text = _template(kind)
    if file.exists() and not force:
        raise WaterjarError(f"{file} is there already: give another name, or --force to replace it")
    write_file(file, text.replace("{file}", str(file)).replace("{out}", str(file.with_suffix(""))))
    if as_json:
        print_json({"file": str(file), "kind": kind})
    else:
        typer.echo(f"wrote {file}; next: waterjar run {file} --out {file.with_suffix('')} --dry-run")


def _template(kind: str) -> str:
    """Ours, read without importing the laboratory: a declaration can be written where torch is not; or its module's."""
    from importlib.resources import files  # noqa: PLC0415 - not for --help

    from waterjar.run.shelf import SHELVES  # noqa: PLC0415

    shelf = SHELVES["kinds"]
    shelf.check(kind, "--kind")
    if kind in shelf.ours:
        return (files("waterjar.lab") / "templates" / f"{kind}.yaml").read_text(encoding="utf-8")
    template = getattr(shelf.module(kind), "TEMPLATE", None)
    if not isinstance(template, str):
        raise WaterjarError(f"the kind '{kind}' of {shelf.outside()[kind].origin} has no TEMPLATE to start from")
    return template
