"""Do two versions of the laboratory learn the same? Final accuracies of one study, trained by each.

Same seeds, same data, same declaration; networks without normalisation, so that nothing but the learner differs. For
each strategy and evaluation set: the mean difference over seeds (now minus before), its 90 % interval (paired t), and
whether that lies within the margin, which is Schuirmann's two one-sided tests at 5 % each (TOST). What so many seeds
could show is printed, too: the smallest margin that the spread of the differences lets them stay within.

    python bench/before_after.py CHECKOUT [--seeds 10] [--margin 0.03]

CHECKOUT is a work tree of the earlier version (git worktree add). About ten minutes on one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

SETS = ("t1_all", "t2_all_normal", "t2_shortcut_masked")
STUDY = """
kind: einstellung
data:
  name: glyphs
  settings: {{alphabets: 4, characters: 3, train_per_class: 120, test_per_class: 100, strays: 0, tremor: 0.4}}
seeds: {seeds}
backbones: [{{name: small_cnn, settings: {{norm: none}}}}]
strategies:
  - {{learner: sgd, settings: {{lr: 0.02, momentum: 0.9, clip_norm: 2.0}}}}
  - {{learner: er, settings: {{lr: 0.02, momentum: 0.9, clip_norm: 2.0, buffer_size: 100}}}}
  - {{learner: derpp, settings: {{lr: 0.02, momentum: 0.9, clip_norm: 2.0, buffer_size: 100}}}}
  - {{learner: ewc_on, settings: {{lr: 0.02, momentum: 0.9, clip_norm: 2.0, e_lambda: 20.0}}}}
scenarios: [sequential]
tasks: {{t1_superclasses: [0, 1], t2_superclasses: [2, 3], shortcut_superclasses: [2]}}
training: {{epochs_t1: 12, epochs_t2: 8, batch_size: 16}}
resources: {{device: cpu, workers: 2}}
analysis: {{families: [cost], figures: false}}
"""


def train(checkout: Path, declaration: Path, out: Path) -> None:
    """The study, by the sources of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", "from waterjar.cli.main import main; main()", "run", str(declaration)]
    subprocess.run([*command, "--out", str(out)], check=True, env=environment, stdout=subprocess.DEVNULL)


def accuracies(study: Path) -> dict[str, dict[int, list[float]]]:
    """Learner -> seed -> final accuracy on each of `SETS`."""
    import waterjar  # noqa: PLC0415 - the version that reads is this one's

    found: dict[str, dict[int, list[float]]] = {}
    for run in waterjar.open_study(study):
        last = run["performance"].isel(step=-1, repeat=0)
        values = [float(last.accuracy.sel(eval_set=name)) for name in SETS]
        found.setdefault(str(run.config["learner"]), {})[int(run.seeds[0])] = values
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--margin", type=float, default=0.03)
    chosen = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        declaration = Path(folder) / "study.yaml"
        declaration.write_text(STUDY.format(seeds=list(range(chosen.seeds))))
        both = []
        for name, checkout in (("before", chosen.checkout.resolve()), ("now", here)):
            train(checkout, declaration, Path(folder) / name)
            both.append(accuracies(Path(folder) / name))
    columns = f"{'before':>7} {'now':>7} {'difference, 90 % interval':>30}  equivalent  could show"
    print(f"{'learner':8} {'evaluation set':20} {columns}")
    for learner in both[0]:
        before, now = (np.array([one[learner][seed] for seed in range(chosen.seeds)]) for one in both)
        for at, name in enumerate(SETS):
            difference = now[:, at] - before[:, at]
            mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))
            half = stats.t.ppf(0.95, len(difference) - 1) * error
            within = "yes" if abs(mean) + half < chosen.margin else "no"
            interval = f"{mean:+.4f} [{mean - half:+.4f}, {mean + half:+.4f}]"
            levels = f"{before[:, at].mean():7.3f} {now[:, at].mean():7.3f}"
            print(f"{learner:8} {name:20} {levels} {interval:>30}  {within:10}  {half:.4f}")


if __name__ == "__main__":
    main()
