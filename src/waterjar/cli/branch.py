"""`waterjar branch`: going on from the end of a task of a run, with one thing changed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli.output import AsJson, print_json, print_rich

NAME = "branch"


def command(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A sealed run of a study that kept its states.")],
    at: Annotated[str, typer.Option(help="Where it goes off: the beginning of a task, as t2:0.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="What is changed from there on, as learner=derpp.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a twin of a run that differs from it in nothing before a task, and afterwards in what is --set only.

    The run must have been trained with checkpoint_frequency: task. The twin stands beside it in the study, has what was
    recorded before the branch from it, and is resumed by the same command.
    """
    from waterjar.cli.run import stoppable  # noqa: PLC0415 - not for --help
    from waterjar.errors import missing_extra  # noqa: PLC0415

    try:
        from waterjar.lab.study.branch import branch  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing_extra("torch", "lab", "runs of the laboratory") from error
    chosen = settings or []
    again = ["waterjar", "branch", str(path), "--at", at, *(word for one in chosen for word in ("--set", one))]
    twin = branch(path, at, chosen)
    with stoppable(shlex.join([*again, *(["--json"] if as_json else [])])):
        trained = twin.train()
    if as_json:
        print_json({"run": trained.name, "source": path.resolve().name, "at": at, "set": chosen})
        return
    print_rich(f"{trained}: a twin of {path.resolve().name} from {at} on")
    sys.stderr.write(f"side by side: waterjar compare {shlex.quote(str(trained.parent))}\n")
