"""Is the collective more than its parts? Accuracies over training, the emergence ratio, and the end with controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from waterjar.diagnose.over_seeds import mean_table
from waterjar.errors import WaterjarError
from waterjar.view.curves import draw_curve, say
from waterjar.view.figures._collective import (
    ESTIMATE,
    FEW,
    LEVEL,
    SEEDS,
    SHARE,
    Places,
    at_places,
    bounds_note,
    draw_row,
    estimates,
    last_places,
    measured,
    shown_name,
    stream_styles,
)
from waterjar.view.results import Source, by_cell, repeats_of, roots_in
from waterjar.view.style import COLOURS, GREY, LINES, canvas, foot_note, house_style, labels, legend_outside, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "More than its parts?"
CAPTION = (
    "Collective and streams over training; the emergence ratio (1: no better than the best stream, 2: the seed "
    "document's threshold) against streams among the others, alone, and under trained linear probes; the end beside "
    "these controls. Hollow: a head not surely above chance, or far below a linear probe of the same features; a "
    "ratio against it says nothing."
)
NEEDS = ("collective",)
COURSE, RATIO, FINAL = "course", "ratio", "final"
RATIOS = {
    "emergence_ratio": ("best_stream", "best stream, among the others"),
    "emergence_ratio_isolated": ("best_isolated", "best stream, alone"),
    "emergence_ratio_probe": ("best_probe", "best stream, linear probe"),
    "emergence_ratio_concatenated": ("concatenated", "linear probe of all streams"),
}
"""ratio -> its control, and what that is in words."""
_ACCURACIES = {
    "best_stream": "best_individual",
    "best_isolated": "best_individual_isolated",
    "best_probe": "best_individual_probe",
    "concatenated": "concatenated_accuracy",
}
_HEADS = ("best_stream", "best_isolated")
"""Controls that are the streams' own heads."""
_RATIO_STYLES = dict(zip(RATIOS, zip(("#D55E00", "#882255", "#117733", GREY), LINES[:4], strict=True), strict=True))
"""Tol's muted colours beside our own, for lines that are none of the streams'."""
_COLLECTIVE = "collective"
POSITIVE = (0.0, np.inf)
_MANY_ROWS = 12
"""Streams with a row each at the end; more of them share one."""
_TITLE = 56
"""Letters of a cell's name above its row, in two lines: as many as a panel is wide."""
_LOG_FROM = 5.0
_FLAGS = {"at_chance": "not surely above chance", "below_probe": "far below a linear probe of its features"}
"""Why a head is no control."""


def data(source: Source, **settings: Any) -> pd.DataFrame:
    """One row per panel, cell, curve and epoch: panel, cell, kind, what, total_epoch, mean, low, high, n, reason,
    interval, bounds, confidence, at_chance, below_probe.

    `panel` is course (accuracies), ratio or final; `kind` collective, stream, control or ratio; `what` the name of the
    stream or control. `at_chance` is the share of seeds whose head is not surely above one constant answer,
    `below_probe` that of seeds whose head tells far less than a probe of the same features. Bounds are over seeds, of
    one seed over samples. `settings` go to `collective.measure`.
    """
    result = measured(source, "collective", settings)
    parts = [part.assign(cell=cell) for cell, one in by_cell(result) for part in _of_cell(one)]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if not len(table) or not table["mean"].notna().any():
        raise WaterjarError(
            "no answer of a collective can be scored: it needs logits of streams, and labels (streams/logits, "
            "probe_samples/label)"
        )
    columns = ["panel", "cell", "kind", "what", "total_epoch", "mean", "low", "high", "n", "reason", "interval"]
    return table[[*columns, "bounds", "confidence", *_FLAGS]]


def _of_cell(one: xr.Dataset) -> list[pd.DataFrame]:
    names = np.array([str(name) for name in one["stream"].values], object)
    places = last_places(one)
    own = np.isfinite(at_places(one, "individual_accuracy", places, "stream")[0]).any(0)
    parts = [
        _curve(one, "collective_accuracy", SHARE).assign(panel=COURSE, kind=_COLLECTIVE, what=_COLLECTIVE),
        *(
            _curve(one.isel(stream=i), "individual_accuracy", SHARE).assign(panel=COURSE, kind="stream", what=names[i])
            for i in np.flatnonzero(own)
        ),
        _curve(one, "chance", SHARE).assign(panel=COURSE, kind="control", what="chance"),
        *(_curve(one, ratio, POSITIVE).assign(panel=RATIO, kind="ratio", what=ratio) for ratio in RATIOS),
        *(part.assign(panel=FINAL, total_epoch=np.nan) for part in _finals(one, places, names, own)),
    ]
    return [part.assign(**{flag: np.nan for flag in _FLAGS if flag not in part}) for part in parts if len(part)]


