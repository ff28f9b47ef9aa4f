"""The interquartile mean against scipy, arch and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import trim_mean

from waterjar.errors import WaterjarError
from waterjar.stats import interquartile_mean


def test_by_hand() -> None:
    # Eight scores, the lowest two and the highest two go: (3 + 4 + 5 + 6)/4.
    interval = interquartile_mean([[1.0, 8.0], [2.0, 7.0], [3.0, 6.0], [4.0, 5.0]])
    assert interval.estimate == 4.5
    assert interval.low < 4.5 < interval.high
    assert (interval.n, interval.n_missing) == (4, 0)
    assert "4 runs in the smallest task" in interval.note


def test_resampling_stays_within_a_task() -> None:
    # No spread within tasks; 3 zeros, 12 ones and 3 fives in the middle half: 27/18.
    # Whatever is drawn, a task keeps its value.
    interval = interquartile_mean(np.tile([0.0, 1.0, 5.0], (12, 1)))
    assert (interval.low, interval.estimate, interval.high) == pytest.approx((1.5, 1.5, 1.5), abs=1e-12)
    assert interval.note == ""


def test_missing_runs_are_left_out_of_their_task() -> None:
    scores = np.random.default_rng(0).normal(size=(12, 3))
    scores[2, 1] = np.nan
    interval = interquartile_mean(scores)
    assert (interval.n, interval.n_missing) == (11, 1)
    assert math.isfinite(interval.low) and math.isfinite(interval.high)


def test_chunks_do_not_change_the_draws_of_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.random.default_rng(1).normal(size=(10, 2))
    whole = interquartile_mean(scores, n_resamples=500, rng=3)
    assert whole == interquartile_mean(scores[::-1], n_resamples=500, rng=3)
    monkeypatch.setattr("waterjar.stats.interquartile._CHUNK", 2000)
    chunked = interquartile_mean(scores, n_resamples=500, rng=3)
    assert chunked.low == pytest.approx(whole.low, abs=0.15)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([[1.0, float("nan")], [2.0, float("nan")]], "no run observed in task 1"),
        (np.empty((3, 0)), "no run observed in task all"),
        ([[1.0, 2.0, 3.0, 4.0]], "one run per task"),
        ([[1.0, float("inf")], [1.0, 2.0]], "infinite"),
    ],
)
def test_no_interval_comes_with_a_reason(scores: object, reason: str) -> None:
    interval = interquartile_mean(scores)  # type: ignore[arg-type]
    assert reason in interval.reason
    assert math.isnan(interval.low) and math.isnan(interval.high)


def test_one_run_per_task_still_has_an_estimate() -> None:
    assert interquartile_mean([[1.0, 2.0, 3.0, 4.0]]).estimate == 2.5


def test_the_shape_is_runs_by_tasks() -> None:
    with pytest.raises(WaterjarError, match=r"\(run, task\) is needed"):
        interquartile_mean([1.0, 2.0])


@pytest.mark.oracle
def test_scipy_and_arch_give_the_same() -> None:
    # What rliable is made of: scipy's trimmed mean, and the bootstrap of arch that resamples columns by themselves.
    # rliable itself cannot be installed beside a present pandas: it wants an arch that does not import there.
    bootstrap = pytest.importorskip("arch.bootstrap")
    scores = np.random.default_rng(7).lognormal(size=(10, 6))
    drawn = bootstrap.IndependentSamplesBootstrap(*scores.T, seed=np.random.default_rng(1))
    bounds = drawn.conf_int(lambda *columns: trim_mean(np.concatenate(columns), 0.25), reps=10_000, method="percentile")
    ours = interquartile_mean(scores)
    assert ours.estimate == pytest.approx(trim_mean(scores, 0.25, axis=None), rel=1e-12)
    assert [ours.low, ours.high] == pytest.approx(bounds.ravel().tolist(), abs=0.04 * (ours.high - ours.low))
