"""README and constraints must be true."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import waterjar

HOME = Path(__file__).resolve().parents[1]


@pytest.mark.torch
def test_the_lines_in_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    code = re.findall(r"```python\n(.*?)```", (HOME / "README.md").read_text(), re.S)
    assert len(code) == 1
    printed: list[str] = []
    monkeypatch.chdir(tmp_path)
    exec(compile(code[0], "README.md", "exec"), {"print": printed.append})
    study = waterjar.open_study(tmp_path / "study")
    assert [run.last_step for run in study] == [31] * 3
    assert all(waterjar.verify(run.path).state == "sealed" for run in study)
    last = [run["performance"].accuracy.isel(step=-1).mean().item() for run in study]
    (told,) = [line for line in printed[0].splitlines() if "(ACC)" in line]
    assert float(told.split()[3]) == pytest.approx(np.mean(last), abs=6e-4)
    assert {"forgetting", "capacity", "dormant_units"} <= {line.split(" ")[0] for line in printed[0].splitlines()}


def test_the_readme_is_read_in_a_minute() -> None:
    assert len((HOME / "README.md").read_text().splitlines()) <= 90


@pytest.mark.torch
def test_the_continual_loop_in_the_docs_feeds_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from waterjar.diagnose.feeds import feeds
    from waterjar.diagnose.study import diagnose

    blocks = re.findall(r"```python\n(.*?)```", (HOME / "docs/runs.md").read_text(), re.S)
    (code,) = [block for block in blocks if "import torch" in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "runs.md", "exec"), {})
    said = {one.family: one for one in feeds(waterjar.open_run(tmp_path / "runs" / "naive-0"))}
    assert {name for name, one in said.items() if one.feeds} == {"continual", "cost", "drift", "geometry", "plasticity"}
    assert all(one.metrics is None or not one.is_telling for feed in said.values() for one in feed.lacks)
    found = diagnose(waterjar.open_study(tmp_path / "runs"), families=["continual", "plasticity"])
    values = found.table(["average_accuracy", "forgetting", "remembering", "backward_transfer", "effective_rank"])
    assert values["value"].notna().all()


def test_every_picture_and_page_named_in_the_readme_exists() -> None:
    prose = re.sub(r"```.*?```", "", (HOME / "README.md").read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert (HOME / target).exists(), target


def test_public_names_exist() -> None:
    for name in waterjar.__all__:
        assert getattr(waterjar, name) is not None
    assert set(waterjar.__all__) <= set(dir(waterjar)) and dir(waterjar) == sorted(dir(waterjar))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        waterjar.nothing  # noqa: B018


def test_citation_has_the_version() -> None:
    assert f"version: {waterjar.__version__}" in (HOME / "CITATION.cff").read_text()
