"""The examples of the runs of a cell beside those of its baseline, and what their numbers come to over seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.examples.inputs import AnswerPair, History, LastAnswers, over_examples
from waterjar.diagnose.examples.reading import RunExamples
from waterjar.diagnose.labelled import variable
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.over_seeds import over_seeds
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import NO_BASELINE, NO_RUN, RUN_ENDED, UNDEFINED, Codes, Floats, Result
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS
from waterjar.stats.crossed import crossed_interval
from waterjar.stats.intervals import UNBOUNDED

Placed = Iterator[tuple[Any, tuple[Any, ...]]]
_ENDS = {
    "mean": "mean over seeds",
    "low": "lower bound of the mean, over other seeds and other samples",
    "high": "upper bound of the mean, over other seeds and other samples",
    "seed_share": "share of the variance of the mean that more seeds would lower, not more samples",
}


def _ended(runs: Sequence[RunExamples]) -> list[int]:
    """(run,): why a run tells nothing: it is shorter than the longest of its cell, or more may come; else 0."""
    last = [int(run.steps[-1]) for run in runs]
    is_open = [run.run.status != "sealed" for run in runs]
    return [RUN_ENDED if end < max(last) or more else 0 for end, more in zip(last, is_open, strict=True)]


class LoadedCell(Loaded):
    """The examples of one cell, a repeat at a time."""

    def __init__(self, unit: Unit, settings: Any) -> None:
        self.settings = settings
        self.runs = [RunExamples(run, settings) for run in unit.runs]
        first = self.runs[0]
        for other in self.runs[1:]:
            if not np.array_equal(other.labels, first.labels):
                raise WaterjarError(
                    f"{other.run.path} and {first.run.path}, runs of one cell, have other examples: expected the same"
                )
        about = {"long_name": "set and position of the example"}
        axes = {
            "example": ("example", first.labels, about),
            "example_set": ("example", first.set_names.astype(object), {"long_name": "set of the example"}),
            "example_judged": ("example", first.judged, {"long_name": "whether the number per seed is over it, too"}),
            "eval_set": ("eval_set", np.array(first.sets, object), {"long_name": "set of examples"}),
        }
        super().__init__(unit, axes, {"judged_sets": ", ".join(dict.fromkeys(first.set_names[first.judged].tolist()))})
        self.ended = _ended(self.runs)
        self.answers = self._last_answers()

    def _repeats(self) -> Iterator[tuple[RunExamples, int, int]]:
        """Every repeat: its run, its place in there, and why it tells nothing."""
        for run, ended in zip(self.runs, self.ended, strict=True):
            for repeat in range(len(run.run.seeds)):
                yield run, repeat, ended

    def _last_answers(self) -> LastAnswers:
        judged = self.runs[0].judged
        right, codes, groups = [], [], []
        known: dict[tuple[bytes, ...], int] = {}
        for run, repeat, ended in self._repeats():
            answers, why = run.last(repeat)
            right.append(answers)
            codes.append(np.where(ended, ended, why))
            groups.append(known.setdefault(run.same_examples(repeat), len(known)))
        every, reasons = np.stack(right), np.stack(codes).astype(np.uint8)
        sets = [np.flatnonzero(own) for own in self.runs[0].by_set]
        return LastAnswers(
            every[:, judged], reasons[:, judged].max(1, initial=0), np.array(groups), sets, every, reasons
        )

    def inputs(self, wanted: Collection[type]) -> Placed:
        """Histories repeat by repeat, a run in memory at a time; then what needs the last evaluation alone."""
        if History in wanted:
            for place, (run, repeat, ended) in enumerate(self._repeats()):
                yield run.history(repeat, ended), (place,)
                if repeat == len(run.run.seeds) - 1:
                    run.forget()
        if LastAnswers in wanted:
            yield self.answers, ()
        if AnswerPair in wanted:
            for place, pair in enumerate(self.pairs):
                yield pair, (place,)

    @cached_property
    def pairs(self) -> list[AnswerPair]:
        """(repeat,): every seed beside the same seed of the baseline."""
        return list(self._pairs())

    def _pairs(self) -> Iterator[AnswerPair]:
        base = self.unit.baseline
        partners: dict[int, tuple[RunExamples, int, int]] = {}
        if base is not None and not self.unit.is_baseline:
            others = [RunExamples(other, self.settings) for other in base.runs]
            for other, ended in zip(others, _ended(others), strict=True):
                partners |= {seed: (other, repeat, ended) for repeat, seed in enumerate(other.run.seeds)}
        for place, (run, repeat, _) in enumerate(self._repeats()):
            seed = run.run.seeds[repeat]
            own = self.answers.right[place]
            if self.unit.is_baseline:
                yield AnswerPair(own, own, self._why(place), is_same=True)
            elif base is None:
                yield AnswerPair(own, own, Result.missing(REASONS[NO_BASELINE], self.unit.note))
            elif seed not in partners:
                yield AnswerPair(own, own, Result.missing(REASONS[NO_RUN], "the baseline has no run of this seed"))
            else:
                yield self._beside(place, run, repeat, *partners[seed])

    def _beside(
        self, place: int, run: RunExamples, repeat: int, other: RunExamples, theirs: int, ended: int
    ) -> AnswerPair:
        own = self.answers.right[place]
        if run.same_examples(repeat) != other.same_examples(theirs):
            return AnswerPair(own, own, Result.missing("undefined", "the baseline was not asked the same examples"))
        shared = run.judged & run.trained(repeat) & other.trained(theirs)
        if not shared.any():
            return AnswerPair(own, own, Result.missing("undefined", "no task was trained by both"))
        answers, codes = other.last(theirs)
        lacking = ended or codes[shared].max(initial=0)
        missing = self._why(place) or (Result.missing(REASONS[int(lacking)]) if lacking else None)
        return AnswerPair(self.answers.all_right[place][shared], answers[shared], missing)

    def _why(self, place: int) -> Result | None:
        code = int(self.answers.reasons[place])
        return Result.missing(REASONS[code]) if code else None

    def summary(self, metric: Metric, table: Table) -> Variables:
        """Of a metric per example: its mean over the judged sets and over each set, and how many it leaves out.

        Left out are examples without a value of their own: never learned, say. A metric that has its summary beside it
        says itself what it is.
        """
        if metric.dims != ("example",) or not metric.summary or metric.summary in metric.beside:
            return {}
        whole, each, left = [], [], []
        for place, (run, repeat, _) in enumerate(self._repeats()):
            values, codes, untrained = table.values[place], table.reasons[place], ~run.counted(repeat)
            own = [over_examples(values[at], codes[at], untrained[at]) for at in [run.judged, *run.by_set]]
            whole.append(own[0])
            each.append(Result.stack(own[1:]))
            left.append(int((codes[run.judged] > 0).sum()))
        total = Result.stack(whole)
        found = variable(metric.summary, ("repeat",), total.value, total.reason)
        about = {"long_name": f"{metric.name}: mean over each set of examples", "units": metric.units}
        by_set = np.stack([one.value for one in each]), np.stack([one.reason for one in each])
        found |= variable(f"{metric.name}_by_set", ("repeat", "eval_set"), *by_set, about)
        words = {"long_name": f"examples without {metric.name}, which its mean leaves out", "units": "example"}
        found[f"{metric.name}_n_left_out"] = xr.Variable(("repeat",), np.array(left), words)
        return found

    def close(self, found: Variables) -> Variables:
        """Accuracy and gain over seeds and samples, where all seeds were asked the same ones."""
        answers = self.answers
        there = answers.reasons == 0
        same = len(set(answers.groups[there].tolist())) == 1
        right = (answers.right == 1).astype(np.float64)
        made = self._bounded("example_accuracy", right[there], right.mean(1), answers.reasons, same, (0.0, 1.0))
        pairs = self.pairs
        gains = [np.asarray(one.learner == 1, np.float64) - (one.baseline == 1) for one in pairs]
        codes = np.array([0 if one.missing is None else one.missing.code for one in pairs], np.uint8)
        kept = [gain for gain, code in zip(gains, codes, strict=True) if code == 0]
        alike = same and len({gain.shape for gain in kept}) == 1  # else seeds share other tasks with their partners
        stacked = np.stack(kept) if alike else np.empty((len(kept), 0))
        means = np.array([gain.mean() for gain in gains])
        made |= self._bounded("mcnemar_gain", stacked, means, codes, alike, None)
        baseline = "" if self.unit.baseline is None else self.unit.baseline.title
        words = {"long_name": "name of the cell that gains and errors are held against; empty for none"}
        made["example_baseline"] = xr.Variable([], np.array(baseline, object), words)
        made["same_examples"] = xr.Variable(
            [], np.array(same), {"long_name": "whether all seeds have the same examples"}
        )
        return made

    def _bounded(
        self, name: str, table: Floats, means: Floats, codes: Codes, same: bool, within: tuple[float, float] | None
    ) -> Variables:
        """`<name>_mean`, `_low`, `_high`, `_seed_share` and `_interval`, from (seed, sample) of seeds with a value.

        Where every seed has samples of its own, these are part of what differs between seeds: the interval is t.
        """
        level = self.settings.confidence
        if same and len(table) > 1:
            one = crossed_interval(table, confidence=level, within=within)
            numbers, method = (one.estimate, one.low, one.high, one.seed_share), one.method
        else:
            told = over_seeds(
                np.where(codes > 0, np.nan, means), [REASONS[code] for code in codes], level, within or UNBOUNDED
            )
            numbers, method = (told.mean, told.low, told.high, np.nan), told.interval
        made: Variables = {}
        nothing = UNDEFINED if len(table) else int(np.bincount(codes).argmax())
        for (end, words), number in zip(_ENDS.items(), numbers, strict=True):
            value = np.array(float(number))
            about = {"long_name": f"{name}: {words}", "units": "1"}
            made |= variable(f"{name}_{end}", [], value, np.array(nothing * np.isnan(value), np.uint8), about)
        words = f"{name}: how the mean is bounded; crossed: over seeds and samples"
        made[f"{name}_interval"] = xr.Variable([], np.array(method, object), {"long_name": words})
        return made
