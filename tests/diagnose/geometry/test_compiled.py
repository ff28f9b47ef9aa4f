"""What is compiled is what stands in the sources, and whoever waits for it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = """
import sys
sys.path.insert(0, {folder!r})
import waterjar.diagnose.geometry.solver.compiled as compiled
compiled.__file__ = {folder!r} + "/compiled.py"
import _kernel
print(_kernel.answer(1.0))
"""
KERNEL = """
from waterjar.diagnose.geometry.solver.compiled import entry
from _part import part

@entry
def answer(x):
    return part(x)
"""
PART = """
from waterjar.diagnose.geometry.solver.compiled import inner

@inner
def part(x):
    return x + {value}
"""


def run(folder: Path, value: float) -> tuple[str, str]:
    (folder / "_kernel.py").write_text(KERNEL)
    (folder / "_part.py").write_text(PART.format(value=value))
    done = subprocess.run(
        [sys.executable, "-c", SOURCE.format(folder=str(folder))], capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_a_change_in_a_called_file_is_noticed_and_only_compiling_is_announced(tmp_path: Path) -> None:
    first, told = run(tmp_path, 1.0)
    assert first == "2.0" and "compiling" in told
    stamp = (tmp_path / "_kernel.py").stat()
    (tmp_path / "again").mkdir()
    os.utime(tmp_path / "_kernel.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    changed, told = run(tmp_path, 2.0)
    assert changed == "3.0" and "compiling" in told
    os.utime(tmp_path / "_kernel.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
