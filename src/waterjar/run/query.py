"""The little language of `--where "learner=derpp and seed in (1, 2)"` and of `Study.select`.

It is parsed as a Python expression and walked node by node; nothing is evaluated.
"""

from __future__ import annotations

import ast
import io
import operator
import tokenize
from collections.abc import Callable
from typing import Any

from waterjar.errors import WaterjarError, brief, unknown_name
from waterjar.run.cells import flat
from waterjar.run.index import Entry

Test = Callable[[Entry], bool]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ABSENT = object()
_DEEPEST = 100
"""Levels of a condition; its tree is walked by functions that call themselves."""


def parse(condition: str) -> Test:
    """Turn a condition into a test of index entries.

    A key is a setting of the config (dotted for nested ones: patch.rate), or one of seed, status, name,
    run_id, cell_id. A run that lacks the key fulfils no comparison with it; a key that no run has is refused by
    `check_keys`.

    >>> entry = Entry("a", "1", "2", "sealed", [3], {"learner": "derpp", "patch": {"rate": 0.5}}, {}, None)
    >>> parse("learner=derpp and patch.rate >= 0.5 and seed in (3, 4)")(entry)
    True
    """
    tree = _tree(condition)
    _walk(tree, condition)(Entry("", "", "", "", [], {}, {}, None))  # a wrong node shows at once
    return _walk(tree, condition)


def check_keys(condition: str, entries: list[Entry], where: str = "--where") -> None:
    """Refuse a key that no run has: a typing error would otherwise look like an empty study."""
    known = {key for entry in entries for key in flat(entry.config)} | {
        "seed",
        "status",
        "name",
        "run_id",
        "cell_id",
    }
    for node in ast.walk(_tree(condition)):
        if isinstance(node, ast.Compare):
            key = _key(node.left, condition)
            if entries and key not in known and not any(k.startswith(f"{key}.") for k in known):
                raise unknown_name(f"{where}: key", key, sorted(known))


def nearest_values(condition: str, entries: list[Entry]) -> list[str]:
    """What is said of a condition that no run fulfils: the values that no run has, with those it may have meant."""
    said = []
    for node in ast.walk(_tree(condition)):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq | ast.In):
            continue
        right = node.comparators[0]
        asked = (
            [_value(item, condition) for item in right.elts] if hasattr(right, "elts") else [_value(right, condition)]
        )
        key = _key(node.left, condition)
        known = {str(value): value for entry in entries for value in _lookup(entry, key)}
        lost = [value for value in asked if value not in known.values()]
        said += [str(unknown_name(key, value, known)) for value in lost if known]
    return said


def _tree(condition: str) -> ast.expr:
    try:
        tokens = [
            (kind, "==" if (kind == tokenize.OP and text == "=") else text)
            for kind, text, *_ in tokenize.generate_tokens(io.StringIO(condition).readline)
        ]
        tree = ast.parse(tokenize.untokenize(tokens).strip(), mode="eval").body
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        raise _unreadable(condition) from error
    level: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        level = [below for node in level for below in ast.iter_child_nodes(node)]
    if level:
        raise WaterjarError(f"condition {brief(condition)!r} is nested deeper than {_DEEPEST} levels")
    return tree


def _unreadable(condition: str) -> WaterjarError:
    return WaterjarError(
        f'condition {condition!r} is not understood: expected something like "learner=derpp and seed in (1, 2)"; '
        "names with other signs than letters, digits and _ need quotes"
    )


def _walk(node: ast.expr, condition: str) -> Test:
    match node:
        case ast.BoolOp(op=op, values=values):
            tests = [_walk(value, condition) for value in values]
            every = all if isinstance(op, ast.And) else any
            return lambda entry: every(test(entry) for test in tests)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            test = _walk(operand, condition)
            return lambda entry: not test(entry)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _comparison(_key(left, condition), op, right, condition)
    raise _unreadable(condition)


def _comparison(key: str, op: ast.cmpop, right: ast.expr, condition: str) -> Test:
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(right, ast.Tuple | ast.List | ast.Set):
            raise _unreadable(condition)
        options = [_value(item, condition) for item in right.elts]
        wanted = isinstance(op, ast.In)
        return lambda entry: any((item in options) is wanted for item in _lookup(entry, key))
    if type(op) not in _COMPARE:
        raise _unreadable(condition)
    compare, value = _COMPARE[type(op)], _value(right, condition)

    def test(entry: Entry) -> bool:
        try:
            return any(compare(item, value) for item in _lookup(entry, key))
        except TypeError as error:
            raise WaterjarError(
                f"condition: {key} of {entry.name} cannot be compared with {value!r}: {error}"
            ) from error

    return test


def _key(node: ast.expr, condition: str) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            return f"{_key(value, condition)}.{attribute}"
    raise _unreadable(condition)


def _value(node: ast.expr, condition: str) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id="true" | "false" | "null" as word):
            return {"true": True, "false": False, "null": None}[word]
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Attribute():
            return _key(node, condition)
    raise _unreadable(condition)


def _lookup(entry: Entry, key: str) -> list[Any]:
    """All values a run has under a key: one, or none, or one per seed."""
    if key == "seed":
        return list(entry.seeds)
    if key in ("status", "name", "run_id", "cell_id"):
        return [getattr(entry, key)]
    found: Any = entry.config
    for part in key.split("."):
        found = found.get(part, _ABSENT) if isinstance(found, dict) else _ABSENT
    return [] if found is _ABSENT else [found]