def _finals(one: xr.Dataset, places: Places, names: Any, own: Any) -> list[pd.DataFrame]:
    """Collective, controls and streams at the end."""
    whole = estimates(one, "collective_accuracy", places, within=SHARE)
    parts = [whole.assign(kind=_COLLECTIVE, what=_COLLECTIVE)]
    best = {flag: _share(at_places(one, f"best_{flag}", places)[0]) for flag in _FLAGS}
    for control, _ in RATIOS.values():
        made = estimates(one, _ACCURACIES[control], places, within=SHARE)
        parts.append(made.assign(kind="control", what=control, **(best if control in _HEADS else {})))
    each = estimates(one, "individual_accuracy", places, "stream", within=SHARE)
    heads = {flag: _share(at_places(one, f"head_{flag}", places, "stream")[0]) for flag in _FLAGS}
    parts.append(each.assign(kind="stream", what=names, **heads)[own])
    return parts


def _share(flags: Any) -> Any:
    """Share of seeds (seed, ...) that are flagged; NaN where there is none."""
    known = np.isfinite(flags).sum(0)
    return np.divide(np.nansum(flags, 0), known, out=np.full(flags.shape[1:], np.nan), where=known > 0)[()]


def _curve(one: xr.Dataset, name: str, within: tuple[float, float]) -> pd.DataFrame:
    """A variable over epochs: mean and interval over seeds; of one seed the interval over samples."""
    if name not in one:
        return pd.DataFrame({column: [] for column in ESTIMATE})
    there = ~np.isnan(one["total_epoch"].values.astype(float))
    values, codes, _ = repeats_of(one.isel(snapshot=there), name, "snapshot")
    level = one.attrs[LEVEL]
    made = mean_table(values, codes, within=within, confidence=level).assign(confidence=level)
    made["bounds"] = np.where(made["low"].notna(), SEEDS, "")
    if len(values) == 1 and f"{name}_low" in one:
        for end in ("low", "high"):
            bound = repeats_of(one.isel(snapshot=there), f"{name}_{end}", "snapshot")[0]
            made[end] = bound[0] if len(bound) else np.nan
        made["bounds"] = np.where(made["low"].notna(), "samples", "")
    made["total_epoch"] = one["total_epoch"].values[there].astype(float)
    return made[made["mean"].notna() | (made["reason"] != "1 of 1 not_recorded")].reset_index(drop=True)


