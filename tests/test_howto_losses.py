"""docs/howto-losses.md must be true: its code runs, and what it says of commands holds."""

from __future__ import annotations

import csv
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel
from typer.testing import CliRunner

import waterjar
from waterjar.cli.main import app

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "howto-losses.md").read_text()
COMMANDS = re.findall(r"^    waterjar (.*)$", PAGE, re.M)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which all blocks ran, one behind the other, and what they printed."""
    folder = tmp_path_factory.mktemp("howto")
    said: list[str] = []
    known = {"print": lambda *words: said.append(" ".join(map(str, words)))}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for code in re.findall(r"```python\n(.*?)```", PAGE, re.S):
            faster = code.replace("provenance=False", "provenance=False, storage=waterjar.Storage(sync=False)")
            exec(compile(faster, "howto-losses.md", "exec"), known)
    return folder, "\n".join(said)


def test_the_last_losses_are_compared_as_scipy_does(place: tuple[Path, str]) -> None:
    folder, said = place
    last: dict[float, list[float]] = {2.0: [], 8.0: []}
    for rate, values in last.items():
        for seed in range(20):
            run = waterjar.open_run(folder / "losses" / f"rate{rate:g}-{seed}")
            values.append(float(run["performance"].loss.values[-1, 0, 0]))
    test = ttest_rel(last[2.0], last[8.0])
    assert f"difference {np.mean(last[2.0]) - np.mean(last[8.0]):.3f} [" in said
    assert f"p {test.pvalue:.2g}, 20 seeds" in said


def test_learning_time_is_measured_of_every_seed(place: tuple[Path, str]) -> None:
    told = ["--set", "metric_type=loss", "--only", "learning_time", "--csv"]
    result = CliRunner().invoke(app, ["diagnose", str(place[0] / "losses"), *told])
    assert result.exit_code == 0, result.output
    found = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(found) == 40
    assert all(0 < float(one["value"]) < 10 for one in found)


def test_returns_have_a_difference_a_p_and_an_effect_size(place: tuple[Path, str]) -> None:
    last: dict[str, list[float]] = {"ppo": [], "a2c": []}
    for method, values in last.items():
        for seed in range(5):
            run = waterjar.open_run(place[0] / "returns" / f"{method}-{seed}")
            values.append(float(run["monitor"]["return"].values[-1, 0]))
    _, row = waterjar.compare(place[0] / "returns", "return", baseline="a2c").to_dict("records")
    assert row["cell"] == "ppo" and row["difference"] == pytest.approx(np.mean(last["ppo"]) - np.mean(last["a2c"]))
    assert row["p"] == pytest.approx(ttest_rel(last["ppo"], last["a2c"]).pvalue)
    assert np.isfinite(row["effect"]) and 0 <= row["improvement"] <= 1


def test_one_picture_is_one_figure(place: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(place[0])
    result = CliRunner().invoke(app, ["compare", "returns"])
    assert "\n1 figure in " in result.output, result.output


@pytest.mark.parametrize("command", [one for one in COMMANDS if not one.startswith(("plot", "report"))])
def test_the_commands_work(place: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(place[0])
    result = CliRunner().invoke(app, [*shlex.split(command), "--no-figures"])
    assert result.exit_code == 0, result.output


@pytest.mark.no_cover
@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith(("plot", "report"))])
def test_the_pictures_are_drawn(place: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    monkeypatch.chdir(place[0])
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == 0, result.output
