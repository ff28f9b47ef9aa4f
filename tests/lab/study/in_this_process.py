"""The smallest executor, and a pool: runs a call when it is submitted."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from waterjar.errors import WaterjarError


class InThisProcess:
    """Also a pool, with nothing to attend to or stop."""

    stopped = ""

    def __init__(self, workers: int = 1, **_: Any) -> None:
        self.runs_a_machine = workers
        self.calls = 0
        self.seconds = 0.0

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        self.calls += 1
        start = time.process_time()
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args))
        except WaterjarError as error:
            future.set_exception(error)
        self.seconds += time.process_time() - start
        return future

    def attend(self, seconds: float) -> None:
        """All is done."""

    def stop(self) -> None:
        """Nothing runs."""
