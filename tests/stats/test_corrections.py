"""Corrections by hand and against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterjar.errors import WaterjarError
from waterjar.stats import benjamini_hochberg, correct, holm

NAN = float("nan")
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_holm_by_hand() -> None:
    # Sorted 0.005·4, 0.01·3, 0.03·2, 0.04·1 = 0.02, 0.03, 0.06, 0.04 -> the last is lifted to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_benjamini_hochberg_by_hand() -> None:
    # Sorted 0.005·4/1, 0.01·4/2, 0.03·4/3, 0.04·4/4.
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@pytest.mark.parametrize("method", [holm, benjamini_hochberg])
def test_nan_stays_and_does_not_count(method: object) -> None:
    assert callable(method)
    full = method([0.01, NAN, 0.04])
    assert math.isnan(full[1])
    assert full[[0, 2]].tolist() == method([0.01, 0.04]).tolist()
    assert np.isnan(method([NAN, NAN])).all()
    assert method([]).size == 0


def test_impossible_p() -> None:
    with pytest.raises(WaterjarError, match=r"between 0 and 1: \[1.2\]"):
        holm([0.5, 1.2, NAN])


@given(P_VALUES)
def test_corrected_p_keep_their_order_and_never_shrink(p: list[float]) -> None:
    raw = np.array(p)
    for method in (holm, benjamini_hochberg):
        corrected = method(raw)
        assert (corrected >= raw * (1 - 1e-12)).all() and (corrected <= 1).all()
        assert (np.diff(corrected[np.argsort(raw)]) >= -1e-15).all()
    assert (holm(raw) >= benjamini_hochberg(raw) * (1 - 1e-12)).all()


def table() -> pd.DataFrame:
    return pd.DataFrame({"metric": ["ad", "ad", "pd", "pd"], "group": list("xyxy"), "p_value": [0.01, 0.02, NAN, 0.03]})


def test_one_family_by_default() -> None:
    before = table()
    result = correct(before)
    assert result["p_corrected"].tolist() == pytest.approx([0.03, 0.04, NAN, 0.04], nan_ok=True)
    assert set(result["family"]) == {"all"} and set(result["family_size"]) == {3}
    assert set(result["family_missing"]) == {1} and set(result["correction"]) == {"holm"}
    pd.testing.assert_frame_equal(before, table())


def test_named_families() -> None:
    result = correct(table(), family=["metric"], method="benjamini_hochberg")
    assert result["p_corrected"].tolist() == pytest.approx([0.02, 0.02, NAN, 0.03], nan_ok=True)
    assert result["family"].tolist() == ["metric=ad", "metric=ad", "metric=pd", "metric=pd"]
    assert result["family_size"].tolist() == [2, 2, 1, 1]
    assert result["family_missing"].tolist() == [0, 0, 1, 1]
    assert correct(table(), family=["metric", "group"])["family"][3] == "metric=pd, group=y"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "bonferroni"}, "method 'bonferroni' is unknown"),
        ({"family": "metric"}, r"write family=\['metric'\]"),
        ({"family": ["metrics"]}, "did you mean 'metric'"),
        ({"p": "p"}, "column 'p' is unknown"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], words: str) -> None:
    with pytest.raises(WaterjarError, match=words):
        correct(table(), **settings)  # type: ignore[arg-type]


def test_correcting_twice_is_refused() -> None:
    with pytest.raises(WaterjarError, match="once, not twice"):
        correct(correct(table()))


@pytest.mark.oracle
@pytest.mark.parametrize(("ours", "name"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_statsmodels_multipletests(ours: object, name: str) -> None:
    multi = pytest.importorskip("statsmodels.stats.multitest")
    assert callable(ours)
    p = np.random.default_rng(0).beta(0.4, 2, 40)
    assert ours(p) == pytest.approx(multi.multipletests(p, method=name)[1], rel=1e-12)
