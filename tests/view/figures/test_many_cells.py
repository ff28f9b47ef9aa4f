"""Every figure with two cells and with twelve of long names, some values missing: nothing is cut, nothing overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib.axis
import matplotlib.colors
import matplotlib.text
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import waterjar
from own_loops import continual_study
from recording import einstellung
from waterjar.diagnose.robustness import ROBUSTNESS_VARIABLES
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.curves import panel_limits, stops
from waterjar.view.style import line_styles, marker_styles

NAMES = [*(f"a learner with quite a long name, number {i}" for i in range(11)), "naive"]
SHIFTS = ("blur", "contrast", "gaussian_noise", "rotation", "snow", "a_shift_with_a_long_name")
RIGID = ("eri_dynamics", "eri_summary", "tau_heatmap")
SHOWN = ("cost_accuracy", "learning_curves", "metric_boxes", "metric_scatter", "plasticity_stack",
         "strategy_comparison", "task_matrix")  # fmt: skip


class Studies:
    """Made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, Diagnosis] = {}

    def __call__(self, kind: str, n: int) -> Diagnosis:
        name = f"{kind}-{n}"
        if name not in self._made:
            self._made[name] = {"rigid": _rigid, "own": _own, "shifted": _shifted}[kind](self._folder / name, n)
        return self._made[name]


def _own(folder: Path, n: int) -> Diagnosis:
    """Two networks that die, or twelve that live."""
    path = continual_study(folder, NAMES[-n:], (0, 1), epochs=1, tasks=2, rate=12.0 if n == 2 else 0.3)
    return diagnose(waterjar.open_study(path), families=["continual", "plasticity", "cost"])


def _shifted(folder: Path, n: int) -> Diagnosis:
    """Six shifts and two attacks of each; one learner lacks the attacks, and one a seed."""
    conditions = ["clean", *(f"seed/{name}/{i}" for name in SHIFTS for i in (1, 3)), "fgsm/0.03", "pgd/8-255"]
    waterjar.create_study(folder)
    for i, name in enumerate(NAMES[-n:]):
        for seed in (1, 2)[: 1 if i == 1 else 2]:
            there = conditions if i else conditions[:-2]
            labels = {"model": ["collective", "best_stream", "ensemble"], "condition": there}
            accuracy = np.linspace(0.9, 0.2, len(there)) - np.array([[0.0], [0.1], [0.05]]) + 0.01 * seed
            with waterjar.Recorder(
                folder / f"{i}-{seed}", {"method": name}, seeds=[seed], eval_sets=["test"], labels=labels,
                variables=ROBUSTNESS_VARIABLES,
            ) as recorder:  # fmt: skip
                recorder.log(epoch=1, performance={"accuracy": 0.9})
                ends = {"": accuracy, "_low": accuracy - 0.1, "_high": accuracy + 0.05}
                recorder.probe("robustness", {f"accuracy{end}": values[None] for end, values in ends.items()})
    return diagnose(waterjar.open_study(folder), families=["robustness"])


def _rigid(folder: Path, n: int) -> Diagnosis:
    """Some never reach the threshold, and a seed is missing."""
    waterjar.create_study(folder)
    for seed in (1, 2):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, epochs=6)
        for i in range(n - 1):
            if (i, seed) != (1, 2):
                about = {"delay": i % 4, "masked": 0.3 + 0.04 * i, "final": 0.5 if i == 3 else 0.8, "epochs": 6}
                einstellung(folder / f"{i}-{seed}", learner=NAMES[i], seed=seed, **about)
    return diagnose(waterjar.open_study(folder), families=["rigidity"])


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Studies:
    return Studies(tmp_path_factory.mktemp("many"))


