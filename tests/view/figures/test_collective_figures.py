"""Figures of collectives: the numbers that are drawn are those of small collectives whose answers are known by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar.diagnose.robustness import ROBUSTNESS_VARIABLES
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError
from waterjar.view import figures
from waterjar.view.figures.fingerprint_map import principal_plane

LABELS = np.array([0, 0, 1, 1, 2, 2])
RIGHT = {"a": [1, 1, 1, 1, 0, 0], "b": [0, 0, 1, 1, 1, 0], "c": [1, 0, 0, 0, 1, 1]}
NAMES = ("emergence", "routing", "fingerprint_map", "contributions", "shift_severity", "stream_failure")


def logits(right: object, sure: float = 3.0) -> np.ndarray:
    """Sure of the label where it is right, of the next class where it is not."""
    told = np.where(np.asarray(right, bool), LABELS, (LABELS + 1) % 3)
    return np.eye(3)[told] * sure


def routes(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.dirichlet(np.ones(2), size=(2, 6, 4)) for name in RIGHT}


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    """Two runs of one cell, two snapshots: at first nobody is right, then streams as in RIGHT."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("hand") / "study")
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        waterjar.from_logits(
            folder / f"run-{seed}",
            {name: np.stack([logits(np.zeros(6)), logits(own)]) for name, own in RIGHT.items()},
            collective=np.stack([logits(np.zeros(6)), logits([1, 1, 1, 1, 1, 0])]),
            labels=LABELS,
            isolated={name: np.stack([logits(np.zeros(6)), logits([1, 0, 1, 0, 0, 0])]) for name in RIGHT},
            routing=routes(seed),
            fingerprints={name: rng.normal(size=(2, 5)) for name in RIGHT},
            epochs=[0, 4],
            config={"method": "trio", "seed": seed},
        )
    return waterjar.open_study(folder)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    """One seed, one snapshot, a collective that its streams make: nothing else."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("mixed") / "study")
    streams = {name: logits(own, 3.0 + i) for i, (name, own) in enumerate(RIGHT.items())}
    waterjar.from_logits(folder / "run", streams, collective="mean_logit", labels=LABELS, config={"method": "mean"})
    return waterjar.open_study(folder)


def test_emergence_by_hand(hand: waterjar.Study) -> None:
    table = figures.data("emergence", hand)
    course = table[table.panel == "course"].set_index(["what", "total_epoch"])["mean"]
    assert course["collective", 4.0] == pytest.approx(5 / 6) and course["a", 4.0] == pytest.approx(4 / 6)
    assert course["c", 0.0] == 0.0 and course["chance", 4.0] == pytest.approx(1 / 3)
    ratio = table[(table.panel == "ratio") & (table.total_epoch == 4.0)].set_index("what")["mean"]
    assert ratio["emergence_ratio"] == pytest.approx(5 / 4)
    assert ratio["emergence_ratio_isolated"] == pytest.approx(5 / 2)
    final = table[table.panel == "final"].set_index("what")
    assert final.loc["best_stream", "mean"] == pytest.approx(4 / 6)
    assert final.loc["best_isolated", "mean"] == pytest.approx(2 / 6)
    assert np.isnan(final.loc["best_probe", "mean"])  # no features
    assert final.loc[["a", "b", "c"], "at_chance"].tolist() == [1.0, 1.0, 1.0]  # six samples show nothing
    assert set(final.loc[final["mean"].notna(), "n"]) == {2}


def test_emergence_draws_what_its_table_has(hand: waterjar.Study) -> None:
    figure = figures.draw("emergence", hand)
    left, middle, right = figure.axes
    heights = {tuple(np.round(np.asarray(line.get_ydata(), float), 6)) for line in left.get_lines()}
    assert (0.0, round(5 / 6, 6)) in heights and (0.0, round(4 / 6, 6)) in heights
    assert {1.0, 2.0} <= {float(np.asarray(line.get_ydata())[0]) for line in middle.get_lines()}
    assert next(text.get_text() for text in right.get_yticklabels()) == "collective"
    note = figure.get_supxlabel()
    assert "not surely above chance" in note and "not recorded: best stream, linear probe" in note
    assert left.get_title(loc="left") == "trio: accuracy"


def test_of_one_seed_the_interval_is_over_samples(mixed: waterjar.Study) -> None:
    table = figures.data("emergence", mixed)
    own = table[(table.panel == "final") & (table.what == "collective")].iloc[0]
    assert own["bounds"] == "samples" and own["low"] < own["mean"] < own["high"]
    assert "over samples, which speaks of that network alone" in figures.draw("emergence", mixed).get_supxlabel()


def test_contributions_by_hand(mixed: waterjar.Study) -> None:
    table = figures.data("contributions", mixed)
    # sums of logits 3, 4, 5: the surest stream decides, but where the two others agree against it
    sums = {name: logits(own, 3.0 + i) for i, (name, own) in enumerate(RIGHT.items())}

    def accuracy(*who: str) -> float:
        if not who:
            return 1 / 3
        return float((np.sum([sums[name] for name in who], 0).argmax(-1) == LABELS).mean())

    lost = table[table.metric == "ablation"].set_index("stream")["mean"]
    assert lost["a"] == pytest.approx(accuracy("a", "b", "c") - accuracy("b", "c"))
    assert lost["c"] == pytest.approx(accuracy("a", "b", "c") - accuracy("a", "b"))
    shared = table[table.metric == "shapley_accuracy"]["mean"]
    assert shared.sum() == pytest.approx(accuracy("a", "b", "c") - accuracy())
    pairs = table[table.metric == "interaction"].set_index(["stream", "other_stream"])["mean"]
    assert len(pairs) == 6 and pairs["a", "b"] == pytest.approx(pairs["b", "a"])
    both = accuracy("a", "b") - accuracy("a") - accuracy("b") + accuracy()
    rest = accuracy("a", "b", "c") - accuracy("a", "c") - accuracy("b", "c") + accuracy("c")
    assert pairs["a", "b"] == pytest.approx((both + rest) / 2)
    assert set(table["absence"]) == {"removed"}
    left = figures.draw("contributions", mixed).axes[0]
    widths = [bar.get_width() for bars in left.containers for bar in bars]
    np.testing.assert_allclose(widths, [*lost, *shared])


def test_contributions_that_nobody_knows(hand: waterjar.Study) -> None:
    with pytest.raises(WaterjarError, match="it takes coalitions"):
        figures.data("contributions", hand)  # at the end; at epoch 0 all streams answer as the collective does
    with pytest.raises(WaterjarError, match="'gone' is unknown"):
        figures.data("contributions", hand, absence="gone")


def test_routing_by_hand(hand: waterjar.Study) -> None:
    table = figures.data("routing", hand)
    expected = np.mean([routes(seed)["b"][1].mean(0) for seed in (1, 2)], axis=0)
    own = table[table.stream == "b"].pivot(index="slot", columns="route", values="mean")
    np.testing.assert_allclose(own, expected)
    assert set(table["n"]) == {2} and set(table["samples"]) == {6} and set(table["total_epoch"]) == {4.0}
    one = figures.data("routing", hand, sample=3, seed=2)
    np.testing.assert_allclose(one[one.stream == "c"]["mean"], routes(2)["c"][1, 3].ravel())
    assert set(one["seed"]) == {2} and set(one["sample"]) == {3}
    start = figures.data("routing", hand, at="start", seed=1)
    np.testing.assert_allclose(start[start.stream == "a"]["mean"], routes(1)["a"][0].mean(0).ravel())
    by_target = figures.data("routing", hand, by="target")  # route k goes to target k here
    np.testing.assert_allclose(by_target["mean"], table["mean"])
    assert "sample 3 of the scored ones, seed 2" in figures.draw("routing", hand, sample=3, seed=2).get_supxlabel()
    with pytest.raises(WaterjarError, match="sample=9: expected 0 to 5"):
        figures.data("routing", hand, sample=9)
    with pytest.raises(WaterjarError, match="'middle' is unknown"):
        figures.data("routing", hand, at="middle")
    with pytest.raises(WaterjarError, match="of seed 7"):
        figures.data("routing", hand, seed=7)


def test_fingerprints_lie_on_their_principal_components(hand: waterjar.Study) -> None:
    rng = np.random.default_rng(1)
    prints = {name: rng.normal(size=(2, 5)) for name in RIGHT}
    end = np.stack([prints[name][1] for name in RIGHT])
    variances, axes = np.linalg.eigh(np.cov(end.T))
    order = np.argsort(variances)[::-1][:2]
    table = figures.data("fingerprint_map", hand)
    now = table[table["at"] == "end"]
    for letter, place in zip("xy", order, strict=True):
        np.testing.assert_allclose(np.abs(now[letter]), np.abs((end - end.mean(0)) @ axes[:, place]), atol=1e-6)
        np.testing.assert_allclose(now[f"share_{letter}"], variances[place] / variances.sum())
    before = table[table["at"] == "start"].set_index("stream")
    plane = principal_plane(end.astype(np.float32))
    np.testing.assert_allclose(before.loc["b", ["x", "y"]].to_numpy(float),
                               (prints["b"][0] - plane.centre) @ plane.axes.T, atol=1e-5)  # fmt: skip
    assert set(table["seed"]) == {1} and set(figures.data("fingerprint_map", hand, seed=2)["seed"]) == {2}


@pytest.mark.oracle
def test_the_plane_is_that_of_scikit_learn() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    points = np.random.default_rng(3).normal(size=(7, 12))
    other, own = decomposition.PCA(2).fit(points), principal_plane(points)
    np.testing.assert_allclose(np.abs(own.axes), np.abs(other.components_))
    np.testing.assert_allclose(own.shares, other.explained_variance_ratio_)


def test_planes_of_few_points() -> None:
    assert np.isnan(principal_plane([[1.0, 2.0, 3.0]]).shares).all()
    assert principal_plane([[0.0, 0.0], [1.0, 1.0]]).shares.tolist() == pytest.approx([1.0, 0.0])
    assert principal_plane([[1.0], [2.0]]).shares.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_rounding_is_no_direction(shift: float, tmp_path: Path) -> None:
    """Two streams span a line, and fingerprints that are the same nothing at all, wherever they lie."""
    for seed in range(10):
        one, other = np.random.default_rng(seed).normal(size=(2, 64)) + shift
        plane = principal_plane([one, other])
        assert plane.shares.tolist() == [1.0, 0.0] and (plane.axes[1] == 0).all()
        x = (np.stack([one, other]) - plane.centre) @ plane.axes[0]
        assert abs(x[0] - x[1]) == pytest.approx(np.linalg.norm(one - other))
        assert np.isnan(principal_plane([one, one, one]).shares).all()
    streams = {name: logits(RIGHT[name]) for name in "ab"}
    prints = dict(zip("ab", np.random.default_rng(0).normal(size=(2, 64)) + shift, strict=True))
    run = waterjar.from_logits(tmp_path / "run", streams, labels=LABELS, collective="vote", fingerprints=prints)
    table = figures.data("fingerprint_map", run)
    assert table["y"].tolist() == [0.0, 0.0] and table["share_y"].tolist() == [0.0, 0.0]
    drawn = figures.draw("fingerprint_map", run)
    assert drawn.axes[0].get_ylim() == (-1.0, 1.0) and not len(drawn.axes[0].get_yticks())


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> waterjar.Study:
    """Two seeds, robustness as it was found: accuracies by hand."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("probed") / "study")
    conditions = ["clean", "seed/blur/1", "seed/blur/3", "fgsm/0.03"]
    labels = {
        "model": ["collective", "ensemble"],
        "condition": conditions,
        "failure": ["all", "without_a", "half_streams"],
    }
    for seed in (1, 2):
        accuracy = np.array([[0.9, 0.8, 0.6, 0.2], [0.8, 0.7, 0.5, 0.1]]) + 0.02 * seed
        bounds = {"accuracy": accuracy, "accuracy_low": accuracy - 0.1, "accuracy_high": accuracy + 0.05}
        lost = np.array([[0.9, 0.7, 0.5]]) - 0.1 * (seed - 1)
        with waterjar.Recorder(
            folder / f"run-{seed}", {"method": "trio", "seed": seed}, seeds=[seed], eval_sets=["test"], labels=labels,
            variables=ROBUSTNESS_VARIABLES,
        ) as recorder:  # fmt: skip
            recorder.log(epoch=1, performance={"accuracy": 0.9})
            recorder.probe("robustness", {name: one[None] for name, one in bounds.items()})
            recorder.probe(
                "stream_failure", {"accuracy": lost, "accuracy_low": lost - 0.1, "accuracy_high": lost + 0.1}
            )
    return waterjar.open_study(folder)


