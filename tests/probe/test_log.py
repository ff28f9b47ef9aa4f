"""From a probe to the diagnosis: recorded, sealed, read back."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import waterjar
from waterjar.diagnose import Result, plasticity
from waterjar.diagnose.labelled import reasons_of
from waterjar.errors import WaterjarError
from waterjar.probe import VARIABLES, record_probe
from waterjar.run.schema import REASONS

pytestmark = pytest.mark.torch


def test_recorded_and_read_back(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[5, 6], variables=VARIABLES) as recorder:
        for step in range(4):
            recorder.log(epoch=step, train={"loss": [1.0, 1.0]}, snapshot={"weights": np.ones((2, 3))})
            if step == 1:
                record_probe(recorder, "random_label_epochs", [Result(4.0), None])
            elif step == 2:
                record_probe(recorder, "sharpness", [None, Result(0.5)])
            elif step == 3:
                record_probe(recorder, "random_label_epochs", [Result(12.0), Result.missing("never_reached")])
    run = waterjar.open_run(tmp_path / "run")
    assert run["probes/random_label_epochs"].step.values.tolist() == [1, 3]
    found = plasticity.measure(run)
    np.testing.assert_array_equal(found["random_label_epochs"], [[np.nan, 4, np.nan, 12], [np.nan] * 4])
    codes = reasons_of(found, "random_label_epochs").values.tolist()
    none, never = REASONS.index("not_recorded"), REASONS.index("never_reached")
    assert codes == [[none, 0, none, 0], [none, none, none, never]]
    assert found["random_label_epochs_final"].values[0] == 12
    assert reasons_of(found, "random_label_epochs_final").values.tolist() == [0, never]
    np.testing.assert_array_equal(found["sharpness_final"], [np.nan, 0.5])
    assert run["probes/random_label_epochs"].random_label_epochs.attrs["units"] == "epoch"


def test_refused(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[5, 6]) as recorder:
        with pytest.raises(WaterjarError, match=r"probe\(\) before the first log"):
            record_probe(recorder, "sharpness", [Result(1.0), Result(1.0)])
        recorder.log(epoch=0, train={"loss": [1.0, 1.0]})
        with pytest.raises(WaterjarError, match="sharpness has 1 results; expected one for each of 2 repeats"):
            record_probe(recorder, "sharpness", Result(1.0))
        record_probe(recorder, "sharpness", [Result(1.0), Result(1.0)])
        with pytest.raises(WaterjarError, match="step 0 has probes/sharpness already"):
            record_probe(recorder, "sharpness", [Result(2.0), Result(1.0)])


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "waterjar.probe")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(WaterjarError, match=r"pip install '\.\[lab\]'"):
        import waterjar.probe  # noqa: F401
