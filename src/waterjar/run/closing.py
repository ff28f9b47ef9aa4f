"""What is said when a run is sealed."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

from waterjar.errors import WaterjarError
from waterjar.run.reader import open_run
from waterjar.run.shelf import blamed
from waterjar.run.shown import visible

_told: list[str] = []
"""What was said last: runs of one loop feed the same, which is said once."""


def tell_what_it_feeds(path: Path) -> None:
    """Say on stderr which families a sealed run can feed. Whatever goes wrong here is said too, and nothing else.

    While the process ends (a run that is closed by `atexit`) nothing is imported any more, and nothing said.
    """
    if not threading.main_thread().is_alive():
        return
    shown = visible(str(path))
    try:
        with blamed("telling what it can feed", "waterjar"):  # the run is sealed: no fault of ours may end the loop
            # by its name: measuring stands on recording, and a loop that records imports it here alone, at its end
            said = importlib.import_module("waterjar.diagnose.feeds").summary(open_run(path))
            again = _told == [said]
            _told[:] = [said]
            print(f"{shown}: sealed; {'as the run before' if again else said}", file=sys.stderr)
    except WaterjarError as error:
        _say_instead(f"{shown}: sealed; {error}")


def _say_instead(line: str) -> None:
    try:
        print(line, file=sys.stderr)
    except (OSError, ValueError):  # stderr is closed
        return
