"""What is left under shifts, under attacks and without some streams, beside controls at equal clean accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from waterjar.view import figures
from waterjar.view.figures._collective import at_places, last_places, own_last
from waterjar.view.figures.stream_failure import ALL, HALF
from waterjar.view.numbers import counted, estimate, listed, number
from waterjar.view.report.blocks import Block, Callout, Chart, Items, Key, Table, Text
from waterjar.view.report.charts.bars import bars_panel
from waterjar.view.report.charts.curves import curve, curves_panel
from waterjar.view.report.charts.theme import keys_of, label_names
from waterjar.view.report.emergent import distrusted, level_words, mean_of, named_cells
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model

TITLE = "Robustness"
ORDER = 28
FAMILY = "robustness"
_COLLECTIVE = "collective"
_GAINS = {"robustness_gain": "under shifts", "adversarial_gain": "under attack"}
_MODELS = {"collective": "collective", "best_stream": "best stream", "ensemble": "matched ensemble"}
_MOST_PANELS = 16


def lead(model: Model) -> list[str]:
    """Whether each is more robust than its control, at equal clean accuracy, and how sure that is."""
    said = []
    chances = _chances(model)
    for cell, one in named_cells(model, FAMILY):
        control = _control(model, one)
        lines = {gain: mean_of(model, gain, cell) for gain in _GAINS}
        known = {gain: line for gain, line in lines.items() if line is not None}
        at_chance = _at_chance(one, chances.get(cell, np.nan))
        if known and at_chance:
            said.append(f"{cell} {at_chance}: whether it is more robust than the {control} cannot be told.")
            continue
        said += [_sentence(model, one, cell, gain, _GAINS[gain], control, line) for gain, line in known.items()]
    return said


def _chances(model: Model) -> dict[str, float]:
    """Cell -> accuracy of one constant answer, the highest of its seeds; of collectives whose labels were recorded."""
    if _COLLECTIVE not in model.diagnosis.results:
        return {}
    found = {cell: at_places(one, "chance", last_places(one))[0] for cell, one in named_cells(model, _COLLECTIVE)}
    return {cell: float(np.nanmax(values)) for cell, values in found.items() if np.isfinite(values).any()}


def _at_chance(one: Any, chance: float) -> str:
    """What is wrong with a model that is not surely above one constant answer in some seed; empty where it is above."""
    if np.isnan(chance) or "model_clean_accuracy" not in one or not one.sizes.get("model"):
        return ""
    own = one.isel(model=0)
    clean, low = (at_places(own, f"model_clean_accuracy{end}", own_last(own, "model_clean_accuracy"))[0]
                  for end in ("", "_low"))  # fmt: skip
    surely = np.where(np.isnan(low), clean, low) if len(low) else clean
    if not (surely <= chance).any():
        return ""
    worst = float(clean[np.nanargmin(surely)])
    return f"is not surely above one constant answer (accuracy {number(worst)}, chance {number(chance)})"


def _control(model: Model, one: Any) -> str:
    """The model that gains are over, as it was set, or as it is chosen."""
    others = [str(name) for name in one["other_model"].values] if "other_model" in one.coords else []
    usual = next((name for name in ("ensemble", "best_stream", *others) if name in others), "control")
    name = str(model.diagnosis.settings(FAMILY).get("control") or usual)
    return _MODELS.get(name, name)


def _sentence(model: Model, one: Any, cell: str, gain: str, where: str, control: str, line: Any) -> str:
    mean, low, high, n = (float(line[key]) for key in ("mean", "low", "high", "n"))
    how = f"{level_words(model, FAMILY)} interval over {counted(int(n), 'seed')}"
    if n < 2:
        low, high = (
            float(np.nanmean(at_places(one, f"{gain}_{end}", own_last(one, gain))[0])) for end in ("low", "high")
        )
        how = "interval over samples, of one network: other seeds may differ"
    verdict = "is not shown to be more robust than"
    signs = distrusted(one) if gain == "adversarial_gain" else []
    doubt = ""
    if low > 0 and signs:
        doubt = f" Attacks on it are not to be trusted ({listed(signs)})."
    elif low > 0:
        verdict = "is more robust than"
    elif high < 0:
        verdict = "is less robust than"
    bounds = "" if np.isnan(low) else f" [{number(low)}, {number(high)}]"
    return (
        f"{cell} {verdict} the {control} {where}: of samples that all models have right when clean, the share that "
        f"stays right differs by {number(mean)}{bounds} ({how}).{doubt}"
    )


def blocks(model: Model) -> list[Block]:
    """The finding, curves over severity, attacks and the signs against them, and streams that fail."""
    if FAMILY not in model.diagnosis.results:
        return []
    made: list[Block] = [*_flags(model)]
    said = lead(model)
    made += [Items(tuple(said))] if said else []
    if not said:
        made.append(Text("Nothing was compared with a control: how robust it is, numbers below tell of it alone."))
    made += [*_shifts(model), *_failures(model)]
    return [*made, *metric_table(model, FAMILY, "Robustness at the last probe")]


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
        name: Key(f"m{i}", _MODELS.get(name, name), key.colour, key.dash, key.symbol)
        for i, (name, key) in enumerate(keys_of(models).items())
    }


def _shifts(model: Model) -> list[Block]:
    frame = model.figure_data("shift_severity")
    if frame.empty:
        return []
    about = figures.describe("shift_severity")
    keys = _keys(list(dict.fromkeys(frame["model"])))
    ladders = set(frame.loc[frame["kind"] == "shift", "ladder"])
    panels: list[dict[str, Any]] = []
    for (cell, ladder, shift), part in frame[frame["kind"] == "shift"].groupby(
        ["cell", "ladder", "condition"], sort=False
    ):
        lines = [curve(rows, str(name), "severity") for name, rows in part.groupby("model", sort=False)]
        whole = f"{cell}: {shift} ({ladder})" if len(ladders) > 1 else f"{cell}: {shift}"
        title = label_names([whole.replace("_", " ")], 25)
        panel = curves_panel(
            lines, keys, title=next(iter(title.values())), x="severity (0: clean)", y="accuracy ↑", height=250
        )
        panel["layout"]["yaxis"]["range"] = [0.0, 1.02]
        panels.append(panel)
    for cell, part in frame[frame["kind"] == "attack"].groupby("cell", sort=False):
        rows = part.assign(name=[f"{line.condition} {line.eps}" for line in part.itertuples()], kind=part["model"])
        title = label_names([f"{cell}: attacks"], 25)
        names = list(dict.fromkeys(rows["name"]))
        panels.append(bars_panel(rows, names, keys, title=next(iter(title.values())), x="accuracy ↑", marks=True))
    more = (
        f" The first {_MOST_PANELS} of {len(panels)} panels are shown; the data have all."
        if len(panels) > _MOST_PANELS
        else ""
    )
    return [
        Chart("shift_severity", about.title, tuple(panels[:_MOST_PANELS]), frame, about.caption + more, _alt(frame),
              tuple(keys.values()), figure="shift_severity")
    ]  # fmt: skip


def _alt(frame: pd.DataFrame) -> str:
    worst = frame[(frame["kind"] == "shift") & (frame["severity"] == frame["severity"].max())]
    told = [
        f"{cell}, {_MODELS.get(str(name), str(name))} {number(float(rows['mean'].mean()))}"
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
        kind="x",
    )
    key = {"x": Key("f", "accuracy", "#0072B2", symbol="circle")}
    panels = []
    for cell, part in rows.groupby("cell", sort=False):
        title = label_names([str(cell)])[str(cell)]
        panels.append(bars_panel(part, list(part["name"]), key, title=title, x="accuracy ↑", marks=True))
    table = tuple(
        (str(line.cell), line.name, estimate(line.mean, line.low, line.high, int(line.n)), number(line.lost))
        for line in rows.itertuples(index=False)
    )
    told = "; ".join(f"{line[0]} {line[1]} {line[2].partition(chr(10))[0]}" for line in table[:12])
    return [
        Chart("stream_failure", about.title, tuple(panels), frame, about.caption,
              f"Accuracy when streams fail: {told}.", figure="stream_failure"),
        Table("failures", "When streams fail", ("learner", "streams", "accuracy ↑", "lost ↓"), table, frame,
              f"Mean over seeds with its {level_words(model, FAMILY)} interval; of one seed over samples, of the half "
              "over draws.", (2, 3)),
    ]  # fmt: skip
