"""`waterjar ensemble`: the seeds of each cell of a study as a deep ensemble."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli.export import tell
from waterjar.cli.output import AsJson
from waterjar.cli.progress import working

NAME = "ensemble"


def command(
    path: Annotated[Path, typer.Argument(help="A study whose runs have recorded /outputs.")],
    out: Annotated[Path, typer.Argument(help="The study to be made: a run a cell, its seeds the streams.")],
    cell: Annotated[list[str] | None, typer.Option(help="Name of a cell; may be repeated. All by default.")] = None,
    eval_set: Annotated[list[str] | None, typer.Option(help="Name of an evaluation set; may be repeated.")] = None,
    rule: Annotated[str, typer.Option(help="mean_probability, mean_logit or vote.")] = "mean_probability",
    as_json: AsJson = False,
) -> None:
    """Make a deep ensemble of the seeds of each cell, which `waterjar diagnose` then measures as a collective."""
    from waterjar.diagnose.collective.seeds import ensemble_of_seeds  # noqa: PLC0415 - not for --help
    from waterjar.errors import WaterjarError, unknown_name  # noqa: PLC0415
    from waterjar.run.combining import RULES  # noqa: PLC0415
    from waterjar.run.study import open_study  # noqa: PLC0415

    known = next((one for one in RULES if one == rule), None)
    if known is None:
        raise unknown_name("--rule", rule, RULES)
    if out.resolve() == path.resolve():
        raise WaterjarError(f"{out} is the study that the seeds are of: expected another directory for the ensembles")
    with working("making ensembles"):
        made = ensemble_of_seeds(open_study(path), out, cells=cell, eval_sets=eval_set, rule=known)
    tell(made, as_json, "note")
