"""What a study declares of figures, formats, tests and the lead is what its folder holds in the end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("matplotlib")

import waterjar
from recording import einstellung
from waterjar import WaterjarError
from waterjar.diagnose import analysis
from waterjar.diagnose.study import diagnose
from waterjar.view.outputs import check_outputs, write_outputs


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    for seed in (1, 2, 3):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, final=0.7)
        einstellung(folder / f"late-{seed}", learner="late", seed=seed, delay=1)
        einstellung(folder / f"soon-{seed}", learner="soon", seed=seed, masked=0.9)
    return folder


def made(recorded: Path, folder: Path, **section: Any) -> Path:
    """The folder of a study with this analysis, after it."""
    place = shutil.copytree(recorded, folder / "study")
    declared = {"families": ["rigidity", "continual"], "figures": False, "lead": "rigidity", **section}
    waterjar.create_study(place, {"analysis": declared})
    write_outputs(diagnose(waterjar.open_study(place)), place)
    return place


def files(place: Path) -> set[str]:
    runs = {"scratch-", "late-", "soon-", ".waterj", "study.y", "ledger."}
    found = (file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file())
    return {name for name in found if not any(name.startswith(start) for start in runs)}


def test_a_report_is_always_there_and_nothing_that_was_not_asked_for(recorded: Path, tmp_path: Path) -> None:
    assert files(made(recorded, tmp_path)) == {"report.html"}


def test_formats(recorded: Path, tmp_path: Path) -> None:
    place = made(recorded, tmp_path, export_formats=["csv", "json", "markdown"], tests={"alpha": 0.2})
    assert {"exports/values.csv", "exports/comparison.csv", "exports/diagnosis.json", "report.md"} <= files(place)
    values = pd.read_csv(place / "exports" / "values.csv")
    found = diagnose(waterjar.open_study(place))
    pd.testing.assert_frame_equal(values, found.table(), check_dtype=False)
    plain = json.loads((place / "exports" / "diagnosis.json").read_text())
    assert plain["settings"]["rigidity"]["threshold"] == 0.6 and len(plain["values"]) == len(values)
    compared = pd.read_csv(place / "exports" / "comparison.csv")
    assert set(compared["baseline"]) == {"scratch_t2"}


def test_without_tests_nothing_is_tested(recorded: Path, tmp_path: Path) -> None:
    place = made(recorded, tmp_path, export_formats=["csv"], tests=False)
    assert "exports/comparison.csv" not in files(place)
    assert "p corrected" not in (place / "report.html").read_text()


@pytest.mark.parametrize(
    ("tests", "column", "value"),
    [
        ({"correction": "benjamini_hochberg"}, "correction", "benjamini_hochberg"),
        ({"test": "wilcoxon"}, "test", "wilcoxon"),
        ({"test": "welch", "paired": False}, "test", "welch"),
    ],
)
def test_tests_are_as_declared(recorded: Path, tmp_path: Path, tests: Any, column: str, value: str) -> None:
    folder = shutil.copytree(recorded, tmp_path / "study")
    waterjar.create_study(folder, {"analysis": {"families": ["continual"], "tests": tests}})
    from waterjar.diagnose.compare import compare_cells

    table = compare_cells(diagnose(waterjar.open_study(folder)), ["average_accuracy"])
    assert value in set(table[column])


def test_alpha_moves_intervals(recorded: Path, tmp_path: Path) -> None:
    from waterjar.diagnose.compare import compare_cells

    found = diagnose(waterjar.open_study(recorded), only=["continual"])
    wide, narrow = (
        compare_cells(found, ["average_accuracy"], tests=analysis.Tests(alpha=alpha)) for alpha in (0.01, 0.3)
    )
    assert (wide["high"] - wide["low"] > narrow["high"] - narrow["low"]).all()


def test_figures_by_name_in_every_format(recorded: Path, tmp_path: Path) -> None:
    place = made(recorded, tmp_path, figures=["eri_summary"], export_formats=["png", "svg"])
    assert files(place) == {"report.html", "figures/eri_summary.png", "figures/eri_summary.svg"}


def test_all_figures_are_those_of_the_lead_and_every_learners_own(recorded: Path, tmp_path: Path) -> None:
    drawn = files(made(recorded, tmp_path, figures=True))
    assert "figures/eri_summary.png" in drawn and any("/late/learning_curves.png" in name for name in drawn)


def test_the_lead_opens_the_report(recorded: Path, tmp_path: Path) -> None:
    one, other = (
        (made(recorded, tmp_path / lead, lead=lead) / "report.html").read_text() for lead in ("rigidity", "continual")
    )
    first = [text.partition("In short")[2].partition("</strong> ")[2][:60] for text in (one, other)]
    assert first[0].startswith("Compared with scratch_t2") and first[1].startswith("late and soon forget: the accuracy")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"figures": ["eri_sumary"]}, "did you mean 'eri_summary'"),
        ({"export_formats": ["cvs"]}, "did you mean 'csv'"),
    ],
)
def test_names_are_checked_before_anything_is_trained(section: Any, message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        check_outputs(analysis.declared_analysis({"analysis": section}, "study"))
