"""How large the weights are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.plasticity.parameters import Parameters, pooled, root_mean_square
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result


def weight_magnitude(weights: ArrayLike) -> Result:
    """sqrt(mean w^2) over all parameters, of any shape.

    >>> float(weight_magnitude([3.0, -3.0]))
    3.0
    """
    return root_mean_square(weights)


@metric(
    "weight_magnitude",
    family="plasticity",
    long_name="root mean square of all parameters",
    formula="sqrt(mean w^2); buffers such as those of batch normalisation are left out",
    range=(0, np.inf),
    citation="Plasticine, Yuan et al. 2025",
    needs=("weights/weights",),
    summary="weight_magnitude_final",
    matters=3,
    beside={
        "weight_magnitude_by_parameter": Beside(
            ("parameter",), "root mean square of each weight tensor", "1", {"direction": "none"}
        )
    },
)
def _measure(parameters: Parameters) -> tuple[Result, dict[str, Result]]:
    found = parameters.each(lambda tensor: weight_magnitude(parameters.now[tensor.place]))
    return pooled(found), {"weight_magnitude_by_parameter": Result.stack(found)}
