"""Every learner with every option in every kind of study: trained, stopped in the middle, resumed to the bit.

Or refused. `make test` runs a cover in which every pair of kind, repeats, learner and option occurs; `make slow` all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.binary import tiny_binary
from tiny_lab import tiny
from waterjar.errors import WaterjarError
from waterjar.lab import einstellung, learners
from waterjar.lab.binary import train_binary
from waterjar.lab.config import RunConfig, Training
from waterjar.lab.data import ImageData
from waterjar.lab.learning import objectives, options
from waterjar.lab.learning.learner import Learner
from waterjar.run.reader import Run, open_run

pytestmark = pytest.mark.torch

SETTINGS: dict[str, dict[str, Any]] = {
    "continual_backprop": {"maturity": 2, "replacement_rate": 0.2},
    "derpp": {"size": 20, "samples": 5},
    "ewc_on": {"fisher": "exact", "e_lambda": 20.0, "fisher_samples": 12},
    "l2_init": {},
    "layer_norm": {},
    "redo": {"every": 3, "threshold": 0.3},
    "replay": {"size": 20, "samples": 5},
    "shrink_and_perturb": {"when": "step", "shrink": 0.99},
}
OWN = {"er": "replay", "derpp": "derpp", "ewc_on": "ewc_on"}
"""The option that a learner of Einstellung studies is made of."""
EINSTELLUNG = [("einstellung", 1, learner, option) for learner in learners.names() for option in SETTINGS]
BINARY = [
    ("binary", repeats, learner, option) for repeats in (1, 3) for learner in objectives.names() for option in SETTINGS
]
EVERY = EINSTELLUNG + BINARY


def cover(cases: list[tuple[str, int, str, str]]) -> list[tuple[str, int, str, str]]:
    """Few cases in which every pair of two columns occurs that occurs at all, chosen greedily."""
    pairs = {case: {(i, case[i], j, case[j]) for i in range(4) for j in range(i)} for case in cases}
    left, found = set().union(*pairs.values()), []
    while left:
        best = max(cases, key=lambda case: len(pairs[case] & left))
        found.append(best)
        left -= pairs[best]
    return found


QUICK = cover(EVERY)


def train(kind: str, repeats: int, learner: str, option: str, glyphs: ImageData, folder: Path) -> Run:
    path, checkpoints = folder / "run", folder / "checkpoints"
    chosen = [{"name": option, "settings": SETTINGS[option]}]
    if kind == "binary":
        config = tiny_binary.tiny(learner=learner, repeats=repeats, options=chosen, tasks={"number": 2})
        engine = "vmap" if repeats > 1 else "loop"
        return open_run(
            train_binary(config, glyphs, path, checkpoints=checkpoints, engine=engine, checkpoint_seconds=0.0)
        )
    scenario = "interleaved" if learner == "joint" else "sequential"
    plain = tiny(
        scenario,
        "sgd",
        backbone="mlp",
        backbone_settings={"hidden": [12, 8]},
        training=Training(epochs_t1=2, epochs_t2=2, batch_size=8),
    )
    own = {"buffer_size": 20, "minibatch_size": 5} if learner in ("er", "derpp") else {}
    changed = {
        "learner": learner,
        "learner_settings": learners.parse(learner, {"lr": 0.05, "momentum": 0.5, **own}).model_dump(mode="json"),
        "options": chosen,
    }
    config = RunConfig.model_validate({**plain.model_dump(), **changed})
    return open_run(einstellung.train(config, glyphs, path, checkpoints=checkpoints, checkpoint_seconds=0.0))


def resumed_to_the_bit(
    case: tuple[str, int, str, str], glyphs: ImageData, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if OWN.get(case[2]) == case[3]:
        with pytest.raises(WaterjarError, match="expected each at most once"):
            train(*case, glyphs, folder / "refused")
        assert not (folder / "refused" / "run").exists()
        return
    whole = train(*case, glyphs, folder / "whole")
    observe, left = Learner.observe, {"count": 21}

    def stop(self: Learner, *given: Any) -> Any:
        left["count"] -= 1
        if not left["count"]:
            raise KeyboardInterrupt
        return observe(self, *given)

    monkeypatch.setattr(Learner, "observe", stop)
    with pytest.raises(KeyboardInterrupt):
        train(*case, glyphs, folder / "broken")
    again = train(*case, glyphs, folder / "broken")
    assert len(again.attributes["provenance"]["sessions"]) == 2
    assert again.attributes["seal"]["content"] == whole.attributes["seal"]["content"]


def name_of(case: tuple[str, int, str, str]) -> str:
    return "-".join(map(str, case))


@pytest.mark.parametrize("case", QUICK, ids=name_of)
def test_a_cover_of_pairs(
    case: tuple[str, int, str, str], glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed_to_the_bit(case, glyphs, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in EVERY if case not in QUICK], ids=name_of)
def test_all_the_others(
    case: tuple[str, int, str, str], glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed_to_the_bit(case, glyphs, tmp_path, monkeypatch)


def test_nothing_is_left_out() -> None:
    assert tuple(SETTINGS) == options.names()
    assert 20 < len(QUICK) < len(EVERY) == 8 * (5 + 4)


def test_every_option_does_something_in_einstellung(glyphs: ImageData, tmp_path: Path) -> None:
    """Its numbers are others than those of the plain learner."""
    seen = {}
    for option in SETTINGS:
        run = train("einstellung", 1, "sgd", option, glyphs, tmp_path / option)
        assert run.attributes["config"]["method"] == f"sgd+{option}"
        seen[option] = run["performance"].loss.values.tobytes()
    assert len(set(seen.values())) == len(SETTINGS)
