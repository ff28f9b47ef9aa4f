"""Which cell another one is compared with: under the same conditions, but for what a rule allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from waterjar.errors import WaterjarError, given_as, unknown_name
from waterjar.run import ledger
from waterjar.run.cells import METHOD_KEYS, flat
from waterjar.run.identity import SEED_KEYS, UNHASHED
from waterjar.run.reader import Run
from waterjar.run.study import Study

if TYPE_CHECKING:
    from waterjar.diagnose.analysis import Baseline

DEFAULT = "scratch_t2"

_OWN = (*METHOD_KEYS, "scenario", *SEED_KEYS, *UNHASHED)
"""Keys in which a cell and its baseline differ by nature, or that do not change numbers."""
_IGNORED = ("learner_settings", "recording")
"""Sections in which a baseline may differ where no rule was declared: its learner's own settings, and what is kept."""
_DATA = "data_fingerprint"


class _Cells(NamedTuple):
    """What is known of every cell: its name, its settings and the fingerprint of its data."""

    names: Mapping[str, str]
    settings: Mapping[str, dict[str, Any]]
    """Under dotted keys, without those in which a cell and its baseline differ by nature."""
    data: Mapping[str, str | None]
    ignored: tuple[str, ...]
    told: tuple[str, ...]

    def differences(self, one: str, other: str) -> list[str]:
        """Dotted keys that both have and in which they differ. What only one has belongs to its method."""
        a, b = self.settings[one], self.settings[other]
        data = [_DATA] if None not in (self.data[one], self.data[other]) and self.data[one] != self.data[other] else []
        return [*data, *(key for key in a if key in b and a[key] != b[key])]

    def hard(self, one: str, other: str) -> list[str]:
        """Differences that make another cell no baseline."""
        return [key for key in self.differences(one, other) if not _below(key, (*self.ignored, *self.told))]

    def unsure(self, one: str, other: str) -> str:
        """Where only one of two cells says what data it saw: that; else nothing."""
        silent = [cell for cell in (one, other) if self.data[cell] is None]
        if len(silent) != 1:
            return ""
        return f"'{self.names[silent[0]]}' has no data fingerprint: whether both saw the same data is not known"

    def note(self, one: str, other: str) -> str:
        """What is to be said of a baseline: settings in which it differs that a rule wants told, and what is unsure."""
        keys = [key for key in self.differences(one, other) if _below(key, self.told)]
        own, theirs = self.settings[one], self.settings[other]
        parts = [f"{key} ({theirs[key]}, not {own[key]})" for key in keys]
        differs = f"the baseline '{self.names[other]}' differs in {_listed(parts)}" if parts else ""
        return "; ".join(part for part in (differs, self.unsure(one, other)) if part)


def _below(key: str, sections: tuple[str, ...]) -> bool:
    return any(key == section or key.startswith(f"{section}.") for section in sections)


def find_baselines(
    study: Study, baseline: str | None, rule: Baseline | None = None, opened: Mapping[str, Run] | None = None
) -> tuple[dict[str, str | None], dict[str, str]]:
    """cell -> its baseline's cell or None; and cell -> a note where there is something to say about it.

    `baseline` is what a rule is called, a scenario, or the name or id of one cell, which then is the baseline of all.
    Among the cells of a rule or scenario the one is looked for that has the same data and the same settings, but for
    those that the rule allows to differ; the fewest differences win.
    """
    configs = {cell: entries[0].config for cell, entries in study.cells.items()}
    if baseline is None:
        return dict.fromkeys(configs), dict.fromkeys(configs, "no baseline was asked for")
    settings = {cell: flat(_without_own(config)) for cell, config in configs.items()}
    ignored, told = (_IGNORED, ()) if rule is None else (rule.ignore, rule.tell)
    cells = _Cells(study.cell_names, settings, _fingerprints(study, opened or {}), ignored, told)
    where = rule.where if rule is not None and baseline == rule.name else {"scenario": baseline}
    whole = {cell: flat(config) for cell, config in configs.items()}
    able = [cell for cell, config in whole.items() if all(config.get(key) == value for key, value in where.items())]
    if able:
        pairs = {cell: _matching(cell, able, cells, baseline) for cell in configs}
        return {cell: found for cell, (found, _) in pairs.items()}, {cell: n for cell, (_, n) in pairs.items() if n}
    named = [cell for cell in configs if baseline in (cell, cells.names[cell])]
    if not named and baseline != DEFAULT and (rule is None or baseline != rule.name):
        raise unknown_name(f"{study.path}: baseline", baseline, known_baselines(study))
    if not named:
        return dict.fromkeys(configs), dict.fromkeys(configs, f"the study has no cell with the scenario '{baseline}'")
    notes = {cell: _about_named(cell, named[0], cells) for cell in configs if cell != named[0]}
    return dict.fromkeys(configs, named[0]), {cell: note for cell, note in notes.items() if note}


