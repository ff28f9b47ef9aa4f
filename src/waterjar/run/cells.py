"""What cells are called: the method of their runs, and whatever else tells the cells of one method apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from waterjar.run.shown import shown_value

if TYPE_CHECKING:
    from waterjar.run.index import Entry

METHOD_KEYS = ("method", "strategy", "learner", "name")
_LIKE_SEEDS = ("random_state", "random_seed", "rng_seed", "manual_seed", "torch_seed", "numpy_seed", "rng", "seed")
"""Last parts of keys that others call a seed; at the top of a config `seed` is one, and none of these."""


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


def seeds_as_settings(cells: Iterable[Sequence[Entry]]) -> list[str]:
    """A sentence where cells of one seed each differ in a setting alone that goes by another name of a seed."""
    alike: dict[str, dict[str, set[str]]] = {}
    for entries in cells:
        config = flat(entries[0].config)
        keys = [key for key in config if key.rpartition(".")[2] in _LIKE_SEEDS]
        if sum(len(one.seeds) for one in entries) <= 1 and len(keys) == 1:
            rest = repr(sorted((key, repr(value)) for key, value in config.items() if key != keys[0]))
            alike.setdefault(keys[0], {}).setdefault(rest, set()).add(repr(config[keys[0]]))
    return [
        f"runs differ in config '{key}' alone, and count as learners of one seed each: record seeds=[...] "
        f"(Recorder(..., seeds=[seed]), and no '{key}' in the config) for seeds of one learner"
        for key, groups in alike.items()
        if any(len(values) > 1 for values in groups.values())
    ]


def method_of(config: Mapping[str, Any]) -> str:
    """What a run goes by in tables: its method, strategy or learner; empty if it names none."""
    return next((str(config[key]) for key in METHOD_KEYS if config.get(key)), "")
