"""Reading a YAML file of settings: plain values only, nothing that is read otherwise than it looks.

YAML has traps that end in wrong studies: of a setting given twice the last one wins, 010 is 8, 1:30 is 90, and 1e-2 is
text. Here the first three are errors with their line, and the fourth is the number that it looks like. Files are
bounded, aliases (`*name`) too: a few lines of them can stand for more values than fit in memory.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from waterjar.errors import WaterjarError

MOST_BYTES = 256 * 1024
"""A file of settings has some kilobytes; one of this size takes seconds to read."""
MOST_VALUES = 100_000
"""Values, names and containers in a file, every alias counted as what it stands for."""
MOST_LEVELS = 30

_TAG = "tag:yaml.org,2002:"
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]{0,39})")
_EXPONENT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
_NOT_FINITE = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}


def read_settings(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds; whatever is wrong with it is one `WaterjarError` with the line."""
    text = _text(path)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)  # nodes only: values are made below
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(path, error) from error
    except yaml.YAMLError as error:
        raise WaterjarError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise WaterjarError(f"{path} is nested deeper than {MOST_LEVELS} levels") from error
    if not isinstance(root, yaml.MappingNode):
        raise WaterjarError(f"{path} is not a mapping of settings: `waterjar new` writes one to start from")
    settings: dict[str, Any] = _Reader(path).value(root, 0)
    return settings


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise WaterjarError(f"could not read {path}: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise WaterjarError(f"{path} is larger than {MOST_BYTES // 1024} kB: that is no file of settings")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WaterjarError(
            f"{path}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        ) from error


def _not_yaml(path: Path, error: yaml.MarkedYAMLError) -> WaterjarError:
    mark = error.problem_mark or error.context_mark
    line = f"line {mark.line + 1}: " if mark is not None else ""
    if "'\\t'" in (error.problem or ""):
        return WaterjarError(f"{path} is not YAML: {line}there is a tab; YAML is indented with spaces")
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return WaterjarError(f"{path} is not YAML: {line}{what}")


class _Reader:
    """Turns YAML nodes into plain values, and counts them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0
        self._resolver = yaml.resolver.Resolver()

    def _mapping(self, node: yaml.MappingNode, level: int) -> dict[str, Any]:
        """A mapping with names for keys, each once; `<<` brings those of others, which its own go before."""
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            name = self._name(key)
            if name in lines:
                raise self._fault(key, f"'{name}' is given twice, first in line {lines[name]}: leave one of them")
            lines[name] = key.start_mark.line + 1
            if key.tag == f"{_TAG}merge":
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in parts:
                    if not isinstance(part, yaml.MappingNode):
                        raise self._fault(part, "`<<` takes a mapping, or a list of them")
                    merged = self.value(part, level + 1) | merged  # the first of several goes before the others
            else:
                own[name] = self.value(value, level + 1)
        return merged | own

    def _name(self, key: yaml.Node) -> str:
        self._counted(key)
        if not isinstance(key, yaml.ScalarNode):
            raise self._fault(key, "a list or a mapping cannot be the name of a setting")
        return str(key.value)

    def value(self, node: yaml.Node, level: int) -> Any:
        """What a node stands for."""
        self._counted(node)
        if level > MOST_LEVELS:
            raise self._fault(node, f"nested deeper than {MOST_LEVELS} levels")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != f"{_TAG}{kind}":
            raise self._tagged(node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, level)
        return [self.value(part, level + 1) for part in node.value]

    def _scalar(self, node: yaml.ScalarNode) -> object:
        text = str(node.value)
        if node.tag == f"{_TAG}str":
            # To YAML 1.1, which PyYAML reads, 1e-2 and 1.5e3 are text; 1.2 and everybody else read numbers.
            return float(text.replace("_", "")) if node.style is None and _EXPONENT.fullmatch(text) else text
        if node.tag != self._resolver.resolve(yaml.ScalarNode, text, (True, False)):  # type: ignore[no-untyped-call]
            raise self._tagged(node)
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return text.lower() in ("yes", "true", "on")
            case "int" if _DECIMAL.fullmatch(text):
                return int(text)
            case "float" if _FLOAT.fullmatch(text):
                return float(text.replace("_", ""))
            case "float" if text.lower() in _NOT_FINITE:
                return _NOT_FINITE[text.lower()]
            case "int" | "float":
                shown = text if len(text) <= 40 else f"{text[:40]}..."
                raise self._fault(
                    node,
                    f"{shown} is another number to other readers of YAML: write a decimal number of at most 40 digits",
                )
        return text  # a date, say: nothing here is one

    def _counted(self, node: yaml.Node) -> None:
        self._count += 1
        if self._count > MOST_VALUES:
            raise self._fault(node, f"more than {MOST_VALUES} values, aliases (*) written out: that is no study")

    def _tagged(self, node: yaml.Node) -> WaterjarError:
        return self._fault(node, f"the tag {node.tag} is not read: write plain text, numbers, lists and mappings")

    def _fault(self, node: yaml.Node, what: str) -> WaterjarError:
        return WaterjarError(f"{self._path}: line {node.start_mark.line + 1}: {what}")
