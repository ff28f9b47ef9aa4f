"""The same report as Markdown, LaTeX, JSON, CSV and PDF."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from view.report.studies import LONG, NASTY, charts_of, frames_of
from waterjar.errors import WaterjarError
from waterjar.view.report import FORMATS, write
from waterjar.view.report.blocks import Chart, Report, Table
from waterjar.view.report.formats import check_target, format_of
from waterjar.view.report.renderers import as_json, latex, markdown, pdf


def brief(report: Report) -> Report:
    """With one figure: drawing all of them is for the slow test."""
    kept = [part for part in report.sections if part.name in ("summary", "settings", "provenance", "seals")]
    return dataclasses.replace(report, sections=tuple(kept))


def test_a_format_is_known_by_its_suffix_and_another_is_refused(tmp_path: Path, small_report: Report) -> None:
    assert {format_of(Path(f"x{suffix}")) for suffix in FORMATS.values()} == set(FORMATS)
    with pytest.raises(WaterjarError, match=r"x.doc: the name of a report ends in .html"):
        write(small_report, tmp_path / "x.doc")
    with pytest.raises(WaterjarError, match="did you mean 'html'"):
        write(small_report, tmp_path / "x", "htm")


def test_a_place_that_cannot_be_written_is_an_error_in_words(tmp_path: Path, small_report: Report) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WaterjarError, match="could not write"):
        write(small_report, tmp_path / "file" / "report.html")


def test_csv_holds_every_number(tmp_path: Path, small_report: Report) -> None:
    path = write(small_report, tmp_path / "data.zip")
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == {*(f"{name}.csv" for name in frames_of(small_report)), "about.json"}
        text = archive.read("eri_summary.csv").decode()
        assert json.loads(archive.read("about.json"))["roots"] == list(small_report.roots)
    frame = frames_of(small_report)["eri_summary"]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["mean"]) for row in rows] == frame["mean"].tolist()
    again = write(small_report, tmp_path / "again.zip")
    assert again.read_bytes() == path.read_bytes()


def test_csv_into_a_folder(tmp_path: Path, small_report: Report) -> None:
    folder = write(small_report, tmp_path / "data", "csv")
    assert (folder / "seals.csv").read_text().startswith("run,state,root_hash")


def test_json_holds_every_section_and_number(tmp_path: Path, small_report: Report) -> None:
    read = json.loads(write(small_report, tmp_path / "r.json").read_text())
    assert [part["name"] for part in read["sections"]] == [part.name for part in small_report.sections]
    blocks = [block for part in read["sections"] for block in part["blocks"]]
    shown = next(block for block in blocks if block.get("name") == "task_matrix")
    frame = frames_of(small_report)["task_matrix"]
    assert [row["mean"] for row in shown["data"]] == [None if pd.isna(m) else m for m in frame["mean"]]
    assert "NaN" not in as_json.render(small_report)


def test_markdown_has_every_section_table_and_picture(tmp_path: Path, small_report: Report) -> None:
    small_report = brief(small_report)
    path = write(small_report, tmp_path / "r.md")
    text = path.read_text()
    for part in small_report.sections:
        assert f"\n## {part.title}\n" in text
    for block in small_report.shown:
        if isinstance(block, Table):
            assert f"### {markdown.escape(block.title)}\n" in text
        if isinstance(block, Chart):
            assert (tmp_path / "r_figures" / f"{block.name}.svg").stat().st_size > 1000
            assert f"(r_figures/{block.name}.svg)" in text
    rows = [line for line in text.splitlines() if line.startswith("| evaluation") or line.startswith("| sgd-1 ")]
    assert rows and all(line.count(" | ") in (2, 7) for line in rows)  # seals, and the runs


def test_latex_is_a_document_whose_environments_close(tmp_path: Path, small_report: Report) -> None:
    small_report = brief(small_report)
    text = write(small_report, tmp_path / "r.tex").read_text()
    assert text.startswith("\\documentclass") and text.rstrip().endswith("\\end{document}")
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    closed = re.findall(r"\\end\{(\w+)\}", text)
    assert sorted(opened) == sorted(closed)
    for chart in charts_of(small_report):
        assert (tmp_path / "r_figures" / f"{chart.name}.pdf").read_bytes().startswith(b"%PDF")
    for root in small_report.roots:
        assert f"% {root}\n" in text


@pytest.mark.parametrize("text", [NASTY, LONG, "a_b & 50 % #1 {x} \\y ~z^2 ✓"])
def test_hostile_text_is_only_text(text: str) -> None:
    made = latex.escape(text)
    bare = re.sub(r"\\(textbackslash|textasciitilde|textasciicircum|textquotedbl|ldots)\{\}|\\[&%$#_{}]", "", made)
    bare = re.sub(r"\$(\\\w+|[<>|-]|\^\{[-*\d]+\})\$", "", bare)
    assert not re.search(r"[\\&%$#_{}~^]", bare)
    assert all(ord(sign) < 0x180 for sign in made)
    assert not re.search(r"(?<!\\)[<>|*_`\[\]$]", markdown.escape(text).replace("\\\\", ""))


def test_nasty_names_in_every_text_format(nasty_report: Report) -> None:
    outside = re.sub(r"(`{3,})yaml.*?\1", "", markdown.render(nasty_report, {}), flags=re.DOTALL)
    assert "<script" not in outside.replace("\\<", "") and "pwned" in outside
    assert "\\end{document}" in latex.render(nasty_report, {})
    assert json.loads(as_json.render(nasty_report))["title"] == NASTY


@pytest.mark.skipif(not any(map(shutil.which, pdf.NAMES)), reason="chromium is not installed")
def test_pdf_is_the_printed_page(tmp_path: Path, small_report: Report) -> None:
    data = write(brief(small_report), tmp_path / "r.pdf").read_bytes()
    assert data.startswith(b"%PDF") and data.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type\s*/Page\b", data)) > 2
    assert b"595" in data and small_report.title.encode() in data  # A4, and whose it is
    assert b"/Subtype /Image" not in data  # charts are vectors
    assert b"sha256" not in data and list(tmp_path.iterdir()) == [tmp_path / "r.pdf"]


def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """An executable that stands for Chromium."""
    file = tmp_path / "bin" / "browser"
    file.parent.mkdir()
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv(pdf.BROWSER, str(file))


PRINT = """for a in "$@"; do
  case "$a" in --print-to-pdf=*) out="${a#*=}";; --user-data-dir=*) home="${a#*=}";; esac
