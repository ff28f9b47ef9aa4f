"""Watching a plain torch loop: right numbers, and training that does not notice."""

from __future__ import annotations

import copy
import random
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar as wj
from waterjar.errors import WaterjarError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def network() -> Any:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3))


def data(seed: int = 0, count: int = 40) -> tuple[Any, Any]:
    drawn = torch.Generator().manual_seed(seed)
    return torch.randn(count, 4, generator=drawn), torch.randint(0, 3, (count,), generator=drawn)


def loader(seed: int = 0, **how: Any) -> Any:
    return DataLoader(TensorDataset(*data(seed)), **{"batch_size": 16, "shuffle": True, **how})


def trained(*, is_watched: bool) -> dict[str, Any]:
    """Weights, buffers and what all generators give, after a little training that is watched, or is not."""
    model, own = network(), torch.Generator().manual_seed(5)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - what must not move
    batches = loader(2, generator=own)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    watch = wj.watch(model, ["0", "2"], {"a": loader(), "b": loader(1, generator=own)}) if is_watched else None
    for epoch in range(6):
        for x, y in batches:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
        if watch is not None:
            gradients = [parameter.grad.clone() for parameter in model.parameters()]
            modes = [module.training for module in model.modules()]
            watch()
            assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), gradients, strict=True))
            assert modes == [module.training for module in model.modules()]
            assert not any(module._forward_hooks for module in model.modules())
        if epoch == 2:  # modes of parts may differ
            model.eval()
            model[1].train()
    drawn = {"torch": torch.rand(3), "own": torch.rand(3, generator=own), "python": torch.tensor(random.random())}
    return dict(model.state_dict()) | drawn | {"numpy": torch.tensor(np.random.rand())}  # noqa: NPY002


def test_training_does_not_notice() -> None:
    without, with_it = trained(is_watched=False), trained(is_watched=True)
    assert without.keys() == with_it.keys()
    for name in without:
        assert torch.equal(without[name], with_it[name]), name


