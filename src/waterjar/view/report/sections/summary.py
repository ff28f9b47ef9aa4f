"""The first screen: what was found, learner by learner, in plain words."""

from __future__ import annotations

import math

import pandas as pd
import xarray as xr

from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.view.report.blocks import Block, Callout, Heading, Items, Text, Verdict, Verdicts
from waterjar.view.report.eri_chart import eri_summary_chart
from waterjar.view.report.headline import SHORT, headline, seen
from waterjar.view.report.measured import summary_frame
from waterjar.view.numbers import counted, estimate, label, listed, number, one_line
from waterjar.view.report.story import Story

TITLE = "What was found"
ORDER = 10


def appears(story: Story) -> bool:
    """Always: a report that has nothing to tell says so here."""
    return True


def blocks(story: Story) -> list[Block]:
    """Findings, a verdict per learner, and the picture of them."""
    if not story.study.entries:
        return [_nothing(story)]
    made: list[Block] = []
    result = story.result("rigidity")
    if result is not None:
        said = headline(result, story.settings("rigidity"))
        made += [Callout("note", "In short", " ".join(said))] if said else []
        told = verdicts(result)
        made += [told, *eri_summary_chart(story), Heading("Learner by learner")]
        made.append(Items(tuple((one.name, one.sentence) for one in told.verdicts)))
    else:
        made += _without_rigidity(story)
    return made


def _nothing(story: Story) -> Callout:
    damaged = len(story.states("damaged"))
    if damaged:
        return Callout(
            "bad", "Nothing to show", f"{counted(damaged, 'run')} cannot be read; see Seals for what is wrong."
        )
    return Callout(
        "note",
        "The study is empty",
        "No run has been recorded in it yet. Run the study, or record runs into its folder, and make the report again.",
    )


def _without_rigidity(story: Story) -> list[Block]:
    why = "" if story.diagnosis is None else story.diagnosis.passed_over.get("rigidity", "")
    made: list[Block] = []
    frame = summary_frame(story, "continual", ["average_accuracy"])
    known = frame[frame["n"] > 0] if len(frame) else frame
    if len(known):
        texts = [
            f"{line.cell} {one_line(estimate(line.mean, line.low, line.high, line.n))}" for line in known.itertuples()
        ]
        made.append(Callout("note", "In short", f"Average accuracy over tasks at the end: {listed(texts)}."))
    if why:
        made.append(Text(f"There is no verdict on rigidity: {why}."))
    return made


def verdicts(result: xr.Dataset) -> Verdicts:
    """A card per cell of a rigidity result; the baseline last."""
    rows = []
    patterns_seen = seen(result)
    for i in range(result.sizes["cell"]):
        one = result.isel(cell=i)
        rows.append((one, str(one["name"].values), str(one["pattern"].values), _badge(one, patterns_seen[i])))
    rows.sort(key=lambda row: row[2] == patterns.BASELINE)
    counts = {int(one[f"{find_metric(key).scalar}_n"].values) for one, _, _, _ in rows for key, _ in _COLUMNS} - {0}
    alike = len(counts) == 1  # then n is said once, and not in every cell
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
    each = f"{_CAPTION} n = {counts.pop()} everywhere." if alike else _CAPTION
    return Verdicts("verdicts", "Verdicts", tuple(told), frame, each)


_CAPTION = (
    "Mean over seeds, in brackets its 95 % t interval. ↑ higher is better, ↓ lower is better, →0 any distance from 0 "
    "says something. Benign transfer speaks of PD and SFR_rel only, not of AD."
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
    scalar = find_metric(name).scalar
    mean, low, high, n = (float(one[f"{scalar}_{end}"].values) for end in ("mean", "low", "high", "n"))
    return estimate(mean, low, high, int(n) if with_n or low == high else None)