done
"""


def test_the_browser_is_alone_with_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_report: Report
) -> None:
    printed = 'printf "%s\\n%%%%EOF" "%PDF of $home" > "$out"'
    browser(tmp_path, monkeypatch, f'{PRINT}{printed}; echo "$@" > {tmp_path}/told')
    path = tmp_path / "out" / "r.pdf"
    path.parent.mkdir()
    path.write_text("the old one")
    write(small_report, path)
    told = (tmp_path / "told").read_text()
    assert path.read_bytes().startswith(b"%PDF of ") and list(path.parent.iterdir()) == [path]
    assert "--headless" in told and "MAP * ~NOTFOUND" in told and "file://" in told
    profile = path.read_text().split("\n")[0].removeprefix("%PDF of ")
    assert not Path(profile).parent.exists()  # gone with it


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no display here' >&2; exit 1", "printed no PDF: no display here"),
        ("exit 0", "printed no PDF: it said nothing"),
        (PRINT + 'echo "<html>" > "$out"', "printed no PDF"),
        (PRINT + 'echo "%PDF-1.4 and no more" > "$out"', "a part of the PDF, 21 bytes: .* is there room left"),
        ("sleep 60 & sleep 60", "did not print the report in 0.3 s"),
    ],
)
def test_a_browser_that_prints_nothing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_report: Report, script: str, message: str
) -> None:
    browser(tmp_path, monkeypatch, script)
    monkeypatch.setattr(pdf, "SECONDS", 0.3 if "sleep" in script else 60)
    (tmp_path / "r.pdf").write_text("the old one")
    with pytest.raises(WaterjarError, match=message):
        write(small_report, tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").read_text() == "the old one"


def test_without_a_browser_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_report: Report
) -> None:
    monkeypatch.setenv(pdf.BROWSER, str(tmp_path / "none"))
    with pytest.raises(WaterjarError, match="WATERJAR_BROWSER names .*none', which cannot be run: install Chromium"):
        write(small_report, tmp_path / "r.pdf")
    monkeypatch.delenv(pdf.BROWSER)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WaterjarError, match="none of chromium, .* as HTML and print it from any browser"):
        check_target(tmp_path / "r.pdf", "pdf")  # before anything is measured
    (tmp_path / "chromium").write_text("not a program")
    (tmp_path / "chromium").chmod(0o755)
    with pytest.raises(WaterjarError, match="chromium could not be started: Exec format error"):
        write(small_report, tmp_path / "r.pdf")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".md", ".tex"])
def test_every_figure_is_drawn_for_paper(suffix: str, tmp_path: Path, full_report: Report) -> None:
    path = write(full_report, tmp_path / f"r{suffix}")
    assert path.stat().st_size > 20_000
    assert len(list((tmp_path / "r_figures").iterdir())) == len(charts_of(full_report))


def test_pictures_need_their_folder(tmp_path: Path, small_report: Report) -> None:
    (tmp_path / "r_figures").write_text("")
    with pytest.raises(WaterjarError, match="in the way"):
        write(brief(small_report), tmp_path / "r.md")
