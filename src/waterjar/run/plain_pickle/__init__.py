"""Pickles of plain containers and numpy arrays, read and written without the pickle module.

A pickle is a program: it may name any function of any module and call it. So nothing here unpickles: `_machine` knows
the few instructions that build numbers, text, lists, tuples, dictionaries and sets, and `_arrays` makes arrays of their
bytes itself. Everything else is refused by name before anything of it is imported, called or allocated. Files by Python
2 and 3, protocols 2 to 5, numpy 1 and 2 are read; what is written opens in all of them from Python 3.4 on.
"""

from __future__ import annotations

from waterjar.errors import WaterjarError
from waterjar.run.plain_pickle._arrays import Damaged, Refused
from waterjar.run.plain_pickle._machine import Machine
from waterjar.run.plain_pickle._tree import check_tree
from waterjar.run.plain_pickle._writer import dump_plain

__all__ = ["dump_plain", "load_plain", "read_plain_pickle"]


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
        value = Machine(contents).run()
        check_tree(value, len(contents))
    except Refused as refused:
        raise WaterjarError(
            f"{where} asks for {refused}: only plain containers and numpy arrays are admitted. "
            "Nothing of it was run; do not trust its source"
        ) from None
    except Damaged as damage:
        raise WaterjarError(f"{where} is damaged: {damage}") from None
    return value


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
