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
from waterjar.probe import VARIABLES, ProbeLog
from waterjar.run.schema import REASONS

pytestmark = pytest.mark.torch


def test_recorded_and_read_back(tmp_path: Path) -> None:
    log = ProbeLog(repeats=2)
    with waterjar.Recorder(tmp_path / "run", {}, seeds=[5, 6], variables=VARIABLES) as recorder:
        for step in range(4):
            recorder.log(epoch=step, train={"loss": [1.0, 1.0]}, snapshot={"weights": np.ones((2, 3))})
        log.add("random_label_epochs", step=3, result=Result.missing("never_reached", censored=True), repeat=1)
        log.add("random_label_epochs", step=3, result=Result(12.0), repeat=0)
        log.add("random_label_epochs", step=1, result=Result(4.0), repeat=0)  # in any order
        log.add("sharpness", step=2, result=Result(0.5), repeat=1)
        log.write(recorder)
        log.write(recorder)  # as a resumed script does
    found = plasticity.measure(waterjar.open_run(tmp_path / "run"))
    np.testing.assert_array_equal(found["random_label_epochs"], [[np.nan, 4, np.nan, 12], [np.nan] * 4])
    codes = reasons_of(found, "random_label_epochs").values.tolist()
    none, never = REASONS.index("not_recorded"), REASONS.index("never_reached")
    assert codes == [[none, 0, none, 0], [none, none, none, never]]
    assert found["random_label_epochs_final"].values[0] == 12
    assert reasons_of(found, "random_label_epochs_final").values.tolist() == [0, never]
    np.testing.assert_array_equal(found["sharpness_final"], [np.nan, 0.5])
    assert found["random_label_epochs"].attrs["units"] == "epoch"


def test_refused() -> None:
    log = ProbeLog(repeats=1)
    with pytest.raises(WaterjarError, match="did you mean 'sharpness'"):
        log.add("sharpnes", step=0, result=Result(1.0))
    with pytest.raises(WaterjarError, match="from 0 to 0"):
        log.add("sharpness", step=0, result=Result(1.0), repeat=1)
    log.add("sharpness", step=0, result=Result(1.0))
    with pytest.raises(WaterjarError, match="added before"):
        log.add("sharpness", step=0, result=Result(2.0))


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "waterjar.probe")
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(WaterjarError, match=r"pip install 'waterjar\[lab\]'"):
        import waterjar.probe  # noqa: F401
