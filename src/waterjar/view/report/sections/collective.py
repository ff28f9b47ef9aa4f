"""Is the collective more than its parts, which part does what, and what do routing, fingerprints and anchors say?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from waterjar.diagnose.registry import find_family
from waterjar.view import figures
from waterjar.view.figures._collective import last_places
from waterjar.view.figures.contributions import BARS, PAIRS
from waterjar.view.figures.emergence import COURSE, RATIO, ratio_axis
from waterjar.view.numbers import counted, estimate, listed, long_label, no_width, number
from waterjar.view.report.blocks import Block, Callout, Chart, Heading, Items, Key, Table, Text
from waterjar.view.report.charts.bars import bars_panel
from waterjar.view.report.charts.curves import curve, curves_panel
from waterjar.view.report.charts.matrix import matrix_panel
from waterjar.view.report.charts.theme import keys_of, label_names
from waterjar.view.report.inside import inside, stream_keys
from waterjar.view.report.leads.collective import (
    ALL_FEATURES,
    CONTROLS,
    Judged,
    end_estimates,
    judged,
    level_words,
    mean_of,
    named_cells,
    sentences,
    warnings,
    weak_heads,
)
from waterjar.view.report.measured import metric_table
from waterjar.view.report.model import Model
from waterjar.view.style import COLOURS

TITLE = "Collectives"
ORDER = 25
FAMILY = "collective"
_BESIDE = ("error_reduction", "ensemble_improvement_rate", "disagreement_error_ratio")
_MADE = "ρ among others and alone, its rise and plateau, error reduction, EIR and DER"
_SHORT = {
    "emergence_ratio": "ρ, streams among others",
    "emergence_ratio_isolated": "ρ, streams alone",
    "emergence_ratio_probe": "ρ, linear probes",
    ALL_FEATURES: "ρ, probe of all features",
}
_SHOWN = {**CONTROLS, ALL_FEATURES: "a linear probe of all streams' features at once"}


def blocks(model: Model) -> list[Block]:
    """Heads that say nothing first, then the finding, controls side by side, streams, and what goes on inside."""
    if FAMILY not in model.diagnosis.results:
        return []
    said = sentences(model, brief=False)
    flags = warnings(judged(model))
    made: list[Block] = [Callout("warning", "Heads that are no control", text) for text in flags]
    made += [Text(text) for text in said[len(flags) :]]
    made += [*_emergence(model), *_controls(model), *_streams(model), *_contributions(model), *inside(model)]
    made += metric_table(model, FAMILY, "All metrics of collectives at the end of training", caption=_caption(model))
    return [*made, *_remarks(model)]


def _caption(model: Model) -> str:
    """Below the table of all metrics, which has numbers that are set aside elsewhere."""
    weak = [one.cell for one in judged(model) if one.weak]
    aside = f" Of {listed(weak)} all that is made of streams' own heads is set aside: {_MADE}." if weak else ""
    return f"↑ higher is better, ↓ lower.{aside}"


def _emergence(model: Model) -> list[Block]:
    frame = model.figure_data("emergence")
    if frame.empty:
        return []
    about = figures.describe("emergence")
    panels: list[dict[str, Any]] = []
    streams = list(dict.fromkeys(frame.loc[frame["kind"] == "stream", "what"]))
    keys = stream_keys(streams)
    ratios = {name: Key(f"r{i}", _SHORT[name], COLOURS[(6, 5, 1, 3)[i]], key.dash, key.symbol)
              for i, (name, key) in enumerate(keys_of(_SHOWN).items())}  # fmt: skip
    for cell, part in frame.groupby("cell", sort=False):
        name = label_names([str(cell) or "this run"])[str(cell) or "this run"]
        course = part[(part["panel"] == COURSE) & (part["what"] != "chance") & part["mean"].notna()]
        lines = [curve(rows, str(what), "total_epoch") for what, rows in course.groupby("what", sort=False)]
        chance = part.loc[part["what"] == "chance", "mean"]
        level = float(chance.iloc[-1]) if len(chance) else None
        panels.append(curves_panel(lines, keys, title=f"{name}: accuracy ↑", x="total epoch", level=level))
        own = part[(part["panel"] == RATIO) & np.isfinite(part["mean"])]
        lines = [curve(rows, str(what), "total_epoch") for what, rows in own.groupby("what", sort=False)]
        panels.append(curves_panel(lines, ratios, title=f"{name}: ρ ↑", x="total epoch", level=1.0))
        if len(own):
            _ratio_axis(panels[-1], own["mean"])
    shown = dict.fromkeys([*_legend(keys, streams), *(ratios[r] for r in ratios if (frame["what"] == r).any())])
    caption = (
        "Accuracy of the collective and of each stream (dotted: one constant answer), and ρ, accuracy of the "
        "collective over that of a control; dotted at 1, where it is no better. "
        f"Bands: {level_words(model, FAMILY)} over seeds, of one seed over samples."
    )
    return [
        Chart("emergence", about.title, tuple(panels), frame, caption, " ".join(sentences(model)), tuple(shown),
              figure="emergence")
    ]  # fmt: skip


def _ratio_axis(panel: dict[str, Any], ratios: pd.Series) -> None:
    """The axis of a panel of ratios as the figure has it; bands that leave it are cut, also at 0 on a log scale."""
    low, high, ticks = ratio_axis(ratios)
    axis = panel["layout"]["yaxis"]
    axis["range"] = [low, high]
    if ticks:
        axis |= {"type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": ticks}
        for trace in panel["data"]:
            trace["y"] = [max(value, low) for value in trace["y"]]


def _legend(keys: dict[str, Key], streams: list[str]) -> list[Key]:
    return [keys["collective"], *dict.fromkeys(keys[name] for name in streams)]


def _controls(model: Model) -> list[Block]:
    """The ratio against each control, side by side."""
    found = judged(model)
    rows, numbers = [], []
    for name, words in _SHOWN.items():
        if not any(name in one.ratios for one in found):
            continue
        texts = []
        for one in found:
            ratio = one.ratios.get(name)
            if ratio is None:
                texts.append("not recorded")
                continue
            numbers.append(
                (one.cell, name, ratio.mean, ratio.low, ratio.high, ratio.n, *ratio.samples, name in one.fair)
            )
            text = estimate(ratio.mean, ratio.low, ratio.high)
            if np.isfinite(ratio.samples[0]):
                low, high = (number(bound) for bound in ratio.samples)
                text += f"{'; ' if chr(10) in text else chr(10)}samples {low} to {high}"
            texts.append(text if name in one.fair or name == ALL_FEATURES else f"{text}; set aside")
        rows.append((f"ρ ↑ against\n{words}", *texts))
    if not rows:
        return []
    rows += [
        (long_label(metric), *(_over_seeds(model, metric.name, one) for one in found))
        for metric in (find_family(FAMILY).metrics[name] for name in _BESIDE)
    ]
    columns = ["cell", "control", "mean", "low", "high", "n", "sample_low", "sample_high", "fair"]
    caption = (
        f"Accuracy of the collective over that of each control: mean over seeds with its {level_words(model, FAMILY)} "
        "interval, which speaks of the method; samples: how far the intervals over samples of single networks reach. "
        "Set aside: heads at chance, or far below a linear probe of the same features. Streams alone: no other stream "
        "leaks in. Linear probes: each stream's features under a head that was trained. Where a stream passes "
        "50 %, ρ cannot reach 2: the share of its error that is taken away says more."
    )
    names = tuple(one.cell for one in found)
    return [
        Table("collective_controls", "The ratio against every control", ("control", *names), tuple(rows),
              pd.DataFrame(numbers, columns=columns), caption, tuple(range(1, len(names) + 1)))
    ]  # fmt: skip


def _over_seeds(model: Model, name: str, one: Judged) -> str:
    line = mean_of(model, name, one.cell)
    if line is None:
        return "–"
    text = estimate(line["mean"], line["low"], line["high"], int(line["n"]))
    return f"{text}; set aside" if one.weak else text


_COLUMNS = {
    "individual_accuracy": "among others ↑",
    "individual_accuracy_isolated": "alone ↑",
    "individual_accuracy_probe": "linear probe ↑",
    "nll_individual": "NLL (nat) ↓",
    "gradient_contribution": "gradient norm",
}


def _streams(model: Model) -> list[Block]:
    parts, found = [], []
    for cell, one in named_cells(model, FAMILY):
        names = [str(name) for name in one["stream"].values]
        tables = {name: end_estimates(one, name, "stream") for name in _COLUMNS if name in one}
        known = end_estimates(one, "head_at_chance", "stream")["n"]
        weak = weak_heads(one, last_places(one))
        for i, name in enumerate(names):
            lines = {key: table.iloc[i] for key, table in tables.items()}
            if all(line["n"] == 0 for line in lines.values()):
                continue  # a stream of another cell
            found.append((cell, name, list(lines.values()), (weak[i] or "above chance") if known[i] else "–"))
            parts += [
                {
                    "cell": cell,
                    "stream": name,
                    "metric": key,
                    **{k: line[k] for k in ("mean", "low", "high", "n", "bounds")},
                }
                for key, line in lines.items()
            ]
    if not found:
        return []
    columns = ("learner", "stream", *(words for key, words in _COLUMNS.items() if key in tables), "its head")
    counts = {part["n"] for part in parts} - {0}
    alike = counted(int(next(iter(counts))), "seed") if len(counts) == 1 else ""
    rows = [(cell, name, *(_cell(line, with_n=not alike) for line in lines), flag) for cell, name, lines, flag in found]
    caption = (
        f"Accuracy of each stream at the end, mean over {alike or 'seeds'} with its {level_words(model, FAMILY)} "
        "interval (over seeds; of one seed over samples): its own head among the other streams, with no other stream "
        "around, and a linear probe trained on its features. Not above chance: the head is not surely above one "
        "constant answer. Far below its probe: it is less than half as far above one constant answer, intervals apart."
    )
    numeric = tuple(range(2, len(columns) - 1))
    return [Table("streams", "Streams", columns, tuple(rows), pd.DataFrame(parts), caption, numeric)]


def _cell(line: Any, *, with_n: bool) -> str:
    if np.isnan(line["mean"]):
        return str(line["reason"]) or "–"
    low, high = (line["low"], line["high"]) if line["bounds"] else (np.nan, np.nan)
    seeds = with_n or no_width(low, high, 1.0)
    return estimate(line["mean"], low, high, int(line["n"]) if seeds else None)


def _contributions(model: Model) -> list[Block]:
    frame = model.figure_data("contributions")
    if frame.empty:
        return []
    about = figures.describe("contributions")
    keys = {
        kind: Key(f"b{i}", words, COLOURS[(0, 5)[i]], symbol="square") for i, (kind, words) in enumerate(BARS.items())
    }
    panels = []
    pairs = frame.loc[frame["metric"] == PAIRS, "mean"]
    reach = float(np.nanmax(np.abs(pairs))) if pairs.notna().any() else 1.0
    for cell, part in frame.groupby("cell", sort=False):
        title = label_names([str(cell) or "this run"])[str(cell) or "this run"]
        rows = part[part["metric"] != PAIRS].rename(columns={"stream": "name", "metric": "kind"})
        if rows["mean"].notna().any():
            names = list(dict.fromkeys(rows["name"]))
            panels.append(bars_panel(rows, names, keys, title=f"{title}: contributions", x="accuracy ↑"))
        square = part[(part["metric"] == PAIRS) & part["mean"].notna()]
        if len(square):
            panels.append(_interactions(square, title, reach or 1.0))
    said = [
        f"{cell or 'this run'}: " + ", ".join(f"{line.stream} {number(line.mean)}" for line in part.itertuples())
        for cell, part in frame[(frame["metric"] == "shapley_accuracy") & frame["mean"].notna()].groupby(
            "cell", sort=False
        )
    ]
    alt = f"Bars per stream, and squares for pairs. Shapley values: {'; '.join(said)}."
    return [
        Chart("contributions", about.title, tuple(panels), frame, about.caption, alt, tuple(keys.values()),
              figure="contributions")
    ]  # fmt: skip


def _interactions(square: pd.DataFrame, title: str, reach: float) -> dict[str, Any]:
    names = list(dict.fromkeys(square["stream"]))
    grid = square.pivot(index="stream", columns="other_stream", values="mean").reindex(index=names, columns=names)
    values = grid.to_numpy(float)
    texts = [["" if np.isnan(v) else f"{v:.2f}".replace("-", "−") for v in line] for line in values]
    shown = label_names(names)
    hover = [[f"{shown[a]} and {shown[b]}: {'itself' if a == b else number(values[i, j])}" for j, b in enumerate(names)]
             for i, a in enumerate(names)]  # fmt: skip
    return matrix_panel(
        values.tolist(), names, names, title=f"{title}: interactions", x="", y="",
        texts=texts if len(names) <= 8 else None, hover=hover,
        limits=(-reach, reach), diverging=True, height=130 + 40 * min(len(names), 12),
    )  # fmt: skip


def _remarks(model: Model) -> list[Block]:
    """The expected course in words, and what was passed over."""
    made: list[Block] = []
    for name, head in (("collective_course", "The course of training"), ("collective_remarks", "Passed over, and why")):
        items = tuple((cell, str(one[name].values)) for cell, one in named_cells(model, FAMILY)
                      if name in one and str(one[name].values))  # fmt: skip
        made += [Heading(head), Items(items)] if items else []
    return made
