"""Against avalanche-lib 0.6 (`make oracle`), where the two define the same thing, on a linear model in float64.

| theirs | ours |
|---|---|
| Naive | sgd, fresh_optimiser=False (they keep the momentum from task to task unless told otherwise) |
| EWCPlugin, online, decay_factor | ewc_on, penalty="mammoth", fisher="batch", gamma=decay_factor |
| EWCPlugin, separate | the same, as long as only one task has ended: after that they keep an anchor per task |
| ReplayPlugin with a reservoir | er, replay="later_tasks", in the first step of a task: they fill the memory after it |
| ReservoirSamplingBuffer | Memory, in distribution |
| DER | derpp, on one and the same memory, drawn whole: they draw once for both terms, and store later logits |

Their importances hang on the batch size, ours do with fisher="batch" alone.
"""

import contextlib
import importlib
import importlib.util
import random
import sys
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from torch.utils.data import DataLoader, TensorDataset

from lab.learners import linear_softmax as linear
from lab.learning.contexts import batch_of, surroundings
from waterjar.lab import learners
from waterjar.lab.learning.fisher import diagonal_fisher
from waterjar.lab.learning.memory import Memory

pytestmark = [pytest.mark.oracle, pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

BATCH = 6


@pytest.fixture(scope="module")
def avalanche():
    """Avalanche, or skip. Its torchvision looks up two operators that a CPU build of torch may lack."""
    for name in ("avalanche", "torchvision"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    with warnings.catch_warnings(), foreign():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("torchvision")
        except RuntimeError:
            for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[name]
            for name in ("nms", "qnms"):
                torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
        for part in ("benchmarks", "training.plugins", "training.storage_policy", "training.supervised"):
            importlib.import_module(f"avalanche.{part}")
    return sys.modules["avalanche"]


@contextlib.contextmanager
def foreign():
    """Their calls draw from the global generators, which no test here may move."""
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    torch.manual_seed(0)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])  # noqa: NPY002


def experiences(avalanche, *counts):
    """Tasks of so many examples each, two classes a task; and their batches, in their order, for our learners."""
    labels = torch.cat([torch.arange(count) % 2 + 2 * task for task, count in enumerate(counts)])
    inputs, _ = linear.batch(len(labels), n_classes=2 * len(counts))
    data = TensorDataset(inputs, labels)
    data.targets = labels.tolist()
    with foreign():
        benchmark = avalanche.benchmarks.nc_benchmark(
            data, data, n_experiences=len(counts), task_labels=False, fixed_class_order=list(range(2 * len(counts)))
        )
        stream = list(benchmark.train_stream)
        batches = [[(x, y) for x, y, _ in DataLoader(task.dataset, batch_size=BATCH, shuffle=False)] for task in stream]
    assert [sum(len(y) for _, y in task) for task in batches] == list(counts)
    return stream, batches


def strategy(avalanche, kind, network, *, lr=0.1, plugins=(), **settings):
    descent = {name: settings.pop(name) for name in ("momentum", "weight_decay", "nesterov") if name in settings}
    return getattr(avalanche.training.supervised, kind)(
        model=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=lr, **descent),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=BATCH,
        plugins=list(plugins),
        evaluator=avalanche.training.plugins.EvaluationPlugin(loggers=[]),
        **settings,
    )


def train_theirs(theirs, experience, **settings):
    with foreign():
        theirs.train(experience, shuffle=False, **settings)


def train_ours(learner, task, batches, epochs=1):
    learner.begin_task(task)
    for _ in range(epochs):
        for batch in batches:
            learner.observe(*batch)
    learner.end_task(batches)


def assert_same_weights(network, other, atol=1e-12):
    assert not np.allclose(linear.matrix(network), linear.matrix(linear.network(n_classes=network.n_classes)))
    np.testing.assert_allclose(linear.matrix(network), linear.matrix(other), atol=atol, rtol=0)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "descent", [{}, {"momentum": 0.9, "weight_decay": 0.01}, {"momentum": 0.5, "nesterov": True}], ids=str
)
def test_naive_is_sgd(avalanche, descent, fresh):
    stream, batches = experiences(avalanche, 15, 12)
    theirs = strategy(avalanche, "Naive", linear.network(), train_epochs=2, **descent)
    learner = learners.make("sgd", linear.network(), seed=0, lr=0.1, fresh_optimiser=fresh, **descent)
    for task, experience in enumerate(stream):
        train_theirs(theirs, experience, reset_optimizer_state=fresh)
        train_ours(learner, task, batches[task], epochs=2)
        assert_same_weights(learner.network, theirs.model)


def test_importances_are_the_batch_fisher(avalanche):
    stream, batches = experiences(avalanche, 15)
    plugin = avalanche.training.plugins.EWCPlugin(ewc_lambda=1.0)
    theirs = strategy(avalanche, "Naive", linear.network(n_classes=2), plugins=[plugin])
    train_theirs(theirs, stream[0])
    found = [data.data.numpy() for data in plugin.importances[0].values()]
    for importance, fisher in zip(found, diagonal_fisher(theirs.model, batches[0], "batch"), strict=True):
        assert fisher.abs().min() > 0
        # They add up in float32 whatever the model is in.
        np.testing.assert_allclose(importance, fisher, rtol=1e-5)
    for variant in ("empirical", "exact", "label_weighted"):
        others = diagonal_fisher(theirs.model, batches[0], variant)
        assert not np.allclose(found[0], others[0], rtol=0.05), variant


