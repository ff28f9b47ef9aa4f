"""The notebook opens the study and draws it anew."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest

import loops
from view.report.studies import charts_of
from waterjar.errors import WaterjarError
from waterjar.run.study import study_at
from waterjar.view.notebook import notebook, write_notebook
from waterjar.view.report import Model, compose, model_of
from waterjar.view.report.blocks import Report


def test_it_is_a_valid_notebook_with_a_cell_per_figure(small_report: Report, nasty_report: Report) -> None:
    for report in (small_report, nasty_report):
        made = notebook(report, "../study")
        nbformat.validate(nbformat.from_dict(made))
        code = [cell["source"] for cell in made["cells"] if cell["cell_type"] == "code"]
        for text in code[1:]:  # the first is a magic of Jupyter's
            ast.parse(text)
        assert [c for c in code if c.startswith("figures.draw")] == [
            f"figures.draw({chart.figure!r}, found{''.join(f', {k}={v!r}' for k, v in chart.settings.items())})"
            for chart in charts_of(report)
        ]


def test_it_knows_the_way_to_the_study(tmp_path: Path, small: Model, small_report: Report) -> None:
    path = write_notebook(small_report, tmp_path / "studies" / "mine", tmp_path / "notes" / "a.ipynb")
    assert "'../studies/mine'" in path.read_text()
    assert str(tmp_path) not in path.read_text()
    with pytest.raises(WaterjarError, match="ends in .ipynb"):
        write_notebook(small_report, small.study.path, tmp_path / "a.py")


def test_an_empty_study_has_one_too(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    made = notebook(compose(model_of(study_at(tmp_path / "s"))), "s")
    assert len(made["cells"]) == 3


@pytest.mark.slow
def test_it_runs(tmp_path: Path, small: Model, small_report: Report) -> None:
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    path = write_notebook(small_report, small.study.path, tmp_path / "a.ipynb", where="learner != er")
    book = nbformat.read(path, as_version=4)
    client.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    pictures = [
        output
        for cell in book.cells
        if cell.cell_type == "code" and cell.source.startswith("figures.draw")
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == len(charts_of(small_report))
    said = next(cell for cell in book.cells if cell.source.startswith("for name, sentence"))
    assert "sgd" in said.outputs[0].text and "er needs" not in said.outputs[0].text
    (trend,) = [cell for cell in book.cells if "sensitivity(study" in cell.source]
    assert "threshold" in trend.outputs[0].data["text/plain"] and "0.7" in trend.outputs[0].data["text/plain"]
    (own,) = [cell for cell in book.cells if "plt.subplots" in cell.source]
    assert any("image/png" in output.get("data", {}) for output in own.outputs)


@pytest.mark.slow
def test_that_of_a_study_without_rigidity_runs(tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    study = study_at(loops.study(tmp_path / "study", features=True))
    path = write_notebook(compose(model_of(study)), study.path, tmp_path / "a.ipynb")
    book = nbformat.read(path, as_version=4)
    assert any("'dormant_units', 'tau'" in cell.source for cell in book.cells)
    client.NotebookClient(
        book, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
