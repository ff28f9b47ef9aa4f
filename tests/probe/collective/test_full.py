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
from waterjar.diagnose.result import NOT_A_NUMBER  # noqa: E402
from waterjar.errors import WaterjarError  # noqa: E402
from waterjar.probe.collective import (  # noqa: E402
    LiveCollective,
    Outputs,
    adapt,
    coalitions,
    collective_labels,
    full_evaluation,
    record_collective,
)
from waterjar.probe.collective.evaluation import KEYS  # noqa: E402
from waterjar.probe.collective.full import _pixels  # noqa: E402
from waterjar.probe.collective.stages import Stages  # noqa: E402
from waterjar.view.report import compose, model_of, write  # noqa: E402
from waterjar.view.report.blocks import Callout  # noqa: E402
from waterjar.view.report.sections import robustness as robust_section  # noqa: E402

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


def test_a_trained_network_has_no_value_before_training(found: Any) -> None:
    metrics = found.tree["collective"]
    assert np.isfinite(metrics["disagreement_final"].values).all()
    assert np.isnan(metrics["disagreement_initial"].values).all()


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


def test_of_another_network_than_the_source_recorded(tmp_path: Path) -> None:
    """The evaluation and what is shown of its source say that these are two networks."""
    sets = dict(zip(("train", "val", "test"), (images(20, 1), images(20, 2), images(30, 3)), strict=True))
    model = adapt(tiny.seeded(0, OnImages))
    with waterjar.Recorder(
        tmp_path / "runs" / "one", {"seed": 0}, eval_sets=list(sets), labels=collective_labels(model)
    ) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
        record_collective(recorder, model, sets)
    about: dict[str, Any] = {"source": tmp_path / "runs" / "one", "robust": LITTLE, "progress": False}
    assert full_evaluation(model, *sets.values(), tmp_path / "same", **about).remark == ""
    other = full_evaluation(tiny.seeded(1, OnImages), *sets.values(), tmp_path / "runs" / "two", **about)
    assert other.remark.startswith("two was not made of the network that one recorded at step 0") and (
        other.remark in repr(other)
    )
    model_of_it = model_of(waterjar.open_study(tmp_path / "runs"), settings={"collective": {"resamples": 10}})
    first = robust_section.blocks(model_of_it)[0]
    assert isinstance(first, Callout) and other.remark in first.text
    template = write(compose(model_of_it), tmp_path / "out.results.md").read_text()
    assert f"Numbers of two networks stand side by side: {other.remark}." in template


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


@pytest.mark.parametrize("count", [9, 12, 40])
def test_shares_of_many_streams_are_all_that_there_is(count: int, tmp_path: Path) -> None:
    """Above 8 streams, where orders are sampled: the sum is exact, and the interval is wider than that over samples."""
    x, y = images(130, 4)
    nets = [tiny.seeded(i, lambda: nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 3))) for i in range(count)]
    found = full_evaluation(
        adapt(nets, rule="mean_logit"), (x[:20], y[:20]), (x[20:30], y[20:30]), (x[30:], y[30:]), tmp_path / "run",
        robust=LITTLE, progress=False,
    )  # fmt: skip
    told = found.tree["collective"].to_dataset().isel(repeat=0, snapshot=0)
    nobody = np.bincount(y[30:].numpy()).max() / 100
    shares = told["shapley_accuracy"].sel(absence="removed")
    assert float(shares.sum()) == pytest.approx(float(told["collective_accuracy"]) - nobody, abs=1e-12)
    for kind in ("accuracy", "log_likelihood"):
        error = told[f"shapley_{kind}_se"].sel(absence="removed")
        half = (told[f"shapley_{kind}_high"] - told[f"shapley_{kind}_low"]).sel(absence="removed") / 2
        assert (error > 0).all() and (half > 1.96 * error).all()
    assert not np.isnan(told["ablation"].sel(absence="removed")).any()
    for left_out in ("zeroed", "resampled"):
        assert "more than 8" in found.passed_over[left_out]
        assert left_out in str(told["collective_remarks"].item())


def refused(tmp_path: Path, capsys: Any, match: str, **given: Any) -> None:
    """Before any stage."""
    sets = given.pop("sets", (images(20, 1), images(10, 2), images(10, 3)))
    with pytest.raises(WaterjarError, match=match):
        full_evaluation(on_images(2), *sets, tmp_path, **given)
    assert not capsys.readouterr().err


def on_images(count: int) -> Any:
    return adapt([tiny.seeded(i, lambda: nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 3))) for i in range(count)])


