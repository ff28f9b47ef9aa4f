"""What cells are called: the method of their runs, and whatever else tells the cells of one method apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from waterjar.run.shown import shown_value

METHOD_KEYS = ("method", "strategy", "learner", "name")


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted keys.

    >>> flat({"patch": {"rate": 1}, "lr": 0.1})
    {'patch.rate': 1, 'lr': 0.1}
    """
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def name_cells(configs: Mapping[str, Mapping[str, Any]], leave_out: str = "") -> dict[str, str]:
    """cell -> a short name, from flat settings; the key `leave_out` does not enter the names.

    >>> name_cells({"a": {"learner": "sgd", "lr": 1}, "b": {"learner": "sgd", "lr": 2}, "c": {"learner": "er"}})
    {'a': 'sgd, lr=1', 'b': 'sgd, lr=2', 'c': 'er'}
    """
    methods: dict[str, list[str]] = {}
    for cell, config in configs.items():
        methods.setdefault(method_of(config), []).append(cell)
    names = {}
    for method, cells in methods.items():
        keys = [key for key in dict.fromkeys(key for cell in cells for key in configs[cell]) if key != leave_out]
        differing = [k for k in keys if len({repr(configs[cell].get(k)) for cell in cells}) > 1]
        for cell in cells:
            parts = [
                method,
                *(f"{k.rpartition('.')[2]}={shown_value(k, configs[cell].get(k, '–'))}" for k in differing),
            ]
            names[cell] = ", ".join(part for part in parts if part)
    if leave_out:
        return names
    shown = Counter(names.values())
    for end in (6, None):  # a name may look like another one with its hash
        found = {c: n if n and shown[n] == 1 else f"{n} {c[:end]}".strip() for c, n in names.items()}
        if len(set(found.values())) == len(found):
            return found
    return {cell: cell for cell in names}


def method_of(config: Mapping[str, Any]) -> str:
    """What a run goes by in tables: its method, strategy or learner; empty if it names none."""
    return next((str(config[key]) for key in METHOD_KEYS if config.get(key)), "")
