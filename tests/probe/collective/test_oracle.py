"""The real torchensemble: what its models answer is what their adapted estimators answer together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
from waterjar.probe.collective import adapt, coalitions  # noqa: E402
from waterjar.probe.collective.still import measured  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

MODELS = {
    "VotingClassifier": "mean_probability",
    "BaggingClassifier": "mean_probability",
    "FusionClassifier": "mean_logit",
    "SnapshotEnsembleClassifier": "mean_probability",
    "GradientBoostingClassifier": "sum_logit",
    "SoftGradientBoostingClassifier": "sum_logit",
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(tiny.FEATURES, 16), nn.ReLU(), nn.Linear(16, tiny.CLASSES))

    def forward(self, x: Any) -> Any:
        return self.net(x)


@pytest.mark.parametrize("kind", MODELS)
def test_answers_as_torchensemble_does(kind: str) -> None:
    torchensemble = pytest.importorskip("torchensemble")
    x, y = tiny.data(64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(torchensemble, kind)(estimator=Net, n_estimators=3, cuda=False)
        model.set_optimizer("Adam", lr=1e-2)
        loader = DataLoader(TensorDataset(x, y), batch_size=32)
        model.fit(loader, epochs=3, log_interval=1000, save_model=False)
    collective = adapt(model)
    with measured(model):
        found = torch.softmax(collective.logits(x), dim=1)
        torch.testing.assert_close(found, model(x), atol=1e-5, rtol=1e-4)
    assert collective.rule == MODELS[kind]
    full = coalitions(collective, (x, y)).accuracy()["removed:111"]
    np.testing.assert_allclose(full, (model.eval()(x).argmax(dim=1) == y).float().mean())
