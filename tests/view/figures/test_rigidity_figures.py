"""eri_dynamics, eri_summary, tau_heatmap against curves chosen by hand, read back from what is drawn.

`scratch_t2` reaches 0.81, 0.82, 0.83 (by seed) in four equal steps, `late` one epoch later, `low` 0.51, 0.52, 0.53.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import waterjar
from recording import einstellung
from waterjar.diagnose import rigidity
from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.style import COLOURS


def rise(final: float, delay: int = 0, window: int = 1) -> np.ndarray:
    curve = final * np.clip((np.arange(7) - delay) / 4, 0, 1)
    return np.array([curve[max(0, t - window + 1) : t + 1].mean() for t in range(7)])


def test_the_index_of_each_learner(by_hand: waterjar.Study) -> None:
    table = figures.data("eri_summary", by_hand, window=1, threshold=0.6)
    assert set(table["cell"]) == {"late", "low"}  # the baseline is 0 by definition
    late = table[(table.cell == "late") & (table.metric == "ad")]
    assert late["value"].tolist() == [1.0, 1.0, 1.0]  # one epoch, in every seed
    assert set(late["measured_as"]) == {"ad"}
    low = table[(table.cell == "low") & (table.metric == "ad")]
    assert set(low["measured_as"]) == {"ad_restricted"}
    assert low["value"].tolist() == [3.0, 3.0, 3.0]  # 6 epochs of budget, scratch needs 3
    assert low["censored"].all() and (low["n_censored"] == 3).all()
    deficit = table[(table.cell == "low") & (table.metric == "pd")].iloc[0]
    assert deficit["mean"] == pytest.approx(0.3)
    added = table[(table.cell == "late") & (table.metric == "sfr_rel")]
    final, masked = 0.8 + 0.01 * np.array([1, 2, 3]), 0.1 + 0.02 * np.array([1, 2, 3])
    expected = final * (1 - masked) - final * 0.1
    np.testing.assert_allclose(added["value"], expected)
    low_bound, high_bound = stats.t.interval(0.95, 2, expected.mean(), stats.sem(expected))
    np.testing.assert_allclose(added[["low", "high"]].iloc[0], [low_bound, high_bound])


def test_the_summary_draws_what_the_table_has(by_hand: waterjar.Study) -> None:
    figure = figures.draw("eri_summary", by_hand, window=1)
    table = figures.data("eri_summary", by_hand, window=1)
    assert [ax.get_xlabel() for ax in figure.axes] == ["AD (epoch)", "PD", "SFR_rel ↓"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["late", "low"]
    for ax, metric in zip(figure.axes, ("ad", "pd", "sfr_rel"), strict=True):
        for row, cell in enumerate(("late", "low")):
            part = table[(table.cell == cell) & (table.metric == metric)]
            dots = ax.collections[row].get_offsets()
            np.testing.assert_allclose(dots[:, 0], part["value"])
            drawn = [line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_ydata()[0] == row]
            np.testing.assert_allclose(drawn[0].get_xdata(), part["mean"].iloc[0])
            bars = [line.get_xdata() for line in ax.lines if list(line.get_ydata()) == [row, row]]
            np.testing.assert_allclose(bars[0], part[["low", "high"]].iloc[0])
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == 1
    assert [text.get_text() for text in figure.axes[0].texts] == ["3 of 3 seeds censored; within 6 epochs"]
    assert not figure.axes[1].patches
    censored = figure.axes[0].collections[1].get_facecolors()
    assert len(censored) == 0 or (censored[:, 3] == 0).all()  # open dots


def test_a_cell_has_one_colour_in_every_figure(tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = waterjar.create_study(tmp_path / "s")
    for seed in (1, 2):
        einstellung(folder / f"b-{seed}", scenario="scratch_t2", seed=seed)
        einstellung(folder / f"a-{seed}", learner="late", seed=seed, delay=1)
        einstellung(folder / f"c-{seed}", learner="low", seed=seed, final=0.5)
    by_hand = waterjar.open_study(folder)
    order = list(by_hand.cell_names.values())
    assert order == ["late", "scratch_t2", "low"]  # leaving the baseline out must not shift the colours
    expected = {name: COLOURS[i] for i, name in enumerate(order)}
    found: dict[str, dict[str, str]] = {}
    for name, source in (
        ("eri_summary", by_hand), ("eri_summary", rigidity.measure(by_hand)), ("strategy_comparison", by_hand)
    ):  # fmt: skip
        left, ax = figures.draw(name, source).axes[:2]
        cells = [label.get_text() for label in left.get_yticklabels()]
        means = {line.get_ydata()[0]: line.get_color() for line in ax.lines if line.get_linestyle() == "None"}
        found[name] = {cell: means[row] for row, cell in enumerate(cells)}
        assert found[name].items() <= expected.items() and len(found[name]) >= 2
    for name in ("learning_curves", "eri_dynamics", "cost_accuracy"):
        ax = figures.draw(name, by_hand).axes[-1 if name == "eri_dynamics" else 0]
        if ax.containers:
            colours = {str(bar.get_label()): bar.lines[0].get_color() for bar in ax.containers}
        else:
            colours = {str(line.get_label()): line.get_color() for line in ax.lines if line.get_label() in order}
        assert colours == expected, name


def test_dynamics_are_the_smoothed_curves_and_their_differences(by_hand: waterjar.Study) -> None:
    table = figures.data("eri_dynamics", by_hand, window=3, threshold=0.6, band="range")
    finals = 0.8 + 0.01 * np.array([1, 2, 3])

    def part(panel: str, cell: str, quantity: str | None = None) -> pd.DataFrame:
        found = table[(table.panel == panel) & (table.cell == cell)]
        return found if quantity is None else found[found.quantity == quantity]

    curves = np.array([rise(final, 1, window=3) for final in finals])
    np.testing.assert_allclose(part("accuracy", "late", "patched")["mean"], curves.mean(axis=0))
    np.testing.assert_allclose(part("accuracy", "late", "patched")["high"], curves.max(axis=0))
    base = np.array([rise(final, 0, window=3) for final in finals])
    np.testing.assert_allclose(part("pd", "late")["mean"], (base - curves).mean(axis=0), atol=1e-12)
    masked = np.array([(0.1 + 0.02 * seed) for seed in (1, 2, 3)])[:, None] * curves
    np.testing.assert_allclose(part("sfr", "late")["mean"], (curves - masked).mean(axis=0), atol=1e-12)
    crossing = part("crossing", "late")
    assert crossing[crossing.quantity == "learner"]["effective_epoch"].tolist() == [5.0, 5.0, 5.0]
    assert crossing[crossing.quantity == "baseline"]["effective_epoch"].tolist() == [4.0, 4.0, 4.0]
    low = part("crossing", "low", "learner")
    assert low["censored"].all() and low["effective_epoch"].isna().all()
    assert set(low["reason"]) == {"never_reached"}
    delay = part("ad", "late").set_index("effective_epoch")["mean"]
    assert np.isnan(delay[3.0]) and delay[4.0] == 0.0 and delay[5.0] == delay[6.0] == 1.0
    result = rigidity.measure(by_hand, window=3)
    ends = {str(n): float(v) for n, v in zip(result["cell"].values, result["ad_restricted_mean"].values, strict=True)}
    for cell in ("late", "low"):  # it ends in the number of the index
        assert part("ad", cell)["mean"].iloc[-1] == pytest.approx(ends[cell])


def test_dynamics_are_drawn_with_tau_and_both_crossings(by_hand: waterjar.Study) -> None:
    figure = figures.draw("eri_dynamics", by_hand, threshold=0.6)
    table = figures.data("eri_dynamics", by_hand, threshold=0.6)
    assert len(figure.axes) == 2 + 3
    late = figure.axes[0]
    assert late.get_title(loc="left") == "late"
    level = [line for line in late.lines if line.get_linestyle() == ":"]
    assert list(level[0].get_ydata()) == [0.6, 0.6]
    marked = {line.get_gid(): list(line.get_xdata()) for line in late.lines if line.get_gid()}
    assert marked == {
        "crossing baseline": [4.0] * 3, "crossing learner": [5.0] * 3,
        "mean crossing baseline": [4.0] * 2, "mean crossing learner": [5.0] * 2,
    }  # fmt: skip
    entry = "mean epoch, where all seeds do"
    assert entry in [text.get_text() for text in figure.legends[0].get_texts()]
    never = figures.draw("eri_dynamics", by_hand, threshold=0.95)
    assert entry not in [text.get_text() for text in never.legends[0].get_texts()]
    note = never.axes[0].texts[0]
    behind = note.get_bbox_patch()
    assert behind is not None and behind.get_facecolor() == (1.0, 1.0, 1.0, 1.0)  # no line is seen through it
    assert note.get_zorder() > max(line.get_zorder() for line in never.axes[0].lines)
    patched = table[(table.panel == "accuracy") & (table.cell == "late") & (table.quantity == "patched")]
    assert any(np.array_equal(line.get_ydata(), patched["mean"]) for line in late.lines)
    assert [text.get_text() for text in figure.axes[1].texts] == ["τ never reached in 3 of 3 seeds"]
    assert [ax.get_ylabel() for ax in figure.axes[2:]] == ["AD so far (epoch)", "PD", "SFR →0"]
    assert {text.get_text() for text in figure.legends[1].get_texts()} == {"late", "low", "scratch_t2"}
    assert "trailing mean over 3 evaluations" in figure.legends[1].get_title().get_text()


def test_a_result_has_no_curves(by_hand: waterjar.Study) -> None:
    result = rigidity.measure(by_hand)
    with pytest.raises(WaterjarError, match="expected a run, a study or a diagnosis, not a result of rigidity"):
        figures.draw("eri_dynamics", result)
    pd.testing.assert_frame_equal(figures.data("eri_summary", result), figures.data("eri_summary", by_hand))
    assert len(figures.data("tau_heatmap", rigidity.measure(by_hand.run("late-1")))) == 11


def test_thresholds_as_squares(by_hand: waterjar.Study) -> None:
    grid = [0.3, 0.5, 0.7, 0.9]
    table = figures.data("tau_heatmap", by_hand, window=1, thresholds=grid)
    cells = table.set_index(["cell", "threshold"])
    assert cells["mean"]["late"].tolist()[:3] == [1.0, 1.0, 1.0]
    assert np.isnan(cells["mean"]["late", 0.9]) and cells["reason"]["late", 0.9] == "never_reached"
    # 0.51, 0.52, 0.53 are reached in four steps: 0.3 in the third, where 0.81 has it in the second
    assert cells["mean"]["low"].tolist()[:2] == [1.0, 1.0]
    assert cells["n_censored"]["low"].tolist() == [0, 0, 3, 3]
    figure = figures.draw("tau_heatmap", by_hand, window=1, thresholds=grid)
    ax = figure.axes[0]
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, table["mean"].to_numpy().reshape(2, 4))
    assert sum(patch.get_gid() == "hatched" for patch in ax.patches) == 1 + 2
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.3", "0.5", "0.7", "0.9"]
    low, high = ax.images[0].get_clim()
    assert low == -high == -1.0
    assert [text.get_text() for text in ax.texts] == ["1.0"] * 3 + ["–"] + ["1.0"] * 2 + ["–"] * 2


def test_some_seeds_censored_are_counted(tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = waterjar.create_study(tmp_path / "s")
    for seed, final in ((1, 0.4), (2, 0.8)):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed)
        einstellung(folder / f"half-{seed}", learner="half", seed=seed, final=final)
    study = waterjar.open_study(folder)
    table = figures.data("tau_heatmap", study, window=1, thresholds=[0.6])
    assert table[["mean", "n", "n_seeds", "n_censored"]].to_numpy().tolist() == [[0.0, 1, 2, 1]]
    grid = [0.2, 0.6]
    ax = figures.draw("tau_heatmap", study, window=1, thresholds=grid).axes[0]
    assert [text.get_text() for text in ax.texts] == ["0.5", "0.0\n1/2"]
    shown = np.ma.filled(ax.images[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, [[0.5, np.nan]])  # colour only where every seed has a value
    assert [patch.get_x() for patch in ax.patches if patch.get_gid() == "hatched"] == [0.5]
    assert "n/m seeds that reach" in ax.get_xlabel()
    figures.draw("tau_heatmap", study, window=1, thresholds=[0.6])  # no square has a colour
    label = figures.draw("eri_summary", study, window=1).axes[0].texts[0].get_text()
    assert label == "1 of 2 seeds censored; within 6 epochs"


def test_nobody_reaches_the_threshold(by_hand: waterjar.Study) -> None:
    figure = figures.draw("eri_summary", by_hand, threshold=0.95)
    assert {text.get_text() for text in figure.axes[0].texts} == {"3 of 3 seeds censored"}
    assert not list(figure.axes[0].get_xticks())
    dynamics = figures.draw("eri_dynamics", by_hand, threshold=0.95)
    assert any("no AD: 3 of 3 never_reached" in text.get_text() for text in dynamics.axes[2].texts)
    heat = figures.draw("tau_heatmap", by_hand, thresholds=[0.95])
    assert "no AD at any threshold: never_reached" in heat.axes[0].texts[0].get_text()


def test_without_a_baseline(tmp_path) -> None:  # type: ignore[no-untyped-def]
    einstellung(tmp_path / "s" / "a", learner="sgd", seed=1)
    study = waterjar.open_study(tmp_path / "s")
    figure = figures.draw("eri_summary", study)
    assert "1 of 1 no_baseline" in figure.axes[0].texts[0].get_text()
    dynamics = figures.draw("eri_dynamics", study)
    assert any("no baseline" in text.get_text() for text in dynamics.axes[1].texts)
    assert figures.data("eri_dynamics", study)["baseline"].eq("").all()


def test_a_learner_without_any_accuracy_says_so(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for seed in (1, 2):
        einstellung(tmp_path / "s" / f"scratch-{seed}", scenario="scratch_t2", seed=seed)
        einstellung(tmp_path / "s" / f"good-{seed}", learner="good", seed=seed)
        einstellung(tmp_path / "s" / f"nan-{seed}", learner="nan", seed=seed, final=float("nan"))
    figure = figures.draw("eri_dynamics", waterjar.open_study(tmp_path / "s"))
    said = {ax.get_title("left"): [text.get_text() for text in ax.texts] for ax in figure.axes}
    assert any("no accuracy: 2 of 2 not a number" in text for text in said["nan"]), said
    assert not any("no accuracy" in text for text in said["good"])
