"""Is a value what it looks like: a tree of plain things, not too deep, not a few bytes that unfold to terabytes?"""

from __future__ import annotations

from typing import Any

import numpy as np

from waterjar.run.plain_pickle._arrays import Array, Damaged, Function, Refused

DEEPEST = 100
_UNFOLDED = 100
"""Items per byte of the file: a reference costs two bytes, so that plain files stay below one."""

_LEAVES = (type(None), bool, int, float, str, bytes, np.generic)
_CONTAINERS = (list, tuple, dict, set, frozenset)


def plain_tree(value: object, size: int) -> object:
    """The value with its arrays in their places; `size` is that of the file.

    Refused is what refers to itself, is nested too deep, or would be walked for ever. Containers are visited once
    each, without recursion: how often one would be met on a walk is counted.
    """
    met: dict[int, tuple[object, object, int, int]] = {}  # id -> itself, what stands for it, items and levels
    above: set[int] = set()
    todo: list[tuple[Any, bool]] = [(value, False)] if isinstance(value, _CONTAINERS) else []
    while todo:
        item, is_done = todo.pop()
        if id(item) in met:
            continue
        children = list(item.values()) if isinstance(item, dict) else list(item)
        inside = [child for child in children if isinstance(child, _CONTAINERS)]
        if not is_done:
            if id(item) in above:
                raise Damaged(f"a {type(item).__name__} that contains itself")
            above.add(id(item))
            todo.append((item, True))
            todo.extend((child, False) for child in inside)
            continue
        below = [met[id(child)] for child in inside]
        items = 1 + len(children) + sum(known[2] for known in below)
        levels = 1 + max((known[3] for known in below), default=0)
        if levels > DEEPEST:
            raise Damaged(f"nested more than {DEEPEST} levels deep")
        if items > _UNFOLDED * size + 1000:
            raise Damaged(f"{size} bytes that unfold to more than {_UNFOLDED} times as many items")
        above.discard(id(item))
        found = [child if isinstance(child, _LEAVES) else _plain(child, met) for child in children]
        met[id(item)] = item, _with_children(item, found), items, levels
    return _plain(value, met)


def _plain(item: object, met: dict[int, tuple[object, object, int, int]]) -> object:
    if isinstance(item, _LEAVES):
        return item
    if isinstance(item, _CONTAINERS):
        return met[id(item)][1]
    if isinstance(item, bytearray):
        return bytes(item)
    if isinstance(item, Array) and item.built is not None:
        return item.built
    about = item.name if isinstance(item, Function) else f"a {type(item).__name__}"
    raise Refused(f"{about}, as a value of its own")


def _with_children(item: Any, children: list[object]) -> object:
    """The same list or dictionary, a new tuple. What is in sets has a hash, and stays."""
    if isinstance(item, list):
        item[:] = children
    elif isinstance(item, dict):
        item.update(zip(item, children, strict=True))
    elif isinstance(item, tuple):
        return tuple(children)
    return item
