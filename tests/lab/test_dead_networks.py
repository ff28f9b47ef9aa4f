"""A network that is dead is an event of its run: once per episode, of the repeat concerned, and through any stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import waterjar
from lab.binary import tiny_binary
from tiny_lab import tiny
from waterjar.lab import checkpoint, einstellung, networks
from waterjar.lab.binary import repeat_group, train_binary
from waterjar.lab.config import Training
from waterjar.lab.data import ImageData
from waterjar.lab.dead_networks import ALIVE, DEAD, Signs, answers_alike, news, without_gradient
from waterjar.lab.evaluation import EVAL_SETS
from waterjar.lab.networks import Network
from waterjar.run.recorder import Recorder
from waterjar.view.report.leads import dead

pytestmark = pytest.mark.torch


def kill(network: Network) -> None:
    """Of a perceptron with one hidden layer: no unit is ever above 0 again, and no gradient brings one back."""
    with torch.no_grad():
        network.penultimate[1].weight.zero_()
        network.penultimate[1].bias.fill_(-1.0)


class TestWhatIsDead:
    def test_a_dead_network_answers_alike_however_it_is_batched(self) -> None:
        """Behind a hidden layer that is dead, sums are of the same numbers, in whatever order a batch takes them."""
        network = networks.build("mlp", n_classes=7, image_shape=(3, 8, 8), seed=0, hidden=(33, 65, 21))
        with torch.no_grad():
            network.hidden1[1].weight.zero_()
            network.hidden2[0].bias.normal_(0, 1, generator=torch.Generator().manual_seed(0))
        images = torch.randn(101, 3, 8, 8, generator=torch.Generator().manual_seed(1))
        for size in (1, 7, 32, 101):
            logits = torch.cat([network(part) for part in images.split(size)]).detach()
            assert answers_alike(logits.amin(0), logits.amax(0), 101)
        network.hidden1[1].weight.data[0, 0] = 1e-2
        logits = network(images).detach()
        assert not answers_alike(logits.amin(0), logits.amax(0), 101)

    @pytest.mark.parametrize(
        ("low", "high", "images", "alike"),
        [
            ([0.0, 0.0], [0.0, 0.0], 2, True),
            ([3.0, 1.0], [3.0, 1.0], 2, True),
            ([3.0, 1.0], [3.0, 1.0], 1, False),  # one image is like itself
            ([3.0, 1.0], [3.0, 1.001], 9, False),
            ([1e-9, 0.0], [2e-9, 0.0], 9, False),  # small is not equal
            ([np.inf, 0.0], [np.inf, 0.0], 9, False),
            ([np.nan, 0.0], [np.nan, 0.0], 9, False),
        ],
    )
    def test_by_hand(self, low: list[float], high: list[float], images: int, alike: bool) -> None:
        assert bool(answers_alike(low, high, images)) is alike

    def test_who_has_learned_everything_is_not_dead(self) -> None:
        assert without_gradient([0.0, 0.0, 1e-30, np.nan], [0.9, 1.0, 0.5, 0.5]).tolist() == [True, False, False, False]


class TestEpisodes:
    def test_each_is_told_once(self) -> None:
        """Against counting by eye: repeat 0 dies, lives, dies; repeat 1 dies on one more set; gradients go and come."""
        dead = [[0, 0], [1, 1], [1, 1], [0, 1], [1, 1]]
        other = [[0, 0], [0, 0], [0, 1], [0, 1], [0, 1]]
        known: dict[str, Any] = {}
        said = []
        for step, (a, b) in enumerate(zip(dead, other, strict=True)):
            signs = Signs({"a": np.array(a, bool), "b": np.array(b, bool)})
            said += [(step, event.repeat, event.kind, event.message) for event in news(signs, known, f"step {step}")]
        alike = "the network answers every image of {} alike at step {}".format
        assert said == [
            (1, 0, DEAD, alike("a", 1)),
            (1, 1, DEAD, alike("a", 1)),
            (2, 1, DEAD, alike("b", 2)),
            (3, 0, ALIVE, "the network tells images of a apart again at step 3"),
            (4, 0, DEAD, alike("a", 4)),
        ]

    def test_without_training_nothing_is_told_of_gradients(self) -> None:
        known: dict[str, Any] = {}
        told = [None, [True], None, [True], [False]]
        kinds = [
            [event.kind for event in news(Signs({}, None if one is None else np.array(one)), known, "here")]
            for one in told
        ]
        assert kinds == [[], [DEAD], [], [], [ALIVE]]

    def test_one_that_answers_alike_is_told_that_alone(self) -> None:
        """Its readout may still learn the shares of the labels; where those are even, its gradient happens to be 0."""
        signs = Signs({"a": np.array([True, False])}, np.array([True, True]))
        told = [(event.repeat, event.message.split()[0]) for event in news(signs, {}, "here")]
        assert told == [(0, "the"), (1, "every")]

    def test_an_episode_does_not_end_because_another_begins(self) -> None:
        known: dict[str, Any] = {}
        course = [(False, True), (True, True), (False, True), (True, False), (True, True)]
        told = [
            [(one.kind, one.message.split()[0]) for one in news(Signs({"a": np.array([a])}, np.array([b])), known, "x")]
            for a, b in course
        ]
        over = [(DEAD, "the"), (ALIVE, "gradients")]
        assert told == [[(DEAD, "every")], [(DEAD, "the")], [(ALIVE, "the")], over, []]

    def test_all_sets_are_not_listed(self) -> None:
        (notice,) = news(Signs({"a": np.array([True]), "b": np.array([True])}), {}, "the end")
        message = "the network answers every image of all 2 evaluation sets alike at the end"
        assert notice == (DEAD, message, "warning", 0)


def events(run: waterjar.Run, kind: str = DEAD) -> list[tuple[int, int, str, str]]:
    """(step, repeat, level, message)."""
    if "events" not in run.groups:
        return []
    rows = run["events"].to_dataframe()
    rows = rows[rows["kind"] == kind]
    return [tuple(row) for row in rows[["event_step", "event_repeat", "level", "message"]].itertuples(index=False)]


def trained(data: ImageData, folder: Path, every: float = 1e9) -> waterjar.Run:
    config = tiny(backbone="mlp", backbone_settings={"hidden": [6]}, training=Training(epochs_t1=2, epochs_t2=2))
    path = einstellung.train(
        config, data, folder / "run", checkpoints=folder / "c", device="cpu", checkpoint_seconds=every
    )
    return waterjar.open_run(path)


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Einstellung learner's network dies in the first batch of its third epoch."""
    seen = einstellung.Einstellung.train

    def train(self: einstellung.Einstellung, at: Any, stop: int) -> None:
        if (at.phase, at.epoch, at.batch) == (1, 0, 0):
            kill(self.learner.network)
        seen(self, at, stop)

    monkeypatch.setattr(einstellung.Einstellung, "train", train)


