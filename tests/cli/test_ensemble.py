"""`waterjar ensemble`: seeds of a cell become the streams of one run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from waterjar import Recorder, WaterjarError, judge_examples
from waterjar.cli.main import app
from waterjar.diagnose import collective

RNG = np.random.default_rng(0)
LABELS = {"test": np.arange(30) % 3, "train": np.arange(12) % 3}


def record(
    path: Path, learner: str, seeds: list[int], *, outputs: bool = True, labels: bool = True, turn: int = 0
) -> None:
    own = {name: np.broadcast_to(np.roll(one, turn), (len(seeds), len(one))) for name, one in LABELS.items()}
    config = {"learner": learner, "seed": seeds[0]} if len(seeds) == 1 else {"learner": learner}
    with Recorder(path, config, seeds=seeds, eval_sets=["test"], classes=list("xyz")) as recorder:
        if labels:
            recorder.once("examples", label=own)
        for epoch in range(3):
            logits = {
                name: RNG.normal(size=(len(seeds), len(one), 3)) + epoch * np.eye(3)[one]
                for name, one in LABELS.items()
            }
            shot = {"outputs": {"logits": logits}} if outputs else None
            recorder.log(epoch=epoch, examples=judge_examples(logits, own), snapshot=shot)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


@pytest.fixture
def study(tmp_path: Path) -> Path:
    waterjar.create_study(tmp_path / "study")
    for seed in (1, 2, 3):
        record(tmp_path / "study" / f"er-{seed}", "er", [seed])
    record(tmp_path / "study" / "sgd", "sgd", [4, 5])
    record(tmp_path / "study" / "blind", "blind", [1], outputs=False)
    return tmp_path / "study"


def test_seeds_become_streams(study: Path, tmp_path: Path) -> None:
    told = json.loads(run("ensemble", study, tmp_path / "out", "--json"))
    assert [Path(one["path"]).name for one in told] == ["er", "sgd"]
    assert "passed over, since outputs were not recorded: blind" in told[0]["notes"]
    made = waterjar.open_study(tmp_path / "out")
    er = made.run("er")
    assert er["streams"].stream.values.tolist() == ["seed_1", "seed_2", "seed_3"]
    assert er["streams"].total_epoch.values.tolist() == [0, 1, 2]
    kept = waterjar.open_run(study / "er-2").array("outputs/logits")[-1, 0, :30]
    np.testing.assert_array_equal(er["streams"].logits.sel(stream="seed_2", eval_set="test").values[-1, 0], kept)
    found = collective.measure(made, baseline="sgd", resamples=20)
    assert found.attrs["scored_sets"] == "test"
    by_name = dict(zip(found["cell"].values, found["collective_accuracy_final"].values[:, 0], strict=True))
    assert by_name["er"] > 0.6 and not np.isnan(found["shapley_accuracy_final"].values).any()
    assert "rho" in run("diagnose", tmp_path / "out", "--only", "collective")


def test_a_second_time_is_refused_in_words_that_fit(study: Path, tmp_path: Path) -> None:
    run("ensemble", study, tmp_path / "out")
    with pytest.raises(WaterjarError, match="er holds a run already: expected a path at which there is nothing yet"):
        run("ensemble", study, tmp_path / "out")


def test_some_cells_and_sets(study: Path, tmp_path: Path) -> None:
    run("ensemble", study, tmp_path / "out", "--cell", "sgd", "--eval-set", "test", "--rule", "vote")
    (made,) = waterjar.open_study(tmp_path / "out")
    assert made.config["ensemble"] == {"members": ["4", "5"], "rule": "vote"}
    assert made["streams"].eval_set.values.tolist() == ["test"]


def test_what_cannot_be(study: Path, tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="cell 'srg' is unknown: did you mean 'sgd'"):
        run("ensemble", study, tmp_path / "out", "--cell", "srg")
    with pytest.raises(WaterjarError, match="set of examples 'tets' is unknown"):
        run("ensemble", study, tmp_path / "out", "--eval-set", "tets")
    with pytest.raises(WaterjarError, match="--rule 'median' is unknown"):
        run("ensemble", study, tmp_path / "out", "--rule", "median")
    with pytest.raises(
        WaterjarError, match=r"no seed of blind has recorded its outputs: expected /outputs, which Recorder"
    ):
        run("ensemble", study, tmp_path / "out", "--cell", "blind")
    assert not (tmp_path / "out").exists()


def test_no_outputs_at_all(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "study")
    einstellung(tmp_path / "study" / "run", learner="er", seed=1)
    with pytest.raises(WaterjarError, match="recording.examples and recording.outputs do both"):
        run("ensemble", tmp_path / "study", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_seeds_that_were_asked_other_examples(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "study")
    for seed in (1, 2):
        record(tmp_path / "study" / str(seed), "er", [seed], turn=seed)
    with pytest.raises(WaterjarError, match="2, seed 2, was asked other examples than 1, seed 1"):
        run("ensemble", tmp_path / "study", tmp_path / "out")


def test_the_study_of_the_seeds_is_no_place_for_them(study: Path) -> None:
    before = sorted(study.rglob("*"))
    for out in (study, study / ".." / "study"):
        with pytest.raises(WaterjarError, match="is the study that the seeds are of: expected another directory"):
            run("ensemble", study, out)
    assert sorted(study.rglob("*")) == before
