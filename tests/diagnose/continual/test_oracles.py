"""Against avalanche-lib's functional forgetting and Mammoth's metrics, on the same matrices (`make oracle`).

avalanche is taken where it is installed; only its `evaluation/functional.py` is loaded, which needs numpy alone.
Mammoth is taken where MAMMOTH_PATH names a checkout. Both are written out here as well, to be tested anywhere.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from diagnose.continual.by_hand import ENDS
from waterjar.diagnose.continual import backward_transfer, forgetting, forward_transfer_gem

WITH_PEAK = [[0.5, 0.2, 0.1], [0.7, 0.6, 0.3], [0.4, 0.65, 0.8]]
matrices = st.integers(2, 6).flatmap(lambda n: hnp.arrays(np.float64, (n, n), elements=st.floats(0, 1)))


def load(file):
    spec = importlib.util.spec_from_file_location(f"foreign_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def avalanche():
    found = importlib.util.find_spec("avalanche")
    if found is None:
        pytest.skip("avalanche is not installed")
    return load(Path(found.submodule_search_locations[0]) / "evaluation" / "functional.py")


@pytest.fixture(scope="module")
def mammoth():
    if "MAMMOTH_PATH" not in os.environ:
        pytest.skip("MAMMOTH_PATH names no checkout of Mammoth")
    return load(Path(os.environ["MAMMOTH_PATH"]) / "utils" / "metrics.py")


def random_matrices(n=20):
    rng = np.random.default_rng(11)
    return [np.array(ENDS), np.array(WITH_PEAK), *(rng.random((t, t)) for t in rng.integers(2, 8, n))]


@pytest.mark.oracle
def test_avalanches_forgetting_and_bwt(avalanche):
    for R in random_matrices():
        theirs = avalanche.forgetting(R)
        for k in range(1, len(R)):
            ours = forgetting(R[: k + 1, : k + 1], "learned")
            np.testing.assert_array_equal(ours[:-1], theirs[k, :k])
        np.testing.assert_allclose(backward_transfer(R), -theirs[-1, :-1].mean(), rtol=1e-12)


@pytest.mark.oracle
def test_avalanches_forgetting_over_logged_epochs(avalanche):
    rng = np.random.default_rng(5)
    curves = rng.random((4, 4, 3))  # (train, eval, epoch)
    theirs = avalanche.forgetting(curves.swapaxes(1, 2).reshape(12, 4), [2, 5, 8, 11])
    np.testing.assert_array_equal(forgetting(curves[..., -1], "learned")[:-1], theirs[-1, :-1])


@pytest.mark.oracle
@pytest.mark.parametrize("triangle", [False, True])
def test_mammoths_forgetting_bwt_and_fwt(mammoth, triangle):
    for R in random_matrices():
        tasks = len(R)
        # Mammoth keeps a row per task trained, of the tasks seen so far; it may evaluate the next one, too
        rows = [list(row[: i + 1] if triangle else row) for i, row in enumerate(R)]
        known = np.where(np.tri(tasks) > 0, R, np.nan) if triangle else R
        assert backward_transfer(known) == pytest.approx(mammoth.backward_transfer(rows), rel=1e-12)
        if not triangle:
            start = R[::-1, 0]
            theirs = mammoth.forward_transfer(rows, [[b] for b in start])
            assert forward_transfer_gem(R, start) == pytest.approx(theirs, rel=1e-12)
        expected = mammoth.forgetting([list(row) for row in rows])
        assert np.mean(forgetting(known, "max_or_last")[:-1]) == pytest.approx(expected, rel=1e-12)


@given(matrices)
def test_their_definitions_written_out(R):
    last = len(R) - 1
    avalanche = [R[k, k] - R[last, k] for k in range(last)]
    mammoth = [max([0.0] * k + [R[i, k] for i in range(k, last + 1)]) - R[last, k] for k in range(last)]
    chaudhry = [max(R[i, k] for i in range(last)) - R[last, k] for k in range(last)]
    seen = np.where(np.tri(last + 1) > 0, R, np.nan)
    np.testing.assert_allclose(forgetting(R, "learned")[:-1], avalanche, atol=1e-15)
    np.testing.assert_allclose(forgetting(seen, "max_or_last")[:-1], mammoth, atol=1e-15)
    np.testing.assert_allclose(forgetting(R, "max")[:-1], chaudhry, atol=1e-15)
