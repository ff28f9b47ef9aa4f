"""What all charts share: colours that survive colour-vision deficiencies and the dark, labels, a bare layout.

plotly reads some HTML and `%{...}` in texts: every name that comes from a file goes through `label_names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from waterjar.run.shown import visible
from waterjar.view.numbers import shorten
from waterjar.view.report.blocks import Key
from waterjar.view.style import COLOURS, short

DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
BOUNDARY = "#C1272D"
QUIET = "#6B7280"
# Okabe & Ito's colours lifted for a dark ground, in the same order; black becomes white.
_DARK = ("#5BB4E5", "#F08A4B", "#2BC79B", "#E6A1C6", "#9AD4F5", "#F2BE4A", "#FFFFFF")
_ALPHA = 0.16
LONGEST = 28
"""Signs of a name in a legend or on an axis."""


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


def escape(text: str) -> str:
    """Text that plotly shows as it is: no tags, no entities, no templates, one line.

    >>> escape("<b>a</b> & %{x}")
    '&lt;b&gt;a&lt;/b&gt; &amp; %&#123;x}'
    """
    shown = "".join(sign if sign.isprintable() else " " for sign in visible(" ".join(text.split())))
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "&#123;")):
        shown = shown.replace(sign, entity)
    return shown


def label_names(names: Iterable[str], most: int = LONGEST) -> dict[str, str]:
    """name -> a short label for plotly; no two are alike.

    >>> label_names(["<i>a</i>", "b"])
    {'<i>a</i>': '&lt;i&gt;a&lt;/i&gt;', 'b': 'b'}
    """
    return {name: escape(label) or "(no name)" for name, label in short(names, most).items()}


def keys_of(names: Iterable[str]) -> dict[str, Key]:
    """name -> its colour, dash and symbol, the same in every chart of the report."""
    known = list(dict.fromkeys(names))
    return {
        name: Key(
            group=f"g{i}",
            label=name or "all runs",
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
        "title": {"text": f"<b>{title}</b>" if title else "", "x": 0, "xref": "paper", "font": {"size": 14}},
        "height": height,
        "margin": {"l": 48, "r": 12, "t": 36 if title else 16, "b": 44},
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {**axis, "title": {"text": x, "standoff": 8}, **more.pop("xaxis", {})},
        "yaxis": {**axis, "title": {"text": y, "standoff": 8}, **more.pop("yaxis", {})},
        **more,
    }


def boundaries(starts: Sequence[tuple[float, str]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Red dashed lines where tasks begin, and the tasks' names above: (shapes, annotations) of a layout."""
    shapes, notes = [], []
    for i, (x, name) in enumerate(starts):
        if i:
            line = {"color": BOUNDARY, "width": 1, "dash": "dash"}
            shapes.append({"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line})
        notes.append(
            {
                "x": x,
                "y": 1,
                "yref": "paper",
                "text": escape(shorten(name, 12)),
                "showarrow": False,
                "xanchor": "left",
                "yanchor": "bottom",
                "font": {"size": 11, "color": QUIET},
            }
        )
    return shapes, notes
