"""Which learners share seeds with their baseline, so that they can be compared pair by pair."""

from __future__ import annotations

from typing import NamedTuple

from waterjar.diagnose.baseline import find_baselines
from waterjar.errors import WaterjarError
from waterjar.view.report.model import Model


class SeedPair(NamedTuple):
    """The seeds of a learner and those of its baseline."""

    cell: str
    own: list[int]
    baseline: str
    theirs: list[int]

    @property
    def shared(self) -> list[int]:
        """Seeds that both have."""
        return [seed for seed in self.own if seed in self.theirs]


def seed_pairs(model: Model) -> list[SeedPair]:
    """Every learner beside its baseline, of a study in which they are compared seed by seed; else none."""
    analysis, names = model.diagnosis.analysis, model.names
    if len(names) < 2 or analysis.tests is False or not analysis.test_settings.paired:
        return []
    try:
        bases, _ = find_baselines(model.study, model.baseline, analysis.rule)
    except WaterjarError:  # said where learners are compared
        return []
    seeds = {cell: sorted(seed for entry in own for seed in entry.seeds) for cell, own in model.study.cells.items()}
    return [
        SeedPair(names[cell], seeds[cell], names[base], seeds[base])
        for cell, base in bases.items()
        if base is not None and base != cell
    ]
