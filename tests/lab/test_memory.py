"""Peak memory of a stretch, with and without help of the system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from waterjar.lab import memory
from waterjar.lab.memory import PeakMemory

MB = 2**20
LINUX = Path("/proc/self/clear_refs").exists()


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_a_second_stretch_does_not_inherit_the_peak_of_the_first() -> None:
    """In a process of its own: what the tests before left behind must not matter."""
    script = """
import numpy as np
from waterjar.lab.memory import PeakMemory
first = PeakMemory(); before = first.largest()
block = np.ones(300 * 2**20 // 8); del block
one = first.largest()
second = PeakMemory(); two = second.largest()
block = np.ones(100 * 2**20 // 8); del block
print(before, one, two, second.largest(), first.largest())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, one, two, then, first_again = map(int, done.stdout.split())
    assert one - before == pytest.approx(300 * MB, rel=0.05)
    assert two < before + 20 * MB
    assert then - two == pytest.approx(100 * MB, rel=0.05)
    assert first_again >= one  # what it has seen stays seen, though another stretch set the system's peak back


def fake(folder: Path, peak: int, resident: int) -> None:
    (folder / "status").write_text(f"Name:\tpython\nVmHWM:\t{peak} kB\nVmRSS:\t{resident} kB\nThreads:\t1\n")


def test_a_switch_that_does_nothing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_system_peak", lambda: 900 * MB)
    (tmp_path / "clear_refs").write_bytes(b"")
    fake(tmp_path, peak=900 * 1024, resident=100 * 1024)
    peak = PeakMemory(tmp_path)
    assert (tmp_path / "clear_refs").read_bytes() == b"5"
    assert peak.largest() == 100 * MB
    fake(tmp_path, peak=900 * 1024, resident=80 * 1024)
    assert peak.largest() == 100 * MB
    fake(tmp_path, peak=900 * 1024, resident=120 * 1024)
    assert peak.largest() == 120 * MB
    monkeypatch.setattr(memory, "_system_peak", lambda: 950 * MB)
    assert peak.largest() == 950 * MB  # a new record of the process can only be this stretch's


def test_a_switch_that_works(tmp_path: Path) -> None:
    (tmp_path / "clear_refs").write_bytes(b"")
    fake(tmp_path, peak=100 * 1024, resident=100 * 1024)
    peak = PeakMemory(tmp_path)
    fake(tmp_path, peak=333 * 1024, resident=50 * 1024)
    assert peak.largest() == 333 * MB


def test_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_system_peak", lambda: 200 * MB)
    peak = PeakMemory(tmp_path / "none")
    assert peak.largest() is None
    monkeypatch.setattr(memory, "_system_peak", lambda: 300 * MB)
    assert peak.largest() == 300 * MB
    assert not (tmp_path / "none").exists()


def test_unreadable_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_system_peak", lambda: 200 * MB)
    (tmp_path / "clear_refs").write_bytes(b"")
    for content in (b"\xff\xfe", b"VmHWM: many kB\n"):
        (tmp_path / "status").write_bytes(content)
        assert PeakMemory(tmp_path).largest() is None


def test_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kilobytes on Linux, bytes on a Mac."""
    block = np.ones(MB)
    assert memory._system_peak() > block.nbytes
    linux = memory._system_peak()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory._system_peak() == pytest.approx(linux / 1024, rel=0.1)
