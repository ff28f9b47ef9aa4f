"""Figures as functions: names, signatures, every source."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

import outside
import waterjar as wj
from waterjar.front.stubs import stubs
from waterjar.run.shelf import SHELVES
from waterjar.view.figures.learning_curves import learning_curves

HERE = Path(__file__).resolve().parents[2] / "src/waterjar/front/plot.pyi"


def test_every_figure_is_listed_and_has_its_own_signature() -> None:
    assert dir(wj.plot) == list(SHELVES["figures"].names())
    assert inspect.signature(wj.plot.learning_curves) == inspect.signature(learning_curves)
    assert wj.plot.learning_curves.__doc__ == learning_curves.__doc__


def test_of_a_study_the_source_is_bound(kept: Path) -> None:
    plots = wj.open_study(kept).plot
    assert dir(plots) == dir(wj.plot) and "learning_curves" in repr(plots)
    _, *rest = inspect.signature(learning_curves).parameters.values()
    assert list(inspect.signature(plots.learning_curves).parameters.values()) == rest


def test_ipython_completes_figures_of_a_study(kept: Path) -> None:
    ipython = pytest.importorskip("IPython.core.completer")
    completer = ipython.IPCompleter(namespace={"wj": wj, "study": wj.open_study(kept)}, use_jedi=False)
    for line, name in (
        ("wj.plot.lear", "learning_curves"),
        ("study.plot.lear", "learning_curves"),
        ("wj.diag", "diagnose"),
    ):
        with ipython.provisionalcompleter():
            found = [one.text for one in completer.completions(line, len(line))]
        assert [text.rpartition(".")[2] for text in found] == [name], line


def test_stubs_are_what_the_figures_say() -> None:
    assert HERE.read_text() == stubs(), "run python -m waterjar.front.stubs src/waterjar/front/plot.pyi"


def test_a_wrong_name_and_a_wrong_setting(kept: Path) -> None:
    with pytest.raises(AttributeError, match="did you mean 'learning_curves'"):
        wj.plot.learning_curve  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'task_matrix'"):
        wj.open_study(kept).plot.task_matrx  # noqa: B018
    with pytest.raises(wj.WaterjarError, match="did you mean 'variable'"):
        wj.plot.learning_curves(kept, varable="loss")


def test_every_source_draws_the_same(kept: Path) -> None:
    pytest.importorskip("matplotlib")
    study = wj.open_study(kept)
    drawn = [wj.plot.task_matrix(kept), wj.plot.task_matrix(str(kept)), study.plot.task_matrix()]
    drawn += [study.measure().plot.task_matrix(), wj.plot.task_matrix(study.measure("continual"))]
    texts = [[text.get_text() for ax in figure.axes for text in ax.texts] for figure in drawn]
    assert texts[0] and all(text == texts[0] for text in texts)
    assert wj.open_run(kept / "0").plot.learning_curves().axes


def test_figures_from_outside_are_there_too(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(tmp_path)
    outside.install(tmp_path)
    outside.forget(tmp_path)
    try:
        assert "last_accuracy" in dir(wj.plot)
        assert wj.plot.last_accuracy(kept).axes and wj.open_study(kept).plot.last_accuracy().axes
    finally:
        monkeypatch.undo()
        outside.forget(tmp_path)


def test_a_notebook_is_told_how_to_show_them(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    known: dict[type, object] = {}

    class Pictures:
        def lookup_by_type(self, kind: type) -> object:
            return known[kind]

        def for_type(self, kind: type, function: object) -> None:
            known[kind] = function

    class Shell:
        kernel = object()
        display_formatter = type("Formatter", (), {"formatters": {"image/png": Pictures()}})()

    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(Shell)}))
    figure = wj.plot.learning_curves(kept)
    assert known[type(figure)](figure).startswith(b"\x89PNG")  # type: ignore[operator]
