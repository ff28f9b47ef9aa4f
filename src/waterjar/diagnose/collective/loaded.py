"""The streams of the runs of a cell, a snapshot at a time, beside those of its baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from waterjar.diagnose.collective import remarks
from waterjar.diagnose.collective.answers import Answers
from waterjar.diagnose.collective.coalitions import coalitions_of
from waterjar.diagnose.collective.control import control_of
from waterjar.diagnose.collective.courses import course_numbers, course_words
from waterjar.diagnose.collective.inputs import (
    ABSENCES,
    Affinities,
    Coalitions,
    Control,
    Course,
    Fingerprints,
    Routing,
    StreamOutputs,
)
from waterjar.diagnose.collective.reading import COALITIONS, OUTPUTS, RunStreams, Shot
from waterjar.diagnose.labelled import concatenate, variable
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import NOT_RECORDED, UNDEFINED, Result
from waterjar.diagnose.snapshots import mean_of_last
from waterjar.run.combining import combine, reproduces, reproducing_rule

Placed = Iterator[tuple[Any, tuple[Any, ...]]]
FINAL, INITIAL = "_final", "_initial"


class LoadedCell(Loaded):
    """The streams of one cell."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        self.settings = settings
        self.runs = [RunStreams(run, settings) for run in unit.runs]
        first = self.runs[0]
        self.remarks: dict[str, None] = {}
        strange = next((one for one in self.runs if sorted(one.streams) != sorted(first.streams)), None)
        self.alike = strange is None
        if strange is not None:
            self.remarks[
                f"{strange.path.name} has the streams {', '.join(strange.streams)}, {first.path.name}, a run of the "
                f"same cell, {', '.join(first.streams)}: nothing is measured of this cell; expected the same streams"
            ] = None
        for other in self.runs[1:] if self.alike else ():
            if other.streams != first.streams:
                other.follow(first.streams)
        joined = concatenate([run.axes for run in self.runs], "repeat")
        axes: dict[str, Any] = {str(k): one.variable for k, one in joined.coords.items() if k != "repeat"}
        self.places = {label: i for i, label in enumerate(axes["snapshot"].values.tolist())}
        names = np.array(first.streams, object)
        axes |= {
            "stream": ("stream", names, {"long_name": "stream"}),
            "other_stream": ("other_stream", names, {"long_name": "the other stream"}),
            "anchor": ("anchor", np.arange(max(run.anchors for run in self.runs)), {"long_name": "anchor"}),
            "absence": ("absence", np.array(ABSENCES, object), {"long_name": "how streams are absent"}),
            "target": ("target", np.arange(max(run.targets for run in self.runs)), {"long_name": "target of routes"}),
        }
        super().__init__(unit, axes, {"scored_sets": ", ".join(first.test)})
        ends = np.cumsum([len(run.seeds) for run in unit.runs]).tolist()
        self.starts = [end - len(run.seeds) for end, run in zip(ends, unit.runs, strict=True)]
        self._remark(run.for_want for run in self.runs if run.for_want)
        if unit.note and unit.baseline is not None:
            self.remarks[unit.note] = None

    def inputs(self, wanted: Collection[type]) -> Placed:
        """Run by run, snapshot by snapshot and repeat by repeat; the course of a repeat at its end."""
        if not self.alike:
            return
        for run, start in zip(self.runs, self.starts, strict=True):
            courses: dict[int, list[tuple[int, Result, Result]]] = {}
            for repeat, position, shot in run.shots():
                place = (start + repeat, self.places[run.labels[position]])
                outputs = self._outputs(shot, place)
                routing = self._routing(shot)
                prints, affinities = self._fingerprints(shot), self._affinities(shot)
                self._remark(remarks.of_parts(routing, prints, affinities, run.run.seeds[repeat]))
                given: list[Any] = [outputs, routing, prints, affinities]
                if Coalitions in wanted:
                    given.append(self._coalitions(shot, outputs))
                for one in given:
                    if type(one) in wanted:
                        yield one, place
                if Course in wanted:
                    courses.setdefault(repeat, []).append((position, *course_numbers(outputs, routing)))
            for repeat, numbers in courses.items():
                yield self._course(run, numbers), (start + repeat,)

    def undefined(self, metric: Metric) -> int:
        """All of them where seeds have other streams."""
        return 0 if self.alike else UNDEFINED

    def _outputs(self, shot: Shot, place: tuple[int, int]) -> StreamOutputs | None:
        run = shot.run
        if not any(run.has(name) for name in OUTPUTS):
            return None
        test = shot.answers(run.test)
        validation = None if run.validation is None else shot.answers([run.validation])
        probe = None if run.probe_on is None else shot.answers([run.probe_on])
        rule = self._rule(test)
        if test.collective is None and rule is not None and test.logits is not None:
            test = _with_collective(test, rule)
            validation = validation and _with_collective(validation, rule)
        found = StreamOutputs(
            run.streams,
            test,
            validation,
            probe,
            rule,
            run.once("parameters", shot.repeat),
            run.once("trainable_parameters", shot.repeat),
            self._control(test),
        )
        seed = run.run.seeds[shot.repeat]
        self._remark(remarks.of_outputs(found, seed, run.unlabelled(run.test, shot.repeat)))
        return found

    def _rule(self, test: Answers) -> str | None:
        named = None if self.settings.rule == "auto" else self.settings.rule
        if test.logits is None or test.collective is None:
            return named
        if named is None:
            return reproducing_rule(test.logits, test.collective)
        return None if reproduces(test.logits, test.collective, named) is False else str(named)

    def _remark(self, sentences: Iterable[str]) -> None:
        """What has to be said of what was passed over, once."""
        self.remarks |= dict.fromkeys(sentences)

    def _routing(self, shot: Shot) -> Routing | None:
        run = shot.run
        weights, targets = shot.part("route_weight", run.test), shot.part("route_index", run.test)
        if weights is None:
            return None
        labels = run.sample_labels(run.test, shot.repeat)
        whole = None if targets is None else np.where(np.isnan(targets), -1, targets).astype(np.int64)
        return Routing(run.streams, weights.astype(np.float64), whole, labels, len(self.coordinates["target"][1]))

    def _fingerprints(self, shot: Shot) -> Fingerprints | None:
        values = shot.arrays.get("fingerprint")
        return None if values is None else Fingerprints(shot.run.streams, values.astype(np.float64))

    def _affinities(self, shot: Shot) -> Affinities | None:
        by_input, fixed = shot.part("affinity", shot.run.test), shot.arrays.get("anchor_affinity")
        if by_input is None and fixed is None:
            return None
        values = by_input if by_input is not None else fixed[None]  # type: ignore[index]
        return Affinities(shot.run.streams, values.astype(np.float64))

    def _coalitions(self, shot: Shot, outputs: StreamOutputs | None) -> Coalitions:
        run = shot.run
        parts = [shot.part(name, run.test) for name in COALITIONS]
        gradients = shot.part("gradient_norm", run.test)
        labels = run.sample_labels(run.test, shot.repeat)
        found = coalitions_of(
            run.streams, run.coalitions, parts, labels, outputs, gradients, self.settings, run.places(shot.repeat)
        )
        self._remark(remarks.of_coalitions(found, outputs, run.run.seeds[shot.repeat]))
        return found

    def _course(self, run: RunStreams, numbers: list[tuple[int, Result, Result]]) -> Course:
        epochs = np.asarray(run.steps["total_epoch"][1], np.float64)[[position for position, _, _ in numbers]]
        return Course(epochs, Result.stack([one for _, one, _ in numbers]), Result.stack([one for *_, one in numbers]))

    @cached_property
    def _controls(self) -> list[tuple[NDArray[np.int64], Control]]:
        """(labels, control) of every repeat of the baseline that has one."""
        base = self.unit.baseline
        return [] if base is None else control_of([RunStreams(run, self.settings) for run in base.runs], self.settings)

    def _control(self, test: Answers) -> Control:
        """The mean curve of the baseline's repeats that answered the same samples."""
        nothing = np.empty(0)
        if self.unit.baseline is None:
            return Control(nothing, Result.missing("no_baseline", self.unit.note))
        if test.labels is None:
            return Control(nothing, test.lacking)
        same = [control for labels, control in self._controls if np.array_equal(labels, test.labels)]
        able = [one.nll for one in same if one.missing is None]
        if able:
            return Control(np.mean(able, axis=0))
        why = Result.missing("undefined", "the baseline did not answer the same samples")
        return Control(nothing, same[0].missing if same else why)

    def summary(self, metric: Metric, table: Table) -> Variables:
        """`<name>_final`, and `<name>_initial` at the snapshot before any training; means over streams and the like."""
        if not metric.summary or "snapshot" not in table.dims:
            return {}
        about = {"long_name": f"{metric.long_name}, before any training", "units": metric.units}
        parts = [self._ends(run, table, start) for run, start in zip(self.runs, self.starts, strict=True)]
        made: Variables = {}
        for place, (name, labels) in enumerate({metric.summary: {}, metric.name + INITIAL: about}.items()):
            values, codes = (np.concatenate([getattr(part[place], key) for part in parts]) for key in ("value", "code"))
            made |= variable(name, ["repeat"], values, codes, labels)
        return made

    def _ends(self, run: RunStreams, table: Table, start: int) -> tuple[Result, Result]:
        rows = slice(start, start + len(run.run.seeds))
        untrained = np.flatnonzero(np.asarray(run.steps["total_epoch"][1], np.float64) == 0.0)
        places = [self.places[run.labels[-1]] if run.labels else None]
        places.append(self.places[run.labels[int(untrained[-1])]] if len(untrained) else None)
        first, last = (self._over(table, rows, place) for place in places)
        return first, last

    def _over(self, table: Table, rows: slice, place: int | None) -> Result:
        """(repeat,): at one snapshot, the mean over what else it is over; of absences the first that there is."""
        count = len(range(*rows.indices(len(table.values))))
        if place is None or not self.sizes["anchor" if "anchor" in table.dims else "stream"]:
            return Result.of(np.full(count, np.nan), NOT_RECORDED)
        values, codes = table.values[rows, place], table.reasons[rows, place]
        if "absence" in table.dims:
            there = [i for i in range(len(ABSENCES)) if not (codes[:, i] == NOT_RECORDED).all()] or [0]
            values, codes = values[:, there[0]], codes[:, there[0]]
        if "other_stream" in table.dims:  # of pairs, each once; none with itself
            upper = np.triu_indices(values.shape[-1], 1)
            values, codes = values[..., upper[0], upper[1]], codes[..., upper[0], upper[1]]
        return mean_of_last(values.reshape(count, -1), codes.reshape(count, -1))

    def close(self, found: Variables) -> Variables:
        """What was passed over, the baseline, and the expected course in words."""
        made: Variables = {}
        baseline = "" if self.unit.baseline is None else self.unit.baseline.title
        texts = {
            "collective_remarks": ("; ".join(self.remarks), "what was passed over, and why"),
            "collective_baseline": (baseline, "name of the cell that is the control; empty for none"),
            "collective_course": (course_words(found, self.settings.confidence), "the course over training, in words"),
        }
        for name, (text, words) in texts.items():
            made[name] = xr.Variable([], np.array(text, object), {"long_name": words})
        return made


def _with_collective(answers: Answers, rule: str) -> Answers:
    assert answers.logits is not None
    return replace(answers, collective=combine(answers.logits, rule))
