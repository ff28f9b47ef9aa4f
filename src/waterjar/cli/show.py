"""`waterjar show`: one run, on one screen."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.output import AsJson, coloured, print_json, print_rich, row, table
from waterjar.run.shown import shown_settings

if TYPE_CHECKING:
    from waterjar.run.reader import Run

NAME = "show"
_EVENTS = 20
"""The last events are shown, so many of them; `--json` has all."""
_BETTER = {"higher": "↑", "lower": "↓"}
"""Which way is better, beside the units."""


def command(path: Annotated[Path, typer.Argument(help="A run.")], as_json: AsJson = False) -> None:
    """Show what a run is, where it comes from, what it holds and where it ended."""
    from waterjar.diagnose.feeds import feeds, lines_of  # noqa: PLC0415
    from waterjar.run.cells import flat  # noqa: PLC0415
    from waterjar.run.reader import open_run  # noqa: PLC0415 - not for --help

    run = open_run(path)
    facts = _facts(run)
    if as_json:
        print_json(facts)
        return
    head = table(str(path), ["", ""])
    visits = ["visits"] * (facts["visits"] not in ([], facts["tasks"]))  # else the tasks say it
    for key in ("run_id", "cell_id", "status", "seeds", "tasks", *visits, "last_step", "root_hash"):
        value = facts[key]
        shown = ", ".join(map(str, value)) if isinstance(value, list) else ("–" if value is None else value)
        row(head, key, coloured(str(value)) if key == "status" else shown)
    for key in ("source", "migrated_from"):
        for part, value in (facts[key] or {}).items():
            row(head, f"{key}.{part}", value)
    for key, value in flat(facts["config"]).items():
        row(head, f"config.{key}", value)
    for key, value in (facts["annotations"] or {}).items():
        row(head, f"annotated.{key}", value)
    for key, value in flat({"session": facts["provenance"]["sessions"][-1]}).items():
        row(head, key, value)
    arrays = table("arrays", ["array", "dimensions", "dtype", "units"])
    for array in facts["arrays"]:
        sizes = ", ".join(f"{dim}={size}" for dim, size in array["dims"].items())
        units = f"{array['units'] or '–'} {_BETTER.get(array['direction'], '')}".strip()
        row(arrays, array["name"], sizes, array["dtype"], units)
    fed = ["what it can feed, what is lacking, and what would change it", ""]
    for one in feeds(run):
        fed += [f"  {one.family}: {'yes' if one.feeds else 'no'}"]
        fed += [f"    {line}" for line in lines_of(one, path, named=False)]
    fed += (
        ["", "what is missing in what it recorded", *(f"  {line}" for line in facts["gaps"])] if facts["gaps"] else []
    )
    happened = table("events", ["step", "seed", "level", "kind", "message"])
    for event in facts["events"][-_EVENTS:]:
        row(happened, *("–" if value is None else value for key, value in event.items() if key != "time"))
    at_end = facts["performance"]
    last = table(f"performance at step {at_end['step']}", ["eval_set", *at_end["variables"]])
    for name, values in at_end["last"].items():
        row(last, name, *("–" if v is None else f"{v:.4f}" for v in values))
    print_rich(
        head, arrays, *fed, "", *([happened] if facts["events"] else []), *([last] if at_end["last"] else [])
    )  # fmt: skip


def _annotations(run: Run) -> dict[str, str] | None:
    """What was added to it afterwards, and the hash of the file that says it; None where nothing was."""
    from waterjar.run.annotations import told  # noqa: PLC0415 - not for --help

    if run.annotations is None:
        return None
    return {**json.loads(told(run.annotations)), "sha256": run.annotations.digest}


def _facts(run: Run) -> dict[str, Any]:
    from waterjar.diagnose.feeds import as_plain, feeds  # noqa: PLC0415
    from waterjar.diagnose.gaps import gaps  # noqa: PLC0415
    from waterjar.run.events import events_of  # noqa: PLC0415 - not for --help

    arrays = [
        {
            "name": name,
            "dims": dict(zip(node["dimension_names"], node["shape"], strict=True)),
            "dtype": node["data_type"],
            "units": node["attributes"].get("units"),
            "direction": node["attributes"].get("direction"),
        }
        for name, node in run.nodes.items()
        if node["node_type"] == "array"
    ]
    return {
        **{key: run.attributes[key] for key in ("run_id", "cell_id", "status", "seeds", "tasks")},
        "visits": _visits(run),
        "config": shown_settings(run.config),
        "last_step": run.last_step,
        "root_hash": run.root_hash,
        "schema": run.attributes["waterjar_schema"],
        **{key: run.attributes.get(key) for key in ("source", "migrated_from")},
        "provenance": run.attributes["provenance"],
        "annotations": _annotations(run),
        "feeds": as_plain(feeds(run)),
        "gaps": gaps(run),
        "arrays": arrays,
        "events": [event._asdict() for event in events_of(run)],
        "performance": _last_performance(run),
    }


def _visits(run: Run) -> list[str]:
    """The task of every stretch of training, in their order."""
    from waterjar.run.schema import JOINT  # noqa: PLC0415
    from waterjar.run.visits import visits_by_step  # noqa: PLC0415

    names = {-1: JOINT, **dict(enumerate(map(str, run.attributes["tasks"])))}
    return [names.get(task, f"task {task}") for task in dict(visits_by_step(run).values()).values()]


def _last_performance(run: Run) -> dict[str, Any]:
    """The last row per evaluation set, mean over repeats; None where a repeat has no value."""
    nothing: dict[str, Any] = {"step": None, "variables": [], "last": {}}
    if "performance" not in run.groups:
        return nothing
    data = run.load("performance")
    per_set = ("step", "eval_set", "repeat")
    names = [str(n) for n, v in data.data_vars.items() if v.dims == per_set and v.dtype.kind == "f"]
    if not names or not data.sizes["step"]:
        return nothing
    last = data.isel(step=-1)
    rows = {}
    for eval_set in data["eval_set"].values:
        means = [float(last[name].sel(eval_set=eval_set).mean("repeat", skipna=False)) for name in names]
        rows[str(eval_set)] = [None if math.isnan(mean) else mean for mean in means]
    return {"step": int(last["step"]), "variables": names, "last": rows}
