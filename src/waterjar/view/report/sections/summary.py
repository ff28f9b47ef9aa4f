"""The first screen: what was found, learner by learner, in plain words."""

from __future__ import annotations

import math

import pandas as pd
import xarray as xr

from waterjar.diagnose.over_seeds import interval_of, interval_words
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.view import figures
from waterjar.view.figures.strategy_comparison import CORRECTIONS
from waterjar.view.numbers import (
    counted,
    estimate,
    label,
    no_width,
    number,
    one_line,
    size_of,
)
from waterjar.view.report.blocks import Block, Callout, Chart, Heading, Items, Text, Verdict, Verdicts
from waterjar.view.report.charts.estimates import estimates_panel
from waterjar.view.report.ends import tests_of
from waterjar.view.report.leads import Told, told
from waterjar.view.report.leads.rigidity import SHORT, seen
from waterjar.view.report.model import Model

TITLE = "What was found"
ORDER = 10
_MOST = 4
"""Sentences that stand in the callout."""


def blocks(model: Model) -> list[Block]:
    """What every family found, the lead first; and of rigidity a verdict per learner and the picture of them."""
    if not model.study.entries:
        return [_nothing(model)]
    found = told(model)
    made = _in_short(found)
    made[1:1] = _correction(model, found)
    result = model.diagnosis.results.get("rigidity")
    if result is not None:
        cards = verdicts(result, model.diagnosis.settings("rigidity")["confidence"])
        made += [cards, *_chart(model), Heading("Learner by learner")]
        made.append(Items(tuple((one.name, one.sentence) for one in cards.verdicts)))
    return [*made, *_unmeasured(model)] or [Text("No metric has a value in this study.")]


def _nothing(model: Model) -> Callout:
    damaged = len(model.states("damaged")) + len(model.states("misannotated"))
    if damaged:
        return Callout(
            "bad", "Nothing to show", f"{counted(damaged, 'run')} cannot be read; see Seals for what is wrong."
        )
    return Callout(
        "note",
        "The study is empty",
        "No run has been recorded in it yet. Run the study, or record runs into its folder, and make the report again.",
    )


def _in_short(found: list[Told]) -> list[Block]:
    """The first to speak in the callout, the others as a list below it.

    Where the first has much to say of many learners, its first sentence stands in the callout alone.
    """
    if not found:
        return []
    first, *others = found
    ahead = 1 if len(first.sentences) > _MOST else len(first.sentences)
    items: list[str | tuple[str, str]] = list(first.sentences[ahead:])
    items += [(one.title, " ".join(one.sentences)) for one in others]
    callout = Callout("note", "In short", " ".join(first.sentences[:ahead]))
    return [callout, Items(tuple(items))] if items else [callout]


def _correction(model: Model, found: list[Told]) -> list[Block]:
    """Where differences stand with interval and p: what p is corrected for, and that intervals are not."""
    tests, how = tests_of(model), model.diagnosis.analysis.test_settings
    if tests < 2 or not any("(p " in text for one in found for text in one.sentences):
        return []
    over = f"{counted(tests, 'test')}, {CORRECTIONS[how.correction]}"
    return [
        Text(
            f"p is corrected ({over}), intervals are not: one may be clear of 0 where p is above {how.alpha:g}; then "
            "nothing is claimed."
        )
    ]


def _unmeasured(model: Model) -> list[Block]:
    """Families that were wanted for what they say first, and have nothing to say."""
    analysis = model.diagnosis.analysis
    wanted = dict.fromkeys([*([analysis.lead] if analysis.lead else []), *(analysis.families or ())])
    words = {"rigidity": "verdict on rigidity"}
    return [
        Text(f"There is no {words.get(family, f'finding of {family}')}: {model.diagnosis.passed_over[family]}.")
        for family in wanted
        if family in model.diagnosis.passed_over and family in (analysis.lead, "rigidity")
    ]


def verdicts(result: xr.Dataset, confidence: float) -> Verdicts:
    """A card per cell of a rigidity result, whose intervals are at this level; the baseline last."""
    rows = []
    patterns_seen = seen(result)
    for i in range(result.sizes["cell"]):
        one = result.isel(cell=i)
        rows.append((one, str(one["cell"].values), str(one["pattern"].values), _badge(one, patterns_seen[i])))
    rows.sort(key=lambda row: row[2] == patterns.BASELINE)
    counts = {
        int(one[f"{str(one['ad_judged_by'].values) if key == 'ad' else find_metric(key).scalar}_n"].values)
        for one, _, pattern, _ in rows
        for key, _ in _COLUMNS
        if not (pattern == patterns.BASELINE and find_metric(key).relative)
    }
    alike = len(counts) == 1 and counts != {0}  # then n is said once, and not in every cell
    told = [
        Verdict(name, pattern, short, str(one["sentence"].values), _facts(one, pattern, not alike))
        for one, name, pattern, short in rows
    ]
    frame = pd.DataFrame(
        [
            {
                "cell": name,
                "pattern": pattern,
                "sentence": str(one["sentence"].values),
                "baseline": str(one["baseline"].values),
                "baseline_note": str(one["baseline_note"].values),
                "ad_judged_by": str(one["ad_judged_by"].values),
                **{
                    f"{key}_{end}": float(one[f"{key}_{end}"].values)
                    for key in ("ad", "ad_restricted", "pd", "sfr_rel", "sfr")
                    for end in ("mean", "low", "high", "n")
                },
            }
            for one, name, pattern, _ in rows
        ]
    )
    shown = [find_metric(key) for key in ("ad_restricted", *(name for name, _ in _COLUMNS))]
    made = [interval_of(metric, int(one[f"{metric.scalar}_n"].values)) for one, *_ in rows for metric in shown]
    caption = f"Mean over seeds, in brackets its {interval_words(made, confidence)}. {_CAPTION}"
    each = f"{caption} n = {counts.pop()} everywhere." if alike else caption
    return Verdicts("verdicts", "Verdicts", tuple(told), frame, each)


