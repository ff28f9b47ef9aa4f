"""Who tells what apart: classes without replacement, images by class, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.binary.tiny_binary import tiny
from waterjar.errors import WaterjarError
from waterjar.lab.binary.class_tasks import draw_tasks, labels_of
from waterjar.lab.binary.probes import probe_labels, probe_rows
from waterjar.lab.data import ImageData, image_data

pytestmark = pytest.mark.torch


def data_of(train: list[int], test: list[int]) -> ImageData:
    """So many images of each class, each with a sample id of its own."""
    splits = []
    for counts in (train, test):
        labels = np.repeat(np.arange(len(counts)), counts)
        order = np.random.default_rng(0).permutation(len(labels))
        images = np.zeros((len(labels), 4, 4, 3), np.uint8)
        splits.append((images, labels[order], 100 + np.arange(len(labels))))
    owner = np.zeros(len(train), np.int64)
    names = [f"c{k}" for k in range(len(train))]
    train_split, test_split = splits
    return image_data(
        "made",
        train=train_split,
        test=test_split,
        class_names=names,
        superclass_names=["all"],
        class_superclass=owner,
    )


@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_no_class_twice_and_every_image_its_own_class(per_task: int, number: int, seed: int) -> None:
    data = data_of([3] * 13, [2] * 13)
    tasks = draw_tasks(data, tiny(tasks={"number": number, "classes_per_task": per_task}, repeats=4, seed=seed))
    for repeat in range(4):
        drawn = tasks.classes[repeat].ravel()
        assert len(set(drawn.tolist())) == number * per_task
        for rows, labels in ((tasks.train(repeat), data.train_labels), (tasks.test(repeat), data.test_labels)):
            for task in range(number):
                expected = tasks.classes[repeat, task][labels_of(rows.shape[1], per_task)]
                assert labels[rows[task]].tolist() == expected.tolist()
                assert len(set(rows[task].tolist())) == rows.shape[1]


def test_every_class_is_first_equally_often() -> None:
    data = data_of([1] * 4, [1] * 4)
    first = draw_tasks(data, tiny(tasks={"number": 2}, repeats=4000)).classes[:, 0, 0]
    counts = np.bincount(first, minlength=4)
    assert ((counts - 1000) ** 2 / 1000).sum() < 16.3  # chi-squared, 3 degrees of freedom, p = 0.001


def test_a_repeat_has_the_same_tasks_alone_and_among_others() -> None:
    data = data_of([3] * 8, [2] * 8)
    many, few = (draw_tasks(data, tiny(repeats=n)).classes for n in (6, 2))
    assert (many[:2] == few).all()
    assert not (many[0] == many[1]).all()


def test_a_choice_of_classes_and_samples() -> None:
    data = data_of([9, 5, 9, 7, 6, 9], [4, 2, 3, 4, 4, 4])
    config = tiny(tasks={"number": 2, "classes": [5, 0, 3, 2], "train_per_class": 6, "test_per_class": 3})
    tasks = draw_tasks(data, config)
    assert tasks.pool.tolist() == [0, 2, 3, 5]
    assert (tasks.n_train, tasks.n_test) == (12, 6)
    assert set(tasks.classes.ravel().tolist()) <= {0, 2, 3, 5}
    fewer = draw_tasks(
        data, config.model_copy(update={"tasks": config.tasks.model_copy(update={"train_per_class": 3})})
    )
    assert all(set(some) <= set(more) for some, more in zip(fewer.train_rows, tasks.train_rows, strict=True))
    assert tasks.names == ["task_000", "task_001"]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ({"number": 4}, "4 tasks of 2 classes need 8 classes, but made has 6 to draw from: expected at most 3 tasks"),
        ({"number": 2, "classes_per_task": 4}, "at most 1 tasks"),
        ({"number": 2, "classes": [0, 6]}, "class of made with images '6' is unknown"),
        ({"number": 2}, "have 5 .'c1'. to 9 train images.*train_per_class to 5"),
        ({"number": 2, "train_per_class": 5}, "have 2 .'c1'. to 4 test images"),
        ({"number": 2, "train_per_class": 6}, "class 'c1' has 5 train images: expected at most 5"),
        ({"number": 2, "train_per_class": 5, "test_per_class": 3}, "class 'c1' has 2 test images"),
    ],
)
def test_what_does_not_fit_the_data(tasks: dict[str, object], words: str) -> None:
    with pytest.raises(WaterjarError, match=words):
        draw_tasks(data_of([9, 5, 9, 7, 6, 9], [4, 2, 3, 4, 4, 4]), tiny(tasks=tasks))


def test_probe_samples_are_even_over_labels_and_stay() -> None:
    data = data_of([4] * 9, [6] * 9)
    config = tiny(tasks={"number": 2, "classes_per_task": 3}, recording={"features": ["penultimate"], "samples": 7})
    tasks = draw_tasks(data, config)
    rows, labels = probe_rows(tasks, config, 1), probe_labels(config)
    assert labels.tolist() == [0, 0, 0, 1, 1, 2, 2]
    for task in range(2):
        assert data.test_labels[rows[task]].tolist() == tasks.classes[1, task][labels].tolist()
        assert len(set(rows[task].tolist())) == 7
    only = tiny(**{**config.to_plain(), "recording": {"features": ["penultimate"], "samples": 7, "eval_tasks": [1]}})
    assert probe_rows(tasks, only, 1).tolist() == rows[1:].tolist()
    more = tiny(tasks={"number": 2}, recording={"features": ["penultimate"], "samples": 13})
    with pytest.raises(WaterjarError, match="recording.samples is 13, 7 of a class, but there are 6"):
        probe_rows(draw_tasks(data, more), more, 0)
