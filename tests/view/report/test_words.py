"""Headlines, first lines and numbers: what is claimed is what the intervals carry."""

from __future__ import annotations

import csv
import dataclasses
import io
import sys
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from waterjar.diagnose.registry import find_metric, metrics
from waterjar.diagnose.study import Diagnosis
from waterjar.errors import WaterjarError
from waterjar.run.study import Study
from waterjar.stats.effects import effect_words
from waterjar.view.numbers import estimate, estimate_or_reason, label, number, one_line, panel_title, quantity, size_of
from waterjar.view.report import Model, compose, write
from waterjar.view.report.blocks import Callout, Chart, Report, Section, Table, Verdicts
from waterjar.view.report.charts.estimates import estimates_panel
from waterjar.view.report.charts.theme import keys_of
from waterjar.view.report.leads.rigidity import headline
from waterjar.view.report.renderers import html
from waterjar.view.report.renderers.latex import render as as_latex
from waterjar.view.report.renderers.markdown import _grid
from waterjar.view.report.renderers.markdown import render as as_markdown
from waterjar.view.report.sections import missing
from waterjar.view.report.tables import csv_text

NAN = float("nan")


def result(patterns: list[str], sfr: list[tuple[float, float]], reached: list[int], **more: Any) -> xr.Dataset:
    """What the headline reads of a result of rigidity: a name a..., seeds = 3."""
    n = len(patterns)
    epochs = np.full((n, 3), NAN)
    for i, count in enumerate(reached):
        epochs[i, :count] = 2.0
    mean, low = zip(*sfr, strict=True)
    return xr.Dataset(
        {
            "pattern": ("cell", patterns),
            "baseline": ("cell", more.get("baseline", ["base"] * n)),
            "sfr": (("cell", "seed"), more.get("values", np.repeat(np.array(mean)[:, None], 3, 1))),
            "sfr_reason": (("cell", "seed"), more.get("gone", np.where(np.isnan(mean), 2, 0)[:, None].repeat(3, 1))),
            "pd": (("cell", "seed"), np.zeros((n, 3))),
            "sfr_mean": ("cell", list(mean)),
            "sfr_n": ("cell", more.get("n", [3] * n)),
            "sfr_low": ("cell", list(low)),
            "random_mask_damage_mean": ("cell", more.get("elsewhere", [0.01] * n)),
            "learner_budget": ("cell", more.get("budgets", [10.0] * n)),
            "adaptation_epoch": (("cell", "seed"), epochs),
            "adaptation_epoch_reason": (("cell", "seed"), np.where(np.isnan(epochs), more.get("why", 5), 0)),
            "ad_judged_by": ("cell", np.array([more.get("judged_by", "ad")] * n, object)),
            **{f"{key}_n": ("cell", more.get("n", [3] * n)) for key in ("ad_restricted", "pd", "sfr_rel")},
            "ad_n": ("cell", more.get("ad_n", more.get("n", [3] * n))),
        },
        {"cell": [chr(97 + i) for i in range(n)], "seed": [1, 2, 3]},
    )


SETTINGS = {"margin": 0.05, "threshold": 0.6}


def test_a_headline_groups_learners_by_what_they_show() -> None:
    told = headline(
        result(
            ["classical_einstellung", "slow_adaptation", "shortcut_rigidity", "inconclusive", "baseline"],
            [(0.5, 0.4)] * 5,
            [3, 3, 3, 0, 3],
        ),
        SETTINGS,
    )
    assert told[0].startswith("Compared with base, a shows the classical Einstellung effect")
    assert "c shows shortcut-induced rigidity" in told[0] and "b adapts slowly" in told[0]
    assert "d is not settled by 3 seeds" in told[0]
    assert told[1].startswith("All of them, the baseline included, lean on the shortcut: masking it costs 0.500")
    assert told[2] == "d never reaches 60 % on the shortcut classes within 10 epochs."


def test_n_is_the_seeds_that_numbers_rest_on_and_others_are_named() -> None:
    gone = np.array([[0, 4, 4], [0, 0, 8]])
    more: dict[str, Any] = {"n": [1, 2], "values": np.where(gone, NAN, 0.5), "gone": gone}
    told = headline(result(["inconclusive", "baseline"], [(0.5, 0.4)] * 2, [3, 3], **more), SETTINGS)
    assert "a is not settled by 1 seed." in told[0] and "(means of 1 or 2 seeds)" in told[1]
    assert told[2] == "Left out are seeds without a value: 2 and 3 of a (run_ended) and 3 of b (no_baseline)."


