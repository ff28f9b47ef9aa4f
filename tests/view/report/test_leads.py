"""What the first screen says of any study: who forgets, what happened inside, and no more than intervals carry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import waterjar
from own_loops import continual_study, loss_study
from waterjar.view.report import Model, compose, model_of
from waterjar.view.report.blocks import Callout, Items, Section, Table
from waterjar.view.report.leads import lead_files, told
from waterjar.view.report.leads._courses import _half_way
from waterjar.view.report.leads._learned import constant_answers
from waterjar.view.report.renderers.markdown import render

FAMILIES = {"analysis": {"families": ["continual", "plasticity", "drift", "cost"]}}


def modelled(folder: Path, declaration: dict[str, Any] | None = None) -> Model:
    if declaration is not None:
        waterjar.create_study(folder, declaration, replace=True)
    return model_of(waterjar.open_study(folder))


def said(model: Model) -> dict[str, list[str]]:
    return {one.name: one.sentences for one in told(model)}


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return modelled(continual_study(tmp_path_factory.mktemp("split") / "s", epochs=3, tasks=3), FAMILIES)


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("dead") / "s"
    return modelled(continual_study(path, ["naive"], epochs=2, tasks=3, rate=12.0), FAMILIES)


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return modelled(loss_study(tmp_path_factory.mktemp("loss") / "s", seeds=range(8)))


def test_every_lead_keeps_the_contract() -> None:
    assert {"learned", "rigidity", "collective", "continual", "plasticity"} <= set(lead_files())
    orders = [one.ORDER for one in lead_files().values()]
    assert orders == sorted(orders) and all(one.TITLE for one in lead_files().values())


def test_who_forgets_less_is_said_with_the_numbers_of_compare(split: Model) -> None:
    first, *_ = said(split)["continual"]
    curves = {cell: one["accuracy"] for cell, one in split.study.load().items()}
    lost = {}
    for name, one in curves.items():  # best at the end of a task before the last, minus the end of all
        ends = one.isel(step=[3, 6, 9]).transpose("repeat", "step", "eval_set").values
        lost[name] = (ends[:, :2, :2].max(axis=1) - ends[:, 2, :2]).mean(axis=1)
    assert first.startswith("replay forgets less than naive: ")
    assert f"{lost['replay'].mean():.3f}" in first and f"{lost['naive'].mean():.3f}" in first
    table = split.compared[0]
    row = table[(table["metric"] == "forgetting") & (table["group"] == "replay")].iloc[0]
    assert np.isclose(row["p_value"], stats.ttest_rel(lost["replay"], lost["naive"]).pvalue)
    assert row["significant"] and "3 seeds" in first and "p = " in first
    assert next(iter(said(split))) == "continual"


def test_what_happened_inside_is_said_and_is_not_called_lost_plasticity(split: Model) -> None:
    inside = " ".join(said(split)["plasticity"])
    result = split.diagnosis.results["plasticity"]
    ends = result["dormant_units"].isel(snapshot=-1, layer=0).sel(cell="naive").values
    assert (
        f"In naive, {100 * ends.mean():.0f} % [" in inside
        and "of the units of layer fc1 are dormant at the end" in inside
    )
    assert "effective rank" in inside and "lost plasticity" not in inside
    assert "Whether the networks can still learn was not measured" in inside


def test_nobody_learned_comes_first_and_a_dead_network_is_called_dead(dead: Model) -> None:
    found = said(dead)
    assert next(iter(found)) == "learned" and found["learned"][0].startswith("Nobody is shown to have learned: ")
    assert "continual" not in found and "geometry" not in found
    (inside,) = found["plasticity"]
    assert "naive: the network is dead at the end in 3 of 3 seeds." in inside and "effective rank is 1.0" in inside
    assert "lost plasticity" not in inside
    (cell,) = dead.names.values()
    assert np.allclose(constant_answers(dead, cell), (0.5, 1 / 6))


@pytest.mark.parametrize(("seeds", "words"), [((0,), "What other seeds would forget is not known"), ((0, 1), "naive")])
def test_one_learner_and_few_seeds(seeds: tuple[int, ...], words: str, tmp_path: Path) -> None:
    model = modelled(continual_study(tmp_path / "s", ["naive"], seeds, epochs=2, tasks=2, features=False))
    found = said(model)["continual"]
    assert words in found[0] and "than" not in found[0]
    assert f"{len(seeds)} seed" in found[0]
    both = modelled(continual_study(tmp_path / "t", seeds=(0,), epochs=2, tasks=2, features=False))
    assert said(both)["continual"][0].startswith("With one seed, replay forgets")


def test_many_learners_are_counted_and_the_ends_named(tmp_path: Path) -> None:
    names = [*(f"replay with a name that is rather too long for a sentence, variant {i}" for i in range(11)), "naive"]
    path = continual_study(tmp_path / "s", names, (0, 1), epochs=1, tasks=2, features=False)
    found = said(modelled(path, {"analysis": {"baseline": "naive"}}))
    assert found["continual"][0].startswith("Of 11 learners compared with naive (")
    assert all(len(text) < 700 for several in found.values() for text in several)
    assert not any(names[3] in text for text in found["continual"])


def test_losses_alone(losses: Model) -> None:
    (first,) = said(losses)["learning"]
    ends = {cell: one["loss"].values[-1, 0] for cell, one in losses.study.load().items()}
    p = stats.ttest_rel(ends["adam"], ends["sgd"]).pvalue
    assert first.startswith("At the end of training, adam has a lower loss on held_out than sgd: ")
    assert f"{ends['adam'].mean():.3f}" in first and "8 seeds" in first
    report = compose(losses)
    learning = next(section for section in report.sections if section.name == "learning")
    (table,) = [block for block in learning.blocks if isinstance(block, Table)]
    frame = table.frame.set_index(["group", "cell"])
    assert np.isclose(frame.loc[("performance", "adam"), "p_corrected"], p)
    last = losses.study.load("train")["sgd"]["loss"].values[-1]
    assert np.isclose(frame.loc[("train", "sgd"), "mean"].item(), last.mean())
    page = render(report, {})
    assert "accuracy" not in page[: page.index("## Settings")].lower()


def test_a_loss_that_ends_as_nan_is_no_number(tmp_path: Path) -> None:
    waterjar.create_study(tmp_path / "s")
    for seed in (1, 2, 3):
        with waterjar.Recorder(tmp_path / f"s/a{seed}", {"method": "a"}, seeds=[seed], eval_sets=["test"]) as recorder:
            for epoch in range(3):
                loss = np.nan if seed == 1 and epoch == 2 else 1.0 / (epoch + seed)
                recorder.log(epoch=epoch, performance={"loss": loss}, train={"loss": loss})
    model = modelled(tmp_path / "s")
    (text,) = said(model)["learning"]
    assert "(2 seeds)" in text
    learning = next(section for section in compose(model).sections if section.name == "learning")
    (table,) = [block for block in learning.blocks if isinstance(block, Table)]
    assert "1 of 3 not_a_number" in table.rows[0][1]


def dying(folder: Path, early: bool, **probe: Callable[[int], int]) -> Model:
    """Features that lose their directions early, or late; accuracy on the first task falls in the middle."""
    waterjar.create_study(folder, FAMILIES)
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        run = folder / f"run-{seed}"
        sets, tasks = {"a": 0, "b": 1}, ["a", "b"]
        about: dict[str, Any] = {"seeds": [seed], "eval_sets": sets, "tasks": tasks, "classes": "xy"}
        with waterjar.Recorder(run, {"method": "m"}, **about) as recorder:
            for epoch in range(21):
                died = epoch >= ((3 if early else 16) + (seed == 2))
                features = rng.random((1, 2, 12, 8)) * (np.arange(8) < (1 if died else 8))
                task = "a" if epoch < 8 else "b"
                first = 0.95 if epoch < 10 + seed // 2 else 0.5
                recorder.log(
                    train_task=task,
                    epoch=epoch if task == "a" else epoch - 7,
                    performance={"accuracy": [0.5 if epoch == 0 else first, 0.5 if epoch < 8 else 0.9]},
                    snapshot={"features": {"h": features}},
                )
                for name, values in probe.items():
                    recorder.probe(name, values(epoch) + seed)
    return modelled(folder)


@pytest.mark.parametrize(("early", "word"), [(True, "before"), (False, "after")])
def test_which_moved_first_is_said_where_seeds_settle_it(early: bool, word: str, tmp_path: Path) -> None:
    inside = " ".join(said(dying(tmp_path / "s", early))["plasticity"])
    other = "after" if word == "before" else "before"
    assert f"was there {word} accuracy had lost half of what it lost in all" in inside
    assert f"was there {other} accuracy" not in inside
    at = 10 / 3 if early else 49 / 3  # epochs 3, 4, 3 or 16, 17, 16
    assert f"epoch {at:.3g} against {(10 + 11 + 11) / 3:.3g}, 3 seeds" in inside


def test_plasticity_is_lost_only_where_the_ability_to_learn_was_measured(tmp_path: Path) -> None:
    slower = said(dying(tmp_path / "s", True, random_label_epochs=lambda epoch: 5 + 3 * epoch))["plasticity"]
    assert any(text.startswith("m has lost plasticity: fresh random labels take 67.0") for text in slower)
    steady = said(dying(tmp_path / "t", True, random_label_epochs=lambda epoch: 5))["plasticity"]
    assert any("is not shown to have lost plasticity" in text for text in steady)
    assert not any("was not measured" in text for text in [*slower, *steady])


def test_half_way_by_hand() -> None:
    epochs = np.arange(5.0)
    assert _half_way(np.array([10.0, 9.0, 6.0, 5.0, 4.0]), epochs, 10.0, 4.0) == 2
    assert _half_way(np.array([0.0, np.nan, 3.0, 4.0, 4.0]), epochs, 0.0, 4.0) == 2
    assert np.isnan(_half_way(np.ones(5), epochs, 1.0, 1.0))


def test_the_summary_holds_the_first_in_the_callout_and_the_others_below(split: Model) -> None:
    summary = next(section for section in compose(split).sections if section.name == "summary")
    callout, items = summary.blocks
    assert isinstance(callout, Callout) and callout.text.startswith("replay forgets less")
    assert isinstance(items, Items) and items.items[0][0] == "Inside the network"


def reading(model: Model) -> Section:
    return next(section for section in compose(model).sections if section.name == "reading")


def test_how_to_read_names_tasks_baseline_and_signs(split: Model, losses: Model) -> None:
    words = dict(pair for block in reading(split).blocks if isinstance(block, Items) for pair in block.items)
    assert "digits01, digits23 and digits45" in words["What was trained"] and "3 seeds" in words["What was trained"]
    assert "baseline (naive)" in words["p, *"] and "95 % interval" in words["[low, high], n"]
    assert {"Forgetting", "Dormant units, effective rank"} <= set(words)
    assert "Forgetting" not in str(reading(losses).blocks) and "baseline (sgd)" in str(reading(losses).blocks)


def test_pictures_of_the_study_stand_in_the_page(tmp_path: Path) -> None:
    from waterjar.view.report import write

    path = loss_study(tmp_path / "s", ["sgd"], (0, 1), epochs=1)
    (path / "pictures").mkdir()
    png = b"\x89PNG\r\n\x1a\n" + bytes(40)
    (path / "pictures" / "1 <b>cat.png").write_bytes(png)
    (path / "pictures" / "2 no.png").write_bytes(b"<svg onload=alert(1)>")
    (path / "pictures" / "3 large.png").write_bytes(png + bytes(300_000))
    report = compose(modelled(path))
    page = write(report, tmp_path / "r.html").read_text()
    assert page.count("<img alt=") == 1 and "&lt;b&gt;cat" in page and "<svg onload" not in page
    assert "\\<b\\>cat" in render(report, {})
    assert "no seal covers" in page
