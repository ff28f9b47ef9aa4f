"""plot.pyi, from the figures' own signatures: `python -m waterjar.front.stubs src/waterjar/front/plot.pyi`.

A test holds the file true. Figures of other packages are functions of any settings there.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from waterjar.run.disk import write_file
from waterjar.view.figures import SHELF

_HEAD = '''"""Made from the figures by `python -m waterjar.front.stubs`; a test holds it true. Edit those."""

from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from waterjar.front.sources import Source as _Source

Source = _Source | xr.Dataset
'''
_LONGEST = 60
"""Letters of a default; a stub may leave out longer ones."""


def stubs() -> str:
    """The text of plot.pyi."""
    parts = [_stub(name, getattr(SHELF.module(name), name)) for name in SHELF.ours]
    return "\n".join([_HEAD, *parts, "def __getattr__(name: str) -> Callable[..., Figure]: ..."]) + "\n"


def _stub(name: str, function: Any) -> str:
    """One function as black and ruff write stubs: on one line where it fits."""
    signature = inspect.signature(function)
    parts, is_named = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_named:
            parts.append("*")
            is_named = True
        parts.append(_plain(parameter))
    first = (inspect.getdoc(function) or "").split("\n")[0]
    line = f"def {name}({', '.join(parts)}) -> Figure:"
    if len(line) > 120:
        line = f"def {name}(\n" + "".join(f"    {part},\n" for part in parts) + ") -> Figure:"
    return f'{line}\n    """{first}"""\n'


def _plain(parameter: inspect.Parameter) -> str:
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    annotation = parameter.annotation if isinstance(parameter.annotation, str) else "Any"
    shown = repr(parameter.default).replace("'", '"')
    default = "" if parameter.default is parameter.empty else f" = {shown if len(shown) <= _LONGEST else '...'}"
    return f"{stars}{parameter.name}: {annotation}{default}"


if __name__ == "__main__":
    write_file(sys.argv[1], stubs())