_CAPTION = (
    "↑ higher is better, ↓ lower is better, →0 both sides of zero are findings. Benign transfer speaks of PD and "
    "SFR_rel only, not of AD."
)
_COLUMNS = (
    ("ad", "later than the baseline by"),
    ("pd", "ends lower by"),
    ("sfr_rel", "leans on the shortcut more by"),
    ("sfr", "masking the shortcut costs"),
    ("patched_accuracy", "accuracy with the shortcut"),
)
"""What stands beside a verdict, and what it means."""


def _badge(one: xr.Dataset, pattern: str) -> str:
    if pattern != patterns.BASELINE and not str(one["baseline"].values):
        return "no baseline"
    return SHORT.get(pattern, pattern)


def _facts(one: xr.Dataset, pattern: str, with_n: bool) -> tuple[tuple[str, str], ...]:
    """(label and meaning, value with interval and n) of every column; the baseline has no triplet."""
    found = []
    for name, meaning in _COLUMNS:
        metric = find_metric(name)
        blank = pattern == patterns.BASELINE and metric.relative
        value = "–" if blank else _delay(one, with_n) if name == "ad" else _value(one, name, with_n)
        found.append((f"{label(metric)}\n{meaning}", value))
    return tuple(found)


def _delay(one: xr.Dataset, with_n: bool) -> str:
    """AD, or where seeds are censored that within the budget, which counts them."""
    judged = str(one["ad_judged_by"].values)
    if math.isnan(float(one[f"{judged}_mean"].values)):
        return "unknown\nthreshold never reached" if judged == "ad_restricted" else "unknown"
    text = _value(one, judged, with_n)
    if judged == "ad":
        return text
    return f"{text}, within {number(float(one['budget'].values)).removesuffix('.000')} epochs"


def _value(one: xr.Dataset, name: str, with_n: bool) -> str:
    metric = find_metric(name)
    mean, low, high, n = (float(one[f"{metric.scalar}_{end}"].values) for end in ("mean", "low", "high", "n"))
    scale = size_of(metric)
    return estimate(mean, low, high, int(n) if with_n or no_width(low, high, scale) else None, scale=scale)


def _chart(model: Model) -> list[Block]:
    """AD, PD and SFR_rel with intervals, a panel each; nothing where no learner is compared."""
    frame = model.figure_data("eri_summary")
    if frame.empty:
        return []
    about = figures.describe("eri_summary")
    panels = []
    for metric, part in frame.groupby("metric", sort=False):
        ran, never = (part.groupby("cell", sort=False)["censored"].agg(how) for how in ("size", "sum"))
        empty = set(part.loc[part["mean"].isna(), "cell"])
        notes = dict.fromkeys(empty, "no value")
        notes |= {cell: f"{never[cell]} of {ran[cell]} seeds censored" for cell in never.index[never > 0]}
        title = label(find_metric(str(metric)))
        panels.append(estimates_panel(part, model.keys, title=title, notes=notes, hollow=set(never.index[never > 0])))
    return [
        Chart(
            name="eri_summary",
            title=about.title,
            panels=tuple(panels),
            frame=frame,
            caption="Each learner against the baseline, seed by seed: a small dot is a seed, the marker the mean with "
            f"its {interval_words(frame['interval'], frame['confidence'].iloc[0])}. Right of 0 is later (AD), "
            "worse (PD), more reliant on the shortcut (SFR_rel). Hollow: some seeds never reached the threshold "
            "(censored); AD then is that within the budget, which counts them.",
            alt=_alt(frame),
            figure="eri_summary",
        )
    ]


def _alt(frame: pd.DataFrame) -> str:
    parts = []
    for metric, part in frame.groupby("metric", sort=False):
        once, declared = part.drop_duplicates("cell"), find_metric(str(metric))
        told = [
            f"{line.cell} {one_line(estimate(line.mean, line.low, line.high, int(line.n), scale=size_of(declared)))}"
            for line in once.itertuples()
        ]
        parts.append(f"{label(declared)}: {'; '.join(told)}")
    return "Means with intervals beside a line at 0. " + ". ".join(parts) + "."
