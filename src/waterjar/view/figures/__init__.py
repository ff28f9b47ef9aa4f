"""Figures, one a file: `figures.draw("learning_curves", run)` calls the function of that name in the file of that name.

The contract: a figure takes what it shows first, `ax=` to draw into a figure of yours, draws in the house
style, stamps the root hashes of its runs, and returns the matplotlib figure. A new file here is a new figure.
"""

import pkgutil
from importlib import import_module
from typing import Any

from waterjar.errors import unknown_name
from waterjar.view.style import save

__all__ = ["available", "draw", "save"]


def available() -> list[str]:
    """The names of all figures."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def draw(name: str, *arguments: Any, **settings: Any) -> Any:
    """Draw a figure by its name."""
    if name not in available():
        raise unknown_name("figure", name, available())
    return getattr(import_module(f"{__name__}.{name}"), name)(*arguments, **settings)
