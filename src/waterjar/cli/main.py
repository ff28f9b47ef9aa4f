"""`waterjar`: the commands, gathered. Each imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from waterjar._version import __version__
from waterjar.cli import (
    compare,
    diagnose,
    doctor,
    export,
    import_,
    ls,
    new,
    plot,
    report,
    run,
    sensitivity,
    show,
    verify,
)
from waterjar.cli.output import visible
from waterjar.errors import WaterjarError

app = typer.Typer(
    name="waterjar",
    help="How a network learns, not only how well it scores.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for module in (new, run, ls, show, diagnose, compare, sensitivity, plot, report, export, import_, verify, doctor):
    app.command(name=module.NAME)(module.command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"waterjar {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; what waterjar refuses is one clear line and exit code 2."""
    try:
        app()
    except WaterjarError as error:
        sys.stderr.write("waterjar: " + "\n".join(visible(line) for line in str(error).split("\n")) + "\n")
        sys.exit(2)
    except BrokenPipeError:  # `waterjar ls | head` closes the pipe early
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