class Counting(nn.Module):
    """Counts its passes in a buffer, in eval mode too, and puts a new buffer in the place of another."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)
        self.register_buffer("passes", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        self.passes += 1
        out = self.inner(x)
        self.last = out.mean(0).detach()
        return out


def test_buffers_are_put_back() -> None:
    model = Counting()
    before, same = copy.deepcopy(model.state_dict()), model.last
    wj.watch(model, ["inner"], {"a": data()})()
    assert model.last is same
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_numbers_by_hand() -> None:
    model, (x, y) = network(), data()
    nn.functional.cross_entropy(model(x), y).backward()
    found = wj.watch(model, {"0": torch.relu, "2": None}, {"a": (x, y), "b": loader(1)}, samples=25)()
    model.eval()
    with torch.no_grad():
        for name, (inputs, labels) in {"a": (x, y), "b": data(1)}.items():
            logits = model(inputs).double().numpy()
            right = np.mean(logits.argmax(1) == labels.numpy())
            log_shares = logits - np.log(np.exp(logits).sum(1, keepdims=True))
            lost = -log_shares[np.arange(40), labels.numpy()].mean()
            assert found["performance"]["accuracy"][name] == pytest.approx(right)
            assert found["performance"]["loss"][name] == pytest.approx(lost, rel=1e-5)
        expected = np.maximum(model[0](x[:25]).numpy(), 0)
    np.testing.assert_allclose(found["snapshot"]["features"]["0"]["a"][0], expected, rtol=1e-6)
    norm = np.sqrt(sum(float((p.grad.double() ** 2).sum()) for p in model.parameters()))
    assert found["train"]["gradient_norm"] == pytest.approx(norm, rel=1e-6)
    assert found["snapshot"]["weights"].keys() == dict(model.named_parameters()).keys()


def test_the_dict_does_not_change_with_the_network() -> None:
    model = network()
    found = wj.watch(model, ["0"], {"a": data()})()
    before = found["snapshot"]["weights"]["0.weight"].clone()
    with torch.no_grad():
        model[0].weight.add_(1)
    assert torch.equal(found["snapshot"]["weights"]["0.weight"], before)


def test_probe_samples_are_the_same_at_every_look() -> None:
    watch = wj.watch(network(), ["0"], {"a": loader()})
    first, second = (watch()["snapshot"]["features"]["0"]["a"] for _ in range(2))
    assert torch.equal(first, second)


def test_a_run_is_recorded_with_sizes_and_labels(tmp_path: Path) -> None:
    model, sets = network(), {"a": data(0), "b": loader(1)}
    watch = wj.watch(model, ["2"], sets, samples=10)
    with watch.recorder(tmp_path / "r", {"method": "x"}, seeds=[3], tasks=["a", "b"], eval_sets={"a": 0, "b": 1}) as r:
        r.log(epoch=0, train_task="a", **watch())
        nn.functional.cross_entropy(model(data()[0]), data()[1]).backward()
        r.log(epoch=1, train_task="a", **watch(snapshot=False))
    run = wj.open_run(tmp_path / "r")
    assert run.attributes["eval_sizes"] == {"a": 40, "b": 40} and run.attributes["probe_sets"] == ["a", "b"]
    assert run["features/2"].features.shape == (1, 1, 2, 10, 6)
    np.testing.assert_array_equal(run["probe_samples"].label.values[0, 0], data()[1][:10])
    assert run["train"].step.values.tolist() == [1] and float(run["train"].gradient_norm.values[0, 0]) > 0
    assert wj.verify(run.path).state == "sealed"


def test_what_it_measures_can_be_diagnosed(tmp_path: Path) -> None:
    model, sets = network(), {"a": data(0), "b": data(1)}
    watch = wj.watch(model, ["2"], sets)
    with watch.recorder(tmp_path / "r", {}, tasks=["a", "b"], eval_sets={"a": 0, "b": 1}, classes=["p", "q", "r"]) as r:
        for epoch, task in ((0, "a"), (1, "a"), (1, "b")):
            r.log(epoch=epoch, train_task=task, **watch())
    found = wj.measure(tmp_path / "r")
    assert {"continual", "plasticity", "geometry", "drift"} <= set(found.results)


def test_what_the_loop_knows_stands_beside_what_is_seen(tmp_path: Path) -> None:
    model, (x, y) = network(), data()
    watch = wj.watch(model, ["2"], {"a": (x, y)}, samples=10)
    with watch.recorder(tmp_path / "r") as recorder:
        for epoch in range(3):
            own = {"loss": nn.functional.cross_entropy(model(x), y), "accuracy": 0.5}
            told = {"monitor": {"rate": 0.1}, "performance": {"macro_accuracy": {"a": 0.25}}, "resources": None}
            shot = {"features": {"own": {"a": torch.zeros(1, 10, 3)}}} if epoch else False
            recorder.log(epoch=epoch, **watch(train=own, snapshot=shot, **told))
            own["loss"].backward()
    run = wj.open_run(tmp_path / "r")
    assert set(run["train"].data_vars) >= {"loss", "accuracy", "gradient_norm"}
    assert np.isnan(run["train"].gradient_norm.values[0, 0]) and (run["train"].gradient_norm.values[1:, 0] > 0).all()
    assert np.isfinite(run["train"].loss.values).all() and (run["monitor"].rate.values == 0.1).all()
    assert {"accuracy", "loss", "macro_accuracy"} <= set(run["performance"].data_vars)
    assert {"features/own", "features/2", "weights"} <= set(run.groups)


def test_what_is_seen_is_not_replaced_and_a_second_train_fails_at_once(tmp_path: Path) -> None:
    watch = wj.watch(network(), ["2"], {"a": data()})
    for told in ({"performance": {"loss": {"a": 1.0}}}, {"performance": {"loss": 1.0}}, {"snapshot": {"weights": 0}}):
        with pytest.raises(WaterjarError, match="what watch records itself: expected another name"):
            watch(**told)  # type: ignore[arg-type]
    with pytest.raises(WaterjarError, match="watch: group 'trian' is unknown: did you mean 'train'"):
        watch(trian={"loss": 1.0})
    with pytest.raises(WaterjarError, match="train=3: expected a mapping"):
        watch(train=3)  # type: ignore[arg-type]
    with watch.recorder(tmp_path / "r") as recorder:
        with pytest.raises(TypeError, match="train"):  # before anything is trained, and not at the second epoch
            recorder.log(epoch=0, train={"loss": 1.0}, **watch())
        recorder.log(epoch=0, **watch())
    assert "train" not in wj.open_run(tmp_path / "r").groups


def test_a_probe_of_its_own() -> None:
    x, y = data(7, 12)
    watch = wj.watch(network(), ["0"], {"a": data(), "b": data(1)}, probe=(x, y))
    assert list(watch.probe_samples["label"]) == ["a"] and torch.equal(watch.probe_samples["label"]["a"][0], y)
    watch = wj.watch(network(), ["0"], {"a": data(), "b": data(1)}, probe={"b": (x, y)})
    assert list(watch()["snapshot"]["features"]["0"]) == ["b"]
    with pytest.raises(WaterjarError, match="did you mean 'aa'"):
        wj.watch(network(), ["0"], {"aa": data()}, probe={"ab": (x, y)})


class Gives(nn.Module):
    def __init__(self, form: Callable[[Any], Any]) -> None:
        super().__init__()
        self.inner, self.form = nn.Linear(4, 3), form

    def forward(self, x: Any) -> Any:
        return self.form(self.inner(x))


@pytest.mark.parametrize(
    ("form", "forward"),
    [
        (lambda out: (out, None), lambda model, x, _: model(x)[0]),
        (lambda out: {"logits": out}, lambda model, x, _: model(x)["logits"]),
        (namedtuple("Out", "logits"), lambda model, x, _: model(x).logits),
    ],
)
def test_outputs_that_are_no_tensor(form: Any, forward: Any) -> None:
    model = Gives(form)
    with pytest.raises(WaterjarError, match=r"gives a \w+.*expected logits: pass forward=lambda model, x, name: model"):
        wj.watch(model, (), {"a": data()})()
    right = (model.inner(data()[0]).argmax(1) == data()[1]).double().mean()
    assert wj.watch(model, (), {"a": data()}, forward=forward)()["performance"]["accuracy"]["a"] == float(right)


def test_tokens_are_counted_one_by_one() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5))
    x, y = torch.arange(12).reshape(3, 4) % 5, (torch.arange(12).reshape(3, 4) + 1) % 5
    watch = wj.watch(model, ["1"], {"text": [(x, y)]})
    found = watch()
    logits = model(x).detach()
    assert found["performance"]["accuracy"]["text"] == float((logits.argmax(-1) == y).double().mean())
    expected = nn.functional.cross_entropy(logits.reshape(-1, 5), y.reshape(-1))
    assert found["performance"]["loss"]["text"] == pytest.approx(float(expected), rel=1e-6)
    assert watch.eval_sizes == {} and found["snapshot"]["features"]["1"]["text"].shape == (1, 12, 5)


def test_a_token_is_a_sample(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7))
    x = torch.randint(7, (6, 5), generator=torch.Generator().manual_seed(0))
    y = x * 3 % 7  # a token's label says which token it was: rows and labels have to belong together
    by_token = model(torch.arange(7)).detach()
    of_label = {int(token * 3 % 7): by_token[token] for token in range(7)}
    for most, count in ((100, 30), (13, 13), (4, 4)):
        watch = wj.watch(model, ["1"], {"a": (x, y), "b": [(x[:3], y[:3]), (x[3:], y[3:])]}, samples=most)
        with watch.recorder(tmp_path / str(most), {}) as recorder:
            for epoch in range(2):
                recorder.log(epoch=epoch, **watch())
        run = wj.open_run(tmp_path / str(most))
        found, labels = run["features/1"].features.values[:, 0], run["probe_samples"].label.values[0]
        assert found.shape == (2, 2, count, 7) and labels.shape == (2, count)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(labels[0], labels[1])  # batches change nothing
        expected = np.stack([of_label[int(label)] for label in labels[0]])
        np.testing.assert_allclose(found[0, 0], expected, rtol=1e-6)
    assert sorted(labels[0].tolist()) == sorted(y[i, i].item() for i in range(4))


@pytest.mark.parametrize(
    ("count", "length", "most"), [(60, 16, 100), (100, 16, 100), (1, 1000, 100), (3, 4, 7), (5, 7, 35)]
)
def test_tokens_are_spread_and_none_is_kept_twice(count: int, length: int, most: int) -> None:
    model = nn.Sequential(nn.Embedding(count * length, 2))
    x = torch.arange(count * length).reshape(count, length)
    kept = wj.watch(model, ["0"], {"a": (x, x)}, samples=most).probe_samples["label"]["a"][0].numpy()
    assert len(set(kept.tolist())) == len(kept) == min(most, count * length)
    per_sequence = np.bincount(kept // length, minlength=min(count, most))
    assert per_sequence.max() - per_sequence.min() <= 1
    assert len(set((kept % length).tolist())) == min(length, most)


def test_layers_that_do_not_give_tokens_are_one_error(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(16, 20), nn.Unflatten(1, (4, 5)))
    x = torch.arange(12).reshape(3, 4) % 5
    with pytest.raises(WaterjarError, match=r"layer '2' gives the shape \(3, 20\), and labels \(3, 4\) are of tokens"):
        wj.watch(model, ["0", "2"], {"a": (x, x)})
    as_tokens = {"0": None, "2": lambda out: out.unflatten(1, (4, 5))}
    assert wj.watch(model, as_tokens, {"a": (x, x)})()["snapshot"]["features"]["2"]["a"].shape == (1, 12, 5)
    watch = wj.watch(model, ["0", "2"], {"a": (x, x)}, probe=(x, x[:, 0]))
    assert watch()["snapshot"]["features"]["0"]["a"].shape == (1, 3, 16)
    with pytest.raises(WaterjarError, match="labels of 'a' are of tokens, those of 'b' are not"):
        wj.watch(model, ["0"], {"a": (x, x), "b": (x, x[:, 0])})


def test_convolution_maps_are_flattened() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3))
    watch = wj.watch(model, ["0"], {"a": (torch.ones(5, 1, 4, 4), torch.arange(5) % 3)})
    assert watch()["snapshot"]["features"]["0"]["a"].shape == (1, 5, 8)


def test_a_regression_has_a_loss_and_no_accuracy() -> None:
    model, (x, _) = nn.Linear(4, 1), data()
    with pytest.raises(WaterjarError, match=r"labels are float32.*loss=torch"):
        wj.watch(model, (), {"a": (x, x[:, :1])})()
    found = wj.watch(model, (), {"a": (x, x[:, :1])}, loss=nn.functional.mse_loss)()["performance"]
    assert found.keys() == {"loss"}
    assert found["loss"]["a"] == pytest.approx(float(nn.functional.mse_loss(model(x), x[:, :1]).detach()))
    model = nn.Sequential(model)
    wide = wj.watch(model, ["0"], {"a": (x, x[:, :2])}, loss=lambda out, y: nn.functional.mse_loss(out.expand_as(y), y))
    assert wide.probe_samples == {} and wide()["snapshot"]["features"]["0"]["a"].shape == (1, 40, 1)


def test_a_network_that_gives_nan_has_no_accuracy(tmp_path: Path) -> None:
    model = nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.fill_(float("nan"))
    watch = wj.watch(model, (), {"a": data()})
    with watch.recorder(tmp_path / "r") as recorder:
        recorder.log(epoch=0, **watch())
    found = wj.open_run(tmp_path / "r")["performance"]
    assert np.isnan(found.accuracy.values).all() and np.isnan(found.loss.values).all()


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.rest, self.rnn = nn.Linear(4, 4), nn.Linear(4, 3), nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.rest(self.rnn(self.fc1(self.fc1(x))[:, None])[0][:, 0])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda m: wj.watch(m, ["fc"], {"a": data()}), r"layer 'fc' is unknown: did you mean 'fc1'\? Known"),
        (lambda m: wj.watch(m, ["fc1"], {"a": data()}), "layer 'fc1' runs 2 times"),
        (lambda m: wj.watch(m, ["rnn"], {"a": data()}), "layer 'rnn' gives a tuple"),
        (lambda m: wj.watch(m, ["rest"]), "give eval_sets"),
        (lambda m: wj.watch(m, {"rest": 3}, {"a": data()}), "expected a function"),
        (lambda m: wj.watch(m, ["rest"], {"a": data()}, samples=0), "expected a whole number"),
        (lambda m: wj.watch(m, (), {"a": data()[0]}), "a tensor alone"),
        (lambda m: wj.watch(m, (), {"a": DataLoader(data()[0])})(), "without labels"),
        (lambda m: wj.watch(m, (), {"a": DataLoader(TensorDataset(data()[0]))})(), "list of 1 without labels"),
        (lambda m: wj.watch(m, (), {"a": iter([data()])}), "an iterator is empty after one epoch"),
        (lambda m: wj.watch(m, (), {"a": []})(), "is empty"),
        (lambda m: wj.watch(m, (), {"a": 3}), "expected a DataLoader"),
        (lambda m: wj.watch(m, (), {"a": (data()[0], data()[1][:3])}), "40 inputs and 3 labels"),
        (lambda m: wj.watch(m, (), {"a": (data()[0], data()[1] + 1)})(), "a label is 3, and the network has 3 outputs"),
        (lambda m: wj.watch(m, (), {"a": data()}, loss=lambda out, y: out[:, 0])(), "expected one number, the mean"),
        (
            lambda m: wj.watch(m, (), {"a": [{"x": data()[0], "y": data()[1]}]})(),
            "a batch is a dict of 2 without labels",
        ),
        (lambda m: wj.watch(m, (), [data()]), "expected a mapping"),
        (lambda m: wj.watch(lambda x: x), "expected a torch.nn.Module"),
        (lambda m: wj.watch(m, weights=False), "nothing to watch"),
        (lambda m: wj.watch(nn.LazyLinear(3)), "see one batch"),
        (lambda m: wj.watch(m, (), {"a": data()}).recorder("/dev/shm/nowhere", eval_sets=["b"]), "that are watched"),
    ],
)
def test_mistakes_are_one_error(call: Any, why: str) -> None:
    with pytest.raises(WaterjarError, match=why):
        call(Twice())


def test_several_repeats_are_refused_and_the_place_is_free_again(tmp_path: Path) -> None:
    watch = wj.watch(network(), ["0"], {"a": data()})
    with pytest.raises(WaterjarError, match="one network"):
        watch.recorder(tmp_path / "r", seeds=[1, 2])
    with watch.recorder(tmp_path / "other", seeds=[1]) as recorder:
        recorder.log(epoch=0, **watch())


def test_a_compiled_network_and_half_precision() -> None:
    model = network().to(torch.bfloat16)
    x, y = data()
    found = wj.watch(torch.compile(model, backend="eager"), ["0"], {"a": (x.bfloat16(), y)})()
    assert found["snapshot"]["features"]["0"]["a"].dtype == torch.float32
    assert 0 <= found["performance"]["accuracy"]["a"] <= 1
