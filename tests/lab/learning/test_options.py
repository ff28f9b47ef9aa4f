"""Each option against its paper's rule, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from lab.learning.contexts import batch_of, logits_of, rows_of, surroundings
from waterjar.errors import WaterjarError
from waterjar.lab.learning import options
from waterjar.lab.learning.options import Context, Option, Position
from waterjar.lab.learning.options.continual_backprop import ContinualBackprop
from waterjar.lab.learning.options.ewc_on import EwcOn
from waterjar.lab.learning.options.redo import dormant

pytestmark = pytest.mark.torch
START = Position(0, 0, 0, 0)


def made(name: str, settings: Mapping[str, object], where: Context) -> Option:
    (option,) = options.make([(name, settings)], where).values()
    return option


def test_found_by_name_and_composed_once_each() -> None:
    assert options.names() == (
        "continual_backprop", "derpp", "ewc_on", "l2_init", "layer_norm", "redo", "replay", "shrink_and_perturb",
    )  # fmt: skip
    with pytest.raises(WaterjarError, match="each at most once"):
        options.make([("redo", {}), ("redo", {})], surroundings())
    assert options.make([("layer_norm", {})], surroundings()) == {}


def test_an_option_that_overrides_nothing_does_nothing() -> None:
    where = surroundings()
    before = where.weights.values.clone()
    option = Option()
    option.begin_task(START)
    option.after_update({}, START)
    option.offer(batch_of(np.zeros((2, 1), np.int64)), torch.zeros(2, 1, 2), START)
    gradients = torch.ones(2, 3)
    option.regularise(gradients)
    option.load_state(option.state())
    assert option.recall(3, START) == () and option.buffer_bytes == 0 and option.end_task(lambda: []) == 0
    assert torch.equal(before, where.weights.values) and bool((gradients == 1).all())


class TestL2Init:
    def test_its_gradient_is_that_of_the_penalty(self) -> None:
        where = surroundings()
        option = made("l2_init", {"strength": 0.3}, where)
        first = where.weights.values.clone()
        values = where.weights.values
        values += torch.randn(values.shape, generator=torch.Generator().manual_seed(0))
        found = torch.zeros_like(values)
        option.regularise(found)
        step = 1e-4  # central differences of λ |θ - θ_0|², in float64
        for repeat, column in ((0, 3), (1, 17)):
            ends = []
            for sign in (1, -1):
                moved = values[repeat].double().clone()
                moved[column] += sign * step
                ends.append(0.3 * float(((moved - first[repeat].double()) ** 2).sum()))
            assert float(found[repeat, column]) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)
        assert option.buffer_bytes == first.numel() * 4

    def test_it_remembers_its_beginning(self) -> None:
        option = made("l2_init", {}, surroundings())
        later = made("l2_init", {}, surroundings(first=5))
        later.load_state(option.state())
        assert torch.equal(later.state()["first"], option.state()["first"])


class TestShrinkAndPerturb:
    def test_between_tasks(self) -> None:
        where = surroundings(40)
        option = made("shrink_and_perturb", {"shrink": 0.25, "noise": 0.5}, where)
        before = where.weights.values.clone()
        option.begin_task(START)
        option.after_update({}, START)
        assert torch.equal(where.weights.values, before)
        option.begin_task(Position(1, 0, 0, 9))
        noise = (where.weights.values - 0.25 * before) / 0.5
        count = noise.numel()
        assert abs(float(noise.mean())) < 4 / count**0.5
        assert abs(float(noise.var()) - 1) < 4 * (2 / count) ** 0.5
        assert abs(float((noise[0] * noise[1]).mean())) < 4 / noise.shape[1] ** 0.5  # every repeat has its own

    def test_the_noise_hangs_on_seed_role_and_moment_alone(self) -> None:
        found: dict[tuple[str, int, int], Tensor] = {}
        for role, repeats, task in (("learner", 3, 1), ("learner", 1, 1), ("expert 1", 1, 1), ("learner", 1, 2)):
            where = surroundings(repeats, role=role)
            where.weights.values.zero_()
            made("shrink_and_perturb", {}, where).begin_task(Position(task, 0, 0, 5))
            found[role, repeats, task] = where.weights.values[0].clone()
        same = found["learner", 3, 1], found["learner", 1, 1]
        assert torch.equal(*same)
        assert not torch.equal(same[0], found["expert 1", 1, 1])
        assert not torch.equal(same[0], found["learner", 1, 2])

    def test_after_every_update(self) -> None:
        where = surroundings()
        option = made("shrink_and_perturb", {"shrink": 0.5, "noise": 0.0, "when": "step"}, where)
        before = where.weights.values.clone()
        option.begin_task(Position(1, 0, 0, 0))
        option.after_update({}, START)
        option.after_update({}, START)
        assert torch.equal(where.weights.values, before / 4)


def shown(option: Option, rows: np.ndarray, at: Position = START) -> None:
    option.offer(batch_of(rows), logits_of(rows), at)


class TestReplay:
    def test_when_and_how_much(self) -> None:
        option = made("replay", {"size": 6}, surroundings(1))
        shown(option, np.arange(3)[None])
        shown(option, np.array([[9]]), Position(0, 1, 0, 1))  # a later epoch: not offered
        assert option.recall(2, START) == ()  # not in the first task
        (later,) = option.recall(2, Position(1, 0, 0, 0))
        assert later.targets.shape == (1, 2) and later.weight is None
        (everything,) = option.recall(9, Position(1, 0, 0, 0))
        assert sorted(rows_of(everything.inputs)[0].tolist()) == [0, 1, 2]
        assert (everything.targets.numpy() == rows_of(everything.inputs) % 2).all()
        again = made("replay", {"size": 6}, surroundings(1))
        again.load_state(option.state())
        both = [rows_of(one.recall(2, Position(1, 4, 2, 8))[0].inputs) for one in (option, again)]
        assert (both[0] == both[1]).all()

    def test_always_and_every_epoch(self) -> None:
        option = made(
            "replay", {"size": 6, "samples": 2, "replay": "always", "offered": "every_epoch"}, surroundings(1)
        )
        assert option.recall(2, START) == ()  # nothing is there yet
        for epoch in range(3):
            shown(option, np.array([[epoch]]), Position(0, epoch, 0, epoch))
        (found,) = option.recall(9, Position(0, 3, 0, 3))
        assert found.targets.shape == (1, 2) and set(rows_of(found.inputs)[0].tolist()) < {0, 1, 2}

    def test_settings_that_were_added_are_not_written_out_where_they_are_not_used(self) -> None:
        """So runs of before keep their identity."""
        plain = {"size": 500, "samples": None, "replay": "later_tasks"}
        assert options.parse("replay", {}).model_dump(mode="json") == plain
        given = options.parse("replay", {"offered": "every_epoch"}).model_dump(mode="json")
        assert given == {**plain, "offered": "every_epoch"}


class TestDerpp:
    @pytest.mark.parametrize("rows", [True, False])
    def test_logits_and_labels_are_drawn_apart(self, rows: bool) -> None:
        option = made("derpp", {"size": 8, "samples": 4, "alpha": 0.3, "beta": 0.7}, surroundings(2, rows=rows))
        shown(option, np.arange(16).reshape(2, 8))
        assert option.recall(5, START) == ()
        same = []
        for batch in range(40):
            dark, plain = option.recall(5, Position(1, 0, batch, batch))
            assert (dark.weight, dark.distance, plain.weight, plain.distance) == (0.3, "mean", 0.7, None)
            assert torch.equal(dark.targets, logits_of(rows_of(dark.inputs)))
            assert (plain.targets.numpy() == rows_of(plain.inputs) % 2).all()
            same += [len(set(a) & set(b)) for a, b in zip(rows_of(dark.inputs), rows_of(plain.inputs), strict=True)]
        # two independent draws of 4 of 8: hypergeometric, 2 in common on average, variance 4/7
        assert abs(np.mean(same) - 2) < 4 * (4 / 7 / len(same)) ** 0.5

    def test_apart_is_for_batch_norm_or_on_request(self) -> None:
        assert not made("derpp", {}, surroundings()).apart
        assert made("derpp", {"forward": "separate"}, surroundings()).apart


class TestEwcOn:
    def test_a_learner_that_is_told_no_labels_has_only_the_exact_information(self) -> None:
        where = replace(surroundings(), objective="rl")
        with pytest.raises(WaterjarError, match="never told: expected fisher: exact"):
            made("ewc_on", {}, where)
        assert made("ewc_on", {"fisher": "exact"}, where).buffer_bytes == 0

    def test_its_gradient_is_that_of_the_penalty_for_every_repeat(self) -> None:
        where = surroundings()
        option = made("ewc_on", {"e_lambda": 3.0, "gamma": 0.5}, where)
        assert isinstance(option, EwcOn)
        shape, draw = where.weights.values.shape, torch.Generator().manual_seed(0)
        option.load_state(
            {"importance": torch.rand(shape, generator=draw), "anchor": torch.randn(shape, generator=draw)}
        )
        values = where.weights.values.double().requires_grad_()
        penalty = 0.5 * 3.0 * 0.5 * (option.importance * (values - option.anchor) ** 2).sum(1)
        torch.testing.assert_close(option.penalty(), penalty.detach().float())
        found = torch.zeros_like(where.weights.values)
        option.regularise(found)
        torch.testing.assert_close(found, torch.autograd.grad(penalty.sum(), values)[0].float())


class TestContinualBackprop:
    """Algorithm 1, for the first hidden layer (4 units, to 3), two repeats."""

    def activity(self, first: list[list[float]]) -> dict[str, Tensor]:
        return {"hidden1": torch.tensor(first), "penultimate": torch.ones(2, 3)}

    def test_by_hand(self) -> None:
        where = surroundings()
        option = made("continual_backprop", {"replacement_rate": 0.15, "maturity": 1, "decay": 0.75}, where)
        assert isinstance(option, ContinualBackprop)
        assert option.layers == ("hidden1", "penultimate")
        h = [[1.0, 0.1, 3.0, 2.0], [2.0, 2.0, 0.0, 1.0]]
        fan = where.weights.views["penultimate.0.weight"].abs().sum(1)
        worth = torch.tensor(h) * fan
        option.after_update(self.activity(h), START)
        torch.testing.assert_close(option.utility["hidden1"], 0.25 * worth)
        assert option.due["hidden1"].tolist() == [0.0, 0.0]  # nobody is older than 1
        option.after_update(self.activity(h), START)
        torch.testing.assert_close(option.utility["hidden1"], (0.75 * 0.25 + 0.25) * worth)
        assert option.due["hidden1"].tolist() == pytest.approx([0.6, 0.6])  # 0.15 of 4 units
        before = {name: view.clone() for name, view in where.weights.views.items()}
        option.after_update(self.activity(h), Position(0, 0, 2, 2))
        worst = worth.argmin(1).tolist()
        for repeat in range(2):
            incoming, was = where.weights.views["hidden1.1.weight"][repeat], before["hidden1.1.weight"][repeat]
            outgoing = where.weights.views["penultimate.0.weight"][repeat]
            for unit in range(4):
                renewed = unit == worst[repeat]
                assert torch.equal(incoming[unit], was[unit]) != renewed
                assert bool((outgoing[:, unit] == 0).all()) == renewed
                assert float(option.age["hidden1"][repeat, unit]) == (0 if renewed else 3)
                assert (float(option.utility["hidden1"][repeat, unit]) == 0) == renewed
            assert float(option.due["hidden1"][repeat]) == pytest.approx(0.2)
            assert float(option.due["penultimate"][repeat]) == pytest.approx(0.9)  # of 3 units: none is due
        momenta = where.weights.views_of(where.optimiser.memories["velocity"])
        assert bool((momenta["hidden1.1.weight"][0, worst[0]] == 0).all())
        assert float(momenta["hidden1.1.weight"][0].sum()) == 12.0  # of 16: one unit of 4 inputs

    def test_the_young_are_left_in_peace(self) -> None:
        where = surroundings()
        option = made("continual_backprop", {"replacement_rate": 1.0, "maturity": 3}, where)
        before = where.weights.values.clone()
        for _ in range(3):
            option.after_update(self.activity([[0.0] * 4] * 2), START)
        assert torch.equal(where.weights.values, before)

    def test_its_state(self) -> None:
        option, again = (made("continual_backprop", {"maturity": 0}, surroundings()) for _ in range(2))
        for _ in range(3):
            option.after_update(self.activity([[1.0, 2.0, 3.0, 4.0]] * 2), START)
        again.load_state(option.state())
        assert isinstance(option, ContinualBackprop) and isinstance(again, ContinualBackprop)
        assert torch.equal(again.utility["hidden1"], option.utility["hidden1"])
        assert torch.equal(again.due["penultimate"], option.due["penultimate"])
        assert again.buffer_bytes == 2 * (4 + 3) * 4 * 2 + 2 * 2 * 8


class TestRedo:
    def test_scores_by_hand(self) -> None:
        # means 1 and 2: thresholds 0.25 and 0.5
        found = dormant(torch.tensor([[0.25, 0.26, 2.49], [0.5, 0.51, 4.99]]), 0.25)
        assert found.tolist() == [[True, False, False], [True, False, False]]
        assert dormant(torch.zeros(1, 3), 0.0).all()

    def test_every_so_many_updates_dormant_units_begin_anew(self) -> None:
        where = surroundings(layer_norm=True)
        where.weights.views["hidden1.2.weight"].fill_(5.0)
        where.weights.views["hidden1.2.bias"].fill_(5.0)
        option = made("redo", {"threshold": 0.1, "every": 3}, where)
        activity = {
            "hidden1": torch.tensor([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]]),
            "penultimate": torch.ones(2, 3),
        }
        before = {name: view.clone() for name, view in where.weights.views.items()}
        for update in range(2):
            option.after_update(activity, Position(0, 0, update, update))
        assert all(torch.equal(where.weights.views[name], view) for name, view in before.items())
        option.after_update(activity, Position(0, 0, 2, 2))
        asleep = activity["hidden1"] == 0
        changed = (where.weights.views["hidden1.1.weight"] != before["hidden1.1.weight"]).any(2)
        assert torch.equal(changed, asleep)
        silent = (where.weights.views["penultimate.0.weight"] == 0).all(1)
        assert torch.equal(silent, asleep)
        assert torch.equal(where.weights.views["hidden1.2.weight"] == 1.0, asleep)
        assert torch.equal(where.weights.views["hidden1.2.bias"] == 0.0, asleep)
        assert torch.equal(where.weights.views["head.weight"], before["head.weight"])

    def test_renewed_weights_come_from_the_first_distribution(self) -> None:
        where = surroundings(300)
        option = made("redo", {"every": 1}, where)
        option.after_update({"hidden1": torch.zeros(300, 4), "penultimate": torch.ones(300, 3)}, START)
        fresh = where.weights.views["hidden1.1.weight"]
        assert abs(float(fresh.std()) - (2 / 4) ** 0.5) < 4 * (0.5 / (2 * fresh.numel())) ** 0.5  # He: 2 / fan in
        assert abs(float((fresh[:, 0] * fresh[:, 1]).mean())) < 4 * 0.5 / 1200**0.5  # units have their own
        assert bool((where.weights.views["hidden1.1.bias"] == 0).all())

    def test_the_others_do_not_change_what_a_unit_gets(self) -> None:
        found = []
        for silent in ([1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]):
            where = surroundings(1)
            option = made("redo", {"every": 1}, where)
            option.after_update({"hidden1": torch.tensor([silent]), "penultimate": torch.ones(1, 3)}, START)
            found.append(where.weights.views["hidden1.1.weight"][0, 1].clone())
        assert torch.equal(*found)
