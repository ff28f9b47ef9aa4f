"""An accuracy matrix from a paper or a spreadsheet becomes a run, so that every diagnostic can read it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from waterjar.errors import WaterjarError
from waterjar.run.arrays import fitting, to_numpy
from waterjar.run.coordinates import flag, names_of, whole_numbers
from waterjar.run.identity import digest
from waterjar.run.reader import Run, open_run
from waterjar.run.recorder import Recorder
from waterjar.run.rows import Masked, masked


def from_accuracy_matrix(
    matrix: object,
    path: str | os.PathLike[str],
    *,
    initial: object = None,
    expert: object = None,
    config: object = None,
    seeds: Sequence[int] | None = None,
    tasks: Sequence[str] | None = None,
    percent: bool = False,
) -> Run:
    """Write R as a sealed run and open it.

    Parameters
    ----------
    matrix : R[i, j] = accuracy on task j after training task i, (train_task, eval_task) or
        (repeat, train_task, eval_task). NaN where it was not measured.
    initial : (eval_task,) or (repeat, eval_task), accuracy before any training (step 0).
    expert : (eval_task,) or (repeat, eval_task), accuracy of a fresh network trained on that task alone.
    percent : the numbers are percentages.

    >>> import tempfile
    >>> run = from_accuracy_matrix([[0.9, 0.5], [0.6, 0.8]], tempfile.mkdtemp() + "/run")
    >>> run["performance"].accuracy.sel(eval_set="task 0").values.ravel()
    array([0.9, 0.6])
    """
    values = _with_repeat(matrix, "matrix", 3)
    repeats, trained, evaluated = values.shape
    if trained > evaluated or not trained:
        raise WaterjarError(
            f"matrix has shape {values.shape}: expected (repeat, train_task, eval_task) with at least one task "
            "trained, and every trained task evaluated"
        )
    names = [f"task {j}" for j in range(evaluated)] if tasks is None else names_of("tasks", tasks)
    if len(names) != evaluated:
        raise WaterjarError(f"tasks={names}: expected {evaluated} names, one per column of the matrix")
    numbers = list(range(repeats)) if seeds is None else whole_numbers("seeds", seeds)
    if len(numbers) != repeats:
        raise WaterjarError(f"seeds={numbers}: expected {repeats} seeds, one per repeat of the matrix")
    extra = {}
    for name, given in (("initial", initial), ("expert", expert)):
        if given is not None:
            extra[name] = _with_repeat(given, name, 2)
            if extra[name].shape != (repeats, evaluated):
                shape = extra[name].shape
                raise WaterjarError(f"{name} has shape {shape}; expected (repeat={repeats}, eval_task={evaluated})")
    scale = 100.0 if flag("percent", percent) else 1.0
    for name, array in {"matrix": values, **extra}.items():
        _check_range(name, array, scale)
    everything = {"matrix": values, **extra}
    content = {name: [repr(float(x)) for x in array.ravel()] for name, array in everything.items()}
    source = {"source": "accuracy matrix", "content": digest(content)} if config is None else config
    sets = {name: j for j, name in enumerate(names)}
    with Recorder(path, source, seeds=numbers, eval_sets=sets, tasks=names, summary=False) as recorder:
        if "initial" in extra:
            recorder.log(epoch=0, train_task=0, performance={"accuracy": _known(extra["initial"].T / scale)})
        for i in range(trained):
            own = {"accuracy": _known(extra["expert"].T / scale)} if "expert" in extra and i == trained - 1 else None
            recorder.log(epoch=1, train_task=i, performance={"accuracy": _known(values[:, i].T / scale)}, expert=own)
    return open_run(path)


def _known(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Masked:
    """NaN in a matrix says that it was not measured."""
    return masked(values, np.isnan(values), "not_recorded")


def _with_repeat(given: object, name: str, ndim: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    with fitting(name):
        array = to_numpy(given, name).astype(np.float64)
    if array.ndim == ndim - 1:
        array = array[None]
    if array.ndim != ndim:
        raise WaterjarError(f"{name} has {array.ndim} dimensions; expected {ndim - 1}, or {ndim} with repeat first")
    return array


def _check_range(name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], scale: float) -> None:
    outside = (array < 0) | (array > scale)
    if outside.any():
        place = tuple(int(i) for i in np.argwhere(outside)[0][1:])
        hint = ": pass percent=True for percentages" if scale == 1.0 and np.nanmax(array) <= 100 else ""
        raise WaterjarError(f"{name}{list(place)} = {array[outside][0]} is not between 0 and {scale:g}{hint}")
