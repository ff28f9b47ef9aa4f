"""A format: the last accuracies of every run, as JSON; and a run of every entry of such a file."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict

import waterjar
from waterjar.errors import WaterjarError
from waterjar.run.formats import Made

TITLE = "the last accuracies as JSON: {method: {seed: {eval_set: accuracy}}}"


class Settings(BaseModel):
    """How it is written."""

    model_config = ConfigDict(extra="forbid")
    indent: int | None = None


def export_runs(study: waterjar.Study, out: Path, settings: Settings) -> list[Made]:
    """Write one file."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for run in study:
        last = run["performance"]["accuracy"].isel(step=-1).load()
        for repeat, seed in enumerate(run.seeds):
            values = zip(last["eval_set"].values, last.isel(repeat=repeat).values, strict=True)
            method = str(run.config.get("method"))
            found.setdefault(method, {})[str(seed)] = {str(name): float(value) for name, value in values}
    out.write_text(json.dumps(found, indent=settings.indent))
    return [Made(out, ["every step but the last"])]


def import_runs(path: Path, out: Path) -> list[Made]:
    """Make a sealed run per method and seed."""
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise WaterjarError(f"{path} is not JSON: {error}") from error
    waterjar.create_study(out)
    for method, seeds in found.items():
        for seed, values in seeds.items():
            place = out / f"{method}-{seed}"
            with waterjar.Recorder(place, {"method": method}, seeds=[int(seed)], eval_sets=list(values)) as recorder:
                recorder.log(epoch=1, performance={"accuracy": values})
    return [Made(out)]
