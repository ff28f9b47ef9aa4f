"""Forward transfer: what the past cost or gave a task, against a fresh network."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from waterjar.diagnose.continual._arrays import check_scale, learned, matrix_of, told
from waterjar.diagnose.continual._ratio import EPS
from waterjar.diagnose.continual._task_curves import TaskCurves
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Floats, Result
from waterjar.errors import WaterjarError


def forward_transfer(R: ArrayLike, expert: ArrayLike, *, eps: float = EPS) -> Result:
    """(E[i] - R[i, i]) / (E[i] + R[i, i] + eps) for every task i. LOWER is better.

    Above 0 the past cost something (plasticity lost), below 0 it helped. NaN where E[i] + R[i, i] is within eps of 0.
    Not to be confused with `forward_transfer_gem`, where higher is better. Of recorded runs in which a task is trained
    again, i are visits; the expert of each is that of its task.

    Parameters
    ----------
    R : (..., train, eval), performance above chance.
    expert : E (..., task), that of a fresh network trained on that task alone, by the same integrator.

    >>> forward_transfer([[0.6, 0.0], [0.3, 0.5]], [0.6, 0.7], eps=0.0).value.round(3)
    array([0.   , 0.167])
    """
    own, fresh = learned(matrix_of(R, "above_chance")), np.asarray(expert, np.float64)
    if not fresh.ndim or fresh.shape[-1] != own.shape[-1]:
        raise WaterjarError(f"expert has shape {fresh.shape}: expected (..., task) with {own.shape[-1]} tasks")
    check_scale(fresh, "expert", "above_chance")
    return told(contrast_with_expert(own, fresh, eps), own + fresh, 1)


def contrast_with_expert(own: Floats, fresh: Floats, eps: float) -> Floats:
    """The same of each task's own performance (..., task), over the epochs that its expert has."""
    below = fresh + own
    undefined = np.abs(below) <= eps
    found: Floats = np.where(undefined, np.nan, (fresh - own) / np.where(undefined, 1.0, below + eps))
    return found


@metric(
    "forward_transfer",
    family="continual",
    long_name="forward transfer: what a task's fresh expert has over the network with a past, relative to both",
    formula="(E[i] - R[i,i]) / (E[i] + R[i,i] + eps); E expert, R above chance; > 0 the past cost something",
    direction="lower",
    citation="defined here: contrast with a fresh network",
    needs=("performance/accuracy", "expert/accuracy"),
    dims=("eval_task",),
    summary="forward_transfer_mean",
    unlike="not the FWT of GEM, for which the other direction is better",
    matters=5,
    on_loss="flipped",
    loss_name="forward transfer: loss of a task's fresh expert minus that of the network with a past, relative to both",
    made_of=("learned_accuracies",),
)
def _forward_transfer(curves: TaskCurves) -> Result:
    own, own_reasons = curves.beside_expert
    expert, expert_reasons = curves.expert_integrated
    values = contrast_with_expert(own, expert, curves.settings.eps)
    return Result.of(values, np.maximum(own_reasons, expert_reasons))
