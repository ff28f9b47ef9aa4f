"""Checkpoints of a training: written whole or not at all, read without running code, and only by their own run.

| file | what is in it |
|---|---|
| last.pt | where the training stands; it goes when the run is complete |
| task_<name>.pt | the same at the end of a task, before the next one has begun; `Keep` says whether they are written |
| best.pt | the weights with the best validation accuracy, for `torch.load` |

All but the last begin with the SHA-256 of what follows, in hexadecimal; `load` reads each of them.
"""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file
from waterjar.run.npz_file import FAULTS
from waterjar.run.store import sha256

LAST = "last.pt"
BEST = "best.pt"
Keep = Literal["task", "best", "none"]
"""What stays of a complete run: the state after each task and the best weights, the best weights alone, or nothing."""
_DIGEST = 64
_TYPES = {
    "int": (int,),
    "bool": (bool,),
    "float": (float, int),
    "Tensor | None": (Tensor, type(None)),
    "dict[str, Any]": (dict,),
}


@dataclass
class Progress:
    """Where a training stands: the next batch, and what the epoch has added up so far."""

    phase: int = 0
    begun: bool = False
    """Whether the learner was told that the phase has begun."""
    epoch: int = 0
    """Epochs of the phase that are complete."""
    batch: int = 0
    """The next batch of the epoch under way."""
    step: int = -1
    """The last recorded step."""
    trace: Tensor | None = None
    """(loss, correct, gradient norm) x batch of the epoch under way."""
    replayed: int = 0
    """Examples beside those of the batches that went forward and backward: replay, and what ends a task."""
    patched: int = 0
    best: float = -1.0
    best_step: int = -1
    seconds: float = 0.0
    """Spent on the step under way, in this session and those before it. Older checkpoints do not know."""
    peak_memory: int = 0
    """The largest resident memory so far, in bytes."""
    peak_device_memory: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    """What the events of the run have told of dead networks, see `dead_networks.news`."""


def position(folder: Path, content: dict[str, Any]) -> Progress:
    """Where a checkpoint stands. What an older one does not know has its default; a newer one is refused."""
    found = content["position"]
    unknown = sorted(found.keys() - {known.name for known in fields(Progress)})
    if unknown:
        raise WaterjarError(
            f"checkpoint {folder / LAST} is of a later waterjar (it holds {', '.join(unknown)}): go on with that one, "
            "or remove the checkpoint to start the run anew"
        )
    made = Progress(**found)
    for one in fields(Progress):
        value, wanted = getattr(made, one.name), _TYPES.get(str(one.type))
        if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
            raise TypeError(f"{one.name} is {type(value).__name__}")
    return made


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Whatever a checkpoint that is not what it says leads to is one clear error."""
    try:
        yield
    except WaterjarError:
        raise
    except (pickle.UnpicklingError, AssertionError, *FAULTS) as error:
        why = type(error).__name__
        raise WaterjarError(f"checkpoint {path} cannot be read ({why}): remove it to start the run anew") from error


def of_task(tasks: Sequence[str], place: int) -> str:
    """The file of the state at the end of a task; of one that is trained again, with the number of its visit.

    >>> of_task(["t1", "t2", "t1"], 0), of_task(["t1", "t2", "t1"], 2)
    ('task_t1.pt', 'task_t1_1.pt')
    """
    visit = list(tasks[:place]).count(tasks[place])
    return f"task_{tasks[place]}_{visit}.pt" if visit else f"task_{tasks[place]}.pt"


def save(folder: Path, name: str, run_id: str, content: dict[str, Any]) -> None:
    """Write a checkpoint atomically."""
    buffer = io.BytesIO()
    torch.save({"run_id": run_id, **_to_cpu(content)}, buffer)
    data = buffer.getvalue()
    write_file(folder / name, data if name == BEST else sha256(data).encode() + data)


def _to_cpu(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {key: _to_cpu(value) for key, value in state.items()}
    return [_to_cpu(value) for value in state] if isinstance(state, list) else state


def load(folder: Path, name: str, run_id: str) -> dict[str, Any] | None:
    """Read a checkpoint; None if there is none. One of another run is an error, not a start."""
    path = folder / name
    if not path.is_file():
        return None
    with understood(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch's remarks on files that it is about to refuse
        data = path.read_bytes()
        if name != BEST:  # one flipped bit would train on, and be sealed
            digest, data = data[:_DIGEST], data[_DIGEST:]
            if sha256(data).encode() != digest:
                raise ValueError("its checksum does not hold")
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        if not isinstance(content, dict):
            raise ValueError("it is not a checkpoint")
    if content.get("run_id") != run_id:
        raise WaterjarError(
            f"checkpoint {path} belongs to run {content.get('run_id')}, not {run_id}: remove it to start the run anew"
        )
    return content
