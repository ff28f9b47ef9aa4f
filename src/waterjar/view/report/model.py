"""What is known of a study when its report is written: the runs, what was measured, whether the seals hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd
import xarray as xr

from waterjar.diagnose.analysis import analysis_of
from waterjar.diagnose.baseline import check_baseline, default_baseline, find_baselines
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.over_seeds import cells_over_seeds
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import WaterjarError
from waterjar.run import ledger
from waterjar.run.cells import flat
from waterjar.run.seal import verify
from waterjar.run.shown import shown_settings
from waterjar.run.study import Study
from waterjar.view import figures
from waterjar.view.numbers import counted, listed, shorten
from waterjar.view.report.blocks import Callout, Key
from waterjar.view.report.charts.theme import keys_of
from waterjar.view.results import cell_labels

_WORDS = (("data", "on"), ("backbone", "with"))
"""Settings that the opening names, each with the word before it."""
_LONGEST = 40
"""Characters of a name in the opening."""
_EPOCHS = "training.epochs_"
"""What settings begin with that say how long a task is trained; the rest of them is the task."""


@dataclass(frozen=True)
class Seal:
    """The state of one run's seal: sealed, open, tampered, damaged (unreadable), misannotated (its annotations are
    unreadable, and it was left out) or missing (in the ledger alone)."""

    run: str
    state: str
    root: str = ""
    problems: tuple[str, ...] = ()
    probe_of: str = ""
    """The run that it looked into, of a probe run."""

    @property
    def title(self) -> str:
        """Its name, and of a probe run what it is."""
        return f"{self.run} (probe run of {self.probe_of})" if self.probe_of else self.run


@dataclass(frozen=True)
class Model:
    """A study and everything that a section may tell of it."""

    title: str
    study: Study
    """The runs that can be read."""
    diagnosis: Diagnosis
    """Without results where there was nothing to measure."""
    seals: tuple[Seal, ...]
    where: str = ""
    """The condition by which runs were picked, if there was one."""
    given: dict[str, dict[str, Any]] = field(default_factory=dict)
    """family -> settings that were asked for, which go before those that the study declares."""
    refused: dict[str, str] = field(default_factory=dict)
    """figure -> why it has nothing to show of this study."""
    unjoined: dict[str, str] = field(default_factory=dict)
    """recorded group -> why runs that have it cannot be put side by side."""
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    """What figures hand over, kept: several sections may show it."""
    _recorded: dict[str, dict[str, xr.Dataset]] = field(default_factory=dict)

    def figure_data(self, name: str, **settings: Any) -> pd.DataFrame:
        """The numbers behind a figure of `waterjar.view.figures`; empty where the study has none for it."""
        key = f"{name} {json.dumps(settings, sort_keys=True)}"
        if key not in self._frames:
            self._frames[key] = pd.DataFrame()
            measured = self.diagnosis.results
            needs = figures.describe(name).needs
            if self.study.entries and all(any(one in measured for one in need.split("|")) for need in needs):
                try:
                    self._frames[key] = figures.data(name, self.diagnosis, **settings)
                except WaterjarError as error:  # the page goes without this figure, and says why
                    self.refused[name] = str(error)
        return self._frames[key]

    @cached_property
    def names(self) -> dict[str, str]:
        """cell -> its name, in the order in which tables and figures show them."""
        return cell_labels(self.study)

    @cached_property
    def keys(self) -> dict[str, Key]:
        """name of a cell -> its colour, dash and symbol, the same in every chart."""
        return keys_of(self.names.values())

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every number that was measured: one row per metric, cell and seed; empty where nothing was."""
        return self.diagnosis.table()

    @cached_property
    def means(self) -> pd.DataFrame:
        """The same over seeds: one row per metric and cell, which goes by its name."""
        of = self.diagnosis
        return pd.concat(
            [
                cells_over_seeds(self.table[self.table["family"] == family], of.confidence(family), of.declared)
                for family in dict.fromkeys(self.table["family"]) or [""]
            ],
            ignore_index=True,
        )

    @property
    def baseline(self) -> str:
        """What cells are compared with: as asked for, as declared, or as is usual."""
        return self.diagnosis.analysis.baseline_name or default_baseline(self.study)[0]

    @property
    def paired(self) -> bool:
        """Whether learners are compared seed by seed."""
        return self.diagnosis.analysis.test_settings.paired

    @cached_property
    def compared(self) -> tuple[pd.DataFrame, str]:
        """Learners beside the baseline by every metric that matters, as `waterjar compare` tests them; or why not."""
        if self.diagnosis.analysis.tests is False:
            return pd.DataFrame(), "the study declares no tests"
        if len(self.study.cells) < 2:
            return pd.DataFrame(), "there is one learner"
        try:
            return self.compared_by(None), ""
        except WaterjarError as error:
            return pd.DataFrame(), str(error)

    def compared_by(self, names: Sequence[str] | None) -> pd.DataFrame:
        """The same by metrics, or what was recorded, by name."""
        table = compare_cells(self.diagnosis, names, baseline=self.baseline)
        shown = dict(zip(self.study.cell_names.values(), self.names.values(), strict=True))
        return table.assign(**{key: [shown.get(one, one) for one in table[key]] for key in ("group", "baseline")})

    def recorded(self, group: str) -> dict[str, xr.Dataset]:
        """A recorded group of every cell, read once; empty where no run has it."""
        if group not in self._recorded:
            try:
                self._recorded[group] = self.study.load(group)
            except WaterjarError as error:  # none has it, or one cannot be read: what lives of it goes without
                self._recorded[group] = {}
                if any(group in self.study.open(entry).groups for entry in self.study.entries):
                    self.unjoined[group] = str(error)
        return self._recorded[group]

    @property
    def lead(self) -> str | None:
        """The family whose finding comes first, of those that were measured; None where none was."""
        return next(iter(self.diagnosis.order), None)

    def states(self, state: str) -> list[Seal]:
        """The runs whose seal is in a state."""
        return [seal for seal in self.seals if seal.state == state]

    @property
    def opening(self) -> str:
        """What was run, in a few words.

        Only what the runs say of themselves: a setting that differs between cells, or is not there, is not named.
        """
        entries = self.study.entries
        if not entries:
            return "No run in this study can be read: there is nothing to report."
        seeds = sorted({seed for entry in entries for seed in entry.seeds})
        cells = list(self.names.values())
        what = (
            f"{counted(len(cells), 'learner')} ({listed(cells, longest=_LONGEST)})"
            if len(cells) > 1
            else shorten(cells[0], 80)
        )
        text = f"{counted(len(entries), 'run')}: {what}, {counted(len(seeds), 'seed')} ({listed(map(str, seeds))})"
        common = _common(flat(shown_settings(entry.config)) for entry in entries)
        for key, word in _WORDS:
            if isinstance(common.get(key), str) and common[key]:
                text += f", {word} {shorten(common[key], 60)}"
        epochs = {key.removeprefix(_EPOCHS).upper(): n for key, n in common.items() if key.startswith(_EPOCHS)}
        if epochs:
            text += "; " + ", then ".join(f"{n} epochs of {task}" for task, n in epochs.items())
        kind, rate = common.get("shortcut.kind"), common.get("shortcut.rate")
        if isinstance(kind, str) and isinstance(rate, int | float):
            begin = f". In {list(epochs)[-1]}, " if epochs else ". "
            text += f"{begin}{100 * rate:g} % of the training images of some classes carry a shortcut"
            text += f" ({shorten(kind, 40)})"
        return text + (f". Only runs with {shorten(self.where, 80)}." if self.where else ".")

    @property
    def status(self) -> Callout:
        """The seals, in a line: the worst state speaks first."""
        total = len(self.seals)
        if not total:
            return Callout("note", "No runs", "There is no seal to check.")
        words = {
            "tampered": "changed after sealing",
            "damaged": "unreadable and left out",
            "misannotated": "left out for annotations that cannot be read",
            "missing": "sealed once and gone",
        }
        broken = {state: [seal.title for seal in self.states(state)] for state in words if self.states(state)}
        if broken:
            parts = [
                f"{counted(len(runs), 'run')} {words[s]} ({listed(runs, 3, longest=_LONGEST)})"
                for s, runs in broken.items()
            ]
            title = "Seals do not hold" if "tampered" in broken else "Runs are missing from these numbers"
            rest = "Do not trust these numbers before you know why."
            return Callout("bad", title, f"Of {total}: {'; '.join(parts)}. {rest}")
        if self.study.set_aside:
            return Callout("warning", "Runs are missing from these numbers", " ".join(self.study.set_aside))
        still_open = [seal.title for seal in self.states("open")]
        if still_open:
            n, (verb, whose) = len(still_open), ("is", "its") if len(still_open) == 1 else ("are", "their")
            how_many = (
                f"{n} of {counted(total, 'run')} {verb} not sealed yet ({listed(still_open, 3, longest=_LONGEST)})"
            )
            return Callout("warning", "Unfinished", f"{how_many}: {whose} numbers may still change.")
        probes = sum(bool(seal.probe_of) for seal in self.seals)
        which = f"All {total} runs" if not probes else f"All {total} runs, {probes} of them probe runs,"
        every = "Its seal holds" if total == 1 else f"{which} are sealed, and their seals hold"
        since = "it was" if total == 1 else "they were"
        last = min(self.diagnosis.checked.values(), default="")
        when = f" Last checked at {last}; sizes and times of files are the same since." if last else ""
        changed = "had changed since" if last else "has changed since"
        return Callout("good", "Sealed", f"{every}: not a byte {changed} {since} recorded.{when}")


