"""Evaluation sets: all shapes in which people have them, and one clear sentence for the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective.samples import samples_of  # noqa: E402

pytestmark = pytest.mark.torch

X, Y = torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 2, 0, 1, 2])


class Stream(IterableDataset):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return zip(X, Y, strict=True)


def as_mapping(rows: Any) -> dict[str, Any]:
    xs, ys = zip(*rows, strict=True)
    return {"left": torch.stack(xs), "right": -torch.stack(xs), "labels": torch.stack(ys)}


@pytest.mark.parametrize(
    "given",
    [
        (X, Y),
        (X.numpy(), Y.tolist()),
        TensorDataset(X, Y),
        DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True, drop_last=True),
        Stream(),
        DataLoader(Stream(), batch_size=4),
    ],
)
def test_all_kinds(given: Any) -> None:
    found = samples_of(given)
    assert torch.equal(found.inputs, X)
    np.testing.assert_array_equal(found.labels, Y)


def test_inputs_by_name() -> None:
    found = samples_of(DataLoader(TensorDataset(X, Y), batch_size=4, collate_fn=as_mapping))
    rows = found.rows(np.array([5, 0]), torch.device("cpu"))
    assert torch.equal(rows["right"], -X[[5, 0]])
    assert len(found.first(2)) == 2 and torch.equal(found.first(2).inputs["left"], X[:2])
    alone = samples_of(
        DataLoader(TensorDataset(X, Y), collate_fn=lambda rows: {"x": rows[0][0][None], "y": rows[0][1]})
    )
    assert torch.equal(alone.inputs, X)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, "expected \\(inputs, labels\\)"),
        ((X, Y[:3]), "expected as many"),
        ((X, Y.float()), "expected whole numbers"),
        ((X, Y - 1), "expected 0 and above"),
        (DataLoader(TensorDataset(X)), "a batch of data is a list"),
        ((X[:0], Y[:0]), "at least one"),
    ],
)
def test_what_is_wrong_is_said(given: Any, told: str) -> None:
    with pytest.raises(WaterjarError, match=told):
        samples_of(given)


def test_no_other_sample() -> None:
    with pytest.raises(WaterjarError, match="no other one"):
        samples_of((X[:1], Y[:1])).others(0)
    with pytest.raises(WaterjarError, match="batch_size=0"):
        list(samples_of((X, Y)).batches(0))