def test_shifts_and_attacks_by_hand(probed: waterjar.Study) -> None:
    table = figures.data("shift_severity", probed)
    blur = table[(table.condition == "blur") & (table.model == "ensemble")].set_index("severity")["mean"]
    assert blur[0] == pytest.approx(0.83) and blur[1] == pytest.approx(0.73) and blur[3] == pytest.approx(0.53)
    assert set(blur.index) == {0, 1, 3}  # what was not recorded is no row
    attack = table[table.kind == "attack"].set_index("model")
    assert attack.loc["collective", "mean"] == pytest.approx(0.23)
    assert attack.loc["collective", ["condition", "eps"]].tolist() == ["fgsm", "0.03"]
    assert set(table["n"]) == {2} and set(table["bounds"]) == {"seeds"}
    panels = figures.draw("shift_severity", probed).axes
    assert panels[0].get_title(loc="left") == "trio\nblur (seed)" and panels[1].get_title(loc="left") == "\nattacks"
    alone = figures.data("shift_severity", probed.run("run-1"))
    assert set(alone["bounds"]) == {"samples"}
    assert (alone["mean"] - alone["low"]).to_numpy() == pytest.approx(np.full(len(alone), 0.1))


def test_failures_by_hand(probed: waterjar.Study) -> None:
    table = figures.data("stream_failure", probed).set_index("failure")
    assert table["mean"].tolist() == pytest.approx([0.85, 0.65, 0.45])
    assert table["lost"].tolist() == pytest.approx([0.0, 0.2, 0.4])
    assert table["stream"].tolist() == ["", "a", ""]
    (ax,) = figures.draw("stream_failure", probed).axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["all streams", "without a", "a random half"]


