"""Learners that are not compared because they share no seed with their baseline: said, with what would change it."""

from __future__ import annotations

from waterjar.stats.table import no_pairs
from waterjar.view.report.leads._claims import FEW
from waterjar.view.report.leads._pairs import seed_pairs
from waterjar.view.report.model import Model

TITLE = "Not compared"
ORDER = 23


def sentences(model: Model) -> list[str]:
    """A sentence for each of a few learners; nothing where each shares a seed with its baseline."""
    apart = [one for one in seed_pairs(model) if not one.shared]
    rest = len(apart) - FEW
    more = [f"{rest} more {'shares' if rest == 1 else 'share'} no seed with the baseline either."] if rest > 0 else []
    return [f"{no_pairs((one.cell, one.own), (one.baseline, one.theirs))}." for one in apart[:FEW]] + more
