"""`waterjar sensitivity`: how a metric depends on one setting of the runs, or of the diagnosis."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli import completing
from waterjar.cli.measured import Set, Where, one_format, run_diagnose, runs_at, settings_by_family, warn
from waterjar.cli.output import AsJson, print_json, print_rich, row, table

NAME = "sensitivity"


def command(
    path: Annotated[Path, typer.Argument(help="A study.")],
    metric: Annotated[
        str, typer.Option(help="The metric by name or symbol, such as SFR_rel.", autocompletion=completing.metrics)
    ],
    over: Annotated[str, typer.Option(help="The setting, such as patch.rate or threshold.")],
    values: Annotated[str | None, typer.Option(help="For a setting of the diagnosis: values, 0.4,0.5,0.6.")] = None,
    where: Where = None,
    sets: Set = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the means as CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a metric over one setting, the others equal."""
    from waterjar.diagnose.over_seeds import interval_words  # noqa: PLC0415
    from waterjar.diagnose.registry import find_metric  # noqa: PLC0415 - not for --help
    from waterjar.diagnose.sensitivity import sensitivity  # noqa: PLC0415
    from waterjar.run.yaml_text import read_yaml  # noqa: PLC0415
    from waterjar.view.numbers import estimate, no_width, number, one_line, size_of  # noqa: PLC0415

    one_format(csv=as_csv, json=as_json)
    declared = find_metric(metric)
    tried = None if values is None else [read_yaml(text, f"--values {values}") for text in values.split(",")]
    settings = settings_by_family(sets, [declared.family])
    means, trends, measured = sensitivity(
        runs_at(path, where), metric, over, values=tried, settings=settings, measure=run_diagnose
    )
    warn(measured, over=means["setting"].iloc[0])
    if as_json:
        found = {"means": means, "trends": trends}
        tables = {k: t.astype(object).where(t.notna(), None).to_dict("records") for k, t in found.items()}
        used = measured.settings(declared.family)
        used.pop(means["setting"].iloc[0], None)  # it had several values
        print_json({**tables, "settings": {declared.family: used}})
        return
    if as_csv:
        from waterjar.view.report.tables import csv_text  # noqa: PLC0415

        sys.stdout.write(csv_text(means))
        return
    setting = means["setting"].iloc[0]
    made = table(
        f"{declared.label} over {setting} (mean over seeds, "
        f"{interval_words(means['interval'], measured.confidence(declared.family))})",
        ["group", setting, "mean", "n", ""],
    )
    for _, line in means.iterrows():
        scale = size_of(declared)
        n = int(line["n"]) if no_width(line["low"], line["high"], scale) else None  # it has a column
        mean = one_line(estimate(line["mean"], line["low"], line["high"], n, declared.units, scale=scale))
        row(made, line["group"], line["value"], mean, line["n"], line["reason"])
    lines = [
        f"{line['group']}: Spearman {one_line(estimate(line['r'], line['low'], line['high'], scale=1.0))}, "
        f"p {number(line['p_value'])}"
        for _, line in trends.iterrows()
    ]
    print_rich(made, *lines)
