"""How far the weights have moved, since the task began and since the start."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.plasticity.parameters import Parameters, pooled, root_mean_square
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.errors import WaterjarError


def weight_change(weights: ArrayLike, reference: ArrayLike) -> Result:
    """sqrt(mean (w - w_ref)^2) over all parameters; both of the same shape.

    >>> float(weight_change([1.0, 2.0], [0.0, 1.0]))
    1.0
    """
    if np.shape(weights) != np.shape(reference):
        raise WaterjarError(
            f"weights have shape {np.shape(weights)}, the reference {np.shape(reference)}: expected the same"
        )
    return root_mean_square(weights, reference)


@metric(
    "weight_change_task",
    family="plasticity",
    long_name="root mean square of the change of all parameters since the last snapshot of the task before",
    formula="sqrt(mean (w - w_ref)^2), w_ref at the last snapshot of the task before, initial for the first task",
    range=(0, np.inf),
    citation="Plasticine, Yuan et al. 2025",
    needs=("weights/weights",),
    summary="weight_change_task_final",
    matters=4,
    beside={
        "weight_change_task_by_parameter": Beside(
            ("parameter",),
            "root mean square of the change of each weight tensor since the task before",
            "1",
            {"direction": "none"},
        )
    },
    made_of=("weight_change_init",),
)
def _since_task(parameters: Parameters) -> tuple[Result, dict[str, Result]]:
    found = parameters.change(parameters.task_start)
    return pooled(found), {"weight_change_task_by_parameter": Result.stack(found)}


@metric(
    "weight_change_init",
    family="plasticity",
    long_name="root mean square of the change of all parameters since before any training",
    formula="sqrt(mean (w - w_init)^2)",
    range=(0, np.inf),
    citation="Plasticine, Yuan et al. 2025",
    needs=("weights/weights",),
    summary="weight_change_init_final",
    beside={
        "weight_change_init_by_parameter": Beside(
            ("parameter",),
            "root mean square of the change of each weight tensor since before any training",
            "1",
            {"direction": "none"},
        )
    },
)
def _since_start(parameters: Parameters) -> tuple[Result, dict[str, Result]]:
    found = parameters.change(parameters.initial)
    return pooled(found), {"weight_change_init_by_parameter": Result.stack(found)}
