"""Metrics go by the symbols that tables print."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recording import einstellung
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.plasticity import Representation
from waterjar.diagnose.registry import find_metric, forget, metric, metric_name, metric_words, metrics
from waterjar.diagnose.result import Result
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.run.study import open_study
from waterjar.view import figures


def test_every_symbol_finds_its_metric() -> None:
    known = metrics()
    for name, declared in known.items():
        if declared.symbol:
            assert find_metric(declared.symbol) is declared
            assert metric_name(declared.symbol) == name
    assert {"ACC", "BWT", "AD", "PD", "SFR_rel", "FWT"} <= set(metric_words())


def test_other_words_stay_as_they_are() -> None:
    assert [metric_name(word) for word in ("ad", "continual", "nothing", "")] == ["ad", "continual", "nothing", ""]


@pytest.mark.parametrize(("word", "meant"), [("acc", "'ACC'"), ("ACCC", "'ACC'"), ("forgeting", "'forgetting'")])
def test_an_unknown_word_names_the_nearest(word: str, meant: str) -> None:
    with pytest.raises(WaterjarError, match=f"did you mean {meant}"):
        find_metric(word)


@pytest.fixture
def shared() -> Iterator[None]:
    for name in ("one_share", "other_share"):

        @metric(
            name, family="plasticity", long_name="a share", formula="1", citation="here", needs=("features",),
            summary=f"{name}_final", symbol="Sh",
        )  # fmt: skip
        def share(features: Representation) -> Result:
            return Result(1.0)

    yield
    forget("one_share")
    forget("other_share")


@pytest.mark.usefixtures("shared")
def test_a_symbol_of_several_is_an_error_that_lists_them() -> None:
    with pytest.raises(WaterjarError, match="'Sh' is the symbol of several: write one_share or other_share"):
        find_metric("Sh")
    with pytest.raises(WaterjarError, match="symbol of several"):
        metric_name("Sh")


def test_diagnosis_comparison_and_figures_take_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("symbols")
    for seed in (1, 2):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
        einstellung(folder / f"late-{seed}", learner="late", seed=seed, masked=0.1 + 0.02 * seed, delay=1)
    found = diagnose(open_study(folder), only=["AD", "PD"])
    assert set(found.table(["AD", "PD"]).metric) == {"ad", "pd"}
    assert set(compare_cells(found, ["PD", "pd"]).metric) == {"pd"}
    by_symbol = figures.data("metric_boxes", found, metrics="PD, SFR_rel", snapshots="final")
    assert set(by_symbol.metric) == {"pd", "sfr_rel"}
