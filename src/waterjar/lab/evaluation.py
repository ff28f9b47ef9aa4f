"""The evaluation sets of the experiment, and what a network does on them. No augmentation, evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from waterjar.lab.augmentation import normalise, to_float
from waterjar.lab.networks import Network
from waterjar.lab.shortcuts import Fill, Split, inject_where, mask_random_region
from waterjar.lab.tasks import Rows, TwoTasks
from waterjar.run.rows import masked
from waterjar.run.schema import TRAIN, missing

Treatment = Literal["clean", "planted", "patched", "masked", "random_mask"]
"""clean: as it is; planted: the shortcut where the sample carries it; patched: the shortcut in every image;
masked: the region of the shortcut replaced; random_mask: planted, and an equal area elsewhere replaced."""


@dataclass(frozen=True)
class EvaluationSet:
    """Some images, and what is done to them."""

    name: str
    task: int
    split: Split
    rows: Rows
    treatment: Treatment


EVAL_SETS: dict[str, int] = {
    "t1_all": 0,
    "t2_all_normal": 1,
    "t2_shortcut_normal": 1,
    "t2_shortcut_masked": 1,
    "t2_nonshortcut_normal": 1,
    "t2_validation": 1,
    "t2_shortcut_clean": 1,
    "t2_shortcut_random_mask": 1,
    "t2_nonshortcut_masked": 1,
    "t2_nonshortcut_patched": 1,
}
"""Name -> task, in the order in which they are recorded."""

ACCURACIES = ("accuracy", "macro_accuracy", "task_accuracy", "task_macro_accuracy")
"""What is recorded of each of them, beside its loss and accuracies per class."""

UNION = ("t2_shortcut_normal", "t2_nonshortcut_normal")
"""`t2_all_normal` is these two: its images are not shown to the network twice."""


def evaluation_sets(tasks: TwoTasks) -> list[EvaluationSet]:
    """The sets that are shown to the network."""
    labels = tasks.labels["test"]
    t1 = np.flatnonzero((labels >= 0) & (labels < tasks.n_t1))
    t2 = labels >= tasks.n_t1
    with_cue = np.flatnonzero(t2 & tasks.is_shortcut[labels])
    without = np.flatnonzero(t2 & ~tasks.is_shortcut[labels])
    return [
        EvaluationSet("t1_all", 0, "test", t1, "clean"),
        EvaluationSet("t2_shortcut_normal", 1, "test", with_cue, "planted"),
        EvaluationSet("t2_shortcut_masked", 1, "test", with_cue, "masked"),
        EvaluationSet("t2_nonshortcut_normal", 1, "test", without, "clean"),
        EvaluationSet("t2_validation", 1, "train", tasks.validation_rows, "planted"),
        EvaluationSet("t2_shortcut_clean", 1, "test", with_cue, "clean"),
        EvaluationSet("t2_shortcut_random_mask", 1, "test", with_cue, "random_mask"),
        EvaluationSet("t2_nonshortcut_masked", 1, "test", without, "masked"),
        EvaluationSet("t2_nonshortcut_patched", 1, "test", without, "patched"),
    ]


def evaluation_sizes(tasks: TwoTasks) -> dict[str, int]:
    """How many images every recorded set has; `t2_all_normal` has those of two."""
    found = {one.name: len(one.rows) for one in evaluation_sets(tasks)}
    found["t2_all_normal"] = sum(found[name] for name in UNION)
    return {name: found[name] for name in EVAL_SETS}


@dataclass(frozen=True)
class Normalisation:
    """Mean and deviation of the channels, as tensors."""

    mean: Tensor
    std: Tensor


def treated(tasks: TwoTasks, chosen: EvaluationSet, rows: Rows, scale: Normalisation, fill: Fill = "black") -> Tensor:
    """Images of a set as the network sees them, (batch, 3, height, width)."""
    data, split, shortcut = tasks.data, chosen.split, tasks.shortcut
    source, ids = (data.train_images, data.train_index) if split == "train" else (data.test_images, data.test_index)
    images, index = to_float(source, rows), np.asarray(ids)[rows]
    if chosen.treatment in ("planted", "random_mask"):
        images = inject_where(shortcut, images, index, split, tasks.carries[split][rows])
    if chosen.treatment == "patched":
        images = shortcut.inject(images, index, split)
    elif chosen.treatment == "masked":
        images = shortcut.mask(images, index, split, fill)
    elif chosen.treatment == "random_mask":
        images = mask_random_region(shortcut, images, index, split, fill)
    return normalise(images, scale.mean, scale.std)


@dataclass
class Tally:
    """Sums over a set: one number per class, so that sets can be added up."""

    count: NDArray[np.int64]
    right: NDArray[np.int64]
    right_in_task: NDArray[np.int64]
    loss: float
    broken: int = 0
    """Samples whose logits are not finite: an argmax over them means nothing."""
    logits: tuple[NDArray[np.float32], ...] = ()
    """(sample, class) of each batch, and its labels, where they are kept."""
    labels: tuple[Rows, ...] = ()
    lowest: NDArray[np.float32] | float = np.inf
    """(class,) of the logits."""
    highest: NDArray[np.float32] | float = -np.inf

    def __add__(self, other: Tally) -> Tally:
        """The tally of both sets together."""
        return Tally(
            self.count + other.count,
            self.right + other.right,
            self.right_in_task + other.right_in_task,
            self.loss + other.loss,
            self.broken + other.broken,
            self.logits + other.logits,
            self.labels + other.labels,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )


def evaluate(
    network: Network,
    tasks: TwoTasks,
    scale: Normalisation,
    device: str,
    fill: Fill,
    batch: int = 250,
    *,
    keep: bool = False,
    train: Sequence[EvaluationSet] = (),
) -> dict[str, Tally]:
    """Show every set to the network, in evaluation mode; the network is left as it was.

    `keep` the logits? Those of `train` are shown too, and are one set of that name.
    """
    was_training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            tallies = {
                chosen.name: _tally(network, tasks, chosen, scale, device, fill, batch, keep)
                for chosen in [*evaluation_sets(tasks), *train]
            }
    finally:
        network.train(was_training)
    tallies["t2_all_normal"] = tallies[UNION[0]] + tallies[UNION[1]]
    if train:
        first, *others = (tallies.pop(chosen.name) for chosen in train)
        tallies[TRAIN] = sum(others, start=first)
    return tallies


def batches_of(
    tasks: TwoTasks, chosen: EvaluationSet, scale: Normalisation, fill: Fill, batch: int
) -> Iterator[tuple[Tensor, Rows]]:
    """The images of a set, batch by batch, with their labels."""
    for start in range(0, len(chosen.rows), batch):
        rows = chosen.rows[start : start + batch]
        yield treated(tasks, chosen, rows, scale, fill), tasks.labels[chosen.split][rows]


def _tally(
    network: Network,
    tasks: TwoTasks,
    chosen: EvaluationSet,
    scale: Normalisation,
    device: str,
    fill: Fill,
    batch: int,
    keep: bool,
) -> Tally:
    n = tasks.n_classes
    none = ((np.empty((0, n), np.float32),), (np.empty(0, np.int64),)) if keep else ((), ())  # of a set without samples
    tally = Tally(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), 0.0, 0, *none)
    own = tasks.task_labels(chosen.task)
    for images, labels in batches_of(tasks, chosen, scale, fill, batch):
        inputs = images.to(device)
        if network.channels_last:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        logits = network(inputs).float().cpu()
        target = torch.from_numpy(labels)
        losses = torch.nn.functional.cross_entropy(logits, target, reduction="none")
        right = (logits.argmax(1) == target).numpy()
        in_task = (logits[:, own].argmax(1) + own.start == target).numpy()
        tally += Tally(
            np.bincount(labels, minlength=n),
            np.bincount(labels[right], minlength=n),
            np.bincount(labels[in_task], minlength=n),
            float(losses.double().sum()),
            int((~torch.isfinite(logits)).any(1).sum()),
            (logits.numpy(),) if keep else (),
            (labels,) if keep else (),
            logits.amin(0).numpy(),
            logits.amax(0).numpy(),
        )
    return tally


def performance(tallies: dict[str, Tally], eval_sets: Sequence[str], by_class: bool) -> dict[str, object]:
    """What the recorder logs; a set or class without samples is missing, never 0."""
    values: dict[str, dict[str, object]] = {}
    for name in eval_sets:
        tally = tallies[name]
        there = tally.count > 0
        absent = None if there.any() else missing("empty_set")
        unknown = absent or (missing("not_a_number") if tally.broken else None)
        total = int(tally.count.sum())
        for prefix, right in (("", tally.right), ("task_", tally.right_in_task)):
            accuracy = values.setdefault(f"{prefix}accuracy", {})
            macro = values.setdefault(f"{prefix}macro_accuracy", {})
            accuracy[name] = unknown or right.sum() / total
            macro[name] = unknown or (right[there] / tally.count[there]).mean()
        values.setdefault("loss", {})[name] = absent or tally.loss / total
    found: dict[str, object] = dict(values)
    if by_class:
        counts = np.stack([tallies[name].count for name in eval_sets])
        for prefix, field in (("", "right"), ("task_", "right_in_task")):
            right = np.stack([getattr(tallies[name], field) for name in eval_sets])
            broken = np.array([tallies[name].broken > 0 for name in eval_sets])
            shares = np.where(broken[:, None], np.nan, right / np.maximum(counts, 1))
            found[f"{prefix}class_accuracy"] = masked(shares[..., None], (counts == 0)[..., None], "empty_set")
    return found
