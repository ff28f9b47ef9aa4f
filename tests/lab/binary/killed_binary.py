"""A training process that tests kill. usage: killed_binary.py FOLDER ENGINE"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lab.binary.tiny_binary import ALL_OPTIONS, GLYPHS, tiny
from waterjar.lab import data
from waterjar.lab.binary import train_binary


def main(folder: Path, engine: str, *, announce: bool = False) -> Path:
    torch.set_num_threads(1)
    config = tiny(
        learner="rl",
        learner_settings={"baseline": "running"},
        options=ALL_OPTIONS,
        multitask=True,
        random_baseline=True,
        training={
            "epochs": 4,
            "batch_size": 16,
            "log_frequency": 2,
            "optimiser": {"name": "adam"},
            "lr_features": 0.01,
        },
    )
    glyphs = data.load("glyphs", **GLYPHS)
    if announce:
        print("ready", flush=True)
    return train_binary(
        config, glyphs, folder / "run", checkpoints=folder / "c", device="cpu", engine=engine, checkpoint_seconds=0.02
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], announce=True)
