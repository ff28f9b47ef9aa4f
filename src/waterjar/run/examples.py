"""What a network makes of single examples: right or wrong, and by how much.

The examples of all evaluation sets stand behind each other along one dimension `example`, with the set of each and its
position there as coordinates: sets of different sizes need no padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.arrays import to_numpy
from waterjar.run.rows import Row, as_flags, fit
from waterjar.run.schema import TRAIN, Variable

Examples = dict[str, int]
"""Set -> how many examples of it are recorded, in the order in which they stand."""


def judge_examples(logits: Mapping[str, object], labels: Mapping[str, object]) -> dict[str, dict[str, NDArray[Any]]]:
    """What `Recorder.log(examples=...)` takes, from the logits and labels of each evaluation set.

    `logits` are (..., sample, class), `labels` (..., sample). An example is right if its label has the largest logit
    (the first one of equals counts); its margin is that logit less the largest other one (Pleiss et al. 2020). An
    example with a logit that is not a number is wrong and has no margin.

    >>> judge_examples({"test": [[2.0, 0.5], [0.0, 3.0]]}, {"test": [0, 0]})["margin"]["test"]
    array([ 1.5, -3. ])
    """
    found: dict[str, dict[str, NDArray[Any]]] = {"correct": {}, "margin": {}}
    if not isinstance(logits, Mapping) or not isinstance(labels, Mapping):
        raise WaterjarError("logits and labels: expected mappings eval_set -> array, such as {'test': logits}")
    if set(logits) != set(labels):
        raise WaterjarError(f"logits are of {list(logits)}, labels of {list(labels)}; expected the same sets")
    for name, given in logits.items():
        values, wanted = to_numpy(given, f"logits['{name}']"), to_numpy(labels[name], f"labels['{name}']")
        if wanted.dtype.kind not in "iu" or values.shape[:-1] != wanted.shape or not values.shape[-1:] > (1,):
            raise WaterjarError(
                f"logits['{name}'] have shape {values.shape}, labels {wanted.dtype} {wanted.shape}; expected "
                "(..., sample, class) with two classes or more, and whole numbers (..., sample)"
            )
        if wanted.size and not 0 <= wanted.min() <= wanted.max() < values.shape[-1]:
            raise WaterjarError(f"labels['{name}'] go from {wanted.min()} to {wanted.max()}; expected 0 to K - 1")
        if values.dtype.kind != "f" or values.dtype.itemsize < 4:  # a difference of halves may be beyond a half
            values = values.astype(np.float32 if values.dtype.kind == "f" else np.float64)
        own = np.take_along_axis(values, wanted[..., None], -1)
        others = values.copy()
        np.put_along_axis(others, wanted[..., None], -np.inf, -1)
        known = ~np.isnan(values).any(-1)
        found["correct"][name] = (values.argmax(-1) == wanted) & known
        with np.errstate(invalid="ignore"):  # infinite less infinite is not a number
            found["margin"][name] = np.where(known, own[..., 0] - others.max(-1), np.nan).astype(values.dtype)
    return found


def example_row(
    value: object,
    variable: Variable,
    sizes: dict[str, int],
    eval_sets: Sequence[str],
    known: Examples,
    name: str,
    dtype: str,
) -> tuple[Row, Examples]:
    """A row of a group of examples, and which examples it is of: those of the first row, if there is one.

    Numbers of a step are stored as `dtype`; those of a snapshot stay as they come.
    """
    if not isinstance(value, Mapping):
        alone = list(known or eval_sets)
        if len(alone) != 1:
            raise WaterjarError(f"{name}={type(value).__name__}: expected a mapping eval_set -> values per example")
        value = {alone[0]: value}
    for key in value:
        if key not in eval_sets and key != TRAIN:
            raise unknown_name(f"{name}: eval_set", key, [*eval_sets, TRAIN])
    if known and set(value) != set(known):
        raise WaterjarError(f"{name} is given for {sorted(map(str, value))}; expected all of {list(known)}")
    order = list(known) or list(value)
    dims = variable.dims[variable.dims.index("repeat") :]
    parts = []
    for key in order:
        expected = {**sizes, "example": known[key]} if known else {d: n for d, n in sizes.items() if d != "example"}
        part = to_numpy(value[key], f"{name}['{key}']")
        parts.append(fit(part, dims, expected, f"{name}['{key}']"))
    counts = {key: part.shape[1] for key, part in zip(order, parts, strict=True)}
    if not sum(counts.values()):
        raise WaterjarError(f"{name} has no example: leave it out")
    if variable.dims[0] != "snapshot" or variable.is_flag:
        parts = [_stored(part, variable, name, dtype) for part in parts]
    values = np.concatenate(parts, axis=1)
    return Row(values, None, dims, variable), counts


def _stored(part: NDArray[Any], variable: Variable, name: str, dtype: str) -> NDArray[Any]:
    """Flags as bytes, other numbers of a step or snapshot in the dtype for examples, labels as they are."""
    if variable.dims[0] == "repeat":
        if part.dtype.kind not in "iu":
            raise WaterjarError(f"{name} has dtype {part.dtype}; expected whole numbers")
        return part.astype(np.int64)
    if variable.is_flag:
        return as_flags(part, name)
    with np.errstate(over="ignore"):  # what is beyond the dtype becomes infinite, and no training ends for it
        return part.astype(np.dtype(dtype))
