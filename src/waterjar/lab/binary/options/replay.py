"""Experience replay: each update also sees samples of earlier batches.

Chaudhry et al., "On tiny episodic memories in continual learning" (2019), algorithm 1, with a reservoir (Vitter, ACM
TOMS 11, 1985, algorithm R): sample n takes place n while there is room, after that a place drawn from 0 ... n, if that
place exists. The objective is the mean over batch and replay together, so every sample weighs the same.

Each image is offered once, in the first epoch of its task: the memory is a uniform sample of the IMAGES of all tasks so
far, however long each was trained. With the learner `rl` a replayed image is met again, not remembered: an action is
drawn from the policy as it is now and paid for, so the gradient stays that of the expected reward on the images shown.

The memory holds rows of the data set, whose images stay where they are; `buffer_bytes` counts the images, as one would
have to keep them elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from waterjar.lab.binary.options._option import Context, Option, Position, Recalled, Whole
from waterjar.lab.counter_hash import hash_words, integers


class Settings(BaseModel):
    """The memory, and how much of it is shown."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: Annotated[int, Field(ge=1)] = 500
    """Images in memory, of each repeat."""
    samples: Annotated[int, Field(ge=1)] | None = None
    """Replayed with each batch, without repetition; None for as many as the batch has. Fewer where there are fewer."""
    replay: Literal["later_tasks", "always"] = "later_tasks"
    """From the second task on, or from the second batch on. The memory fills either way."""


class Replay(Option):
    """Rows and labels (repeat, place); how many samples each repeat has been offered."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self.rows = np.zeros((len(context.seeds), settings.size), dtype=np.int64)
        self.labels = np.zeros_like(self.rows)
        self.offered = 0

    @property
    def buffer_bytes(self) -> int:
        """Images and labels, full or not."""
        return int(self.rows.size * (self._context.image_bytes + self.labels.itemsize))

    def recall(self, count: int, at: Position) -> Recalled | None:
        """Different places of the memory: the smallest hashes of (moment, place)."""
        filled = min(self.offered, self._settings.size)
        if not filled or (self._settings.replay == "later_tasks" and at.task == 0):
            return None
        wanted = min(self._settings.samples or count, filled)
        seeds = np.array(self._context.seeds, dtype=np.int64)[:, None]
        words = ("replay", self._context.role, seeds, at.task, at.epoch, at.batch, np.arange(filled)[None])
        places = np.argpartition(hash_words(*words), wanted - 1, axis=1)[:, :wanted]
        places.sort(axis=1)  # argpartition leaves them in an order of its own
        return Recalled(np.take_along_axis(self.rows, places, 1), np.take_along_axis(self.labels, places, 1))

    def offer(self, rows: Whole, labels: Whole, at: Position) -> None:
        """Algorithm R; of two samples that draw the same place the later one has it."""
        if at.epoch > 0:
            return
        number = np.arange(self.offered, self.offered + rows.shape[1])
        for repeat, seed in enumerate(self._context.seeds):
            drawn = integers(number + 1, "reservoir", self._context.role, seed, number)
            places = np.where(number < self._settings.size, number, drawn)
            kept = places < self._settings.size
            self.rows[repeat, places[kept]] = rows[repeat, kept]
            self.labels[repeat, places[kept]] = labels[repeat, kept]
        self.offered += rows.shape[1]

    def state(self) -> dict[str, Any]:
        """The memory, copied."""
        contents = {name: torch.from_numpy(getattr(self, name).copy()) for name in ("rows", "labels")}
        return {"offered": self.offered, **contents}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to a state."""
        self.offered = state["offered"]
        self.rows[:], self.labels[:] = state["rows"].numpy(), state["labels"].numpy()


build = Replay
