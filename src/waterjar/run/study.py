"""A study: a directory of runs, its declaration, an index that opens 1,000 of them at once, and a ledger."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run import ledger
from waterjar.run.annotations import Annotations, AnnotationsError, annotations_of
from waterjar.run.cells import flat, method_of, name_cells, seeds_as_settings
from waterjar.run.courses import explained
from waterjar.run.declared import DECLARED, read_declared
from waterjar.run.disk import as_path, write_file
from waterjar.run.identity import plain
from waterjar.run.index import Entry, Index, damaged_entry, entry_of, misannotated, read_index, write_index
from waterjar.run.join import join
from waterjar.run.notebook import FrontDoor, counted, numbers_in_words, table
from waterjar.run.probe_runs import left_out, not_shown, other_model
from waterjar.run.reader import Arrays, Run, read_group
from waterjar.run.root import NotARunError
from waterjar.run.stamped import pack
from waterjar.run.store import ROOT
from waterjar.run.visits import VISIT, add_visits
from waterjar.run.yaml_text import read_yaml_file, write_yaml

if TYPE_CHECKING:
    import xarray as xr


class Study(FrontDoor):
    """The runs below one directory. Cells (same config, other seeds) are joined along `repeat`.

    Probe runs, which looked into others, are none of `entries`: what they found stands under /probes of their source,
    and so do streams that their source did not record itself.
    """

    def __init__(
        self,
        path: Path,
        entries: list[Entry],
        opened: Mapping[str, Run] | None = None,
        probe_runs: Sequence[Entry] = (),
        set_aside: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.entries = entries
        self.probe_runs = list(probe_runs)
        self._opened = opened
        self.set_aside = list(set_aside)

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Run]:
        """The runs, opened one by one."""
        return (self.open(entry) for entry in self.entries)

    def __repr__(self) -> str:
        """Say how much there is."""
        sealed = sum(entry.status == "sealed" for entry in self.entries)
        size = f"{len(self)} runs ({sealed} sealed) in {len(self.cells)} cells"
        return "\n  ".join([f"<waterjar.Study {self.path}: {size}", *self.set_aside]) + ">"

    def _repr_html_(self) -> str:
        """One row per cell, by its name."""
        rows = []
        for cell, entries in self.cells.items():
            states = Counter(entry.status for entry in entries)
            told = ", ".join(f"{count} {state}" for state, count in states.items())
            seeds = sorted(seed for entry in entries for seed in entry.seeds)
            last = {int(entry.progress.get("step", -1)) for entry in entries}
            steps = str(min(last)) if len(last) == 1 else f"{min(last)} to {max(last)}"
            rows.append((self.cell_names[cell], numbers_in_words(seeds), told, steps))
        probes = [counted(len(self.probe_runs), "probe run")] if self.probe_runs else []
        size = f"{counted(len(self), 'run')} in {counted(len(self.cells), 'cell')}"
        title, said = f"waterjar study {self.path.name}: {size}", [str(self.path), *probes, *self.set_aside]
        return table(title, ("cell", "seeds", "runs", "last step"), rows, said)

    @cached_property
    def cells(self) -> dict[str, list[Entry]]:
        """cell_id -> its runs, in the order of their seeds."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.cell_id, []).append(entry)
        return {cell: sorted(entries, key=lambda entry: entry.seeds) for cell, entries in found.items()}

    @cached_property
    def cell_names(self) -> dict[str, str]:
        """cell_id -> a short, unique name: the method, and whatever else tells the cells of one method apart.

        A probe run that is looked at alone goes by its directory, unless it names a method.
        """
        if self.lone_probe and not method_of(self.entries[0].config):
            return {self.entries[0].cell_id: self.lone_probe}
        return name_cells({cell: flat(entries[0].config) for cell, entries in self.cells.items()})

    @property
    def lone_probe(self) -> str:
        """The directory of a probe run that is all there is, whether it names a source or not; else empty."""
        one = self.entries[0] if len(self.entries) == 1 else None
        return one.name if one is not None and (one.source or "probe" in one.config) else ""

    @property
    def declaration(self) -> dict[str, Any]:
        """The study's YAML declaration; empty if it has none."""
        file = self.path / ledger.DECLARATION
        if not file.is_file():
            return {}
        found = read_yaml_file(file)
        if not isinstance(found, dict | None):
            raise WaterjarError(f"{file} is not a YAML mapping, but a {type(found).__name__}")
        return found or {}

    @property
    def declared(self) -> list[str]:
        """The runs that its declaration asks for, in its order; empty if nobody wrote them down."""
        return read_declared(self.path)[0]

    @property
    def notes(self) -> list[str]:
        """What is wrong with the study's own files, and what follows from it."""
        fault = read_declared(self.path)[1]
        there = {entry.root_hash for entry in self.entries}
        lost = [entry for entry in self.probe_runs if entry.source not in there]
        said = [f"{entry.name} looked into {entry.source[:12]}, which is not here: it is left out" for entry in lost]
        for runs in self._probed():
            said += [why for _, why in left_out(runs)]
            said += not_shown(runs)
        return [*([fault] if fault else []), *seeds_as_settings(self.cells.values()), *self.set_aside, *said]

    @property
    def left_out(self) -> list[tuple[str, str]]:
        """(group, why) of what more than one of a run and its probe runs has, so that none of it counts."""
        return [one for runs in self._probed() for one in left_out(runs)]

    @property
    def other_models(self) -> list[str]:
        """A sentence of every probe run that looked into another network than its source recorded."""
        found = (other_model(runs[0], probe) for runs in self._probed() for probe in runs[1:])
        return [one for one in found if one]

    def _probed(self) -> Iterator[list[Run]]:
        """Every run that others looked into, and those, as they are now."""
        for entry in self.entries:
            if probes := self.probes_of(entry):
                yield [Run(self.path / one.name) for one in (entry, *probes)]

    @property
    def undeclared(self) -> list[str]:
        """Runs that its declaration does not ask for (any more); none where nobody wrote down which it does."""
        wanted = set(self.declared)
        return [entry.name for entry in self.entries if wanted and entry.name not in wanted]

    def confirmed(self, read: Mapping[str, Run] | None = None) -> Study:
        """The same with what the runs say of themselves, not their index; roots are read once for all that follows.

        Runs that were `read` a moment ago are not read again.
        """
        if self._opened is not None:
            return self
        opened: dict[str, Run] = {}
        entries = []
        for entry in (*self.entries, *self.probe_runs):
            try:
                found = (read or {}).get(entry.name) or Run(self.path / entry.name, annotated=False)
                entries.append(entry_of(found))
                found.reannotated()
                opened[entry.name] = found
            except AnnotationsError as error:
                entries[-1] = misannotated(entries[-1], error)
            except WaterjarError as error:
                entries.append(damaged_entry(entry.name, error))
        return Study(self.path, *_parted(entries, opened), self.set_aside)

    def open(self, entry: Entry) -> Run:
        """A run of the study: as it was when the study was confirmed, else as it is now. Its probe runs are joined."""
        opened = self._opened or {}
        found = opened[entry.name] if entry.name in opened else Run(self.path / entry.name)
        return found.with_probes([self.open(other) for other in self.probes_of(entry)])

    def probes_of(self, entry: Entry) -> list[Entry]:
        """The probe runs that looked into a run."""
        return [other for other in self.probe_runs if entry.root_hash and other.source == entry.root_hash]

    def run(self, name: str) -> Run:
        """One run by the name of its directory or by its run_id."""
        for entry in (*self.entries, *self.probe_runs):
            if name in (entry.name, entry.run_id):
                return self.open(entry)
        raise unknown_name(f"{self.path}: run", name, [entry.name for entry in self.entries])

    @property
    def annotations(self) -> dict[str, Annotations]:
        """Run -> what was annotated of it, or of the whole study, of those that have any."""
        opened = self._opened or {}
        names = [entry.name for entry in (*self.entries, *self.probe_runs) if not entry.fault]
        found = ((n, opened[n].annotations if n in opened else annotations_of(self.path / n)) for n in names)
        return {name: one for name, one in found if one is not None}

    def annotate(
        self,
        *,
        eval_task: Mapping[str, str | int] | None = None,
        chance: float | Mapping[str, float] | None = None,
        classes: Sequence[str] | None = None,
        probe_labels: ArrayLike | Mapping[str, ArrayLike] | None = None,
        note: str | None = None,
        remove: str | Collection[str] = (),
    ) -> Study:
        """Add what was forgotten while recording all runs of this directory (see `annotating.annotate`).

        What is told of one run by `run.annotate` counts before it.
        """
        from waterjar.run.annotating import annotate  # noqa: PLC0415 - not for reading

        whole = open_study(self.path)
        runs = [Run(self.path / one.name, annotated=False) for one in whole.entries if one.status != "damaged"]
        annotate(
            self.path, runs, eval_task=eval_task, chance=chance, classes=classes, probe_labels=probe_labels, note=note,
            remove=remove,
        )  # fmt: skip
        for run in (self._opened or {}).values():
            run.reannotated()
        return self

    def select(self, condition: str | Callable[[Entry], bool]) -> Study:
        """The runs that fulfil a condition, such as "learner=derpp and seed in (1, 2)"; its keys must be some run's."""
        from waterjar.run.query import check_keys, nearest_values, parse  # noqa: PLC0415 - it imports Entry

        if isinstance(condition, str):
            check_keys(condition, self.entries, f"{self.path}: condition {condition!r}")
        test = parse(condition) if isinstance(condition, str) else condition
        gone = [entry.name for entry in self.entries if not test(entry)]
        nothing = isinstance(condition, str) and len(gone) == len(self.entries)
        return self.without(gone, nearest_values(str(condition), self.entries) if nothing else [])

    def without(self, names: Collection[str], why: Sequence[str] = ()) -> Study:
        """The same without some runs, which take their probe runs with them, or without some probe runs.

        The notes of the result say `why`, as `set_aside` does.
        """
        kept = [entry for entry in self.entries if entry.name not in names]
        gone = {entry.root_hash for entry in self.entries} - {entry.root_hash for entry in kept}
        probes = [one for one in self.probe_runs if one.name not in names and one.source not in gone]
        return Study(self.path, kept, self._opened, probes, [*self.set_aside, *why])

    def load(self, group: str = "performance") -> dict[str, xr.Dataset]:
        """Name of a cell -> a group of all its runs in memory, joined along `repeat`.

        Shorter runs are padded with NaN, and `<name>_reason` says `run_ended`; of a seed that was only probed less
        often it says `not_recorded`. A seed that appears twice in a cell is an error: averaging over it would count
        one run twice. Cells without the group are left out; notes (dimension `event`) stay with their run. A damaged
        run is an error: select the others.
        """
        study = self.confirmed()
        if fault := next((entry.fault for entry in study.entries if entry.fault), ""):
            raise WaterjarError(fault)
        joined = {}
        for cell, entries in study.cells.items():
            found = load_runs([study.open(entry) for entry in entries], group)
            if found is not None:
                joined[study.cell_names[cell]] = found.drop_vars(["last_row", "is_open"], errors="ignore")
        if not joined:
            raise WaterjarError(f"no run of {self.path} has the group '{group}'")
        return joined


