"""Is a value what it looks like: a tree of plain things, not too deep, not a few bytes that unfold to terabytes?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from waterjar.run.plain_pickle._arrays import Damaged, Name, Refused

DEEPEST = 100
_UNFOLDED = 100
"""Items per byte of the file: a reference costs two bytes, so that plain files stay below one."""

_LEAVES = (type(None), bool, int, float, str, bytes, np.ndarray, np.generic)


def check_tree(value: object, size: int) -> None:
    """Refuse what refers to itself, is nested too deep, or would be walked for ever; `size` is that of the file.

    Containers are visited once each, without recursion: how often one would be met on a walk is counted.
    """
    met: dict[int, tuple[int, int]] = {}  # id -> items and levels from here down
    above: set[int] = set()
    todo: list[tuple[object, bool]] = [(value, False)]
    while todo:
        item, is_done = todo.pop()
        inside = _children(item)
        if inside is None or (id(item) in met and not is_done):
            continue
        if not is_done:
            if id(item) in above:
                raise Damaged(f"a {type(item).__name__} that contains itself")
            above.add(id(item))
            todo.append((item, True))
            todo.extend((child, False) for child in inside if not isinstance(child, _LEAVES))
            continue
        below = [met[id(child)] for child in inside if not isinstance(child, _LEAVES)]
        items = 1 + len(inside) + sum(count for count, _ in below)
        levels = 1 + max((depth for _, depth in below), default=0)
        if levels > DEEPEST:
            raise Damaged(f"nested more than {DEEPEST} levels deep")
        if items > _UNFOLDED * size + 1000:
            raise Damaged(f"{size} bytes that unfold to more than {_UNFOLDED} times as many items")
        above.discard(id(item))
        met[id(item)] = items, levels


def _children(item: object) -> list[object] | None:
    """What a container holds; None for a plain thing."""
    if isinstance(item, _LEAVES):
        return None
    if type(item) is dict:
        return [*_parts(item.keys()), *item.values()]
    if type(item) in (list, tuple, set, frozenset):
        return list(item)  # type: ignore[call-overload,no-any-return]
    if isinstance(item, Name):
        raise Refused(f"{item.full}, as a value of its own")
    raise Refused(f"a {type(item).__name__} as a value of its own")


def _parts(keys: Iterable[object]) -> list[object]:
    return [key for key in keys if type(key) is tuple]