@pytest.mark.parametrize(("judged_by", "seeds"), [("ad_restricted", "3 seeds"), ("ad", "2 seeds")])
def test_the_delay_counts_the_seeds_that_it_is_judged_by(judged_by: str, seeds: str) -> None:
    shown = result(["inconclusive", "baseline"], [(0.5, 0.4)] * 2, [2, 3], ad_n=[2, 3], judged_by=judged_by)
    assert f"a is not settled by {seeds}." in headline(shown, SETTINGS)[0]


def test_the_floor_and_who_did_not_learn_are_named() -> None:
    shown = ["bound_by_floor", "bound_by_floor", "nobody_learned", "baseline"]
    (told, _) = headline(result(shown, [(0.5, 0.4)] * 4, [3] * 4), SETTINGS)
    assert "a and b are bound by the floor: with the shortcut masked neither they nor the baseline is clearly" in told
    assert "c has not learned the shortcut classes, nor has the baseline: there is no verdict" in told


def test_where_the_floor_is_not_known_it_is_not_claimed() -> None:
    (told, *_) = headline(result(["floor_unknown", "baseline"], [(0.5, 0.4)] * 2, [3] * 2), SETTINGS)
    assert "of a it is not known whether SFR_rel is bound by the floor" in told and "a is bound" not in told


def test_never_reached_is_within_the_epochs_of_who_did_not() -> None:
    told = headline(result(["inconclusive", "baseline"], [(0.5, 0.4)] * 2, [0, 3], budgets=[9.0, 30.0]), SETTINGS)
    assert "a never reaches 60 % on the shortcut classes within 9 epochs" in " ".join(told)


def test_what_intervals_do_not_carry_is_not_claimed() -> None:
    nobody = headline(result(["benign_transfer"], [(0.1, -0.1)], [3]), SETTINGS)
    assert any("Nobody clearly leans on the shortcut: masking it costs 0.100 of accuracy" in text for text in nobody)
    some = headline(result(["inconclusive"] * 2, [(0.1, -0.1), (0.4, 0.2)], [3, 3]), SETTINGS)
    assert "b clearly leans on the shortcut: masking it costs 0.400 of accuracy, more than a mask" in some[1]
    damage = headline(result(["inconclusive"], [(0.06, 0.05)], [3], elsewhere=[0.07]), SETTINGS)  # any mask costs that
    assert any(text.startswith("Nobody clearly leans on the shortcut: masking it costs 0.060") for text in damage)
    unknown = headline(result(["inconclusive"], [(NAN, NAN)], [0], elsewhere=[NAN]), SETTINGS)
    assert any("is not known" in text for text in unknown)
    assert any("Nobody reaches 60 %" in text for text in unknown)
    alone = headline(result(["inconclusive"], [(0.4, 0.2)], [3], baseline=[""], elsewhere=[NAN]), SETTINGS)
    assert alone[0].startswith("There is no baseline to compare with")
    assert alone[1] == "All of them lean on the shortcut: masking it costs 0.400 of accuracy (means of 3 seeds)."
    assert len(headline(result(["baseline"], [(0.4, 0.2)], [3]), {"margin": 0.05})) == 1


def test_never_reached_is_said_only_where_it_was_not_reached() -> None:
    gone = [(NAN, NAN)] * 2
    for code, why in ((1, "not recorded"), (2, "not a number")):
        told = " ".join(headline(result(["inconclusive", "baseline"], gone, [0, 0], why=code, n=[0, 0]), SETTINGS))
        assert "Nobody reaches" not in told and "never" not in told and "not settled" not in told
        assert f"shortcut classes has no value in training ({why})" in told
        assert "a is not measured: no seed has the numbers of both" in told
    some = headline(result(["inconclusive"] * 3, [(0.1, 0.0)] * 3, [3, 0, 0], why=1), SETTINGS)
    assert some[-1].startswith("Whether b and c reach 60 % cannot be told")
    codes = np.array([[0] * 3, [5] * 3, [1] * 3])
    mixed = headline(result(["inconclusive"] * 3, [(0.1, 0.0)] * 3, [3, 0, 0], why=codes), SETTINGS)
    assert mixed[-1].startswith("b never reaches 60 % on the shortcut classes within 10 epochs. Whether c reaches 60 %")