def load_runs(runs: Sequence[Run], group: str, only: Collection[str] | None = None) -> xr.Dataset | None:
    """A group of the runs of one cell in memory, joined along `repeat`; None if no run has it. `only` these arrays.

    Beside `directory`, whose run a repeat is of, stand `last_row`, where along `step` (or `snapshot`) that run ends (-1
    of one without any), and `is_open`, whether it is not sealed, so that more may come.
    """
    import xarray as xr  # noqa: PLC0415 - a second that `waterjar --help` must not pay

    parts: dict[str, Arrays] = {}
    coordinates: set[str] = set()
    for run in runs:
        if group in run.nodes:
            parts[run.path.name], names = read_group(run, group, only)
            coordinates |= names
    if not parts:
        return None
    owners = {run.path.name: run for run in runs if run.path.name in parts}
    called = {name: run.recorder_of(group) for name, run in owners.items()}
    probed = {name: run for name, run in owners.items() if group.startswith("probes/") or called[name] != name}
    steps = {name: run.last_step for name, run in probed.items()}
    with explained(runs):
        add_visits(parts, owners, only is not None and VISIT in only)
        coordinates |= {VISIT} & {name for arrays in parts.values() for name in arrays}
        arrays, coordinates = join(parts, {name: run.seeds for name, run in owners.items()}, coordinates, called, steps)
    dim = next((dim for dim in ("step", "snapshot") if dim in arrays), "")
    if dim:
        ends = [int(part[dim][1][-1]) if dim in part and len(part[dim][1]) else -1 for part in parts.values()]
        last = dict(zip(parts, np.searchsorted(np.asarray(arrays[dim][1]), ends, side="right") - 1, strict=True))
        whose = list(map(str, arrays["directory"][1]))
        arrays["last_row"] = ("repeat",), np.array([last[name] for name in whose], np.int64), {}
        arrays["is_open"] = ("repeat",), np.array([owners[name].status != "sealed" for name in whose], np.bool_), {}
        coordinates = coordinates | {"last_row", "is_open"}
    return xr.Dataset(arrays).set_coords(coordinates & arrays.keys())


