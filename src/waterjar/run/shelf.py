"""Parts by name: a shelf is a folder of ours, and what other packages bring as entry points `waterjar.<shelf>`.

One new file is one new data set, shortcut, network, learner, ...: its module name is its name, and a module whose name
starts with an underscore is shared by the others and is not found. Another package names such a file in its metadata,

    [project.entry-points."waterjar.networks"]
    wavy = "their_package.wavy"

and `wavy` is a network like any other. Listing names imports nothing; a part is imported when it is asked for by name.
One that cannot be imported, or whose name is taken, is named and costs nothing else. docs/parts.md says what a part of
each shelf has to have.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import logging
import multiprocessing
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from waterjar.errors import WaterjarError, brief, unknown_name

if TYPE_CHECKING:
    from waterjar.run.faults import Behind

PREFIX = "waterjar."
_LOG = logging.getLogger(__name__)


class PartError(WaterjarError):
    """A part from outside that cannot be used: its package is at fault, and all else goes on."""


@dataclass(frozen=True)
class Part:
    """A part from outside: an entry point of an installed package."""

    shelf: str
    name: str
    target: str
    """The module that it is: `package.module`."""
    package: str
    """The distribution that brings it, as pip knows it."""
    version: str

    @property
    def origin(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"

    @property
    def entry(self) -> str:
        """The line of the package's metadata that names it."""
        return f"{PREFIX}{self.shelf}: {self.name} = {self.target}"


