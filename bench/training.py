"""Training speed and memory of the lab, beside avalanche-lib, Mammoth and a plain loop: one core, batch 32.

Both sides get the same images, network, augmentation (crop, flip) and number of evaluated images, each in a process of
its own. A round is an epoch and an evaluation; rounds alternate, and a line gives the median of their ratios, in images
per CPU second. Our side is the trainer as it is: it also plants the shortcut, records the step and writes checkpoints.
For ResNet-18 a round is a few batches, on both sides without what happens once an epoch.

Peers do it their usual way: PIL and torchvision image by image, no worker processes, our network as it is (laid out
channels last, which is half as fast again for them, too). derpp differs in one respect: Mammoth augments anew what it
replays, we replay the view that was learned (see `_reservoir`).

avalanche-lib is taken where it is installed, Mammoth where MAMMOTH_PATH names a checkout, CIFAR-100 from the .npz that
WATERJAR_CIFAR100 names or ../shared/data; else it is glyphs. The rounds of `--quick` are too short for numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from waterjar.lab import data, loop, networks
from waterjar.lab.augmentation import CROP_FLIP
from waterjar.lab.config import Augmentation, RunConfig, Tasks, Training
from waterjar.lab.data import ImageData
from waterjar.lab.einstellung import Einstellung, run_id_of
from waterjar.lab.evaluation import Tally, evaluation_sets
from waterjar.lab.scenarios import Epoch
from waterjar.lab.tasks import arrange

BATCH, EVAL_BATCH, RATE = 32, 250, 0.01
CIFAR = Path(__file__).resolve().parents[1] / "../shared/data/cifar100_12super.npz"
CONFIG = RunConfig(
    scenario="scratch_t2",
    learner="sgd",
    learner_settings={"lr": RATE},
    backbone="small_cnn",
    backbone_settings={},
    data="bench",
    tasks=Tasks(t1_superclasses=(0,)),
    augmentation=Augmentation(t1=CROP_FLIP, t2=CROP_FLIP),
    training=Training(epochs_t2=1000, batch_size=BATCH),
)
REPLAY = {"alpha": 0.1, "beta": 0.5, "buffer_size": 500, "minibatch_size": BATCH}


class Job(NamedTuple):
    """What both sides of a race train; it goes to spawned processes."""

    cache: Path
    config: RunConfig


Contestant = Callable[[Job, Callable[[], None]], None]
"""Sets up, calls its second argument once when it is ready, and again after every round."""


def ours(job: Job, lap: Callable[[], None]) -> None:
    """The training loop, with a stop after each evaluation."""

    class Paced(Einstellung):
        def evaluate(self) -> dict[str, Tally]:
            tallies = super().evaluate()
            lap()
            return tallies

    config, images = job.config, data.from_cache(job.cache)
    with tempfile.TemporaryDirectory() as folder:
        loop.train(
            lambda _: Paced(config, images, device="cpu"),
            Path(folder, "run"),
            run_id=run_id_of(config, images.fingerprint),
            checkpoints=Path(folder, "checkpoints"),
            device="cpu",
        )


def our_batches(job: Job, lap: Callable[[], None]) -> None:
    """The inner loop alone."""
    made = Einstellung(job.config, data.from_cache(job.cache), device="cpu")
    made.learner.begin_task(1)
    for number in range(sys.maxsize):
        lap()
        epoch = Epoch(made.tasks, made.config, made.phases[0], number, made.scale)
        for place in range(len(epoch.bounds)):
            made.learner.observe(*epoch.batch(place)[:2])


class Given(NamedTuple):
    """A job as a peer gets it: images and labels (from 0) of T2, as many to test on as we look at, our network."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    network: networks.Network


def given_by(job: Job) -> Given:
    images = data.from_cache(job.cache)
    experiment = arrange(images, job.config)
    rows = experiment.train_rows["t2"]
    shown = sum(len(chosen.rows) for chosen in evaluation_sets(experiment))
    test = np.resize(np.flatnonzero(experiment.labels["test"] >= experiment.n_t1), shown)
    labels = [experiment.labels[split] - experiment.n_t1 for split in ("train", "test")]
    scale = data.channel_statistics(images.train_images, rows)
    network = networks.build(job.config.backbone, n_classes=experiment.n_classes, seed=0)
    return Given(images.train_images[rows], labels[0][rows], images.test_images[test], labels[1][test], *scale, network)


