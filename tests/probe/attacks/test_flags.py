"""Networks that hide their slopes raise flags; an ordinary one raises none."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from robust_models import MEAN, STD, Noisy, Quantised, Saturated, blobs, trained  # noqa: E402
from waterjar.diagnose.robustness.flags import FLAGS, raised_flags  # noqa: E402
from waterjar.probe.attacks import attack, attack_flags  # noqa: E402

pytestmark = pytest.mark.torch
ATTACKS = {"fgsm": {}, "pgd": {"steps": 20}, "apgd_ce": {"steps": 30, "restarts": 1}, "square": {"queries": 300}}
NORMALISE = (MEAN, STD)


def flags_of(model, normalise=NORMALISE, eps=0.06, attacks=(*ATTACKS, "noise")):
    images, labels = blobs(100, seed=1)
    found = {
        how: attack(model, images, labels, how, eps=eps, normalise=normalise, **ATTACKS.get(how, {})) for how in attacks
    }
    return attack_flags(model, images, labels, found, normalise=normalise)


def in_pixels(network):
    """The network behind its normalisation, so that what stands before it sees pixels."""
    mean, std = (torch.tensor(part)[:, None, None] for part in NORMALISE)

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = copy.deepcopy(network)

        def forward(self, images):
            return self.network((images - mean) / std)

    return Whole()


def test_an_ordinary_network_raises_none():
    values = flags_of(trained())
    assert set(values) == set(FLAGS)
    assert raised_flags(values) == ()
    assert values["large_eps_accuracy"] == 0.0 and values["zero_gradient_share"] == 0.0


def test_a_network_that_is_sure_of_itself_hides_nothing():
    """Its cross-entropy is 0 to the last digit of most images, but its slope is not."""
    surer = Saturated(copy.deepcopy(trained()), factor=6.0)
    images, labels = blobs(100, seed=1)
    before = attack(surer, images, labels, "noise", normalise=NORMALISE).clean_margin
    assert (before < -17).mean() > 0.5
    assert raised_flags(flags_of(surer, eps=0.02)) == ()


@pytest.mark.parametrize("eps", [0.01, 0.06])
def test_a_saturated_softmax(eps):
    raised = raised_flags(flags_of(Saturated(copy.deepcopy(trained())), eps=eps))
    assert {"zero_gradient_share", "loss_not_rising"} <= set(raised)


def test_square_shows_what_a_saturated_softmax_hides():
    values = flags_of(Saturated(copy.deepcopy(trained())))
    assert "square_beats_white_box" in raised_flags(values)


def test_rounded_pixels():
    raised = raised_flags(flags_of(Quantised(in_pixels(trained())), normalise=None))
    assert {"zero_gradient_share", "noise_as_good_as_white_box", "large_eps_accuracy"} <= set(raised)


def test_noise_in_every_answer():
    values = flags_of(Noisy(copy.deepcopy(trained())))
    assert values["output_randomness"] == 1.0 and "output_randomness" in raised_flags(values)


def test_dropout_is_off_and_no_noise():
    assert flags_of(copy.deepcopy(trained()).train())["output_randomness"] == 0.0


def test_outputs_that_are_cut_off():
    network = copy.deepcopy(trained()).eval()
    values = flags_of(lambda x: network(x).detach())
    assert values["zero_gradient_share"] == 1.0 and "zero_gradient_share" in raised_flags(values)


def test_what_was_not_run_is_not_judged():
    values = flags_of(trained(), attacks=("noise",))
    told = {name for name, value in values.items() if value == value}  # noqa: PLR0124
    assert told == {"zero_gradient_share", "output_randomness", "large_eps_accuracy"}
    assert raised_flags(values) == ()