def model_of(
    study: Study,
    *,
    title: str = "",
    baseline: str | None = None,
    where: str = "",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    measure: Callable[..., Diagnosis] = diagnose,
) -> Model:
    """Measure what a study declares, or has the data for, and gather what else a report tells of it.

    Damaged runs are left out of the numbers and named; a study without readable runs has a model too. `settings` and
    `baseline` go before what the study declares. `measure` is `diagnose`, or what calls it in a way of its own: with a
    progress bar, say.
    """
    study = study.confirmed()
    part = study.select(lambda entry: not entry.fault)
    given = {family: dict(own) for family, own in (settings or {}).items()}
    if baseline is not None and part.entries and baseline != analysis_of(part).baseline_name:
        check_baseline(part, baseline)  # a name that nothing has is an error, and not a family passed over
        find_baselines(part, baseline)
    broken: dict[str, str] = {}
    diagnosis = Diagnosis(part, {})
    if part.entries:
        diagnosis = measure(part, settings=given, baseline=baseline)
        broken = _unreadable(part, diagnosis)
    if broken:  # one run that cannot be read must not take a whole family with it
        part = part.without(broken)
        diagnosis = measure(part, settings=given, baseline=baseline) if part.entries else Diagnosis(part, {})
    part = diagnosis.study  # cells whose runs do not fit together are left out
    name = title or study.lone_probe or str(study.declaration.get("experiment_name") or study.path.resolve().name)
    return Model(name, part, diagnosis, tuple(_seals(study, diagnosis, broken)), where, given)


