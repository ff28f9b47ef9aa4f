"""A metric, figure or format of another package that fails is one error that names it, and costs nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result as Told
from typer.testing import CliRunner

import outside
import waterjar
from waterjar.cli.main import app
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.testing import small_study
from waterjar.view.outputs import write_outputs
from waterjar.view.report.composing import compose
from waterjar.view.report.model import model_of
from waterjar.view.report.renderers import as_json

METRIC = """
from waterjar.diagnose.cost import ResourceUse
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result

@metric("odd", family="cost", long_name="x", formula="x", citation="x", needs=("resources",), range=(0, 1))
def odd(use: ResourceUse) -> Result:
    {body}
"""
FIGURE = """
TITLE, CAPTION, NEEDS = "Odd", "Odd.", ()

def data(source):
    {body}

def odd(source, *, ax=None):
    {body}
"""
FORMAT = """
TITLE = "odd"

def export_runs(study, out, settings):
    {body}

def import_runs(path, out):
    {body}
"""
TEXTS = {"metrics": METRIC, "figures": FIGURE, "formats": FORMAT}
BOOM = "raise KeyError('boom')"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    small_study(folder, seeds=(1, 2))
    section = {"baseline": "scratch_t2", "families": ["cost", "continual"], "figures": ["learning_curves", "odd"]}
    waterjar.create_study(folder, {"analysis": section}, replace=True)
    return folder


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install a package odd-parts with a part `odd` on a shelf, whose functions have a body."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def installed(body: str = BOOM, *shelves: str) -> None:
        for shelf in ("figures", *shelves):
            (site / f"odd_{shelf}.py").write_text(TEXTS[shelf].format(body=body if shelf in shelves else BOOM))
        outside.bring(site, "odd-parts", {f"waterjar.{one}": {"odd": f"odd_{one}"} for one in ("figures", *shelves)})
        outside.forget(site)

    yield installed
    monkeypatch.undo()
    outside.forget(site)


def command(*arguments: object) -> Told:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_a_metric(study: Path, bring: Callable[..., None]) -> None:
    bring(BOOM, "metrics")
    found = diagnose(waterjar.open_study(study))
    assert found.passed_over == {"cost": "metric 'odd' of odd-parts 1.0 failed: KeyError: 'boom'"}
    assert list(found.results) == ["continual"]
    told = command("diagnose", study)
    assert told.exit_code == 0 and "Continual learning" in told.output
    assert "cost: not measured: metric 'odd' of odd-parts 1.0 failed" in told.output
    asked = command("diagnose", study, "--only", "odd")
    assert isinstance(asked.exception, WaterjarError | SystemExit)
    assert "metric 'odd' of odd-parts 1.0 failed: KeyError: 'boom'" in f"{asked.exception} {asked.output}"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (BOOM, "failed: KeyError: 'boom'"),
        ("raise SystemExit(3)", "failed: SystemExit: 3"),
        ("return None", "failed: TypeError: expected a"),
        ("import matplotlib.figure as f; one = f.Figure(); one.text(0, 0, '$\\\\frac{$'); return one", "failed: "),
    ],
)
def test_a_figure(study: Path, bring: Callable[..., None], tmp_path: Path, body: str, why: str) -> None:
    pytest.importorskip("matplotlib")
    bring(body, "figures")
    told = json.loads(command("plot", study, "--out", tmp_path / "f", "--format", "png", "--json").stdout)
    assert list(told["drawn"]) == ["learning_curves.png"]
    assert told["passed_over"]["odd"].startswith(f"figure 'odd' of odd-parts 1.0 {why}")
    if body != BOOM:
        return  # whatever is wrong with it goes the same way from here
    made = write_outputs(diagnose(waterjar.open_study(study)), tmp_path / "outputs")  # what `run` does
    assert isinstance(made["learning_curves.png"], Path) and isinstance(made["report.html"], Path)
    assert str(made["odd.png"]).startswith("figure 'odd' of odd-parts 1.0 failed")
    asked = command("plot", study, "--figure", "odd", "--out", tmp_path / "x.png")
    assert "figure 'odd' of odd-parts 1.0 failed" in f"{asked.exception} {asked.output}"


def test_a_format(study: Path, bring: Callable[..., None], tmp_path: Path) -> None:
    bring(BOOM, "formats")
    for call in (("export", study), ("import", study)):
        asked = command(*call, "--format", "odd", "--out", tmp_path / "x")
        assert isinstance(asked.exception, WaterjarError | SystemExit)
        assert "format 'odd' of odd-parts 1.0 failed: KeyError: 'boom'" in f"{asked.exception} {asked.output}"
    bring("return 5", "formats")
    asked = command("export", study, "--format", "odd", "--out", tmp_path / "x")
    assert "failed: TypeError: expected a list of Made, and it gave 5" in f"{asked.exception} {asked.output}"


def test_values_beyond_the_range_that_a_metric_declares_are_told(study: Path, bring: Callable[..., None]) -> None:
    """Also where all seeds agree, and there is no interval that could tell."""
    bring("return use.each(42.0)", "metrics")
    found = diagnose(waterjar.open_study(study))
    note = "2 of 2 values of odd lie outside of [0, 1]"
    assert found.out_of_range() == [("scratch_t2", note), ("sgd", note)]
    assert found.out_of_range("continual") == []
    told = command("diagnose", study, "--only", "odd")
    assert f"sgd: {note}" in told.output
    page = as_json.render(compose(model_of(found.study)))
    assert note in page and "Beyond the range of their metric" in page
