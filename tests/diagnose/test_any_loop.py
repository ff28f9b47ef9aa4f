"""Studies of somebody's own loop: what fits is measured, and what does not is said in one true sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import loops
import waterjar as wj
from waterjar.cli.main import app
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.sensitivity import sensitivity
from waterjar.errors import WaterjarError


def test_tau_is_the_threshold_of_rigidity_alone(tmp_path: Path) -> None:
    study = wj.open_study(loops.study(tmp_path / "s", features=True))
    means, _, _ = sensitivity(study, "dormant_units", "tau", values=[0.0, 0.1])
    assert list(means["setting"].unique()) == ["tau"]
    assert sorted(means["value"].unique()) == [0.0, 0.1]


def test_a_word_that_several_recorded_quantities_have_is_ambiguous(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s")
    with pytest.raises(WaterjarError, match=r"^loss is performance/loss\[a\], .*\[b\] or .*\[c\]: name one$"):
        wj.compare(folder, "loss")
    table = wj.compare(folder, ("ACC", "performance/loss[a]"))
    assert list(table["metric"].unique()) == ["average_accuracy", "performance/loss[a]"]


def test_what_was_recorded_is_guessed_too_where_continual_was_measured(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s")
    for asked in (
        lambda: wj.compare(folder, "performance/los[a]"),
        lambda: wj.measure(folder, "ACC").table(["performance/los[a]"]),
    ):
        with pytest.raises(WaterjarError, match=r"is unknown: did you mean 'performance/loss\[a\]'\?"):
            asked()


def test_a_cell_whose_runs_were_trained_for_different_lengths_costs_the_others_nothing(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s", epochs=lambda method, seed: 2 if (method, seed) == ("replay", 2) else 4)
    found = wj.measure(folder, "ACC")
    assert list(found["continual"]["cell"].values) == ["naive"]
    (said,) = found.study.notes
    assert said.startswith("replay is left out: replay-2 trained 2 epochs a task, the others 4. ")
    whole = wj.compare(wj.open_study(folder).select('name != "replay-2"'), "ACC")
    assert list(whole["cell"]) == ["naive", "replay"]
    assert set(found.seals) == {run.path.name for run in wj.open_study(folder)}


def test_methods_that_were_trained_for_different_lengths_are_said_to_be(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s", epochs=lambda method, seed: 2 if method == "replay" else 4)
    found = wj.measure(folder, "ACC")
    assert found.notes("continual") == [("replay", "was trained 2 epochs a task, naive 4")]
    table = compare_cells(found, ["average_accuracy"])
    assert list(table["baseline_note"]) == ["", "was trained 2 epochs a task, naive 4"]
    assert wj.measure(loops.study(tmp_path / "even"), "ACC").notes("continual") == []


def test_reasons_name_what_lacks(tmp_path: Path) -> None:
    found = wj.measure(loops.study(tmp_path / "s", features=True, labelled=False))
    assert found.passed_over["geometry"] == "no run has recorded probe_samples"
    assert found.passed_over["rigidity"].startswith("it compares a network on a last task with a shortcut")
    assert "naive was not evaluated with and without a shortcut" in found.passed_over["rigidity"]


def test_a_metric_that_cannot_be_measured_costs_the_others_nothing(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s", features=True, labelled=False)
    table = wj.compare(folder, ["ACC", "capacity"])
    assert table.loc[table["metric"] == "average_accuracy", "n"].tolist() == [3, 3]
    lost = table[table["metric"] == "capacity"]
    assert lost["n"].tolist() == [0, 0] and set(lost["reason"]) == {"no run has recorded probe_samples"}
    result = CliRunner().invoke(app, ["compare", str(folder), "--metrics", "ACC,capacity", "--no-figures"])
    assert result.exit_code == 0 and "3 not_recorded" in result.output, result.output
    assert "geometry: not measured: no run has recorded probe_samples" in result.output
    with pytest.raises(WaterjarError, match="'capacity' has no value here: no run has recorded probe_samples"):
        wj.compare(folder, "capacity")


def test_seeds_by_another_name_are_told(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s", seeds=None, config=lambda method, seed: {"random_state": seed})
    hint = "runs differ in config 'random_state' alone, and count as learners of one seed each: record seeds=[...]"
    assert any(note.startswith(hint) for note in wj.open_study(folder).notes)
    found = wj.measure(folder, "ACC")
    assert hint in repr(found)
    reasons = set(wj.compare(found, "ACC", baseline="naive, random_state=0")["reason"])
    assert {reason.partition(":")[0] for reason in reasons} == {"one seed", "one pair of seeds"}
    different = loops.study(
        tmp_path / "d", config=lambda method, seed: {"random_state": {"naive": 1, "replay": 2}[method]}
    )
    assert wj.open_study(different).notes == []


def test_sets_without_a_task_are_the_first_reason_with_both_cures(tmp_path: Path) -> None:
    folder = loops.study(tmp_path / "s", eval_sets=["ta", "tb", "tc"])
    with pytest.raises(WaterjarError) as raised:
        compare_cells(wj.measure(folder))
    said = str(raised.value)
    assert said.startswith("nothing to compare by: continual: no eval set belongs to a task") and len(said) < 600
    assert 'Recorder(..., eval_sets={"ta": "a"' in said and f"waterjar annotate {folder} --eval-task ta=a" in said


def test_a_condition_that_nothing_fulfils_names_the_nearest_value(tmp_path: Path) -> None:
    study = wj.open_study(loops.study(tmp_path / "s"))
    hint = "method 'naiv' is unknown: did you mean 'naive'?"
    assert hint in repr(study.select("method=naiv")) and hint in repr(study.select("method in (naiv, naives)"))
    assert study.select("method=naive and seed=0").notes == []
    with pytest.raises(WaterjarError, match="did you mean 'naive'"):
        wj.measure(study.select("method=naiv"))
    for command in ("ls", "compare"):
        result = CliRunner().invoke(app, [command, str(study.path), "--where", "method=naiv"])
        assert hint in f"{' '.join(result.output.split())} {result.exception}", command
