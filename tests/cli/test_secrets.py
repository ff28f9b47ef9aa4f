"""Secrets in the settings of runs and studies: recorded as they are, and shown by no command."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from waterjar import Recorder
from waterjar.cli.main import app

SECRET = "Xq7-open-sesame"
HIDDEN_IN: list[dict[str, object]] = [
    {"tokens": [SECRET]},
    {"hubs": [{"url": "x", "api_key": SECRET}]},
    {"credentials": {"user": SECRET}},
    {"learner": {"name": "sgd", "api_key": SECRET}},
    {"data": {"name": "toy", "tokens": [SECRET]}},
    {"env": [{"name": "HF_TOKEN", "value": SECRET}], "argv": ["--token", SECRET], "url": f"https://a:{SECRET}@x.org"},
]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cell for each place, another secret in every one: they are what the cells differ in, and are named by."""
    declared = {"hubs": [{"api_key": SECRET}], "tokens": [SECRET], "analysis": {"families": ["continual"]}}
    folder = waterjar.create_study(tmp_path_factory.mktemp("secrets") / "study", declared)
    for i, secret in enumerate(HIDDEN_IN):
        config = {"method": "a", "data": "toy", **secret}
        if "learner" in secret:
            del config["method"]
        with Recorder(folder / f"run{i}", config, eval_sets={"x": 0, "y": 1}, tasks=["x", "y"]) as recorder:
            for task in ("x", "y"):
                recorder.log(train_task=task, epoch=1, performance={"accuracy": [0.5, 0.25]})
    return folder


@pytest.mark.parametrize(
    "command",
    ["ls {}", "ls {} --json", *(f"show {{}}/run{i}" for i in range(len(HIDDEN_IN))), "show {}/run1 --json",
     "diagnose {}", "compare {} --json", "export {} --format csv --out {out}/x.csv", "report {} --out {out}/r.html",
     "report {} --out {out}/r.json", "report {} --notebook --out {out}/r.ipynb"],
)  # fmt: skip
def test_no_command_shows_them(study: Path, tmp_path: Path, command: str) -> None:
    if command.startswith("report"):
        for extra in ("jinja2", "plotly"):
            pytest.importorskip(extra)
    done = CliRunner().invoke(app, [part.format(study, out=tmp_path) for part in command.split()])
    assert done.exit_code == 0, done.output
    shown = done.output.encode() + b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"open-sesame" not in shown


def test_what_is_recorded_is_not_changed(study: Path) -> None:
    for i, secret in enumerate(HIDDEN_IN):
        assert waterjar.open_run(study / f"run{i}").config.items() >= secret.items()
