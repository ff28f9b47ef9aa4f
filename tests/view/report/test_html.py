"""The page as text: self-contained, escaped, the same every time. What it does in a browser is in test_browser.py."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from view.report.studies import LONG, NASTY, charts_of, frames_of
from waterjar.run.shown import json_text, visible
from waterjar.view.report import Model, compose
from waterjar.view.report.blocks import Report
from waterjar.view.report.charts.theme import dark_colours, escape, label_names
from waterjar.view.report.renderers.html import render


class Page(HTMLParser):
    """Tags, attributes and texts of a page, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.texts: list[str] = []
        self._script: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._script = dict(attrs) if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts.append((self._script, data))
            self._script = None
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def page(small_report: Report) -> Page:
    return Page(render(small_report))


@pytest.fixture(scope="module")
def payload(page: Page) -> dict[str, Any]:
    return json.loads(next(text for attributes, text in page.scripts if attributes.get("id") == "payload"))


def test_nothing_is_fetched_from_anywhere(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        for name in ("src", "srcset", "action", "data", "poster"):
            assert name not in attributes
        href = attributes.get("href")
        assert href is None or href.startswith("#")
        assert not [name for name in attributes if name.startswith("on")]


def test_only_our_scripts_may_run(page: Page) -> None:
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
    named = set(re.findall(r"'sha256-([^']+)'", policy))
    ours = {
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for attributes, text in page.scripts
        if attributes.get("type") != "application/json"
    }
    assert named == ours and len(ours) == 2
    assert "unsafe-eval" not in policy


def test_links_lead_to_every_section(page: Page, small_report: Report) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for part in small_report.sections:
        assert part.name in ids
        assert ("a", {"href": f"#{part.name}"}) in page.tags


def test_the_data_inside_are_those_that_are_shown(payload: dict[str, Any], small_report: Report) -> None:
    assert set(payload["csv"]) == set(frames_of(small_report))
    for name, frame in frames_of(small_report).items():
        rows = list(csv.reader(io.StringIO(payload["csv"][name])))
        assert rows[0] == [str(column) for column in frame.columns]
        assert len(rows) - 1 == len(frame)
        for i, column in enumerate(frame.columns):
            if pd.api.types.is_float_dtype(frame[column]):
                read = [float(row[i]) if row[i] else float("nan") for row in rows[1:]]
                pd.testing.assert_series_equal(pd.Series(read), frame[column].reset_index(drop=True), check_names=False,
                                               check_exact=True)  # fmt: skip


def test_every_chart_has_a_name_a_table_and_a_place_per_panel(page: Page, small_report: Report) -> None:
    figures = [attributes for tag, attributes in page.tags if tag == "figure"]
    assert [one["data-chart"] for one in figures] == [chart.name for chart in charts_of(small_report)]
    assert all(one["aria-labelledby"] for one in figures)
    panels = [a for tag, a in page.tags if tag == "div" and a.get("class") == "panel"]
    assert len(panels) == sum(len(chart.panels) for chart in charts_of(small_report))
    assert sum(text == "The numbers in a table" for text in page.texts) == len(figures)


def test_the_same_study_gives_the_same_bytes(small: Model, small_report: Report) -> None:
    assert render(compose(small)) == render(small_report)


def test_it_is_small_enough_to_send(small_report: Report) -> None:
    assert len(render(small_report).encode()) < 8e6


def test_nothing_that_comes_from_a_file_becomes_markup(nasty_report: Report) -> None:
    page = Page(render(nasty_report))
    assert {tag for tag, _ in page.tags} & {"img", "b", "i", "u"} == set()
    assert len([1 for tag, _ in page.tags if tag == "script"]) == 3
    title = " ".join(NASTY.split())
    assert any(" ".join(text.split()).startswith(title[:60]) for text in page.texts)
    assert any(visible(LONG.strip()) in text for text in page.texts)  # all of it, on demand


def test_names_in_charts_are_plain_text_to_plotly(nasty_report: Report) -> None:
    for chart in charts_of(nasty_report):
        for panel in chart.panels:
            for text in _texts(panel):
                bare = re.sub(r"</?(b|extra|br)>", "", text)
                assert "<" not in bare, text


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


@given(st.text())
def test_json_in_the_page_is_read_back_as_it_was(text: str) -> None:
    made = json_text({"a": text, text: [1.5, float("nan"), text]}, in_page=True)
    assert not re.search("[<>&\u2028\u2029]", made)
    assert json.loads(made) == {"a": text, text: [1.5, None, text]}


@given(st.text())
def test_escaped_text_has_no_tag_and_no_template(text: str) -> None:
    made = escape(text)
    assert "<" not in made and ">" not in made and "{" not in made
    assert made.isprintable()


@given(st.lists(st.text(max_size=60), max_size=6))
def test_labels_are_short_and_differ(names: list[str]) -> None:
    made = label_names(names, 20)
    assert set(made) == set(names)
    plain = {name: label for name, label in made.items() if label != "(no name)"}
    assert len(set(plain.values())) == len(plain)


def test_every_colour_has_one_for_the_dark() -> None:
    made = dark_colours()
    assert made["#000000"] == "#FFFFFF"
    assert made["rgba(0,0,0,0.16)"] == "rgba(255,255,255,0.16)"
