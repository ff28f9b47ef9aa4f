"""A training process that tests kill. usage: killed_training.py FOLDER LEARNER"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tiny_lab import GLYPHS, tiny
from waterjar.lab import data
from waterjar.lab.einstellung import train


def main(folder: Path, learner: str, *, announce: bool = False) -> Path:
    torch.set_num_threads(1)
    scenario = "interleaved" if learner == "joint" else "sequential"
    config = tiny(scenario, learner)
    glyphs = data.load("glyphs", **GLYPHS)
    if announce:
        print("ready", flush=True)
    return train(
        config, glyphs, folder / "run", checkpoints=folder / "checkpoints", device="cpu", checkpoint_seconds=0.03
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], announce=True)
