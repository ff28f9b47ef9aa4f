"""What every figure keeps, whichever it is: the contract, odd studies, hostile names, the same bytes twice."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import waterjar
from view.figures.whole_runs import measured, whole_run
from waterjar.diagnose.registry import families
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.style import roots_of

NAMES = figures.available()
GALLERY = Path(__file__).resolve().parents[3] / "docs/gallery"
HOSTILE = (
    "$x^2$ _{a} \\frac",
    "<script>alert('1')</script> & \"q\"",
    "😀 new\nline\x1b[31m \u202e",
    "L" * 10_000,
    "a\\$b $ $",
)


def inside(figure: Figure, *, laid_out: bool = False) -> bool:
    """Whether all that is drawn stands on the paper."""
    if not laid_out:
        figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return bool(box.x0 >= -0.05 and box.y0 >= -0.05 and box.x1 <= width + 0.05 and box.y1 <= height + 0.05)


def test_eleven_figures() -> None:
    assert len(NAMES) >= 11
    assert not any(name.startswith("_") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_what_it_is_and_has_an_example_and_a_test(name: str) -> None:
    about = figures.describe(name)
    assert 5 < len(about.title) < 60 and not about.title.endswith(".")
    assert 80 < len(about.caption) < 400 and about.caption.endswith(".")
    assert {family for need in about.needs for family in need.split("|")} <= set(families())
    assert (GALLERY / f"{name}.py").is_file() and (GALLERY / f"{name}.png").is_file()
    here = Path(__file__).parent
    assert any(f'"{name}"' in file.read_text() for file in [*here.glob("test_*.py"), *here.parent.glob("test_*.py")])
    module = import_module(f"waterjar.view.figures.{name}")
    assert callable(module.data) and callable(getattr(module, name))


def test_describing_needs_no_matplotlib() -> None:
    script = (
        "import sys\nsys.modules['matplotlib'] = None\nfrom waterjar.view import figures\n"
        "print(len([figures.describe(n) for n in figures.available()]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(len(NAMES)), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_drawn_from_a_diagnosis_a_study_and_a_run(name: str, whole: Diagnosis) -> None:
    figure = figures.draw(name, whole)
    assert set(roots_of(figure)) == {entry.root_hash for entry in whole.study.entries}
    assert inside(figure)
    table = figures.data(name, whole)
    assert isinstance(table, pd.DataFrame) and len(table)
    assert not any(isinstance(value, str) and value == "present" for value in table.to_numpy().ravel())
    if "geometry" not in str(figures.describe(name).needs):  # here it is made up
        if name == "strategy_comparison":  # its p are corrected over all families, and geometry's are made up here
            table = figures.data(name, diagnose(whole.study))
        pd.testing.assert_frame_equal(table, figures.data(name, whole.study))
        run = whole.study.run("sgd-1")
        alone = figures.draw(name, run)
        assert roots_of(alone) == [run.root_hash]
        assert inside(alone)


ALWAYS = {("eri_summary", "pdf"), ("tau_heatmap", "svg"), ("cost_accuracy", "pdf"), ("task_matrix", "svg")}
EACH = [
    pytest.param(name, suffix, marks=[] if (name, suffix) in ALWAYS else pytest.mark.slow)
    for name in NAMES
    for suffix in ("pdf", "svg")
]


@pytest.mark.parametrize(("name", "suffix"), EACH)
def test_the_same_bytes_twice_with_the_root_hashes_in_them(
    name: str, suffix: str, whole: Diagnosis, tmp_path: Path
) -> None:
    one, other = (figures.save(figures.draw(name, whole), tmp_path / f"{i}.{suffix}").read_bytes() for i in "ab")
    assert one == other
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", one, re.S)
    # a stream may itself end in \r, which the pattern takes for the line's end: only its checksum then lacks a byte
    plain = one + b"".join(zlib.decompressobj().decompress(s) for s in streams if s[:1] == b"x")
    assert all(entry.root_hash.encode() in plain for entry in whole.study.entries if entry.root_hash)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    folder = waterjar.create_study(tmp_path_factory.mktemp("hostile") / "study")
    tasks = ("$t_1$", "T" * 300)
    whole_run(folder / "scratch", "scratch_t2", 1, scenario="scratch_t2", names=tasks)
    for i, name in enumerate((*HOSTILE, "L" * 9_999 + "M")):
        whole_run(folder / f"{i}", name, 1, names=tasks, epochs=3)
    return measured(waterjar.open_study(folder))


NAMED_EVERYWHERE = ("contributions", "eri_summary", "learning_curves", "metric_boxes")
"""Cells in the legend, along an axis, in titles and in cells of a grid: all places where a name is written."""
NAMING = [  # a heatmap of correlations names no cells
    pytest.param(name, marks=[] if name in NAMED_EVERYWHERE else pytest.mark.slow)
    for name in NAMES
    if name != "correlation_heatmap"
]


@pytest.mark.no_cover
@pytest.mark.parametrize("name", NAMING)
def test_hostile_names_break_neither_formulas_nor_layout(name: str, hostile: Diagnosis, tmp_path: Path) -> None:
    figure = figures.draw(name, hostile)
    text = figures.save(figure, tmp_path / "x.svg").read_text()
    assert inside(figure, laid_out=True)
    assert "<script>" not in text
    assert "L" * 100 not in text


def odd_study(folder: Path, case: str) -> waterjar.Study:
    waterjar.create_study(folder)
    if case == "one epoch":
        for seed in (1, 2):
            whole_run(folder / f"a-{seed}", "scratch_t2", seed, scenario="scratch_t2", epochs=1)
            whole_run(folder / f"b-{seed}", "sgd", seed, epochs=1)
    elif case == "one seed":
        whole_run(folder / "a", "scratch_t2", 1, scenario="scratch_t2")
        whole_run(folder / "b", "sgd", 1)
    elif case == "one run":
        whole_run(folder / "b", "sgd", 1)
    elif case == "all NaN":
        for seed in (1, 2):
            whole_run(folder / f"a-{seed}", "scratch_t2", seed, scenario="scratch_t2", value=np.nan)
            whole_run(folder / f"b-{seed}", "sgd", seed, value=np.nan)
    elif case == "no step":
        waterjar.Recorder(folder / "a", {"method": "sgd"}, seeds=[1], eval_sets={"t": 0}, tasks=["t"]).close()
    elif case == "plain":  # somebody's own loop: one set, no tasks, nothing of ours
        for learner in ("sgd", "adam"):
            with waterjar.Recorder(folder / learner, {"learner": learner}, seeds=[1], eval_sets=["test"]) as recorder:
                recorder.log(epoch=0, performance={"accuracy": 0.5})
                recorder.log(epoch=1, performance={"accuracy": 0.6})
    return waterjar.open_study(folder)


ODD = ["no step", "plain", "empty"]
LONG = [pytest.param(case, marks=pytest.mark.slow) for case in ("one epoch", "all NaN", "one seed", "one run")]


@pytest.mark.parametrize("case", [*ODD, *LONG])
def test_odd_studies_are_drawn_or_refused_in_words(case: str, tmp_path: Path) -> None:
    study = odd_study(tmp_path / "study", case)
    found = measured(study)
    drawn = []
    for name in NAMES:
        if name == "correlation_heatmap" and case in ("one epoch", "all NaN"):
            continue  # exact tests of many pairs: seconds
        try:
            figure = figures.draw(name, found)
            assert len(figures.data(name, found)) or name in ("eri_summary", "tau_heatmap"), name
        except WaterjarError as error:
            assert len(str(error)) > 15, name
            continue
        assert inside(figure), name
        drawn.append(name)
    expected = {
        "one epoch": 8, "one seed": 9, "one run": 9, "all NaN": 8, "no step": 0, "plain": 2, "empty": 0
    }  # fmt: skip
    assert len(drawn) >= expected[case], drawn


def test_a_setting_nobody_has(whole: Diagnosis) -> None:
    for name in NAMES:
        with pytest.raises(WaterjarError, match="'bandd' is unknown"):
            figures.draw(name, whole, bandd=1)
        with pytest.raises(WaterjarError, match="'bandd' is unknown"):
            figures.data(name, whole, bandd=1)


def test_settings_other_than_those_measured_are_measured(whole: Diagnosis) -> None:
    figures.data("eri_summary", whole, threshold=0.6)
    low = figures.data("eri_summary", whole, threshold=0.01)
    assert (low[low.metric == "ad"]["n_censored"] == 0).all()
    with pytest.raises(WaterjarError, match="have it; write continual.variable"):
        figures.data("strategy_comparison", whole, variable="accuracy")
    with pytest.raises(WaterjarError, match="setting cost.x is of cost: only rigidity are measured"):
        figures.data("eri_summary", whole, **{"cost.x": 1})
