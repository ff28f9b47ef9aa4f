"""What the first screen says of any study: who forgets, what happened inside, and no more than intervals carry."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import waterjar
from own_loops import continual_study, loss_study
from view.report.studies import charts_of
from waterjar.view.report import Model, compose, model_of
from waterjar.view.report.blocks import Callout, Chart, Items, Section, Table, Text
from waterjar.view.report.charts.theme import boundaries
from waterjar.view.report.ends import ends_of
from waterjar.view.report.leads import lead_files, told
from waterjar.view.report.leads._claims import Difference, Mean, against
from waterjar.view.report.leads._courses import Course, _half_way
from waterjar.view.report.leads._learned import constant_answers
from waterjar.view.report.leads.plasticity import _many
from waterjar.view.report.renderers.markdown import render
from waterjar.view.report.renderers.pictures import caption_of

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


def test_the_first_screen_says_what_p_is_corrected_for_and_that_intervals_are_not(split: Model, dead: Model) -> None:
    def notes(model: Model) -> list[str]:
        first = compose(model).sections[0]
        return [one.text for one in first.blocks if isinstance(one, Text) and "p is corrected (" in one.text]

    table, _ = split.compared
    (note,) = notes(split)
    assert f"({table['family_size'].iloc[0]} tests, Holm), intervals are not" in note
    assert "one may be clear of 0 where p is above 0.05; then nothing is claimed" in note
    assert notes(dead) == []  # one learner: nothing is tested


def test_who_forgets_less_is_said_with_the_numbers_of_compare(split: Model) -> None:
    first, *_ = said(split)["continual"]
    curves = {cell: one["accuracy"] for cell, one in split.study.load().items()}
    lost = {}
    for name, one in curves.items():  # best at the end of a task before the last, minus the end of all
        ends = one.isel(step=[3, 6, 9]).transpose("repeat", "step", "eval_set").values
        lost[name] = (ends[:, :2, :2].max(axis=1) - ends[:, 2, :2]).mean(axis=1)
    less = stats.ttest_rel(lost["naive"], lost["replay"]).confidence_interval()
    by = f"{(lost['naive'] - lost['replay']).mean():.3f} [{less.low:.3f}, {less.high:.3f}]"
    assert first.startswith(f"replay forgets less than naive, by {by} (p = ")
    table = split.compared[0]
    row = table[(table["metric"] == "forgetting") & (table["group"] == "replay")].iloc[0]
    assert np.isclose(row["p_value"], stats.ttest_rel(lost["replay"], lost["naive"]).pvalue)
    assert row["significant"] and "3 seeds" in first
    assert next(iter(said(split))) == "continual"


def test_what_happened_inside_is_said_and_is_not_called_lost_plasticity(split: Model) -> None:
    inside = " ".join(said(split)["plasticity"])
    result = split.diagnosis.results["plasticity"]["dormant_units"].isel(layer=0).sel(cell="naive")
    begin, end = (result.isel(snapshot=place).values.mean() for place in (0, -1))
    told = f"The share of dormant units in layer fc1 rose from {100 * begin:.0f} % to {100 * end:.0f} % in naive"
    assert inside.startswith(told)
    assert "ffective rank" in inside and "lost plasticity" not in inside
    assert inside.count("layer fc1") == 1  # one layer is named once
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


def _told_wrongly(path: Path, methods: dict[str, list[float]]) -> Model:
    """Three tasks of two classes. A task is unknown when its own training is said to end; at the end a share of
    each of them is right, seed by seed. One constant answer has 1/2 of a task right, and 1/6 of all.
    """
    names = ["a", "b", "c"]
    for method, ends in methods.items():
        for seed, end in enumerate(ends):
            with waterjar.Recorder(
                path / f"{method}-{seed}", {"method": method}, seeds=[seed], tasks=names, eval_sets=names,
                classes=[str(i) for i in range(6)], summary=False,
            ) as run:  # fmt: skip
                run.once("probe_samples", label=[[[0, 1] * 4, [2, 3] * 4, [4, 5] * 4]])
                for at, task in enumerate(names):
                    now = [end] * 3 if at == 2 else [0.0] * 3
                    run.log(epoch=1, train_task=task, performance={"accuracy": now})
    return modelled(path, {"analysis": {"families": ["continual"]}})


def test_what_any_evaluation_shows_was_learned(tmp_path: Path) -> None:
    """LA is 0.2 where a constant answer has 0.5; ACC is 0.6 where one has 1/6, which three seeds show."""
    found = said(_told_wrongly(tmp_path / "s", {"good": [0.59, 0.6, 0.61], "none": [0.16, 0.165, 0.17]}))
    assert found["learned"][0].startswith("none is not shown to have learned anything") and "good" not in str(
        found["learned"]
    )
    few = said(_told_wrongly(tmp_path / "t", {"good": [0.25, 0.9], "one": [0.9]}))
    (sentence,) = few["learned"]
    assert sentence.startswith("Whether good and one learned cannot be told from 1 to 2 seeds: at the end of a task's")


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


def test_a_baseline_that_is_best_is_called_so_and_who_has_no_value_is_named() -> None:
    base = Mean("base", 0.1, 0.0, 0.2, 3)
    own = [Mean(f"m{i}", 0.1 * (i + 2), 0.1 * (i + 1), 0.1 * (i + 3), 3) for i in range(4)]
    found = [Difference(one, base, one.mean - 0.1, 0.01, 0.9, 3, 0.01, True) for one in own]
    words = "forgets less than", "forgets more than", "forgets"
    plural = "forget less", "forget more"
    text = against(found, words, lower_is_better=True, plural=plural, without=["m9"])
    assert "base itself has the best mean; of the others the best is m0 (0.200" in text and "The best is" not in text
    assert text.endswith("No value: m9.") and "[" not in text
    assert "The best of them is m3" in against(found, words, lower_is_better=False, plural=plural)


def test_two_pairs_claim_nothing_one_has_and_equals_are_equal() -> None:
    base, own = Mean("base", 0.1, 0.0, 0.2, 3), [Mean(f"m{i}", 0.2, 0.1, 0.3, 3) for i in range(5)]
    words, plural = ("has a higher accuracy than", "has a lower accuracy than", "has accuracy"), ("have a", "have b")
    few = Difference(own[0], base, 0.118, 0.118, 0.118, 2, float("nan"), False)
    clear = Difference(own[1], base, 0.1, 0.05, 0.15, 3, 0.01, True)
    same = Difference(own[2], base, 0.0, 0.0, 0.0, 3, 1.0, False)

    def told(*found: Difference) -> str:
        return against(found, words, lower_is_better=False, plural=plural)

    assert few.sign == 0 and clear.sign == 1
    assert told(few) == (
        "Whether m0 has a higher accuracy than base is not settled: the difference is 0.118 (the same in every seed, "
        "2 pairs of seeds, and at least 3 are needed)."
    )
    assert told(same) == "m2 and base are equal in each of 3 seeds: m2 has accuracy 0.200."
    many = told(few, clear, same, same._replace(own=own[3]))
    assert "1 has a higher accuracy, 2 are equal to it and 1 is not settled (1 of them by 2 pairs of seeds" in many


def test_of_many_learners_zeros_are_left_out_and_unchanged_is_said() -> None:
    def one(cell: str, begin: float, end: float, sign: int) -> Course:
        ends = (Mean(cell, value, value - 0.01, value + 0.01, 3) for value in (begin, end))
        rows = np.zeros((3, 2)), np.arange(2.0), np.ones(3, bool), np.ones(3, int)
        return Course(cell, "h", *ends, sign, 0.0, np.zeros(3), *rows, 1)

    names = "abcd"
    still = _many({name: one(name, 0.0, 0.0, 0) for name in names}, "dormant_units")
    assert still == "The share of dormant units is 0 % [−1, 1] in all 4 learners, at the start and at the end."
    moved = {"a": one("a", 0.1, 0.3, 1), **{name: one(name, 0.1, 0.1, 0) for name in names[1:]}}
    assert _many(moved, "dormant_units").startswith(
        "The share of dormant units rose in 1 of 4 learners and is unchanged in 3. At the end it reaches from 30 %"
    )


def test_a_seed_that_one_learner_lacks_is_named_where_their_difference_is_told(tmp_path: Path) -> None:
    path = loss_study(tmp_path / "s", ["sgd", "adam"], (0, 1, 2, 3), epochs=2)
    shutil.rmtree(path / "adam-3")
    (text,) = said(modelled(path))["learning"]
    assert text.endswith("3 seeds, without seed 3 of sgd, which the other lacks).")
    both = continual_study(tmp_path / "t", seeds=(0, 1, 2), epochs=1, tasks=2, features=False)
    shutil.rmtree(both / "replay-1")
    told = said(modelled(both))["continual"]
    words = "2 pairs of seeds, and at least 3 are needed, without seed 1 of naive, which the other lacks)"
    assert len(told) == 2 and all(words in one for one in told)


def test_losses_alone(losses: Model) -> None:
    (first,) = said(losses)["learning"]
    ends = {cell: one["loss"].values[-1, 0] for cell, one in losses.study.load().items()}
    p = stats.ttest_rel(ends["adam"], ends["sgd"]).pvalue
    less = (ends["sgd"] - ends["adam"]).mean()
    assert first.startswith(f"At the end of training, adam has a lower loss on held_out than sgd, by {less:.3f} [")
    assert first.endswith("(p < 0.001, 8 seeds).") and p < 0.001
    report = compose(losses)
    learning = next(section for section in report.sections if section.name == "learning")
    (table,) = [block for block in learning.blocks if isinstance(block, Table)]
    frame = table.frame.set_index(["group", "cell"])
    assert np.isclose(frame.loc[("performance", "adam"), "p_corrected"], p)
    last = losses.study.load("train")["sgd"]["loss"].values[-1]
    assert np.isclose(frame.loc[("train", "sgd"), "mean"].item(), last.mean())
    page = render(report, {})
    assert "accuracy" not in page[: page.index("## Settings")].lower()


def test_losses_measured_as_metrics_of_tasks_are_compared_all_the_same(losses: Model) -> None:
    path = losses.study.path
    asked = model_of(waterjar.open_study(path), settings={"continual": {"metric_type": "loss"}})
    assert "continual" in asked.diagnosis.results
    assert said(asked)["learning"] == said(losses)["learning"]


def test_of_several_recorded_variables_those_that_differ_come_first(tmp_path: Path) -> None:
    for method, gain in (("a2c", 15.0), ("ppo", 20.0)):
        for seed in range(8):
            rng = np.random.default_rng(seed + 100 * (method == "ppo"))
            with waterjar.Recorder(tmp_path / f"s/{method}-{seed}", {"method": method}, seeds=[seed]) as recorder:
                for epoch in range(3):
                    noise = {f"level_{name}": rng.normal() for name in "abcd"}
                    numbers = {**noise, "z_return": gain * epoch + rng.normal(), "z_speed": gain + rng.normal()}
                    recorder.log(epoch=epoch, monitor=numbers)
    *told, rest = said(modelled(tmp_path / "s"))["learning"]
    assert [text.split(" than ")[0].removeprefix("At the end of training, ") for text in told[:2]] == [
        "ppo has a higher z return",
        "ppo has a higher z speed",
    ]
    assert len(told) == 3 and "level a" in told[2] and "not settled" in told[2]
    assert rest == "3 other curves were recorded: learners are shown to differ at the end of none of them."


def test_the_interval_of_a_loss_does_not_reach_below_0_unless_losses_do(tmp_path: Path) -> None:
    ends = {"loss": (0.1, 0.2, 1.3), "below_loss": (-0.1, 0.2, 1.3)}
    for seed in range(3):
        below = {"train/below_loss": waterjar.Variable(("step", "repeat"), "a log density", direction="lower")}
        run = tmp_path / f"s/a{seed}"
        with waterjar.Recorder(run, {"method": "a"}, seeds=[seed], variables=below) as recorder:
            recorder.log(epoch=0, train={name: values[seed] for name, values in ends.items()})
    positive, free = ends_of(modelled(tmp_path / "s"))
    assert 0 < positive.numbers["a"].low < 0.2 and positive.numbers["a"].interval == "t_log"
    t = stats.t.interval(0.95, 2, np.mean(ends["below_loss"]), stats.sem(ends["below_loss"]))
    assert np.allclose((free.numbers["a"].low, free.numbers["a"].high), t) and free.numbers["a"].interval == "t"


def test_seeds_under_another_name_are_said_before_all_else(tmp_path: Path) -> None:
    for state in (1, 2, 3):
        config = {"method": "a", "random_state": state}
        with waterjar.Recorder(tmp_path / f"s/a{state}", config, seeds=[0], eval_sets=["test"]) as recorder:
            recorder.log(epoch=1, performance={"loss": 1.0 / state})
    found = said(modelled(tmp_path / "s"))
    assert next(iter(found)) == "seeds"
    assert found["seeds"][0].startswith("Runs differ in config 'random_state' alone, and count as learners of one seed")


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


def narrowing(folder: Path, width: int, families: tuple[str, ...] = ("geometry", "plasticity")) -> Model:
    """Six classes with a direction each at first, in all `width` of them at the end; another learner keeps them."""
    settings = {"geometry": {"n_t": 20}}
    waterjar.create_study(folder, {"analysis": {"families": list(families), "settings": settings}})
    labels = np.arange(6).repeat(6)
    for method, kept in (("narrow", width), ("wide", 12)):
        for seed in (1, 2, 3):
            rng = np.random.default_rng(seed)
            with waterjar.Recorder(folder / f"{method}-{seed}", {"method": method}, seeds=[seed], eval_sets=["a"]) as r:
                r.once("probe_samples", label=labels[None, None])
                for epoch in range(3):
                    centres = np.eye(12)[labels] * (1, 2, 3)[epoch]
                    features = centres + rng.normal(0, 0.6, (36, 12))
                    if epoch == 2:
                        features = features[:, :kept] @ rng.normal(size=(kept, 12))
                    both = {
                        "h1": features[None, None] + (epoch == 2) * rng.normal(0, 0.2, (36, 12)),
                        "h2": features[None, None],
                    }
                    r.log(epoch=epoch, snapshot={"features": both})
    return modelled(folder)


@pytest.mark.parametrize("families", [("geometry", "plasticity"), ("geometry",)])
def test_capacity_of_a_collapsed_layer_is_no_claim_about_classes(families: tuple[str, ...], tmp_path: Path) -> None:
    model = narrowing(tmp_path / "s", 2, families)
    (text,) = said(model)["geometry"]
    narrow, wide = text.split(": capacity then tells little about classes. ")
    assert narrow.startswith("In narrow, ") and "untangled" not in narrow
    assert narrow.endswith("in the last layer (h2) at the end in 3 of 3 seeds")
    assert ("few directions are left" in narrow) == (len(families) == 2)
    assert "untangled in the last layer (h2)" in wide and "narrow" not in wide
    section = next(section for section in compose(model).sections if section.name == "geometry")
    captions = [block.caption for block in section.blocks if isinstance(block, Chart | Table)]
    assert len(captions) == 2 and all("tells little about the classes of narrow:" in text for text in captions)


def test_a_sentence_says_last_layer_and_a_table_mean_over_layers(tmp_path: Path) -> None:
    model = narrowing(tmp_path / "s", 2, ("plasticity",))
    ranks = model.diagnosis.results["plasticity"]["effective_rank"].sel(cell="narrow").isel(snapshot=-1)
    inside = " ".join(said(model)["plasticity"])
    assert "in the last layer (h2)" in inside
    assert f"{ranks.sel(layer='h2').values.mean():.3f} in narrow" in inside
    section = next(section for section in compose(model).sections if section.name == "plasticity")
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert "mean over layers" in table.caption and f"{ranks.values.mean():.3f}" in str(table.rows)


def test_names_of_tasks_stand_in_two_rows_of_a_narrow_panel_and_never_on_each_other() -> None:
    def rows(tasks: int) -> list[list[float]]:
        _, notes = boundaries([(10.0 * i, f"digits{2 * i}{2 * i + 1}") for i in range(tasks)], 10.0 * tasks)
        return [[note["x"] for note in notes if note["yshift"] == shift] for shift in (0, 14)]

    assert rows(2) == [[0, 10], []]
    assert rows(5) == [[0, 20, 40], [10, 30]]
    many = rows(20)
    letters = 9 * 6.2 / 230 * 200
    assert all(b - a >= letters for own in many for a, b in itertools.pairwise(own)) and len(many[0]) >= 4


def test_lines_between_tasks_are_told_only_where_there_are_some(split: Model, losses: Model) -> None:
    def captions(model: Model) -> str:
        return " ".join(f"{one.caption} {caption_of(one)}" for one in charts_of(compose(model)))

    assert "Red dashed lines" in captions(split) and "Red dashed lines" not in captions(losses)


def test_half_way_by_hand() -> None:
    epochs = np.arange(5.0)
    assert _half_way(np.array([10.0, 9.0, 6.0, 5.0, 4.0]), epochs, 10.0, 4.0) == 2
    assert _half_way(np.array([0.0, np.nan, 3.0, 4.0, 4.0]), epochs, 0.0, 4.0) == 2
    assert np.isnan(_half_way(np.ones(5), epochs, 1.0, 1.0))


def test_the_summary_holds_the_first_in_the_callout_and_the_others_below(split: Model) -> None:
    summary = next(section for section in compose(split).sections if section.name == "summary")
    callout, note, items = summary.blocks
    assert isinstance(callout, Callout) and callout.text.startswith("replay forgets less")
    assert isinstance(items, Items) and items.items[0][0] == "Inside the network"
    assert isinstance(note, Text)


def reading(model: Model) -> Section:
    return next(section for section in compose(model).sections if section.name == "reading")


def test_how_to_read_names_tasks_baseline_and_signs(split: Model, losses: Model) -> None:
    words = dict(pair for block in reading(split).blocks if isinstance(block, Items) for pair in block.items)
    assert "digits01, digits23 and digits45" in words["What was trained"] and "3 seeds" in words["What was trained"]
    assert "first weights" not in words["What was trained"]
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


def test_dead_networks_are_told_with_their_seeds_and_their_end(tmp_path: Path) -> None:
    for seed, back in ((1, False), (2, False), (3, True)):
        with waterjar.Recorder(tmp_path / f"s{seed}", {"learner": "sgd"}, seeds=[seed], eval_sets=["a"]) as recorder:
            recorder.log(epoch=0, performance={"accuracy": {"a": 0.5}})
            recorder.event("dead_network", "nobody answers at epoch 0", level="warning", repeat=0)
            recorder.log(epoch=1, performance={"accuracy": {"a": 0.5}})
            if back:
                recorder.event("network_alive_again", "somebody answers at epoch 1", repeat=0)
            recorder.event("another", "nothing to do with it", level="error")
    assert said(modelled(tmp_path))["dead"] == [
        "In sgd, nobody answers at epoch 0 (seeds 1 and 2), and so to the end of its training.",
        "In sgd, nobody answers at epoch 0 (seed 3), until somebody answers at epoch 1.",
    ]


def test_nobody_died_nothing_is_said(losses: Model) -> None:
    assert "dead" not in said(losses)
