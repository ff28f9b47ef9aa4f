"""What is left under shifts, under attacks and without some streams, beside controls at equal clean accuracy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from waterjar.view import figures
from waterjar.view.figures._collective import measured
from waterjar.view.figures._controls import WORDS, Weak, notes_on, weak_models
from waterjar.view.figures.stream_failure import ALL, HALF
from waterjar.view.numbers import estimate, listed, number
from waterjar.view.report.blocks import Block, Callout, Chart, Items, Key, Table, Text
from waterjar.view.report.charts.bars import bars_panel
from waterjar.view.report.charts.curves import curve, curves_panel
from waterjar.view.report.charts.theme import keys_of, label_names
from waterjar.view.report.leads.collective import distrusted, level_words, named_cells
from waterjar.view.report.leads.robustness import sentences
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model
from waterjar.view.style import COLOURS

TITLE = "Robustness"
ORDER = 28
FAMILY = "robustness"
_MOST_PANELS = 16
_TITLE = 30
"""Signs of a line of a title: as many as the narrowest panel is wide."""


def blocks(model: Model) -> list[Block]:
    """The finding, curves over severity, attacks and the signs against them, and streams that fail."""
    if FAMILY not in model.diagnosis.results:
        return []
    others = model.study.other_models
    more = f"; likewise {len(others) - 1} more, which waterjar diagnose names" if len(others) > 1 else ""
    made: list[Block] = [Callout("warning", "Of another network", f"{others[0]}{more}.")] if others else []
    made += _flags(model)
    said = sentences(model)
    made += [Items(tuple(said))] if said else []
    if not said:
        made.append(Text("Nothing was compared with a control: how robust it is, numbers below tell of it alone."))
    none = "".join(f" {note}." for note in notes_on(_weak(model)))
    made += [*_shifts(model, none), *_failures(model)]
    caption = f"↑ higher is better, ↓ lower.{none}"
    return [*made, *metric_table(model, FAMILY, "Robustness at the last probe", caption=caption)]


def _weak(model: Model) -> Weak:
    return weak_models(model.diagnosis, measured(model.diagnosis, FAMILY, {}))


def _flags(model: Model) -> list[Block]:
    """Signs that attacks fail for another reason than robustness."""
    items = []
    for cell, one in named_cells(model, FAMILY):
        own = distrusted(one)
        if own:
            items.append(f"{cell}: {listed(own)}")
    if not items:
        return []
    text = f"Signs that slopes are hidden, so that attacks fail where it is not robust. {'; '.join(items)}."
    return [Callout("warning", "Attacks are not to be trusted", text)]


def _keys(models: list[str]) -> dict[str, Key]:
    return {
        name: Key(f"m{i}", WORDS.get(name, name), key.colour, key.dash, key.symbol)
        for i, (name, key) in enumerate(keys_of(models).items())
    }


def _shifts(model: Model, none: str) -> list[Block]:
    frame = model.figure_data("shift_severity")
    if frame.empty:
        return []
    about = figures.describe("shift_severity")
    keys = _keys(list(dict.fromkeys(frame["model"])))
    ladders = set(frame.loc[frame["kind"] == "shift", "ladder"])
    titles = _titles(frame)
    panels: list[dict[str, Any]] = []
    for (cell, ladder, shift), part in frame[frame["kind"] == "shift"].groupby(
        ["cell", "ladder", "condition"], sort=False
    ):
        lines = [curve(rows, str(name), "severity") for name, rows in part.groupby("model", sort=False)]
        what = f"{shift} ({ladder})" if len(ladders) > 1 else str(shift)
        panel = curves_panel(lines, keys, title=titles(cell, what), x="severity (0: clean)", y="accuracy ↑", height=250)
        panel["layout"]["yaxis"]["range"] = [0.0, 1.02]
        panels.append(panel)
    for cell, part in frame[frame["kind"] == "attack"].groupby("cell", sort=False):
        rows = part.assign(name=[f"{line.condition} {line.eps}" for line in part.itertuples()], kind=part["model"])
        names = list(dict.fromkeys(rows["name"]))
        panels.append(bars_panel(rows, names, keys, title=titles(cell, "attacks"), x="accuracy ↑", marks=True))
    more = (
        f" The first {_MOST_PANELS} of {len(panels)} panels are shown; the data have all."
        if len(panels) > _MOST_PANELS
        else ""
    )
    return [
        Chart("shift_severity", about.title, tuple(panels[:_MOST_PANELS]), frame, about.caption + none + more,
              _alt(frame), tuple(keys.values()), figure="shift_severity")
    ]  # fmt: skip


def _titles(frame: pd.DataFrame) -> Callable[[str, str], str]:
    """(cell, condition) -> the title of its panel: what differs in lines of their own, so that neither is cut off."""
    cells = label_names(dict.fromkeys(map(str, frame["cell"])), _TITLE)

    def title(cell: str, what: str) -> str:
        shown = next(iter(label_names([what.replace("_", " ")], _TITLE).values()))
        return shown if len(cells) == 1 else f"{cells[str(cell)]}<br>{shown}"

    return title


def _alt(frame: pd.DataFrame) -> str:
    worst = frame[(frame["kind"] == "shift") & (frame["severity"] == frame["severity"].max())]
    told = [
        f"{cell}, {WORDS.get(str(name), str(name))} {number(float(rows['mean'].mean()))}"
        for (cell, name), rows in worst.groupby(["cell", "model"], sort=False)
    ]
    return f"Accuracy under shifts and attacks. Mean over shifts at the highest severity: {'; '.join(told) or 'none'}."


def _failures(model: Model) -> list[Block]:
    frame = model.figure_data("stream_failure")
    if frame.empty:
        return []
    about = figures.describe("stream_failure")
    words = {ALL: "all streams", HALF: "a random half"}
    rows = frame.assign(
        name=[words.get(line.failure) or f"without {line.stream or line.failure}" for line in frame.itertuples()],
        kind=[line.failure if line.failure in words else "" for line in frame.itertuples()],
    )
    keys = {
        ALL: Key("f0", words[ALL], COLOURS[0], symbol="circle"),
        "": Key("f1", "without one of them", COLOURS[1], symbol="square"),
        HALF: Key("f2", words[HALF], COLOURS[6], symbol="diamond"),
    }
    panels, titles = [], label_names(dict.fromkeys(map(str, frame["cell"])), _TITLE)
    for cell, part in rows.groupby("cell", sort=False):
        whole = part.loc[part["failure"] == ALL, "mean"]
        level = (float(whole.iloc[0]), COLOURS[0]) if whole.notna().any() else None
        panels.append(
            bars_panel(part, list(part["name"]), keys, title=titles[str(cell)], x="accuracy ↑", marks=True, level=level)
        )
    table = tuple(
        (str(line.cell), line.name, estimate(line.mean, line.low, line.high, int(line.n)), number(line.lost))
        for line in rows.itertuples(index=False)
    )
    told = "; ".join(f"{line[0]} {line[1]} {line[2].partition(chr(10))[0]}" for line in table[:12])
    return [
        Chart("stream_failure", about.title, tuple(panels), frame, about.caption,
              f"Accuracy when streams fail: {told}.", tuple(keys.values()), figure="stream_failure"),
        Table("failures", "When streams fail", ("learner", "streams", "accuracy ↑", "lost ↓"), table, frame,
              f"Mean over seeds with its {level_words(model, FAMILY)} interval; of one seed over samples, of the half "
              "over draws.", (2, 3)),
    ]  # fmt: skip
