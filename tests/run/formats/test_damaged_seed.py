"""Layouts with something wrong: one clear error that names the file, and nothing is left where the run would be."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from run.formats.binary_runs import foreign, record
from waterjar.errors import WaterjarError
from waterjar.run.formats.seed import export_seed_layout, import_seed_layout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign(tmp_path_factory.mktemp("whole") / "mnist" / "RL")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    return export_seed_layout(record(folder / "run"), folder).path


@pytest.fixture
def layout(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "mnist" / "RL"))


@pytest.fixture
def ours(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "glyphs" / "sl"))


def refused(layout: Path, *texts: str) -> None:
    out = layout.parent.parent / "runs" / "run"
    with pytest.raises(WaterjarError) as error:
        import_seed_layout(layout, out)
    for text in texts:
        assert text in str(error.value), str(error.value)
    assert not out.parent.exists()


def change_array(file: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    np.save(file, change(np.load(file)), allow_pickle=True)


def change_metrics(file: Path, **changed: Any) -> None:
    metrics = pickle.loads(file.read_bytes())  # noqa: S301 - ours
    for key, change in changed.items():
        metrics[key] = change(metrics[key])
    file.write_bytes(pickle.dumps({key: value for key, value in metrics.items() if value is not None}))


def change_metadata(file: Path, **changed: Any) -> None:
    about = json.loads(file.read_text())
    file.write_text(json.dumps({key: value for key, value in {**about, **changed}.items() if value != "gone"}))


def with_value(value: float, *place: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        found = array.astype(np.float64)
        found[place or (0,) * found.ndim] = value
        return found

    return change


class TestFolders:
    def test_missing_task_folders(self, layout: Path) -> None:
        shutil.rmtree(layout / "task_001")
        refused(layout, "task_001 is missing: there is task_002")

    def test_the_last_one_missing(self, layout: Path) -> None:
        shutil.rmtree(layout / "task_002")
        refused(layout, "task_000/metrics.pkl", "(4, 2, 3)", "eval=2")

    def test_none_at_all(self, layout: Path, tmp_path: Path) -> None:
        refused(layout.parent, "has no folders task_000", str(layout))
        refused(layout.parent.parent, "has no folders task_000", str(layout))
        refused(layout / "task_000", "has no folders task_000")
        refused(layout / "nowhere", "is not a directory")

    @pytest.mark.parametrize("name", ["representations.npy", "weights.npy", "binary_labels.npy", "expert_metrics.pkl"])
    def test_a_file_that_other_tasks_have(self, layout: Path, name: str) -> None:
        (layout / "task_001" / name).unlink()
        refused(layout, f"task_001/{name} is missing; other tasks have it")

    @pytest.mark.parametrize("name", ["metrics.pkl", "metadata.json"])
    def test_a_file_that_is_needed(self, layout: Path, name: str) -> None:
        (layout / "task_001" / name).unlink()
        refused(layout, f"could not read {layout / 'task_001' / name}")


class TestMetrics:
    def test_more_logged_epochs_than_in_other_tasks(self, layout: Path) -> None:
        change_metrics(layout / "task_001" / "metrics.pkl", test_acc=lambda a: a[:3])
        refused(
            layout, "task_001/metrics.pkl: test_acc has shape (3, 2, 3); expected (L=4, R=2, eval=3), as in task_000"
        )

    @pytest.mark.parametrize(
        ("key", "change", "why"),
        [
            ("test_acc", with_value(np.nan), "test_acc holds nan; expected shares"),
            ("train_acc", with_value(1.5), "train_acc holds 1.5; expected shares"),
            ("test_acc", with_value(-0.1), "test_acc holds -0.1; expected shares"),
            ("test_loss", lambda a: a[..., 0], "test_loss has shape (4, 2)"),
            ("train_loss", lambda a: a[:, :1], "train_loss has shape (4, 1); expected (L=4, R=2)"),
            ("train_loss", lambda a: None, "has no 'train_loss'"),
            ("train_loss", lambda a: ["x", "y"], "'train_loss' is not an array of numbers"),
            ("train_loss", lambda a: [[1.0], [1.0, 2.0]], "'train_loss' is not an array of numbers"),
            ("train_loss", lambda a: {"a": 1}, "'train_loss' is not an array of numbers"),
            ("train_loss", lambda a: a + 1j, "'train_loss' is not an array of numbers"),
        ],
    )
    @pytest.mark.parametrize("task", [0, 2])
    def test_wrong_values(self, layout: Path, task: int, key: str, change: Any, why: str) -> None:
        change_metrics(layout / f"task_{task:03d}" / "metrics.pkl", **{key: change})
        refused(layout, f"task_{task:03d}/metrics.pkl", why)

    def test_wrong_values_of_the_expert(self, layout: Path) -> None:
        change_metrics(layout / "task_001" / "expert_metrics.pkl", test_acc=with_value(2.0))
        refused(layout, "task_001/expert_metrics.pkl: test_acc holds 2.0")

    def test_the_first_has_no_dimensions(self, layout: Path) -> None:
        change_metrics(layout / "task_000" / "metrics.pkl", test_acc=lambda a: a[0])
        refused(layout, "task_000/metrics.pkl: test_acc has shape (2, 3); expected (L, R, eval=3)")

    @pytest.mark.parametrize("name", ["metrics.pkl", "expert_metrics.pkl"])
    def test_a_pickle_that_runs_something(self, layout: Path, tmp_path: Path, name: str) -> None:
        class Hostile:
            def __reduce__(self) -> Any:
                return os.system, (f"touch {tmp_path / 'victim'}",)

        (layout / "task_002" / name).write_bytes(pickle.dumps({"test_acc": Hostile()}))
        refused(layout, f"task_002/{name} asks for posix.system")
        assert not (tmp_path / "victim").exists()

    def test_a_truncated_pickle(self, layout: Path) -> None:
        file = layout / "task_002" / "metrics.pkl"
        file.write_bytes(file.read_bytes()[:-20])
        refused(layout, "task_002/metrics.pkl is damaged")

    def test_no_dictionary(self, layout: Path) -> None:
        (layout / "task_002" / "metrics.pkl").write_bytes(pickle.dumps([1]))
        refused(layout, "task_002/metrics.pkl holds a list, not a dictionary")


class TestArrays:
    @pytest.mark.parametrize(
        ("name", "change", "why"),
        [
            ("representations.npy", lambda a: a[:3], "(L, R, eval, S, H) with L=4 and R=2"),
            ("representations.npy", lambda a: a[0], "(L, R, eval, S, H)"),
            ("representations.npy", lambda a: a[..., :0], "(L, R, eval, S, H)"),
            ("representations.npy", lambda a: a[..., :2], "as in task_000"),
            ("representations.npy", lambda a: a.astype(np.float64), "float32, as in task_000"),
            ("representations.npy", lambda a: a.astype(object), "is not an .npy of numbers"),
            ("representations.npy", lambda a: a.astype(np.complex64), "it holds complex64"),
            ("representations.npy", lambda a: a.astype("V4"), "it holds |V4"),
            ("weights.npy", lambda a: a[:, :1], "(L, R, params)"),
            ("weights.npy", lambda a: a[..., :3], "as in task_000"),
            ("binary_labels.npy", lambda a: a[:2], "(eval=3, S=5, R=2)"),
            ("binary_labels.npy", lambda a: a[..., :1], "(eval=3, S=5, R=2)"),
            ("binary_labels.npy", lambda a: a + 1, "holds the label 2; expected 0 to 1"),
            ("binary_labels.npy", lambda a: a - 1, "holds the label -1; expected 0 to 1"),
            ("binary_labels.npy", with_value(0.5), "holds the label 0.5; expected 0 to 1"),
            ("binary_labels.npy", with_value(np.nan), "holds the label nan; expected 0 to 1"),
            ("binary_labels.npy", lambda a: 1 - a, "is not that of task_000"),
            ("binary_labels.npy", lambda a: a.astype(str), "is not an .npy of numbers"),
        ],
    )
    def test_wrong_arrays(self, layout: Path, name: str, change: Any, why: str) -> None:
        change_array(layout / "task_001" / name, change)
        refused(layout, f"task_001/{name}", why)

    @pytest.mark.parametrize("shape", [(6,), (3, 7), (2, 6), ()])
    def test_initial_weights(self, layout: Path, shape: tuple[int, ...]) -> None:
        np.save(layout / "init_weights.npy", np.zeros(shape))
        refused(layout, "init_weights.npy has shape", "expected (7,), or (2, 7) with R first")

    @pytest.mark.parametrize("contents", [b"", b"\x93NUMPY", b"hello", b"PK\x03\x04nothing"])
    @pytest.mark.parametrize("name", ["task_001/weights.npy", "init_weights.npy"])
    def test_no_npy(self, layout: Path, name: str, contents: bytes) -> None:
        (layout / name).write_bytes(contents)
        refused(layout, f"{name} is not an .npy of numbers")

    def test_an_archive_of_arrays(self, layout: Path) -> None:
        with (layout / "task_001" / "weights.npy").open("wb") as file:
            np.savez(file, a=np.zeros(3))
        refused(layout, "task_001/weights.npy is not an .npy of numbers")

    def test_a_truncated_npy(self, layout: Path) -> None:
        file = layout / "task_001" / "representations.npy"
        file.write_bytes(file.read_bytes()[:-8])
        refused(layout, "task_001/representations.npy is not an .npy of numbers")

    def test_a_header_that_promises_a_lot(self, layout: Path) -> None:
        file = layout / "task_001" / "weights.npy"
        contents = file.read_bytes()
        assert b"(4, 2, 7)" in contents
        file.write_bytes(contents.replace(b"(4, 2, 7), }" + b" " * 20, b"(4, 2, 700000000000000), }" + b" " * 6))
        refused(layout, "task_001/weights.npy is not an .npy of numbers")


class TestMetadata:
    @pytest.mark.parametrize(
        ("text", "why"),
        [("{", "is not JSON"), ("[" * 100_000, "is not JSON"), ("[1]", "a mapping"), ("\xff", "is not JSON")],
    )
    def test_not_json(self, layout: Path, text: str, why: str) -> None:
        (layout / "task_001" / "metadata.json").write_text(text, encoding="latin1")
        refused(layout, "task_001/metadata.json", why)

    @pytest.mark.parametrize(
        ("changed", "why"),
        [
            ({"class_pairs": "gone"}, "class pairs are missing"),
            ({"class_pairs": []}, "class pairs are missing"),
            ({"class_pairs": [[0, 1]]}, "per repeat (2)"),
            ({"class_pairs": [[0, 1], [0]]}, "class pairs are missing"),
            ({"class_pairs": [[0], [1]]}, "class pairs are missing"),
            ({"class_pairs": [0, 1]}, "class pairs are missing"),
            ({"class_pairs": {"a": 1}}, "class pairs are missing"),
            ({"class_pairs": [[0, "cat"], [0, 1]]}, "'cat' is not the number of a class"),
            ({"class_pairs": [[0, -1], [0, 1]]}, "'-1' is not the number of a class"),
            ({"class_pairs": [[0, True], [0, 1]]}, "'True' is not the number of a class"),
            ({"class_pairs": [[0, 2**70], [0, 1]]}, "is not the number of a class"),
            ({"class_pairs": [[0, 0], [0, 1]]}, "must be different ones"),
            ({"class_pairs": [[0, 1, 2], [0, 1, 2]]}, "3 classes, task_000 has 2"),
            ({"task_id": 5}, "task_id is 5, expected 1"),
            ({"task_id": True}, "task_id is True, expected 1"),
            ({"config": [1]}, "a mapping with task_id, class_pairs and config"),
            ({"config": {"lr": 3}}, "its config is not that of task_000"),
        ],
    )
    def test_wrong_contents(self, layout: Path, changed: dict[str, Any], why: str) -> None:
        change_metadata(layout / "task_001" / "metadata.json", **changed)
        refused(layout, "task_001/metadata.json", why)

    def test_a_config_that_is_no_plain_data(self, layout: Path) -> None:
        for place in layout.glob("task_*"):
            change_metadata(place / "metadata.json", config={"lr": float("inf")})
        refused(layout, "task_000/metadata.json: config.lr = inf")


class TestOurOwn:
    """Layouts that we wrote and somebody changed."""

    @pytest.mark.parametrize(
        ("changed", "why"),
        [
            ({"format": 2}, "is of a later waterjar"),
            ({"format": "x"}, "is of a later waterjar"),
            ({"eval_sets": ["a"]}, "not as many as there are"),
            ({"seeds": "x"}, "not as many as there are"),
            ({"seeds": [1, 1]}, "one different whole number per repeat"),
            ({"seeds": ["a", "b"]}, "is not a whole number"),
            ({"tasks": ["a", "a", "b"]}, "different, non-empty names"),
            ({"classes": 3}, "a list of names"),
            ({"probe_tasks": [0, 1, 7]}, "probe_tasks [0, 1, 7]"),
            ({"probe_tasks": [0, 1]}, "3 evaluated tasks, expected 2"),
            ({"probe_tasks": None}, "is damaged"),
            ({"steps": [1]}, "steps are not L=2"),
            ({"epochs": ["a", "b"]}, "is damaged"),
            ({"storage": {"step_dtype": "int8"}}, "step_dtype"),
            ({"storage": [1]}, "task_000"),
            ({"parameters": [["w", "2x2"]]}, "parameters are 4, weights.npy has 7"),
            ({"parameters": [["w"]]}, "is damaged"),
            ({"layer": "../x"}, "layer '../x'"),
            ({"total_epochs": [9.0, 1.0]}, "goes backwards"),
        ],
    )  # fmt: skip
    def test_wrong_notes(self, ours: Path, changed: dict[str, Any], why: str) -> None:
        file = ours / "task_000" / "metadata.json"
        change_metadata(file, waterjar={**json.loads(file.read_text())["waterjar"], **changed})
        refused(ours, "task_000", why)

    def test_without_our_notes_it_is_as_any_other(self, ours: Path, tmp_path: Path) -> None:
        change_metadata(ours / "task_001" / "metadata.json", waterjar="gone")
        found = import_seed_layout(ours, tmp_path / "run")
        assert found.run.seeds == [0, 1]
        assert "features/representations" in found.run.groups

    def test_labels_alone_must_fit_too(self, ours: Path, tmp_path: Path) -> None:
        for place in ours.glob("task_*"):
            (place / "representations.npy").unlink()
            change_array(place / "binary_labels.npy", lambda a: a[:2])
        refused(ours, "task_000/binary_labels.npy", "2 evaluated tasks, expected 3")

    def test_another_config_is_another_run(self, ours: Path, tmp_path: Path) -> None:
        for place in ours.glob("task_*"):
            change_metadata(place / "metadata.json", config={"lr": 3})
        assert "the one that was exported had" in import_seed_layout(ours, tmp_path / "run").notes[1]


def test_a_place_that_is_taken(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(WaterjarError, match="exists already"):
        import_seed_layout(whole, tmp_path / "run")


def test_stopped_in_the_middle_nothing_is_left(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from waterjar.run.formats.seed import _import

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_import, "_row", stop)
    with pytest.raises(KeyboardInterrupt):
        import_seed_layout(whole, tmp_path / "runs" / "run")
    assert list(tmp_path.iterdir()) == []