def known_baselines(study: Study, rule: Baseline | None = None) -> list[str]:
    """What can be named as a baseline: scenarios, or values of the setting that a rule looks at; and cells."""
    keys = dict.fromkeys(["scenario", *(rule.where if rule is not None and len(rule.where) == 1 else ())])
    values = {str(value) for entry in study.entries for key in keys if (value := flat(entry.config).get(key))}
    return list(dict.fromkeys([*sorted(values), *study.cell_names.values()]))  # a cell may be named as its scenario


def check_baseline(study: Study, baseline: str, rule: Baseline | None = None) -> None:
    """Refuse a name that nothing in the study has."""
    known = known_baselines(study, rule)
    if baseline not in known and baseline not in study.cells:
        raise unknown_name(f"{study.path}: baseline", baseline, known)


def default_baseline(study: Study) -> tuple[str, str]:
    """What cells are compared with where nobody says, and a word on why: scratch_t2, else the cell declared first.

    Where no declaration tells, it is the cell that was sealed first, as the ledger has it; without one the cell that
    was recorded first, as its runs have it, and the first by name where they do not tell.
    """
    shown, cells = study.cell_names, study.cells
    if not cells:
        raise WaterjarError(f"{study.path} holds no runs: there is nothing to compare with")
    if DEFAULT in shown.values() or any(entry.config.get("scenario") == DEFAULT for entry in study.entries):
        return DEFAULT, ""
    sealed = [str(line["run"]) for line in ledger.entries(study.path)]
    for word, names in (("declared", study.declared), ("sealed", sealed)):
        for name in names:
            for cell, entries in cells.items():
                if name in (entry.name for entry in entries):
                    return shown[cell] or cell, f", the first cell {word}; --baseline names another"
    begun = {cell: min(_begun(study.open(entry)) for entry in entries) for cell, entries in cells.items()}
    first, word = next(iter(cells)), "by name"
    earliest = [cell for cell in cells if begun[cell] == min(begun.values())]
    if all(begun.values()) and len(earliest) == 1:
        (first,), word = earliest, "recorded"
    return shown[first] or first, f", the first cell {word}; --baseline names another"


def _begun(run: Run) -> str:
    """When a run was begun, to the second; empty where it does not say."""
    sessions = run.attributes["provenance"].get("sessions", [])
    return str(sessions[0].get("started", "")) if sessions else ""


def _fingerprints(study: Study, opened: Mapping[str, Run]) -> dict[str, str | None]:
    """cell -> fingerprint of its data, None where none was recorded. It is part of what makes a cell: one run tells."""
    found: dict[str, str | None] = {}
    for cell, entries in study.cells.items():
        run = opened.get(entries[0].name) or study.open(entries[0])
        found[cell] = run.attributes.get(_DATA)
    return found


def _about_named(cell: str, chosen: str, cells: _Cells) -> str:
    hard = cells.hard(cell, chosen)
    differs = f"the baseline '{cells.names[chosen]}' differs in {_listed(hard)}" if hard else ""
    return "; ".join(part for part in (differs, cells.note(cell, chosen)) if part)


def _matching(cell: str, candidates: list[str], cells: _Cells, name: str) -> tuple[str | None, str]:
    if cell in candidates:
        return cell, ""
    able = [other for other in candidates if not cells.hard(cell, other)]
    if not able:
        nearest = min(candidates, key=lambda other: len(cells.hard(cell, other)))
        differing = _listed(cells.hard(cell, nearest))
        return None, f"no '{name}' has the same settings: '{cells.names[nearest]}' differs in {differing}"
    # known to have seen the same data before not known; then the fewest differences
    rank = {other: (bool(cells.unsure(cell, other)), len(cells.differences(cell, other))) for other in able}
    best = [other for other in able if rank[other] == min(rank.values())]
    if len(best) > 1:
        listing = ", ".join(f"'{cells.names[other]}'" for other in best)
        raise WaterjarError(
            f"'{cells.names[cell]}' has {len(best)} possible baselines: {listing}. "
            f"Name one with {given_as('baseline', 'NAME', option=True)}, or leave runs out with --where"
        )
    return best[0], cells.note(cell, best[0])


def _without_own(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _OWN}


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
