"""`waterjar compare`: cells against a baseline, with intervals, corrected p, effect sizes, costs and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from waterjar.cli import completing
from waterjar.cli.latex import latex_table
from waterjar.cli.measured import (
    Fresh,
    Set,
    Where,
    names_in,
    one_format,
    run_diagnose,
    runs_at,
    settings_by_family,
    warn,
    warnings_of,
)
from waterjar.cli.output import AsJson, print_json, print_rich, row, table
from waterjar.cli.progress import working
from waterjar.run.notebook import counted
from waterjar.run.shown import visible

if TYPE_CHECKING:
    import pandas as pd

    from waterjar.diagnose.study import Diagnosis

NAME = "compare"
_COSTS = ("seconds", "flops", "peak_memory", "buffer_bytes")
_HEADER = ("metric", "cell", "n", "mean", "difference", "p", "p corrected", "effect g")
_FORMATS = ("png", "pdf", "svg")


def command(
    path: Annotated[Path, typer.Argument(help="A study.")],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Metrics by name or symbol, such as forgetting,ACC; docs/metrics.md lists them. A few if none.",
            autocompletion=completing.metrics,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="A scenario, or a cell's name; as declared, else scratch_t2, else the cell declared or begun first.",
            autocompletion=completing.cells,
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="Of pairs paired_t, wilcoxon; else welch, mann_whitney; permutation of both.",
            autocompletion=completing.one_of("paired_t", "wilcoxon", "permutation", "welch", "mann_whitney"),
        ),
    ] = None,
    paired: Annotated[bool | None, typer.Option("--paired/--unpaired", help="Whether seeds are pairs.")] = None,
    correction: Annotated[
        str | None,
        typer.Option(
            help="holm or benjamini_hochberg.", autocompletion=completing.one_of("holm", "benjamini_hochberg")
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Level of tests; intervals are at 1 - alpha; 0.05.")] = None,
    where: Where = None,
    sets: Set = None,
    fresh: Fresh = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="The table alone.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the figures; DIR/figures/<data set>/comparison by default. Beside --csv, --json and "
            "--latex figures are drawn only where this is given."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Of the figures: png, pdf or svg; as declared.",
            autocompletion=completing.one_of(*_FORMATS),
        ),
    ] = None,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all columns as CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare every cell with its baseline, paired by seed, corrected over all tests of the table; and draw them.

    The repeats of a run count as its seeds.
    """
    from waterjar.diagnose.analysis import analysis_of  # noqa: PLC0415 - not for --help
    from waterjar.diagnose.baseline import default_baseline  # noqa: PLC0415
    from waterjar.diagnose.compare import compare_cells, main_metrics, measured_of  # noqa: PLC0415
    from waterjar.diagnose.fitting import fitting  # noqa: PLC0415
    from waterjar.errors import unknown_name  # noqa: PLC0415

    one_format(csv=as_csv, json=as_json, latex=as_latex)
    if kind is not None and kind not in _FORMATS:
        raise unknown_name("--format", kind, _FORMATS)
    _check_folder(out, no_figures)
    names = names_in(metrics, "--metrics")
    study = fitting(runs_at(path, where))
    analysis = analysis_of(study, baseline=baseline)
    chosen, why = (analysis.baseline_name, "") if analysis.baseline_name else default_baseline(study)
    given = {"test": test, "paired": paired, "correction": correction, "alpha": alpha}
    tests = analysis.test_settings.with_given(given)
    settings = settings_by_family(sets, names or analysis.families)
    found = run_diagnose(study, only=names, settings=settings, baseline=chosen, tests=tests, fresh=fresh, partly=True)
    names = list(dict.fromkeys(map(found.name_of, names))) if names else main_metrics(found, tests)
    compared = compare_cells(found, names)
    names = measured_of(found, names)[0]
    compared = compared.merge(_costs(study, fresh), on="group", how="left")
    machine = as_json or as_csv or as_latex
    if not machine:
        _print(compared, found, f"baseline: {chosen}{why}")
    unwanted = no_figures or (out is None and (machine or found.analysis.figures is False))
    drawn = {} if unwanted else _figures(found, names, out, kind)
    if as_json:
        plain = compared.astype(object).where(compared.notna(), None)
        rows = plain.to_dict("records")
        print_json({"comparisons": rows, "baseline": chosen, "figures": {k: str(v) for k, v in drawn.items()},
                    "seals": found.seals, "passed_over": found.passed_over,
                    "annotations": {run: vars(known) for run, known in found.annotations.items()},
                    "settings": {family: found.settings(family) for family in found.results}})  # fmt: skip
    elif as_csv:
        warn(found)
        from waterjar.view.report.tables import csv_text  # noqa: PLC0415

        sys.stdout.write(csv_text(compared))
    elif as_latex:
        warn(found)
        sys.stdout.write(_latex(compared, found))
    _say_where(drawn, sys.stderr if machine else sys.stdout)


