from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar import Recorder, WaterjarError, judge_examples
from waterjar.run.formats import export_as

RNG = np.random.default_rng(0)


@pytest.fixture
def study(tmp_path: Path) -> waterjar.Study:
    """A run with something in every group of schema 2."""
    path = tmp_path / "study" / "run"
    with Recorder(
        path, {"api_key": "sk-1"}, seeds=[1, 2], eval_sets=["a"], tasks=["x", "ý"], labels={"stream": ["l", "r"]}
    ) as recorder:
        for step, task in enumerate(("x", "ý", "x")):
            logits = RNG.normal(size=(2, 5, 3))
            recorder.log(
                epoch=0, train_task=task, performance={"accuracy": [[0.5, 0.25]]}, monitor={"m": [1.0, step]},
                examples=judge_examples({"a": logits}, {"a": np.zeros((2, 5), int)}), probes={"p": [1.0, 2.0]},
                snapshot={
                    "features": {"late": RNG.normal(size=(2, 1, 4, 7)).astype(np.float32)},
                    "outputs": {"logits": {"a": logits}}, "streams": {"logits": RNG.random((2, 1, 4, 2, 3))},
                    "attention": {"cls": RNG.random((2, 1, 4, 1, 2, 3))},
                    "attribution": {"g": RNG.random((2, 1, 4, 2, 2))},
                },
            )  # fmt: skip
        recorder.event("note", "naïve", level="warning", repeat=1)
    return waterjar.open_study(tmp_path / "study")


def test_every_array_comes_out_as_it_was_recorded(study: waterjar.Study, tmp_path: Path) -> None:
    (made,) = export_as("npy", study, tmp_path / "out")
    run = study.run("run")
    about = json.loads((made.path / "about.json").read_text())
    for key, node in run.nodes.items():
        if node["node_type"] != "array":
            continue
        values = np.load(made.path / f"{key}.npy", allow_pickle=False)
        stored = run.array(key)
        np.testing.assert_array_equal(values, stored.astype(str) if stored.dtype.kind == "O" else stored)
        assert about["arrays"][key]["dims"] == node["dimension_names"]
    groups = {key.partition("/")[0] for key in about["arrays"]}
    wanted = {
        "performance",
        "monitor",
        "examples",
        "probes",
        "features",
        "outputs",
        "streams",
        "attention",
        "attribution",
        "events",
    }
    assert groups == wanted
    assert about["root_hash"] == run.root_hash and about["config"]["api_key"] == "(not shown)"
    with pytest.raises(WaterjarError, match="is there already"):
        export_as("npy", study, tmp_path / "out")


def test_nothing_can_be_read_of_it(tmp_path: Path) -> None:
    from waterjar.run.formats import import_from

    with pytest.raises(WaterjarError, match="format 'npy' cannot be read: expected csv, seed"):
        import_from("npy", tmp_path, tmp_path / "run")
