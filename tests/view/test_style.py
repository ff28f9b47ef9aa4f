"""Names fit to be drawn, styles told apart, files that are what they say."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
import matplotlib as mpl
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from waterjar.errors import WaterjarError
from waterjar.view.style import (
    axis_end,
    check_target,
    drawn,
    house_style,
    labels,
    line_styles,
    marker_styles,
    save,
)


@given(st.text(max_size=40))
def test_any_text_can_be_drawn_and_stays_text(text: str) -> None:
    with house_style():
        figure = Figure(figsize=(1, 1), layout="none")
        FigureCanvasAgg(figure)
        found = figure.text(0.1, 0.5, drawn(text))
        _, is_formula = found._preprocess_math(found.get_text())
        assert not is_formula
        found.get_window_extent()  # a glyph that is missing would be a warning, and that an error


def test_what_is_shown() -> None:
    with house_style():
        assert drawn("a\nb\tc") == "a b c"
        assert drawn("\x1b[31m 漢 \u202e") == "□[31m □ □"
        assert drawn("cost $5 or $6") == r"cost \$5 or \$6"
        assert drawn("naïve – ↑ τ") == "naïve – ↑ τ"


def test_lines_of_a_label_fit() -> None:
    with house_style():
        shown = labels(["one two three $ four " * 20], most=30, width=12)
        assert max(len(line.replace("\\$", "$")) for label in shown.values() for line in label.split("\n")) <= 12


def test_a_name_that_begins_with_an_underscore_is_in_the_legend() -> None:
    with house_style():
        shown = labels(["_under_score $", "sgd"], width=8)
        ax = Figure(layout="none").subplots()
        for label in shown.values():
            ax.plot([0, 1], label=label)
        texts = [text.get_text() for text in ax.legend().get_texts()]
    assert [text.replace("\n", "").strip() for text in texts] == [r"_under_score \$", "sgd"]


def test_neighbours_differ_in_colour_and_in_dash() -> None:
    names = [str(i) for i in range(28)]
    for styles in (line_styles(names), marker_styles(names)):
        assert len({tuple(style.values()) for style in styles.values()}) == 28
        for one, other in pairwise(names):
            assert all(styles[one][key] != styles[other][key] for key in styles[one])


def test_a_users_tex_setting_does_not_reach_us() -> None:
    with mpl.rc_context({"text.usetex": True}), house_style():
        assert mpl.rcParams["text.usetex"] is False


def test_axis_ends() -> None:
    assert [axis_end(u, d) for u, d in (("1", "higher"), ("epoch", "none"), ("s", "lower"), ("1", "zero"))] == [
        " ↑", " (epoch)", " (s) ↓", " →0"
    ]  # fmt: skip


def test_where_a_figure_can_be_saved(tmp_path: Path) -> None:
    assert check_target(tmp_path / "X.PDF") == tmp_path / "X.PDF"
    (tmp_path / "folder.png").mkdir()
    for path in (tmp_path / "x", tmp_path / "x.gif", tmp_path / "folder.png"):
        with pytest.raises(WaterjarError, match=r"a figure is saved as \.png"):
            check_target(path)
    (tmp_path / "file").write_text("")
    with pytest.raises(WaterjarError, match="could not write"):
        save(Figure(), tmp_path / "file" / "x.png")
    small, large = (save(Figure(figsize=(1, 1)), tmp_path / f"{dpi}.png", dpi=dpi).stat().st_size for dpi in (10, 400))
    assert small < large