@pytest.mark.parametrize("decay", [1.0, 0.6])
def test_online_ewc(avalanche, decay):
    stream, batches = experiences(avalanche, 15, 12, 18)
    plugin = avalanche.training.plugins.EWCPlugin(ewc_lambda=4.0, mode="online", decay_factor=decay)
    theirs = strategy(avalanche, "Naive", linear.network(n_classes=6), plugins=[plugin])
    settings = {"e_lambda": 4.0, "gamma": decay, "penalty": "mammoth", "fisher": "batch", "lr": 0.1}
    learner = learners.make("ewc_on", linear.network(n_classes=6), seed=0, **settings)
    for task, experience in enumerate(stream):
        train_theirs(theirs, experience)
        train_ours(learner, task, batches[task])
        assert_same_weights(learner.network, theirs.model, atol=1e-7)
        importance = learner._learner.weights.views_of(learner.options[0].importance).values()
        for mine, data in zip(importance, plugin.importances[task].values(), strict=True):
            np.testing.assert_allclose(mine[0], data.data, rtol=1e-5)
    without = learners.make("sgd", linear.network(n_classes=6), seed=0, lr=0.1)
    for task in range(3):
        train_ours(without, task, batches[task])
    assert not np.allclose(linear.matrix(learner.network), linear.matrix(without.network), atol=1e-3)


def test_separate_ewc_is_the_same_until_a_second_task_has_ended(avalanche):
    stream, batches = experiences(avalanche, 15, 12, 18)
    plugin = avalanche.training.plugins.EWCPlugin(ewc_lambda=4.0, mode="separate")
    theirs = strategy(avalanche, "Naive", linear.network(n_classes=6), plugins=[plugin])
    settings = {"e_lambda": 4.0, "penalty": "mammoth", "fisher": "batch", "lr": 0.1}
    learner = learners.make("ewc_on", linear.network(n_classes=6), seed=0, **settings)
    gaps = []
    for task, experience in enumerate(stream):
        train_theirs(theirs, experience)
        train_ours(learner, task, batches[task])
        gaps.append(np.abs(linear.matrix(learner.network) - linear.matrix(theirs.model)).max())
    assert max(gaps[:2]) < 1e-7
    assert gaps[2] > 1e-4


def test_replay_step_is_the_mean_over_batch_and_memory(avalanche):
    stream, batches = experiences(avalanche, 12, BATCH)
    policy = avalanche.training.storage_policy.ReservoirSamplingBuffer(12)
    plugin = avalanche.training.plugins.ReplayPlugin(mem_size=12, batch_size_mem=12, storage_policy=policy)
    theirs = strategy(avalanche, "Naive", linear.network(), plugins=[plugin])
    settings = {"buffer_size": 12, "minibatch_size": 12, "replay": "later_tasks", "lr": 0.1}
    learner = learners.make("er", linear.network(), seed=0, **settings)
    for task, experience in enumerate(stream):
        train_theirs(theirs, experience)
        train_ours(learner, task, batches[task])
        assert_same_weights(learner.network, theirs.model)


@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 0.0), (0.0, 0.4), (0.7, 0.4)])
def test_der_step_on_the_same_memory(avalanche, alpha, beta):
    stream, batches = experiences(avalanche, 12, BATCH)
    theirs = strategy(
        avalanche, "DER", linear.network(), mem_size=12, batch_size_mem=12, alpha=alpha, beta=beta, lr=0.5
    )
    settings = {"alpha": alpha, "beta": beta, "buffer_size": 12, "minibatch_size": 12, "lr": 0.5}
    learner = learners.make("derpp", linear.network(), seed=0, replay="later_tasks", **settings)
    train_theirs(theirs, stream[0])
    train_ours(learner, 0, batches[0])
    assert_same_weights(learner.network, theirs.model)
    # Right after the task the distance to the logits that they store then is 0: shrink the weights, so that it is not.
    memory = learner.options[0].memory
    with torch.no_grad():
        memory.logits[0] = learner.network(memory.inputs[0].double()).float()
        for weights in (learner.network.head.weight, theirs.model.head.weight):
            weights.mul_(0.5)
    train_theirs(theirs, stream[1])
    train_ours(learner, 1, batches[1])
    assert_same_weights(learner.network, theirs.model, atol=1e-6)  # our memory is float32


def test_reservoirs_keep_the_same_share_of_the_past(avalanche):
    first, second, capacity, trials = 20, 40, 15, 400
    chances = stats.hypergeom(first + second, first, capacity)
    policy = avalanche.training.storage_policy.ReservoirSamplingBuffer
    kept = {"theirs": [], "ours": []}
    stream, batches = experiences(avalanche, first, second)
    with foreign():
        for _ in range(trials):
            buffer = policy(capacity)
            for task in stream:
                buffer.update_from_dataset(task.dataset)
            kept["theirs"].append(sum(int(label) < 2 for label in buffer.buffer.targets))
    for seed in range(trials):
        memory = Memory(capacity, surroundings(1, first=seed))
        for labels in (labels for parts in batches for _, labels in parts):
            memory.offer(batch_of(labels[None].numpy()), labels)
        kept["ours"].append(int((memory.rows < 2).sum()))
    # Bins of 5 or more expected: up to 3, 4, 5, 6, 7 and more.
    edges = [3, 4, 5, 6]
    share = np.diff([0.0, *chances.cdf(edges), 1.0])
    for name, values in kept.items():
        counts = np.bincount(np.searchsorted(edges, values), minlength=len(share))
        assert stats.chisquare(counts, trials * share).pvalue > 0.001, (name, counts, trials * share)
