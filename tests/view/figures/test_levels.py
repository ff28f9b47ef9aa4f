"""Figures draw intervals at the level that counts: as declared, a family's own, or as the caller says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import waterjar
from waterjar.diagnose.over_seeds import cells_over_seeds
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.testing import small_study
from waterjar.view import figures
from waterjar.view.report.composing import compose
from waterjar.view.report.model import model_of
from waterjar.view.report.renderers import as_json

FAMILIES = ["rigidity", "continual", "cost", "plasticity", "collective", "robustness"]
SHOWN: dict[str, dict[str, Any]] = {
    "cost_accuracy": {},
    "metric_boxes": {"metrics": ["average_accuracy", "pd"]},
    "metric_scatter": {"x": "average_accuracy", "y": "seconds"},
    "metric_traces": {"metrics": ["average_accuracy", "effective_rank"]},
    "learning_curves": {"band": "interval", "eval_sets": ["t2_all"]},
    "task_matrix": {},
    "plasticity_stack": {"metrics": ["effective_rank"]},
    "eri_dynamics": {},
    "eri_summary": {},
    "emergence": {},
    "contributions": {},
    "shift_severity": {},
    "stream_failure": {},
}
"""Figures with intervals over seeds."""
KNOWN: dict[str, Diagnosis] = {}
"""What was declared -> what was measured then: the runs are the same in every test."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    small_study(folder)
    return folder


def declared(folder: Path, **analysis: Any) -> Diagnosis:
    section = {"baseline": "scratch_t2", "families": FAMILIES, **analysis}
    waterjar.create_study(folder, {"analysis": section}, replace=True)
    if str(section) not in KNOWN:
        KNOWN[str(section)] = diagnose(waterjar.open_study(folder))
    return KNOWN[str(section)]


def widths(name: str, source: Any, **settings: Any) -> np.ndarray:
    table = figures.data(name, source, **{**SHOWN[name], **settings})
    pairs = [(column, column.replace("low", "high")) for column in table if str(column).endswith("low")]
    found = np.concatenate([(table[high] - table[low]).to_numpy(float) for low, high in pairs])
    return found[np.isfinite(found) & (found > 0)]


def texts(name: str, source: Any, **settings: Any) -> str:
    pytest.importorskip("matplotlib")
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    figure = figures.draw(name, source, **{**SHOWN[name], **settings})
    legends = [one.get_title().get_text() for one in figure.findobj(Legend)]
    return " ".join([*legends, *(one.get_text() for one in figure.findobj(Text))]).replace("\n", " ")


@pytest.mark.parametrize("name", SHOWN)
def test_a_declared_alpha_reaches_every_figure(recorded: Path, name: str) -> None:
    usual, narrow = (widths(name, declared(recorded, tests={"alpha": alpha})) for alpha in (0.05, 0.4))
    assert len(usual) == len(narrow) > 0
    assert (narrow < usual).all()
    for source in (declared(recorded, tests={"alpha": 0.4}), waterjar.open_study(recorded)):  # a study, too
        told = texts(name, source)
        assert "60 %" in told and "95 %" not in told


GIVEN = [
    pytest.param(name, marks=[] if name in ("metric_boxes", "emergence", "learning_curves") else pytest.mark.slow)
    for name in SHOWN
    if not name.startswith(("eri_", "shift_", "stream_"))
]


@pytest.mark.parametrize("name", GIVEN)
def test_who_gives_a_level_gets_it(recorded: Path, name: str) -> None:
    found = declared(recorded, tests={"alpha": 0.4})
    assert (widths(name, found, confidence=0.95) > widths(name, found)).all()
    assert "95 %" in texts(name, found, confidence=0.95)


def test_a_level_of_its_own_family_goes_before_alpha(recorded: Path) -> None:
    found = declared(recorded, tests={"alpha": 0.4}, settings={"rigidity": {"confidence": 0.8}})
    for name in ("eri_dynamics", "eri_summary"):
        told = texts(name, found)
        assert "80 %" in told and "60 %" not in told
    assert "60 or 80 %" in texts("metric_boxes", found)  # PD, and an accuracy
    table = figures.data("metric_boxes", found, **SHOWN["metric_boxes"]).groupby(["metric", "cell"]).first()
    for metric, family, level in (("pd", "rigidity", 0.8), ("average_accuracy", "continual", 0.6)):
        assert found.confidence(family) == level
        rows = cells_over_seeds(found.table([metric]), level, found.declared).set_index("cell")
        mine = table.loc[metric]
        pd.testing.assert_frame_equal(
            mine[["mean", "low", "high"]], rows.loc[mine.index, ["mean", "low", "high"]], check_names=False
        )


def test_tables_and_figures_of_a_report_agree(recorded: Path) -> None:
    found = declared(recorded, tests={"alpha": 0.4})
    text = as_json.render(compose(model_of(found.study)))
    assert "60 % t interval" in text and "95 %" not in text
