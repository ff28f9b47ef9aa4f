"""Tasks, evaluation sets and batches: who is where, with which label, treated how."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tiny_lab import TASKS, tiny
from waterjar import WaterjarError
from waterjar.lab.augmentation import NONE
from waterjar.lab.config import Augmentation, Planting, Training
from waterjar.lab.data import ImageData, channel_statistics
from waterjar.lab.evaluation import (
    EVAL_SETS,
    EvaluationSet,
    Normalisation,
    Tally,
    evaluate,
    evaluation_sets,
    performance,
    treated,
)
from waterjar.lab.networks import build
from waterjar.lab.scenarios import Epoch, batch_bounds, phases, plain_batches
from waterjar.lab.tasks import arrange

pytestmark = pytest.mark.torch

PLAIN = Normalisation(torch.zeros(3), torch.ones(3))
MAGENTA = torch.tensor([1.0, 0.0, 1.0])[:, None, None]


def magenta_boxes(images: torch.Tensor, size: int = 4) -> list[list[tuple[int, int]]]:
    """Where squares of pure magenta stand, found by looking at every place: knows nothing of the shortcut."""
    pure = (images == MAGENTA).all(1)
    places = torch.nn.functional.unfold(pure[:, None].float(), size).sum(1) == size * size
    columns = images.shape[3] - size + 1
    return [[(int(p) // columns, int(p) % columns) for p in torch.nonzero(row).ravel()] for row in places]


def test_labels_are_t1_first_then_t2(glyphs: ImageData) -> None:
    experiment = arrange(glyphs, tiny())
    assert experiment.n_classes == 8
    assert experiment.n_t1 == 4
    for split, labels, fine in (
        ("train", experiment.labels["train"], glyphs.train_labels),
        ("test", experiment.labels["test"], glyphs.test_labels),
    ):
        superclass = glyphs.class_superclass[fine]
        assert ((labels < 4) == np.isin(superclass, TASKS.t1_superclasses)).all(), split
        assert (experiment.classes[labels] == fine).all()
    assert experiment.is_shortcut.tolist() == [False] * 6 + [True] * 2
    assert len(set(experiment.class_names)) == 8


def test_superclasses_may_come_in_any_order_and_leave_others_out(glyphs: ImageData) -> None:
    tasks = TASKS.model_copy(update={"t1_superclasses": (3,), "t2_superclasses": (2, 0), "shortcut_superclasses": (0,)})
    experiment = arrange(glyphs, tiny(tasks=tasks))
    assert glyphs.class_superclass[experiment.classes].tolist() == [3, 3, 2, 2, 0, 0]
    left_out = glyphs.class_superclass[glyphs.train_labels] == 1
    assert (experiment.labels["train"][left_out] == -1).all()
    assert not experiment.carries["train"][left_out].any()
    used = np.concatenate([*experiment.train_rows.values(), experiment.validation_rows])
    assert not left_out[used].any()


def test_train_and_validation_are_disjoint_and_stratified(glyphs: ImageData) -> None:
    experiment = arrange(glyphs, tiny())
    t1, t2, held = experiment.train_rows["t1"], experiment.train_rows["t2"], experiment.validation_rows
    assert len(set(t1) | set(t2) | set(held)) == len(t1) + len(t2) + len(held) == len(glyphs.train_labels)
    assert np.bincount(experiment.labels["train"][held], minlength=8).tolist() == [0] * 4 + [5] * 4
    other_seed = arrange(glyphs, tiny(seed=99))
    np.testing.assert_array_equal(other_seed.validation_rows, held)
    with pytest.raises(WaterjarError, match=r"has 20 train images: a validation share of 0.01"):
        arrange(glyphs, tiny(tasks=TASKS.model_copy(update={"validation": 0.01})))


@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_eval_sets_show_what_their_names_say(glyphs: ImageData, rate: float) -> None:
    experiment = arrange(glyphs, tiny(shortcut=Planting(rate=rate)))
    sets = {chosen.name: chosen for chosen in evaluation_sets(experiment)}
    assert {*sets, "t2_all_normal"} == set(EVAL_SETS)
    shown = {name: treated(experiment, chosen, chosen.rows, PLAIN) for name, chosen in sets.items()}
    found = {name: magenta_boxes(images) for name, images in shown.items()}
    for name in ("t1_all", "t2_nonshortcut_normal", "t2_shortcut_clean", "t2_shortcut_masked", "t2_nonshortcut_masked"):
        assert not any(found[name]), name
    for name in ("t2_shortcut_normal", "t2_shortcut_random_mask", "t2_nonshortcut_patched"):
        assert all(len(boxes) == 1 for boxes in found[name]), name
    held = experiment.validation_rows
    assert [len(boxes) for boxes in found["t2_validation"]] == experiment.carries["train"][held].astype(int).tolist()
    share = np.mean([len(boxes) for boxes in found["t2_validation"]])
    assert share == pytest.approx(rate / 2, abs=0.2)  # half of T2 are shortcut classes

    # the mask lies where the patch was, black, and nowhere else
    clean, masked, random = (shown[f"t2_shortcut_{kind}"] for kind in ("clean", "masked", "random_mask"))
    for i, ((top, left),) in enumerate(found["t2_shortcut_normal"]):
        assert (masked[i, :, top : top + 4, left : left + 4] == 0).all()
        outside = torch.ones(32, 32, dtype=torch.bool)
        outside[top : top + 4, left : left + 4] = False
        assert torch.equal(masked[i][:, outside], clean[i][:, outside])
        assert torch.equal(shown["t2_shortcut_normal"][i][:, outside], clean[i][:, outside])
        changed = (random[i] != shown["t2_shortcut_normal"][i]).any(0)
        assert not changed[top : top + 4, left : left + 4].any()
        rows, columns = torch.nonzero(changed, as_tuple=True)
        assert len(rows) <= 16
        assert (random[i][:, changed] == 0).all()
        assert rows.max() - rows.min() < 4 and columns.max() - columns.min() < 4


def test_training_images_are_patched_after_augmentation_at_the_rate(glyphs: ImageData) -> None:
    config = tiny(shortcut=Planting(rate=0.5))
    experiment = arrange(glyphs, config)
    t1, t2 = phases(experiment, config)
    for phase, expected in ((t1, 0), (t2, int(experiment.carries["train"][t2.rows].sum()))):
        for number in range(2):
            epoch = Epoch(experiment, config, phase, number, PLAIN)
            batches = [epoch.batch(i) for i in range(len(epoch.bounds))]
            images = torch.cat([batch.inputs for batch in batches])
            whole = [len(boxes) for boxes in magenta_boxes(images)]
            assert sum(whole) == expected == sum(batch.patched for batch in batches)
            assert all(count <= 1 for count in whole)  # never cut by the crop
    assert 0 < expected < len(t2.rows) / 2


def test_augmentation_differs_every_epoch_and_is_reproducible(glyphs: ImageData) -> None:
    config = tiny()
    experiment = arrange(glyphs, config)
    phase = phases(experiment, config)[1]
    first, again, second = (Epoch(experiment, config, phase, number, PLAIN).batch(0) for number in (0, 0, 1))
    assert torch.equal(first.inputs, again.inputs)
    assert not torch.equal(first.labels, second.labels) or not torch.equal(first.inputs, second.inputs)
    # the same sample in two epochs looks different
    one = tiny(training=Training(epochs_t1=1, epochs_t2=1, batch_size=10_000))
    epochs = [Epoch(experiment, one, phase, number, PLAIN) for number in (0, 1)]
    images = [epoch.batch(0).inputs[np.argsort(epoch._index)] for epoch in epochs]
    assert ((images[0] != images[1]).flatten(1).any(1)).float().mean() > 0.95


def test_scratch_and_sequential_see_the_same_t2_batches(glyphs: ImageData) -> None:
    batches = {}
    for scenario in ("scratch_t2", "sequential"):
        config = tiny(scenario)
        experiment = arrange(glyphs, config)
        phase = phases(experiment, config)[-1]
        batches[scenario] = [
            Epoch(experiment, config, phase, number, PLAIN).batch(i) for number in range(2) for i in range(4)
        ]
    for left, right in zip(batches["scratch_t2"], batches["sequential"], strict=True):
        assert torch.equal(left.inputs, right.inputs)
        assert torch.equal(left.labels, right.labels)
    other = tiny("scratch_t2", seed=6)
    experiment = arrange(glyphs, other)
    different = Epoch(experiment, other, phases(experiment, other)[0], 0, PLAIN).batch(0)
    assert not torch.equal(different.inputs, batches["scratch_t2"][0].inputs)


def test_interleaved_sees_every_image_once_and_t2_as_scratch_does(glyphs: ImageData) -> None:
    joint, scratch = tiny("interleaved"), tiny("scratch_t2")
    experiment = arrange(glyphs, joint)
    (mixed,), (alone,) = phases(experiment, joint), phases(experiment, scratch)
    epoch = Epoch(experiment, joint, mixed, 0, PLAIN)
    seen = {}
    for i, (start, stop) in enumerate(epoch.bounds):
        batch = epoch.batch(i)
        for row, image, label in zip(epoch._rows[start:stop], batch.inputs, batch.labels, strict=True):
            seen[int(row)] = (image, int(label))
    assert set(seen) == set(np.concatenate([experiment.train_rows["t1"], experiment.train_rows["t2"]]).tolist())
    epoch = Epoch(experiment, scratch, alone, 0, PLAIN)
    for i, (start, stop) in enumerate(epoch.bounds):
        for row, image in zip(epoch._rows[start:stop], epoch.batch(i).inputs, strict=True):
            assert torch.equal(seen[int(row)][0], image)


def test_without_augmentation_a_batch_is_the_data_itself(glyphs: ImageData) -> None:
    """Mistake 1: a cache with task-local indices mixed T1 and T2 images."""
    config = tiny(augmentation=Augmentation(t1=NONE, t2=NONE), shortcut=Planting(rate=0.0))
    experiment = arrange(glyphs, config)
    mean, std = channel_statistics(glyphs.train_images)
    scale = Normalisation(torch.tensor(mean), torch.tensor(std))
    for phase in phases(experiment, config):
        epoch = Epoch(experiment, config, phase, 0, scale)
        for i, (start, stop) in enumerate(epoch.bounds):
            batch = epoch.batch(i)
            rows = epoch._rows[start:stop]
            expected = (
                glyphs.train_images[rows].transpose(0, 3, 1, 2) / 255 - np.reshape(mean, (3, 1, 1))
            ) / np.reshape(std, (3, 1, 1))
            np.testing.assert_allclose(batch.inputs.numpy(), expected, atol=1e-5)
            np.testing.assert_array_equal(experiment.classes[batch.labels.numpy()], glyphs.train_labels[rows])
        for (inputs, labels), (start, stop) in zip(
            plain_batches(experiment, phase, scale, 8, "cpu"), batch_bounds(len(phase.rows), 8), strict=True
        ):
            np.testing.assert_array_equal(labels.numpy(), experiment.labels["train"][phase.rows[start:stop]])
            assert inputs.shape[0] == stop - start


def test_evaluation_equals_counting_by_hand(glyphs: ImageData) -> None:
    experiment = arrange(glyphs, tiny())
    network = build("small_cnn", n_classes=8, seed=1, width=4)
    tallies = evaluate(network, experiment, PLAIN, "cpu", "black", batch=7)
    found = performance(tallies, list(EVAL_SETS), by_class=True)
    network.eval()
    for chosen in evaluation_sets(experiment):
        with torch.no_grad():
            logits = network(treated(experiment, chosen, chosen.rows, PLAIN)).double()
        labels = torch.from_numpy(experiment.labels[chosen.split][chosen.rows])
        right = logits.argmax(1) == labels
        own = slice(0, 4) if chosen.task == 0 else slice(4, 8)
        within = logits[:, own].argmax(1) + own.start == labels
        per_class = [right[labels == c].double().mean() for c in labels.unique()]
        assert found["accuracy"][chosen.name] == pytest.approx(right.double().mean().item())
        assert found["macro_accuracy"][chosen.name] == pytest.approx(torch.stack(per_class).mean().item())
        assert found["task_accuracy"][chosen.name] == pytest.approx(within.double().mean().item())
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
        assert found["loss"][chosen.name] == pytest.approx(loss, rel=1e-5)
        values = found["class_accuracy"].values[list(EVAL_SETS).index(chosen.name), :, 0]
        np.testing.assert_allclose(values[labels.unique()], torch.stack(per_class))
        assert np.isnan(np.delete(values, labels.unique())).all()
    both = ["t2_shortcut_normal", "t2_nonshortcut_normal"]
    sizes = [tallies[t].count.sum() for t in both]
    mixed = np.average([found["accuracy"][t] for t in both], weights=sizes)
    assert found["accuracy"]["t2_all_normal"] == pytest.approx(mixed)


def test_an_empty_set_is_missing_not_zero() -> None:
    """Mistake 10."""
    none = Tally(np.zeros(3, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64), 0.0)
    found = performance({"x": none}, ["x"], by_class=True)
    for name in ("accuracy", "macro_accuracy", "task_accuracy", "task_macro_accuracy", "loss"):
        assert found[name]["x"].reason == "empty_set"
    assert np.isnan(found["class_accuracy"].values).all()


def test_evaluation_is_in_eval_mode_and_leaves_the_network_as_it_was(glyphs: ImageData) -> None:
    """Mistake 12: batch norm in train mode would use, and move, its statistics."""
    experiment = arrange(glyphs, tiny())
    network = build("small_cnn", n_classes=8, seed=1, width=4, norm="batch")
    network.train()
    network(torch.randn(16, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    before = {key: value.clone() for key, value in network.state_dict().items()}
    generator = torch.get_rng_state()
    small, large = (evaluate(network, experiment, PLAIN, "cpu", "black", batch=b) for b in (3, 1000))
    assert network.training
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())
    assert torch.equal(generator, torch.get_rng_state())
    for name in small:  # in train mode the result would hang on the batch
        np.testing.assert_array_equal(small[name].right, large[name].right)
        assert small[name].loss == pytest.approx(large[name].loss, rel=1e-5)


def test_batch_bounds_cover_everything_once() -> None:
    for count in range(1, 70):
        for size in (1, 2, 8, 32):
            bounds = batch_bounds(count, size)
            assert [i for start, stop in bounds for i in range(start, stop)] == list(range(count))
            if count > 1 and size > 1:
                assert min(stop - start for start, stop in bounds) >= 2


def test_mask_fill_is_a_setting(glyphs: ImageData) -> None:
    experiment = arrange(glyphs, tiny())
    chosen = next(c for c in evaluation_sets(experiment) if c.name == "t2_shortcut_masked")
    assert isinstance(chosen, EvaluationSet)
    shown = {
        fill: treated(experiment, chosen, chosen.rows, PLAIN, fill) for fill in ("black", "mean", "noise", "inpaint")
    }
    for left, right in (("black", "mean"), ("mean", "noise"), ("noise", "inpaint")):
        assert not torch.equal(shown[left], shown[right])
