"""Small tables for notebooks, and names of cells that are unique."""

from __future__ import annotations

from pathlib import Path

import waterjar
from waterjar.run.cells import name_cells
from waterjar.run.notebook import MOST_ROWS, table


def test_long_tables_are_cut_and_counted() -> None:
    page = table("title", ("a",), [(i,) for i in range(MOST_ROWS + 7)])
    assert page.count("<tr>") == MOST_ROWS + 1 and "and 7 more" in page


def test_a_study_and_a_run_say_what_they_are(run_path: Path) -> None:
    run = waterjar.open_run(run_path)
    page = run._repr_html_()
    assert "sealed" in page and "performance" in page and "first, second" in page and "learner" in page
    page = waterjar.open_study(run_path.parent)._repr_html_()
    assert "1 run in 1 cell" in page and "sgd" in page and "1 sealed" in page


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "r", {"api_key": "geheim"}, provenance=False) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
    assert "geheim" not in waterjar.open_run(tmp_path / "r")._repr_html_()


def test_an_empty_study(tmp_path: Path) -> None:
    assert "0 runs in 0 cells" in waterjar.open_study(tmp_path)._repr_html_()


def test_names_of_cells_are_unique() -> None:
    """Also where one looks like another with the first signs of its hash."""
    same = {"method": "sgd"}
    found = name_cells({"abcdef11": same, "abcdef22": same, "x": {"method": "sgd abcdef11"}})
    assert len(set(found.values())) == 3
    found = name_cells({"abcdef11": same, "abcdef22": same})
    assert len(set(found.values())) == 2
