"""Seeds that stand in the settings under another name, so that each counts as a learner: said before all else."""

from __future__ import annotations

from waterjar.run.cells import seeds_as_settings
from waterjar.view.report.model import Model

TITLE = "Seeds"
ORDER = -2


def sentences(model: Model) -> list[str]:
    """A sentence for every such setting, with what would change it; nothing where there is none."""
    return [f"{text[:1].upper()}{text[1:]}." for text in seeds_as_settings(model.study.cells.values())]
