"""An honest run, an edited one and one of another machine: three different true answers."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import waterjar
from waterjar import Recorder
from waterjar.run.sameness import compare_runs

NUMBER = itertools.count()


def made(
    folder: Path, *, noise: float = 0.0, torch: str = "2.13.0", threads: int = 1, edit: Any = None, **more: Any
) -> Any:
    """A training whose loss depends on all before it; `noise` enters at step 2 and stays, an `edit` does not spread."""
    path = folder / str(next(NUMBER))
    recorder = Recorder(path, {"learner": "x"}, eval_sets=["test"], provenance=False, **more)
    sessions = recorder._writer.attributes["provenance"]["sessions"]
    sessions[-1] |= {"versions": {"torch": torch}, "threads": threads, "host": {"processor": "p", "cores": 2}}
    weights = np.linspace(-1, 1, 8)
    for step in range(6):
        if step:
            weights = weights - 0.1 * np.sin(3 * weights) + (noise if step == 2 else 0.0)
        loss = float((weights**2).sum())
        accuracy = round(0.5 + step / 20, 2)
        values = {"accuracy": accuracy, "loss": loss}
        values |= edit.get(step, {}) if edit else {}
        recorder.log(
            epoch=step, performance=values, train={"loss": loss / 2}, resources={"seconds": float(next(NUMBER))},
            snapshot={"weights": {"w": weights.astype(np.float32)}} if step % 2 == 0 else None,
        )  # fmt: skip
    recorder.event("note", "done")
    recorder.close()
    return waterjar.open_run(path)


def test_an_honest_run_is_equal(tmp_path: Path) -> None:
    found = compare_runs(made(tmp_path), made(tmp_path))
    assert (found.verdict, found.differences, found.surroundings) == ("equal", [], {})
    assert str(found) == "equal: every number is the same to the bit."


@pytest.mark.parametrize("size", [0.2, 1e-9])
@pytest.mark.parametrize("torch", ["2.13.0", "2.12.0"])
def test_an_edited_number_differs_however_small_and_whatever_the_provenance_says(
    tmp_path: Path, size: float, torch: str
) -> None:
    found = compare_runs(made(tmp_path, edit={3: {"accuracy": 0.65 + size}}, torch=torch), made(tmp_path))
    assert found.verdict == "differs" and found.vanishes
    assert [(one.array, one.step) for one in found.differences] == [("performance/accuracy", 3)]
    assert str(found).startswith("differs from step 3, array performance/accuracy on, by")
    assert "goes away again at later steps" in str(found)
    assert ("torch: 2.12.0 then, 2.13.0 now" in str(found)) == (torch == "2.12.0")


def test_an_edited_last_step_differs_where_all_was_made_alike(tmp_path: Path) -> None:
    found = compare_runs(made(tmp_path, edit={5: {"accuracy": 0.7501}}), made(tmp_path))
    assert found.verdict == "differs" and not found.vanishes
    assert "Versions, threads and machine are the same, so the bits should be" in str(found)


def test_another_version_or_thread_count_is_within_tolerance(tmp_path: Path) -> None:
    for about in ({"torch": "2.12.0"}, {"threads": 4}):
        found = compare_runs(made(tmp_path, noise=1e-7, **about), made(tmp_path))
        assert found.verdict == "within tolerance" and not found.vanishes
        assert found.differences[0].step == 2 and 0 < found.differences[0].largest < 1e-5
        name, value = next(iter(about.items()))
        assert f"{name}: {value} then" in str(found) and "within tolerance: not the same bits, from step 2" in str(
            found
        )
    far = compare_runs(made(tmp_path, noise=0.5, threads=4), made(tmp_path))
    assert far.verdict == "differs" and "threads: 4 then, 1 now" in str(far)
    assert (
        compare_runs(made(tmp_path, noise=0.5, threads=4), made(tmp_path), tolerance=10.0).verdict == "within tolerance"
    )
    same = compare_runs(made(tmp_path, noise=1e-7), made(tmp_path))  # alike, so the bits should be equal
    assert same.verdict == "differs"


def test_what_is_missing_or_added_differs(tmp_path: Path) -> None:
    gone = compare_runs(made(tmp_path, edit={3: {"accuracy": waterjar.missing("empty_set")}}), made(tmp_path))
    assert gone.verdict == "differs" and "performance/accuracy" in str(gone)
    assert any(one.array == "performance/accuracy_reason" for one in gone.differences)
    sizes = compare_runs(made(tmp_path, eval_sizes={"test": 100}), made(tmp_path, eval_sizes={"test": 99}))
    assert str(sizes).startswith(
        "differs from array the root's eval_sizes on, {'test': 100} recorded, {'test': 99} now"
    )
    more = compare_runs(made(tmp_path), made(tmp_path, edit={s: {"top5_accuracy": 1.0} for s in range(6)}))
    assert more.verdict == "differs" and more.differences[0].words == "not recorded"
