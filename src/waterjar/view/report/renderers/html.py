"""One HTML file that needs nothing else: no network, no other file, no server."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from waterjar._version import __version__
from waterjar.errors import missing_extra
from waterjar.run.shown import json_text, visible, visible_lines
from waterjar.view.numbers import shorten
from waterjar.view.report import blocks as b
from waterjar.view.report.charts.theme import dark_colours, dash_array
from waterjar.view.report.tables import alternative, csv_text

LONG = 120
"""Signs of a text in a table before the rest has to be asked for."""


def render(report: b.Report) -> str:
    """The page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - an extra
        from markupsafe import Markup  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing_extra("jinja2", "view", "reports") from error
    environment = Environment(
        loader=PackageLoader("waterjar.view.report", "page"),
        autoescape=True,
        finalize=lambda value: visible_lines(value) if type(value) is str else value,  # markup of our own stays
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["short"] = shorten
    environment.filters["dash_array"] = dash_array
    environment.globals |= {
        "kind": lambda block: type(block).__name__.lower(),
        "alternative": alternative,
        "base64": lambda data: base64.b64encode(data).decode(),
        "LONG": LONG,
    }
    shown = report.shown
    charts = [one for one in shown if isinstance(one, b.Chart)]
    payload = {
        "charts": {chart.name: {"title": chart.title, "panels": list(chart.panels)} for chart in charts},
        "keys": {
            chart.name: [[key.group, visible(key.label), key.colour, dash_array(key.dash)] for key in chart.keys]
            for chart in charts
        },
        "csv": {one.name: csv_text(one.frame) for one in shown},
        "dark": dark_colours(),
        "roots": list(report.roots),
    }
    scripts = [_plotly() if charts else "", _asset("report.js")]
    scripts = [script for script in scripts if script]
    return environment.get_template("report.html").render(
        report=report,
        style=Markup(_asset("report.css")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        payload=Markup(json_text(payload, in_page=True, separators=(",", ":"))),
        version=__version__,
    )


def _asset(name: str) -> str:
    return (resources.files("waterjar.view.report") / "page" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    try:
        return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError as error:
        raise missing_extra("plotly", "view", "reports") from error


def _policy(scripts: list[str]) -> str:
    """Only our own scripts may run, named by their hashes; nothing may be fetched from anywhere."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
