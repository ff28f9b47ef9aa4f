"""YAML, read and written in one place: plain values only, nothing that is read otherwise than it looks.

YAML has traps that end in wrong studies: of a setting given twice the last one wins, 010 is 8, 1:30 is 90, 1_0 is 10,
`no` is false, 1e400 is infinite, and U+0085 breaks a line. Here these are errors with their line: other readers of YAML
take some of them for text. 1e-2 is the number that it looks like; dates are text, and so is all between quotes.
Files are bounded, aliases (`*name`) too: a few lines of them can stand for more values than fit in memory.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from waterjar.errors import WaterjarError, brief

MOST_BYTES = 256 * 1024
"""A file of settings has some kilobytes; one of this size takes seconds to read."""
MOST_VALUES = 100_000
"""Values, names and containers in a file, every alias counted as what it stands for."""
MOST_LEVELS = 30

_TAG = "tag:yaml.org,2002:"
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,39})")
_EXPONENT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", re.IGNORECASE)
_BREAKS = re.compile("[\x85\u2028\u2029]")
_LONE = re.compile("[\ud800-\udfff]")


def read_yaml_file(path: Path) -> Any:
    """What a YAML file holds; whatever is wrong with it is one `WaterjarError` with the line."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise WaterjarError(f"could not read {path}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise WaterjarError(f"{path} is larger than {MOST_BYTES // 1024} kB: that is no file of settings")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WaterjarError(
            f"{path}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from error
    return read_yaml(text, str(path))


def read_yaml(text: str, where: str) -> Any:
    """The value of a YAML text; `where` it is from stands in errors.

    >>> read_yaml("{lr: 1e-2, day: 2024-01-01}", "here")
    {'lr': 0.01, 'day': '2024-01-01'}
    """
    if len(text) > MOST_BYTES:
        raise WaterjarError(f"{where} is longer than {MOST_BYTES // 1024} kB: that is no setting")
    broken = _BREAKS.search(text)
    if broken is not None:
        before, sign = text.count("\n", 0, broken.start()), f"{ord(broken[0]):04X}"
        raise WaterjarError(
            f"{where}: line {before + 1}: U+{sign} cannot be seen, and breaks a line to some readers of YAML: leave it "
            f'out, or write "\\u{sign.lower()}" between double quotes'
        )
    try:
        loader = _Loader(text, where)
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if "'\\t'" in (error.problem or ""):
            what = "there is a tab; YAML is indented with spaces"
        raise WaterjarError(f"{where} is not YAML: {line}{what}") from error
    except yaml.YAMLError as error:
        raise WaterjarError(f"{where} is not YAML: {' '.join(str(error).split())}") from error


def write_yaml(value: object) -> str:
    """A text that `read_yaml` reads as the same value.

    >>> write_yaml({"name": "1e5", "lr": 0.1})
    "name: '1e5'\\nlr: 0.1\\n"
    """
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that `_Loader` reads as numbers, and escapes what it does not read as it is."""

    def text(self, value: str) -> yaml.ScalarNode:
        """Between double quotes where something must be escaped."""
        return self.represent_scalar(f"{_TAG}str", value, style='"' if _BREAKS.search(value) else None)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, without tags, names given twice, and numbers that are others elsewhere."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self._where = where
        self._depth = 0
        self._sizes: dict[int, tuple[int, int]] = {}  # id of a node -> values and levels in it

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """A node that is not too large, without a tag, and does not contain itself."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        tag = getattr(event, "tag", None)
        if tag not in (None, "!", f"{_TAG}str"):
            raise self._fault(event, f"the tag {brief(tag)} is not read: write plain text, numbers, lists and mappings")
        self._depth += 1
        if self._depth > MOST_LEVELS + 1:
            raise self._fault(event, f"nested deeper than {MOST_LEVELS} levels")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if not isinstance(event, yaml.AliasEvent):
            children = self._children(node)
            if all(id(child) in self._sizes for child in children):
                sizes = [self._sizes[id(child)] for child in children]
                levels = 1 + max((size[1] for size in sizes), default=-1)
                self._sizes[id(node)] = 1 + sum(size[0] for size in sizes), levels
        values, levels = self._sizes.get(id(node), (0, MOST_LEVELS + 1))
        if levels > MOST_LEVELS:
            raise self._fault(event, f"nested deeper than {MOST_LEVELS} levels")
        if values > MOST_VALUES:
            raise self._fault(event, f"more than {MOST_VALUES} values, aliases (*) written out: that is no study")
        return node

    def _children(self, node: yaml.Node) -> list[yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            return node.value if isinstance(node, yaml.SequenceNode) else []
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, "a list or a mapping cannot be the name of a setting")
            if key.value in lines:
                raise self._fault(
                    key, f"'{brief(key.value)}' is given twice, first in line {lines[key.value]}: leave one"
                )
            lines[key.value] = key.start_mark.line + 1
        return [part for pair in node.value for part in pair]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:  # type: ignore[override]
        """Names are text, whatever they look like; `<<` brings those of others, which its own go before."""
        self.flatten_mapping(node)
        return {self.text(key): self.construct_object(part, deep=deep) for key, part in node.value}

    def number(self, node: yaml.ScalarNode) -> int | float:
        """A number that every reader of YAML reads alike, and that a computer has."""
        text = str(node.value)
        shown = brief(text)
        is_whole = node.tag == f"{_TAG}int"
        if not (_DECIMAL if is_whole else _FLOAT).fullmatch(text):
            raise self._fault(
                node,
                f"{shown} is another number, or text, to other readers of YAML: write a decimal number of at most 40 "
                "digits without _, or quotes around a text",
            )
        value = self.construct_yaml_int(node) if is_whole else self.construct_yaml_float(node)
        if math.isinf(value) and "inf" not in text.lower():
            raise self._fault(node, f"{shown} is larger than any number of a computer, 1.8e308")
        if value == 0 and re.match(r"[-+0.]*[1-9]", text):
            raise self._fault(node, f"{shown} is smaller than any number of a computer but 0, 4.9e-324")
        return value

    def truth(self, node: yaml.ScalarNode) -> bool:
        """`true` and `false`, which every reader of YAML takes for them."""
        text = node.value.lower()
        if text in ("true", "false"):
            return bool(text == "true")
        meant = str(self.bool_values[text]).lower()
        raise self._fault(
            node,
            f"{node.value} is {meant} to some readers of YAML and text to others: write {meant}, or '{node.value}'",
        )

    def text(self, node: yaml.ScalarNode) -> str:
        """A text that can be written into a file; a date is one, too."""
        lone = _LONE.search(node.value)
        if lone is not None:
            raise self._fault(node, f"\\u{ord(lone[0]):04x} is half a sign, which no file can hold")
        return str(node.value)

    def _fault(self, place: Any, what: str) -> WaterjarError:
        return WaterjarError(f"{self._where}: line {place.start_mark.line + 1}: {what}")


# To YAML 1.1, which PyYAML reads, 1e-2 and 1.5e3 are text; 1.2 and everybody else read numbers.
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(f"{_TAG}float", _EXPONENT, list("-+.0123456789"))
_Dumper.add_representer(str, _Dumper.text)
_Loader.add_constructor(f"{_TAG}bool", _Loader.truth)
for _kind in ("int", "float"):
    _Loader.add_constructor(f"{_TAG}{_kind}", _Loader.number)
for _kind in ("timestamp", "value", "str"):
    _Loader.add_constructor(f"{_TAG}{_kind}", _Loader.text)
