"""What reports say of collectives: the verdict is what intervals carry, and heads at chance come before numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import waterjar
from waterjar.diagnose.robustness import ROBUSTNESS_VARIABLES
from waterjar.errors import WaterjarError
from waterjar.run.study import study_at
from waterjar.view import figures
from waterjar.view.figures.emergence import ratio_axis
from waterjar.view.report import Model, compose, model_of, write
from waterjar.view.report.blocks import Callout, Chart, Items, Report, Table, Text
from waterjar.view.report.formats import format_of
from waterjar.view.report.leads import robustness
from waterjar.view.report.leads.collective import judged, sentences
from waterjar.view.report.renderers.seed_tables import RHO_BANDS, TARGETS, band
from waterjar.view.report.sections import collective as section
from waterjar.view.report.sections import robustness as robust_section

SAMPLES, CLASSES = 90, 3
LABELS = np.arange(SAMPLES) % CLASSES
BANDS = [words.split(" (")[0] for _, words in RHO_BANDS]


def answers(share: float, seed: int) -> np.ndarray:
    """Logits that are right in this share of the samples."""
    rng = np.random.default_rng(seed)
    right = rng.permutation(SAMPLES) < round(share * SAMPLES)
    told = np.where(right, LABELS, (LABELS + 1 + rng.integers(2, size=SAMPLES)) % CLASSES)
    return 4.0 * np.eye(CLASSES)[told]


def record(
    folder: Path, name: str, heads: float, whole: float, seed: int, *, pooled: bool = True, **more: object
) -> None:
    """One collective: streams are right in a share of `heads`, the collective in `whole`; features tell all classes."""
    rng = np.random.default_rng(seed)
    streams = {stream: answers(heads, 10 * seed + i) for i, stream in enumerate("ab")}
    features = {stream: np.eye(CLASSES)[LABELS] + 0.7 * rng.normal(size=(SAMPLES, CLASSES)) for stream in "ab"}
    waterjar.from_logits(
        folder / f"{name}-{seed}", streams, collective=answers(whole, 10 * seed + 9), labels=LABELS,
        pooled=features if pooled else None, config={"method": name, "data": "toys", "seed": seed}, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = waterjar.create_study(tmp_path_factory.mktemp("c") / "study", {"analysis": {"lead": "collective"}})
    for seed in (1, 2, 3):
        record(folder, "better", 0.7, 0.99, seed, parameters=2_000_000)
        record(folder, "same", 0.8, 0.8, seed, pooled=False)
        record(folder, "heads", 1 / 3, 0.99, seed)
        record(folder, "bare heads", 1 / 3, 0.99, seed, pooled=False)
    return model_of(waterjar.open_study(folder), settings={"collective": {"resamples": 50}})


@pytest.fixture(scope="module")
def report(model: Model) -> Report:
    return compose(model)


def blocks(report: Report, name: str) -> list[object]:
    return next(list(part.blocks) for part in report.sections if part.name == name)


def test_what_is_claimed_is_what_intervals_carry(model: Model) -> None:
    said = {text.partition(" is ")[0].removeprefix("Whether "): text for text in sentences(model, brief=False)[1:]}
    assert said["better"].startswith("better is more than its parts: against ")
    assert "interval over 3 seeds; over samples, single networks reach from" in said["better"]
    assert said["same"].startswith(
        "same is not shown to be more than its parts: against the best stream among the others"
    )
    assert "No other control was recorded" in said["same"]
    assert "against the best stream under a trained linear probe" in said["heads"]  # the only fair one
    assert "cannot be told: there is no control but these heads" in said["bare heads"]


def test_the_closest_control_decides(model: Model) -> None:
    found = {one.cell: one for one in judged(model)}
    better = found["better"]
    assert better.closest == min(better.fair, key=lambda name: better.fair[name].mean)
    assert set(better.fair) == {"emergence_ratio", "emergence_ratio_probe"} and better.at_chance == (0, 3)
    assert set(found["heads"].fair) == {"emergence_ratio_probe"} and found["heads"].at_chance == (3, 3)
    assert found["bare heads"].closest == ""
    line = model.means[(model.means["metric"] == "emergence_ratio") & (model.means["cell"] == "better")].iloc[0]
    assert better.ratios["emergence_ratio"].bounds == (line["low"], line["high"])


def test_heads_at_chance_come_before_any_number(report: Report) -> None:
    first, second, *_ = blocks(report, "collective")
    assert isinstance(first, Callout) and first.kind == "warning"
    assert "Of bare heads and heads the best stream's own head is not surely above one constant answer" in first.text
    assert not any(sign.isdigit() for sign in first.text)
    assert isinstance(second, Text)


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Heads above chance that are far below what their features tell."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("w") / "study", {"analysis": {"lead": "collective"}})
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        labels = np.tile(LABELS, 5)
        features = {name: np.eye(CLASSES)[labels] + 0.2 * rng.normal(size=(len(labels), CLASSES)) for name in "ab"}
        heads = {name: np.concatenate([answers(0.45, 10 * seed + i) for _ in range(5)]) for i, name in enumerate("ab")}
        whole = np.concatenate([answers(0.99, seed)] * 5)
        waterjar.from_logits(
            folder / f"w-{seed}", heads, collective=whole, labels=labels, pooled=features,
            config={"method": "routed", "data": "toys", "seed": seed},
        )  # fmt: skip
    return model_of(waterjar.open_study(folder), settings={"collective": {"resamples": 50}})


def test_heads_far_below_their_probes_are_set_aside(weak: Model, tmp_path: Path) -> None:
    (one,) = judged(weak)
    assert one.at_chance == (0, 2) and one.below_probe == (2, 2) and set(one.fair) == {"emergence_ratio_probe"}
    warning, said = sentences(weak, brief=False)
    assert warning.startswith("Of routed the best stream's own head tells far less than a linear probe reads of the")
    assert warning.endswith("a ratio against such heads says how weak they are, and is set aside.")
    assert ": against the best stream under a trained linear probe its accuracy is 0.9" in said
    report = compose(weak)
    first, second, *_ = blocks(report, "collective")
    assert isinstance(first, Callout) and first.text == warning and isinstance(second, Text)
    tables = {table.name: table for table in blocks(report, "collective") if isinstance(table, Table)}
    assert [row[-1] for row in tables["streams"].rows] == ["far below its probe"] * 2
    aside = [row[1].endswith("set aside") for row in tables["collective_controls"].rows]
    assert aside[:4] == [True, False, False, True]  # ratio by heads, by probes, by all features; error reduction
    text = write(report, tmp_path / "r.results.md").read_text()
    line = next(line for line in text.splitlines() if line.startswith("| Emergence Ratio"))
    assert "strong emergence. Caveat: the best stream's head tells far less than a linear probe reads of" in line
    assert "Caveat" in line_of(text, "Error taken from the best stream")
    assert "(far below its probe)" in text and "streams under trained linear probes | " in text
    page = write(report, tmp_path / "r.html").read_text()
    assert "far below a linear probe" in page


def test_collectives_lead_the_first_screen(report: Report) -> None:
    callout, listed, *_ = blocks(report, "summary")
    assert isinstance(callout, Callout) and callout.text.startswith("Of bare heads and heads")
    assert isinstance(listed, Items) and any("better is more than its parts" in str(item) for item in listed.items)


def test_no_band_word_of_the_seed_is_on_the_page(report: Report, tmp_path: Path) -> None:
    page = write(report, tmp_path / "report.html").read_text()
    assert not any(words in page for words in BANDS)


def test_tables_hold_streams_and_controls(report: Report) -> None:
    tables = {one.name: one for one in blocks(report, "collective") if isinstance(one, Table)}
    streams = tables["streams"]
    assert len(streams.rows) == 4 * 2 and streams.columns[:2] == ("learner", "stream")
    flags = {(row[0], row[1]): row[-1] for row in streams.rows}
    assert flags["better", "a"] == "above chance" and flags["heads", "b"].startswith("not above chance")
    controls = tables["collective_controls"]
    column = controls.columns.index("heads")
    assert controls.rows[0][column].endswith("set aside") and "set aside" not in controls.rows[1][column]
    assert "not recorded" in [row[controls.columns.index("same")] for row in controls.rows]
    by_heads = [row for row in controls.rows if "error" in row[0] or "improvement" in row[0]]
    assert len(by_heads) == 3 and all(row[column].endswith("set aside") for row in by_heads)
    assert not any("set aside" in row[controls.columns.index("better")] for row in by_heads)
    assert "Of bare heads and heads all that is made of streams' own heads is set" in tables["collective_table"].caption
    assert {"collective_table"} <= set(tables)
    chart = next(one for one in blocks(report, "collective") if isinstance(one, Chart))
    assert chart.figure == "emergence" and len(chart.panels) == 8


def test_without_collectives_there_is_no_section_and_no_template(small: Model, tmp_path: Path) -> None:
    assert section.blocks(small) == [] and robust_section.blocks(small) == []
    with pytest.raises(WaterjarError, match="that of collectives, and there is none here"):
        write(compose(small), tmp_path / "x.results.md")


def test_the_template_is_filled_line_by_line(report: Report, tmp_path: Path) -> None:
    target = tmp_path / "report.results.md"
    assert format_of(target) == "template" and format_of(tmp_path / "report.md") == "markdown"
    text = write(report, target).read_text()
    better, heads = (
        text.partition(f"## Results for toys: {name}\n")[2].partition("\n## ")[0] for name in ("better", "heads")
    )
    for line in ("Collective Accuracy", "Best Individual Accuracy", "Emergence Ratio (ρ)", "Parameters", "Efficiency"):
        assert f"| {line} | " in better
    assert "| Collective Accuracy | 98.89% |" in better or "| Collective Accuracy | 98.89% [" in better
    assert "| Parameters | 2.0M |" in better and "% per M params" in better
    assert "| Parameters | not recorded: streams/parameters was not written |" in heads
    assert "marginal improvement (ensemble-like)" in better and "Caveat" not in better
    line = next(line for line in heads.splitlines() if line.startswith("| Emergence Ratio"))
    assert "Caveat: the best stream's head is not surely above one constant answer" in line
    assert "certifies" not in text and "(not above chance, far below its probe" in heads
    assert "| Gaussian Noise | not recorded: " in better and "| Adversarial (ε=0.03) | not recorded: " in better
    assert "- Fingerprint Diversity: not recorded: fingerprints were not recorded" in better
    for name, (baseline, target_, best) in TARGETS.items():
        assert f"| {name} | {baseline:g}% | {target_:g}% | {best:g}% |" in text
    assert "847 (0.1% → 84.68%)" in text and "9.34 (10% → 93.4%)" in text and "CLIP's features were used" in text
    assert all(root in text for root in report.roots)


def robust_study(
    folder: Path,
    seeds: tuple[int, ...],
    gain: float,
    *,
    clean: float = 0.9,
    flag: float | None = None,
    control: tuple[str, float] = ("ensemble", 0.85),
    pooled: bool = False,
) -> waterjar.Study:
    """A probe that found the collective to retain more than its control, by `gain`; under attack, too, with a flag.

    `pooled`: a linear probe of the stream's features would answer everything.
    """
    waterjar.create_study(folder)
    conditions = ["clean", "seed/blur/3", "seed/gaussian_noise/3", "fgsm/0.03", "worst/0.03"]
    names = {"model": ["collective", control[0]], "other_model": [control[0]], "condition": conditions,
             "average": ["seed/3", "seed/all"], "stream": ["a"]}  # fmt: skip
    for seed in seeds:
        accuracy = np.array([[[clean, 0.8, 0.6, 0.2, 0.1], [control[1], 0.7, 0.5, 0.2, 0.1]]])
        average = np.full((1, 1, 2), gain + 0.001 * seed)
        with waterjar.Recorder(
            folder / f"run-{seed}", {"method": "trio", "seed": seed}, seeds=[seed], eval_sets=["test"], labels=names,
            variables=ROBUSTNESS_VARIABLES,
        ) as recorder:  # fmt: skip
            recorder.once("probe_samples", label=LABELS[None, None])
            logits = answers(0.6, seed)[None, None]
            streams = {"logits": logits[:, :, :, None], "collective_logits": logits}
            streams |= {"pooled": np.eye(3)[LABELS][None, None, :, None]} if pooled else {}
            recorder.log(epoch=1, snapshot={"streams": streams})
            bounds = {"accuracy": accuracy, "accuracy_low": accuracy - 0.1, "accuracy_high": accuracy + 0.05}
            recorder.probe("robustness", bounds)
            ends = {"": average, "_low": average - 0.02, "_high": average + 0.02}
            pairs = {f"average_retained_difference{end}": one for end, one in ends.items()}
            if flag is not None:
                pairs |= {f"retained_difference{end}": np.repeat(one[..., :1], 5, 2) for end, one in ends.items()}
                recorder.probe("attack_flags", {"zero_gradient_share": np.array([[flag, 0.0]])})
            recorder.probe("robustness_pairs", pairs)
    return waterjar.open_study(folder)


@pytest.mark.parametrize(
    ("seeds", "gain", "words"),
    [
        ((1, 2, 3), 0.1, "trio is more robust than the matched ensemble under shifts"),
        ((1, 2, 3), -0.1, "trio is less robust than the matched ensemble under shifts"),
        ((1,), 0.01, "trio is not shown to be more robust than the matched ensemble under shifts"),
    ],
)
def test_robustness_is_claimed_where_the_interval_carries_it(
    seeds: tuple[int, ...], gain: float, words: str, tmp_path: Path
) -> None:
    model = model_of(robust_study(tmp_path / "study", seeds, gain), settings={"collective": {"resamples": 10}})
    (said,) = robustness.sentences(model)
    assert said.startswith(words)
    assert ("of one network: other seeds may differ" in said) == (len(seeds) == 1)
    report = compose(model)
    charts = [one for one in blocks(report, "robustness") if isinstance(one, Chart)]
    assert [one.figure for one in charts] == ["shift_severity"] and len(charts[0].panels) == 3
    text = write(report, tmp_path / "r.results.md").read_text()
    assert "| Clean | 90.00%" in text and "| Blur | 80.00%" in text and "| −10.00% |" in text
    assert "| Rotation | not recorded: seed/rotation/3 was not asked | - |" in text
    assert "| Adversarial (ε=0.03) | 20.00%" in text and "−70.00%" in text


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_a_model_at_chance_is_not_called_robust(seeds: tuple[int, ...], tmp_path: Path) -> None:
    study = robust_study(tmp_path / "study", seeds, 0.1, clean=0.35)
    (said,) = robustness.sentences(model_of(study, settings={"collective": {"resamples": 10}}))
    assert said == (
        "trio is not surely above one constant answer (accuracy 0.350, chance 0.333): whether it is more robust than "
        "the matched ensemble cannot be told."
    )


@pytest.mark.parametrize(
    ("control", "pooled", "words"),
    [
        (("best_stream", 0.35), False, "is not surely above one constant answer (accuracy 0.350, chance 0.333)"),
        (("ensemble", 0.35), False, "is not surely above one constant answer (accuracy 0.350, chance 0.333)"),
        (("best_stream", 0.85), True, "tells far less than a linear probe reads of its features"),
    ],
)
def test_a_weak_control_carries_no_claim(control: tuple[str, float], pooled: bool, words: str, tmp_path: Path) -> None:
    """More robust than guesses, or than a head that was never trained, says nothing; neither does a gain over it."""
    study = robust_study(tmp_path / "study", (1, 2), 0.1, control=control, pooled=pooled)
    model = model_of(study, settings={"collective": {"resamples": 10}})
    name = {"best_stream": "best stream", "ensemble": "matched ensemble"}[control[0]]
    assert robustness.sentences(model) == [
        f"Whether trio is more robust than the {name} cannot be told: the {name} {words}, and such a control is none."
    ]
    note = f"the {name} {words}: such a control is none"
    found = blocks(compose(model), "robustness")
    chart = next(one for one in found if isinstance(one, Chart))
    table = next(one for one in found if isinstance(one, Table) and one.name == "robustness_table")
    assert f"trio: {note}." in chart.caption and f"trio: {note}." in table.caption
    drawn = figures.draw("shift_severity", study)
    assert f"trio: {note}" in drawn.get_supxlabel().replace("\n", " ")


@pytest.mark.parametrize(("flag", "trusted"), [(0.0, True), (0.4, False)])
def test_attacks_that_are_not_to_be_trusted_carry_no_claim(flag: float, trusted: bool, tmp_path: Path) -> None:
    model = model_of(
        robust_study(tmp_path / "study", (1, 2, 3), 0.1, flag=flag), settings={"collective": {"resamples": 10}}
    )
    shifted, attacked = robustness.sentences(model)
    assert shifted.startswith("trio is more robust than the matched ensemble under shifts")
    assert attacked.startswith(f"trio is {'' if trusted else 'not shown to be '}more robust than")
    assert ("Attacks on it are not to be trusted (zero gradient share)." in attacked) != trusted
    text = write(compose(model), tmp_path / "r.results.md").read_text()
    assert ("(attacks are not to be trusted: zero gradient share)" in text) != trusted


def test_the_template_of_one_seed_has_intervals_over_samples(tmp_path: Path) -> None:
    """One number has one interval: clean accuracy is that of the collective."""
    robust_study(tmp_path / "study", (1,), 0.1, clean=0.6)
    record(tmp_path / "study", "sized", 0.5, 0.9, 2, parameters=2_000_000)
    model = model_of(waterjar.open_study(tmp_path / "study"), settings={"collective": {"resamples": 10}})
    text = write(compose(model), tmp_path / "r.results.md").read_text()
    parts = {part.partition("\n")[0].rpartition(": ")[2][:4]: part for part in text.split("\n## ")}
    ours, sized = (parts[next(name for name in parts if begin in name)] for begin in ("trio", "size"))
    for name in ("Best Individual Accuracy", "Efficiency", "Collective Accuracy"):
        line = next(line for line in sized.splitlines() if line.startswith(f"| {name} |"))
        assert "over samples" in line, line
    whole, clean = (
        next(line for line in ours.splitlines() if line.startswith(f"| {name} |")).split(" | ")[1].rstrip(" |")
        for name in ("Collective Accuracy", "Clean")
    )
    assert whole == clean and "[" in clean


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.9, 0.8, 0.99, BANDS[0]),
        (0.999, 0.994, 1.004, f"bands not told apart by its interval, from “{BANDS[0]} (failure)” to “{BANDS[1]}"),
        (3.0, 1.5, np.inf, f"bands not told apart by its interval, from “{BANDS[1]} (ensemble-like)” to “{BANDS[3]}"),
        (10.0, 2.0, 10.0, BANDS[2]),
        (1.5, np.nan, np.nan, f"{BANDS[1]} (ensemble-like), by its value alone: there is no interval"),
    ],
)
def test_a_band_is_named_where_the_interval_lies_in_it(value: float, low: float, high: float, words: str) -> None:
    assert band(RHO_BANDS, value, low, high).startswith(words)


def test_the_template_reads_the_interval(tmp_path: Path) -> None:
    """Of near equals the ratio is about 1, and its interval on both sides of it."""
    record(waterjar.create_study(tmp_path / "study"), "near", 0.7, 0.72, 1)
    model = model_of(waterjar.open_study(tmp_path / "study"), settings={"collective": {"resamples": 50}})
    text = write(compose(model), tmp_path / "r.results.md").read_text()
    assert "over samples: bands not told apart by its interval, from “" in line_of(text, "Emergence Ratio (ρ)")


def test_an_infinite_ratio_has_no_band(tmp_path: Path) -> None:
    """In one seed the best stream is never right."""
    folder = waterjar.create_study(tmp_path / "study")
    record(folder, "odd", 0.0, 0.9, 1)
    record(folder, "odd", 0.5, 0.9, 2)
    model = model_of(waterjar.open_study(folder), settings={"collective": {"resamples": 20}})
    text = write(compose(model), tmp_path / "r.results.md").read_text()
    assert "infinite in 1 of 2 seeds: the best stream is never right there. Caveat: the best stream's head is" in text
    assert "(not above chance in some seeds, " in text


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"| {name} |")).split(" | ")[1].rstrip(" |")


def test_an_interval_without_width_is_not_shown(tmp_path: Path) -> None:
    """All seeds have the same accuracy; streams without which no answer changes; one sample."""
    folder = waterjar.create_study(tmp_path / "study")
    for seed in (1, 2, 3):
        streams = dict.fromkeys("ab", answers(0.58, 5))
        waterjar.from_logits(
            folder / f"same-{seed}",
            streams,
            collective=streams["a"],
            labels=LABELS,
            config={"method": "s", "seed": seed},
        )
    one = waterjar.create_study(tmp_path / "one")
    single = {name: 4.0 * np.eye(CLASSES)[:1] for name in "ab"}
    waterjar.from_logits(one / "run", single, collective=single["a"], labels=[0], config={"method": "one"})
    for study, lines in (
        (folder, {"Collective Accuracy": "57.78%", "a": "57.78%", "Emergence Ratio (ρ)": "1.000: marginal"}),
        (one, {"Emergence Ratio (ρ)": "1.000: marginal"}),
    ):
        model = model_of(waterjar.open_study(study), settings={"collective": {"resamples": 20}})
        text = write(compose(model), tmp_path / "r.results.md").read_text()
        for name, start in lines.items():
            assert line_of(text, name).startswith(start) and "[" not in line_of(text, name)
        assert not any("1.000 [1.000, 1.000]" in said for said in sentences(model, brief=False))
        given = next(line for line in text.splitlines() if line.startswith("| a |")).split(" | ")[2]
        assert given.startswith("+0.00% (removed)")


def test_efficiency_has_the_interval_of_the_accuracy(tmp_path: Path) -> None:
    """All networks have two million parameters: the bounds are those of the accuracy, halved, and pass no 100 %."""
    folder = waterjar.create_study(tmp_path / "study")
    for seed, whole in ((1, 0.9), (2, 1.0), (3, 1.0)):
        record(folder, "sized", 0.7, whole, seed, parameters=2_000_000, trainable_parameters=1_000_000)
    model = model_of(waterjar.open_study(folder), settings={"collective": {"resamples": 20}})
    text = write(compose(model), tmp_path / "r.results.md").read_text()
    ends = {}
    for name in ("Collective Accuracy", "Efficiency", "Efficiency, trainable parameters"):
        inside = line_of(text, name).partition("[")[2].partition("]")[0]
        ends[name] = np.array([float(end) for end in inside.split(", ")])
    whole, half, trained = ends.values()
    np.testing.assert_allclose(half, whole / 2, atol=0.006)
    np.testing.assert_allclose(trained, whole, atol=0.006)
    assert whole[1] <= 100.0


def test_the_template_says_that_labels_are_missing(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    streams = {"a": answers(0.5, 1), "b": answers(0.5, 2)}
    gate = np.full((SAMPLES, 2), 0.5)
    waterjar.from_logits(folder / "run", streams, collective="mean_logit", routing=gate, config={"method": "bare"})
    text = write(compose(model_of(waterjar.open_study(folder))), tmp_path / "r.results.md").read_text()
    why = "not recorded: no sample has a label (probe_samples/label)"
    for name in ("Collective Accuracy", "Best Individual Accuracy", "Emergence Ratio (ρ)", "ρ, streams alone"):
        assert line_of(text, name) == why
    assert f"| a | {why} | {why} |" in text and "the training loop" not in text
    assert "- Fingerprint Diversity: not recorded: fingerprints were not recorded" in text
    assert "- Average Routing Entropy: 0.693" in text


def test_the_template_says_that_something_is_no_number(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "study")
    streams = {"a": answers(0.5, 1), "b": answers(0.5, 2) * np.nan}
    waterjar.from_logits(folder / "run", streams, collective=streams["a"], labels=LABELS, config={"method": "broken"})
    text = write(compose(model_of(waterjar.open_study(folder))), tmp_path / "r.results.md").read_text()
    assert "not recorded: not a number (what was recorded for it holds NaN)" in text and "the training loop" not in text


def charts_of(study: waterjar.Study) -> dict[str, Chart]:
    model = model_of(study, settings={"collective": {"resamples": 20}})
    found = [*section.blocks(model), *robust_section.blocks(model)]
    return {one.name: one for one in found if isinstance(one, Chart)}


def test_the_page_bounds_the_axis_of_ratios_as_the_figure_does(tmp_path: Path) -> None:
    """plotly takes the ends of a log axis as exponents; an interval of a ratio of few right answers is endless."""
    folder = waterjar.create_study(tmp_path / "study")
    for seed, heads in ((1, 0.02), (2, 0.3)):
        record(folder, "odd", heads, 0.99, seed, pooled=False)
    panel = charts_of(waterjar.open_study(folder))["emergence"].panels[1]
    axis = panel["layout"]["yaxis"]
    ratios = figures.data("emergence", waterjar.open_study(folder), resamples=20).query("panel == 'ratio'")["mean"]
    low, high, ticks = ratio_axis(ratios[np.isfinite(ratios)])
    assert axis["type"] == "log" and ticks and axis["tickvals"] == ticks
    np.testing.assert_allclose(10.0 ** np.array(axis["range"]), [low, high])
    assert all(min(trace["y"]) >= low for trace in panel["data"])  # 0 has no place there


def test_a_lone_snapshot_has_its_interval(tmp_path: Path) -> None:
    record(waterjar.create_study(tmp_path / "study"), "one", 0.7, 0.9, 1)
    panels = charts_of(waterjar.open_study(tmp_path / "study"))["emergence"].panels
    for panel in panels:
        whiskers = [one for one in panel["data"] if len(one["y"]) == 2 and one["x"][0] == one["x"][1]]
        points = [one for one in panel["data"] if one["mode"] == "lines+markers"]
        assert len(points) == len(whiskers) > 1


def test_panels_of_shifts_are_told_apart(tmp_path: Path) -> None:
    """One collective has no name in their titles; several have a line of their own."""
    chart = charts_of(robust_study(tmp_path / "study", (1,), 0.1))["shift_severity"]
    titles = [panel["layout"]["title"]["text"] for panel in chart.panels]
    assert titles == ["<b>blur</b>", "<b>gaussian noise</b>", "<b>attacks</b>"]


def test_streams_that_fail_look_as_the_caption_says(tmp_path: Path) -> None:
    run = waterjar.Recorder(
        tmp_path / "run", {"seed": 1}, eval_sets=["test"], labels={"failure": ["all", "without_a", "half_streams"]},
        variables=ROBUSTNESS_VARIABLES,
    )  # fmt: skip
    with run as recorder:
        recorder.log(epoch=1, train={"loss": 1.0})
        recorder.probe("stream_failure", {"accuracy": np.array([[0.9, 0.5, 0.4]])})
    model = model_of(study_at(tmp_path / "run"))
    (chart,) = (one for one in robust_section.blocks(model) if isinstance(one, Chart))
    (panel,) = chart.panels
    whole, without, half = panel["data"]
    assert [one["y"] for one in panel["data"]] == [[0.0], [1.0], [2.0]]  # each in its own row
    assert whole["marker"]["color"] == "#0072B2" != without["marker"]["color"] != half["marker"]["color"]
    (line,) = panel["layout"]["shapes"]
    assert line["x0"] == line["x1"] == 0.9 and line["line"]["color"] == "#0072B2"
    assert "all streams (blue, and the line)" in chart.caption
