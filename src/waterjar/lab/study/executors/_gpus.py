"""One GPU for each worker process where there are several: it sees that one alone, before torch is imported."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

VISIBLE = "CUDA_VISIBLE_DEVICES"
_ENVIRONMENT = threading.Lock()


def gpus() -> list[str]:
    """The GPUs that this process may use, by the names that CUDA_VISIBLE_DEVICES takes."""
    given = os.environ.get(VISIBLE)
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip()]
    import torch  # noqa: PLC0415 - only to count

    return [str(place) for place in range(torch.cuda.device_count())]


def gpu_of(worker: int, device: str) -> str | None:
    """The GPU of the n-th worker of this machine; None where there is nothing to share out."""
    there = gpus() if device in ("auto", "cuda") else []
    return there[worker % len(there)] if len(there) > 1 else None


@contextlib.contextmanager
def visible(gpu: str | None) -> Iterator[None]:
    """A process that is started within inherits an environment in which it sees this GPU alone."""
    if gpu is None:
        yield
        return
    with _ENVIRONMENT:
        before = os.environ.get(VISIBLE)
        os.environ[VISIBLE] = gpu
        try:
            yield
        finally:
            if before is None:
                del os.environ[VISIBLE]
            else:
                os.environ[VISIBLE] = before
