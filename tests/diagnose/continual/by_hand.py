"""Three tasks, logged at different epochs, small enough to work out on paper. Two classes: P = 2A - 1.

epochs          0    1    2        0    1    3        0    2
while training  task 0             task 1             task 2
on task 0      .5   .7   .9       .9   .6   .7       .7   .5
on task 1      .5   .5   .6       .6   .7   .8       .8   .9
on task 2      .5   .4   .5       .5   .5   .7       .7  1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import waterjar

NAN = np.nan
EPOCHS = np.array([[0, 1, 2], [0, 1, 3], [0, 2, NAN]])
A = np.array(
    [
        [[0.5, 0.7, 0.9], [0.5, 0.5, 0.6], [0.5, 0.4, 0.5]],
        [[0.9, 0.6, 0.7], [0.6, 0.7, 0.8], [0.5, 0.5, 0.7]],
        [[0.7, 0.5, NAN], [0.8, 0.9, NAN], [0.7, 1.0, NAN]],
    ]
)
ENDS = np.array([[0.9, 0.6, 0.5], [0.7, 0.8, 0.7], [0.5, 0.9, 1.0]])
P = 2 * A - 1
R = 2 * ENDS - 1
EXPERT = np.array([[0.6, 0.8, 0.9], [0.6, 0.8, 0.85], [0.75, 0.95, NAN]])
"""(task, epoch): the fresh network of each task, logged at the same epochs."""


def record(
    path: Path,
    curves: np.ndarray = A[None],
    *,
    epochs: np.ndarray = EPOCHS,
    expert: np.ndarray | None = EXPERT,
    classes: list[str] | None = ["a", "b"],  # noqa: B006 - never changed
    loss: bool = False,
    config: object = None,
    **options: object,
) -> waterjar.Run:
    """Record curves (repeat, train, eval, epoch); `expert` (task, epoch) is the same for all repeats."""
    repeats, tasks = curves.shape[:2]
    seeds = options.pop("seeds", list(range(repeats)))
    sets = options.pop("eval_sets", {f"set {j}": j for j in range(tasks)})
    config = {"learner": "sgd"} if config is None else config
    with waterjar.Recorder(path, config, seeds=seeds, eval_sets=sets, tasks=tasks, classes=classes, **options) as run:
        for i in range(tasks):
            for t in range(curves.shape[-1]):
                if np.isnan(epochs[i, t]):
                    continue
                values = curves[:, i, :, t].T
                row = {"accuracy": values, "loss": 1 - values} if loss else {"accuracy": values}
                own = np.full(values.shape, NAN)
                if expert is not None:
                    own[i] = expert[i, t]
                known = waterjar.masked(own, np.isnan(own), "not_recorded")
                turned = waterjar.masked(1 - own, np.isnan(own), "not_recorded")
                fresh = {"accuracy": known, "loss": turned} if loss else {"accuracy": known}
                run.log(train_task=i, epoch=epochs[i, t], performance=row, expert=None if expert is None else fresh)
    return waterjar.open_run(path)
