"""What became of single examples."""

from __future__ import annotations

from waterjar.view.report.leads._claims import FEW, means_of, percent, row, seeds_of, written
from waterjar.view.report.model import Model

TITLE = "Single examples"
ORDER = 45


def sentences(model: Model) -> list[str]:
    """How often an example was forgotten again, and what share was never learned."""
    if "examples" not in model.diagnosis.results:
        return []
    said = []
    events, never = means_of(model, "forgetting_events"), means_of(model, "never_learned_share")
    for lines, write, begin in (
        (events, written, "An example that was learned is forgotten again"),
        (never, percent, "Never learned were"),
    ):
        if not lines:
            continue
        ordered = sorted(lines, key=lambda one: one.mean)
        shown = ordered if len(ordered) <= FEW else [ordered[0], ordered[-1]]
        times = " times" if lines is events else " of the examples"
        ends = f"; the ends of {len(lines)} learners" if len(lines) > FEW else ""
        told = row([f"{write(one)}{times} in {one.cell}" for one in shown])
        said.append(f"{begin} {told} (mean over examples, {seeds_of(lines)}{ends}).")
    return said