def drawn_texts(figure: Figure) -> Iterator[tuple[matplotlib.text.Text, object]]:
    """Texts that are on the paper; labels of ticks outside of a panel's limits are not."""
    hidden = set()
    for axis in figure.findobj(matplotlib.axis.Axis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-6 * (high - low)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low - slack <= tick.get_loc() <= high + slack:
                hidden |= {tick.label1, tick.label2}
    renderer = figure.canvas.get_renderer()
    for text in figure.findobj(matplotlib.text.Text):
        shown = text.get_visible() and text.get_text().strip() and text not in hidden
        if shown and (text.axes is None or text.axes.get_visible()):
            box = text.get_window_extent(renderer)
            if box.width > 1 and box.height > 1:
                yield text, box


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [pytest.param(2, marks=pytest.mark.slow), 12])
@pytest.mark.parametrize(
    "name", [*SHOWN, "shift_severity", pytest.param("eri_dynamics", marks=pytest.mark.slow), *RIGID[1:]]
)
def test_no_text_is_cut_or_stands_over_another(name: str, n: int, studies: Studies) -> None:
    kind = "rigid" if name in RIGID else "shifted" if name == "shift_severity" else "own"
    figure = figures.draw(name, studies(kind, n))
    figure.draw_without_rendering()
    width, height = figure.bbox.width, figure.bbox.height
    found = list(drawn_texts(figure))
    cut = [t.get_text() for t, b in found if b.x0 < -2 or b.y0 < -2 or b.x1 > width + 2 or b.y1 > height + 2]
    assert cut == []
    over = [
        (one.get_text(), other.get_text())
        for i, (one, a) in enumerate(found)
        for other, b in found[:i]
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 2 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2
    ]
    assert over == []


def test_every_learner_begins_a_row_of_shifts(studies: Studies) -> None:
    panels = [ax for ax in figures.draw("shift_severity", studies("shifted", 12)).axes if ax.get_visible()]
    heads = [ax for ax in panels if not ax.get_title(loc="left").startswith("\n")]
    assert len(heads) == 12 and all(ax.get_subplotspec().is_first_col() for ax in heads)
    assert sum(ax.get_title(loc="left").endswith("attacks") for ax in panels) == 11
    assert len({str(line.get_linestyle()) for line in panels[0].lines}) == 3  # models, in grey, too


def test_the_baseline_is_told_from_a_learner_without_colour(studies: Studies) -> None:
    panel, widths = figures.draw("eri_dynamics", studies("rigid", 2)).axes[0], {}
    for line in panel.lines:
        if len(line.get_xdata()) > 2:
            widths.setdefault(line.get_linestyle(), set()).add(line.get_linewidth())
    assert {style: len(found) for style, found in widths.items()} == {"-": 2, "--": 2}


def test_twelve_cells_are_told_apart_without_colour() -> None:
    lines, markers = line_styles(NAMES), marker_styles(NAMES)
    assert len({str(style["linestyle"]) for style in lines.values()}) == 12
    assert len({str(style) for style in line_styles([str(i) for i in range(84)]).values()}) == 84

    def grey(colour: str) -> float:
        return float(np.dot(matplotlib.colors.to_rgb(colour), (0.299, 0.587, 0.114)))

    same = [
        (one, other)
        for one, a in markers.items()
        for other, b in markers.items()
        if one < other and a["marker"] == b["marker"] and abs(grey(a["color"]) - grey(b["color"])) < 0.05
    ]
    assert same == []


def test_bands_do_not_flatten_lines_and_early_ends_are_told() -> None:
    table = pd.DataFrame({"mean": [1.0, 2.0, 1.5], "low": [0.9, 1.9, 1.4], "high": [1.1, 200.0, 1.6]})
    low, high = panel_limits(table) or (0, 0)
    assert low < 0.9 and 2.0 < high < 5
    assert panel_limits(table.assign(high=[1.1, 2.1, 1.6])) is None
    assert panel_limits(table.assign(mean=np.nan)) is None
    rows = [("rank", "a", x, 1.0 if x < 2 else np.nan, "" if x < 2 else "1 of 3 undefined") for x in range(4)]
    rows += [("rank", "b", x, 1.0, "") for x in range(4)]
    frame = pd.DataFrame(rows, columns=["metric", "cell", "total_epoch", "mean", "reason"])
    assert stops(frame, "total_epoch") == ["a: rank ends at 1 (1 of 3 undefined)"]


def test_what_of_losses_is_drawn_speaks_of_losses(tmp_path: Path) -> None:
    from own_loops import loss_study

    study = waterjar.open_study(loss_study(tmp_path / "s", seeds=(0, 1), epochs=3))
    figure = figures.draw("learning_curves", study)
    assert [ax.get_ylabel() for ax in figure.axes] == ["loss (nat) ↓"]
    training = figures.draw("learning_curves", study, group="train")
    assert [ax.get_ylabel() for ax in training.axes] == ["training loss (nat) ↓"]
    with pytest.raises(WaterjarError, match="'accuracy' is unknown"):
        figures.draw("learning_curves", study, variable="accuracy")
