"""The runs that a study's declaration asks for, in the order in which tables and figures show them."""

from __future__ import annotations

import json
from pathlib import Path

from waterjar.run.stamped import unpack
from waterjar.run.store import read_file

DECLARED = ".waterjar/declared.json"


def read_declared(folder: Path) -> tuple[list[str], str]:
    """The runs that a study's declaration asks for, in its order, and what is wrong with the list; empty without."""
    try:
        text = read_file(folder, DECLARED)
        # earlier versions wrote the names alone, without a checksum
        names = json.loads(text) if text.startswith(b"[") else unpack(text)["runs"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("it is not a list of names")
    except FileNotFoundError:
        return [], ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return [], f"{folder / DECLARED} is damaged and ignored, runs come by name: {why}"
    return list(dict.fromkeys(names)), ""
