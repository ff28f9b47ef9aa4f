"""How commands grow with the number of runs: CPU seconds of each at n and at 3 n runs, and their ratio.

A study of cells with ten seeds each, two tasks, six epochs, all runs sealed. Linear growth is a ratio of 3; start-up,
which is the same for both, is measured on a study of ten runs and taken away. Every command runs in a process of its
own, as a user's would.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import waterjar

SEEDS = 10
LIMIT = 3.6  # 3, and what the noise of a machine may add
COMMANDS = {
    "ls": ["ls"],
    "verify": ["verify"],
    "first diagnose": ["diagnose"],
    "diagnose, cached": ["diagnose"],
    "compare": ["compare"],
    "report": ["report"],
}
COMMAND = "from waterjar.cli.main import main; main()"
LOAD = "import sys, waterjar; waterjar.open_study(sys.argv[1]).load('performance')"


def record(study: Path, runs: int) -> None:
    """Runs of two tasks, in cells of ten seeds."""
    study.mkdir()
    (study / "study.yaml").write_text("experiment_name: growth\n", encoding="utf-8")
    rng = np.random.default_rng(0)
    for i in range(runs):
        config = {"method": f"m{i // SEEDS:04d}", "lr": 0.01}
        about = {"tasks": ["a", "b"], "eval_sets": {"a": 0, "b": 1}, "seeds": [i % SEEDS], "classes": list("01")}
        with waterjar.Recorder(study / f"r{i:05d}", config, summary=False, **about) as recorder:  # type: ignore[arg-type]
            for step in range(6):
                accuracy = rng.uniform(0.4, 1.0, 2)
                task = "ab"[step // 3]
                recorder.log(epoch=step % 3, train_task=task, performance={"accuracy": accuracy})


def cpu_seconds(arguments: list[str]) -> float:
    """CPU time, user and system, of one process."""
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, *arguments],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise SystemExit(f"{arguments}: exit {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def measure(study: Path) -> dict[str, float]:
    """What -> CPU seconds."""
    found = {what: cpu_seconds(["-c", COMMAND, *command, str(study)]) for what, command in COMMANDS.items()}
    return {"load": cpu_seconds(["-c", LOAD, str(study)]), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000, help="n; 3 n runs are recorded too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for runs in (SEEDS, asked.runs, 3 * asked.runs):
            study = Path(folder, f"of_{runs}")
            record(study, runs)
            found.append(measure(study))
    start, small, large = found
    for what in start:
        ratio = (large[what] - start[what]) / max(small[what] - start[what], 1e-9)
        over = "" if ratio <= LIMIT else "  OVER"
        print(f"{what}: {small[what]:.1f} s, {large[what]:.1f} s at three times the runs, ratio {ratio:.2f}{over}")


if __name__ == "__main__":
    main()
