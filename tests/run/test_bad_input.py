"""Bad input is one WaterjarError that names the argument, its value and what was expected; the run is unharmed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import waterjar
from recording import content, root_of
from waterjar import Recorder, Storage, Variable, WaterjarError, from_accuracy_matrix, missing

Call = Callable[[Recorder], object]

HUGE = np.broadcast_to(np.float32(1), 2**47)
"""More than an address can point at, and four bytes."""

BAD: dict[str, tuple[Call, str]] = {
    "shape": (
        lambda r: r.log(epoch=9, performance={"accuracy": [1, 2, 3]}),
        r"performance\['accuracy'\] has shape \(3,\); expected \(eval_set=2, repeat=1\)",
    ),
    "shape per set": (
        lambda r: r.log(epoch=9, performance={"accuracy": {"a": [1, 2]}}),
        r"performance\['accuracy'\]\['a'\] has shape \(2,\); expected \(repeat=1\)",
    ),
    "eval_set": (
        lambda r: r.log(epoch=9, performance={"accuracy": {"aa": 1}}),
        r"eval_set 'aa' is unknown: did you mean 'a'\? Known: 'a', 'b'",
    ),
    "eval_set in the wrong group": (
        lambda r: r.log(epoch=9, train={"loss": {"a": 1}}),
        r"train\['loss'\] is given by eval_set, but has the dimensions",
    ),
    "variable": (
        lambda r: r.log(epoch=9, performance={"acuracy": [1, 2]}),
        r"variable 'acuracy' is unknown: did you mean 'accuracy'\?",
    ),
    "not a mapping": (lambda r: r.log(epoch=9, train=[1]), "train=\\[1\\]: expected a mapping name -> values"),  # type: ignore[arg-type]
    "text": (lambda r: r.log(epoch=9, train={"loss": "low"}), r"train\['loss'\] has dtype <U3"),
    "ragged": (lambda r: r.log(epoch=9, train={"loss": [[1], [1, 2]]}), r"train\['loss'\] = .* is not an array"),
    "complex": (lambda r: r.log(epoch=9, train={"loss": 1j}), "has dtype complex128"),
    "text number": (lambda r: r.log(epoch="3", train={"loss": 1}), "epoch='3': expected a number"),  # type: ignore[arg-type]
    "huge": (lambda r: r.log(epoch=10**400, train={"loss": 1}), "expected a number"),
    "negative": (lambda r: r.log(epoch=-1, train={"loss": 1}), "epoch=-1.0: it starts at 0"),
    "array for a group": (lambda r: r.log(epoch=9, performance=np.ones(2)), "a mapping name -> values"),  # type: ignore[arg-type]
    "array for a snapshot": (lambda r: r.log(epoch=9, snapshot=np.ones(2)), "snapshot=ndarray: expected a mapping"),  # type: ignore[arg-type]
    "empty features": (lambda r: r.log(epoch=9, snapshot={"features": {}}), r"log\(\) got no values"),
    "streams by set": (lambda r: r.snapshot(streams={"fingerprint": {"a": [1], "b": [1]}}), "is given by eval_set"),
    "masked array": (lambda r: r.log(epoch=9, train={"loss": np.ma.array([1], mask=[1])}), "a masked array"),
    "beyond 2**53": (lambda r: r.log(epoch=9, train={"loss": 2**53 + 1}), r"beyond 2\*\*53"),
    "nothing": (lambda r: r.log(epoch=9), r"log\(\) got no values"),
    "nan epoch": (lambda r: r.log(epoch=math.nan, train={"loss": 1}), "epoch=nan: a coordinate must be a finite"),
    "nan total": (
        lambda r: r.log(epoch=9, total_epoch=math.inf, train={"loss": 1}),
        "total_epoch=inf: a coordinate must be a finite",
    ),
    "text epoch": (lambda r: r.log(epoch="x", train={"loss": 1}), "epoch='x': expected a number"),  # type: ignore[arg-type]
    "step back": (
        lambda r: r.log(epoch=9, step=1, train={"loss": 1}),
        "step=1 goes backwards: the last one is 1, 2 would be next",
    ),
    "step not whole": (lambda r: r.log(epoch=9, step=2.5, train={"loss": 1}), "step: 2.5 is not a whole number"),  # type: ignore[arg-type]
    "epoch back": (lambda r: r.log(epoch=0, train={"loss": 1}), r"epoch=0.0 goes backwards: it was 1.0 at step 1"),
    "effective back": (
        lambda r: r.log(epoch=9, effective_epoch=0.5, train={"loss": 1}),
        "effective_epoch=0.5 goes backwards: it was 1.0 at step 1",
    ),
    "task": (lambda r: r.log(epoch=9, train_task="x", train={"loss": 1}), "train_task 'x' is unknown"),
    "task number": (lambda r: r.log(epoch=9, train_task=4, train={"loss": 1}), "train_task=4 is out of range"),
    "layer": (
        lambda r: r.snapshot(features={"../x": np.zeros((2, 4, 3))}),
        r"layer '../x': expected letters, digits",
    ),
    "features shape": (
        lambda r: r.snapshot(features={"l": np.zeros((2, 5, 3))}),
        r"features/l has shape \(2, 5, 3\); expected \(repeat=1, eval_set=2, sample=4, unit=3\)",
    ),
    "features sets": (
        lambda r: r.snapshot(features={"m": {"a": np.zeros((4, 3))}}),
        r"features/m is given for \['a'\]; expected all of \['a', 'b'\]",
    ),
    "features uneven": (
        lambda r: r.snapshot(features={"m": {"a": np.zeros((4, 3)), "b": np.zeros((5, 3))}}),
        "features/m has different shapes per eval_set",
    ),
    "features dtype": (
        lambda r: r.snapshot(features={"l": np.zeros((2, 4, 3), np.float32)}),
        "features/l has dtype float32; expected float64 as in the first one",
    ),
    "features not by layer": (lambda r: r.snapshot(features=np.zeros(3)), "features=ndarray: expected a mapping"),  # type: ignore[arg-type]
    "no weights": (lambda r: r.snapshot(weights={}), "weights is an empty mapping"),
    "snapshot of nothing": (lambda r: r.snapshot(), r"snapshot\(\) got nothing"),
    "snapshot kind": (
        lambda r: r.log(epoch=9, train={"loss": 1}, snapshot={"wieghts": [1]}),
        "snapshot 'wieghts' is unknown: did you mean 'weights'",
    ),
    "once group": (lambda r: r.once("probe_sample", label=[1]), "group 'probe_sample' is unknown"),
    "once name": (lambda r: r.once("probe_samples", labels=[1]), "did you mean 'label'"),
    "reason": (lambda r: r.log(epoch=9, train={"loss": missing("lost")}), "reason 'lost' is unknown"),
    "missing before known": (
        lambda r: r.log(epoch=9, performance={"class_accuracy": missing("empty_set")}),
        "the size of class is not known yet",
    ),
    "classes uneven": (
        lambda r: r.log(epoch=9, performance={"class_accuracy": {"a": [1, 2], "b": [1, 2, 3]}}),
        "has different shapes per eval_set",
    ),
    "task array": (
        lambda r: r.log(epoch=9, train_task=np.array([0, 1]), train={"loss": 1}),  # type: ignore[arg-type]
        r"train_task: array\(\[0, 1\]\) is not a whole number",
    ),
    "step array": (
        lambda r: r.log(epoch=9, step=np.array([2, 3]), train={"loss": 1}),  # type: ignore[arg-type]
        r"step: array\(\[2, 3\]\) is not a whole number",
    ),
    "event of half a sign": (
        lambda r: r.event("note", "\udcff"),
        r"message of an event = '\\udcff' is not Unicode text",
    ),
    "event kind": (lambda r: r.event(3, "x"), "kind of an event=3: expected text"),  # type: ignore[arg-type]
    "once group number": (lambda r: r.once(1, x=[1]), "group '1' is unknown"),  # type: ignore[arg-type]
    "bytes for a parameter": (lambda r: r.snapshot(weights={b"w": [1.0]}), "a name in weights=b'w': expected text"),  # type: ignore[dict-item]
    "no name for a parameter": (
        lambda r: r.log(epoch=9, train={"loss": 1}, snapshot={"weights": {"w": [1.0], None: [1.0]}}),
        "a name in weights=None: expected text",
    ),
    "half a sign for a parameter": (
        lambda r: r.once("weights", initial={"\udcff": [1.0]}),
        r"a name in weights = '\\udcff' is not Unicode text",
    ),
    "range beyond memory": (
        lambda r: r.log(epoch=9, train={"loss": range(10**15)}),
        r"train\['loss'\] does not fit into memory",
    ),
    "array beyond memory": (lambda r: r.snapshot(weights=HUGE), "weights does not fit into memory"),
    "parameter beyond memory": (
        lambda r: r.snapshot(weights={"w": HUGE}),
        "weights does not fit into memory",
    ),
}


def recorded(path: Path, bad: Call | None = None, message: str = "") -> dict[str, str]:
    """The content of a run, with a bad call in its midst."""
    with Recorder(path, {}, eval_sets=["a", "b"]) as recorder:
        for epoch in (0, 1):
            recorder.log(epoch=epoch, performance={"accuracy": [0.1, 0.2]}, train={"loss": 1})
            recorder.snapshot(features={"l": np.zeros((2, 4, 3))}) if epoch == 0 else None
        if bad is not None:
            with pytest.raises(WaterjarError, match=message):
                bad(recorder)
        recorder.log(epoch=2, performance={"accuracy": [0.3, 0.4]}, train={"loss": 1})
    assert waterjar.verify(path).state == "sealed"
    return content(path)


@pytest.fixture(scope="module")
def unspoiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return recorded(tmp_path_factory.mktemp("unspoiled") / "run")


@pytest.mark.parametrize("name", BAD)
def test_bad_call_is_refused_and_harms_nothing(tmp_path: Path, name: str, unspoiled: dict[str, str]) -> None:
    call, message = BAD[name]
    assert recorded(tmp_path / "run", call, message) == unspoiled


def test_snapshot_before_the_first_log(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {}) as recorder, pytest.raises(WaterjarError, match="before the first log"):
        recorder.snapshot(weights=[1.0])


def test_several_tasks_need_a_train_task(tmp_path: Path) -> None:
    with (
        Recorder(tmp_path / "run", {}, tasks=2) as recorder,
        pytest.raises(WaterjarError, match="train_task is missing"),
    ):
        recorder.log(epoch=0, train={"loss": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": []}, r"seeds=\[\]"),
        ({"seeds": [1, 1]}, r"seeds=\[1, 1\]: expected one different whole number"),
        ({"seeds": [0.5]}, "seeds: 0.5 is not a whole number"),
        ({"seeds": [2**70]}, "at most 64 bits"),
        ({"eval_sets": ["a", "a"]}, "eval_sets=.* different, non-empty names"),
        ({"eval_sets": {"a": 3}}, r"eval_sets\['a'\]=3: a task from 0 to 0, or -1"),
        (
            {"eval_sets": {"test_a": 1, "test_b": 2}, "tasks": ["a", "b"]},
            r"eval_sets\['test_b'\]=2: a task from 0 to 1, or -1 for none; its name works, too: 'a', 'b'",
        ),
        ({"eval_sets": ["a"], "probe_sets": ["b"]}, "eval_set 'b' is unknown"),
        ({"tasks": ["joint"]}, "none of them called 'joint'"),
        ({"tasks": 0}, "at least one task"),
        ({"classes": ["x", ""]}, "classes="),
        ({"config": {"x": object()}}, "config.x = .* is not plain data"),
        ({"config": {"x": {"y": math.nan}}}, "config.x.y = nan has no place in JSON"),
        ({"config": {1: 2}}, "keys must be strings"),
        ({"config": [1]}, "a mapping of settings"),
        ({"resume_at": 3}, "resume_at=3, but there is no run"),
    ],
)
def test_bad_declaration(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        Recorder(tmp_path / "run", options.pop("config", {}), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_path_in_use_is_refused(tmp_path: Path, run_path: Path) -> None:
    with pytest.raises(WaterjarError, match="holds a run already: pass resume=True"):
        Recorder(run_path, {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(WaterjarError, match="not empty and not a run"):
        Recorder(tmp_path / "other", {})


def test_closed_recorder(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", {})
    recorder.log(epoch=0, train={"loss": 1})
    recorder.close()
    before = content(tmp_path / "run")
    for call in (lambda: recorder.log(epoch=1, train={"loss": 1}), recorder.close, lambda: recorder.event("a", "b")):
        with pytest.raises(WaterjarError, match="is closed"):
            call()
    assert content(tmp_path / "run") == before


def test_a_fork_may_not_record(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
        recorder._pid += 1  # what a forked child would see
        with pytest.raises(WaterjarError, match="belongs to process .*, not to its fork"):
            recorder.log(epoch=1, train={"loss": 1})
        recorder._pid -= 1


def test_newer_schema(run_path: Path) -> None:
    root = root_of(run_path)
    root["attributes"]["waterjar_schema"] = 99
    (run_path / "zarr.json").write_text(json.dumps(root))
    for act in (waterjar.open_run, lambda p: Recorder(p, {}, resume=True)):
        with pytest.raises(WaterjarError, match=r"has schema 99, this waterjar reads up to \d+: pip install --upgrade"):
            act(run_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"attributes": {}}', '{"attributes": {"waterjar_schema": 1}}'])
def test_not_a_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "zarr.json").write_text(text)
    with pytest.raises(WaterjarError, match="is not a waterjar run|is damaged: its zarr.json"):
        waterjar.open_run(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match="no such file or directory"):
        waterjar.open_run(tmp_path / "nowhere")
    with pytest.raises(WaterjarError, match=r"it has no zarr.json"):
        waterjar.open_run(tmp_path)


def test_unknown_group(run_path: Path) -> None:
    run = waterjar.open_run(run_path)
    for act in (run.__getitem__, run.load):
        with pytest.raises(WaterjarError, match="group 'performanc' is unknown: did you mean 'performance'"):
            act("performanc")


def test_variables_need_repeat_in_snapshots() -> None:
    with pytest.raises(WaterjarError, match="lack 'repeat'"):
        Variable(("snapshot", "unit"), "x")


def test_storage_refuses_unknown_settings() -> None:
    with pytest.raises(WaterjarError, match="Storage: setting 'compresion' is unknown: did you mean 'compression'"):
        Storage(compresion="zstd")  # type: ignore[call-arg]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_without_permission(tmp_path: Path) -> None:  # pragma: no cover - CI runs as root
    tmp_path.chmod(0o500)
    with pytest.raises(WaterjarError, match="Permission denied"):
        Recorder(tmp_path / "run", {})


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("x")
    with pytest.raises(WaterjarError, match="could not write to"):
        Recorder(tmp_path / "run", {})


def test_a_run_without_eval_sets_has_no_performance(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run", {}) as recorder, pytest.raises(WaterjarError, match="open it with eval_sets"):
        recorder.log(epoch=0, performance={"accuracy": 0.5})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 5}, "seeds=5: expected a list of whole numbers"),
        ({"eval_sets": None}, "eval_sets=None: expected a list of names"),
        ({"eval_sets": {1: 0, "1": 0}}, "different, non-empty names"),
        ({"eval_sets": {"": 0}}, "different, non-empty names"),
        ({"classes": 5}, "classes=5: expected a list of names"),
        ({"tasks": 1.5}, "tasks=1.5: expected a list of names"),
        ({"unhashed": 5}, "unhashed=5"),
        ({"numerics": "two"}, "numerics: 'two' is not a whole number"),
        ({"data_fingerprint": 5}, "data_fingerprint=5: expected text"),
        ({"variables": [1]}, "variables=.* a mapping"),
        ({"variables": {"performance/loss": waterjar.Variable(("step", "repeat"), "x")}}, "in the schema it has"),
        ({"variables": {"train/x": 1}}, "is int; expected a Variable"),
        ({"variables": {"trian/x": Variable(("step", "repeat"), "x")}}, "group 'trian' is unknown"),
        ({"variables": {"train/stop_reason": Variable(("step", "repeat"), "x")}}, "is no name for a variable"),
        ({"variables": {"train/epoch": Variable(("step", "repeat"), "x")}}, "is no name for a variable"),
        ({"variables": {"train/../../evil": Variable(("step", "repeat"), "x")}}, "is no group for a variable"),
        ({"variables": {"probes/../evil": Variable(("step", "repeat"), "x")}}, "probe '..': expected letters"),
        ({"variables": {"train/a\nb": Variable(("step", "repeat"), "x")}}, "is no name for a variable"),
        ({"storage": {"level": 99}}, "Storage: setting 'level' is 99: expected at most"),
        ({"config": {"x": "\ud800"}}, "is not Unicode text"),
        ({"config": {"seed": 3}, "seeds": [4]}, r"seeds=\[4\], but the config says \[3\]"),
        ({"seeds": np.array([[1, 2]])}, r"seeds: array\(\[1, 2\]\) is not a whole number"),
        ({"seeds": range(10**15)}, "seeds does not fit into memory"),
        ({"tasks": range(10**15)}, "tasks does not fit into memory"),
        ({"data_fingerprint": "\udcff"}, r"data_fingerprint = '\\udcff' is not Unicode text"),
        ({"storage": [1]}, r"storage=\[1\]: expected a Storage, or a mapping of its settings"),
        ({"storage": {1: 2}}, "storage has the key 1: keys must be strings"),
        ({"variables": np.zeros(2)}, "variables=.* a mapping"),
        ({"resume": np.zeros(2)}, "resume=array.*: expected True or False"),
        ({"provenance": np.zeros(2)}, "provenance=array.*: expected True or False"),
        ({"resume_at": "x"}, "resume_at: 'x' is not a whole number"),
    ],
)
def test_more_bad_declarations(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(WaterjarError, match=message):
        Recorder(tmp_path / "run", options.pop("config", {}), **options)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


def test_a_config_that_contains_itself(tmp_path: Path) -> None:
    config: dict[str, object] = {}
    config["self"] = config
    with pytest.raises(WaterjarError, match="nested deeper than"):
        Recorder(tmp_path / "run", config)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_paths_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(WaterjarError, match="cannot be used|could not write"):
        Recorder(tmp_path / name, {})


@pytest.mark.parametrize("path", [None, 5, b"run"])
@pytest.mark.parametrize(
    "act", [Recorder, waterjar.open_run, waterjar.open_study, waterjar.verify, lambda p: from_accuracy_matrix([[1]], p)]
)
def test_what_is_no_path(act: Callable[[object], object], path: object) -> None:
    with pytest.raises(WaterjarError, match=f"path={path!r}: expected a path, such as"):
        act(path)


def test_a_variable_needs_dimensions() -> None:
    with pytest.raises(WaterjarError, match="names of dimensions"):
        Variable((), "x")


def test_the_seed_of_the_config_counts(tmp_path: Path) -> None:
    ids = set()
    for seed in (1, 2):
        with Recorder(tmp_path / str(seed), {"seed": seed}) as recorder:
            recorder.log(epoch=0, train={"loss": 1})
            ids.add(recorder.run_id)
        assert waterjar.open_run(tmp_path / str(seed)).seeds == [seed]
    assert len(ids) == 2


def test_arrays_of_a_snapshot_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    """They would make a run that no reader opens."""
    arrays = {"logits": np.zeros((1, 1, 4, 2, 3)), "collective_logits": np.zeros((1, 1, 4, 2))}
    with Recorder(tmp_path / "run", {}, eval_sets=["test"]) as recorder:
        with pytest.raises(WaterjarError, match="class=3"):
            recorder.log(epoch=0, snapshot={"streams": arrays})
        recorder.log(epoch=0, snapshot={"streams": {"logits": arrays["logits"]}})
    assert waterjar.open_run(tmp_path / "run")["streams"].sizes["class"] == 3
