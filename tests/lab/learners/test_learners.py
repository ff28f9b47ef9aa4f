"""What all learners have in common: exact resuming, SGD where they reduce to it, validated settings."""

import functools
import io
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lab.learners import linear_softmax as linear
from waterjar.errors import WaterjarError
from waterjar.lab import learners, networks

pytestmark = pytest.mark.torch

N_STEPS = 6  # a task
SETTINGS = {
    "derpp": {"buffer_size": 20, "minibatch_size": 5},
    "er": {"buffer_size": 20},
    "ewc_on": {"e_lambda": 50.0, "gamma": 0.9},
    "joint": {},
    "sgd": {},
}


def batch(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(8, 3, 32, 32, generator=generator), torch.randint(5, (8,), generator=generator)


def fresh(name, network="small_cnn", weights_of=0, **settings):
    """A learner of seed 0, around a network with the weights of some seed."""
    options = {"small_cnn": {"width": 4, "norm": "batch"}, "mlp": {"hidden": (8,)}}[network]
    built = networks.build(network, n_classes=5, seed=weights_of, **options)
    common = {"lr": 0.05, "momentum": 0.9, "weight_decay": 1e-3}
    return learners.make(name, built, seed=0, **(common | SETTINGS[name] | settings))


def train(learner, start=0, stop=2 * N_STEPS):
    """Two tasks; `start` and `stop` count steps, so that a part of the training can be run."""
    told = []
    for step in range(start, stop):
        if step % N_STEPS == 0:
            learner.begin_task(step // N_STEPS)
        told.append(learner.observe(*batch(step)))
        if step % N_STEPS == N_STEPS - 1:
            learner.end_task([batch(step - 1), batch(step)])
    return told


def weights(learner):
    return torch.cat([value.flatten().double() for value in learner.network.state_dict().values()])


@functools.cache
def trained(name):
    """What a learner of seed 0 tells, its last weights and its memory's size: the same whenever it is asked for."""
    learner = fresh(name)
    return train(learner), weights(learner), learner.buffer_bytes


def saved(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def same(a, b):
    return torch.equal(a.loss, b.loss) and torch.equal(a.correct, b.correct) and a.replayed == b.replayed


def test_the_five_are_found_by_their_module_names():
    assert learners.names() == ("derpp", "er", "ewc_on", "joint", "sgd") == tuple(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
@hypothesis_settings(max_examples=4, deadline=None)
@given(at=st.integers(1, 2 * N_STEPS - 1))
def test_resumed_anywhere_it_goes_on_with_the_same_bits(name, at):
    told, expected, buffer_bytes = trained(name)
    first = fresh(name)
    train(first, stop=at)
    state = saved(first.state())
    resumed = fresh(name, weights_of=77)  # to be overwritten
    resumed.load_state(state)
    rest = train(resumed, start=at)
    assert torch.equal(expected, weights(resumed))
    assert all(same(a, b) for a, b in zip(told[at:], rest, strict=True))
    assert resumed.buffer_bytes == buffer_bytes


@pytest.mark.parametrize("name", SETTINGS)
def test_a_state_is_a_copy(name):
    learner = fresh(name)
    train(learner, stop=N_STEPS)
    state = learner.state()
    before = saved(state)
    train(learner, start=N_STEPS)
    again = fresh(name, weights_of=77)
    again.load_state(state)
    other = fresh(name, weights_of=78)
    other.load_state(before)
    assert torch.equal(weights(again), weights(other)) and not torch.equal(weights(again), weights(learner))
    train(again, start=N_STEPS)
    assert torch.equal(weights(again), weights(learner))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_trained_learner_can_be_set_back_to_its_start(name):
    learner = fresh(name)
    start = learner.state()
    train(learner)
    once = weights(learner)
    learner.load_state(start)
    assert not learner.state()["optimiser"]["velocity"].any()
    train(learner)
    assert torch.equal(weights(learner), once)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_seed_gives_the_same_bits(name):
    again = fresh(name)
    train(again)
    assert torch.equal(trained(name)[1], weights(again))


@pytest.mark.parametrize("name", ["er", "derpp"])
def test_another_seed_replays_otherwise(name):
    built = networks.build("small_cnn", n_classes=5, seed=0, width=4, norm="batch")
    two = learners.make(name, built, seed=1, lr=0.05, momentum=0.9, weight_decay=1e-3, **SETTINGS[name])
    train(two)
    assert not torch.equal(trained(name)[1], weights(two))


@pytest.mark.parametrize(
    ("name", "settings", "steps"),
    [
        ("joint", {}, 2 * N_STEPS),
        ("er", {}, 1),
        ("derpp", {}, 1),
        ("er", {"replay": "later_tasks"}, N_STEPS),
        ("derpp", {"replay": "later_tasks"}, N_STEPS),
        ("ewc_on", {}, N_STEPS),
        ("ewc_on", {"e_lambda": 0.0}, 2 * N_STEPS),
    ],
)
def test_where_a_learner_reduces_to_sgd_it_is_sgd_to_the_bit(name, settings, steps):
    one, sgd = fresh(name, **settings), fresh("sgd")
    told, told_by_sgd = train(one, stop=steps), train(sgd, stop=steps)
    assert torch.equal(weights(one), weights(sgd))
    assert all(same(a, b) for a, b in zip(told, told_by_sgd, strict=True))


@pytest.mark.parametrize(("name", "steps"), [("er", 2), ("derpp", 2), ("ewc_on", N_STEPS + 2)])
def test_and_nowhere_else(name, steps):
    one, sgd = fresh(name), fresh("sgd")
    train(one, stop=steps)
    train(sgd, stop=steps)
    assert not torch.equal(weights(one), weights(sgd))


@pytest.mark.parametrize("name", ["er", "derpp"])
def test_later_tasks_replay_from_the_second_task_on(name):
    told = train(fresh(name, replay="later_tasks"))
    assert [bool(each.replayed) for each in told] == [False] * N_STEPS + [True] * N_STEPS


def test_only_joint_wants_all_tasks_at_once():
    assert {name: fresh(name).wants for name in SETTINGS} == {
        name: "joint" if name == "joint" else "sequence" for name in SETTINGS
    }
    assert [fresh(name).name for name in SETTINGS] == list(SETTINGS)


def test_sgd_by_hand():
    """Momentum, Nesterov, weight decay, clipping: torch's documented update, in numpy, for three steps."""
    lr, momentum, decay, clip = 0.2, 0.9, 0.01, 0.5
    learner = learners.make(
        "sgd",
        linear.network(),
        seed=0,
        lr=lr,
        momentum=momentum,
        nesterov=True,
        weight_decay=decay,
        clip_norm=clip,
    )
    theta, velocity = linear.matrix(learner.network), None
    learner.begin_task(0)
    clipped = 0
    for step in range(3):
        data = linear.batch(6, seed=step)
        gradient = linear.cross_entropy_gradient(theta, *data)
        norm = np.linalg.norm(gradient)
        clipped += norm > clip
        gradient = gradient * min(1.0, clip / norm) + decay * theta
        velocity = gradient if velocity is None else momentum * velocity + gradient
        told = learner.observe(*data)
        assert float(told.gradient_norm) == pytest.approx(norm, rel=1e-12)
        theta = theta - lr * (gradient + momentum * velocity)
        np.testing.assert_allclose(linear.matrix(learner.network), theta, rtol=1e-10)
    assert clipped


@pytest.mark.parametrize("keep", [False, True])
def test_momentum_ends_with_its_task_unless_asked(keep):
    one, other = fresh("sgd", fresh_optimiser=not keep), fresh("sgd", fresh_optimiser=False)
    train(one, stop=N_STEPS + 1)
    train(other, stop=N_STEPS)
    if not keep:
        state = other.state()
        state["optimiser"]["velocity"].zero_()
        other.load_state(state)
    train(other, start=N_STEPS, stop=N_STEPS + 1)
    assert torch.equal(weights(one), weights(other))


def test_a_schedule_sets_the_rate_and_the_state_knows_it():
    one = fresh("sgd")
    train(one, stop=3)
    one.learning_rate = 0.001
    other = fresh("sgd", weights_of=5)
    other.load_state(saved(one.state()))
    assert other.learning_rate == 0.001
    train(one, start=3)
    train(other, start=3)
    assert torch.equal(weights(one), weights(other))
    with pytest.raises(WaterjarError, match="above 0"):
        one.learning_rate = 0.0


@pytest.mark.parametrize("name", SETTINGS)
def test_an_evaluation_in_between_changes_nothing(name):
    other = fresh(name)
    for step in range(0, 2 * N_STEPS, 2):
        train(other, start=step, stop=step + 2)
        other.network.eval()
        with torch.no_grad():
            other.network.forward_features(batch(99)[0])
    assert torch.equal(trained(name)[1], weights(other))


@pytest.mark.parametrize("name", SETTINGS)
def test_told_are_the_loss_and_the_hits_of_the_batch_before_the_update(name):
    learner = fresh(name, network="mlp")
    train(learner, stop=N_STEPS + 1)
    x, y = batch(50)
    with torch.no_grad():
        logits = learner.network(x).double().numpy()
    told = learner.observe(x, y)
    shifted = logits - logits.max(1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(1)) - shifted[np.arange(8), y.numpy()]
    assert float(told.loss) == pytest.approx(losses.mean(), rel=1e-5)
    assert int(told.correct) == np.sum(logits.argmax(1) == y.numpy())
    assert not told.loss.requires_grad and told.loss.shape == told.correct.shape == told.gradient_norm.shape == ()


@pytest.mark.parametrize("name", SETTINGS)
def test_bfloat16_trains_nearly_alike_and_keeps_float32_weights(name):
    full, short = fresh(name, network="mlp"), fresh(name, network="mlp", precision="bfloat16")
    told, told_short = train(full), train(short)
    assert all(parameter.dtype == torch.float32 for parameter in short.network.parameters())
    assert all(math.isfinite(float(each.loss)) and each.loss.dtype == torch.float32 for each in told_short)
    assert not torch.equal(weights(full), weights(short))
    assert float(told[0].loss) == pytest.approx(float(told_short[0].loss), rel=0.03)


def test_a_state_is_refused_by_another_learner():
    state = fresh("sgd").state()
    with pytest.raises(WaterjarError, match="the name sgd"):
        fresh("er").load_state(state)
    with pytest.raises(WaterjarError, match="the settings"):
        fresh("sgd", lr=0.1).load_state(state)
    with pytest.raises(WaterjarError, match="another network"):
        fresh("sgd", network="mlp").load_state(state)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("derp", {}, "did you mean 'derpp'"),
        ("derpp", {"alhpa": 1.0}, "did you mean 'alpha'"),
        ("derpp", {"alpha": -0.1}, "alpha.*expected at least 0"),
        ("derpp", {"beta": math.nan}, "beta.*finite"),
        ("er", {"buffer_size": 0}, "buffer_size.*expected at least 1"),
        ("er", {"minibatch_size": 0}, "minibatch_size"),
        ("er", {"buffer_dtype": "int8"}, "buffer_dtype"),
        ("ewc_on", {"gamma": 1.1}, "gamma.*expected at most 1"),
        ("ewc_on", {"e_lambda": -1}, "e_lambda"),
        ("ewc_on", {"fisher": "true"}, "fisher"),
        ("sgd", {"lr": 0.0}, "lr.*expected more than 0"),
        ("sgd", {"momentum": 1.0}, "momentum.*less than 1"),
        ("sgd", {"weight_decay": -1e-4}, "weight_decay"),
        ("sgd", {"clip_norm": 0.0}, "clip_norm"),
        ("sgd", {"nesterov": True}, "nesterov needs a momentum"),
        ("joint", {"buffer_size": 5}, "buffer_size"),
        ("ewc_on", {"preset": "ewc_einstellung"}, "did you mean 'ewc_on_einstellung'"),
        ("sgd", {"precision": "float16"}, "did you mean 'bfloat16'"),
    ],
)
def test_wrong_settings_are_one_clear_error(name, settings, words):
    with pytest.raises(WaterjarError, match=words):
        learners.make(name, linear.network(), seed=0, **settings)


def test_a_batch_before_the_first_task_is_an_error():
    with pytest.raises(WaterjarError, match="before `begin_task`"):
        fresh("sgd").observe(*batch(0))


def test_a_parameter_out_of_reach_is_an_error():
    network = networks.build("mlp", n_classes=5, seed=0, hidden=(8,))
    network.register_parameter("idle", torch.nn.Parameter(torch.zeros(1)))
    network.penultimate.append(torch.nn.Identity())  # not written out: autograd finds it
    learner = learners.make("sgd", network, seed=0)
    learner.begin_task(0)
    with pytest.raises(WaterjarError, match="do not hang on idle"):
        learner.observe(*batch(0))
