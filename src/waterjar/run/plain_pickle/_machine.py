"""The instructions of a pickle that build plain values, one method or line each; the others are refused by name.

The format is that of the standard library's pickle and pickletools (PEP 307, 3154, 574).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from waterjar.run.plain_pickle._arrays import Damaged, Name, Refused, Unbuilt, built, called, lookup, shown

_KEYS = (str, bytes, int, float, type(None), np.generic)
_LONGEST_LINE = 1000


class Machine:
    """Runs one pickle: a stack, stacks below the marks, and a memo."""

    def __init__(self, contents: bytes) -> None:
        self._contents = contents
        self._at = 0
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        # Bytes that arrays may still take. In a plain file no byte is in two of them; protocol 2 makes them twice.
        self._left = 2 * len(contents)

    def run(self) -> object:
        """The value at the end."""
        contents = self._contents
        while True:
            if self._at >= len(contents):
                raise Damaged(f"it ends early, after {len(contents)} bytes")
            opcode = contents[self._at]
            self._at += 1
            if opcode == _STOP:
                break
            action = _ACTIONS.get(opcode)
            if action is None:
                raise _not_admitted(opcode)
            action(self)
        if self._below or len(self._stack) != 1:
            raise Damaged("it stops with more or less than one value")
        if self._at != len(contents):
            raise Damaged(f"{len(contents) - self._at} bytes stand behind its end")
        return self._stack[0]

    def take(self, count: int) -> bytes:
        """The next bytes; none are set aside before they are known to be there."""
        end = self._at + count
        if end > len(self._contents):
            raise Damaged(f"{count} bytes are announced at {self._at}, {len(self._contents) - self._at} are there")
        found = self._contents[self._at : end]
        self._at = end
        return found

    def sized(self, width: int) -> bytes:
        """Bytes behind their number, itself of `width` bytes."""
        return self.take(int.from_bytes(self.take(width), "little"))

    def line(self) -> str:
        """Text up to the end of the line."""
        end = self._contents.find(b"\n", self._at, self._at + _LONGEST_LINE)
        if end < 0:
            raise Damaged(f"a line at {self._at} that does not end")
        text = self.take(end - self._at)
        self._at += 1
        return text.decode("latin1")

    def number(self, kind: type[int] | type[float]) -> int | float:
        """A number written as text."""
        text = self.line().removesuffix("L")
        try:
            return kind(text)
        except ValueError:
            raise Damaged(f"'{shown(text)}' where a number should be") from None

    def push(self, value: object) -> None:
        """Put a value on the stack."""
        self._stack.append(value)

    def pop(self) -> Any:
        """Take a value off the stack."""
        if not self._stack:
            raise Damaged("it takes a value where there is none")
        return self._stack.pop()

    def popped(self, count: int) -> tuple[Any, ...]:
        """Take some off, in their order."""
        found = [self.pop() for _ in range(count)]
        return tuple(reversed(found))

    def top(self, kind: type) -> Any:
        """The value on top, which must be a container of this kind."""
        if not self._stack or type(self._stack[-1]) is not kind:
            raise Damaged(f"it fills a {kind.__name__} where there is none")
        return self._stack[-1]

    def mark(self) -> None:
        """Begin a list of values."""
        self._below.append(self._stack)
        self._stack = []

    def since_mark(self) -> list[Any]:
        """End it."""
        if not self._below:
            raise Damaged("it ends a list of values that it never began")
        found, self._stack = self._stack, self._below.pop()
        return found

    def put(self, key: int) -> None:
        """Remember the value on top."""
        if not self._stack:
            raise Damaged("it remembers a value where there is none")
        self._memo[key] = self._stack[-1]
        if isinstance(self._stack[-1], Unbuilt):
            self._stack[-1].keys.append(key)

    def memoize(self) -> None:
        """The same under the next free number."""
        self.put(len(self._memo))

    def get(self, key: int) -> None:
        """Bring a value back."""
        if key not in self._memo:
            raise Damaged(f"it brings back value {key}, which it never kept")
        self.push(self._memo[key])

    def set_items(self, pairs: list[Any]) -> None:
        """Fill the dictionary on top."""
        target = self.top(dict)
        if len(pairs) % 2:
            raise Damaged("a dictionary with a key that has no value")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            target[as_key(key)] = value

    def set_item(self) -> None:
        """Give the dictionary on top one more item."""
        self.set_items(list(self.popped(2)))

    def extend(self, items: list[Any]) -> None:
        """Fill the list on top."""
        self.top(list).extend(items)

    def dictionary(self) -> None:
        """A dictionary of what stands since the mark."""
        pairs = self.since_mark()
        self.push({})
        self.set_items(pairs)

    def add_items(self) -> None:
        """Fill the set on top."""
        items = self.since_mark()
        self.top(set).update(as_key(item) for item in items)

    def reduce(self) -> None:
        """A call, of which only those that numpy's arrays are made of are known."""
        function, arguments = self.popped(2)
        self.push(self._paid(called(function, arguments)))

    def build(self) -> None:
        """Complete an array or a dtype, wherever it is remembered."""
        started, state = self.popped(2)
        found = self._paid(built(started, state))
        for key in started.keys:
            if self._memo.get(key) is started:
                self._memo[key] = found
        self.push(found)

    def _paid(self, value: object) -> object:
        """Count an array's bytes: made again and again of the same ones, a small file would fill the memory."""
        self._left -= value.nbytes if isinstance(value, np.ndarray) else len(value) if isinstance(value, bytes) else 0
        if self._left < 0:
            raise Damaged("its arrays are larger than the file they are in")
        return value

    def boolean_or_integer(self) -> None:
        """I01 and I00 are True and False."""
        is_bool = self._contents[self._at : self._at + 3] in (b"00\n", b"01\n")
        value = self.number(int)
        self.push(bool(value) if is_bool else value)

    def text(self, raw: bytes) -> None:
        """Unicode text."""
        try:
            self.push(raw.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError as error:
            raise Damaged(f"text that is not UTF-8: {error.reason}") from None

    def global_name(self) -> None:
        """A name of a module, as two lines."""
        module, name = self.line(), self.line()
        self.push(lookup(module, name))

    def instance(self) -> None:
        """An object of a class that is named in two lines."""
        module, name = self.line(), self.line()
        raise Refused(shown(f"{module}.{name}"))

    def new_object(self) -> None:
        """An object of a class on the stack."""
        known = [value for value in self._stack if isinstance(value, Name)]
        raise Refused(f"a new object of {known[-1].full if known else 'a class'}")

    def frame(self) -> None:
        """The length of what follows; nothing depends on it."""
        length = int.from_bytes(self.take(8), "little")
        if self._at + length > len(self._contents):
            raise Damaged(f"it ends early, after {len(self._contents)} bytes")

    def protocol(self) -> None:
        """Which instructions to expect."""
        if self.take(1)[0] > 5:
            raise Damaged("a protocol later than 5")


def as_key(value: object) -> Any:
    """A key that can be hashed at once: a number, text, or a tuple of those."""
    parts = value if type(value) is tuple else (value,)
    for part in parts:
        if not isinstance(part, _KEYS):
            raise Damaged(f"a key that holds a {type(part).__name__}")
    return value


def _unsigned(machine: Machine, width: int) -> int:
    return int.from_bytes(machine.take(width), "little")


def _signed(machine: Machine, raw: bytes) -> None:
    machine.push(int.from_bytes(raw, "little", signed=True))


_STOP = ord(".")

_ACTIONS: dict[int, Callable[[Machine], object]] = {
    0x80: Machine.protocol,
    0x95: Machine.frame,
    ord("("): Machine.mark,
    ord("0"): lambda m: m.pop(),
    ord("1"): Machine.since_mark,
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("I"): Machine.boolean_or_integer,
    ord("L"): lambda m: m.push(m.number(int)),
    ord("F"): lambda m: m.push(m.number(float)),
    ord("K"): lambda m: m.push(m.take(1)[0]),
    ord("M"): lambda m: m.push(_unsigned(m, 2)),
    ord("J"): lambda m: _signed(m, m.take(4)),
    0x8A: lambda m: _signed(m, m.sized(1)),
    ord("G"): lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    ord("U"): lambda m: m.push(m.sized(1).decode("latin1")),  # text and bytes of Python 2
    ord("T"): lambda m: m.push(m.sized(4).decode("latin1")),
    ord("X"): lambda m: m.text(m.sized(4)),
    0x8C: lambda m: m.text(m.sized(1)),
    0x8D: lambda m: m.text(m.sized(8)),
    ord("C"): lambda m: m.push(m.sized(1)),
    ord("B"): lambda m: m.push(m.sized(4)),
    0x8E: lambda m: m.push(m.sized(8)),
    0x96: lambda m: m.push(m.sized(8)),  # a bytearray
    ord("]"): lambda m: m.push([]),
    ord("l"): lambda m: m.push(m.since_mark()),
    ord("a"): lambda m: m.extend([m.pop()]),
    ord("e"): lambda m: m.extend(m.since_mark()),
    ord(")"): lambda m: m.push(()),
    ord("t"): lambda m: m.push(tuple(m.since_mark())),
    0x85: lambda m: m.push(m.popped(1)),
    0x86: lambda m: m.push(m.popped(2)),
    0x87: lambda m: m.push(m.popped(3)),
    ord("}"): lambda m: m.push({}),
    ord("d"): Machine.dictionary,
    ord("s"): Machine.set_item,
    ord("u"): lambda m: m.set_items(m.since_mark()),
    0x8F: lambda m: m.push(set()),
    0x90: Machine.add_items,
    0x91: lambda m: m.push(frozenset(as_key(item) for item in m.since_mark())),
    ord("p"): lambda m: m.put(int(m.number(int))),
    ord("q"): lambda m: m.put(m.take(1)[0]),
    ord("r"): lambda m: m.put(_unsigned(m, 4)),
    0x94: Machine.memoize,
    ord("g"): lambda m: m.get(int(m.number(int))),
    ord("h"): lambda m: m.get(m.take(1)[0]),
    ord("j"): lambda m: m.get(_unsigned(m, 4)),
    ord("c"): Machine.global_name,
    0x93: lambda m: m.push(lookup(*m.popped(2))),
    ord("R"): Machine.reduce,
    ord("b"): Machine.build,
    ord("i"): Machine.instance,
    ord("o"): Machine.new_object,
    0x81: Machine.new_object,
    0x92: Machine.new_object,
}

_REFUSED = {
    ord("P"): "an object from outside the file (PERSID)",
    ord("Q"): "an object from outside the file (BINPERSID)",
    0x82: "a class of the extension registry (EXT1)",
    0x83: "a class of the extension registry (EXT2)",
    0x84: "a class of the extension registry (EXT4)",
    0x97: "a buffer outside the file (NEXT_BUFFER)",
    0x98: "a buffer outside the file (READONLY_BUFFER)",
    0x8B: "a whole number of more than 255 bytes (LONG4)",
    ord("2"): "a value twice (DUP), which no pickle does",
    ord("S"): "text as protocol 0 writes it (STRING); write the file with protocol 2 or later",
    ord("V"): "text as protocol 0 writes it (UNICODE); write the file with protocol 2 or later",
}


def _not_admitted(opcode: int) -> Exception:
    if opcode in _REFUSED:
        return Refused(_REFUSED[opcode])
    return Damaged(f"it has the byte {opcode:#04x} where an instruction should be")
