"""docs/collectives.md must be true: its lines run, and give what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PAGE = Path(__file__).resolve().parents[3] / "docs" / "collectives.md"


def test_the_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with torch.random.fork_rng():
        exec(compile(code, "collectives.md", "exec"), names)
    assert names["course"].emergence_ratio.sizes == {"repeat": 1, "snapshot": 5}
    assert names["found"]["emergence"]["emergence_ratio"] > 0
    assert names["found"].remark == ""  # the network that is evaluated is the one that was recorded last
    assert (tmp_path / "runs" / "mine-evaluated").is_dir()
