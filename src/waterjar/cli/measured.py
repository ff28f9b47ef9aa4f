"""What the commands over diagnostics share: which runs, which settings, how a number with its interval is written."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.output import visible

if TYPE_CHECKING:
    import pandas as pd

    from waterjar.diagnose.study import Diagnosis
    from waterjar.run.study import Study

Where = Annotated[str | None, typer.Option(help='Only runs with this, such as "learner=derpp and seed in (1, 2)".')]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, such as threshold=0.8 or rigidity.threshold=0.8.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Threads for long measurements; as many as there are cores by default.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Measure again, whatever the cache has.")]


def study_at(path: Path, where: str | None = None) -> Study:
    """The study at a path, or a single run as a study of one; `where` picks runs of it."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415 - not for --help
    from waterjar.run.query import check_keys  # noqa: PLC0415
    from waterjar.run.store import ROOT  # noqa: PLC0415
    from waterjar.run.study import open_study  # noqa: PLC0415

    if (path / ROOT).exists():
        one = path.resolve()
        return open_study(one.parent).select(lambda entry: entry.name == one.name)
    study = open_study(path)
    if where is not None:
        check_keys(where, study.entries)
        study = study.select(where)
    if not study.entries:
        raise WaterjarError(
            f"no runs in {path}" + (f" with {where}" if where else ": give the directory that holds them")
        )
    return study