def create_study(
    path: str | os.PathLike[str],
    declaration: Mapping[str, Any] | None = None,
    *,
    replace: bool = False,
    runs: Sequence[str] = (),
) -> Path:
    """Make a directory a study: runs sealed in it are entered in its ledger. `replace` an earlier declaration?

    `runs` are the directories of the runs that it declares, in the order in which tables and figures show them.
    """
    folder = as_path(path)
    text = write_yaml(plain(declaration or {}, "declaration"))
    file = folder / ledger.DECLARATION
    if file.is_file() and not replace and write_yaml(read_yaml_file(file)) != text:
        raise WaterjarError(f"{file} declares another study: choose another directory, or change that file by hand")
    write_file(folder / ledger.DECLARATION, text)
    if runs:
        write_file(folder / DECLARED, pack({"runs": list(runs)}))
    ledger.ensure_all(folder)  # a run may have been killed between its seal and its line
    return folder


def open_study(path: str | os.PathLike[str]) -> Study:
    """Open all runs below `path` (one level deep), sealed or not: as declared, and others after them by name."""
    return _opened(as_path(path))[0]


def _opened(folder: Path) -> tuple[Study, dict[str, Run]]:
    """The study, and those of its runs that had to be read because the index did not know them."""
    if not folder.is_dir():
        raise WaterjarError(f"{folder} is not a directory: give the directory that holds the runs")
    if (folder / ROOT).exists():
        raise WaterjarError(f"{folder} is a run itself: open it with open_run, or give the directory above it")
    known = read_index(folder)
    fresh: Index = {}
    read: dict[str, Run] = {}
    with os.scandir(folder) as items:
        for item in items:
            try:
                stat = os.lstat(os.path.join(item.path, ROOT))  # noqa: PTH118 - a thousand of them
            except OSError:  # no run, or a link that leads nowhere
                continue
            stamp = [stat.st_mtime_ns, stat.st_size, stat.st_ino]
            if item.name in known and known[item.name][0] == stamp:
                fresh[item.name] = known[item.name]
            else:
                try:
                    read[item.name] = Run(Path(item.path), annotated=False)  # an index is about roots alone
                    fresh[item.name] = (stamp, entry_of(read[item.name]))
                except NotARunError:
                    continue
                except WaterjarError as error:
                    fresh[item.name] = (stamp, damaged_entry(item.name, error))
    if fresh != known:
        write_index(folder, fresh)
    names = dict.fromkeys([*(name for name in read_declared(folder)[0] if name in fresh), *sorted(fresh)])
    return Study(folder, *_parted([fresh[name][1] for name in names])), read


def _parted(
    entries: Sequence[Entry], opened: Mapping[str, Run] | None = None
) -> tuple[list[Entry], Mapping[str, Run] | None, list[Entry]]:
    """Runs that were trained, and those that looked into others, as a Study takes them."""
    return [one for one in entries if not one.source], opened, [one for one in entries if one.source]


def study_at(path: str | os.PathLike[str], where: str = "") -> Study:
    """The study at a path, or a single run as a study of one, confirmed; `where` picks runs, and must pick some.

    A probe run by its own path is such a study, too.
    """
    folder = as_path(path)
    if (folder / ROOT).exists():
        one = folder.resolve()
        study, read = _opened(one.parent)
        if any(entry.name == one.name for entry in study.probe_runs):  # asked for itself, not for its source
            run = read.get(one.name) or Run(one, annotated=False)
            run.reannotated()
            return Study(study.path, [entry_of(run)], {one.name: run})
        return study.select(lambda entry: entry.name == one.name).confirmed(read)
    study, read = _opened(folder)
    study = study.confirmed(read)
    if not where:
        return study
    picked = study.select(where)
    if not picked.entries:
        raise WaterjarError(". ".join([f"no run of {folder} has {where}", *picked.set_aside]))
    return picked
