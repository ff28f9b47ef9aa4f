"""`waterjar`: the commands, gathered. Each imports what it needs when it runs, so that --help is instant."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Annotated

import typer

from waterjar._version import __version__
from waterjar.cli import (
    annotate,
    branch,
    compare,
    diagnose,
    doctor,
    ensemble,
    export,
    import_,
    ls,
    migrate,
    new,
    plot,
    report,
    reproduce,
    run,
    sensitivity,
    show,
    verify,
)
from waterjar.errors import BusyError, WaterjarError, brief
from waterjar.run.shown import visible, visible_lines

app = typer.Typer(
    name="waterjar",
    help="How a network learns, not only how well it scores.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in (
    new,
    run,
    branch,
    ls,
    show,
    annotate,
    diagnose,
    compare,
    sensitivity,
    ensemble,
    plot,
    report,
    export,
    import_,
    migrate,
    verify,
    reproduce,
    doctor,
):
    app.command(name=module.NAME)(module.command)


_NO_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "can't allocate memory",
    "can't start new thread",
    "error return without exception set",
)
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""What is the disk's fault, or the name's, and not ours."""
_TRY_LATER = 75
"""EX_TEMPFAIL of sysexits.h."""


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
    """Run the command line; what waterjar refuses is one clear line and exit code 2, or 75 if it may do later."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # at the end of the process a full disk would be no error any more
    except WaterjarError as error:
        sys.stderr.write(f"waterjar: {visible_lines(str(error))}\n")
        sys.exit(_TRY_LATER if isinstance(error, BusyError) else 2)
    except BrokenPipeError:  # `waterjar ls | head` closes the pipe early
        sys.stderr.close()
        sys.exit(0)
    except (MemoryError, ImportError, OSError, RuntimeError, SystemError) as error:
        if isinstance(error, OSError) and error.errno in _DISK:
            if error.filename is None:
                with contextlib.suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left of it is lost
            place = visible(brief(error.filename or "the output", 200))
            sys.stderr.write(f"waterjar: could not read or write {place}: {error.strerror}\n")
            sys.exit(2)
        if not _lacks_memory(error):
            raise
        what = visible(str(error))[:200] or "MemoryError"
        sys.stderr.write(
            f"waterjar: memory ran out ({what}): free some, raise the limit (ulimit -v) or use fewer workers\n"
        )
        sys.exit(2)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether that is what an error goes back to: libraries that cannot be loaded for want of it say so in words."""
    while error is not None:
        if isinstance(error, MemoryError) or any(words in str(error).lower() for words in _NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False
