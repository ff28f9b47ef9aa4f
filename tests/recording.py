"""A small recorded run, and ways to look at one without waterjar."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import waterjar
from waterjar.run.manifest import root_line
from waterjar.run.stamped import BLANK, stamp, to_json
from waterjar.run.store import MANIFEST, ROOT_HASH
from waterjar.run.writer import CHECKSUM


def record(path: Path, steps: int = 5, seed: int = 0, **settings: object) -> Path:
    """A sealed run with two eval sets, two tasks, training loss, features and weights."""
    rng = np.random.default_rng(seed)
    options = {"seeds": [seed], "eval_sets": {"a": 0, "b": 1}, "tasks": ["first", "second"], **settings}
    with waterjar.Recorder(path, {"learner": "sgd", "lr": 0.1}, **options) as recorder:
        for step in range(steps):
            task = "first" if step < steps // 2 else "second"
            epoch = step if task == "first" else step - steps // 2 + 1
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": rng.random(2), "loss": rng.random(2)},
                train={"loss": rng.random()} if step else None,
                snapshot={
                    "features": {"penultimate": rng.random((2, 4, 3), dtype=np.float32)},
                    "weights": {"w": rng.random((3, 2)), "b": rng.random(2)},
                },
            )
    return path


def content(path: Path) -> dict[str, str]:
    """Every file's hash, what depends on the clock left out: root, manifest, lock, times of events."""
    files = (f for f in path.rglob("*") if f.is_file() and ".waterjar" not in f.parts and f != path / "zarr.json")
    files = (f for f in files if f.relative_to(path).parts[:2] != ("events", "time") or f.name == "zarr.json")
    return {f.relative_to(path).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(files)}


def root_of(path: Path) -> dict[str, Any]:
    return json.loads((path / "zarr.json").read_text())


def write_root(path: Path, root: dict[str, Any]) -> None:
    """Put a root in place whose checksum holds, as whoever forges one would."""
    root["attributes"] = {"checksum": BLANK, **{k: v for k, v in root["attributes"].items() if k != "checksum"}}
    (path / "zarr.json").write_bytes(stamp(to_json(root), CHECKSUM))


def as_by_another_tool(path: Path, root: dict[str, Any]) -> None:
    """Make an open run of it, as another tool, or waterjar before roots had checksums, would write it."""
    left_out = ("checksum", "identity", "seal", "checks")
    attributes = {key: value for key, value in root["attributes"].items() if key not in left_out}
    (path / "zarr.json").write_text(json.dumps({**root, "attributes": {**attributes, "status": "interrupted"}}))
    for file in ("manifest.sha256", "root.sha256"):
        (path / ".waterjar" / file).unlink(missing_ok=True)


def without_visits(path: Path) -> Path:
    """Make a sealed run of schema 1 of it, which did not know visits, sealed by hand."""
    root, manifest = root_of(path), (path / MANIFEST).read_text()
    root["attributes"]["waterjar_schema"] = 1
    nodes = root["consolidated_metadata"]["metadata"]
    root["consolidated_metadata"]["metadata"] = {key: one for key, one in nodes.items() if not key.endswith("/visit")}
    for node in nodes.values():
        listed = node["attributes"].get("coordinates", "").split()
        if "visit" in listed:
            node["attributes"]["coordinates"] = " ".join(name for name in listed if name != "visit")
    for folder in list(path.rglob("visit")):
        shutil.rmtree(folder)
    write_root(path, root)
    files = [line.split("  ", 1)[1] for line in manifest.splitlines() if "/visit/" not in line]
    lines = [f"{hashlib.sha256((path / file).read_bytes()).hexdigest()}  {file}\n" for file in files]
    (path / MANIFEST).write_text("".join(lines))
    (path / ROOT_HASH).write_bytes(root_line(hashlib.sha256("".join(lines).encode()).hexdigest()))
    return path


EINSTELLUNG_SETS = {
    "t1_all": 0,
    "t2_all_normal": 1,
    "t2_shortcut_normal": 1,
    "t2_shortcut_masked": 1,
    "t2_nonshortcut_normal": 1,
    "t2_validation": 1,
    "t2_shortcut_clean": 1,
    "t2_shortcut_random_mask": 1,
    "t2_nonshortcut_masked": 1,
    "t2_nonshortcut_patched": 1,
}


def einstellung(
    path: Path,
    *,
    scenario: str = "sequential",
    learner: str = "sgd",
    seed: int = 1,
    rate: float = 0.5,
    final: float = 0.8,
    masked: float = 0.5,
    delay: int = 0,
    epochs: int = 6,
    injected: bool = True,
) -> Path:
    """A run as the laboratory writes it, with curves we choose: patched accuracy rises to `final` in four epochs,
    `delay` epochs late; with the mask it is `masked` times as high. A seed shifts everything by 0.01 of itself.
    """
    config = {
        "method": learner if scenario == "sequential" else scenario,
        "kind": "einstellung",
        "scenario": scenario,
        "learner": learner,
        "backbone": "mlp",
        "data": "toy",
        "shortcut": {"kind": "patch", "rate": rate, "settings": {"size": 4}},
        "training": {"epochs_t2": epochs},
        "seed": seed,
    }
    classes = [f"class {i}" for i in range(4)]
    rows = [("t1", 0), ("t1", 1), *(("t2", epoch) for epoch in range(epochs + 1))]
    with waterjar.Recorder(
        path, config, seeds=[seed], eval_sets=EINSTELLUNG_SETS, tasks=["t1", "t2"], classes=classes
    ) as recorder:
        for task, epoch in rows if scenario == "sequential" else rows[2:]:
            risen = min(max((epoch - delay) / 4, 0.0), 1.0) if task == "t2" else 0.0
            patched = (final + 0.01 * seed) * risen
            accuracy = {
                name: masked * patched if "masked" in name or "clean" in name else patched for name in EINSTELLUNG_SETS
            }
            accuracy["t1_all"] = 0.7 if task == "t1" and epoch else 0.4 * (scenario == "sequential")
            recorder.log(
                train_task=task,
                epoch=epoch,
                performance={"accuracy": accuracy, "macro_accuracy": accuracy},
                train={"patched_images": 50.0 * injected * (task == "t2")},
                resources={"seconds": 1.0, "images": 100, "flops": 1e9, "peak_memory": 2e8, "buffer_bytes": 0.0},
            )
    return path