def settings_by_family(given: Sequence[str] | None, only: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """`threshold=0.8` -> {"rigidity": {"threshold": 0.8}}; the family is found where one alone has the setting."""
    import yaml  # noqa: PLC0415

    from waterjar.diagnose.registry import families, metrics  # noqa: PLC0415
    from waterjar.errors import WaterjarError, unknown_name  # noqa: PLC0415

    known = families()
    if only is not None:
        wanted = {name if name in known else metrics()[name].family for name in only if name in {*known, *metrics()}}
        known = {name: family for name, family in known.items() if name in wanted}
    found: dict[str, dict[str, Any]] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise WaterjarError(f"--set {text}: key=value would be right")
        family, dot, name = key.rpartition(".")
        owners = [family] if dot else [owner for owner, f in known.items() if key in f.defaults]
        if not owners:
            raise unknown_name("--set: setting", key, sorted({k for f in known.values() for k in f.defaults}))
        if len(owners) > 1:
            raise WaterjarError(f"--set {text}: {' and '.join(owners)} have it; write {owners[0]}.{key}=...")
        if owners[0] not in known:
            raise unknown_name("--set: family", owners[0], known)
        known[owners[0]].settings({name: None})
        try:
            found.setdefault(owners[0], {})[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise WaterjarError(f"--set {text}: {value!r} cannot be read: {error}") from error
    return found


def names_in(text: Sequence[str] | None, option: str) -> list[str] | None:
    """Names given one by one or with commas; the same name twice counts once."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    if text is None:
        return None
    names = list(dict.fromkeys(name.strip() for part in text for name in part.split(",") if name.strip()))
    if not names:
        raise WaterjarError(f"{option} names nothing: give names, such as ad,pd,sfr_rel; docs/metrics.md lists them")
    return names


def one_format(**asked: bool) -> None:
    """Refuse two formats at once."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    given = [f"--{name}" for name, wanted in asked.items() if wanted]
    if len(given) > 1:
        raise WaterjarError(f"{' and '.join(given)}: one format at a time")


def warn(diagnosis: Diagnosis) -> None:
    """Say on stderr what a reader must know, where the output itself is for a program."""
    for line in warnings_of(diagnosis):
        sys.stderr.write(f"waterjar: {visible(line)}\n")


def shown_names(table: pd.DataFrame) -> pd.DataFrame:
    """Names that come from files, with control characters made visible: a CSV may end in a terminal."""
    columns = [column for column in ("name", "group", "scenario", "baseline") if column in table]
    return table.assign(**{column: [visible(str(text)) for text in table[column]] for column in columns})


def run_diagnose(
    study: Study,
    only: Sequence[str] | None,
    settings: Mapping[str, Mapping[str, Any]],
    fresh: bool,
    workers: int | None = None,
    *,
    say_stopped: bool = True,
) -> Diagnosis:
    """Measure with a progress bar that says how long is left; Ctrl-C stops, and what is measured stays measured.

    Who knows better what goes on from there says so, with say_stopped=False.
    """
    import os  # noqa: PLC0415
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from waterjar.diagnose.study import diagnose  # noqa: PLC0415

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        tasks: dict[str, Any] = {}

        def watch(family: str, done: float, total: int) -> None:
            if family not in tasks:
                tasks[family] = progress.add_task(family, total=total)
            progress.update(tasks[family], completed=done)

        try:
            with ThreadPoolExecutor(workers or cores) as pool:  # kernels let go of the interpreter's lock
                return diagnose(study, only=only, settings=settings, fresh=fresh, watch=watch, executor=pool)
        except KeyboardInterrupt:
            progress.stop()
            if not say_stopped:
                raise
            sys.stderr.write("stopped; what was measured is kept: the same command goes on from there\n")
            raise typer.Exit(130) from None


def number(value: float) -> str:
    """A number for a table: three decimals near 1, three digits elsewhere.

    >>> [number(x) for x in (0.12345, -13.8, 1.23e9, 0.00004, float("nan"))]
    ['0.123', '-13.8', '1.23e+09', '4e-05', '–']
    """
    if math.isnan(value):
        return "–"
    if value != 0 and not 5e-4 <= abs(value) < 1e5:
        return f"{value:.3g}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def quantity(value: float, units: str = "1") -> str:
    """A number in its units: bytes as MB, seconds as minutes where that reads better.

    >>> quantity(6.27e6, "byte"), quantity(90.0, "s"), quantity(0.5)
    ('6.27 MB', '90.0 s', '0.500')
    """
    if math.isnan(value):
        return "–"
    if units == "byte":
        for size, word in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
            if abs(value) >= size:
                return f"{value / size:.3g} {word}"
        return f"{value:.0f} B"
    return number(value) if units in ("1", "") else f"{number(value)} {units}"


def with_interval(estimate: float, low: float, high: float, units: str = "1") -> str:
    """An estimate and its interval; as ± where it is symmetric, alone where it has no width.

    >>> with_interval(0.5, 0.4, 0.6), with_interval(0.5, 0.4, 0.62), with_interval(0.0, 0.0, 0.0)
    ('0.500 ± 0.100', '0.500 [0.400, 0.620]', '0.000')
    """
    if math.isnan(low) or math.isnan(high) or low == high:
        return quantity(estimate, units)
    if math.isclose(estimate - low, high - estimate, rel_tol=1e-6):
        unit = "" if units in ("1", "", "byte") else f" {units}"
        each = units if units == "byte" else "1"
        return f"{quantity(estimate, each)} ± {quantity(high - estimate, each)}{unit}"
    return f"{quantity(estimate, units)} [{quantity(low, units)}, {quantity(high, units)}]"


def warnings_of(diagnosis: Diagnosis) -> list[str]:
    """What a reader must know before the numbers: broken seals, runs still open, families that refused."""
    lines = []
    for state, words in (("tampered", "changed since it was sealed, see waterjar verify"), ("open", "not sealed yet")):
        names = [name for name, found in diagnosis.seals.items() if found == state]
        if names:
            few = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
            lines.append(f"{len(names)} of {len(diagnosis.seals)} runs: {words}: {few}")
    others = diagnosis.study.undeclared
    if others:
        few = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
        lines.append(f"{len(others)} of {len(diagnosis.study)} runs: not of the study's present declaration: {few}")
    lines += [f"{family}: not measured: {why}" for family, why in diagnosis.passed_over.items()]
    return lines


def origin_of(diagnosis: Diagnosis) -> list[str]:
    """Where results came from, one line per family, if any was not cached."""
    lines = []
    for family, units in diagnosis.origin.items():
        counts: dict[str, int] = {}
        for why in units.values():
            counts[why] = counts.get(why, 0) + 1
        if set(counts) - {"cached", "new"}:
            lines.append(f"{family}: " + "; ".join(f"{n} {why}" for why, n in counts.items()))
    return lines
