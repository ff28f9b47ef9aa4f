"""correlation_heatmap and cost_accuracy: numbers over runs, against scipy and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import waterjar
from bounded_means import score_interval
from waterjar.diagnose.coupling import coupled
from waterjar.diagnose.registry import forget, metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.stats import detectable_correlation
from waterjar.view import figures
from waterjar.view.figures.correlation_heatmap import could_show


def test_correlations_are_those_of_scipy(whole: Diagnosis) -> None:
    names = ["patched_accuracy", "average_accuracy", "seconds", "effective_rank"]
    table = figures.data("correlation_heatmap", whole, metrics=names)
    assert len(table) == 6 and set(table["n"]) == {9}
    values = whole.table(names).pivot(index=["cell", "seed"], columns="metric", values="value")
    for line in table.itertuples():
        found = stats.spearmanr(values[line.x], values[line.y])
        assert line.r == pytest.approx(found.statistic)
        assert line.p_value == pytest.approx(found.pvalue)
        assert line.significant == (line.p_corrected <= 0.05)


def test_pooled_stand_below_within_above_and_unsure_ones_in_brackets(whole: Diagnosis) -> None:
    names = ["patched_accuracy", "average_accuracy", "seconds", "effective_rank"]
    figure = figures.draw("correlation_heatmap", whole, metrics=names)
    table = figures.data("correlation_heatmap", whole, metrics=names)
    ax = figure.axes[0]
    shown = np.asarray(ax.images[0].get_array())
    np.testing.assert_array_equal(np.diag(shown), 1.0)
    order = [label.get_text().replace(" ", "_") for label in ax.get_xticklabels()]
    assert sorted(order) == sorted(names)
    for line in table.itertuples():  # x stands before y in the order
        assert shown[order.index(line.y), order.index(line.x)] == line.r
        assert shown[order.index(line.x), order.index(line.y)] == line.r_within
    texts = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts}
    for line in table.itertuples():
        text = texts[order.index(line.y), order.index(line.x)]
        assert text.startswith("(") != line.significant
        text = texts[order.index(line.x), order.index(line.y)]
        assert text.startswith("(") == (line.p_within_corrected > 0.05)
    told = figure.legends[0].get_title().get_text()
    assert "above: within learners" in told and "Benjamini-Hochberg over 6 pairs" in told
    assert f"n = 9 repeats could show a single |r| of {detectable_correlation(9, method='spearman'):.3f}" in told
    assert "n = 9 repeats" in figure.axes[1].get_ylabel()


def test_that_so_few_runs_could_show_nothing_is_said() -> None:
    pairs = pd.DataFrame({"r": [1.0, np.nan, 0.5], "n": [4, 0, 9], "method": "spearman"})
    pairs["detectable"] = [detectable_correlation(n, method="spearman") for n in pairs["n"]]
    assert could_show(pairs) == "n = 4 repeats: no r could be shown with so few runs"
    assert could_show(pairs[1:]).startswith("n = 9 repeats could show a single |r| of 0.82")
    assert could_show(pairs[1:2]) == "" == could_show(pairs[:1].assign(method="pearson"))


def test_the_baselines_zeros_take_no_part(whole: Diagnosis) -> None:
    table = figures.data("correlation_heatmap", whole, metrics=["pd", "patched_accuracy"])
    assert table["n"].tolist() == [6] and table["n_missing"].tolist() == [3]
    assert "pd" in set(figures.data("correlation_heatmap", whole)["x"]) | set(
        figures.data("correlation_heatmap", whole)["y"]
    )


def test_too_little_to_correlate(tmp_path: Path, whole: Diagnosis) -> None:
    with waterjar.Recorder(tmp_path / "s" / "a", {"learner": "x"}, eval_sets={"t": 0}, tasks=["t"]) as recorder:
        recorder.log(train_task="t", epoch=0, performance={"accuracy": [0.5]})
    with pytest.raises(WaterjarError, match="two metrics that differ between runs are needed"):
        figures.draw("correlation_heatmap", waterjar.open_study(tmp_path / "s"))
    with pytest.raises(WaterjarError, match="did you mean 'seconds'"):
        figures.draw("correlation_heatmap", whole, metrics=["second", "pd"])
    constant = figures.draw("correlation_heatmap", whole, metrics=["flops", "peak_memory", "seconds"])
    assert [text.get_text() for text in constant.legends[0].get_texts()] == ["no value"]
    assert np.isnan(np.ma.filled(np.ma.asarray(constant.axes[0].images[0].get_array(), float), np.nan)).any()


def test_pairs_that_share_an_input_are_hatched_and_not_tested(whole: Diagnosis) -> None:
    names = ["pd", "patched_accuracy", "seconds"]
    table = figures.data("correlation_heatmap", whole, metrics=names).set_index(["x", "y"])
    alike = table["coupled"]
    assert [set(pair) for pair in table.index[alike]] == [{"pd", "patched_accuracy"}]
    assert table.loc[alike, "p_corrected"].isna().all() and set(table["family_size"]) == {2}
    figure = figures.draw("correlation_heatmap", whole, metrics=names)
    hatched = [patch for patch in figure.axes[0].patches if patch.get_gid() == "hatched"]
    assert len(hatched) == 2  # below the diagonal and above
    assert "share an input by arithmetic" in figure.legends[0].get_texts()[0].get_text()


@pytest.mark.parametrize(
    ("one", "others"),
    [
        ("masked_accuracy", "masked_gap reliance_share sfr sfr_rel"),
        ("masked_gap", "reliance_share sfr_rel"),
        ("reliance_share", "pd sfr patched_accuracy"),
        ("nonshortcut_accuracy", "cue_conflict mask_damage worst_group_accuracy"),
        ("clean_accuracy", "worst_group_accuracy cue_gain"),
        ("worst_case_accuracy", "min_accuracy learning_accuracy average_accuracy"),
        ("average_accuracy", "learning_accuracy min_accuracy average_anytime_accuracy remembering intransigence"),
        ("backward_transfer", "remembering forgetting_rate max_dip forgetting unread_forgetting"),
        ("zero_shot", "forward_transfer_gem learning_accuracy"),
        ("effective_rank", "stable_rank spectral_stable_rank"),
        ("weight_change_init", "weight_change_task"),
        ("cka", "procrustes"),
        ("nc2_equiangularity", "nc2_maximal_angle"),
    ],
)
def test_what_shares_an_input_is_coupled(one: str, others: str) -> None:
    assert [other for other in others.split() if not coupled(one, other)] == []


def test_what_shares_none_is_tested() -> None:
    apart = [
        "pd masked_gap", "masked_accuracy worst_group_accuracy", "ad pd", "min_accuracy learning_accuracy",
        "learning_time average_accuracy", "forward_transfer_gem backward_transfer", "capacity effective_rank",
    ]  # fmt: skip
    assert [pair for pair in apart if coupled(*pair.split())] == []


def test_a_strangers_metric_says_what_it_is_made_of() -> None:
    def half(pair: Pair) -> Result:
        raise NotImplementedError

    about = {
        "family": "rigidity",
        "long_name": "half",
        "formula": "PD/2",
        "citation": "here",
        "needs": ("performance",),
    }
    metric("half_pd", made_of=("pd",), **about)(half)  # type: ignore[arg-type]
    try:
        assert coupled("half_pd", "pd") and coupled("patched_accuracy", "half_pd") and coupled("half_pd", "sfr")
        assert not coupled("half_pd", "seconds")
    finally:
        forget("half_pd")


def test_costs_and_accuracies_by_hand(tmp_path: Path) -> None:
    for seed, seconds, accuracy in ((1, 10.0, 0.5), (2, 14.0, 0.7), (3, 12.0, 0.6)):
        with waterjar.Recorder(
            tmp_path / "s" / f"a-{seed}", {"learner": "a"}, seeds=[seed], eval_sets={"t": 0}, tasks=["t"]
        ) as recorder:
            for epoch in (0, 1):
                recorder.log(
                    train_task="t", epoch=epoch, performance={"accuracy": [accuracy * epoch]},
                    resources={"seconds": seconds / 2, "flops": 1e9},
                )  # fmt: skip
    with waterjar.Recorder(tmp_path / "s" / "b", {"learner": "b"}, seeds=[1], eval_sets={"t": 0}, tasks=["t"]) as free:
        free.log(train_task="t", epoch=0, performance={"accuracy": [0.1]}, resources={"seconds": 1.0})
    study = waterjar.open_study(tmp_path / "s")
    table = figures.data("cost_accuracy", study)
    of_a = table[table.cell == "a"].iloc[0]
    assert (of_a["cost_mean"], of_a["accuracy_mean"], of_a["cost_n"]) == (12.0, pytest.approx(0.6), 3)
    by_hand = score_interval(np.array([10.0, 14.0, 12.0]), (0.0, np.inf))
    np.testing.assert_allclose(of_a[["cost_low", "cost_high"]].tolist(), by_hand)
    figure = figures.draw("cost_accuracy", study)
    ax = figure.axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("seconds (s) ↓", "average accuracy ↑")
    bars = {bar.get_label(): bar for bar in ax.containers}
    assert bars["a"].lines[0].get_xdata()[0] == 12.0
    across, up = (lines.get_segments()[0] for lines in bars["a"].lines[2])
    np.testing.assert_allclose(across[:, 0], of_a[["cost_low", "cost_high"]].tolist())
    np.testing.assert_allclose(up[:, 1], of_a[["accuracy_low", "accuracy_high"]].tolist())
    seeds = ax.collections[0].get_offsets()
    np.testing.assert_allclose(seeds, [[10.0, 0.5], [14.0, 0.7], [12.0, 0.6]])
    flops = figures.data("cost_accuracy", study, cost="flops")
    assert flops[flops.cell == "b"]["cost_reason"].tolist() == ["not_recorded"]
    drawn = figures.draw("cost_accuracy", study, cost="flops").axes[0]
    assert drawn.get_xlabel() == "flops (floating-point operations) ↓"
    assert len(drawn.containers) == 1  # b has no cost to stand at
    assert drawn.get_xlim()[0] >= 0
    with pytest.raises(WaterjarError, match="expected a metric of the cost family"):
        figures.draw("cost_accuracy", study, cost="average_accuracy")
    nothing = figures.draw("cost_accuracy", study, accuracy="forgetting").axes[0]
    assert "no run has both seconds and forgetting" in nothing.texts[0].get_text()


def test_no_interval_reaches_below_a_cost_of_nothing(tmp_path: Path) -> None:
    for learner, costs in (("wide", (1.0, 9.0)), ("narrow", (4.0, 4.1))):
        for seed, seconds in enumerate(costs):
            path = tmp_path / "s" / f"{learner}-{seed}"
            with waterjar.Recorder(path, {"learner": learner}, seeds=[seed], eval_sets={"t": 0}, tasks=["t"]) as run:
                run.log(train_task="t", epoch=0, performance={"accuracy": [0.5]}, resources={"seconds": seconds})
    study = waterjar.open_study(tmp_path / "s")
    ax = figures.draw("cost_accuracy", study).axes[0]
    legend = ax.get_legend()
    assert legend is not None and ax.get_xlim()[0] >= 0
    assert "on the log scale" in legend.get_title().get_text().replace("\n", " ")
    assert (figures.data("cost_accuracy", study)["cost_low"] > 0).all()  # t would reach to -45.8 s


def test_another_accuracy(by_hand: waterjar.Study) -> None:
    found = diagnose(by_hand, only=["cost", "rigidity"])
    table = figures.data("cost_accuracy", Diagnosis(by_hand, found.results, passed_over={"continual": "not asked"}))
    assert set(table["accuracy_metric"]) == {"patched_accuracy"}
    with pytest.raises(WaterjarError, match="neither of"):
        empty = found.results["rigidity"].drop_vars("patched_accuracy")
        figures.data("cost_accuracy", Diagnosis(by_hand, {"cost": found.results["cost"], "rigidity": empty},
                                                passed_over={"continual": "not asked"}))  # fmt: skip


@pytest.mark.parametrize("names", [["pd", "sfr_rel"], ["pd", "sfr_rel", "masked_accuracy", "patched_accuracy"]])
def test_a_small_heatmap_is_not_cropped(whole: Diagnosis, names: list[str]) -> None:
    figure = figures.draw("correlation_heatmap", whole, metrics=names)
    figure.draw_without_rendering()
    paper = figure.bbox
    shown = [figure.legends[0].get_window_extent(), *(ax.get_tightbbox() for ax in figure.axes)]
    for box in shown:
        assert box.x0 >= paper.x0 and box.y0 >= paper.y0 and box.x1 <= paper.x1 and box.y1 <= paper.y1
