"""What a notebook shows of a diagnosis: the metrics, without what stands beside them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import waterjar
from front.two_methods import AFTER, LEARNED, write
from waterjar.diagnose.registry import find_family
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError

NASTY = '<img src=x onerror="alert(1)">\x1b[31m\u202e</td>'


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    return diagnose(waterjar.open_study(write(tmp_path_factory.mktemp("shown") / "study")))


def test_a_family_shows_its_metrics_alone_by_names_of_cells(found: Diagnosis) -> None:
    shown = found["continual"]
    assert set(shown.data_vars) <= set(find_family("continual").metrics) and len(shown.data_vars) >= 13
    assert not [name for name in dir(shown) if name.endswith(("_reason", "_n", "_se", "_low", "_high"))]
    assert shown["cell"].values.tolist() == ["naive", "replay"]
    at_end = shown["forgetting"].sel(cell="naive", eval_task=0).values
    np.testing.assert_allclose(at_end, [LEARNED - ends[0] for ends in AFTER["naive"].values()])


def test_nothing_is_lost(found: Diagnosis) -> None:
    both = {*found["continual"].variables, *found.beside("continual").variables}
    assert both == set(found.results["continual"].variables)


def test_one_number_per_seed(found: Diagnosis) -> None:
    shown = found.per_seed("continual")
    assert all(set(array.dims) == {"cell", "seed"} for array in shown.values())
    table = found.table(["forgetting"]).set_index(["cell", "seed"])["value"]
    for cell in AFTER:
        for seed in AFTER[cell]:
            assert float(shown["forgetting"].sel(cell=cell, seed=seed)) == table[cell, seed]


def test_reasons_are_words(found: Diagnosis) -> None:
    shown, reasons = found["continual"], found.reasons("continual")
    assert list(shown) == list(reasons)
    for name in shown:
        words, values = reasons[name].values, shown[name].values
        np.testing.assert_array_equal(words == "", ~np.isnan(values))
    assert "undefined" in reasons["forgetting"].values


def test_families_can_be_asked_for(found: Diagnosis) -> None:
    assert list(found) == found._ipython_key_completions_() == list(found.results)
    assert "continual" in found and "rigidity" not in found and bool(found)
    with pytest.raises(WaterjarError, match="rigidity was not measured: "):
        found["rigidity"]
    with pytest.raises(WaterjarError, match="did you mean 'continual'"):
        found.reasons("continual_")
    with pytest.raises(WaterjarError, match=r"forgetting is a metric of continual: \['continual'\]\['forgetting'\]"):
        found["forgetting"]


def test_its_text_is_short_and_says_what_was_passed_over(found: Diagnosis) -> None:
    text = repr(found)
    assert len(text) < 1500 and text.count("\n") <= 12
    assert "cells naive, replay; seeds 1, 2, 3" in text and "continual: 15 metrics" in text
    assert "not measured: drift: no run has recorded" in text


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        assert "color: #" not in str(attrs)  # a dark notebook has its own


def test_names_from_files_are_escaped(tmp_path: Path) -> None:
    folder = write(tmp_path / "study", {NASTY: {1: [0.25, 0.75], 2: [0.5, 0.5]}, "naive": {1: [0.25, 0.5]}})
    study = waterjar.open_study(folder)
    found = diagnose(study)
    for one in (study, found, study.run("0")):
        page = one._repr_html_()
        tags = Tags()
        tags.feed(page)
        assert tags.seen <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
        assert "\x1b" not in page and "\u202e" not in page
    assert "&lt;img" in study._repr_html_()
    assert "\x1b" not in repr(found) and "\u202e" not in repr(found)
    shown = study.summary(["average_accuracy"])
    assert "\x1b" not in "".join(shown.columns) and "<img src" not in shown._repr_html_()
    assert found["continual"].sel(cell=NASTY).sizes["seed"] == 2
    assert "<img" not in found["continual"]._repr_html_() and "\x1b" not in repr(found["continual"])