def avalanche_naive(job: Job, lap: Callable[[], None]) -> None:
    """nc_benchmark, Naive, metrics of accuracy and loss, no logger."""
    kind, transforms = torchvision().datasets.CIFAR100, torchvision().transforms
    parts = ("benchmarks", "evaluation.metrics", "training.plugins", "training.supervised")
    benchmarks, metrics, plugins, supervised = (importlib.import_module(f"avalanche.{part}") for part in parts)
    given = given_by(job)
    crop = transforms.RandomCrop(given.train.shape[1], padding=CROP_FLIP.padding)
    last = [transforms.ToTensor(), transforms.Normalize(given.mean, given.std)]
    benchmark = benchmarks.nc_benchmark(
        filled(kind, given.train, given.train_labels),
        filled(kind, given.test, given.test_labels),
        n_experiences=1,
        task_labels=False,
        train_transform=transforms.Compose([crop, transforms.RandomHorizontalFlip(), *last]),
        eval_transform=transforms.Compose(last),
    )
    measured = [made(epoch=True, experience=True) for made in (metrics.accuracy_metrics, metrics.loss_metrics)]
    strategy = supervised.Naive(
        model=given.network,
        optimizer=torch.optim.SGD(given.network.parameters(), lr=RATE),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=BATCH,
        eval_mb_size=EVAL_BATCH,
        evaluator=plugins.EvaluationPlugin(*measured, loggers=[]),
    )
    while True:
        lap()
        strategy.train(benchmark.train_stream, num_workers=0)
        strategy.eval(benchmark.test_stream, num_workers=0)


def mammoth(job: Job, lap: Callable[[], None]) -> None:
    """Its data loader, `train_single_epoch` and `evaluate`, on a data set and a backbone that we register."""
    if "MAMMOTH_PATH" not in os.environ:
        raise ImportError("MAMMOTH_PATH does not name a checkout of it")
    torchvision()
    clip: Any = types.ModuleType("open_clip")
    clip.create_model_and_transforms = lambda *_, **__: (None, None, None)
    sys.modules["open_clip"] = clip  # a data set of theirs would download weights while it is imported
    sys.path.insert(0, os.environ["MAMMOTH_PATH"])
    logging.disable(logging.CRITICAL)
    names = ("utils.notebooks", "utils.training", "datasets", "datasets.seq_cifar100", "backbone")
    notebooks, training, datasets, source, backbones = (importlib.import_module(name) for name in names)
    torch.set_num_threads(1)  # it has set 2
    given = given_by(job)
    backbone = backbones.MammothBackbone()
    backbone.network, backbone.forward = given.network, lambda x, returnt="out": given.network(x)

    def get_data_loaders(self: Any) -> Any:
        transforms = torchvision().transforms
        plain = transforms.Compose([transforms.ToTensor(), self.get_normalization_transform()])
        train = filled(source.MyCIFAR100, given.train, given.train_labels, self.TRANSFORM)
        train.not_aug_transform = transforms.ToTensor()
        return source.store_masked_loaders(train, filled(source.TCIFAR100, given.test, given.test_labels, plain), self)

    classes = int(given.train_labels.max()) + 1
    sizes = {"NAME": "waterjar-bench", "N_TASKS": 1, "N_CLASSES_PER_TASK": classes, "N_CLASSES": classes}
    kind = type("Bench", (source.SequentialCIFAR100,), {**sizes, "get_data_loaders": get_data_loaders})
    datasets.register_dataset("waterjar-bench")(kind)
    backbones.register_backbone("waterjar-network")(lambda: backbone)
    settings = {"backbone": "waterjar-network", "lr": RATE, "batch_size": BATCH, "n_epochs": 1, "num_workers": 0}
    settings |= {"non_verbose": 1, "base_path": tempfile.gettempdir()}
    settings |= REPLAY if job.config.learner == "derpp" else {}
    model, dataset = notebooks.load_runner(job.config.learner, "waterjar-bench", settings)
    model.net.train()
    loader, _ = dataset.get_data_loaders()
    model.meta_begin_task(dataset)
    with training.track_system_stats(device="cpu") as tracker:
        for epoch in range(sys.maxsize):
            lap()
            model.meta_begin_epoch(epoch, dataset)
            bar = training.tqdm(loader, disable=True)
            training.train_single_epoch(model, loader, model.args, epoch, bar, system_tracker=tracker)
            model.meta_end_epoch(epoch, dataset)
            dataset.evaluate(model, dataset)


