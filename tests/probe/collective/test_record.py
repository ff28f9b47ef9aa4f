"""Recording a live collective: what stands in the run is what the model says, and the model is as it was."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
import waterjar  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import adapt, coalitions, collective_labels, gradient_contributions, record_collective  # noqa: E402

pytestmark = pytest.mark.torch

SETS = {"val": tiny.data(12, seed=2), "test": tiny.data(20, seed=3)}


def recorded(path: Path, model: Any, *, epochs: int = 1, absences: tuple[str, ...] = (), **settings: Any) -> Any:
    collective = adapt(model)
    labels = collective_labels(collective, absences)
    with waterjar.Recorder(path / "run", {}, eval_sets=list(SETS), labels=labels) as recorder:
        for epoch in range(epochs):
            recorder.log(epoch=epoch, train={"loss": 1.0})
            told = record_collective(recorder, collective, SETS, absences=absences, **settings)
    return collective, told, waterjar.open_run(path / "run")


def test_everything_that_geofractal_tells(tmp_path: Path) -> None:
    model = tiny.RouterCollective()
    collective, told, run = recorded(tmp_path, model, absences=("zeroed", "resampled"), gradients=True)
    assert told.passed_over == {}
    streams = run["streams"].isel(snapshot=0, repeat=0)
    x, _ = SETS["test"]
    model.eval()
    logits, info = model(x, return_individual=True, return_info=True)
    test = streams.sel(eval_set="test")
    np.testing.assert_allclose(test.collective_logits, logits.detach(), rtol=1e-5, atol=1e-6)
    for name in "abc":
        own = test.sel(stream=name)
        np.testing.assert_allclose(own.logits, info["individual_logits"][name].detach(), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(own.route_index, info["stream_infos"][name]["routes"])
        np.testing.assert_allclose(own.route_weight, info["stream_infos"][name]["route_weights"].detach(), rtol=1e-5)
        np.testing.assert_array_equal(own.anchor_affinity, info["stream_infos"][name]["anchor_affinities"].detach())
        np.testing.assert_array_equal(own.fingerprint, model.heads[name].fingerprint.detach())
    game = coalitions(collective, SETS["test"], "zeroed")
    both = test.sel(coalition=list(game.labels))
    np.testing.assert_array_equal(both.coalition_correct, game.correct)
    np.testing.assert_allclose(both.coalition_log_likelihood, game.log_likelihood, rtol=1e-6)
    np.testing.assert_allclose(test.gradient_norm, gradient_contributions(collective, SETS["test"]))
    assert int(streams.parameters) == sum(p.numel() for p in model.parameters())
    assert streams.stream_parameters.sizes == {"stream": 3}


def test_sets_of_different_sizes_are_filled_up(tmp_path: Path) -> None:
    _, _, run = recorded(tmp_path, tiny.networks(2), absences=("removed",))
    label = run["probe_samples"]["label"].isel(repeat=0)
    np.testing.assert_array_equal(label.sel(eval_set="val")[:12], SETS["val"][1])
    assert (label.sel(eval_set="val")[12:] == -1).all()
    streams = run["streams"].isel(snapshot=0, repeat=0).sel(eval_set="val")
    assert np.isnan(streams.logits[12:]).all() and not np.isnan(streams.logits[:12]).any()
    assert (streams.coalition_correct[12:] == 255).all()


def test_what_there_is_not_is_said_once(tmp_path: Path) -> None:
    _, told, run = recorded(tmp_path, tiny.networks(2), epochs=3)
    assert set(told.passed_over) == {"routing", "affinity", "fingerprint"}
    messages = run["events"]["message"].values.tolist()
    assert len(messages) == 3 and "routing: independent networks route nothing" in messages


def test_a_loader_that_shuffles_is_read_in_order(tmp_path: Path) -> None:
    collective, (x, y) = adapt(tiny.networks(2)), tiny.data(30)
    loader = DataLoader(TensorDataset(x, y), batch_size=7, shuffle=True)
    state = torch.random.get_rng_state()
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets=["test"], labels=collective_labels(collective)) as recorder:
        for epoch in range(2):
            recorder.log(epoch=epoch, train={"loss": 1.0})
            record_collective(recorder, collective, {"test": loader})
    assert torch.equal(state, torch.random.get_rng_state())
    streams = waterjar.open_run(tmp_path / "run")["streams"]["logits"]
    np.testing.assert_array_equal(streams[0], streams[1])


def test_training_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    ends = []
    for measured in (False, True):
        model = tiny.seeded(4, tiny.RouterCollective)
        collective, (x, y) = adapt(model), tiny.data()
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
        with (
            torch.random.fork_rng(),
            waterjar.Recorder(
                tmp_path / f"run{measured}", {}, eval_sets=list(SETS), labels=collective_labels(collective, ["zeroed"])
            ) as recorder,
        ):
            torch.manual_seed(0)
            for epoch in range(3):
                model.train()
                optimiser.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x + 0.1 * torch.randn_like(x))[0], y)
                loss.backward()
                recorder.log(epoch=epoch, train={"loss": loss.item()})
                if measured:
                    record_collective(recorder, collective, SETS, absences=["zeroed"], gradients=True)
                optimiser.step()
        ends.append(copy.deepcopy(model.state_dict()))
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])


def test_one_collective_for_each_repeat(tmp_path: Path) -> None:
    each = [adapt(tiny.seeded(i, tiny.RouterCollective)) for i in range(2)]
    labels = collective_labels(each[0])
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[1, 2], eval_sets=list(SETS), labels=labels) as recorder:
        recorder.log(epoch=0, train={"loss": [1.0, 1.0]})
        with pytest.raises(WaterjarError, match="one for each of 2 repeats"):
            record_collective(recorder, each[0], SETS)
        record_collective(recorder, each, SETS)
    streams = waterjar.open_run(tmp_path / "run")["streams"]["collective_logits"].sel(eval_set="test")
    with torch.no_grad():
        for repeat, one in enumerate(each):
            own = one.module.eval()(SETS["test"][0])[0]
            np.testing.assert_allclose(streams.isel(snapshot=0, repeat=repeat), own, rtol=1e-5, atol=1e-6)


def test_frozen_between_epochs(tmp_path: Path) -> None:
    nets = torch.nn.ModuleList(tiny.networks(2))
    collective = adapt(nets)
    with waterjar.Recorder(
        tmp_path / "run", {}, eval_sets=list(SETS), labels=collective_labels(collective)
    ) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
        record_collective(recorder, collective, SETS)
        nets[0].requires_grad_(False)
        recorder.log(epoch=1, train={"loss": 1.0})
        assert "trainable_parameters" in record_collective(recorder, collective, SETS).passed_over


def test_answers_that_hang_on_the_batch_are_said(tmp_path: Path) -> None:
    class Gossip(tiny.Router):
        def forward(self, x: Any, mailbox: Any = None, target_fingerprint: Any = None) -> Any:
            if mailbox is not None:
                mailbox[:] = [
                    one.mean(dim=0, keepdim=True) for one in mailbox
                ]  # the mean over the batch, as geofractal
            return super().forward(x, mailbox, target_fingerprint)

    model = tiny.Protocol()
    for stream in model.streams:
        stream.router = Gossip()
    _, told, _ = recorded(tmp_path / "a", model)
    assert told.passed_over["batches"].startswith("an answer depends on which samples share its batch")
    _, told, _ = recorded(tmp_path / "b", tiny.Protocol())
    assert "batches" not in told.passed_over


def test_a_recorder_without_names_is_told_how(tmp_path: Path) -> None:
    collective = adapt(tiny.networks(2))
    with waterjar.Recorder(tmp_path / "run", {}, eval_sets=list(SETS)) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
        with pytest.raises(WaterjarError, match="no names along 'stream': open it with"):
            record_collective(recorder, collective, SETS)
