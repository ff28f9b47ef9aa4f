"""The examples of the runs of a cell beside those of its baseline, and what their numbers come to over seeds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.examples.inputs import AnswerPair, History, LastAnswers, over_examples
from waterjar.diagnose.examples.reading import RunExamples
from waterjar.diagnose.labelled import variable
from waterjar.diagnose.measuring import Loaded, Table, Unit, Variables
from waterjar.diagnose.over_seeds import over_seeds
from waterjar.diagnose.registry import Metric
from waterjar.diagnose.result import NO_BASELINE, NO_RUN, RUN_ENDED, UNDEFINED, Codes, Result
from waterjar.errors import WaterjarError
from waterjar.run.schema import REASONS
from waterjar.stats.crossed import crossed_interval

Placed = Iterator[tuple[Any, tuple[Any, ...]]]
_ENDS = {
    "mean": "mean over seeds",
    "low": "lower bound of the mean, over other seeds and other samples",
    "high": "upper bound of the mean, over other seeds and other samples",
    "seed_share": "share of the variance of the mean that more seeds would lower, not more samples",
}


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
            "eval_set": ("eval_set", np.array(first.sets, object), {"long_name": "set of examples"}),
        }
        super().__init__(unit, axes, {"judged_sets": ", ".join(dict.fromkeys(first.set_names[first.judged].tolist()))})
        self.ended = self._ended()
        self.answers = self._last_answers()

    def _ended(self) -> list[int]:
        """(run,): why a run tells nothing: it is shorter than the longest of its cell, or more may come; else 0."""
        last = [int(run.steps[-1]) for run in self.runs]
        open_ = [run.run.status != "sealed" for run in self.runs]
        return [RUN_ENDED if end < max(last) or more else 0 for end, more in zip(last, open_, strict=True)]

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
            for place, pair in enumerate(self._pairs()):
                yield pair, (place,)

    def _pairs(self) -> Iterator[AnswerPair]:
        """Every seed beside the same seed of the baseline."""
        base = self.unit.baseline
        partners: dict[int, tuple[RunExamples, int]] = {}
        if base is not None and not self.unit.is_baseline:
            for other in base.runs:
                examples = RunExamples(other, self.settings)
                partners |= {seed: (examples, repeat) for repeat, seed in enumerate(other.seeds)}
        for place, (run, repeat, _) in enumerate(self._repeats()):
            seed = run.run.seeds[repeat]
            own = self.answers.right[place]
            if self.unit.is_baseline:
                yield self._pair(own, own, self._why(place), is_same=True)
            elif base is None:
                yield self._pair(own, own, Result.missing(REASONS[NO_BASELINE], self.unit.note))
            elif seed not in partners:
                yield self._pair(own, own, Result.missing(REASONS[NO_RUN], "the baseline has no run of this seed"))
            else:
                yield self._beside(place, run, repeat, *partners[seed])

    def _beside(self, place: int, run: RunExamples, repeat: int, other: RunExamples, theirs: int) -> AnswerPair:
        own = self.answers.right[place]
        if run.same_examples(repeat) != other.same_examples(theirs):
            return self._pair(own, own, Result.missing("undefined", "the baseline was not asked the same examples"))
        shared = run.judged & run.trained(repeat) & other.trained(theirs)
        if not shared.any():
            return self._pair(own, own, Result.missing("undefined", "no task was trained by both"))
        answers, codes = other.last(theirs)
        lacking = codes[shared].max(initial=0)
        if other.run.status != "sealed":
            lacking = RUN_ENDED
        missing = self._why(place) or (Result.missing(REASONS[int(lacking)]) if lacking else None)
        return self._pair(self.answers.all_right[place][shared], answers[shared], missing)

    def _why(self, place: int) -> Result | None:
        code = int(self.answers.reasons[place])
        return Result.missing(REASONS[code]) if code else None

    @staticmethod
    def _pair(learner: Any, baseline: Any, missing: Result | None, *, is_same: bool = False) -> AnswerPair:
        return AnswerPair(learner, baseline, missing, is_same)

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
        """The accuracy over seeds and samples."""
        answers, level = self.answers, self.settings.confidence
        there = answers.reasons == 0
        crossed = there.sum() > 1 and len(set(answers.groups[there].tolist())) == 1
        numbers: dict[str, float]
        if crossed:
            one = crossed_interval((answers.right[there] == 1).astype(np.float64), confidence=level, within=(0, 1))
            numbers = {"mean": one.estimate, "low": one.low, "high": one.high, "seed_share": one.seed_share}
            method = one.method
        else:  # every seed has samples of its own: these are part of what differs between seeds
            shares = np.where(there, (answers.right == 1).mean(1), np.nan)
            told = over_seeds(shares, [REASONS[code] for code in answers.reasons], level, (0.0, 1.0))
            numbers = {"mean": told.mean, "low": told.low, "high": told.high, "seed_share": np.nan}
            method = told.interval
        made: Variables = {}
        nothing = _most(answers.reasons) if not there.any() else UNDEFINED
        for end, words in _ENDS.items():
            value = np.array(float(numbers[end]))
            about = {"long_name": f"example_accuracy: {words}", "units": "1"}
            code = np.array(nothing * np.isnan(value), np.uint8)
            made |= variable(f"example_accuracy_{end}", [], value, code, about)
        texts = {"interval": method, "baseline": "" if self.unit.baseline is None else self.unit.baseline.title}
        names = {"interval": "example_accuracy_interval", "baseline": "example_baseline"}
        for key, text in texts.items():
            made[names[key]] = xr.Variable([], np.array(text, object), {"long_name": names[key].replace("_", " ")})
        return made


def _most(codes: Codes) -> int:
    return int(np.bincount(codes).argmax())
