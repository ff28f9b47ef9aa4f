"""Every network of the shelf as the network of binary tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.binary.tiny_binary import tiny
from waterjar.errors import WaterjarError
from waterjar.lab.binary import train_binary
from waterjar.lab.data import ImageData
from waterjar.run.reader import open_run

pytestmark = pytest.mark.torch
SMALL = {
    "small_cnn": {"width": 4},
    "vit": {"patch": 16, "dim": 8, "depth": 1, "heads": 2},
}
"""Those that other tests do not train: of mlp and cnn see `test_training`."""


@pytest.mark.parametrize("name", SMALL)
def test_it_trains_one_after_the_other_and_at_once(tmp_path: Path, glyphs: ImageData, name: str) -> None:
    """Stacked or not, the same numbers to float tolerance."""
    tasks = {"number": 2}
    config = tiny(network=name, network_settings=SMALL[name], tasks=tasks, recording={"weights": True})
    loop, vmap = (
        open_run(train_binary(config, glyphs, tmp_path / engine, checkpoints=tmp_path, device="cpu", engine=engine))
        for engine in ("loop", "vmap")
    )
    weights = loop["weights"].weights.values
    assert not np.array_equal(weights[0], weights[-1])
    np.testing.assert_allclose(weights, vmap["weights"].weights.values, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize(("name", "settings"), [("resnet18", {"width": 1}), ("small_cnn", {"norm": "batch"})])
def test_batch_norm_is_one_error_before_training(
    tmp_path: Path, glyphs: ImageData, name: str, settings: dict[str, object], repeats: int
) -> None:
    config = tiny(network=name, network_settings=settings, repeats=repeats)
    with pytest.raises(WaterjarError, match=f"network '{name}' normalises over the batch and keeps running averages"):
        train_binary(config, glyphs, tmp_path / "run", checkpoints=tmp_path / "c", device="cpu")
    assert not (tmp_path / "run").exists()
