"""The same report as Markdown, LaTeX, JSON, CSV and PDF."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from view.report.studies import LONG, NASTY
from waterjar.errors import WaterjarError
from waterjar.view.report import FORMATS, write
from waterjar.view.report.blocks import Chart, Report, Table
from waterjar.view.report.formats import format_of
from waterjar.view.report.renderers import as_json, latex, markdown
from waterjar.view.report.renderers.press import wrap


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
        assert set(archive.namelist()) == {*(f"{name}.csv" for name in small_report.frames), "about.json"}
        text = archive.read("eri_summary.csv").decode()
        assert json.loads(archive.read("about.json"))["roots"] == list(small_report.roots)
    frame = small_report.frames["eri_summary"]
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
    frame = small_report.frames["task_matrix"]
    assert [row["mean"] for row in shown["data"]] == [None if pd.isna(m) else m for m in frame["mean"]]
    assert "NaN" not in as_json.render(small_report)


def test_markdown_has_every_section_table_and_picture(tmp_path: Path, small_report: Report) -> None:
    small_report = brief(small_report)
    path = write(small_report, tmp_path / "r.md")
    text = path.read_text()
    for part in small_report.sections:
        assert f"\n## {part.title}\n" in text
    for block in small_report.blocks:
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
    for chart in small_report.charts:
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


def test_lines_fit_their_width() -> None:
    lines = wrap("some words and a" + "very" * 60 + "long one $x$ 🦊", 120.0, 9.0)
    assert len(lines) > 3
    assert "".join(lines).replace(" ", "").endswith("longone$x$□")
    assert wrap("", 100.0, 9.0) == [""]


def test_pdf_has_pages_text_and_the_root_hashes(tmp_path: Path, small_report: Report) -> None:
    data = write(brief(small_report), tmp_path / "r.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", data)) > 2
    assert small_report.roots[0].encode() in data
    assert b"/Subtype /Image" not in data  # all of it is vectors
    assert write(brief(small_report), tmp_path / "again.pdf").read_bytes() == data


@pytest.mark.slow
def test_pdf_of_nasty_names(tmp_path: Path, nasty_report: Report) -> None:
    data = write(brief(nasty_report), tmp_path / "n.pdf").read_bytes()
    assert len(re.findall(rb"/Type /Page\b", data)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pdf", ".md", ".tex"])
def test_every_figure_is_drawn_for_paper(suffix: str, tmp_path: Path, full_report: Report) -> None:
    path = write(full_report, tmp_path / f"r{suffix}")
    assert path.stat().st_size > 20_000
    if suffix == ".pdf":
        assert len(re.findall(rb"/Type /Page\b", path.read_bytes())) >= len(full_report.charts)
    else:
        assert len(list((tmp_path / "r_figures").iterdir())) == len(full_report.charts)


def test_pictures_need_their_folder(tmp_path: Path, small_report: Report) -> None:
    (tmp_path / "r_figures").write_text("")
    with pytest.raises(WaterjarError, match="in the way"):
        write(brief(small_report), tmp_path / "r.md")