def plain_loop(job: Job, lap: Callable[[], None]) -> None:
    """What one writes by hand: images in memory, augmented by the batch."""
    given = given_by(job)
    network, generator = given.network, torch.Generator().manual_seed(0)
    mean, std = (torch.tensor(values).view(-1, 1, 1) * 255 for values in (given.mean, given.std))
    train, labels = torch.from_numpy(given.train).permute(0, 3, 1, 2), torch.from_numpy(given.train_labels)
    optimiser = torch.optim.SGD(network.parameters(), lr=RATE)
    size, padding = train.shape[-1], CROP_FLIP.padding

    def augmented(images: Tensor) -> Tensor:
        count = len(images)
        padded = functional.pad(images, (padding,) * 4)
        top, left = torch.randint(2 * padding + 1, (2, count, 1), generator=generator) + torch.arange(size)
        left = torch.where(torch.rand(count, 1, generator=generator) < 0.5, left.flip(1), left)
        return padded[torch.arange(count)[:, None, None], :, top[:, :, None], left[:, None, :]].permute(0, 3, 1, 2)

    while True:
        lap()
        for part in torch.split(torch.randperm(len(labels), generator=generator), BATCH):
            loss = functional.cross_entropy(network((augmented(train[part]) - mean) / std), labels[part])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()


def torchvision() -> Any:
    """Torchvision, also beside a CPU build of torch that it was not compiled for."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):  # it looks these up when imported; nobody calls them here
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return importlib.import_module("torchvision")


def filled(kind: Any, images: NDArray[np.uint8], labels: NDArray[np.int64], transform: Any = None) -> Any:
    """A torchvision CIFAR data set of our images, without the download that its constructor starts."""
    made = kind.__new__(kind)
    made.data, made.targets, made.transform, made.target_transform = images, labels.tolist(), transform, None
    return made


def process(run: Contestant, job: Job, pipe: Connection) -> None:
    """What a contestant's process does: tell the CPU seconds of each round, then wait for the next one to be called."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # errors are still seen
    began = time.process_time()

    def lap() -> None:
        nonlocal began
        pipe.send(time.process_time() - began)
        if pipe.recv() == "stop":
            sys.exit()
        began = time.process_time()

    try:
        run(job, lap)
    except ImportError as error:
        pipe.send(str(error))


