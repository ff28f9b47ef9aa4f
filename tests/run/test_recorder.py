from __future__ import annotations

import datetime
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import waterjar
from recording import content, record, root_of
from waterjar import Recorder, Storage, Variable, WaterjarError, missing


def open_recorder(path: Path, **options: object) -> Recorder:
    return Recorder(path / "run", {"lr": 0.1}, **{"eval_sets": ["a", "b"], **options})


def test_values_come_back_in_every_form_they_go_in(tmp_path: Path) -> None:
    forms = [
        np.array([0.25, 0.5]),
        np.array([[0.25], [0.5]]),
        [0.25, 0.5],
        (0.25, np.float32(0.5)),
        {"b": 0.5, "a": 0.25},
        {"a": [0.25], "b": np.array([0.5], dtype=">f4")},
        np.array([0.25, 0.5], dtype=np.float16),
    ]
    with open_recorder(tmp_path) as recorder:
        for i, form in enumerate(forms):
            recorder.log(epoch=i, performance={"accuracy": form})
    found = waterjar.open_run(tmp_path / "run")["performance"].accuracy.values
    np.testing.assert_array_equal(found.squeeze(-1), [[0.25, 0.5]] * len(forms))


@pytest.mark.torch
def test_torch_goes_in_with_and_without_grad_and_as_bfloat16(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    wanted = torch.tensor([0.25, 0.5], requires_grad=True)
    with open_recorder(tmp_path) as recorder:
        recorder.log(epoch=0, performance={"accuracy": wanted})
        recorder.log(epoch=1, performance={"accuracy": [wanted[0], wanted[1] * 1]})
        recorder.log(epoch=2, performance={"accuracy": {"a": wanted[0], "b": wanted[1]}})
        recorder.log(epoch=3, performance={"accuracy": wanted.bfloat16()})
        recorder.snapshot(weights=wanted.bfloat16(), features={"x": torch.zeros(2, 4, 3, dtype=torch.float16)})
    run = waterjar.open_run(tmp_path / "run")
    np.testing.assert_array_equal(run["performance"].accuracy.values.squeeze(-1), [[0.25, 0.5]] * 4)
    assert run["weights"].weights.dtype == np.float32
    assert run["features/x"].features.dtype == np.float16


@pytest.mark.oracle
def test_jax_goes_in(tmp_path: Path) -> None:
    jnp = pytest.importorskip("jax.numpy")
    with open_recorder(tmp_path) as recorder:
        recorder.log(epoch=0, performance={"accuracy": jnp.array([0.25, 0.5])})
        recorder.log(epoch=1, performance={"accuracy": jnp.array([0.25, 0.5], dtype=jnp.bfloat16)})
    found = waterjar.open_run(tmp_path / "run")["performance"].accuracy.values
    np.testing.assert_array_equal(found.squeeze(-1), [[0.25, 0.5]] * 2)


def test_coordinates_follow_from_epoch_and_task(tmp_path: Path) -> None:
    with open_recorder(tmp_path, tasks=["x", "y"]) as recorder:
        for task in ("x", "y"):
            for epoch in (0, 1, 2.5):
                recorder.log(train_task=task, epoch=epoch, performance={"loss": [1, 2]})
    data = waterjar.open_run(tmp_path / "run")["performance"]
    assert data.step.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.total_epoch.values.tolist() == [0, 1, 2.5, 2.5, 3.5, 5.0]
    assert data.effective_epoch.values.tolist() == [0, 0, 0, 0, 1, 2.5]
    assert data.train_task.values.tolist() == ["x"] * 3 + ["y"] * 3
    assert data.train_task_index.values.tolist() == [0] * 3 + [1] * 3


def test_joint_training_counts_as_effective(tmp_path: Path) -> None:
    with open_recorder(tmp_path, tasks=2) as recorder:
        recorder.log(train_task="joint", epoch=0, performance={"loss": [1, 2]})
        recorder.log(train_task="joint", epoch=1, performance={"loss": [1, 2]})
    data = waterjar.open_run(tmp_path / "run")["performance"]
    assert data.effective_epoch.values.tolist() == [0, 1]
    assert data.train_task_index.values.tolist() == [-1, -1]


def test_missing_is_nan_with_a_reason(tmp_path: Path) -> None:
    with open_recorder(tmp_path, storage=Storage(step_chunk=2)) as recorder:
        for epoch in range(3):
            recorder.log(epoch=epoch, performance={"accuracy": [0.1, 0.2]})
        recorder.log(epoch=3, performance={"accuracy": {"a": missing("empty_set"), "b": 0.5}, "loss": [math.nan, 2]})
        recorder.log(epoch=4, performance={"loss": missing("undefined")})
        recorder.log(epoch=5, performance={"accuracy": {"b": 0.7}, "loss": [math.inf, 3.0]})
    data = waterjar.open_run(tmp_path / "run")["performance"].squeeze("repeat")
    names = data.accuracy_reason.attrs["flag_meanings"].split()
    assert data.accuracy_reason.attrs["flag_values"] == list(range(len(names)))

    def reasons(variable: str) -> list[list[str]]:
        return [[names[code] for code in row] for row in data[f"{variable}_reason"].values]

    fine, absent = ["present"] * 2, ["not_recorded"] * 2
    assert reasons("accuracy") == [fine, fine, fine, ["empty_set", "present"], absent, ["not_recorded", "present"]]
    assert reasons("loss") == [absent] * 3 + [["not_a_number", "present"], ["undefined"] * 2, fine]
    for variable in ("accuracy", "loss"):
        np.testing.assert_array_equal(np.isnan(data[variable].values), data[f"{variable}_reason"].values != 0)
    assert data.loss.values[5, 0] == math.inf


def test_no_companion_where_nothing_is_missing(run_path: Path) -> None:
    assert not [name for name in waterjar.open_run(run_path)["performance"].data_vars if str(name).endswith("_reason")]


def test_classes_and_repeats(tmp_path: Path) -> None:
    names = ["cat", "dog", "owl"]
    options = {"seeds": [5, 9], "classes": names}
    values = np.arange(12.0).reshape(2, 3, 2) / 16  # eval_set, class, repeat
    with open_recorder(tmp_path, **options) as recorder:
        recorder.log(epoch=0, performance={"class_accuracy": values, "accuracy": [[0.1, 0.2], [0.3, 0.4]]})
        recorder.log(epoch=1, performance={"class_accuracy": {"a": values[0], "b": missing("empty_set")}})
    data = waterjar.open_run(tmp_path / "run")["performance"]
    assert data["class"].values.tolist() == names
    assert data.seed.values.tolist() == [5, 9]
    assert float(data.class_accuracy.sel({"class": "owl", "eval_set": "b"}).isel(step=0, repeat=1)) == 11 / 16
    assert np.isnan(data.class_accuracy.sel(eval_set="b").isel(step=1)).all()


def test_own_variables_are_declared(tmp_path: Path) -> None:
    own = {"train/noise": Variable(("step", "repeat"), "gradient noise scale", "1", "lower")}
    with open_recorder(tmp_path, variables=own) as recorder:
        recorder.log(epoch=0, train={"noise": 3.0})
    assert waterjar.open_run(tmp_path / "run")["train"].noise.attrs["direction"] == "lower"


def test_snapshots_weights_and_their_layers(tmp_path: Path) -> None:
    state = {"w": np.arange(6, dtype=np.float32).reshape(3, 2), "n": np.array(7), "b": np.ones(2, np.float32)}
    with open_recorder(tmp_path) as recorder:
        recorder.once("weights", initial=state)
        recorder.once("weights", initial=state)  # what a resumed script does
        recorder.log(epoch=0, train={"loss": 1.0})
        recorder.snapshot(weights=state, features={"l.1": {"a": np.zeros((4, 3)), "b": np.ones((4, 3))}})
        with pytest.raises(WaterjarError, match="written once"):
            recorder.once("weights", initial={**state, "b": np.zeros(2, np.float32)})
        with pytest.raises(WaterjarError, match="other layers than before"):
            recorder.snapshot(weights={"w": state["w"]})
        with pytest.raises(WaterjarError, match="step 0 has a snapshot of weights already"):
            recorder.snapshot(weights=state)
    data = waterjar.open_run(tmp_path / "run")["weights"]
    assert data.weights.dtype == np.float32
    rows = zip(*(data[k].values.tolist() for k in ("layer", "layer_start", "layer_stop", "layer_shape")), strict=True)
    assert list(rows) == [("w", 0, 6, "3x2"), ("n", 6, 7, ""), ("b", 7, 9, "2")]
    np.testing.assert_array_equal(data.weights.values[0, 0], [0, 1, 2, 3, 4, 5, 7, 1, 1])
    np.testing.assert_array_equal(data.initial.values, data.weights.values[0])
    features = waterjar.open_run(tmp_path / "run")["features/l.1"].features
    assert features.sel(eval_set="b").values.min() == 1.0


def test_repeats_in_weights(tmp_path: Path) -> None:
    with open_recorder(tmp_path, seeds=[1, 2]) as recorder:
        recorder.log(epoch=0, train={"loss": [1.0, 2.0]}, snapshot={"weights": {"w": np.arange(6.0).reshape(2, 3)}})
        with pytest.raises(
            WaterjarError, match=r"weights\['w'\] has shape \(3,\); expected a first dimension repeat=2"
        ):
            recorder.snapshot(weights={"w": np.zeros(3)})
    assert waterjar.open_run(tmp_path / "run")["weights"].weights.values.tolist() == [[[0, 1, 2], [3, 4, 5]]]


def test_streams_and_attention(tmp_path: Path) -> None:
    with open_recorder(tmp_path, probe_sets=["b"]) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
        recorder.snapshot(attention={"cls": np.zeros((4, 2, 3, 5))}, streams={"logits": np.zeros((4, 2, 3))})
        recorder.log(epoch=1, train={"loss": 1.0})
        with pytest.raises(WaterjarError, match=r"snapshot of streams has \['pooled'\]; expected \['logits'\]"):
            recorder.snapshot(streams={"pooled": np.zeros((4, 2, 7))})
    run = waterjar.open_run(tmp_path / "run")
    assert run["attention"].cls.dims == ("snapshot", "repeat", "eval_set", "sample", "layer", "head", "token")
    assert run["attention"].eval_set.values.tolist() == ["b"]
    assert run["streams"].logits.shape == (1, 1, 1, 4, 2, 3)


def test_events_keep_their_step(tmp_path: Path) -> None:
    with open_recorder(tmp_path) as recorder:
        recorder.event("note", "before <b>anything</b>")
        recorder.log(epoch=0, train={"patched_images": 12})
        recorder.event("alert", "loss ↑")
        with pytest.raises(WaterjarError, match="message of an event=3: expected text"):
            recorder.event("alert", 3)  # type: ignore[arg-type]
        with pytest.raises(WaterjarError, match="level of an event 'warn' is unknown.*did you mean 'warning'"):
            recorder.event("alert", "x", level="warn")
        with pytest.raises(WaterjarError, match="repeat=1: expected one from 0 to 0"):
            recorder.event("alert", "x", repeat=1)
        recorder.event("alert", "dead", level="warning", repeat=0)
    events = waterjar.open_run(tmp_path / "run")["events"]
    assert events.event_step.values.tolist() == [-1, 0, 0]
    assert events.kind.values.tolist() == ["note", "alert", "alert"]
    assert events.message.values.tolist() == ["before <b>anything</b>", "loss ↑", "dead"]
    assert events.level.values.tolist() == ["info", "info", "warning"]
    assert events.event_repeat.values.tolist() == [-1, -1, 0]
    times = xr.open_datatree(tmp_path / "run", engine="zarr")["events"].time.values  # decoded by its units
    now = np.datetime64(datetime.datetime.now(datetime.UTC).replace(tzinfo=None))
    assert (np.abs(times - now) < np.timedelta64(600, "s")).all()


def test_storage_is_a_setting(tmp_path: Path) -> None:
    storage = Storage(step_dtype="float32", snapshot_dtype="float16", compression="lz4", sync=True)
    with open_recorder(tmp_path, storage=storage) as recorder:
        recorder.log(epoch=0, performance={"accuracy": [0.1, 0.2]}, snapshot={"weights": np.ones(3)})
        recorder.once("probe_samples", label=np.zeros((2, 4), np.int64))
        with pytest.raises(WaterjarError, match=r"weights holds 1e\+30, too large for float16"):
            recorder.snapshot(weights=np.array([1, 1e30, 1]))
    run = waterjar.open_run(tmp_path / "run")
    assert run["performance"].accuracy.dtype == np.float32
    assert run["weights"].weights.dtype == np.float16
    assert run["probe_samples"].label.dtype == np.int64
    codecs = root_of(tmp_path / "run")["consolidated_metadata"]["metadata"]["weights/weights"]["codecs"]
    assert codecs[1]["configuration"]["cname"] == "lz4"


def test_provenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    repo = tmp_path / "repo"
    repo.mkdir()
    git = ["git", "-C", str(repo), "-c", "user.name=n", "-c", "user.email=e@x.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.chdir(repo)
    session = root_of(record(tmp_path / "run"))["attributes"]["provenance"]["sessions"][0]
    assert session["git"] == {"commit": commit, "dirty": False}
    assert session["versions"]["numpy"] == np.__version__
    assert session["host"]["cores"] == os.cpu_count()
    assert session["seconds"] > 0
    monkeypatch.chdir(tmp_path)
    session = root_of(record(tmp_path / "run2"))["attributes"]["provenance"]["sessions"][0]
    assert session["git"] == {"commit": None, "reason": "not inside a git repository with a commit"}
    monkeypatch.setenv("PATH", "")
    session = root_of(record(tmp_path / "run3"))["attributes"]["provenance"]["sessions"][0]
    assert session["git"]["reason"] == "git is not installed"


def test_same_input_same_content(tmp_path: Path) -> None:
    assert content(record(tmp_path / "1")) == content(record(tmp_path / "2"))
    seals = [root_of(tmp_path / name)["attributes"]["seal"]["content"] for name in "12"]
    assert seals[0] == seals[1]
    record(tmp_path / "3", seed=1)
    assert root_of(tmp_path / "3")["attributes"]["seal"]["content"] != seals[0]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_sequence_of_logs_comes_back(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Against a plain dict of what was logged: any pattern of variables, chunk sizes and gaps."""
    chunk = data.draw(st.integers(2, 5), "chunk")
    steps = data.draw(st.lists(st.sets(st.sampled_from(["accuracy", "loss", "macro_accuracy"])), max_size=12))
    path = tmp_path_factory.mktemp("any") / "run"
    expected: list[dict[str, np.ndarray]] = []
    labels = []
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    with Recorder(path, {}, eval_sets=["a", "b"], storage=Storage(step_chunk=chunk), provenance=False) as recorder:
        for epoch, names in enumerate(steps):
            row = {name: rng.random(2) for name in sorted(names)}
            step = recorder.log(epoch=epoch, performance=row, train={"loss": epoch})
            if row:
                expected.append(row)
                labels.append(step)
    run = waterjar.open_run(path)
    if not expected:
        assert "performance" not in run.groups
        return
    found = run["performance"]
    assert found.step.values.tolist() == labels
    for name in {name for row in expected for name in row}:
        column = np.array([row.get(name, np.full(2, np.nan)) for row in expected])
        np.testing.assert_array_equal(found[name].values.squeeze(-1), column)
        absent = np.isnan(column)
        if absent.any():
            np.testing.assert_array_equal(found[f"{name}_reason"].values.squeeze(-1), absent.astype(np.uint8))
        else:
            assert f"{name}_reason" not in found


@pytest.mark.torch
def test_recording_leaves_every_generator_alone(tmp_path: Path) -> None:
    import hashlib
    import random

    torch = pytest.importorskip("torch")

    def train(recorder: Recorder | None) -> str:
        random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002 - the global ones are what is at stake
        network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
        for epoch in range(5):
            x = torch.randn(16, 4) + random.random() + np.random.rand()  # noqa: NPY002
            loss = network(x).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if recorder is not None:
                recorder.log(epoch=epoch, train={"loss": loss}, snapshot={"weights": network.state_dict()})
                recorder.event("note", "hello")
        states = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
        weights = b"".join(p.detach().numpy().tobytes() for p in network.parameters())
        return hashlib.sha256(weights + repr(states).encode()).hexdigest()

    alone = train(None)
    with Recorder(tmp_path / "run", {}) as recorder:
        assert train(recorder) == alone


def test_closing_and_measuring_in_a_fresh_process_leave_every_generator_alone(tmp_path: Path) -> None:
    """What is imported for the summary at the end may draw numbers at its import, as rich does."""
    script = """
import random, sys
import numpy as np
import waterjar
random.seed(1), np.random.seed(1)
before = random.getstate(), np.random.get_state()[1].tolist()
with waterjar.Recorder(sys.argv[1], {}, tasks=["a"], eval_sets=["a"], classes=["x", "y"]) as recorder:
    recorder.once("probe_samples", label=np.arange(8).reshape(1, 1, 8) % 2)
    for epoch in range(3):
        features = {"fc": np.random.default_rng(epoch).normal(size=(1, 1, 8, 4)).clip(0)}
        recorder.log(epoch=epoch, train_task="a", performance={"accuracy": [0.5]}, snapshot={"features": features})
waterjar.measure(sys.argv[1])
assert (random.getstate(), np.random.get_state()[1].tolist()) == before
"""
    subprocess.run([sys.executable, "-c", script, tmp_path / "run"], check=True, timeout=300)


def test_single_elements_can_be_missing(tmp_path: Path) -> None:
    with open_recorder(tmp_path, seeds=[1, 2]) as recorder:
        where = np.array([[False, True], [False, False]])
        recorder.log(epoch=0, performance={"accuracy": waterjar.masked([[1, 2], [0.5, math.nan]], where, "empty_set")})
        with pytest.raises(WaterjarError, match="values have shape"):
            waterjar.masked([1.0], [[True]], "empty_set")
        some = waterjar.masked([0.5, 0.0], [False, True], "undefined")
        recorder.log(epoch=1, performance={"accuracy": {"a": some, "b": [1, 0]}})
    assert waterjar.open_run(tmp_path / "run")["performance"].accuracy_reason.values[1].tolist() == [[0, 6], [0, 0]]
    data = waterjar.open_run(tmp_path / "run")["performance"].isel(step=0)
    np.testing.assert_array_equal(data.accuracy.values, [[1, np.nan], [0.5, np.nan]])
    assert data.accuracy_reason.values.tolist() == [[0, 3], [0, 2]]


class TestAccuracies:
    """What the schema declares as an accuracy lies in [0, 1]; NaN is missing; nothing is clipped."""

    NAMES = ("accuracy", "macro_accuracy", "top5_accuracy", "task_accuracy", "task_macro_accuracy")

    def test_what_is_refused_is_told_apart_from_1(self, tmp_path: Path) -> None:
        with open_recorder(tmp_path) as recorder, pytest.raises(WaterjarError, match=r"has 1\.000002 at"):
            recorder.log(epoch=0, performance={"accuracy": {"a": 1 + 2e-6, "b": 0.5}})

    @pytest.mark.parametrize("wrong", [75.5, -0.01, 1 + 2e-6, math.inf, -math.inf])
    @pytest.mark.parametrize("name", NAMES)
    def test_others_are_refused(self, tmp_path: Path, name: str, wrong: float) -> None:
        with open_recorder(tmp_path) as recorder:
            with pytest.raises(WaterjarError, match=rf"performance\['{name}'\] has .*Divide percentages by 100"):
                recorder.log(epoch=0, performance={name: {"a": wrong, "b": 0.5}})
            with pytest.raises(WaterjarError, match=rf"expert\['{name}'\] has .*Divide percentages by 100"):
                recorder.log(epoch=0, expert={name: [0.5, wrong]})
            recorder.log(epoch=0, performance={name: [0.5, math.nan], "loss": [75.5, math.inf]})
        assert waterjar.open_run(tmp_path / "run")["performance"][name].values.ravel()[0] == 0.5

    def test_also_by_class_and_in_training(self, tmp_path: Path) -> None:
        with open_recorder(tmp_path, classes=["x", "y"]) as recorder:
            for name in ("class_accuracy", "task_class_accuracy"):
                with pytest.raises(WaterjarError, match=f"{name}.*Divide percentages by 100"):
                    recorder.log(epoch=0, performance={name: [[0.5, 50.0], [0.5, 0.5]]})
            for group, name in (("train", "accuracy"), ("expert", "train_accuracy")):
                with pytest.raises(WaterjarError, match="Divide percentages by 100"):
                    recorder.log(epoch=0, **{group: {name: 50.0}})
            recorder.log(epoch=0, train={"accuracy": 0.5})

    def test_rounding_is_let_through_as_it_is(self, tmp_path: Path) -> None:
        with open_recorder(tmp_path) as recorder:
            recorder.log(epoch=0, performance={"accuracy": [1 + 5e-7, -5e-7]})
        found = waterjar.open_run(tmp_path / "run")["performance"].accuracy.values.ravel()
        assert found.tolist() == [1 + 5e-7, -5e-7]

    def test_a_variable_of_ones_own_may_be_one(self, tmp_path: Path) -> None:
        own = Variable(("step", "eval_set", "repeat"), "mine", "1", "higher", accuracy=True)
        with open_recorder(tmp_path, variables={"performance/mine": own}) as recorder:
            with pytest.raises(WaterjarError, match="mine.*Divide percentages by 100"):
                recorder.log(epoch=0, performance={"mine": [2.0, 0.5]})
            recorder.log(epoch=0, performance={"mine": [0.5, 0.5]})


def test_sizes_of_evaluation_sets(tmp_path: Path) -> None:
    with open_recorder(tmp_path, eval_sizes={"b": 100}) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5 * np.ones(2)})
    assert waterjar.open_run(tmp_path / "run").attributes["eval_sizes"] == {"b": 100}
    with open_recorder(tmp_path / "old") as recorder:
        recorder.log(epoch=0, performance={"accuracy": [0.5, 0.5]})
    assert "eval_sizes" not in waterjar.open_run(tmp_path / "old" / "run").attributes
    for wrong, message in (
        ({"c": 3}, "eval_sizes: eval_set 'c' is unknown"),
        ({"a": -1}, r"eval_sizes\['a'\]=-1: expected a number of samples"),
        ({"a": 1.5}, "is not a whole number"),
        ([3, 4], "expected a mapping"),
    ):
        with pytest.raises(WaterjarError, match=message):
            open_recorder(tmp_path / "wrong", eval_sizes=wrong)


def test_a_number_of_the_whole_process_may_be_missing_from_the_first_step_on(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "r", {}, seeds=[0, 1]) as recorder:
        for epoch, memory in enumerate([waterjar.missing("not_recorded"), 5.0]):
            recorder.log(epoch=epoch, resources={"seconds": 1.0, "peak_memory": memory})
    found = waterjar.open_run(tmp_path / "r").load("resources")
    np.testing.assert_array_equal(found["peak_memory"], [np.nan, 5.0])
    assert found["peak_memory_reason"].values.tolist() == [1, 0]
