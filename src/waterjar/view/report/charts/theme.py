"""What all charts share: colours that survive colour-vision deficiencies and the dark, labels, a bare layout.

plotly reads some HTML and `%{...}` in texts: every name that comes from a file goes through `label_names`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from waterjar.run.shown import visible
from waterjar.view.report.blocks import Key
from waterjar.view.short_names import short
from waterjar.view.style import COLOURS

_ARRAYS = {"dash": "6 3", "dashdot": "6 3 2 3", "dot": "2 3", "longdash": "10 3", "longdashdot": "10 3 2 3"}
DASHES = (
    "solid", *_ARRAYS,
    "14px,2px", "2px,7px", "7px,2px,2px,2px,2px,2px", "4px,8px", "16px,3px,5px,3px", "10px,10px",
)  # fmt: skip
"""Twelve, told apart without colour."""
SYMBOLS = (
    "circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down", "hexagon",
)  # fmt: skip
"""Not as many as colours, so that a colour that comes again has another one."""
BOUNDARY = "#C1272D"
QUIET = "#6B7280"
# Okabe & Ito's colours lifted for a dark ground, in the same order; black becomes white.
_DARK = ("#5BB4E5", "#F08A4B", "#2BC79B", "#E6A1C6", "#9AD4F5", "#F2BE4A", "#FFFFFF")
_ALPHA = 0.16
LONGEST = 28
"""Signs of a name on an axis."""
IN_LEGEND = 40
"""Signs of a name in a legend."""


def fade(colour: str) -> str:
    """The same colour as a band.

    >>> fade("#0072B2")
    'rgba(0,114,178,0.16)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_ALPHA})"


def dark_colours() -> dict[str, str]:
    """light colour -> the one that takes its place on a dark ground."""
    pairs = [*zip(COLOURS, _DARK, strict=True), (BOUNDARY, "#FF7B72"), (QUIET, "#9CA3AF")]
    return {form(light): form(dark) for light, dark in pairs for form in (str, fade)}


_ROW = 14
"""Pixels from a row of tasks' names to the next."""
_LETTER, _NARROW = 6.2, 230
"""Pixels of a letter of a task's name, and of the axis of a panel that stands beside others."""


def escape(text: str) -> str:
    """Text that plotly shows as it is: no tags, no entities, no templates, one line.

    >>> escape("<b>a</b> & %{x}")
    '&lt;b&gt;a&lt;/b&gt; &amp; %&#123;x}'
    """
    shown = "".join(sign if sign.isprintable() else " " for sign in visible(" ".join(text.split())))
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "&#123;")):
        shown = shown.replace(sign, entity)
    return shown


def dash_array(dash: str) -> str:
    """A dash of plotly's as SVG has it.

    >>> dash_array("dash"), dash_array("14px,2px"), dash_array("solid")
    ('6 3', '14 2', 'none')
    """
    return _ARRAYS.get(dash) or (dash.replace("px", "").replace(",", " ") if "px" in dash else "none")


def label_names(names: Iterable[str], most: int = LONGEST) -> dict[str, str]:
    """name -> a short label for plotly; no two are alike.

    >>> label_names(["<i>a</i>", "b"])
    {'<i>a</i>': '&lt;i&gt;a&lt;/i&gt;', 'b': 'b'}
    """
    return {name: escape(label) or "(no name)" for name, label in short(names, most).items()}


def keys_of(names: Iterable[str]) -> dict[str, Key]:
    """name -> its colour, dash and symbol, the same in every chart of the report."""
    known = short(names, IN_LEGEND)
    return {
        name: Key(
            group=f"g{i}",
            label=known[name] or "all runs",
            colour=COLOURS[i % len(COLOURS)],
            dash=DASHES[i % len(DASHES)],
            symbol=SYMBOLS[i % len(SYMBOLS)],
        )
        for i, name in enumerate(known)
    }


def layout(*, title: str = "", x: str = "", y: str = "", height: int = 280, **more: Any) -> dict[str, Any]:
    """A bare layout: the page brings colours and fonts, so that they follow its theme."""
    axis: dict[str, Any] = {"automargin": True, "zeroline": False, "exponentformat": "power"}
    return {
        "title": {"text": f"<b>{title}</b>" if title else "", "x": 0, "xref": "container", "font": {"size": 14}},
        "height": height,
        "margin": {"l": 48, "r": 12, "t": 36 + 19 * title.count("<br>") if title else 16, "b": 44},
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {**axis, "title": {"text": x, "standoff": 8}, **more.pop("xaxis", {})},
        "yaxis": {**axis, "title": {"text": y, "standoff": 8}, **more.pop("yaxis", {})},
        **more,
    }


def boundaries(
    starts: Sequence[tuple[float, str]], end: float | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Red dashed lines where tasks begin, and the tasks' names above: (shapes, annotations) of a layout.

    Where lines end is known, names that would run into each other in a narrow panel stand in two rows, and those that
    have no place in either are left out.
    """
    shapes, notes = [], []
    labels = label_names((name for _, name in starts), 12)
    free = [-math.inf] * (1 if end is None else 2)
    for i, (x, name) in enumerate(starts):
        if i:
            line = {"color": BOUNDARY, "width": 1, "dash": "dash"}
            shapes.append({"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line})
        row = next((row for row, place in enumerate(free) if x >= place), None)
        if row is None:
            continue
        if end is not None:
            free[row] = x + (end - starts[0][0]) * (len(labels[name]) + 1) * _LETTER / _NARROW
        notes.append(
            {
                "x": x,
                "y": 1,
                "yref": "paper",
                "yshift": row * _ROW,
                "text": labels[name],
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "bottom",
                "font": {"size": 11, "color": QUIET},
            }
        )
    return shapes, notes


def as_drawn(caption: str, panels: Iterable[Mapping[str, Any]]) -> str:
    """A caption without what it says of red dashed lines, where no panel has any."""
    shapes = [shape for panel in panels for shape in panel["layout"].get("shapes", ())]
    if any(shape.get("line", {}).get("color") == BOUNDARY for shape in shapes):
        return caption
    kept = [text for text in re.split(r"(?<=\.) ", caption) if not text.startswith("Red dashed lines")]
    return " ".join(kept)
