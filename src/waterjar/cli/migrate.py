"""`waterjar migrate`: sealed runs of an earlier schema, copied into the present one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli.output import AsJson, print_json
from waterjar.run.shown import visible

NAME = "migrate"


def command(
    path: Annotated[Path, typer.Argument(help="A sealed run of an earlier schema, or a study of them.")],
    out: Annotated[Path, typer.Option(help="Where the copy goes: a new path, or that of a copy to finish.")],
    as_json: AsJson = False,
) -> None:
    """Copy sealed runs into the present schema. The old ones stay, and the copies name their root hashes."""
    from waterjar.run.migrate import migrate_all  # noqa: PLC0415 - not for --help

    told = []
    for old, new, is_new in migrate_all(path, out):
        roots = {"from_root": old.root_hash, "path": str(new.path), "root": new.root_hash}
        told.append({"from": str(old.path), **roots, "written": is_new})
        if not as_json:
            done = "wrote" if is_new else "there already:"
            sys.stdout.write(f"{done} {visible(str(new.path))}\n  from {old.root_hash}\n  now  {new.root_hash}\n")
            sys.stdout.flush()
    if as_json:
        print_json(told)
