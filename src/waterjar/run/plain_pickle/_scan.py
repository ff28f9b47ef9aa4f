"""Read the instructions of a pickle before any of them is carried out, with the standard library's pickletools.

`pickletools.genops` finds lengths that the file does not hold. Its table of what each instruction takes and leaves on
the stack gives the rest: types of containers, and keys whose hash would take for ever or overflow the stack.
"""

from __future__ import annotations

import pickletools
from typing import Any

from waterjar.run.plain_pickle._arrays import Damaged, Refused, admitted

_REFUSED = {
    "PERSID": "an object from outside the file",
    "BINPERSID": "an object from outside the file",
    "EXT1": "a class of the extension registry",
    "EXT2": "a class of the extension registry",
    "EXT4": "a class of the extension registry",
    "NEXT_BUFFER": "a buffer outside the file",
    "READONLY_BUFFER": "a buffer outside the file",
    "LONG4": "a whole number of more than 255 bytes",
    "DUP": "a value twice, which no pickle does",
    "STRING": "text as protocol 0 writes it; write the file with protocol 2 or later",
    "UNICODE": "text as protocol 0 writes it; write the file with protocol 2 or later",
}
# Every class and function goes through our find_class, which refuses by name; none of ours is a class.
_WORDS = """
PROTO FRAME STOP MARK POP POP_MARK NONE NEWTRUE NEWFALSE INT LONG FLOAT BININT BININT1 BININT2 LONG1 BINFLOAT
BINSTRING SHORT_BINSTRING BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
EMPTY_LIST LIST APPEND APPENDS EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS
EMPTY_SET ADDITEMS FROZENSET PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET
GLOBAL STACK_GLOBAL REDUCE BUILD INST OBJ NEWOBJ NEWOBJ_EX
"""
_ADMITTED = frozenset(_WORDS.split())
_MARK = pickletools.markobject
_CHECKED = (pickletools.pylist, pickletools.pydict, pickletools.pyset, pickletools.pyunicode)
_NESTED = pickletools.StackObject("tuple of tuples", tuple, "Its hash takes as long as it unfolds.")
_SPARE_NUMBERS = 2**17
"""The memo is a table as long as its highest number: numbers may leave out so many, a megabyte or two."""


def scan(contents: bytes) -> None:
    """Refuse a pickle that is damaged, or asks for more than plain values and calls of admitted names."""
    stack: list[Any] = []  # what kind of value stands where
    memo: dict[int, Any] = {}
    end = 0
    try:
        found: Any  # whatever typeshed says, an instruction's argument has its kind, and its place is known
        for found in pickletools.genops(contents):
            instruction, argument, at = found
            end = at + 1  # of STOP, at last: it is one byte long
            name = instruction.name
            if name not in _ADMITTED:
                raise Refused(f"{_REFUSED.get(name, 'an unknown instruction')} ({name})")
            if name in ("GLOBAL", "INST"):
                admitted(*argument.split(" ", 1))
            taken, since_mark = _take(instruction, stack)
            _check_keys(name, taken, since_mark)
            if name in ("GET", "BINGET", "LONG_BINGET"):
                if argument not in memo:
                    raise Damaged(f"it brings back value {argument}, which it never kept")
                stack.append(memo[argument])
            elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
                number = len(memo) if name == "MEMOIZE" else argument
                stack.extend(taken)
                if not stack or stack[-1] is _MARK:
                    raise Damaged("it remembers a value where there is none")
                if not 0 <= number <= len(memo) + _SPARE_NUMBERS:
                    raise Damaged(f"it remembers value {number} after only {len(memo)} others")
                memo[number] = stack[-1]
            elif name.startswith("TUPLE"):
                parts = taken + since_mark
                is_nested = pickletools.pytuple in parts or _NESTED in parts
                stack.append(_NESTED if is_nested else pickletools.pytuple)
            else:
                stack.extend(instruction.stack_after)
    except ValueError as error:
        raise Damaged(str(error)) from None
    if stack:
        raise Damaged("it stops with more than one value")
    if end != len(contents):
        raise Damaged(f"{len(contents) - end} bytes stand behind its end")


def _take(instruction: pickletools.OpcodeInfo, stack: list[Any]) -> tuple[list[Any], list[Any]]:
    """What an instruction takes off the stack: below the mark (or in all), and since the mark."""
    expected, since_mark = instruction.stack_before, []
    if _MARK in expected:
        while stack and stack[-1] is not _MARK:
            since_mark.append(stack.pop())
        if not stack:
            raise Damaged(f"{instruction.name} ends a list of values that never began")
        stack.pop()
        since_mark.reverse()
        expected = expected[: expected.index(_MARK)]
    if len(expected) > len(stack):
        raise Damaged(f"{instruction.name} takes a value where there is none")
    taken = stack[len(stack) - len(expected) :]
    del stack[len(stack) - len(expected) :]
    for wanted, found in zip(expected, taken, strict=True):
        if (found is _MARK and instruction.name != "POP") or (wanted in _CHECKED and found is not wanted):
            raise Damaged(f"{instruction.name} takes a {wanted.name}, and finds a {found.name}")
    if instruction.name == "BUILD" and taken[0] is not pickletools.anyobject:
        raise Refused(f"a state for a {taken[0].name}")
    return taken, since_mark


def _check_keys(name: str, taken: list[Any], since_mark: list[Any]) -> None:
    if name in ("DICT", "SETITEMS") and len(since_mark) % 2:
        raise Damaged("a dictionary with a key that has no value")
    keys = {"SETITEM": taken[1:2], "DICT": since_mark[::2], "SETITEMS": since_mark[::2]}.get(name)
    keys = since_mark if name in ("ADDITEMS", "FROZENSET") else keys or []
    if _NESTED in keys or pickletools.pyfrozenset in keys:
        raise Damaged("a key that holds a tuple of tuples or a frozenset")
