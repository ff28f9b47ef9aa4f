"""Metrics of robustness, measured of runs whose numbers were written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from waterjar import Recorder, WaterjarError, open_run, open_study
from waterjar.diagnose.registry import find_family
from waterjar.diagnose.robustness import (
    FLAGS,
    ROBUSTNESS_VARIABLES,
    Robustness,
    measure,
    record_robustness,
    robustness_labels,
)
from waterjar.diagnose.study import diagnose
from waterjar.run.rows import Reasoned
from waterjar.run.study import create_study
from waterjar.testing import check_metric

CONDITIONS = ("clean", "seed/blur/1", "seed/blur/3", "seed/contrast/3", "fgsm/0.03", "worst/0.03", "worst/8:255")
FAILURES = ["all", "without_left", "without_right", "half_streams"]


def answers(*rows: str) -> np.ndarray:
    return np.array([[sign == "1" for sign in row] for row in rows])


COLLECTIVE = answers("1111111100", "1111111000", "1111110000", "1111000000", "1110000000", "1000000000", "0000000000")
ENSEMBLE = answers("1111111111", "1111111111", "1100000011", "1100000011", "1110000011", "1100000000", "0000000000")
STREAM = answers("1111000000", "1111000000", "1111000000", "1111000000", "1000000000", "1000000000", "0000000000")


def found(flags: bool = True, shift: int = 0) -> Robustness:
    values = {name: np.array([0.0, 0.5, 0.0]) for name in FLAGS} if flags else {}
    if flags:
        values["zero_gradient_share"] = np.array([0.2, 0.0, 0.0])
        values["square_beats_white_box"] = np.array([np.nan, 0.0, 0.0])
    correct = np.stack([np.roll(COLLECTIVE, shift, 1), ENSEMBLE, STREAM])
    return Robustness(("collective", "ensemble", "best_stream"), CONDITIONS, correct, values)


def record(path: Path, *, failure: bool = True, each: tuple[Robustness, ...] = ()) -> Path:
    each = each or (found(),)
    labels = {**robustness_labels(each[0]), "failure": FAILURES}
    with Recorder(path, {}, variables=ROBUSTNESS_VARIABLES, labels=labels) as recorder:
        for epoch, one in enumerate(each):
            recorder.log(epoch=epoch, train={"loss": 1.0})
            record_robustness(recorder, one)
        if failure:
            numbers = np.array([[0.8, 0.7, 0.5, 0.6]])
            recorder.probe("stream_failure", {
                "accuracy": numbers, "accuracy_low": numbers - 0.1, "accuracy_high": numbers + 0.1,
            })  # fmt: skip
    return path


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory):
    return measure(open_run(record(tmp_path_factory.mktemp("robust") / "run")))


@pytest.mark.parametrize("name", sorted(find_family("robustness").metrics))
def test_keeps_the_contract(name):
    check_metric(name)


class TestByHand:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("avg_shifted", (6 + 4) / 20),
            ("shift_robustness", 0.5 / 0.8),
            ("adversarial_accuracy", 0.1),
            ("adversarial_robustness", 0.1 / 0.8),
            ("robustness_gain", (2 / 4 * 2) / 2),  # of the four that all had right, 4 and 4 are kept, and 2 and 2
            ("adversarial_gain", 1 / 4 - 2 / 4),
            ("failure_drop", 0.8 - 0.5),
            ("half_streams_drop", 0.8 - 0.6),
            ("attack_flags_raised", 2),  # slopes of 0, and noise, whose limit lies below 0
        ],
    )
    def test_one_number(self, measured, name, value):
        assert measured[f"{name}_final"].item() == pytest.approx(value, abs=1e-6)
        assert measured[name].item() == pytest.approx(value, abs=1e-6)

    def test_curves(self, measured):
        curve = measured.shifted_accuracy.isel(repeat=0, snapshot=0).sel(
            model="collective", ladder="seed", shift="blur"
        )
        assert curve.severity.values.tolist() == [1, 2, 3, 4, 5]
        np.testing.assert_allclose(curve, [0.7, np.nan, 0.6, np.nan, np.nan], atol=1e-6)
        why = measured.shifted_accuracy_reason.isel(repeat=0, snapshot=0).sel(
            model="collective", ladder="seed", shift="contrast"
        )
        assert why.values.tolist() == [1, 1, 0, 1, 1]
        gain = measured.shift_gain.isel(repeat=0, snapshot=0).sel(other_model="ensemble", ladder="seed", severity=3)
        np.testing.assert_allclose(gain, [0.5, 0.5], atol=1e-6)

    def test_where_curves_begin(self, measured):
        clean = measured.model_clean_accuracy.isel(repeat=0, snapshot=0)
        assert dict(zip(clean.model.values, clean.values.round(6), strict=True)) == {
            "collective": 0.8, "ensemble": 1.0, "best_stream": 0.4,
        }  # fmt: skip
        assert float(measured.model_clean_accuracy_high.sel(model="ensemble")[0, 0]) == 1.0

    def test_tables_of_attacks(self, measured):
        table = measured.attacked_accuracy.isel(repeat=0, snapshot=0).sel(model="ensemble")
        assert float(table.sel(attack="fgsm", eps="0.03")) == pytest.approx(0.5)
        assert float(table.sel(attack="worst", eps="8/255")) == 0.0
        assert np.isnan(table.sel(attack="fgsm", eps="8/255"))

    def test_bounds(self, measured):
        own = found()
        assert float(measured.robustness_gain_low.isel(repeat=0, snapshot=0)) == pytest.approx(
            own.average_retained_difference[1][0, list(own.averages).index("seed/3")], abs=1e-6
        )
        assert float(measured.avg_shifted_low[0, 0]) < 0.5 < float(measured.avg_shifted_high[0, 0])

    def test_failures_and_flags_by_name(self, measured):
        assert float(measured.failure_accuracy.sel(failure="without_right")[0, 0]) == pytest.approx(0.5)
        raised = measured.attack_flag_raised.isel(repeat=0, snapshot=0)
        assert float(raised.sel(flag="zero_gradient_share")) == 1.0
        assert np.isnan(raised.sel(flag="square_beats_white_box"))
        assert measured.attrs["robustness_control"] == "ensemble"


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "name", "value"),
        [
            ({"severity": "all"}, "avg_shifted", (7 + 6 + 4) / 30),
            ({"severity": 1}, "avg_shifted", 0.7),
            ({"model": "best_stream"}, "avg_shifted", 0.4),
            ({"attack": "fgsm"}, "adversarial_accuracy", 0.3),
            ({"attack": "fgsm", "epsilon": 0.03}, "adversarial_accuracy", 0.3),
            ({"epsilon": "8/255"}, "adversarial_accuracy", 0.0),
            ({"control": "best_stream"}, "robustness_gain", 0.0),
            ({"control": "best_stream", "attack": "fgsm"}, "adversarial_gain", 2 / 4),
        ],
    )
    def test_choose(self, tmp_path, settings, name, value):
        result = measure(open_run(record(tmp_path / "run")), **settings)
        assert result[f"{name}_final"].item() == pytest.approx(value, abs=1e-6)

    def test_what_was_not_recorded(self, tmp_path):
        result = measure(open_run(record(tmp_path / "run")), ladder="cifar_c", epsilon="0.5")
        for name in ("avg_shifted_final", "robustness_gain_final", "adversarial_accuracy_final"):
            assert np.isnan(result[name]) and result[f"{name}_reason"].values.tolist() == [1]

    def test_a_difference_is_that_of_the_first_model(self, tmp_path):
        result = measure(open_run(record(tmp_path / "run")), model="best_stream")
        assert np.isnan(result.robustness_gain_final)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"model": "collectiv"}, "did you mean 'collective'"),
            ({"control": "collective"}, "control 'collective' is unknown"),
            ({"severity": 6}, "severity"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, settings, words):
        with pytest.raises(WaterjarError, match=words):
            measure(open_run(record(tmp_path / "run")), **settings)


class TestWhatIsNotThere:
    def test_the_last_probe_counts(self, tmp_path):
        two = measure(open_run(record(tmp_path / "run", each=(found(shift=3), found()))))
        assert two.sizes["snapshot"] == 2
        assert two.avg_shifted_final.item() == pytest.approx(0.5)
        assert two.failure_drop_final.item() == pytest.approx(0.3) and np.isnan(two.failure_drop[0, 0])

    def test_no_failures_and_no_flags(self, tmp_path):
        result = measure(open_run(record(tmp_path / "run", failure=False, each=(found(flags=False),))))
        for name in ("failure_drop", "half_streams_drop", "attack_flags_raised", "effective_robustness"):
            assert np.isnan(result[f"{name}_final"]) and result[f"{name}_final_reason"].values.tolist() == [1]
        assert result.avg_shifted_final.item() == pytest.approx(0.5)

    def test_failures_alone(self, tmp_path):
        with Recorder(tmp_path / "run", {}, variables=ROBUSTNESS_VARIABLES, labels={"failure": FAILURES}) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
            codes = np.zeros((1, 4), np.uint8)
            recorder.probe("stream_failure", {"accuracy": Reasoned(np.array([[0.8, 0.7, 0.5, 0.6]]), codes)})
        result = measure(open_run(tmp_path / "run"))
        assert result.failure_drop_final.item() == pytest.approx(0.3) and np.isnan(result.avg_shifted_final)

    def test_one_stream_that_is_nan(self, tmp_path):
        with Recorder(tmp_path / "run", {}, variables=ROBUSTNESS_VARIABLES, labels={"failure": FAILURES}) as recorder:
            recorder.log(epoch=0, train={"loss": 1.0})
            recorder.probe("stream_failure", {"accuracy": np.array([[0.8, np.nan, 0.5, 0.6]])})
        result = measure(open_run(tmp_path / "run"))
        assert result.failure_drop_final_reason.values.tolist() == [2]
        assert result.half_streams_drop_final.item() == pytest.approx(0.2)

    def test_nothing_right_when_clean(self, tmp_path):
        wrong = Robustness(("m",), ("clean", "seed/blur/3", "worst/0.03"), np.zeros((1, 3, 5), bool))
        result = measure(open_run(record(tmp_path / "run", each=(wrong,))))
        assert result.shift_robustness_final_reason.values.tolist() == [6]
        assert result.avg_shifted_final.item() == 0.0 and np.isnan(result.robustness_gain_final)


class TestStudies:
    def test_of_probe_runs(self, tmp_path):
        """Trainings without any probe, and what was looked into after: one cell, two seeds, another control each."""
        declared = {"families": ["robustness"], "settings": {"robustness": {"severity": "all"}}}
        create_study(tmp_path / "study", {"analysis": declared})
        for seed in (1, 2):
            config = {"method": "collective", "seed": seed}
            place = tmp_path / "study" / f"run-{seed}"
            with Recorder(place, config) as recorder:
                recorder.log(epoch=0, train={"loss": 1.0})
                recorder.log(epoch=1, train={"loss": 0.5})
            one = found(flags=False, shift=seed - 1)
            with Recorder(
                tmp_path / "study" / f"probe-{seed}", {"probe": "robustness", "seed": seed}, source=place,
                variables=ROBUSTNESS_VARIABLES, labels=robustness_labels(one),
            ) as recorder:  # fmt: skip
                recorder.log(epoch=1, step=1, total_epoch=1, monitor={"probed": 1.0})
                record_robustness(recorder, one)
        result = diagnose(open_study(tmp_path / "study")).results["robustness"]
        assert result.sizes["cell"] == 1 and result.sizes["seed"] == 2
        expected = [
            one.average_accuracy[0][0, list(one.averages).index("seed/all")] for one in (found(), found(shift=1))
        ]
        np.testing.assert_allclose(result.avg_shifted_final.values[0], expected, atol=1e-6)
        assert result.shifted_accuracy.dims == ("cell", "seed", "snapshot", "model", "ladder", "shift", "severity")

    def test_settings_as_a_command_line_has_them(self):
        family = find_family("robustness")
        assert family.settings({"severity": "all", "epsilon": 0.03}).epsilon == 0.03
        assert family.settings({"severity": 2, "epsilon": "8/255"}).severity == 2
