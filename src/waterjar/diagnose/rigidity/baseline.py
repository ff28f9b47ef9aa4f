"""Which cell is a learner's baseline: the network that only ever saw the last task, under the same conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.identity import SEED_KEYS, UNHASHED
from waterjar.run.root import read_root
from waterjar.run.study import METHOD_KEYS, Study, flat

DEFAULT = "scratch_t2"

_OWN = (*METHOD_KEYS, "scenario", *SEED_KEYS, *UNHASHED)
"""Keys in which a learner and its baseline differ by nature, or that do not change numbers."""

_NEARLY = ("learner_settings.", "recording.", "augmentation.t1.", "training.epochs_t1")
"""Settings that the baseline may have otherwise: its learner's own, what is kept, and the first task, which it
never sees. Among several baselines those that agree here too are preferred."""

_LENGTH = "training.epochs_t2"
"""The one other setting that the only baseline of a scenario may have otherwise: every metric is taken within the
smaller of the two budgets."""

_DATA = "data_fingerprint"


class _Cells(NamedTuple):
    """What is known of every cell: its name, its settings and the fingerprint of its data."""

    names: Mapping[str, str]
    settings: Mapping[str, dict[str, Any]]
    """Under dotted keys, without those in which a learner and its baseline differ by nature."""
    data: Mapping[str, str | None]

    def differences(self, one: str, other: str) -> list[str]:
        """Dotted keys that both have and in which they differ. What only one has belongs to its method."""
        a, b = self.settings[one], self.settings[other]
        data = [_DATA] if None not in (self.data[one], self.data[other]) and self.data[one] != self.data[other] else []
        return [*data, *(key for key in a if key in b and a[key] != b[key])]

    def hard(self, one: str, other: str) -> list[str]:
        """Differences that make another cell no baseline."""
        return [key for key in self.differences(one, other) if not key.startswith(_NEARLY)]

    def unsure(self, one: str, other: str) -> str:
        """Where only one of two cells says what data it saw: that; else nothing."""
        silent = [cell for cell in (one, other) if self.data[cell] is None]
        if len(silent) != 1:
            return ""
        return f"'{self.names[silent[0]]}' has no data fingerprint: whether both saw the same data is not known"


def find_baselines(study: Study, baseline: str | None) -> tuple[dict[str, str | None], dict[str, str]]:
    """cell -> its baseline's cell or None; and cell -> a note where there is something to say about it.

    `baseline` is a scenario, whose cell with the same settings and the same data is looked for, or the name or id of
    one cell, which then is the baseline of all. If a scenario has one cell alone on the data, it may also have been
    trained for another number of epochs; the note says so.
    """
    configs = {cell: entries[0].config for cell, entries in study.cells.items()}
    if baseline is None:
        return dict.fromkeys(configs), dict.fromkeys(configs, "no baseline was asked for")
    settings = {cell: flat(_without_own(config)) for cell, config in configs.items()}
    cells = _Cells(study.cell_names, settings, _fingerprints(study))
    of_scenario = [cell for cell, config in configs.items() if config.get("scenario") == baseline]
    if of_scenario:
        pairs = {cell: _matching(cell, of_scenario, cells, baseline) for cell in configs}
        return {cell: found for cell, (found, _) in pairs.items()}, {cell: n for cell, (_, n) in pairs.items() if n}
    named = [cell for cell in configs if baseline in (cell, cells.names[cell])]
    if not named and baseline != DEFAULT:
        scenarios = sorted({str(config["scenario"]) for config in configs.values() if config.get("scenario")})
        raise unknown_name(f"{study.path}: baseline", baseline, [*scenarios, *cells.names.values()])
    if not named:
        return dict.fromkeys(configs), dict.fromkeys(configs, f"the study has no cell with the scenario '{baseline}'")
    notes = {cell: _about_named(cell, named[0], cells) for cell in configs if cell != named[0]}
    return dict.fromkeys(configs, named[0]), {cell: note for cell, note in notes.items() if note}


def _fingerprints(study: Study) -> dict[str, str | None]:
    """cell -> fingerprint of its data, None where none was recorded. It is part of what makes a cell: one run tells."""
    return {
        cell: read_root(study.path / entries[0].name)["attributes"].get(_DATA) for cell, entries in study.cells.items()
    }


def _about_named(cell: str, chosen: str, cells: _Cells) -> str:
    hard = cells.hard(cell, chosen)
    differs = f"the baseline '{cells.names[chosen]}' differs in {_listed(hard)}" if hard else ""
    return "; ".join(part for part in (differs, cells.unsure(cell, chosen)) if part)


def _matching(cell: str, candidates: list[str], cells: _Cells, scenario: str) -> tuple[str | None, str]:
    if cell in candidates:
        return cell, ""
    able = [other for other in candidates if not cells.hard(cell, other)]
    if not able:
        return _of_another_length(cell, candidates, cells, scenario)
    # known to have seen the same data before not known; then the fewest differences
    rank = {other: (bool(cells.unsure(cell, other)), len(cells.differences(cell, other))) for other in able}
    best = [other for other in able if rank[other] == min(rank.values())]
    if len(best) > 1:
        listing = ", ".join(f"'{cells.names[other]}'" for other in best)
        raise WaterjarError(
            f"'{cells.names[cell]}' has {len(best)} possible baselines: {listing}. "
            "Name one with baseline=, or select() runs"
        )
    return best[0], cells.unsure(cell, best[0])


def _of_another_length(cell: str, candidates: list[str], cells: _Cells, scenario: str) -> tuple[str | None, str]:
    """The scenario's only cell on the data, if nothing but the length of training is different; else none."""
    on_data = [other for other in candidates if _DATA not in cells.hard(cell, other)]
    if len(on_data) == 1 and cells.hard(cell, on_data[0]) == [_LENGTH]:
        own, theirs = (cells.settings[one][_LENGTH] for one in (cell, on_data[0]))
        note = (
            f"'{cells.names[on_data[0]]}' is the only '{scenario}', and it differs in {_LENGTH} ({theirs}, not {own}): "
            "compared within the smaller budget"
        )
        return on_data[0], "; ".join(part for part in (note, cells.unsure(cell, on_data[0])) if part)
    nearest = min(candidates, key=lambda other: len(cells.hard(cell, other)))
    differing = _listed(cells.hard(cell, nearest))
    return None, f"no '{scenario}' has the same settings: '{cells.names[nearest]}' differs in {differing}"


def _without_own(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _OWN}


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