def test_a_path_that_holds_a_run_is_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with waterjar.Recorder(tmp_path / "run", {}, summary=False) as recorder:
        recorder.log(epoch=0, train={"loss": 1.0})
    capsys.readouterr()  # what the recorder said
    refused(tmp_path / "run", capsys, "holds a run already: expected a path at which there is nothing yet")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note").write_text("mine")
    refused(tmp_path / "other", capsys, "is not empty: expected")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"robust": {"foo": [9]}}, "robust: setting 'foo'"),
        ({"robust": {"severities": [9]}}, "robust: severity 9: expected one of 1, 2, 3, 4, 5"),
        ({"robust": {"attacks": ["zap"]}}, "zap"),
        ({"robust": {"attacks": ["fgsm"], "settings": {"fgsm": {"stride": 1}}}}, "fgsm: setting 'stride'"),
        ({"robust": {"shifts": ["fog"]}}, "fog"),
        ({"robust": {"eps": -1.0}}, "eps"),
        ({"absences": ["gone"]}, "absence 'gone'"),
        ({"orders": 0}, "orders=0"),
        ({"draws": 0}, "draws=0"),
        ({"control": "x"}, "control is a str"),
        ({"source": "nowhere"}, "nowhere"),
        ({"sets": [(x, y + 5) for x, y in (images(9, 1), images(9, 2), images(9, 3))]},
         "labels of set 'train' go up to 7, and the collective has 3 classes: expected 0 to 2"),
    ],
)  # fmt: skip
def test_refused_before_any_stage(
    given: dict[str, Any], match: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(tmp_path / "run", capsys, match, **given)
    assert not (tmp_path / "run").exists()


def test_images_too_small_to_be_blurred_cost_robustness_alone(tmp_path: Path) -> None:
    x, y = torch.rand(30, 1, 3, 3), torch.arange(30) % 2
    pair = adapt([nn.Sequential(nn.Flatten(), nn.Linear(9, 2)) for _ in range(2)])
    found = full_evaluation(pair, *[(x, y)] * 3, tmp_path / "small", progress=False)
    assert not math.isnan(found["test_acc"]) and found["robustness"] == {}
    assert found.passed_over["robustness"] and found.passed_over["adversarial"]
    assert "uint8" in str(_pixels((255 * x).to(torch.uint8), None))


def test_an_attack_that_is_left_out_is_said(tmp_path: Path) -> None:
    x, y = torch.rand(12, 1, SIDE, SIDE), torch.arange(12) % 2
    pair = adapt([nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 2)) for _ in range(2)])
    few = {"apgd_ce": {"steps": 2, "restarts": 1}, "pgd": {"steps": 2}, "square": {"queries": 2}}
    robust = {"severities": [3], "ladders": ["seed"], "flags": False, "settings": few}
    found = full_evaluation(pair, *[(x, y)] * 3, tmp_path / "two", robust=robust, progress=False)
    assert "three classes" in found.passed_over["apgd_dlr"]


class Silent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(SIDE * SIDE, 3)

    def forward(self, x: Any) -> Any:
        return self.inner(x.flatten(1)) * float("nan")


def test_a_stream_of_nan_is_missing_and_named(tmp_path: Path) -> None:
    one, other = (nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 3)) for _ in range(2))
    trio = adapt({"one": one, "silent": Silent(), "other": other})
    sets = (images(60, 1), images(40, 2), images(50, 3))
    found = full_evaluation(trio, *sets, tmp_path / "run", robust=LITTLE, progress=False)
    assert math.isnan(found["test_acc"])
    assert "silent" in found.passed_over["not_a_number"] and "one" not in found.passed_over["not_a_number"]
    assert "NaN" in found.passed_over["adversarial"] and found["adversarial"] == {}
    assert list(found["stream_contributions"]) == ["one", "silent", "other"]
    assert all(map(math.isnan, found["stream_contributions"].values()))
    failure = found["stream_failure"]
    assert math.isnan(failure["all"]) and math.isnan(failure["without_one"]) and failure["without_silent"] > 0
    stored = found.run["probes/stream_failure"].isel(step=0, repeat=0)
    assert math.isnan(stored["accuracy"].sel(failure="all")) and math.isnan(stored["accuracy_low"].sel(failure="all"))
    assert set(stored["accuracy_reason"].values.tolist()) == {0, NOT_A_NUMBER}
    told = found.tree["collective"].to_dataset().isel(repeat=0, snapshot=0)
    for name in ("ablation", "shapley_accuracy"):
        assert np.isnan(told[name]).all()
        assert (told[f"{name}_reason"].sel(absence="removed") == NOT_A_NUMBER).all()


def test_an_absence_named_twice_counts_once(tmp_path: Path) -> None:
    """And one that is not in a list is a list of one; all others are refused before anything is run."""
    sets = (tiny.data(20, 1), tiny.data(20, 2), tiny.data(20, 3))
    model = adapt(tiny.networks())
    for name, asked in (("twice", ["removed", "removed"]), ("alone", "removed")):
        made = full_evaluation(model, *sets, tmp_path / name, absences=asked, progress=False)
        assert len(made.run.attributes["labels"]["coalition"]) == 2 ** len(model.streams) - 1
    assert collective_labels(model, "removed") == collective_labels(model, ["removed"] * 2)
    with pytest.raises(WaterjarError, match="absence 'gone'"):
        full_evaluation(model, *sets, tmp_path / "gone", absences="gone", progress=False)
