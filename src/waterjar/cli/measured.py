"""What the commands over diagnostics share: which runs, which settings, and a bar while it is measured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli import completing
from waterjar.cli.progress import working
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from waterjar.diagnose.pieces import Executor as PieceExecutor
    from waterjar.diagnose.study import Diagnosis
    from waterjar.lab.study.executors import Choice
    from waterjar.run.study import Study

Where = Annotated[
    str | None,
    typer.Option(
        help='Only runs with this, such as "learner=derpp and seed in (1, 2)".', autocompletion=completing.conditions
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting, such as threshold=0.8 or rigidity.threshold=0.8.",
        autocompletion=completing.settings,
    ),
]
"""Of commands that measure any family; export and plot take fewer, and have examples of their own."""
Workers = Annotated[
    int | None, typer.Option(min=1, help="Threads for long measurements; as many as there are cores by default.")
]
Executor = Annotated[
    str | None,
    typer.Option(
        help="Where it is computed: local, dask or slurm; with settings, \"{name: dask, scheduler: 'tcp://host:8786'}\".",
        autocompletion=completing.one_of("local", "dask", "slurm"),
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Measure again, whatever the cache has.")]


def executor_of(text: str | None, declared: Choice | None = None) -> Choice:
    """The executor that --executor names; without it, or by name alone, it is as the study declares it."""
    from waterjar.lab.study import executors  # noqa: PLC0415 - needs torch
    from waterjar.run.yaml_text import read_yaml  # noqa: PLC0415

    usual = declared or executors.Choice()
    return usual if text is None or text == usual.name else executors.parse(read_yaml(text, "--executor"), "--executor")


def runs_at(path: Path, where: str | None = None) -> Study:
    """The study at a path, or a single run as a study of one; without any run there is nothing to do."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415 - not for --help
    from waterjar.run.study import study_at  # noqa: PLC0415

    study = study_at(path, where or "")
    if not study.entries:
        raise WaterjarError(f"no runs in {path}: give the directory that holds them")
    return study


def read_sets(given: Sequence[str] | None) -> dict[str, Any]:
    """`threshold=0.8` -> {"threshold": 0.8}: values are read as YAML, and 1e-2 as the number that it looks like."""
    from waterjar.errors import WaterjarError, brief  # noqa: PLC0415
    from waterjar.run.yaml_text import read_yaml  # noqa: PLC0415

    found: dict[str, Any] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise WaterjarError(f"--set {brief(text)}: expected key=value")
        if key in found:
            raise WaterjarError(f"--set {brief(key)} is given twice: leave one out")
        found[key] = read_yaml(value, f"--set {brief(text)}")
    return found


def settings_by_family(given: Sequence[str] | None, among: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """`threshold=0.8` -> {"rigidity": {"threshold": 0.8}}; `among` are families, or metrics that stand for theirs."""
    from waterjar.diagnose.analysis import by_family  # noqa: PLC0415
    from waterjar.diagnose.registry import families, metrics  # noqa: PLC0415

    known = None
    if among is not None:
        owners = {**{name: name for name in families()}, **{name: m.family for name, m in metrics().items()}}
        known = list(dict.fromkeys(owners[name] for name in among if name in owners))
    return by_family(read_sets(given), "--set: setting", known)


def names_in(text: Sequence[str] | None, option: str) -> list[str] | None:
    """Metrics (by name or symbol) or families, given one by one or with commas; the same one twice counts once."""
    from waterjar.diagnose.registry import metric_name  # noqa: PLC0415
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    if text is None:
        return None
    words = [word.strip() for part in text for word in part.split(",") if word.strip()]
    if not words:
        raise WaterjarError(f"{option} names nothing: give names, such as AD,PD,SFR_rel; docs/metrics.md lists them")
    return list(dict.fromkeys(map(metric_name, words)))


def one_format(**asked: bool) -> None:
    """Refuse two formats at once."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415

    given = [f"--{name}" for name, wanted in asked.items() if wanted]
    if len(given) > 1:
        raise WaterjarError(f"{' and '.join(given)}: one format at a time")


def warn(diagnosis: Diagnosis, over: str = "") -> None:
    """Say on stderr what a reader must know, where the output itself is for a program; `over` is tried, not set."""
    for line in warnings_of(diagnosis, over):
        sys.stderr.write(f"waterjar: {visible(line)}\n")


def run_diagnose(
    study: Study,
    *,
    workers: int | None = None,
    executor: str | None = None,
    say_stopped: bool = True,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    **how: Any,
) -> Diagnosis:
    """`diagnose`, which says how long is left; Ctrl-C stops, and what is measured stays measured.

    Who knows better what goes on from there says so, with say_stopped=False.
    """
    from waterjar.diagnose.analysis import analysis_of  # noqa: PLC0415
    from waterjar.diagnose.study import diagnose  # noqa: PLC0415
    from waterjar.view.outputs import check_outputs  # noqa: PLC0415

    check_outputs(analysis_of(study))
    try:
        with working("measuring") as progress, _opened(executor, workers, study.path) as pool:
            return diagnose(study, settings=settings, watch=progress.watch, executor=pool, **how)
    except KeyboardInterrupt:
        if not say_stopped:
            raise
        sys.stderr.write("stopped; what was measured is kept: the same command goes on from there\n")
        raise typer.Exit(130) from None


@contextlib.contextmanager
def _opened(executor: str | None, workers: int | None, study: Path) -> Iterator[PieceExecutor]:
    """What measurements run on: threads of this process, as kernels let go of its lock, or another executor."""
    import os  # noqa: PLC0415
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if executor in (None, "local"):
        with ThreadPoolExecutor(workers or cores) as threads:
            yield threads
        return
    from waterjar.errors import missing_extra  # noqa: PLC0415

    try:
        from waterjar.lab.study.blocking import Blocking  # noqa: PLC0415
        from waterjar.lab.study.executors import Needs, open_pool  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing_extra("torch", "lab", "executors other than local") from error
    folder = (study / ".waterjar" / "executor").absolute()
    pool = open_pool(executor_of(executor), Needs(workers or cores, folder, workers or cores))
    try:
        yield Blocking(pool)
    finally:
        pool.stop()


def warnings_of(diagnosis: Diagnosis, over: str = "") -> list[str]:
    """What a reader must know before the numbers: damage, broken seals, open runs, refusals, settings."""
    lines = [*diagnosis.study.notes, *diagnosis.study.other_models]
    for state, words in (("tampered", "changed since it was sealed, see waterjar verify"), ("open", "not sealed yet")):
        names = [name for name, found in diagnosis.seals.items() if found == state]
        if names:
            lines.append(f"{len(names)} of {len(diagnosis.seals)} runs: {words}: {_few(names)}")
    lines += undeclared_runs(diagnosis.study)
    lines += diagnosis.annotation_lines
    lines += [f"{family}: not measured: {why}" for family, why in diagnosis.passed_over.items()]
    lines += [f"{name}: {note}" for name, note in (*diagnosis.notes(), *diagnosis.out_of_range())]
    return [*lines, *diagnosis.changed_settings(but=over)]


def undeclared_runs(study: Study) -> list[str]:
    """A line where runs are of an earlier declaration; else none."""
    others = study.undeclared
    if not others:
        return []
    return [f"{len(others)} of {len(study)} runs: not of the study's present declaration: {_few(others)}"]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


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
