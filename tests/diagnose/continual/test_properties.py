"""What holds for any numbers: ranges, repeats apart from each other, inputs left alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from waterjar.diagnose import continual

EPOCHS = np.array([0.0, 1.0, 2.5, 3.0])
OF_MATRIX = {
    "remembering": continual.remembering,
    "zero_shot": continual.zero_shot,
    "average_accuracy": continual.average_accuracy,
    "learning_accuracy": continual.learning_accuracy,
    "backward_transfer": continual.backward_transfer,
    "forgetting max": continual.forgetting,
    "forgetting learned": lambda R: continual.forgetting(R, "learned"),
    "forgetting max_or_last": lambda R: continual.forgetting(R, "max_or_last"),
    "forward_transfer": lambda R: continual.forward_transfer(R, R[..., 0, :]),
    "forward_transfer_gem": lambda R: continual.forward_transfer_gem(R, R[..., 0, :]),
    "intransigence": lambda R: continual.intransigence(R, R[..., 0, :]),
}
OF_CURVES = {
    "learning_time": lambda A: continual.learning_time(A, EPOCHS),
    "forgetting_rate": lambda A: continual.forgetting_rate(A, EPOCHS),
    "max_dip": continual.max_dip,
    "average_anytime_accuracy": lambda A: continual.average_anytime_accuracy(A, EPOCHS),
    "min_accuracy": lambda A: continual.min_accuracy(A, EPOCHS),
    "worst_case_accuracy": lambda A: continual.worst_case_accuracy(A, EPOCHS),
    **{how: lambda A, how=how: continual.integrate(A, EPOCHS, how) for how in continual.INTEGRATORS},
}


def arrays(low: float = 0.0) -> st.SearchStrategy:
    shapes = st.tuples(st.integers(1, 4), st.integers(1, 4)).map(lambda s: (s[0], s[1], s[1], len(EPOCHS)))
    return shapes.flatmap(lambda shape: hnp.arrays(np.float64, shape, elements=st.floats(low, 1.0)))


@pytest.mark.parametrize("name", [*OF_MATRIX, *OF_CURVES])
@settings(max_examples=20)
@given(curves=arrays(), data=st.data())
def test_repeats_stand_alone(name, curves, data):
    """Inputs stay as they are; repeats may be permuted, taken alone or in a batch; NaN in one touches that one only."""
    values = curves[..., -1] if name in OF_MATRIX else curves
    function = {**OF_MATRIX, **OF_CURVES}[name]
    before = values.copy()
    found = function(values)
    np.testing.assert_array_equal(values, before)
    order = data.draw(st.permutations(range(len(values))))
    np.testing.assert_allclose(function(values[order]), found[order], rtol=1e-12, atol=1e-12)
    ill = values.copy()
    ill[0] = np.nan
    spoilt = function(ill)
    assert np.isnan(spoilt[0]).all()
    np.testing.assert_allclose(spoilt[1:], found[1:], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(function(values[0]), found[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(function(values[None])[0], found, rtol=1e-12, atol=1e-12)


@given(arrays(low=-1.0))
def test_ratios_stay_between_minus_one_and_one(curves):
    R = curves[..., -1]
    for values in (continual.remembering(R).value, continual.zero_shot(R).value):
        there = values[~np.isnan(values)]
        assert (np.abs(there) <= 1).all()


@given(arrays())
def test_relations_between_metrics(curves):
    R = continual.integrate(curves)
    tasks = R.shape[-1]
    if tasks > 1:
        gained = continual.average_accuracy(R).value - continual.learning_accuracy(R).value
        np.testing.assert_allclose(continual.backward_transfer(R), gained * tasks / (tasks - 1), atol=1e-9)
        names = ("learned", "max", "max_or_last")
        learned, highest, or_last = (continual.forgetting(R, name)[:, :-1] for name in names)
        np.testing.assert_allclose(learned.mean(-1), -continual.backward_transfer(R).value, atol=1e-12)
        assert (highest >= learned - 1e-12).all() and (or_last >= highest - 1e-12).all() and (or_last >= 0).all()
        worst = continual.worst_case_accuracy(curves, EPOCHS).value
        assert (worst <= continual.average_accuracy(R).value + 1e-12).all()
    length = EPOCHS[-1] - EPOCHS[0]
    tau = continual.learning_time(curves, EPOCHS).value
    # Cauchy-Schwarz; trapezoids of squares are no smaller than squares of trapezoids
    assert (tau >= 0).all() and (tau <= length + 1e-9).all()
