"""Every figure as a function: `wj.plot.learning_curves(study)`; a figure of another package is here by its name, too.

Static tools read `plot.pyi`, which `python -m waterjar.front.stubs` makes of the figures' signatures.
"""

from collections.abc import Callable
from typing import Any

from waterjar.front import drawing


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or name not in drawing.figure_names():
        raise drawing.absent(name)
    return drawing.figure_function(name)


def __dir__() -> list[str]:
    return drawing.figure_names()