@pytest.mark.usefixtures("dying")
def test_the_report_says_it(glyphs: ImageData, tmp_path: Path) -> None:
    """What the laboratory writes is what the page reads, which may not import it."""
    trained(glyphs, tmp_path)
    study = waterjar.open_study(tmp_path)
    told = dead.sentences(SimpleNamespace(study=study, names=study.cell_names))  # type: ignore[arg-type]
    message = f"the network answers every image of all {len(EVAL_SETS)} evaluation sets alike at epoch 1 of t2"
    assert len(told) == 1 and told[0].endswith(f", {message} (seed 5), and so to the end of its training.")


def test_a_living_network_says_nothing(glyphs: ImageData, tmp_path: Path) -> None:
    assert events(trained(glyphs, tmp_path)) == []


@pytest.mark.usefixtures("dying")
def test_of_two_tasks(glyphs: ImageData, tmp_path: Path) -> None:
    sets = f"all {len(EVAL_SETS)} evaluation sets"
    run = trained(glyphs, tmp_path)
    assert events(run) == [
        (4, 0, "warning", f"the network answers every image of {sets} alike at epoch 1 of t2")
    ]  # fmt: skip
    assert events(run, ALIVE) == []
    level = run["performance"].loss.sel(eval_set="t1_all").values[4:, 0]
    assert np.isfinite(level).all()


