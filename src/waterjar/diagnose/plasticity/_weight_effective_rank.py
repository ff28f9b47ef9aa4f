"""How evenly a weight matrix uses its directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.magnitude import in_range
from waterjar.diagnose.plasticity._effective_rank import rank_of
from waterjar.diagnose.plasticity.parameters import Parameters
from waterjar.diagnose.registry import metric
from waterjar.diagnose.representation import singular_values
from waterjar.diagnose.result import Result


def weight_effective_rank(weights: ArrayLike) -> Result:
    """Effective rank of a weight tensor as the matrix (first dimension, all others); undefined for vectors.

    The kernel of a convolution (out, in, height, width) is the matrix that maps a patch to its outputs.

    >>> float(weight_effective_rank([[1.0, 0.0], [1.0, 0.0]]))
    1.0
    """
    array = np.asarray(weights)
    if array.ndim < 2 or not array.size:
        return Result.missing("undefined", f"a tensor of shape {array.shape} is no matrix", n=array.size)
    matrix = array.reshape(len(array), -1).astype(np.float64)
    if not np.isfinite(matrix).all():
        return Result.missing("not_a_number", "NaN or infinite parameters", n=array.size)
    return rank_of(singular_values(in_range(matrix)[0]), n=array.size)


@metric(
    "weight_effective_rank",
    family="plasticity",
    long_name="effective rank of each weight matrix",
    formula="exp(-sum p log p), p = s / sum s, s the singular values of (out, everything else)",
    direction="higher",
    range=(1, np.inf),
    citation="Roy & Vetterli 2007, def. 1; Lyle et al. 2022",
    needs=("weights/weights",),
    dims=("parameter",),
    summary="weight_effective_rank_final",
)
def _measure(parameters: Parameters) -> Result:
    now = parameters.now
    return Result.stack(parameters.each(lambda tensor: weight_effective_rank(now[tensor.place].reshape(tensor.shape))))