@pytest.mark.parametrize("streams", [1, 40])
def test_one_stream_and_forty(streams: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(streams)
    folder = waterjar.create_study(tmp_path / "study")
    own = {f"s{i}": rng.normal(size=(30, 3)) for i in range(streams)}
    waterjar.from_logits(
        folder / "run", own, collective="mean_probability", labels=np.arange(30) % 3, config={"method": "x"},
        routing={name: rng.dirichlet(np.ones(3), size=(30, 2)) for name in own},
        fingerprints={name: rng.normal(size=8) for name in own},
    )  # fmt: skip
    found = diagnose(waterjar.open_study(folder), settings={"collective": {"resamples": 10, "shapley_samples": 4}})
    for name in NAMES[:4]:
        figure = figures.draw(name, found)
        figure.draw_without_rendering()
        box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
        assert box.x0 >= -0.05 and box.y0 >= -0.05 and box.x1 <= width + 0.05 and box.y1 <= height + 0.05, name
    said = {text.get_text() for name in NAMES[:4] for ax in figures.draw(name, found).axes for text in ax.texts}
    assert ("one stream: it spans no plane" in said) == (streams == 1)
    assert any("more than 8 streams" in text for text in said) == (streams == 40)


@pytest.mark.parametrize("name", NAMES)
def test_without_its_data_each_says_so(name: str, tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    waterjar.from_logits(folder / "run", {"a": logits(RIGHT["a"])}, config={"method": "x"})  # no labels, no collective
    with pytest.raises(WaterjarError) as caught:
        figures.draw(name, waterjar.open_study(folder))
    assert len(str(caught.value)) > 30


def test_long_names_of_cells_do_not_run_into_other_titles(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    for i, config in enumerate(({"seed": 0}, {"probe": "full_evaluation", "model": "_Modules", "evaluation_seed": 0})):
        waterjar.from_logits(
            folder / f"run-{i}", {"a": logits(RIGHT["a"])}, collective="vote", labels=LABELS, config=config
        )
    figure = figures.draw("emergence", diagnose(waterjar.open_study(folder), settings={"collective": {"resamples": 5}}))
    figure.draw_without_rendering()
    for left, middle, _ in np.reshape(np.array(figure.axes, object), (-1, 3)):
        title = max((text.get_window_extent().x1 for text in (left.title, left._left_title)), default=0.0)
        assert title < middle.get_window_extent().x0
