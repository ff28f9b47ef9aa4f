"""Robustness of live models beside their controls, and what a run keeps of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from robust_models import MEAN, STD, Saturated, TwoClasses, blobs, normalised, trained  # noqa: E402
from waterjar import Recorder, WaterjarError, open_run  # noqa: E402
from waterjar.diagnose.robustness import FLAGS, attack_result, raised_flags, shift_result  # noqa: E402
from waterjar.probe import (  # noqa: E402
    ROBUSTNESS_VARIABLES,
    attack,
    record_robustness,
    robustness,
    robustness_labels,
    shift,
)

pytestmark = pytest.mark.torch
NORMALISE = (MEAN, STD)
QUICK = {
    "pgd": {"steps": 5}, "apgd_ce": {"steps": 5, "restarts": 1}, "apgd_dlr": {"steps": 5, "restarts": 1},
    "square": {"queries": 20},
}  # fmt: skip


@pytest.fixture(scope="module")
def models():
    first, second, third = (trained(seed) for seed in range(3))
    members = [copy.deepcopy(one).eval() for one in (first, second, third)]
    return {
        "collective": lambda x: torch.stack([one(x).softmax(1) for one in members]).mean(0).log(),
        "best_stream": first,
        "ensemble": lambda x: torch.stack([one(x) for one in members]).mean(0),
    }


@pytest.fixture(scope="module")
def found(models):
    images, labels = blobs(60, seed=4)
    references = {f"checkpoint {steps}": trained(steps=steps) for steps in (3, 6, 12)}
    return robustness(
        models, images, labels, normalise=NORMALISE, eps=["seed", "8/255"], settings=QUICK, references=references
    )


class TestFound:
    def test_conditions(self, found):
        shifts = [label for label in found.conditions if label.count("/") == 2]
        assert len(shifts) == 4 * 5 + 3 * 5 and "cifar_c/rotation/1" not in found.conditions
        attacks = [label for label in found.conditions if label.count("/") == 1]
        assert attacks[:7] == [
            f"{how}/0.03" for how in (*("fgsm", "pgd", "apgd_ce", "apgd_dlr", "square", "noise"), "worst")
        ]
        assert attacks[-1] == "worst/8:255"
        assert found.models == ("collective", "best_stream", "ensemble")
        assert found.correct.shape == (3, 1 + 35 + 14, 60)

    def test_answers_are_those_of_the_models(self, found, models):
        images, labels = blobs(60, seed=4)
        network = copy.deepcopy(models["best_stream"]).eval()

        def right(pixels):
            return (network(normalised(pixels)).argmax(1) == labels).numpy()

        row = dict(zip(found.conditions, found.correct[1], strict=True))
        np.testing.assert_array_equal(row["clean"], right(images))
        np.testing.assert_array_equal(row["seed/rotation/4"], right(shift(images, "rotation", 4)))
        np.testing.assert_array_equal(
            row["cifar_c/gaussian_noise/2"], right(shift(images, "gaussian_noise", 2, ladder="cifar_c"))
        )
        pgd = attack(network, images, labels, "pgd", eps="8/255", normalise=NORMALISE, steps=5)
        np.testing.assert_array_equal(row["pgd/8:255"], pgd.right)

    def test_the_worst_is_worse_than_all(self, found):
        places = [i for i, label in enumerate(found.conditions) if label.endswith("/0.03")]
        every = found.correct[:, places[:-1]].all(1) & found.correct[:, 0]
        np.testing.assert_array_equal(found.correct[:, places[-1]], every)

    def test_keys_of_the_seed(self, found):
        assert set(shift_result(found)) == {
            "clean", "gaussian_noise", "contrast", "blur", "rotation", "avg_shifted", "robustness",
        }  # fmt: skip
        assert set(attack_result(found)) == {"clean_acc", "adv_acc", "robustness"}

    def test_flags_of_every_model(self, found):
        assert set(found.flags) == set(FLAGS) and all(values.shape == (3,) for values in found.flags.values())

    def test_references(self, found):
        assert found.references.shape == (3, 36, 60)
        assert np.isfinite(found.average_effective[0]).all()

    def test_batches_change_nothing(self, models):
        images, labels = blobs(30, seed=4)
        one, other = (
            robustness({"m": models["best_stream"]}, images, labels, normalise=NORMALISE, settings=QUICK, batch_size=n)
            for n in (30, 7)
        )
        assert (one.correct != other.correct).mean() < 0.01  # sums of batches are rounded otherwise


class TestChoices:
    def test_shifts_alone_and_one_of_ones_own(self, models):
        images, labels = blobs(20)

        def fog(images, severity, draws):
            return images + 0.1 * severity

        found = robustness(
            models,
            images,
            labels,
            shifts=["blur", fog],
            ladders=["seed"],
            severities=[3],
            attacks=(),
            normalise=NORMALISE,
        )
        assert found.conditions == ("clean", "seed/blur/3", "own/fog/3") and not found.flags

    def test_attacks_alone(self, models):
        images, labels = blobs(20)
        found = robustness(
            models, images, labels, shifts=(), attacks=["fgsm"], eps=0.1, flags=False, normalise=NORMALISE
        )
        assert found.conditions == ("clean", "fgsm/0.1", "worst/0.1")

    def test_two_classes_leave_one_attack_out_and_say_so(self):
        rng = np.random.default_rng(0)
        images, labels = rng.uniform(0, 1, (10, 1, 8, 8)), np.arange(10) % 2
        model = TwoClasses(torch.from_numpy(rng.normal(size=64)).float(), 0.0)
        quick = {name: options for name, options in QUICK.items() if name != "apgd_dlr"}
        found = robustness({"m": model}, images, labels, shifts=(), settings=quick)
        assert "apgd_dlr/0.03" not in found.conditions and "three classes" in found.notes[0]

    def test_a_normalisation_for_each(self):
        images, labels = blobs(30)
        inside = copy.deepcopy(trained()).eval()
        models = {"outside": trained(), "inside": lambda x: inside(normalised(x))}
        found = robustness(models, images, labels, attacks=["fgsm"], normalise={"outside": NORMALISE}, flags=False)
        np.testing.assert_array_equal(found.correct[0], found.correct[1])

    def test_a_model_that_hides_its_slopes_is_flagged_beside_one_that_does_not(self):
        images, labels = blobs(60)
        models = {"hidden": Saturated(copy.deepcopy(trained())), "open": trained()}
        found = robustness(models, images, labels, shifts=(), eps=0.06, settings=QUICK, normalise=NORMALISE)
        hidden, plain = ({name: values[row] for name, values in found.flags.items()} for row in (0, 1))
        assert "zero_gradient_share" in raised_flags(hidden) and "zero_gradient_share" not in raised_flags(plain)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"models": {}}, "at least one"),
            ({"references": {"m": trained()}}, "each name once"),
            ({"ladders": ["seeds"]}, "did you mean 'seed'"),
            ({"shifts": ["rotation"], "ladders": ["cifar_c"]}, "on none of the ladders"),
            ({"settings": {"pdg": {}}}, "did you mean 'pgd'"),
            ({"normalise": {"n": None}}, "normalise: model"),
        ],
    )
    def test_what_is_wrong_is_said(self, change, words):
        images, labels = blobs(4)
        with pytest.raises(WaterjarError, match=words):
            robustness(**{"models": {"m": trained()}, "images": images, "labels": labels, **change})


class TestRecorded:
    def test_stands_in_the_run(self, found, tmp_path):
        labels = robustness_labels(found)
        with Recorder(tmp_path / "run", {}, variables=ROBUSTNESS_VARIABLES, labels=labels) as recorder:
            for epoch in range(2):
                recorder.log(epoch=epoch, train={"loss": 1.0})
                record_robustness(recorder, found)
        run = open_run(tmp_path / "run")
        own, pairs, flags = (run.load(f"probes/{name}") for name in ("robustness", "robustness_pairs", "attack_flags"))
        assert own.accuracy.dims == ("step", "repeat", "model", "condition") and own.sizes["step"] == 2
        for name, (value, low, high) in {"accuracy": found.accuracy, "retained": found.retained}.items():
            for end, expected in (("", value), ("_low", low), ("_high", high)):
                np.testing.assert_allclose(own[name + end].isel(step=1, repeat=0), expected, atol=1e-6)
        assert own.accuracy.sel(model="ensemble", condition="clean").isel(step=0, repeat=0) == pytest.approx(
            found.accuracy[0][2, 0]
        )
        np.testing.assert_allclose(pairs.difference.isel(step=0, repeat=0), found.difference[0], atol=1e-6)
        assert list(pairs.other_model.values) == ["best_stream", "ensemble"]
        assert float(own.n.isel(step=0, repeat=0)) == 60
        assert set(FLAGS) <= {str(name) for name in flags.data_vars} and flags.sizes["model"] == 3
        assert "long_name" in own.effective_robustness.attrs

    def test_one_for_each_repeat(self, found, tmp_path):
        with Recorder(
            tmp_path / "run", {}, seeds=[1, 2], variables=ROBUSTNESS_VARIABLES, labels=robustness_labels(found)
        ) as recorder:
            recorder.log(epoch=0, train={"loss": [1.0, 2.0]})
            with pytest.raises(WaterjarError, match="one for each of 2 repeats"):
                record_robustness(recorder, found)
            record_robustness(recorder, [found, found])
        assert open_run(tmp_path / "run").load("probes/robustness").sizes["repeat"] == 2
