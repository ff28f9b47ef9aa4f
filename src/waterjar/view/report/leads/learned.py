"""Whether anybody learned: said before everything else, because without that nothing else can be judged."""

from __future__ import annotations

from waterjar.view.numbers import counted, listed
from waterjar.view.report.leads._claims import hundredths, percent, seeds_of
from waterjar.view.report.leads._learned import Learning, learning
from waterjar.view.report.model import Model

TITLE = "Learning"
ORDER = -1


def sentences(model: Model) -> list[str]:
    """Who is at chance, or hardly above it; nothing where everybody learned, or where chance is not known."""
    found = learning(model)
    lost, little = [one for one in found if one.at_chance], [one for one in found if one.hardly]
    unsure = [one for one in found if one.open]
    said = []
    if lost and len(lost) == len(found):
        said.append(f"Nobody is shown to have learned: {_reached(lost)}. There is nothing to judge, and no verdict.")
    elif lost:
        who = listed([one.accuracy.cell for one in lost], 4)
        said.append(f"{who} {'is' if len(lost) == 1 else 'are'} not shown to have learned anything: {_reached(lost)}.")
    if unsure:
        who, seeds = listed([one.accuracy.cell for one in unsure], 4), seeds_of([one.accuracy for one in unsure])
        said.append(
            f"Whether {who} learned cannot be told from {seeds}: {_reached(unsure)}; in other evaluations more is "
            "right."
        )
    if little:
        who = listed([one.accuracy.cell for one in little], 4)
        said.append(f"{who} {'has' if len(little) == 1 else 'have'} hardly learned: {_reached(little)}.")
    return said


def _reached(found: list[Learning]) -> str:
    """What was reached at the end of a task's own training, beside chance."""
    levels = {hundredths(one.chance) for one in found}
    level = levels.pop() if len(levels) == 1 else f"{min(levels, key=float)} to {max(levels, key=float)}"
    ends = [one.accuracy for one in found]
    if len(found) == 1:
        reached = f"{percent(ends[0])} (mean of {counted(ends[0].n, 'seed')})"
    else:
        low, high = min(one.mean for one in ends), max(one.mean for one in ends)
        reached = (
            f"{hundredths(low)} to {hundredths(high)} %"
            if hundredths(low) != hundredths(high)
            else f"{hundredths(low)} %"
        )
    return (
        f"at the end of a task's own training {reached} of its samples are right, where guessing, or one constant "
        f"answer, has {level} % right"
    )
