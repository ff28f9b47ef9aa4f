"""The gallery: every figure has a script, every script draws, and the page shows all of them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from PIL import Image

from waterjar.view import figures

GALLERY = Path(__file__).resolve().parents[3] / "docs/gallery"
QUICK = ("cost_accuracy", "eri_summary", "task_matrix")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in figures.available()]


@pytest.mark.parametrize("name", NAMES)
def test_the_script_draws(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = GALLERY / f"{name}.py"
    assert script.is_file(), f"{name} has no script in docs/gallery"
    assert len(script.read_text().splitlines()) < 20
    monkeypatch.syspath_prepend(str(GALLERY))
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script))
    with Image.open(tmp_path / f"{name}.png") as drawn, Image.open(GALLERY / f"{name}.png") as kept:
        assert abs(drawn.width - kept.width) <= 2 and abs(drawn.height - kept.height) <= 2
        assert len(set(drawn.convert("L").tobytes())) > 10  # not an empty page


def test_the_page_shows_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(GALLERY))
    render = runpy.run_path(str(GALLERY / "_render.py"))
    assert [script.stem for script in render["scripts"]()] == figures.available()
    assert (GALLERY / "README.md").read_text() == render["page"](), "run docs/gallery/_render.py"
    for name in figures.available():
        assert (GALLERY / f"{name}.png").stat().st_size < 120_000
