"""What a run needs so that this family has something to measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waterjar.diagnose.feeds import Lack
from waterjar.run.reader import Run


def feeds(run: Run, settings: Any) -> Iterator[Lack]:
    """A baseline beside the run, for what compares answers with it."""
    cure = "measure it in a study with one (--baseline)"
    yield Lack("error_consistency and mcnemar_gain compare with a baseline", cure, (), is_telling=False)
