"""Recorder: writes a run while training goes on.

One `log` is one complete step. Its chunks are written first; then one atomic rename swaps the root
zarr.json, whose consolidated metadata says how long every array is. Until that instant no reader sees the
step; after it all of it. A process killed at any moment loses at most the step in flight; what a power cut
costs is in docs/runs.md.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from waterjar._version import NUMERICS_VERSION
from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run import ledger, seal, unbegun
from waterjar.run import resume as resuming
from waterjar.run.closing import tell_what_it_feeds
from waterjar.run.codec import Storage, storage_of
from waterjar.run.coordinates import advance, check_variables, describe, flag, whole
from waterjar.run.disk import as_path
from waterjar.run.examples import Examples
from waterjar.run.identity import text
from waterjar.run.intake import SNAPSHOTS, STEP_GROUPS, Intake, Rows, Values
from waterjar.run.provenance import collect, now
from waterjar.run.reader import Run
from waterjar.run.rows import LayerTable
from waterjar.run.schema import LEVELS, SCHEMA_VERSION, Variable
from waterjar.run.source import Steps, source_of, step_of_source, steps_of
from waterjar.run.store import PRIVATE, ROOT, LocalStore
from waterjar.run.writer import TreeWriter


class Recorder:
    """Record one run at `path`.

    Parameters
    ----------
    config : the resolved settings, plain data or a pydantic model. Identifies the run together with `seeds`.
    seeds : one seed per repeat trained at once; without it the config's `seed` or `seeds`, else 0.
    eval_sets : names, or a mapping name -> task it belongs to, by name or place (-1 for none). Of names alone, a set
        that is called like a task belongs to it; told to be another task's, it is refused.
    eval_sizes : how many samples the eval sets have, as name -> number: what luck allows depends on it.
    tasks : names of the tasks in order of training, or their number.
    classes : class names, for variables per class.
    probe_sets : eval sets that snapshots cover; all of them by default.
    labels : names along dimensions that are only counted otherwise, as {"stream": ["left", "right"]}.
    variables : more variables than the schema has, as {"group/name": Variable(...)}.
    source : the sealed run that this one looks into, for probes of a training that is over: its path, or the run. A
        study shows what is recorded here under /probes as if the source had it.
    branch : the run_id and root_hash of the sealed run that this one went off from (see `waterjar.run.branching`).
    storage : dtypes, compression, chunk sizes.
    data_fingerprint : hash of the data set, part of the identity.
    unhashed : more top-level config keys that do not change the numbers.
    numerics : version of the numbers that a config gives, part of the identity: raise it when the same config gives
        others than before.
    resume : continue the run at `path` if there is one; it must be the same run. One that ended before its first step
        is none: nothing stays of it, and after a kill the next one begins anew, with or without `resume`.
    resume_at : the last step the caller's checkpoint contains (-1: none); later ones are dropped.
    provenance : record versions, commit and host class.
    summary : say on stderr, when the run is sealed, which families of metrics it can feed, and what would change it
        where it cannot. Of a run with a `source` nothing is said.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run")
    >>> with Recorder(path, {"learner": "sgd"}, seeds=[7], eval_sets=["test"]) as r:
    ...     for epoch in range(3):
    ...         step = r.log(epoch=epoch, performance={"accuracy": {"test": 0.2 * epoch}})
    >>> import waterjar
    >>> waterjar.open_run(path)["performance"].accuracy.values.ravel()
    array([0. , 0.2, 0.4])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        config: object = None,
        *,
        seeds: Sequence[int] | None = None,
        eval_sets: Sequence[str] | Mapping[str, int | str] = (),
        eval_sizes: Mapping[str, int] | None = None,
        tasks: Sequence[str] | int = 1,
        classes: Sequence[str] | None = None,
        probe_sets: Sequence[str] | None = None,
        labels: Mapping[str, Sequence[str]] | None = None,
        variables: Mapping[str, Variable] | None = None,
        storage: Storage | Mapping[str, Any] | None = None,
        data_fingerprint: str | None = None,
        unhashed: Sequence[str] = (),
        numerics: int = NUMERICS_VERSION,
        resume: bool = False,
        resume_at: int | None = None,
        provenance: bool = True,
        source: str | os.PathLike[str] | Run | None = None,
        branch: Mapping[str, str] | None = None,
        summary: bool = True,
    ) -> None:
        self.path = as_path(path)
        declared = check_variables({} if variables is None else variables)
        identity = describe(
            config,
            seeds,
            eval_sets,
            tasks,
            classes,
            probe_sets,
            data_fingerprint,
            unhashed,
            eval_sizes,
            labels,
            declared,
            numerics,
            branch,
        )
        self._source_steps: Steps | None = None
        if source is not None:
            identity["source"], self._source_steps = source_of(source, identity), steps_of(source)
        self.run_id: str = identity["run_id"]
        self.cell_id: str = identity["cell_id"]
        self._tasks: list[str] = identity["tasks"]
        self.repeats = len(identity["seeds"])
        self.storage = storage_of(storage)
        self._store = LocalStore(self.path, sync=self.storage.sync)
        self._pid = os.getpid()
        self._closed = False
        self._started = time.monotonic()

        self._summary = flag("summary", summary) and source is None
        resume_at = None if resume_at is None else whole("resume_at", resume_at)
        wanted, provenance = flag("resume", resume) or resume_at is not None, flag("provenance", provenance)
        self._check_place(wanted, resume_at)
        self._store.lock()
        try:
            exists = self._check_place(wanted, resume_at)  # again: another process may have been quicker
            if exists:
                self._writer, self._progress = resuming.restore(self._store, self.storage, identity, resume_at)
            else:
                unbegun.clear(self._store)
                identity["storage"] = self.storage.model_dump(mode="json")
                self._writer = TreeWriter(self._store, self.storage, self._root_attributes(identity))
                self._progress = {"step": -1}
            self._intake = Intake(identity, declared, self.storage, self._writer)
            sessions = self._writer.attributes["provenance"]["sessions"]
            sessions.append({"started": now(), **(collect() if provenance else {})})
            self._writer.attributes["status"] = "recording"
            self._writer.commit()
        except BaseException:
            self._store.unlock()
            raise
        weakref.finalize(self, unbegun.drop, self._store, self._pid)  # a script may end without closing it

    def _check_place(self, wanted: bool, resume_at: int | None) -> bool:
        """Whether there is a run to go on with; refuse a place that must not be written to."""
        try:
            there = (self.path / ROOT).exists()
            occupied = not there and self.path.is_dir() and any(item.name != PRIVATE for item in self.path.iterdir())
        except (OSError, ValueError) as error:
            raise WaterjarError(f"path {brief(self.path)!r} cannot be used: {error}") from error
        exists = there and not unbegun.is_unbegun(self._store)
        if exists and not wanted:
            raise WaterjarError(f"{self.path} holds a run already: pass resume=True to go on with it, or another path")
        if occupied:
            raise WaterjarError(f"{self.path} is not empty and not a run: choose a path of its own")
        if resume_at is not None and not exists and resume_at != -1:
            raise WaterjarError(f"resume_at={resume_at}, but there is no run at {self.path}: -1 starts a new one")
        return exists

    @staticmethod
    def _root_attributes(identity: dict[str, Any]) -> dict[str, Any]:
        return {
            "waterjar_schema": SCHEMA_VERSION,
            **identity,
            "status": "recording",
            "progress": {"step": -1},
            "provenance": {"sessions": []},
        }

    @property
    def last_step(self) -> int:
        """The last complete step; -1 if there is none. A resumed loop goes on behind it."""
        return int(self._progress["step"])

    def log(
        self,
        *,
        epoch: float,
        train_task: str | int | None = None,
        step: int | None = None,
        visit: int | None = None,
        total_epoch: float | None = None,
        effective_epoch: float | None = None,
        performance: Values | None = None,
        train: Values | None = None,
        expert: Values | None = None,
        resources: Values | None = None,
        monitor: Values | None = None,
        probes: Values | None = None,
        examples: Values | None = None,
        snapshot: Values | None = None,
    ) -> int:
        """Record one complete step and return its label.

        `epoch` counts within the task; step 0 (epoch 0) is the evaluation before any training. `total_epoch`
        and `effective_epoch` follow from it unless given. Another task than before begins another visit; give `visit`
        only to train the same one again at once. With a `source`, all of these are what its step has.
        `performance={"accuracy": x}` takes an array (eval_set, repeat), dimensions of size 1 left out at will, or a
        mapping eval_set -> value. `monitor` takes numbers per repeat by names of yours (letters, digits, _), `probes`
        what `probe()` takes, by the name of the probe, `examples` what `waterjar.judge_examples` gives.
        `snapshot` takes what `snapshot()` takes and becomes visible together with the step.
        """
        self._check_writable()
        if self._source_steps is None:
            at = advance(self._progress, self._tasks, epoch, train_task, step, total_epoch, effective_epoch, visit)
        else:
            told = {"step": step, "epoch": epoch, "visit": visit}
            told |= {"total_epoch": total_epoch, "effective_epoch": effective_epoch}
            at = step_of_source(self._source_steps, self._progress, self._tasks, train_task, told)
        values = (performance, train, expert, resources, monitor, probes, examples)
        given = dict(zip(STEP_GROUPS, values, strict=True))
        rows, of_rows = self._intake.steps(given)
        shots, table, of_shots = self._intake.snapshot({} if snapshot is None else snapshot)
        if not rows and not shots:
            raise WaterjarError(f"log() got no values: give at least one of {', '.join(given)}")
        with self._writer.transaction(progress=at):
            self._keep_examples(of_rows, of_shots)
            for group, group_rows in rows.items():
                self._writer.append(group, "step", at, group_rows)
            self._append_snapshot(shots, table, at)
        self._progress = at
        return int(at["step"])

    def snapshot(
        self,
        *,
        features: Values | None = None,
        weights: object = None,
        attention: Values | None = None,
        attribution: Values | None = None,
        streams: Values | None = None,
        outputs: Values | None = None,
    ) -> None:
        """Record arrays of the last logged step; visible when this returns.

        `features` maps a layer name to an array (repeat, eval_set, sample, unit) or to {eval_set: array};
        `weights` is (repeat, param) or a mapping name -> array, such as a state_dict; `attention` maps cls, rollout ...
        to arrays over all layers, or a layer to such a mapping where layers differ in heads or tokens; `attribution` a
        method to its maps; `streams` logits, routes ... to arrays; `outputs` logits to {eval_set: (repeat, sample,
        class)}. To make a snapshot and its step one unit, pass these to `log(snapshot=...)` instead.
        """
        self._check_begun("snapshot()")
        arrays = (features, weights, attention, attribution, streams, outputs)
        given = {key: value for key, value in zip(SNAPSHOTS, arrays, strict=True) if value is not None}
        shots, table, examples = self._intake.snapshot(given)
        if not shots:
            raise WaterjarError(f"snapshot() got nothing: give at least one of {', '.join(SNAPSHOTS)}")
        with self._writer.transaction():
            self._keep_examples(examples)
            self._append_snapshot(shots, table, self._progress)

    def probe(self, name: str, found: object) -> None:
        """Record what a probe found at the last logged step: a number per repeat, or several by their names.

        Each probe is a group of its own, `/probes/<name>`, by step; `waterjar.missing(reason)` where it found nothing.
        """
        self._check_begun("probe()")
        rows, _ = self._intake.steps({"probes": {name: found}})
        if not rows:
            raise WaterjarError(f"probe({name!r}) found nothing: expected a number per repeat, or a mapping of some")
        with self._writer.transaction():
            for group, group_rows in rows.items():
                self._writer.append(group, "step", self._progress, group_rows)

    def once(self, group: str, **arrays: object) -> None:
        """Record arrays that do not change: `once("probe_samples", label=...)`, `once("weights", initial=...)`.

        Doing it again with the same values (a resumed script does) changes nothing.
        """
        self._check_writable()
        rows, table, examples = self._intake.once(group, arrays)
        with self._writer.transaction():
            self._keep_examples(examples)
            if table is not None:
                self._writer.put_layers(table)
            for name, row in rows.items():
                self._writer.put_static(group, name, row.values, row.dims, row.variable.attributes)

    def event(self, kind: str, message: str, *, level: str = "info", repeat: int | None = None) -> None:
        """Note something that happened at the last logged step (or before the first one), to one repeat or all."""
        self._check_writable()
        if level not in LEVELS:
            raise unknown_name("level of an event", level, LEVELS)
        place = -1 if repeat is None else whole("repeat", repeat)
        if not (repeat is None or 0 <= place < self.repeats):
            raise WaterjarError(f"repeat={place}: expected one from 0 to {self.repeats - 1}")
        texts = {"kind": text("kind of an event", kind), "message": text("message of an event", message)}
        about = {"event_step": self.last_step, "time": time.time(), "event_repeat": place, "level": level, **texts}
        with self._writer.transaction():
            self._writer.append("events", "event", about, {})

    def sync(self) -> None:
        """Wait until all that was recorded is on the disk: before a checkpoint of your own is written, for instance.

        With Storage(sync=False) nothing is waited for, here either.
        """
        self._check_writable()
        self._store.sync()

    def close(self) -> str:
        """Seal the run and return its root hash. Nothing can be recorded afterwards."""
        self._check_writable()
        self._end_session("sealed")
        try:
            root = seal.close(self._store, self._writer)
        except BaseException:  # nothing is sealed yet: recording, or another close, may go on
            self._writer.attributes["status"] = "recording"
            self._writer.attributes.pop("seal", None)
            raise
        self._release()
        ledger.append(self.path, self.run_id, root)
        if self._summary:
            tell_what_it_feeds(self.path)
        return root

    def __enter__(self) -> Self:
        """Use as a context: sealed at the end; after an exception left open and resumable, or gone without a step."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Seal; after an exception mark the run as interrupted, to be resumed; without a step, leave nothing."""
        if self._closed or os.getpid() != self._pid:
            return
        if error is None:
            try:
                self.close()
            finally:
                self._release()
            return
        try:
            if not unbegun.leave_nothing(self._store, self._pid):
                self._end_session("interrupted")
                self._writer.commit(sync=True)
        except WaterjarError as second:
            error.add_note(f"waterjar could not mark the run as interrupted: {second}")
        finally:
            self._release()

    def _release(self) -> None:
        self._closed = True
        self._store.unlock()

    def _end_session(self, status: str) -> None:
        session = self._writer.attributes["provenance"]["sessions"][-1]
        session |= {"ended": now(), "seconds": round(time.monotonic() - self._started, 3)}
        self._writer.attributes["status"] = status

    def _check_writable(self) -> None:
        if self._closed:
            raise WaterjarError(f"the recorder of {self.path} is closed: nothing more can be recorded")
        if os.getpid() != self._pid:
            raise WaterjarError(
                f"the recorder of {self.path} belongs to process {self._pid}, not to its fork {os.getpid()}: "
                "record in the process that opened it"
            )

    def _check_begun(self, call: str) -> None:
        self._check_writable()
        if self.last_step < 0:
            raise WaterjarError(f"{call} before the first log(): log the step it belongs to first")

    def _keep_examples(self, *found: Examples | None) -> None:
        """Remember which examples are recorded, from the first rows of them on."""
        for examples in found:
            if examples and "example_sets" not in self._writer.attributes:
                self._writer.attributes["example_sets"] = examples
            elif examples and examples != self._writer.attributes["example_sets"]:
                before = self._writer.attributes["example_sets"]
                raise WaterjarError(f"examples are {examples}; expected {before}, as before")

    def _append_snapshot(self, shots: Rows, table: LayerTable | None, at: dict[str, Any]) -> None:
        if table is not None:
            self._writer.put_layers(table)
        for group, rows in shots.items():
            self._writer.append(group, "snapshot", at, rows)
