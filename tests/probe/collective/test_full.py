"""The whole suite in one call: the seed's keys, numbers that other code confirms, a probe run, what is passed over."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tiny_collectives as tiny  # noqa: E402
import waterjar  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import LiveCollective, Outputs, adapt, coalitions, full_evaluation  # noqa: E402
from waterjar.probe.collective.evaluation import KEYS  # noqa: E402
from waterjar.probe.collective.stages import Stages  # noqa: E402

pytestmark = pytest.mark.torch

SIDE = 6
LITTLE: dict[str, Any] = {"ladders": ["seed"], "severities": [3], "attacks": ["fgsm"], "flags": False}


class OnImages(nn.Module):
    """A collective of the geofractal kind that takes images: (sample, 1, row, column)."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = tiny.RouterCollective()
        self.look = nn.Linear(SIDE * SIDE, tiny.FEATURES)
        self.streams, self.heads, self.fusion = self.inner.streams, self.inner.heads, self.inner.fusion
        self.stream_classifiers, self.classifier = self.inner.stream_classifiers, self.inner.classifier

    def forward(self, x: Any, return_individual: bool = False, return_info: bool = False) -> Any:
        return self.inner(self.look(x.flatten(1)), return_individual, return_info)


def images(count: int, seed: int) -> tuple[Any, Any]:
    """A bright stripe says the class."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, tiny.CLASSES, (count,), generator=generator)
    x = 0.6 * torch.rand(count, 1, SIDE, SIDE, generator=generator)
    for row, label in enumerate(y):
        x[row, 0, 2 * label] += 0.3
    return x, y


@pytest.fixture(scope="module")
def trained() -> OnImages:
    model: OnImages = tiny.seeded(0, OnImages)
    x, y = images(200, 0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x)[0], y).backward()
        optimiser.step()
    return model


@pytest.fixture(scope="module")
def found(trained: OnImages, tmp_path_factory: pytest.TempPathFactory) -> Any:
    sets = (images(60, 1), images(40, 2), images(50, 3))
    path = tmp_path_factory.mktemp("full") / "run"
    return full_evaluation(trained, *sets, path, robust=LITTLE, progress=False)


def test_keys_of_the_seed(found: Any) -> None:
    assert tuple(found) == KEYS
    assert list(found["emergence"]) == ["emergence_ratio", "collective_acc", "individual_accs", "best_individual"]
    assert list(found["fingerprint_diversity"]) == ["diversity", "similarity_matrix", "avg_pairwise_similarity"]
    assert list(found["robustness"]) == [
        "clean", "blur", "contrast", "gaussian_noise", "rotation", "avg_shifted", "robustness"
    ]  # fmt: skip
    assert list(found["adversarial"]) == ["clean_acc", "adv_acc", "robustness"]
    assert list(found["stream_failure"]) == ["all", "without_a", "without_b", "without_c", "half_streams"]
    assert set(found["anchor_utilization"]) == set(found["stream_contributions"]) == {"a", "b", "c"}


def test_numbers_by_the_seeds_own_code(found: Any, trained: OnImages) -> None:
    x, y = images(50, 3)
    trained.eval()
    with torch.no_grad():
        logits, info = trained(x, return_individual=True)
    accuracy = float((logits.argmax(1) == y).float().mean())
    each = {name: float((one.argmax(1) == y).float().mean()) for name, one in info["individual_logits"].items()}
    assert accuracy > 0.8
    assert found["test_acc"] == found["emergence"]["collective_acc"] == pytest.approx(accuracy)
    assert found["emergence"]["individual_accs"] == pytest.approx(each)
    assert found["emergence"]["best_individual"] in found["emergence"]["individual_accs"].values()
    assert found["params"] == sum(p.numel() for p in trained.parameters())
    assert found["efficiency"] == pytest.approx(accuracy / (found["params"] / 1e6))
    prints = nn.functional.normalize(torch.stack([head.fingerprint for head in trained.heads.values()]), dim=-1)
    similar = (prints @ prints.T).detach().numpy()
    np.testing.assert_allclose(found["fingerprint_diversity"]["similarity_matrix"], similar, atol=1e-5)
    off = np.abs(similar[~np.eye(3, dtype=bool)]).mean()
    assert found["fingerprint_diversity"]["diversity"] == pytest.approx(1 - off, abs=1e-5)
    for name, head in trained.heads.items():
        near = torch.sigmoid(head.anchors.fp_to_anchor(head.fingerprint)).detach()
        np.testing.assert_allclose(found["anchor_utilization"][name], near, rtol=1e-5)
    game = coalitions(adapt(trained), (x, y), "zeroed").accuracy()
    assert found["stream_contributions"]["b"] == pytest.approx(game["zeroed:111"] - game["zeroed:101"])
    assert found["stream_failure"]["without_b"] == pytest.approx(game["zeroed:101"])


def test_fgsm_as_the_seed_has_it(found: Any, trained: OnImages) -> None:
    x, y = images(50, 3)
    trained.eval()
    x.requires_grad_()
    (slope,) = torch.autograd.grad(nn.functional.cross_entropy(trained(x)[0], y, reduction="sum"), x)
    moved = (x + 0.03 * slope.sign()).clamp(0, 1)
    expected = float((trained(moved)[0].argmax(1) == y).float().mean())
    assert found["adversarial"]["adv_acc"] == pytest.approx(expected)
    assert found["adversarial"]["clean_acc"] == pytest.approx(found["test_acc"])


def test_one_labelled_tree(found: Any) -> None:
    metrics = found.tree["collective"]
    for name in ("emergence_ratio_probe", "emergence_ratio_isolated", "shapley_accuracy", "routing_entropy"):
        assert not np.isnan(metrics[name]).all(), name
    shapley = metrics["shapley_accuracy"].sel(absence="zeroed").isel(repeat=0, snapshot=0)
    assert shapley.sizes == {"stream": 3}
    assert list(found.tree["robustness"]["model"].values) == ["collective", "best_stream"]
    assert "rho" in repr(found)


def test_stored_as_a_run(found: Any) -> None:
    run = waterjar.open_run(found.run.path)
    assert run.status == "sealed"
    failure = run["probes/stream_failure"]["accuracy"].isel(step=0, repeat=0)
    assert float(failure.sel(failure="half_streams")) == pytest.approx(found["stream_failure"]["half_streams"])
    robust = run["probes/robustness"]["accuracy"].isel(step=0, repeat=0)
    assert float(robust.sel(model="collective", condition="fgsm/0.03")) == pytest.approx(
        found["adversarial"]["adv_acc"]
    )
    assert "removed" in found.passed_over and found.passed_over["removed"].startswith("its fusion")


def test_of_a_source_run(tmp_path: Path, trained: OnImages) -> None:
    with waterjar.Recorder(tmp_path / "training", {"lr": 0.01}, seeds=[5], tasks=["one"]) as recorder:
        for epoch in range(3):
            recorder.log(epoch=epoch, train={"loss": 1.0})
    sets = (images(20, 1), images(20, 2), images(20, 3))
    control = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 8), nn.BatchNorm1d(8), nn.Linear(8, tiny.CLASSES))
    before = {key: one.clone() for key, one in control.state_dict().items()}
    made = full_evaluation(
        trained, *sets, tmp_path / "probe", source=tmp_path / "training", control=control, robust=LITTLE, progress=False
    )
    assert control.training and all(torch.equal(one, before[key]) for key, one in control.state_dict().items())
    assert list(made.tree["robustness"]["other_model"].values) == ["best_stream", "ensemble"]
    control.eval()
    expected = float((control(sets[2][0]).argmax(1) == sets[2][1]).float().mean())
    clean = made.tree["robustness"]["accuracy"].sel(model="ensemble", condition="clean")
    assert float(clean) == pytest.approx(expected)
    assert made.run.attributes["source"]["run_id"] == waterjar.open_run(tmp_path / "training").run_id
    assert made.run["probes/stream_failure"]["step"].values.tolist() == [2]


def test_what_cannot_be_told_costs_nothing_else(tmp_path: Path) -> None:
    sets = (tiny.data(30, 1), tiny.data(30, 2), tiny.data(30, 3))
    made = full_evaluation(tiny.networks(), *sets, tmp_path / "run", progress=False)
    assert {"robustness", "adversarial", "routing", "affinity", "fingerprint"} <= set(made.passed_over)
    assert made["robustness"] == {} and made["anchor_utilization"] == {}
    assert math.isnan(made["fingerprint_diversity"]["diversity"])
    assert made["emergence"]["emergence_ratio"] > 0 and len(made["stream_contributions"]) == 3


class Broken(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.full((len(x), tiny.CLASSES), torch.nan)


class Own(LiveCollective):
    streams = ("a", "b")

    def __init__(self) -> None:
        self.module = nn.ModuleList(tiny.networks(2))

    def outputs(self, x: Any) -> Outputs:
        said = {name: net(x) for name, net in zip(self.streams, self.module, strict=True)}
        return Outputs(said["a"] * said["b"], individual=said)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tiny.networks(1),
        lambda: tiny.networks(40),
        lambda: [*tiny.networks(2), Broken()],
        lambda: [*tiny.networks(2), nn.Linear(tiny.FEATURES, 2)],
        tiny.Mixture,
        tiny.Protocol,
        lambda: tiny.RouterCollective(head=tiny.FractalHead),
        Own,
    ],
    ids=["one", "forty", "nan", "classes", "mixture", "protocol", "fractal", "own"],
)
def test_every_kind_gets_through(make: Any, tmp_path: Path) -> None:
    sets = (tiny.data(30, 1), tiny.data(30, 2), tiny.data(30, 3))
    model = make()
    made = full_evaluation(model, *sets, tmp_path / "run", progress=False)
    assert tuple(made) == KEYS
    names = adapt(model).streams
    assert set(made["emergence"]["individual_accs"]) == set(names)
    metrics = made.tree["collective"]
    if isinstance(model, Own):
        assert made["stream_failure"] == {} and made.passed_over["stream_failure"] == "no stream can be absent"
        assert made["stream_contributions"] == {}
        return
    assert set(made["stream_contributions"]) == set(names)
    if isinstance(model, list) and isinstance(model[-1], Broken):
        assert math.isnan(made["test_acc"])
        assert not np.isnan(made["emergence"]["individual_accs"]["stream_0"])
        return
    assert 0 <= made["test_acc"] <= 1 and made["stream_failure"]["all"] == pytest.approx(made["test_acc"])
    assert not np.isnan(metrics["shapley_accuracy"]).all()


def test_images_that_are_no_pixels(tmp_path: Path, trained: OnImages) -> None:
    x, y = images(20, 1)
    sets = [((x - 0.5) / 0.25, y)] * 3
    made = full_evaluation(trained, *sets, tmp_path / "a", robust=LITTLE, progress=False)
    assert "pass normalise=(mean, std)" in made.passed_over["robustness"]
    made = full_evaluation(trained, *sets, tmp_path / "b", normalise=([0.5], [0.25]), robust=LITTLE, progress=False)
    assert made["robustness"]["clean"] == pytest.approx(made["test_acc"])


def test_a_source_of_several_repeats_is_refused(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "training", {}, seeds=[1, 2]) as recorder:
        recorder.log(epoch=0, train={"loss": [1.0, 1.0]})
    sets = [tiny.data(10)] * 3
    with pytest.raises(WaterjarError, match="source has 2 repeats"):
        full_evaluation(tiny.networks(), *sets, tmp_path / "run", source=tmp_path / "training", progress=False)


def test_progress_is_said_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = [tiny.data(10)] * 3
    full_evaluation(tiny.networks(), *sets, tmp_path / "run")
    told = capsys.readouterr().err.splitlines()
    assert next(line for line in told if line.startswith("[")) == "[1/5] streams, coalitions, gradients"
    assert told[-1] == "[5/5] measuring"


def test_progress_on_a_terminal_is_one_line() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    log = Terminal()
    stages = Stages(1, log)
    stages.begin("streams")
    stages.end()
    assert "\n" not in log.getvalue() and log.getvalue().endswith("\r\x1b[K")