def _check_folder(out: Path | None, no_figures: bool) -> None:
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    if out is not None and no_figures:
        raise WaterjarError("--out and --no-figures: expected one or the other")
    if out is not None and (out.is_file() or out.suffix.lower().lstrip(".") in _FORMATS):
        raise WaterjarError(f"--out {out}: expected a folder; --format names the kind of file")


def _figures(found: Diagnosis, names: list[str], out: Path | None, kind: str | None) -> dict[str, Path | str]:
    """Draw, and say how far it is; without matplotlib, one line that says so."""
    from waterjar.errors import UnwrittenError, WaterjarError  # noqa: PLC0415
    from waterjar.view.album import compare_figures  # noqa: PLC0415

    with working("drawing") as progress:
        try:
            return compare_figures(found, out, names, kind=kind, progress=progress.figure)
        except UnwrittenError:
            raise
        except WaterjarError as error:  # without matplotlib none can be drawn; the table is there all the same
            return {"figures": str(error)}


def _say_where(drawn: dict[str, Path | str], stream: TextIO) -> None:
    """The folders that figures went to, and which were not drawn."""
    for folder in dict.fromkeys(file.parent for file in drawn.values() if isinstance(file, Path)):
        files = [file.name for file in drawn.values() if isinstance(file, Path) and file.parent == folder]
        stream.write(f"{counted(len(files), 'figure')} in {visible(str(folder))}: {visible(', '.join(files))}\n")
    for name, why in drawn.items():
        if isinstance(why, str):
            sys.stderr.write(f"waterjar: {visible(name)}: not drawn: {visible(why)}\n")


def _costs(study: Any, fresh: bool) -> pd.DataFrame:
    """Mean cost per cell, as far as it was recorded; an empty table where nothing was."""
    import pandas as pd  # noqa: PLC0415

    from waterjar.errors import WaterjarError  # noqa: PLC0415

    try:
        rows = run_diagnose(study, only=["cost"], fresh=fresh).table(list(_COSTS))
    except WaterjarError:  # not recorded: costs are beside the point of the comparison
        return pd.DataFrame(columns=["group"])
    means = rows.groupby(["cell", "metric"], sort=False)["value"].mean().unstack()
    return means.rename_axis(index="group", columns=None).reset_index()


def _cells(line: pd.Series, found: Diagnosis) -> list[str]:
    from waterjar.view.numbers import estimate, no_width, number, one_line, size_of  # noqa: PLC0415

    scale = max(size_of(found.declared(line["metric"])), abs(line["mean"]) if line["n"] else 0.0)

    def told(name: str, low: str, high: str, n: int | None = None) -> str:
        size = 1.0 if name == "effect_size" else scale
        alike = name == "mean" and not no_width(
            line[low], line[high], scale
        )  # n has a column; said where all are the same
        return one_line(estimate(line[name], line[low], line[high], None if alike else n, scale=size))

    mean = told("mean", "low", "high", int(line["n"]))
    if line["missing"]:
        mean = f"{mean} ({line['missing']})" if line["n"] else line["missing"]
    if line["is_baseline"]:
        return [line["metric"], line["group"], str(line["n"]), mean, "baseline", "", "", ""]
    return [
        line["metric"],
        line["group"],
        str(line["n"]),
        mean,
        told("difference", "difference_low", "difference_high", int(line["n_compared"])),
        number(line["p_value"]),
        number(line["p_corrected"]) + (" *" if line["significant"] else ""),
        f"{told('effect_size', 'effect_low', 'effect_high')} {line['effect_name']}",
    ]


