"""Pickles of plain containers and numpy arrays, read and written without running anything of theirs.

A pickle is a program: it may name any function of any module and call it. So its instructions are read first (`_scan`:
an allow-list, sizes, keys), and the standard library's Unpickler then finds what `_arrays` has for the few names that
numpy's arrays are made of, and nothing else: any other name is refused before anything of it is imported, called or
allocated. Files by Python 2 and 3, protocols 2 to 5, numpy 1 and 2 are read; what is written opens in all of them from
Python 3.4 on.
"""

from __future__ import annotations

import io
import pickle
import warnings

from waterjar.errors import WaterjarError
from waterjar.run.plain_pickle._arrays import Budget, Damaged, Function, Refused, admitted, shown
from waterjar.run.plain_pickle._scan import scan
from waterjar.run.plain_pickle._tree import plain_tree
from waterjar.run.plain_pickle._writer import dump_plain

__all__ = ["dump_plain", "load_plain", "read_plain_pickle"]


_FAULTS = (pickle.UnpicklingError, ValueError, TypeError, AttributeError, LookupError, EOFError, OverflowError)


class _Unpickler(pickle.Unpickler):
    """Finds our own builders of arrays under numpy's names."""

    def __init__(self, contents: bytes) -> None:
        super().__init__(io.BytesIO(contents), encoding="latin1")
        self._budget = Budget(len(contents))

    def find_class(self, module: str, name: str) -> Function:
        """What stands for an admitted name."""
        return Function(admitted(module, name), self._budget)


def load_plain(contents: bytes, where: str) -> object:
    """The value in a pickle; `where` names the source in errors. Arrays in it are read-only.

    >>> load_plain(dump_plain({"loss": [0.5, None]}), "here")
    {'loss': [0.5, None]}
    >>> load_plain(b"cos\\nsystem\\n.", "here")
    Traceback (most recent call last):
    ...
    waterjar.errors.WaterjarError: here asks for os.system: only plain containers and numpy arrays are admitted. \
Nothing of it was run; do not trust its source
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # pickletools warns of backslashes in names
            scan(contents)
        return plain_tree(_Unpickler(contents).load(), len(contents))
    except Refused as refused:
        raise WaterjarError(
            f"{where} asks for {refused}: only plain containers and numpy arrays are admitted. "
            "Nothing of it was run; do not trust its source"
        ) from None
    except (Damaged, *_FAULTS) as damage:
        raise WaterjarError(f"{where} is damaged: {shown(str(damage))}") from None


def read_plain_pickle(contents: bytes, where: str) -> dict[str, object]:
    """The dictionary in a pickle, keys as text (Python 2 wrote bytes); `where` names the source in errors."""
    value = load_plain(contents, where)
    if not isinstance(value, dict):
        raise WaterjarError(f"{where} holds a {type(value).__name__}, not a dictionary")
    found: dict[str, object] = {}
    for key, item in value.items():
        name = key.decode("latin1") if isinstance(key, bytes) else str(key)
        if name in found:
            raise WaterjarError(f"{where} has the key '{name}' twice, once as {type(key).__name__}")
        found[name] = item
    return found