@pytest.mark.usefixtures("dying")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_around_the_event_it_stands_there_once(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """`BaseException` is as good as kill -9 here: there is no checkpoint behind the event."""
    whole = trained(glyphs, tmp_path / "whole")
    tell = Recorder.event
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Recorder, "event", killing(tell, moment))
            with pytest.raises(Killed):
                trained(glyphs, tmp_path / "killed", every=0.0)
    run = trained(glyphs, tmp_path / "killed", every=0.0)
    assert len(run.attributes["provenance"]["sessions"]) == 3
    assert events(run) == events(whole) != []
    assert run.attributes["seal"]["content"] == whole.attributes["seal"]["content"]


class Killed(BaseException):
    pass


def killing(tell: Callable[..., None], moment: str) -> Callable[..., None]:
    def event(self: Recorder, kind: str, *args: Any, **options: Any) -> None:
        if moment == "after":
            tell(self, kind, *args, **options)
        raise Killed

    return event


@pytest.mark.usefixtures("dying")
def test_stopped_after_every_batch_it_is_told_once(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the checkpoint stands behind the event: the episode is remembered."""
    whole = trained(glyphs, tmp_path / "whole")
    save = checkpoint.save

    def stop(*arguments: Any) -> None:
        save(*arguments)
        if "position" in arguments[3]:
            raise Killed

    monkeypatch.setattr(checkpoint, "save", stop)
    stopped = 0
    while True:
        try:
            run = trained(glyphs, tmp_path / "stopped", every=0.0)
            break
        except Killed:
            stopped += 1
    assert stopped > 8
    assert events(run) == events(whole) != []
    assert run.attributes["seal"]["content"] == whole.attributes["seal"]["content"]


@pytest.mark.parametrize("engine", ["loop", "vmap"])
def test_of_binary_tasks_it_is_the_repeat_concerned(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    config = tiny_binary.tiny(repeats=3, network_settings={"hidden": [6]}, experts=False, recording={})
    first = repeat_group.first_network

    def partly(config: Any, shape: Any, seed: int) -> Network:
        found = first(config, shape, seed)
        if seed == config.repeat_seeds[1]:
            kill(found)
        return found

    monkeypatch.setattr(repeat_group, "first_network", partly)
    path = train_binary(config, glyphs, tmp_path / "run", checkpoints=tmp_path / "c", device="cpu", engine=engine)
    assert events(waterjar.open_run(path)) == [
        (0, 1, "warning", "the network answers every image of all 3 evaluation sets alike at epoch 0 of task_000")
    ]


def test_one_that_answers_the_same_whatever_it_is_asked_learns_nothing_by_reward(
    glyphs: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A softmax that is sure of one answer: by REINFORCE no gradient is left, half of the answers are wrong."""
    config = tiny_binary.tiny(learner="rl", repeats=2, experts=False, recording={}, tasks={"number": 1})
    first = repeat_group.first_network

    def sure(config: Any, shape: Any, seed: int) -> Network:
        found = first(config, shape, seed)
        if seed == config.repeat_seeds[0]:
            with torch.no_grad():
                found.head.bias.copy_(torch.tensor([1e4, -1e4]))
        return found

    monkeypatch.setattr(repeat_group, "first_network", sure)
    path = train_binary(config, glyphs, tmp_path / "run", checkpoints=tmp_path / "c", device="cpu", engine="loop")
    run = waterjar.open_run(path)
    assert events(run) == [(1, 0, "warning", "every gradient measured up to epoch 1 of task_000 was zero")]
    assert (run["train"].gradient_norm.values[:, 0] == 0).all() and (run["train"].gradient_norm.values[:, 1] > 0).all()
