"""The report in a real browser, from file://, with the network off."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from view.report.studies import LONG, NASTY, charts_of, frames_of
from waterjar.run.shown import from_csv_cell, visible_lines
from waterjar.view.report import write
from waterjar.view.report.blocks import Callout, Chart, Report, Section
from waterjar.view.report.charts.curves import curves_panel
from waterjar.view.report.tables import csv_text

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("chromium is not installed", allow_module_level=True)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 120_000
"""Milliseconds that a page may take: a slow machine draws 5 MB in more than the usual 30 seconds."""
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.no_cover


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as session:
        started = session.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, small_report: Report, full_report: Report, nasty_report: Report
) -> Path:
    path = tmp_path_factory.mktemp("pages")
    write(small_report, path / "small.html")
    write(full_report, path / "full.html")
    write(nasty_report, path / "nasty.html")
    return path


class Opened:
    """A page, and everything that went wrong on it."""

    def __init__(self, browser: Any, file: Path, **settings: Any) -> None:
        self.context = browser.new_context(offline=True, **{"viewport": {"width": 1366, "height": 860}, **settings})
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on(
            "console", lambda told: self.faults.append(told.text) if told.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda sent: None if _inside(sent.url) else self.faults.append(f"request {sent.url}"))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def chart(self, name: str) -> Any:
        """A chart, scrolled to and drawn."""
        found = self.page.locator(f"[data-chart={name}]")
        found.scroll_into_view_if_needed()
        self.page.wait_for_selector(f"[data-chart={name}][data-drawn]")
        return found

    def draw_all(self) -> None:
        for name in self.page.locator(".chart").evaluate_all("all => all.map(c => c.dataset.chart)"):
            self.chart(name)

    def close(self) -> None:
        self.context.close()


def _inside(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:"))


@pytest.fixture(scope="module")
def full_page(browser: Any, folder: Path) -> Iterator[Opened]:
    opened = Opened(browser, folder / "full.html")
    yield opened
    opened.close()


def test_it_opens_offline_without_a_fault(full_page: Opened, full_report: Report) -> None:
    page = full_page.page
    full_page.draw_all()
    assert full_page.faults == []
    assert page.title() == full_report.title
    for part in full_report.sections:
        assert page.locator(f"section#{part.name} h2").inner_text() == part.title
    assert page.locator(".panel .main-svg").count() >= sum(len(chart.panels) for chart in charts_of(full_report))


def test_pointing_at_a_line_tells_its_number(full_page: Opened) -> None:
    page = full_page.page
    panel = full_page.chart("learning_curves").locator(".panel").first
    box = panel.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    for step in range(1, 20):
        if panel.locator(".hoverlayer .hovertext").count():
            break
        page.mouse.move(box["x"] + box["width"] - 3, box["y"] + step * box["height"] / 20)
    assert "n = 3" in panel.locator(".hoverlayer").text_content()


def test_a_key_of_the_legend_hides_its_lines_and_brings_them_back(full_page: Opened) -> None:
    page = full_page.page
    chart = full_page.chart("plasticity_stack")
    button = chart.locator(".legend button").nth(1)
    lines = "panels => panels.map(p => p.querySelectorAll('.scatterlayer .trace').length)"
    before = chart.locator(".panel").evaluate_all(lines)
    button.focus()
    page.keyboard.press("Enter")  # by keyboard, as by mouse
    playwright.expect(button).to_have_attribute("aria-pressed", "false")
    after = chart.locator(".panel").evaluate_all(lines)
    assert all(a < b for a, b in zip(after, before, strict=True))
    button.click()
    assert chart.locator(".panel").evaluate_all(lines) == before


def test_downloads_are_the_data(full_page: Opened, full_report: Report, tmp_path: Path) -> None:
    page = full_page.page
    for name, frame in frames_of(full_report).items():
        button = page.locator(f"button[data-csv={name}]").first
        page.wait_for_timeout(120)  # Chromium lets a page begin ten downloads a second, and drops the eleventh
        with page.expect_download() as waiting:
            button.click()
        got = waiting.value
        assert got.suggested_filename == f"{name}.csv"
        got.save_as(tmp_path / name)
        text = (tmp_path / name).read_bytes().decode()
        assert text == csv_text(frame)
        assert len(list(csv.reader(io.StringIO(text)))) == len(frame) + 1


@pytest.mark.parametrize(("form", "start"), [("svg", b"<svg "), ("png", b"\x89PNG")])
def test_pictures_can_be_saved(form: str, start: bytes, full_page: Opened, full_report: Report, tmp_path: Path) -> None:
    page = full_page.page
    chart = full_page.chart("geometry_stack")
    with page.expect_download() as waiting:
        chart.locator(f"button[data-picture={form}]").click()
    waiting.value.save_as(tmp_path / "picture")
    data = (tmp_path / "picture").read_bytes()
    assert waiting.value.suggested_filename == f"geometry_stack.{form}"
    assert data.startswith(start) and len(data) > 10_000
    if form == "svg":
        assert full_report.roots[0] in data.decode() and "Manifold geometry" in data.decode()


def test_a_phone_scrolls_down_and_not_sideways(browser: Any, folder: Path) -> None:
    for file in ("small.html", "nasty.html"):
        opened = Opened(browser, folder / file, viewport={"width": 390, "height": 844}, has_touch=True)
        page = opened.page
        opened.draw_all()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        wide = page.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > 391"
            " && !e.closest('.scroll, .panels, pre, .long')).map(e => e.outerHTML.slice(0, 80))"
        )
        assert wide == []
        sizes = page.evaluate(
            "[...document.querySelectorAll('main p, td')].map(e => parseFloat(getComputedStyle(e).fontSize))"
        )
        assert min(sizes) >= 12
        assert opened.faults == []
        opened.close()


@pytest.mark.slow
def test_the_dark_has_its_own_colours_in_charts_too(browser: Any, folder: Path) -> None:
    opened = Opened(browser, folder / "small.html", color_scheme="dark")
    page = opened.page
    opened.chart("eri_dynamics")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", ground)[:3])) < 120
    assert page.locator(".chart .legend line").first.get_attribute("stroke") == "#5BB4E5"
    text = page.locator("[data-chart=eri_dynamics] .xtick text").first
    assert sum(map(int, re.findall(r"\d+", text.evaluate("e => getComputedStyle(e).fill"))[:3])) > 600
    page.emulate_media(color_scheme="light")
    playwright.expect(page.locator(".chart .legend line").first).to_have_attribute("stroke", "#0072B2")
    assert opened.faults == []
    opened.close()


def test_paper_is_light_and_every_chart_is_on_it(browser: Any, folder: Path) -> None:
    """As `waterjar report --out x.pdf` opens it, on a machine whose theme is dark."""
    context = browser.new_context(offline=True, color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto((folder / "full.html").as_uri() + "#print")
    page.wait_for_function("document.querySelectorAll('.chart:not([data-drawn])').length === 0")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".chart .xtick text").first.evaluate("t => t.style.fill") == "rgb(27, 31, 36)"
    assert page.locator("details.code[open]").count() == page.locator("details.code").count() > 0
    page.set_viewport_size({"width": 680, "height": 980})  # between the margins of A4
    wide = "all => all.filter(e => e.getBoundingClientRect().right > 681).map(e => e.outerHTML.slice(0, 80))"
    assert page.locator("main table, main .panel, main pre").evaluate_all(wide) == []
    context.close()


@pytest.mark.slow
def test_print_leaves_out_what_cannot_be_pressed(browser: Any, folder: Path, tmp_path: Path) -> None:
    opened = Opened(browser, folder / "small.html", color_scheme="dark")
    page = opened.page
    page.pdf(path=tmp_path / "p.pdf", format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "p.pdf").read_bytes())) > 5
    page.emulate_media(media="print")
    assert page.locator("details.code[open]").count() == 0  # shown on paper, folded again behind it
    assert page.locator("nav").is_hidden() and page.locator(".tool").first.is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.faults == []
    opened.close()


def test_nothing_hostile_runs_and_all_of_it_can_be_read(browser: Any, folder: Path) -> None:
    opened = Opened(browser, folder / "nasty.html")
    page = opened.page
    opened.draw_all()
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main b, main i, main u, h1 b").count() == 0
    shown = " ".join(visible_lines(NASTY).split())
    assert shown[:100] in " ".join(page.locator("h1").text_content().split())
    assert page.evaluate("t => document.body.textContent.includes(t)", visible_lines(LONG.strip()))
    page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")
    page.locator(".legend button").first.click()
    with page.expect_download() as waiting:
        page.locator("button[data-csv=verdicts]").click()
    text = Path(waiting.value.path()).read_bytes().decode()
    assert NASTY in {from_csv_cell(row["cell"]) for row in csv.DictReader(io.StringIO(text, newline=""))}
    legend = page.locator("[data-chart=learning_curves] .legend button").all_inner_texts()
    assert any(text.startswith("<script>window.pwned=1") for text in legend)
    title = page.locator("[data-chart=task_matrix] .gtitle").all_text_contents()
    assert any("<script>" in text for text in title)
    assert page.evaluate("window.pwned") is None
    assert opened.faults == []
    opened.close()


def test_a_name_with_dollars_is_not_mathematics(browser: Any, tmp_path: Path) -> None:
    panel = curves_panel([], {}, title="$x_1^2$", x="epoch")
    chart = Chart("own", "Own", (panel,), pd.DataFrame({"a": [1]}), "A caption", "What is to be seen")
    report = Report("t", "l", Callout("note", "n"), (Section("s", "S", (chart,)),), ())
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda told: said.append(told.text))  # plotly traces what it misses, which is no warning
    page.goto(write(report, tmp_path / "dollars.html").as_uri())
    page.wait_for_selector("[data-chart=own][data-drawn]")
    assert "$x_1^2$" in page.locator("[data-chart=own]").text_content()
    assert said == []
    context.close()


def test_the_policy_holds_back_whatever_would_still_be_injected(browser: Any, folder: Path, tmp_path: Path) -> None:
    text = (folder / "nasty.html").read_text(encoding="utf-8")
    bad = text.replace("</main>", "<img src=x onerror='window.pwned=1'><script>window.pwned=2</script></main>")
    (tmp_path / "bad.html").write_text(bad, encoding="utf-8")
    opened = Opened(browser, tmp_path / "bad.html")
    assert opened.page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in fault for fault in opened.faults)
    opened.close()


def test_every_control_is_reached_by_the_keyboard(browser: Any, folder: Path) -> None:
    opened = Opened(browser, folder / "small.html")
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "story"
    unreachable = page.evaluate(
        "[...document.querySelectorAll('button, a[href], summary, .scroll')].filter(e => e.tabIndex < 0).length"
    )
    assert unreachable == 0
    opened.close()


def _axe() -> Path | None:
    places = [os.environ.get("WATERJAR_AXE", ""), str(ROOT / "node_modules/axe-core/axe.min.js")]
    return next((Path(place) for place in places if place and Path(place).is_file()), None)


def test_axe_finds_no_serious_fault(browser: Any, folder: Path) -> None:
    """All of its rules in the light, and in the dark those of contrast."""
    axe = _axe()
    if axe is None:
        pytest.skip("axe-core is not installed: npm install axe-core, or name axe.min.js in WATERJAR_AXE")
    opened = Opened(browser, folder / "small.html", color_scheme="light")
    page = opened.page
    opened.draw_all()
    page.locator("details").evaluate_all("all => all.slice(0, 2).forEach(d => { d.open = true; })")
    page.evaluate(axe.read_text(encoding="utf-8"))
    assert _serious(page, "{}") == []
    page.emulate_media(color_scheme="dark")
    opened.draw_all()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert _serious(page, "{runOnly: {type: 'rule', values: ['color-contrast']}}") == []
    opened.close()


def _serious(page: Any, what: str) -> list[tuple[str, str, list[str]]]:
    """The violations that keep somebody from reading the page."""
    found = page.evaluate(f"axe.run(document, {{resultTypes: ['violations'], ...{what}}})")
    return [
        (one["id"], one["help"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