@pytest.mark.parametrize(
    ("value", "text"), [(float("inf"), "∞"), (-float("inf"), "−∞"), (0.0, "0.000"), (12345678.0, "1.23 × 10⁷")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_estimates_say_what_is_not_there() -> None:
    assert estimate(NAN, NAN, NAN, 0) == "–"
    assert estimate(NAN, NAN, NAN, 2) == "–\nn = 2"
    assert estimate(-0.0001, -0.2, 0.2) == "0.000\n[−0.200, 0.200]"
    assert estimate(2e6, 1e6, 3e6, 3, "byte") == "2 MB\n[1 MB, 3 MB], n = 3"
    # a norm may be tiny and still differ between seeds; beside a size of 1 that is rounding
    assert estimate(2e-34, 1e-34, 5e-34, 3) == "2 × 10⁻³⁴\n[1 × 10⁻³⁴, 5 × 10⁻³⁴], n = 3"
    assert estimate(2e-34, 1e-34, 5e-34, 3, scale=1.0) == "0.000\nthe same in all 3 seeds"
    assert estimate(1e-16, -4e-16, 6e-16, 3, scale=size_of(find_metric("ad"))) == "0.000\nthe same in all 3 seeds"
    assert estimate(2e-13, 2e-13, 2e-13, 3) == "2 × 10⁻¹³\nthe same in all 3 seeds"
    assert estimate(0.06, 0.06, 0.06 + 1e-17, 3) == "0.060\nthe same in all 3 seeds"
    assert estimate(1.0, 1.0, 1.0) == "1.000\nspread unknown"
    assert one_line(estimate(1.0, 1.0, 1.0, 2)) == "1.000, the same in all 2 seeds"
    assert quantity(NAN, "s") == "–" and quantity(12.0, "byte") == "12 B"
    assert panel_title(find_metric("capacity")) == "capacity (alpha) ↑"


def test_a_spreadsheet_runs_nothing() -> None:
    frame = pd.DataFrame(
        {"name": ["=cmd|' /C calc'!A0", "+1+2", "-x", "@SUM(A1)", "\t=1", "sgd", "-0.5", None], "value": [-1.5] * 8,
         "mixed": [1, "=2", -3, None, "a-b", "–", "1e-3", "−2"]}
    )  # fmt: skip
    before = frame.copy()
    rows = list(csv.reader(io.StringIO(csv_text(frame))))
    names = ["'=cmd|' /C calc'!A0", "'+1+2", "'-x", "'@SUM(A1)", r"\x09=1", "sgd", "-0.5", ""]
    assert [row[0] for row in rows[1:]] == names
    assert {row[1] for row in rows[1:]} == {"-1.5"}
    assert [row[2] for row in rows[1:]] == ["1", "'=2", "-3", "", "a-b", "–", "1e-3", "−2"]
    assert csv_text(pd.DataFrame({"=a": [1]})) == "'=a\n1\n"
    pd.testing.assert_frame_equal(frame, before)


def test_first_screen_and_opening_say_what_names_a_benign_transfer(small_report: Report) -> None:
    first, rigidity = (next(part for part in small_report.sections if part.name == n) for n in ("summary", "rigidity"))
    told = next(block for block in first.blocks if isinstance(block, Verdicts))
    assert "Benign transfer speaks of PD and SFR_rel only, not of AD." in told.caption
    assert "upper bounds lie below the margin:" in str(rigidity.blocks[0])


def test_an_estimate_without_a_value_or_an_interval_says_so() -> None:
    rows = [("a", 1, NAN, NAN, NAN, NAN, 0), ("b", 1, NAN, 1.0, NAN, NAN, 1)]
    frame = pd.DataFrame(rows, columns=["cell", "seed", "value", "mean", "low", "high", "n"])
    panel = estimates_panel(frame, keys_of(["a", "b"]), title="x", notes={"a": "no value"})
    assert [note["text"] for note in panel["layout"]["annotations"]] == ["no value"]
    assert "no interval" in panel["data"][0]["hovertemplate"] and "error_x" not in panel["data"][0]


@pytest.mark.parametrize("package", ["jinja2", "plotly"])
def test_a_missing_extra_is_an_error_with_its_command(
    package: str, small_report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(WaterjarError, match=rf"need {package}, .*pip install '\.\[view\]'"):
        html.render(small_report)


def test_a_figure_that_refuses_is_named(small: Model) -> None:
    model = dataclasses.replace(small, _frames={}, refused={})
    assert model.figure_data("learning_curves", variable="nonsense").empty
    assert "nonsense" in model.refused["learning_curves"]
    missing = next(part for part in compose(model).sections if part.name == "missing")
    assert any("Figure “Learning curves”" in str(block) for block in missing.blocks)


def test_what_is_missing_is_listed_to_its_end_in_print(small: Model) -> None:
    """All metrics, of five learners, for two reasons: in print a table ends after 60 rows, its cells at 200 signs."""
    cells = [f"a learner with quite a long name, number {i}" for i in range(5)]
    _listed_to_its_end(small, cells, {cell: cell for cell in cells}, "all 5 learners")


def test_learners_that_lack_something_others_have_are_named(small: Model) -> None:
    cells = ["one learner", "another learner", "a third learner"]
    _listed_to_its_end(small, cells, {cell: cell for cell in (*cells, "who lacks nothing")}, "")


def _listed_to_its_end(small: Model, cells: list[str], names: dict[str, str], everybody: str) -> None:
    table = pd.DataFrame(
        [
            {"family": one.family, "metric": one.name, "cell": cell, "seed": seed, "value": NAN, "reason": reason}
            for one in metrics().values()
            for cell in cells
            for seed, reason in enumerate(("not_recorded", "not_recorded", "undefined"))
        ]
    )
    known = {"diagnosis": small.diagnosis, "refused": {}, "table": table, "names": names}
    model: Any = types.SimpleNamespace(**known)
    (block,) = [one for one in missing.blocks(model) if isinstance(one, Table)]
    assert len(block.frame) == 2 * len(cells) * len(metrics()) and len(block.rows) <= 60
    text = _grid(block.columns, block.rows)
    for row in block.rows:
        assert row[2:4] in (("2 of 3", "not_recorded"), ("1 of 3", "undefined"))
    for one in metrics().values():
        for cell in cells:
            listed = [row for row in block.rows if label(one) in row[0].split(", ") and (everybody or cell) in row[1]]
            assert len(listed) == 2, (one.name, cell)
    assert "…" not in text and "more rows" not in text


def test_a_chart_without_a_figure_and_a_long_table_in_print(small: Model, tmp_path: Any) -> None:
    frame = small.table.head(100)
    rows = tuple((str(i), "x") for i in range(100))
    chart = Chart("own", "Own", ({"data": [], "layout": {}},), frame, "A caption", "What is to be seen")
    blocks = (chart, Table("long", "Long", ("a", "b"), rows, frame))
    report = Report("t", "l", Callout("note", "n"), (Section("s", "S", blocks),), (), small.diagnosis)
    assert "What is to be seen" in as_markdown(report, {}) and "40 more rows" in as_markdown(report, {})
    assert "What is to be seen" in as_latex(report, {}) and "40 more rows" in as_latex(report, {})
    write(report, tmp_path / "r.md")
    assert not (tmp_path / "r_figures").exists()


def test_without_results_it_tells_of_its_runs(small: Model) -> None:
    bare = dataclasses.replace(small, diagnosis=Diagnosis(Study(small.study.path, small.study.entries), {}), _frames={})
    names = [part.name for part in compose(bare).sections]
    assert "rigidity" not in names and "definitions" not in names and "seals" in names


def test_rounding_is_written_as_nothing() -> None:
    assert one_line(estimate(1.73e-18, -0.127, 0.127, 3)) == "0.000 [−0.127, 0.127], n = 3"
    assert one_line(estimate(1.73e-18, -25.0, 25.0, 3)) == "0.000 [−25.0, 25.0], n = 3"
    assert one_line(estimate(1.73e-18, NAN, NAN, 1, scale=size_of(find_metric("sfr")))) == "0.000, n = 1"
    assert one_line(estimate(1.73e-18, NAN, NAN, 1)) == "1.73 × 10⁻¹⁸, n = 1"  # a gradient may be that small
    assert one_line(estimate(2e-7, 1e-7, 3e-7, 3)) == "2 × 10⁻⁷ [1 × 10⁻⁷, 3 × 10⁻⁷], n = 3"


def test_what_is_symmetric_by_construction_is_no_agreement_of_seeds() -> None:
    line = types.SimpleNamespace(mean=0.8, low=0.8, high=0.8, n=2, missing="")
    assert one_line(estimate_or_reason(line, find_metric("cka_seeds"))) == "0.800, between 2 seeds"
    assert one_line(estimate_or_reason(line, find_metric("cka"))) == "0.800, the same in all 2 seeds"


def test_effect_sizes_are_named_and_told_apart() -> None:
    both = effect_words(["g_av", "g_z"])
    assert "g_av: Hedges' g" in both and "g_z: Hedges' g" in both and "different scales" in both
    assert "different scales" not in effect_words(["g_av"]) and effect_words([""]) == ""