def _unreadable(study: Study, diagnosis: Diagnosis) -> dict[str, str]:
    """run -> what is wrong, for runs whose files changed and that cannot be read to the end any more.

    A chunk that is gone, or whose checksum does not hold, is an error in every family that reads it; where the seal
    (or, of an open run, the checksums) holds, every file is there, and nothing has to be tried.
    """
    found = {}
    for name in (name for name, state in diagnosis.seals.items() if state == "tampered"):
        try:
            run = study.run(name)
            for group in run.groups:
                run.load(group)
        except WaterjarError as error:
            found[name] = str(error)
    return found


def _seals(study: Study, diagnosis: Diagnosis, broken: Mapping[str, str]) -> list[Seal]:
    found = []
    runs = [(one, entry.name) for entry in study.entries for one in (entry, *study.probes_of(entry))]
    for entry, owner in runs:
        state, problems = entry.status if entry.fault else diagnosis.seals.get(entry.name, "damaged"), []
        if entry.name in broken:
            problems.append(broken[entry.name])
        elif entry.fault:
            problems.append(str(entry.progress["error"]))
        if entry.name in broken or state == "tampered":
            problems += [str(problem) for problem in verify(study.path / entry.name).problems]
        probe_of = owner if owner != entry.name else ""
        found.append(Seal(entry.name, state, entry.root_hash or "", tuple(problems), probe_of))
    lost = {line["run"]: line["root"] for line in ledger.entries(study.path)}
    for run, root in lost.items():
        if not (study.path / run).exists():
            found.append(Seal(run, "missing", root, ("the ledger has it sealed, but it is not in the study's folder",)))
    return found


def _common(configs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that all have, and have alike."""
    first, *others = configs
    return {key: value for key, value in first.items() if all(one.get(key) == value for one in others)}