def _rows(compared: pd.DataFrame, found: Diagnosis) -> tuple[list[str], list[list[str]]]:
    """Costs that there are, and the cells of every row, costs at its end."""
    from waterjar.diagnose.registry import find_metric  # noqa: PLC0415
    from waterjar.view.numbers import quantity  # noqa: PLC0415

    costs = [name for name in _COSTS if name in compared and compared[name].notna().any()]
    units = {name: find_metric(name).units for name in costs}
    rows = []
    for _, line in compared.iterrows():
        rows.append([*_cells(line, found), *(quantity(line[name], units[name]) for name in costs)])
    return costs, rows


def _print(compared: pd.DataFrame, found: Diagnosis, baseline: str) -> None:
    from waterjar.diagnose.over_seeds import interval_words  # noqa: PLC0415
    from waterjar.stats.effects import effect_words  # noqa: PLC0415
    from waterjar.view.numbers import counted, number  # noqa: PLC0415

    alpha = found.analysis.test_settings.alpha
    first, tests = compared.iloc[0], compared[compared["test"] != ""]
    costs, rows = _rows(compared, found)
    own = interval_words(compared["interval"], 1 - alpha)
    pairs = "pairs" if found.analysis.test_settings.paired else "runs of the smaller side"
    made = table(
        f"mean with its {own}; difference to the baseline with its t interval and n {pairs}",
        [*_HEADER, *costs],
        ("cell",),
    )
    for name, *shown in rows:
        row(made, found.declared(name).label, *shown)
    meant = dict.fromkeys(found.declared(name).caution for name in compared["metric"])
    lines: list[Any] = [made, *(line for line in meant if line), baseline]
    if len(tests):
        over = f"{first['correction']} over {counted(first['family_size'], 'test')}, intervals not corrected"
        how = f"{tests.iloc[0]['test']}, {over}; * p corrected <= {alpha:g}"
        least = tests["smallest_exact_p"].min()
        lines.append(f"{how}. Smallest p that an exact test could give here: {number(least)}")
        lines += [effect_words(tests["effect_name"])] * bool(effect_words(tests["effect_name"]))
    said = {
        f"{line['group']}, {line['metric']}: {line['reason']}"
        for _, line in compared.iterrows()
        if line["reason"] and not line["missing"]
    }
    lines += [*_censored(compared, found), *_untested(compared, found)]
    notes = {(line["group"], line["baseline_note"]) for _, line in compared.iterrows() if line["baseline_note"]}
    said |= {f"{group}: {note}" for group, note in notes}
    told = said | {f"{group}: {part}" for group, note in notes for part in note.split("; ")}
    print_rich(*lines, *sorted(said), *(line for line in warnings_of(found) if line not in told))


def _untested(compared: pd.DataFrame, found: Diagnosis) -> list[str]:
    """That losses are not tested beside accuracies unless they are named; nothing where none was recorded."""
    from waterjar.diagnose.compare import untested  # noqa: PLC0415

    name, more = untested(found, compared["metric"])
    others = f" (and {more} more)" if more else ""
    return [f"recorded, and not tested unless it is named: {name}{others}; --metrics '{name}' compares it"] * bool(name)


def _censored(compared: pd.DataFrame, found: Diagnosis) -> list[str]:
    """What is to be said of seeds that never reach the threshold, and of the metric that counts them where it does."""
    rows = compared[(compared["metric"] == "ad") & compared["missing"].str.contains("never_reached")]
    late = list(dict.fromkeys(rows.loc[~rows["is_baseline"].astype(bool), "group"]))
    if not late:
        return []
    result = found.results["rigidity"]
    known = {str(name) for name, n in zip(result["cell"].values, result["ad_restricted_n"].values, strict=True) if n}
    able = [name for name in late if name in known]
    whose = "" if len(able) == len(late) else f" of {', '.join(able)}"
    counts = f"; ad_restricted counts them{whose}, up to the shorter budget" if able else ""
    return [f"Seeds that never reach the threshold have no AD{counts}"]


def _latex(compared: pd.DataFrame, found: Diagnosis) -> str:
    costs, rows = _rows(compared, found)
    lines = [[found.declared(name).symbol or name, *shown] for name, *shown in rows]
    runs = [one for entry in found.study.entries for one in (entry, *found.study.probes_of(entry))]
    roots = [f"% {entry.root_hash or 'unsealed'}  {visible(entry.name)}\n" for entry in runs]
    roots += [f"% {visible(line)}\n" for line in found.annotation_lines]
    return (
        latex_table([*_HEADER, *costs], lines)
        + "% made by waterjar from the runs with these root hashes\n"
        + "".join(roots)
    )
