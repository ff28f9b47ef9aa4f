"""What cannot be measured, or not of all streams, is told in one clear sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diagnose.collective.by_hand import last, measured, random_streams, sure_of, why
from waterjar.diagnose.labelled import reasons_of


def remarks(found: Any) -> str:
    return str(found["collective_remarks"].values)


def test_a_rule_that_does_not_make_the_recorded_collective_makes_no_coalitions(tmp_path: Path) -> None:
    """Contributions would be those of another collective, and not sum to the accuracy of this one."""
    streams, labels = random_streams()
    rng = np.random.default_rng(1)
    gated = rng.normal(size=(200, 4)) + sure_of(labels, 4, 4.0)
    found = measured(tmp_path, streams, collective=gated, labels=labels, settings={"rule": "vote"})
    assert last(found, "collective_accuracy") == (gated.argmax(1) == labels).mean()
    for name in ("shapley_accuracy", "shapley_log_likelihood", "ablation", "interaction"):
        assert np.isnan(last(found, name)).all() and reasons_of(found, name).values.min() > 0
    assert why(found, "shapley_accuracy") == "not_recorded"
    assert remarks(found) == (
        "seed 0: no contributions of streams that are removed: rule= does not make the recorded logits of the "
        "collective of its streams' outputs: its coalitions would be those of another one"
    )
    (tmp_path / "other").mkdir()
    mean = np.mean(list(streams.values()), axis=0)
    own = measured(tmp_path / "other", streams, collective=mean, labels=labels, settings={"rule": "mean_logit"})
    gained = last(own, "collective_accuracy") - last(own, "chance")
    assert last(own, "shapley_accuracy")[0].sum() == pytest.approx(gained) and remarks(own) == ""


def test_a_rule_that_cannot_be_checked_is_believed(tmp_path: Path) -> None:
    """Logits stored so coarsely that they tell nothing of probabilities do not speak against it."""
    streams, labels = random_streams()
    coarse = {name: (900 + one).astype(np.float16) for name, one in streams.items()}
    whole = np.mean([one.astype(np.float64) for one in coarse.values()], axis=0).astype(np.float16)
    found = measured(tmp_path, coarse, collective=whole, labels=labels)
    assert np.isnan(last(found, "shapley_accuracy")).all()
    (tmp_path / "other").mkdir()
    told = measured(tmp_path / "other", coarse, collective=whole, labels=labels, settings={"rule": "mean_logit"})
    assert not np.isnan(last(told, "shapley_accuracy")[0]).any() and remarks(told) == ""