def emergence(source: Source, *, figure: Figure | None = None, **settings: Any) -> Figure:
    """Draw three panels per learner: accuracies, the emergence ratio, and the end with its controls.

    `settings` go to `collective.measure`.
    """
    with house_style():
        table = data(source, **settings)
        cells = list(dict.fromkeys(table["cell"]))
        rows = [_rows(table[table["cell"] == cell]) for cell in cells]
        heights = [max(2.4, 0.9 + 0.19 * row["place"].max()) for row in rows]
        names = list(dict.fromkeys(table.loc[table["kind"] == "stream", "what"]))
        figure = canvas(figure, (11.0, sum(heights) + 1.2 + 0.1 * min(len(names), FEW)))
        panels = figure.subplots(
            len(cells), 3, squeeze=False, gridspec_kw={"height_ratios": heights, "width_ratios": [1, 1, 1.05]}
        )
        styles, titles = stream_styles(names), labels(map(shown_name, cells), most=_TITLE, width=_TITLE // 2)
        handles: dict[str, Any] = {}
        for (left, middle, right), cell, row in zip(panels, cells, rows, strict=True):
            part = table[table["cell"] == cell]
            handles |= _draw_course(left, part[part["panel"] == COURSE], styles, len(names))
            handles |= _draw_ratio(middle, part[part["panel"] == RATIO])
            _draw_final(right, row, styles)
            name = titles[shown_name(cell)]
            left.set_title(f"{name}: accuracy" if len(name) <= _TITLE // 3 else f"{name}:\naccuracy")
            middle.set_title("emergence ratio ρ ↑")
            right.set_title("at the end")
        legend_outside(figure, handles, None, where="upper")
        notes = [bounds_note(table, float(table["confidence"].iloc[0])), *_notes(table)]
        foot_note(figure, "\n".join(note for note in notes if note))
        return stamp(figure, roots_in(source))


def _draw_course(ax: Axes, part: pd.DataFrame, styles: dict[str, dict[str, Any]], streams: int) -> dict[str, Any]:
    """Accuracies over epochs; the handles of its legend."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    own = part[part["kind"] == "stream"]
    shown, dashes = labels(styles, most=24), ("--", "-.", ":")
    handles: dict[str, Any] = {"collective": Line2D([], [], color=COLOURS[0], linewidth=2.4)}
    for i, (name, rows) in enumerate(own.groupby("what", sort=False)):
        many = streams > FEW
        style: dict[str, Any] = {"color": styles[str(name)]["color"], "linestyle": "-" if many else dashes[i % 3]}
        style |= {"linewidth": 0.8, "alpha": 0.5} if many else {"linewidth": 1.3}
        ax.plot(rows["total_epoch"], rows["mean"], **style, **_dot(rows))
        label = f"each of {streams} streams" if many else shown[str(name)]
        handles[label] = Line2D([], [], **style)
    whole = part[part["kind"] == _COLLECTIVE]
    draw_curve(ax, whole["total_epoch"].to_numpy(float), whole, {"color": COLOURS[0], "linewidth": 2.4})
    chance = part[part["what"] == "chance"]
    if chance["mean"].notna().any():
        dots: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 2)), "linewidth": 1.2}
        level = float(chance["mean"].iloc[0])
        if chance["mean"].nunique() == 1:
            ax.axhline(level, **dots)
        else:
            ax.plot(chance["total_epoch"], chance["mean"], **dots)
        handles["one constant answer (chance)"] = Line2D([], [], **dots)
    _epochs(ax, part)
    ax.set_ylabel("accuracy ↑")
    ax.set_ylim(-0.02, 1.02)
    if not part["mean"].notna().any():
        say(ax, "no accuracy")
    return handles


def _epochs(ax: Axes, part: pd.DataFrame) -> None:
    ax.set_xlabel("total epoch")
    known = part["total_epoch"].dropna().unique()
    if len(known) == 1:
        ax.set_xlim(known[0] - 0.5, known[0] + 0.5)
        ax.set_xticks(known, [f"{known[0]:g}"])


def _dot(rows: pd.DataFrame) -> dict[str, Any]:
    """A lone value is a dot."""
    return {"marker": "o", "markersize": 4} if int(rows["mean"].notna().sum()) < 2 else {}


def _draw_ratio(ax: Axes, part: pd.DataFrame) -> dict[str, Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an extra

    handles: dict[str, Any] = {}
    finite = part[np.isfinite(part["mean"])]
    for ratio, rows in finite.groupby("what", sort=False):
        colour, dash = _RATIO_STYLES[str(ratio)]
        style: dict[str, Any] = {
            "color": colour,
            "linestyle": dash,
            "linewidth": 2.0 if ratio == "emergence_ratio" else 1.4,
        }
        draw_curve(ax, rows["total_epoch"].to_numpy(float), rows, style)
        handles[f"ρ against the {RATIOS[str(ratio)][1]}"] = Line2D([], [], **style)
    if finite.empty:
        say(ax, _why(part))
        ax.set_yticks([])
        return handles
    low, high, ticks = ratio_axis(finite["mean"])
    if ticks:
        from matplotlib.ticker import NullFormatter  # noqa: PLC0415

        ax.set_yscale("log")
        ax.set_yticks(ticks, [f"{x:g}" for x in ticks])
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(low, high)
    ax.axhline(1.0, color="black", linewidth=1.0, zorder=1)
    ax.axhline(2.0, color="black", linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    handles["ρ = 1: no better than it"] = Line2D([], [], color="black", linewidth=1.0)
    dashed: dict[str, Any] = {"color": "black", "linewidth": 1.0, "linestyle": (0, (4, 3))}
    handles["ρ = 2: the seed document's threshold"] = Line2D([], [], **dashed)
    _epochs(ax, part)
    return handles


def ratio_axis(ratios: pd.Series) -> tuple[float, float, list[float]]:
    """Where an axis of finite ratios begins and ends, and its ticks where it is logarithmic; intervals may leave it.

    >>> ratio_axis(pd.Series([1.0, 8.0]))
    (0.8, 10.4, [1, 2, 5, 10])
    """
    top, bottom = float(ratios.max()), float(ratios.min())
    if top <= _LOG_FROM:
        return min(bottom, 0.85) - 0.05, max(top, 2.0) + 0.15, []
    low, high = max(0.05, min(0.8 * bottom, 0.8)), 1.3 * top
    return low, high, [x for x in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if low <= x <= high]


def _why(part: pd.DataFrame) -> str:
    if np.isinf(part["mean"]).any():
        return "infinite: no stream is ever right"
    why = list(dict.fromkeys(part.loc[part["reason"] != "", "reason"]))
    return "; ".join(why[:2]) or "nothing was recorded"


def _rows(part: pd.DataFrame) -> pd.DataFrame:
    """The rows of the last panel, in order; many streams share one."""
    final = part[(part["panel"] == FINAL) & (part["mean"].notna() | (part["kind"] == _COLLECTIVE))]
    streams = final[final["kind"] == "stream"]
    place = np.arange(len(final), dtype=float)
    if len(streams) > _MANY_ROWS:
        place[(final["kind"] == "stream").to_numpy()] = len(final) - len(streams)
    return final.assign(place=place)


def _draw_final(ax: Axes, rows: pd.DataFrame, styles: dict[str, dict[str, Any]]) -> None:
    controls = {control: (words, _RATIO_STYLES[ratio][0]) for ratio, (control, words) in RATIOS.items()}
    shown = labels(rows.loc[rows["kind"] == "stream", "what"], most=22)
    streams = rows[rows["kind"] == "stream"]
    crowded = len(streams) > _MANY_ROWS
    ticks: dict[float, str] = {}
    for line in rows.itertuples():
        style: dict[str, Any] = {"color": COLOURS[0], "marker": "o"}
        name = "collective"
        if line.kind == "control":
            name, colour = controls[line.what]
            style = {"color": colour, "marker": "D"}
        elif line.kind == "stream":
            name, style = shown[line.what], dict(styles[line.what])
        if line.at_chance > 0 or line.below_probe > 0:
            style |= {"markerfacecolor": "white", "markeredgewidth": 1.4}
        if crowded and line.kind == "stream":
            ax.plot([line.mean], [line.place], linestyle="none", markersize=4, alpha=0.6, **style)
            name = f"each of {len(streams)} streams"
        else:
            draw_row(ax, line.place, line, style, size=8 if line.kind == _COLLECTIVE else 6)
        ticks[float(line.place)] = name
    whole = rows.loc[rows["kind"] == _COLLECTIVE, "mean"]
    if whole.notna().any():
        ax.axvline(float(whole.iloc[0]), color=COLOURS[0], linewidth=0.8, alpha=0.5, zorder=1)
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=7.5)
    ax.set_ylim(max(ticks, default=0.0) + 0.6, -0.6)
    ax.grid(False, axis="y")
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("accuracy ↑")


def _notes(table: pd.DataFrame) -> list[str]:
    """What a reader must know of heads at chance, infinite ratios, and controls that were not recorded."""
    said = []
    final = table[table["panel"] == FINAL]
    best = final[final["what"] == "best_stream"]
    weak = {"at_chance": best["at_chance"] > 0}
    weak["below_probe"] = (best["below_probe"] > 0) & ~weak["at_chance"]
    for flag, why in _FLAGS.items():
        flagged = best.loc[weak[flag], "cell"].unique()
        if len(flagged):
            shown = ", ".join(labels(map(shown_name, flagged), most=24).values())
            said.append(f"{shown}: the best stream's head is {why}, ρ against it says nothing")
    endless = table[(table["panel"] == RATIO) & np.isinf(table["mean"])]
    if len(endless):
        said.append("an infinite ratio (a control that is never right) is not drawn")
    words = dict(RATIOS.values())
    gone = final[(final["kind"] == "control") & final["mean"].isna()]
    there = set(final.loc[final["mean"].notna(), "what"])
    absent = [words[what] for what in dict.fromkeys(gone["what"]) if what not in there]
    if absent:
        said.append(f"not recorded: {', '.join(absent)}")
    return said