@dataclass(frozen=True)
class Shelf:
    """All parts of one sort."""

    name: str
    """Entry points are `waterjar.<name>`; empty where packages from outside can bring nothing."""
    what: str
    """A part of it, in errors: `network`."""
    folder: str = ""
    """The package of ours whose modules are its parts; empty where a registry has them."""
    has: tuple[str, ...] = ()
    """What the module of a part from outside must have; `a|b` is one of the two, {name} the part's own name."""

    @property
    def ours(self) -> tuple[str, ...]:
        """The names that stand in the folder, sorted."""
        return _modules_in(self.folder) if self.folder else ()

    def names(self) -> tuple[str, ...]:
        """The names of all parts, sorted; none is imported."""
        return tuple(sorted({*self.ours, *self.outside()}))

    def outside(self) -> dict[str, Part]:
        """The parts from outside that are offered, by name. Whether one can be imported shows when it is."""
        refused = self.refusals()
        return {part.name: part for part in self.parts() if part not in refused}

    def parts(self) -> tuple[Part, ...]:
        """All that installed packages bring for this shelf, also what is not offered."""
        return tuple(part for part in found_parts() if part.shelf == self.name) if self.name else ()

    def refusals(self) -> dict[Part, str]:
        """The parts from outside that are not offered, and why, as far as it shows without importing any."""
        every = self.parts()
        found: dict[Part, str] = {}
        for part in every:
            others = [one for one in every if one.name == part.name and one is not part]
            if part.name in self.ours:
                found[part] = f"passed over: the {self.what} '{part.name}' is waterjar's own, which stays"
            elif others:
                both = " and ".join(sorted(one.origin for one in (part, *others)))
                found[part] = f"refused: {both} both have a {self.what} '{part.name}'; expected one of them installed"
            elif not re.fullmatch(r"[a-z][a-z0-9_]*", part.name):
                found[part] = "refused: expected a name of small letters, digits and _"
            elif not re.fullmatch(r"\w+(\.\w+)*", part.target):
                found[part] = f"refused: {brief(part.target)!r} is no module; expected package.module"
        return found

    def check(self, name: str, what: str = "", also: Iterable[str] = ()) -> None:
        """Refuse a name that is none of ours or theirs; `what` it was given as, and what else could stand there."""
        known = (*self.names(), *also)
        if name not in known:
            raise self.absent(name, known, what)

    def absent(self, name: str, known: Iterable[str], what: str = "") -> WaterjarError:
        """The error for a name that is not there: why its part is not offered, or the nearest of those `known`."""
        for part, why in self.refusals().items():
            if part.name == name:
                return PartError(f"{what or self.what} '{name}' ({part.entry}, of {part.origin}) is {why}")
        own = self.outside().get(name)
        if own in _FAULTS:
            return self.broken(own, _FAULTS[own])
        return unknown_name(what or self.what, name, known)

    def broken(self, part: Part, why: str) -> PartError:
        """The error for a part from outside that cannot be used, and why not: from now on for whoever asks for it."""
        _FAULTS[part] = why
        return PartError(f"{self.what} '{part.name}' ({part.entry}, of {part.origin}) cannot be used: {why}")

    def calling(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Around a call of a part: whatever one from outside raises becomes one error that names it and its package."""
        part = None if name in self.ours else self.outside().get(name)
        origin = "" if part is None else part.origin
        return blamed(f"{self.what} '{name}' of {origin}", origin)

    def module(self, name: str) -> ModuleType:
        """Import a part by its name, or say which there are, or why this one cannot be used."""
        self.check(name)
        if name not in self.ours:
            return self.load(self.outside()[name])
        self.tell_refusals(name)
        return importlib.import_module(f"{self.folder}.{name}")

    def tell_refusals(self, name: str | None = None) -> None:
        """Warn of parts from outside that are not offered, of one name or of all."""
        for part, why in self.refusals().items():
            if name in (None, part.name):
                tell_once(f"{part.entry}, of {part.origin}, is {why}")

    def load(self, part: Part) -> ModuleType:
        """Import a part from outside, or raise a `PartError` that names its package; it is tried once."""
        if part in _FAULTS:
            raise self.broken(part, _FAULTS[part])
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what it prints belongs in no table of ours
                module = importlib.import_module(part.target)
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # another's file: whatever it raises is a fault of that file
            raise self.broken(part, f"{type(error).__name__}: {error}") from error
        wanted = [one.replace("{name}", part.name) for one in self.has]
        lacking = [one for one in wanted if not any(hasattr(module, able) for able in one.split("|"))]
        if lacking:
            what = " and no ".join(lacking).replace("|", " or ")
            raise self.broken(part, f"it has no {what}; expected {', '.join(wanted).replace('|', ' or ')}")
        for name in (name for one in wanted for name in one.split("|") if hasattr(module, name)):
            expected = _unlike(name, getattr(module, name))
            if expected:
                raise self.broken(part, f"its {name} is {brief(repr(getattr(module, name)))}; expected {expected}")
        return module

    def fault(self, part: Part) -> str:
        """Why a part from outside cannot be used; empty if it can. It is imported to find out."""
        try:
            self.load(part)
        except PartError:
            return _FAULTS[part]
        return ""

    def modules(self) -> tuple[dict[str, ModuleType], dict[str, str]]:
        """All parts that can be imported, by name, and why the others cannot."""
        found: dict[str, ModuleType] = {}
        faults: dict[str, str] = {}
        for name in self.names():
            try:
                found[name] = self.module(name)
            except PartError as error:
                faults[name] = str(error)
        return found, faults

    def parse(self, name: str, settings: Mapping[str, object]) -> Any:
        """The settings of a part, validated; nothing is built."""
        from waterjar.run.faults import parse_settings  # noqa: PLC0415 - pydantic takes its time

        return parse_settings(self.module(name).Settings, settings, f"{self.what} '{name}'")

    def behind(self, name: object, at: str) -> Behind:
        """What stands behind a name in a study file: the settings of the part."""
        from waterjar.run.faults import Behind, unknown  # noqa: PLC0415

        if not isinstance(name, str):
            return Behind([])  # told where the types are judged
        try:
            return Behind([], self.module(name).Settings)
        except PartError as error:
            return Behind([f"{at}: {error}"])
        except WaterjarError:
            return Behind([f"{at}: {unknown(self.what, name, name, self.names())}"])


_KIND = ("HEADLINE", "declare", "expand", "plan", "check", "experiment", "pace_key", "headline")
SHELVES: dict[str, Shelf] = {
    shelf.name: shelf
    for shelf in (
        Shelf("data", "data set", "waterjar.lab.data", ("Settings", "load")),
        Shelf("shortcuts", "shortcut", "waterjar.lab.shortcuts", ("Settings", "build")),
        Shelf("networks", "network", "waterjar.lab.networks", ("Settings", "assemble")),
        Shelf("learners", "learner", "waterjar.lab.learners", ("Settings", "build")),
        Shelf("options", "option", "waterjar.lab.learning.options", ("Settings", "build|network_settings")),
        Shelf("kinds", "kind of study", "waterjar.lab.study.kinds", _KIND),
        Shelf("metrics", "metric"),
        Shelf("figures", "figure", "waterjar.view.figures", ("TITLE", "CAPTION", "NEEDS", "data", "{name}")),
        Shelf("formats", "format", "waterjar.run.formats", ("TITLE", "export_runs|import_runs")),
    )
}
"""The shelves that are open to other packages. A new one is a line here, and a word in docs/parts.md."""


@contextlib.contextmanager
def blamed(what: str, origin: str) -> Iterator[None]:
    """Make one `PartError` of whatever a part from outside raises while it is called; `what` names it and its package.

    Without an `origin`, which is its package, the part is ours, and an error that is not in words is a fault of ours:
    it stays as it is. So does what is in words already.
    """
    try:
        yield
    except (WaterjarError, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # another's file: whatever it raises is a fault of that file
        if not origin:
            raise
        raise PartError(f"{what} failed: {type(error).__name__}: {error}") from error


def from_outside(names: Mapping[str, Iterable[str]]) -> list[Part]:
    """Those of the parts named, shelf -> names, that come from outside."""
    return [part for shelf, some in names.items() for name, part in SHELVES[shelf].outside().items() if name in some]


def found_parts() -> tuple[Part, ...]:
    """Every entry point `waterjar.<something>` of the installed packages, also of shelves that there are not."""
    return _found(tuple(sys.path))


_FAULTS: dict[Part, str] = {}
"""Why parts could not be imported: a module that fails is not run again at every question."""
_TOLD: set[str] = set()


def tell_once(text: str) -> None:
    """Log a warning, once, and not by every worker."""
    if text not in _TOLD and multiprocessing.parent_process() is None:
        _LOG.warning("%s", text)
    _TOLD.add(text)


@functools.lru_cache(maxsize=4)
def _found(path: tuple[str, ...]) -> tuple[Part, ...]:
    return tuple(sorted(_read_entry_points(), key=lambda part: (part.shelf, part.name, part.package)))


def _read_entry_points() -> Iterator[Part]:
    """Package by package, and not by `metadata.entry_points`, which one damaged file among all would stop."""
    seen = set()
    for one in metadata.distributions():
        package = "an installed package"
        try:
            text = one.read_text("entry_points.txt") or ""
            if PREFIX not in text:
                continue
            package, version = str(one.metadata["Name"]), str(one.version)
            is_first = metadata.distribution(package).read_text("entry_points.txt") == text
            entries = list(one.entry_points)
        except (OSError, ValueError, TypeError, LookupError, AttributeError, ImportError) as error:
            tell_once(f"nothing of {package} is offered: its metadata cannot be read ({type(error).__name__}: {error})")
            continue
        if package in seen or not is_first:  # a copy further down the path, which is not the one that is imported
            continue
        seen.add(package)
        for entry in entries:
            if entry.group.startswith(PREFIX):
                yield Part(entry.group.removeprefix(PREFIX), entry.name, entry.value, package, version)


def _unlike(name: str, value: object) -> str:
    """What was expected under a name that a part must have, if `value` is not it: names say what they are of."""
    if name == "Settings":
        return "" if isinstance(value, type) and hasattr(value, "model_fields") else "a pydantic model"
    if name.isupper():
        return "" if value is not None else "a value"
    return "" if callable(value) else "a function"


@functools.cache
def _modules_in(package: str) -> tuple[str, ...]:
    """The names in a package's folder, found without importing it: that may take torch, or its being installed."""
    root, *rest = package.split(".")
    spec = importlib.util.find_spec(root)
    places = [] if spec is None else spec.submodule_search_locations or []
    found = pkgutil.iter_modules([str(Path(place, *rest)) for place in places])
    return tuple(sorted(module.name for module in found if not module.name.startswith("_")))