class Side:
    """A contestant at work, seen from outside."""

    def __init__(self, run: Contestant, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(name=run.__name__, target=process, args=(run, job, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def report(self) -> float | str:
        """When the round is over: its CPU seconds. At first, those of getting ready, or why it cannot start."""
        try:
            return self._pipe.recv()  # type: ignore[no-any-return]
        except EOFError:
            sys.exit(f"{self.process.name} broke off: its error stands above")

    def round(self) -> float:
        self._pipe.send("go")
        return float(self.report())

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # it is gone already
            self._pipe.send("stop")
        self.process.join()


def say(what: str, ratio: float, limit: float, *, floor: bool) -> bool:
    over = ratio >= limit
    bound, mark = "floor" if floor else "limit", "OVER" if over else "UNDER"
    print(f"{what}: ratio {ratio:.2f}, {bound} {limit:g}, {mark}{'' if over == floor else ' - missed'}", flush=True)
    return over == floor


def compare(what: str, peer: Contestant, job: Job, rounds: int, floor: float, mine: Contestant = ours) -> bool:
    """Race. A first round compiles and fills memories; it is left out."""
    what = f"{what} / {peer.__name__.replace('_', ' ')}"
    sides = [Side(mine, job), Side(peer, job)]
    try:
        ready = [side.report() for side in sides]
        if isinstance(ready[1], str):
            print(f"{what}: not measured ({ready[1]})", flush=True)
            return True
        told = [(sides[0].round(), sides[1].round()) for _ in range(rounds + 1)][1:]
    finally:
        for side in sides:
            side.stop()
    count = len(arrange(data.from_cache(job.cache), job.config).train_rows["t2"])
    speeds = " / ".join(f"{count / statistics.median(seconds):,.0f}" for seconds in zip(*told, strict=True))
    ratio = statistics.median(peer_seconds / our_seconds for our_seconds, peer_seconds in told)
    return say(f"{what}: {speeds} images per CPU second", ratio, floor, floor=True)


def mapped_and_private(side: Side, cache: Path) -> tuple[int, int]:
    """MB of a process: its share of the images (a page of n processes counts 1/n for each), and what is its alone."""
    share, private, of_images = 0, 0, False
    for line in Path(f"/proc/{side.process.pid}/smaps").read_text(encoding="utf-8").splitlines():
        key, _, rest = line.partition(":")
        if "-" in key:  # the addresses of the next mapping
            of_images = str(cache) in rest
        elif of_images and key == "Pss":
            share += int(rest.split()[0])
        elif not of_images and key == "Private_Dirty":
            private += int(rest.split()[0])
    return share // 1024, private // 1024


def memory(large: Job, small: Job) -> list[bool]:
    """Two workers on one cache; and one on a smaller cache, to see whether a worker copies what it maps."""
    sides: list[Side] = []
    seen: list[list[tuple[int, int]]] = []
    if not Path("/proc/self/smaps").exists():
        print("images in memory, 2 workers / 1: not measured (there is no /proc/self/smaps)")
        return []
    for job in (large, large, small):
        sides.append(Side(ours, job))
        sides[-1].report()
        sides[-1].round()
        seen.append([mapped_and_private(side, job.cache) for side in sides])
    for side in sides:
        side.stop()
    (alone, private), both, less = seen[0][0], sum(share for share, _ in seen[1]), seen[2][2]
    images, copied = alone - less[0], private - less[1]
    return [
        say(f"images in memory, 2 workers / 1: {both} / {alone} MB", both / alone, 1.1, floor=False),
        say(f"private memory / images, growth: {copied} / {images} MB", copied / images, 0.25, floor=False),
    ]


def part(images: ImageData, train: int, test: int) -> ImageData:
    """The first images of each class."""
    kept: dict[str, Any] = {}
    for split, count in (("train", train), ("test", test)):
        whole = [getattr(images, f"{split}_{name}") for name in ("images", "labels", "index")]
        rows = np.concatenate([np.flatnonzero(whole[1] == label)[:count] for label in np.unique(whole[1])])
        kept[split] = tuple(array[rows] for array in whole)
    kept |= {name: getattr(images, name) for name in ("name", "class_names", "superclass_names", "class_superclass")}
    return data.image_data(**kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few images, two rounds")
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes to come
    rounds, many = (2, 100) if parser.parse_args().quick else (5, 400)
    path = Path(os.environ.get("WATERJAR_CIFAR100", CIFAR))
    glyphs = {"alphabets": 12, "characters": 5, "train_per_class": many, "test_per_class": many // 5}
    images = data.load("npz", path=path) if path.exists() else data.load("glyphs", **glyphs)
    print(f"{'CIFAR-100' if path.exists() else 'glyphs'}, {rounds} rounds, load {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        parts = [part(images, *counts) for counts in ((many, 20), (80, 20), (9, 1))]
        whole, some, fewer, few = (data.to_cache(kept, folder) for kept in (images, *parts))
        del images, parts
        sgd, resnet = Job(some, CONFIG), Job(few, CONFIG.model_copy(update={"backbone": "resnet18"}))
        replay = {"learner": "derpp", "learner_settings": {"lr": RATE, **REPLAY}}
        derpp, both = Job(some, CONFIG.model_copy(update=replay)), CONFIG.model_copy(update={"tasks": Tasks()})
        fine = [
            compare("small CNN, sgd", avalanche_naive, sgd, rounds, 3.0),
            compare("small CNN, sgd", mammoth, sgd, rounds, 3.5),
            compare("small CNN, derpp", mammoth, derpp, rounds, 3.0),
            compare("ResNet-18, sgd", plain_loop, resnet, min(rounds, 4), 0.95, our_batches),
            *memory(Job(whole, both), Job(fewer, both)),
        ]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
