"""Examples sorted: the numbers that are drawn are those that were recorded, counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar.view import figures
from waterjar.view.report import compose, model_of
from waterjar.view.report.blocks import Chart, Table, Text

# Five examples, four epochs each after the start, of two seeds.
ANSWERS = {
    1: ["01010", "01111", "00000", "01001", "00011"],
    2: ["01010", "01111", "00000", "01111", "00000"],
}


def record(path: Path, method: str, seed: int, *, own: bool) -> None:
    table = np.array([[int(sign) for sign in text] for text in ANSWERS[seed]]).T
    with waterjar.Recorder(path, {"method": method}, seeds=[seed], eval_sets={"all": 0}, tasks=["x"]) as recorder:
        recorder.once("examples", sample_index={"all": [np.arange(5) + 10 * seed * own]})
        for epoch, row in enumerate(table):
            recorder.log(train_task="x", epoch=epoch, examples={"correct": {"all": row[None]}})


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    folder = waterjar.create_study(
        tmp_path_factory.mktemp("examples") / "study", {"analysis": {"families": ["examples"]}}
    )
    for seed in ANSWERS:
        record(folder / f"shared-{seed}", "shared", seed, own=False)
        record(folder / f"own-{seed}", "own", seed, own=True)
    return waterjar.open_study(folder)


def test_levels_by_hand(study: waterjar.Study) -> None:
    table = figures.data("forgotten_examples", study)
    events = table[(table.metric == "forgetting_events") & (table.cell == "shared")]
    #  means over seeds that learned it: 2, 0, never, (1 + 0) / 2, 0
    assert events["value"].tolist() == [2.0, 0.5, 0.0]
    assert events["examples"].tolist() == [1, 1, 2]
    assert events["first"].tolist() == [1, 2, 3] and events["last"].tolist() == [1, 2, 4]
    assert events["names"].tolist() == ["all/0", "all/3", "all/1, all/4"]
    assert set(events["never"]) == {1} and set(events["unforgettable"]) == {2} and set(events["total"]) == {5}
    assert set(events["n"]) == {2}
    learned = table[(table.metric == "first_learned") & (table.cell == "shared")]
    #  medians, the lower of two: 1, 1, never, 1, 3
    assert learned["value"].tolist() == [1.0, 3.0] and learned["examples"].tolist() == [3, 1]


def test_seeds_with_examples_of_their_own_are_sorted_by_themselves(study: waterjar.Study) -> None:
    table = figures.data("forgotten_examples", study)
    events = table[(table.metric == "forgetting_events") & (table.cell == "own")]
    #  2 1 0 0 and 2 0 0: by place 2, .5, 0, 0
    assert events["value"].tolist() == [2.0, 0.5, 0.0] and events["examples"].tolist() == [1, 1, 2]
    assert set(events["names"]) == {""}


def test_what_is_drawn(study: waterjar.Study) -> None:
    figure = figures.draw("forgotten_examples", study)
    left, right = figure.axes
    lines = {tuple(np.asarray(line.get_ydata()).tolist()) for line in left.get_lines()}
    assert (2.0, 2.0, 0.5, 0.5, 0.0, 0.0) in lines
    assert len(right.get_lines()) == 2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "shared: 1 never learned, 2 never forgotten, of 5" in labels


def test_the_section(study: waterjar.Study) -> None:
    report = compose(model_of(study))
    (section,) = [one for one in report.sections if one.name == "examples"]
    lead = next(block for block in section.blocks if isinstance(block, Text))
    assert "shared 2 of 5 (1 never learned)" in lead.text
    chart = next(block for block in section.blocks if isinstance(block, Chart))
    assert len(chart.panels) == 2
    tables = {block.name: block for block in section.blocks if isinstance(block, Table)}
    assert tables["most_forgotten"].rows[0] == ("shared", "all/0", "2.00", "2 of 2")
    assert {"examples_table", "examples_crossed"} <= set(tables)
