"""The code of docs/python.md runs, and its loop costs as many lines as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import waterjar as wj

PAGE = (Path(__file__).resolve().parents[2] / "docs/python.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.torch
def test_both_blocks_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    loop, look = BLOCKS
    assert loop.count("# <-") == 5 and "Five lines of this loop" in PAGE
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in (loop, look):
        exec(compile(block, "docs/python.md", "exec"), names)
    found = names["found"]
    assert {"continual", "plasticity", "geometry", "drift"} <= set(found.results)  # type: ignore[attr-defined]
    assert (tmp_path / "studies/two_tasks/report.html").exists()
    table = wj.summary(tmp_path / "studies/two_tasks", "average_accuracy", numbers=True)
    assert table.loc["average_accuracy", ("replay", "mean")] > table.loc["average_accuracy", ("naive", "mean")] + 0.2


def test_what_it_names_is_there() -> None:
    for name in ("measure", "summary", "compare", "report", "metrics"):
        assert f"`{name}(" in PAGE and callable(getattr(wj, name))
    assert wj.diagnose.continual.remembering and wj.stats.mean_interval
