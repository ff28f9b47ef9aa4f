"""`waterjar compare`: cells against a baseline, with intervals, corrected p, effect sizes and what they cost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.latex import latex_table
from waterjar.cli.measured import (
    Fresh,
    Set,
    Where,
    names_in,
    number,
    one_format,
    quantity,
    run_diagnose,
    settings_by_family,
    shown_names,
    study_at,
    warn,
    warnings_of,
    with_interval,
)
from waterjar.cli.output import AsJson, print_json, print_rich, row, table, visible

if TYPE_CHECKING:
    import pandas as pd

    from waterjar.diagnose.study import Diagnosis

NAME = "compare"
_COSTS = ("seconds", "flops", "peak_memory", "buffer_bytes")
_HEADER = ("metric", "cell", "n", "mean", "difference", "p", "p corrected", "effect g")


def command(
    path: Annotated[Path, typer.Argument(help="A study.")],
    metrics: Annotated[list[str], typer.Option(help="Metrics, such as ad,pd,sfr_rel; docs/metrics.md lists them.")],
    baseline: Annotated[str, typer.Option(help="A scenario, or the name of a cell.")] = "scratch_t2",
    test: Annotated[
        str | None, typer.Option(help="paired_t, wilcoxon, permutation; with --unpaired welch, mann_whitney.")
    ] = None,
    unpaired: Annotated[bool, typer.Option("--unpaired", help="Do not pair by seed.")] = False,
    correction: Annotated[str, typer.Option(help="holm or benjamini_hochberg.")] = "holm",
    alpha: Annotated[float, typer.Option(help="Level of tests; intervals are at 1 - alpha.")] = 0.05,
    where: Where = None,
    sets: Set = None,
    fresh: Fresh = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all columns as CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare every cell with its baseline, paired by seed, corrected over all tests of the table."""
    from waterjar.diagnose.compare import compare_cells  # noqa: PLC0415 - not for --help
    from waterjar.diagnose.registry import families, find_metric  # noqa: PLC0415

    one_format(csv=as_csv, json=as_json, latex=as_latex)
    names = names_in(metrics, "--metrics") or []
    study = study_at(path, where)
    wanted = list(dict.fromkeys(find_metric(name).family for name in names))
    settings = settings_by_family(sets, wanted)
    for family in wanted:
        if "baseline" in families()[family].defaults:
            settings.setdefault(family, {}).setdefault("baseline", baseline)
    found = run_diagnose(study, wanted, settings, fresh)
    compared = compare_cells(
        found, names, baseline=baseline, paired=not unpaired, test=test, correction=correction, alpha=alpha
    )
    compared = compared.merge(_costs(study, fresh), on="group", how="left")
    if as_json:
        plain = compared.astype(object).where(compared.notna(), None)
        print_json({"comparisons": plain.to_dict("records"), "seals": found.seals, "passed_over": found.passed_over})
    elif as_csv:
        warn(found)
        sys.stdout.write(shown_names(compared).to_csv(index=False))
    elif as_latex:
        warn(found)
        sys.stdout.write(_latex(compared, found))
    else:
        _print(compared, found, alpha)


def _costs(study: Any, fresh: bool) -> pd.DataFrame:
    """Mean cost per cell, as far as it was recorded; an empty table where nothing was."""
    import pandas as pd  # noqa: PLC0415

    from waterjar.errors import WaterjarError  # noqa: PLC0415

    try:
        rows = run_diagnose(study, ["cost"], {}, fresh).table(list(_COSTS))
    except WaterjarError:  # not recorded: costs are beside the point of the comparison
        return pd.DataFrame(columns=["group"])
    means = rows.groupby(["name", "metric"], sort=False)["value"].mean().unstack()
    return means.rename_axis(index="group", columns=None).reset_index()


def _cells(line: pd.Series) -> list[str]:
    mean = with_interval(line["mean"], line["low"], line["high"])
    if line["missing"]:
        mean = f"{mean} ({line['missing']})" if line["n"] else line["missing"]
    if line["is_baseline"]:
        return [line["metric"], line["group"], str(line["n"]), mean, "baseline", "", "", ""]
    return [
        line["metric"],
        line["group"],
        str(line["n"]),
        mean,
        with_interval(line["difference"], line["difference_low"], line["difference_high"]),
        number(line["p_value"]),
        number(line["p_corrected"]) + (" *" if line["significant"] else ""),
        f"{with_interval(line['effect_size'], line['effect_low'], line['effect_high'])} {line['effect_name']}",
    ]


def _print(compared: pd.DataFrame, found: Diagnosis, alpha: float) -> None:
    from waterjar.diagnose.registry import find_metric  # noqa: PLC0415

    costs = [name for name in _COSTS if name in compared and compared[name].notna().any()]
    first = compared.iloc[0]
    tests = compared[compared["test"] != ""]
    title = f"difference to the baseline, {100 * (1 - alpha):g} % intervals"
    made = table(title, [*_HEADER, *costs])
    for _, line in compared.iterrows():
        shown = _cells(line)
        shown[0] = found.declared(shown[0]).label
        row(made, *shown, *(quantity(line[name], find_metric(name).units) for name in costs))
    lines: list[Any] = [made]
    if len(tests):
        over = f"{first['correction']} over {first['family_size']} tests"
        how = f"{tests.iloc[0]['test']}, {over}; * p corrected <= {alpha:g}"
        least = tests["smallest_exact_p"].min()
        lines.append(f"{how}. Smallest p that an exact test could give here: {number(least)}")
    said = {
        f"{line['group']}, {line['metric']}: {line['reason']}"
        for _, line in compared.iterrows()
        if line["reason"] and not line["missing"]
    }
    if "ad" in set(compared["metric"]) and compared["missing"].str.contains("never_reached").any():
        lines.append(
            "Seeds that never reach the threshold have no AD; ad_restricted counts them, up to the shorter budget"
        )
    said |= {f"{line['group']}: {line['baseline_note']}" for _, line in compared.iterrows() if line["baseline_note"]}
    print_rich(*lines, *sorted(said), *warnings_of(found))


def _latex(compared: pd.DataFrame, found: Diagnosis) -> str:
    from waterjar.diagnose.registry import find_metric  # noqa: PLC0415

    costs = [name for name in _COSTS if name in compared and compared[name].notna().any()]
    lines = []
    for _, line in compared.iterrows():
        shown = _cells(line)
        declared = find_metric(shown[0])
        shown[0] = declared.symbol or declared.name
        lines.append([*shown, *(quantity(line[name], find_metric(name).units) for name in costs)])
    roots = [f"% {entry.root_hash or 'unsealed'}  {visible(entry.name)}\n" for entry in found.study.entries]
    return (
        latex_table([*_HEADER, *costs], lines)
        + "% made by waterjar from the runs with these root hashes\n"
        + "".join(roots)
    )
