"""The one exception root. An error says what was wrong, where, and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_SIGNS, MOST_LINES = 2000, 100
"""What an error shows of a line, and of lines: names and values come from files, and may be megabytes."""


class WaterjarError(Exception):
    """Anything waterjar refuses to do, in words meant for the person who asked; not more of them than can be read."""

    def __init__(self, message: object = "") -> None:
        lines = str(message).split("\n")
        if len(lines) > MOST_LINES:  # the last one may say what to do
            lines[MOST_LINES - 2 : -1] = [f"... {len(lines) - MOST_LINES + 1} more lines"]
        super().__init__("\n".join(brief(line, MOST_SIGNS) for line in lines))


def brief(text: object, most: int = 80) -> str:
    """A text that fits; what is left out is in its middle, since the end of an error says what was expected.

    >>> brief("abcdefghijkl", 9), brief("abc")
    ('abcdef…kl', 'abc')
    """
    whole = str(text)
    kept = most // 4
    return whole if len(whole) <= most else f"{whole[: most - kept - 1]}…{whole[len(whole) - kept :]}"


class BusyError(WaterjarError):
    """Another process is at it: nothing failed, and later the same command may do."""


class UnwrittenError(WaterjarError):
    """A file could not be written: what goes on without a figure that cannot be drawn does not go on after this."""


def given_as(name: str, value: object = "...", *, option: bool = False) -> str:
    """How a setting is given, for an error that people of both kinds read: on the command line, then in Python.

    `option` says that it is an option of its own.

    >>> print(given_as("splits", "[...]"))
    --set splits=[...] (Python: splits=[...])
    """
    said = f"--{name} {value}" if option else f"--set {name}={value}"
    return f"{said} (Python: {name}={_code(value)})"


def setting_as(name: str, value: object = "...") -> str:
    """How a setting of what is measured is given; several families may have one of that name, so it has its family's.

    >>> print(setting_as("rigidity.checkpoint", "last"))
    --set rigidity.checkpoint=last (Python: settings={"rigidity.checkpoint": 'last'})
    """
    return f'--set {name}={value} (Python: settings={{"{name}": {_code(value)}}})'


def where_as(condition: str) -> str:
    """How some runs of a study are chosen.

    >>> print(where_as('name != "naive-1"'))
    --where 'name != "naive-1"' (Python: study.select('name != "naive-1"'))
    """
    return f"--where '{condition}' (Python: study.select({condition!r}))"


def _code(value: object) -> str:
    """A value as Python has it; text that is no plain word stands for a value, and is left as it is."""
    return repr(value) if isinstance(value, str) and value.isidentifier() and value.islower() else str(value)


def unknown_name(what: str, value: object, options: Iterable[object], hint: str = "") -> WaterjarError:
    """Build the error for a name that is not one of `options`, with the nearest valid one.

    >>> print(unknown_name("eval_set", "tset", ["test", "train"]))
    eval_set 'tset' is unknown: did you mean 'test'? Known: 'test', 'train'
    """
    known, value = [str(option) for option in options], brief(value)
    near = [name for name in known if name.lower() == value.lower()][:1]
    near = near or difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    guess = f": did you mean '{near[0]}'?" if near else "."
    listing = ", ".join(f"'{name}'" for name in known) or "none"
    tail = f". {hint}" if hint else ""
    return WaterjarError(f"{what} '{value}' is unknown{guess} Known: {listing}{tail}")


def missing_extra(package: str, extra: str, purpose: str) -> WaterjarError:
    """Build the error for a package that an extra would bring, with the command that brings it.

    >>> print(missing_extra("matplotlib", "view", "figures"))
    figures need matplotlib, which is not installed: pip install '.[view]' in a checkout of waterjar
    """
    return WaterjarError(f"{purpose} need {package}, which is not installed: {to_install(extra)} {IN_CHECKOUT}")


IN_CHECKOUT = "in a checkout of waterjar"
"""Where `to_install` is run: waterjar is on no index yet."""


def to_install(extra: str) -> str:
    """The command that brings an extra; of "core", what waterjar itself needs.

    >>> to_install("view"), to_install("core")
    ("pip install '.[view]'", 'pip install .')
    """
    return "pip install ." if extra == "core" else f"pip install '.[{extra}]'"
