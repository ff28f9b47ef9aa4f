"""`waterjar run`: the runs of a declared study, with a live table of how far they are, and the analysis it declares."""

from __future__ import annotations

import contextlib
import functools
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.diagnose import print_diagnosis
from waterjar.cli.measured import Executor, executor_of, run_diagnose
from waterjar.cli.output import AsJson, coloured, print_json, print_rich, row, table
from waterjar.cli.progress import Lines, duration, working
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from waterjar.lab.study import Job
    from waterjar.lab.study.estimate import Estimate
    from waterjar.lab.study.progress import JobProgress
    from waterjar.run.study import Study

    Watch = Callable[[list[Job], bool], None]

NAME = "run"
_MOST_SETS = 30


def command(
    declaration: Annotated[Path, typer.Argument(help="The study's YAML file; `waterjar new` writes one.")],
    out: Annotated[
        Path | None, typer.Option(help="Directory for the study; the file's name without .yaml, unless told.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at a time, instead of the file's number.")] = None,
    executor: Executor = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, how long, how much disk.")] = False,
    train_only: Annotated[bool, typer.Option("--train-only", help="Leave out the declared analysis.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a study, or go on with one: complete runs are passed over, begun ones resumed; then analyse it.

    It ends with measures, figures and a report, as its section `analysis` says; with exit code 1 where a family that is
    declared there could not be measured.
    """
    from waterjar.errors import missing_extra  # noqa: PLC0415 - not for --help

    try:
        from waterjar.lab import study  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise missing_extra("torch", "lab", "runs of the laboratory") from error
    # All that loads a BLAS, before the handler below: where memory is short OpenBLAS tries again for ever while it is
    # loaded, and a handler of Python's would not be called.
    import scipy.linalg  # noqa: F401, PLC0415

    from waterjar.view.outputs import check_outputs  # noqa: PLC0415

    declared = study.read(declaration)
    folder = out or declaration.with_suffix("")
    resources = declared.resources.steered(workers, executor_of(executor, declared.resources.executor))
    declared = declared.model_copy(update={"resources": resources})
    check_outputs(declared.analysis)
    if dry_run:
        for line in study.notes(declared):
            sys.stderr.write(f"waterjar: {visible(line)}\n")
        _dry_run(declared, folder, as_json)
        return
    again = ["waterjar", "run", str(declaration), *([] if out is None else ["--out", str(out)])]
    again += [] if workers is None else ["--workers", str(workers)]
    again += [] if executor is None else ["--executor", executor]
    again += [flag for flag, given in (("--train-only", train_only), ("--json", as_json)) if given]
    with stoppable(shlex.join(again)):
        with watched(declared, quiet=as_json) as watch:
            done = study.run(declared, folder, watch=watch)
        unmeasured = _tell(declared, done, folder, train_only=train_only, as_json=as_json)
    if unmeasured:
        sys.stderr.write(
            f"waterjar: declared and not measured: {', '.join(unmeasured)}; all else is done. Leave it out of "
            "analysis.families, or record what it needs\n"
        )
        raise typer.Exit(1)


@contextlib.contextmanager
def stoppable(again: str) -> Iterator[None]:
    """Around long work: Ctrl-C, and SIGTERM as `timeout` and Slurm send it, stop it and say which command goes on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"\nstopped; go on with: {again}\n")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)  # None: it was not Python's


@contextlib.contextmanager
def watched(declared: Any, *, quiet: bool) -> Iterator[Watch | None]:
    """How far the runs in training are: a live table on a terminal, unless it is to be `quiet`; else lines."""
    from waterjar.lab.study import kinds  # noqa: PLC0415

    live = not quiet and sys.stderr.isatty()
    board = _Board(declared.resources.at_a_time, kinds.of(declared.kind).HEADLINE, live=live)
    try:
        yield board.show
    finally:
        board.close()


def _tell(declared: Any, done: Study, folder: Path, *, train_only: bool, as_json: bool) -> list[str]:
    """What came out, and the analysis of it that the study declares; returns the families it could not measure."""
    from waterjar.lab import study  # noqa: PLC0415
    from waterjar.view.outputs import earlier_files, write_outputs  # noqa: PLC0415

    if not as_json:
        _print_final(done)
    found = None if train_only else run_diagnose(done, say_stopped=False)
    with working("drawing and writing") as progress:
        made = {} if found is None else write_outputs(found, folder, progress=progress.figure)
    written = {name: str(file) for name, file in made.items() if isinstance(file, Path)}
    refused = {name: why for name, why in made.items() if isinstance(why, str)}
    unmeasured = [name for name in (found.passed_over if found is not None else ()) if _asked(declared, name)]
    if found is not None:
        refused |= {name: f"not measured: {found.passed_over[name]}" for name in unmeasured}
    if as_json:
        runs = [_final(run) for run in done]
        told = [*study.notes(declared), *study.notes(declared, done)]
        print_json({"study": str(folder), "runs": runs, "outputs": written, "passed_over": refused, "notes": told})
        return unmeasured
    if found is not None and found.results:
        print_diagnosis(found, found.table())
    for name, why in refused.items():
        sys.stderr.write(f"waterjar: {visible(name)}: {visible(why)}\n")
    if written:
        beside = shlex.join(["waterjar", "compare", str(folder)])
        kinds = dict.fromkeys(Path(file).relative_to(folder).parts[0] for file in written.values())
        print_rich(f"{len(written)} files in {folder}: {', '.join(sorted(kinds))}; side by side: {beside}")
    others = earlier_files(folder, made) if found is not None else []
    if others:
        few = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        sys.stderr.write(f"waterjar: not written now, of an earlier analysis or another command: {visible(few)}\n")
    return unmeasured


def _asked(declared: Any, family: str) -> bool:
    return declared.analysis.families is not None and family in declared.analysis.families


def _dry_run(declared: Any, out: Path, as_json: bool) -> None:
    from waterjar.lab.data import load  # noqa: PLC0415
    from waterjar.lab.study import plan  # noqa: PLC0415
    from waterjar.lab.study.estimate import estimate  # noqa: PLC0415

    data = load(declared.data.name, **declared.data.settings)
    jobs = plan(declared, out, data)
    with working("rehearsing every kind of run for a moment") as progress:
        found = estimate(declared, jobs, data, functools.partial(progress.watch, "kinds"))
    left = [job for job in jobs if job.status != "sealed"]
    if as_json:
        runs = [
            {
                "run": job.path.name,
                "status": job.status,
                "epochs": job.epochs,
                "images": job.images,
                "seconds": found.costs[job.path.name].seconds,
                "bytes": found.costs[job.path.name].bytes,
                "inferred": found.costs[job.path.name].inferred,
            }
            for job in jobs
        ]
        print_json(
            {
                "runs": runs,
                "seconds": found.seconds,
                "bytes": found.bytes,
                "workers": declared.resources.at_a_time,
                "kinds": found.kinds,
                "tried": found.tried,
                "rehearsal_seconds": found.took,
            }
        )
        return
    made = table(f"{out}: what would run", ["run", "status", "epochs", "images", "time left", "disk to come"])
    for job in jobs:
        cost = found.costs[job.path.name]
        row(
            made,
            job.path.name,
            coloured(job.status),
            job.epochs,
            f"{job.images:,}",
            f"{duration(cost.seconds)} (inferred)" if cost.inferred else duration(cost.seconds),
            _size(cost.bytes),
        )
    print_rich(
        made,
        f"{len(left)} of {len(jobs)} runs left, about {duration(found.seconds)} with "
        f"{declared.resources.at_a_time} at a time; about {_size(found.bytes)} of disk, checkpoints and the data set's "
        "copy included",
        *([_rehearsed(found)] if left else []),
    )


def _rehearsed(found: Estimate) -> str:
    """How much was tried for an estimate."""
    tried = f"rehearsed for {found.took:.1f} s: {found.tried} of {found.kinds} kinds of run, {found.batches} batches"
    if not found.tried:
        return f"{tried}. Not even a few batches were through by then, so that no time is told"
    tried += f", at least {100 * found.share:.0f} % of an evaluation"
    others = found.kinds - found.tried
    return f"{tried}. Inferred from these by floating-point operations: {others}" if others else tried


class _Board:
    """How far runs are: the live table, or lines in its place."""

    def __init__(self, workers: int, shown: str, *, live: bool) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._workers = workers
        self._shown = shown
        self._seen: dict[str, JobProgress] = {}
        self._began = time.monotonic()
        self._title = ""
        self._live = Live(console=Console(stderr=True), refresh_per_second=2) if live else None
        self._lines = None if live else Lines(lambda gone: self._title or f"starting ... {duration(gone)} so far")
        if self._live is not None:
            self._live.start()

    def show(self, jobs: list[Job], last: bool) -> None:
        """Look at the runs and draw."""
        from waterjar.lab.study.progress import glance  # noqa: PLC0415

        for job in jobs:
            known = self._seen.get(job.path.name)
            if known is None or known.status != "sealed":
                self._seen[job.path.name] = glance(job, known)
        self._title = self._summary(jobs)
        if self._live is not None:
            self._live.update(self._picture(jobs), refresh=last)

    def close(self) -> None:
        """Leave the last picture on the screen, or the last line."""
        if self._live is not None:
            self._live.stop()
        if self._lines is not None:
            self._lines.close(self._title)

    def _summary(self, jobs: list[Job]) -> str:
        from waterjar.lab.study.progress import rates, seconds_left  # noqa: PLC0415

        seen = self._seen
        done = sum(seen[job.path.name].status == "sealed" for job in jobs)
        epochs = sum(seen[job.path.name].epochs for job in jobs)
        left = seconds_left(jobs, seen, self._workers)
        speeds = rates(jobs, seen).values()
        speed = sum(speeds) / max(1, len(speeds))
        return (
            f"{done}/{len(jobs)} runs, {epochs}/{sum(job.epochs for job in jobs)} epochs, "
            f"{speed:,.0f} images/s a run, {duration(time.monotonic() - self._began)} gone, "
            f"{'?' if left is None else duration(left)} left"
        )

    def _picture(self, jobs: list[Job]) -> RenderableType:
        seen = self._seen
        made = table(self._title, ["run", "status", "epoch", "images/s", self._shown])
        shown = [job for job in jobs if seen[job.path.name].status in ("recording", "interrupted")]
        rest = [job for job in jobs if job not in shown]
        for job in (shown + rest)[:20]:
            progress = seen[job.path.name]
            rate = f"{progress.images / progress.seconds:,.0f}" if progress.seconds and progress.images else "–"
            accuracy = "–" if progress.headline is None else f"{progress.headline:.3f}"
            row(made, job.path.name, coloured(progress.status), f"{progress.epochs}/{job.epochs}", rate, accuracy)
        return made


def _final(run: Any) -> dict[str, Any]:
    """The last accuracies: a number of a run of one repeat, else a list over repeats."""
    last = run.load("performance").accuracy.isel(step=-1).transpose("eval_set", "repeat")
    values = last.values[:, 0].tolist() if last.sizes["repeat"] == 1 else last.values.tolist()
    accuracy = dict(zip(map(str, last.eval_set.values), values, strict=True))
    return {
        "run": run.path.name,
        "method": run.config["method"],
        "seeds": run.seeds,
        "root": run.root_hash,
        "accuracy": accuracy,
    }


def _print_final(study: Any) -> None:
    """Final accuracies per cell and evaluation set: mean over seeds, and their range."""
    cells = {cell: data.accuracy.isel(step=-1) for cell, data in study.load("performance").items()}
    made = table(f"{study.path}: accuracy after the last epoch, mean and range over seeds", ["eval_set", *cells])
    sets = list(dict.fromkeys(name for accuracy in cells.values() for name in accuracy.eval_set.values))
    for name in sets[:_MOST_SETS]:  # cells need not have the same: a sweep may be over the number of tasks
        values = [a.sel(eval_set=name).values if name in a.eval_set.values else None for a in cells.values()]
        row(made, name, *("–" if v is None else f"{v.mean():.3f} ({v.min():.3f}–{v.max():.3f})" for v in values))
    print_rich(made, *([f"and {len(sets) - _MOST_SETS} more sets"] if len(sets) > _MOST_SETS else []))


def _size(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
