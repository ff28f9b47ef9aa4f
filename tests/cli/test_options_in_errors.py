"""Errors that the command line shows speak of its options; Python's words stand behind them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import record
from waterjar.cli.main import app
from waterjar.cli.measured import settings_by_family
from waterjar.diagnose.registry import find_family, metrics
from waterjar.errors import WaterjarError, given_as, setting_as
from waterjar.stats.effects import hedges_g
from waterjar.stats.table import compare_many
from waterjar.view import figures

SOURCES = Path(waterjar.__file__).parent


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert isinstance(result.exception, WaterjarError), result.output
    return str(result.exception)


def test_settings_and_options() -> None:
    assert given_as("threshold", 0.8) == "--set threshold=0.8 (Python: threshold=0.8)"
    assert given_as("baseline", "NAME", option=True) == "--baseline NAME (Python: baseline=NAME)"
    assert setting_as("drift.matrix", 2) == '--set drift.matrix=2 (Python: settings={"drift.matrix": 2})'


def advised() -> Iterator[tuple[str, str, str]]:
    """(file, the function that words it, or "" of plain text, key) of every `--set key=` in our sources."""
    for file in sorted(SOURCES.rglob("*.py")):
        inner = set()
        for node in ast.walk(ast.parse(file.read_text())):
            name = str(file.relative_to(SOURCES))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("given_as", "setting_as"):
                if not any(keyword.arg == "option" for keyword in node.keywords):
                    yield name, node.func.id, ast.unparse(node.args[0]).strip("'").removeprefix("f'")
            elif isinstance(node, ast.JoinedStr):
                inner |= {id(part) for part in node.values}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                yield from ((name, "", key) for key in re.findall(r"--set ([\w.]+)=", node.value))


def test_every_setting_that_is_advised_is_one_that_is_taken() -> None:
    """Where several families have a setting of a name, its bare name is refused, so that it must not be advised."""
    found = [one for one in advised() if one[0] != "errors.py" and one[2] != "key"]  # these say how it is worded
    found = [
        one for one in found if not one[0].startswith(("lab/", "cli/branch"))
    ]  # whose settings are those of a training
    assert {"rigidity.variable", "continual.metric_type", "{family}.eval_sets", "metrics", "chance"} <= {
        key for _, _, key in found
    }
    of_figures = {key for name in figures.available() for key in figures.describe(name).settings}
    for file, worded_by, key in found:
        if worded_by == "given_as":
            assert key in of_figures or file == "run/formats/csv.py", (file, key)
            continue
        for family in ("continual", "examples") if "{family}" in key else ("",):
            full = key.replace("{family}", family)
            for owner, own in settings_by_family([f"{full}=1"]).items():
                assert set(own) <= set(find_family(owner).settings_model.model_fields), (file, full)
    for metric in metrics().values():
        assert not metric.optional or list(settings_by_family([metric.optional])) == [metric.family]


def test_what_rigidity_advises_is_taken(tmp_path: Path) -> None:
    study = tmp_path / "study"
    record(waterjar.create_study(study) / "one", eval_sets={"t2_shortcut_normal": 0, "t2_shortcut_masked": 0})
    said = refused("diagnose", study, "--only", "rigidity", "--set", "rigidity.eval_sets={validation: t2_val}")
    advice = re.findall(r"--set (\S+?)=", said)
    assert advice
    for key in advice:
        assert settings_by_family([f"{key}=x"]) == {"rigidity": {key.removeprefix("rigidity."): "x"}}
    wrong = refused("diagnose", study, "--only", "rigidity", "--set", "rigidity.variable=acc",
                    "--set", "rigidity.checkpoint=last")  # fmt: skip
    assert "--set rigidity.variable=" in wrong


def test_other_names_of_eval_sets(tmp_path: Path) -> None:
    record(waterjar.create_study(tmp_path / "study") / "one")
    said = refused("diagnose", tmp_path / "study", "--only", "rigidity", "--set", "rigidity.variable=accuracy")
    assert "--set rigidity.eval_sets={" in said


def test_several_eval_sets_of_a_task(tmp_path: Path) -> None:
    record(waterjar.create_study(tmp_path / "study") / "one", eval_sets={"a": 0, "b": 0})
    assert "--set continual.eval_sets=[...]" in refused("diagnose", tmp_path / "study", "--only", "continual")


def test_splits_of_a_csv_file_without_places(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("method,seed,epoch_eff,split,acc\nsgd,1,0,before,0.1\nsgd,1,1,before,0.4\n")
    asked = ["import", str(file), "--out", str(tmp_path / "out"), "--format", "csv"]
    assert "--set splits=[...]" in refused(*asked)
    result = CliRunner().invoke(app, [*asked, "--set", "splits=[before]"])
    assert result.exit_code == 0, result.output
    assert waterjar.open_study(tmp_path / "out").entries[0].progress["step"] == 1
    with pytest.raises(WaterjarError, match="setting of importing 'csv' 'split' is unknown: did you mean 'splits'"):
        waterjar.run.formats.import_from("csv", file, tmp_path / "other", {"split": ["before"]})


def test_what_export_wrote_is_imported_whatever_its_splits(tmp_path: Path) -> None:
    record(waterjar.create_study(tmp_path / "study") / "one", eval_sets={"digits01": 0, "digits23": 1})
    for asked in (["export", "study", "--out", "x.csv"], ["import", "x.csv", "--out", "again"]):
        command, place, out, target = asked
        result = CliRunner().invoke(
            app, [command, str(tmp_path / place), out, str(tmp_path / target), "--format", "csv"]
        )
        assert result.exit_code == 0, result.output
    first, again = (waterjar.open_study(tmp_path / name) for name in ("study", "again"))
    before, after = (next(iter(study))["performance"].accuracy for study in (first, again))
    assert before.values.tolist() == after.values.tolist()


def test_too_few_pairs_are_counted() -> None:
    assert hedges_g([1.0, 2.0], [0.0, 3.0], variant="g_av").reason == "2 pairs, at least 3 are needed"


def test_sides_of_a_comparison_go_by_their_names(tmp_path: Path) -> None:
    import pandas as pd

    rows = [("acc", "naive", seed, 0.1 * seed) for seed in range(3)] + [("acc", "replay", 0, 0.9)]
    tidy = pd.DataFrame(rows, columns=["metric", "group", "seed", "value"])
    found = compare_many(tidy, baseline="naive", paired=False).set_index("group")
    assert "replay: one value, at least 2 are needed" in found.loc["replay", "reason"]
