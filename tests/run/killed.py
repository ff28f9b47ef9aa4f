"""A recording process that tests kill: logs deterministic steps with snapshots, resumes where it stands.

usage: killed.py PATH STEPS MODE, with MODE one of
- unit: a snapshot inside log(); resumes behind the last complete step
- checkpoint: log(), then snapshot(), then a checkpoint file; resumes at the checkpoint's step
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from waterjar import Recorder, Storage, judge_examples


def step_values(step: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    return {
        "accuracy": rng.random(2),
        "loss": rng.random(2) if step % 3 else np.array([np.nan, 1.0]),
        "features": rng.random((2, 50, 20), dtype=np.float32),
        "weights": rng.random(2000, dtype=np.float32),
    }


def more_values(step: int) -> dict[str, np.ndarray]:
    """What schema 2 has beside."""
    rng = np.random.default_rng([step, 2])
    logits = {name: rng.normal(size=(size, 3)).astype(np.float32) for name, size in (("a", 50), ("b", 20))}
    return {
        "logits": logits,
        "examples": judge_examples(logits, {name: np.zeros(len(one), int) for name, one in logits.items()}),
        "monitor": {"anything": rng.random()},
        "cls": rng.random((2, 50, 2, 3, 4), dtype=np.float32),
        "map": rng.random((2, 50, 4, 4), dtype=np.float32),
        "streams": rng.random((2, 50, 2, 3), dtype=np.float32),
    }


def main(path: Path, steps: int, mode: str) -> None:
    marker = path.with_suffix(".checkpoint")
    resume_at = None
    if mode == "checkpoint":
        resume_at = int(marker.read_text()) if marker.exists() else -1
    storage = Storage(step_chunk=4, snapshot_chunk_bytes=4000)
    with Recorder(
        path, {"mode": mode}, eval_sets=["a", "b"], storage=storage, resume=True, resume_at=resume_at, provenance=False
    ) as recorder:
        recorder.once("probe_samples", label=np.arange(100).reshape(2, 50))
        for step in range(recorder.last_step + 1, steps):
            values, more = step_values(step), more_values(step)
            shot = {
                "features": {"l": values["features"]}, "weights": {"w": values["weights"]},
                "outputs": {"logits": more["logits"]}, "attention": {"cls": more["cls"]},
                "attribution": {"saliency": more["map"]}, "streams": {"logits": more["streams"]},
            }  # fmt: skip
            performance = {"accuracy": values["accuracy"]}
            if step >= 2:
                performance["loss"] = values["loss"]
            train = {"loss": step} if step % 2 else None
            recorder.log(
                epoch=step, performance=performance, train=train, examples=more["examples"], monitor=more["monitor"],
                probes={"sharpness": step} if step % 4 == 0 else None, snapshot=shot if mode == "unit" else None,
            )  # fmt: skip
            if mode == "checkpoint":
                recorder.snapshot(**shot)
                if step == 7:
                    recorder.event("note", "seven", level="warning", repeat=0)
                draft = marker.with_suffix(".draft")
                draft.write_text(str(step))
                draft.replace(marker)
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
