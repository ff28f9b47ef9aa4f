"""What has to be said beside a verdict, or in its place: unequal training, runs that ended early, nobody learned."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from waterjar.diagnose.result import RUN_ENDED, Result
from waterjar.diagnose.rigidity.guessing import LUCK, above_guessing, luck_limits, too_few_images
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.side import Side

EPOCHS_TRAINED = "epochs trained"
"""The head of the row that `epochs_trained` is."""


def budget_note(pair: Pair) -> str:
    """What is to be said where learner and baseline were trained for different lengths; else nothing."""
    if pair.budgets is None:
        return ""
    own, theirs = pair.budgets
    return (
        f"recorded are {own:g} epochs of it and {theirs:g} of the baseline: PD and SFR_rel compare the two at the ends "
        f"of their own training, only ad_restricted is cut at {pair.budget:g}"
    )


def epochs_trained(result: xr.Dataset) -> dict[str, str]:
    """Name of a cell -> the epochs recorded of it, and of its baseline where these differ, for a row of a table.

    Empty where every learner was trained as long as its baseline.
    """
    if not any(result["budget_note"].values):
        return {}
    said = {}
    for name, note, own, theirs in zip(
        *(result[key].values for key in ("cell", "budget_note", "learner_budget", "baseline_budget")), strict=True
    ):
        said[str(name)] = f"{own:g}, baseline {theirs:g}" if note else f"{own:g}" if math.isfinite(own) else "–"
    return said


def remarks(pair: Pair) -> str:
    """Sentences to stand behind a verdict, each behind a space: unequal training, runs that ended early, few images."""
    said = ""
    if pair.budgets is not None and pair.baseline is not None:
        own, theirs = pair.budgets
        said += (
            f" It was trained for {own:g} epochs, {pair.baseline.name} for {theirs:g}: their ends are of different age."
        )
    for side in _sides(pair):
        ended = side.seeds[(side.reasons["normal"] == RUN_ENDED).any(1)]
        if ended.size:
            seeds = ", ".join(map(str, ended))
            many = ended.size > 1
            said += (
                f" {'Seeds' if many else 'Seed'} {seeds} of {side.name} ended before the other runs of the cell "
                f"(run_ended), and {'are' if many else 'is'} left out of PD and SFR."
            )
    return said + _few_images(pair)


def nobody_learned(pair: Pair) -> str:
    """A sentence where neither side is above guessing on the shortcut classes; else nothing."""
    sides, ends = _sides(pair), _ends(pair)
    if not all(_learned(side, end, pair) is False for side, end in zip(sides, ends, strict=True)):
        return ""
    who = f"Neither {sides[0].name} nor {sides[1].name} has" if len(sides) > 1 else f"{sides[0].name} has not"
    means = " and ".join(_accuracies(end) for end in ends)
    return f"{who} learned the shortcut classes: accuracy {means}, where {_of_guessing(sides[0], ends[0], pair)}."


def _few_images(pair: Pair) -> str:
    """A sentence, behind a space, where the set is too small to show that anybody learned; else nothing."""
    both = list(zip(_sides(pair), _ends(pair), strict=True))
    if any(_learned(side, end, pair) for side, end in both):
        return ""
    for side, end in both:
        level, size, seeds = side.guessing.level("normal"), side.guessing.sizes.get("normal"), _known(end)
        if too_few_images(level, size, seeds):
            images, tries = (f"{n} {word}{'s' * (n != 1)}" for n, word in ((size or 0, "image"), (seeds, "seed")))
            who = " or ".join(one.name for one, _ in both)
            return (
                f" Whether {who} learned the shortcut classes cannot be told: with "
                f"{images} and {tries} even an accuracy of 1 may be guessing, which has {level:.3f}."
            )
    return ""


def _learned(side: Side, end: Result, pair: Pair) -> bool | None:
    """Whether a side is above guessing on the shortcut classes; None where that cannot be told."""
    known = side.guessing
    return above_guessing(end.value, known.level("normal"), known.sizes.get("normal"), pair.settings.confidence)


def _ends(pair: Pair) -> list[Result]:
    """The final accuracies on the shortcut classes, of each of `_sides`."""
    return [pair.final("normal", of_baseline=bool(place)) for place, _ in enumerate(_sides(pair))]


def _known(end: Result) -> int:
    return int(np.isfinite(end.value).sum())


def _sides(pair: Pair) -> list[Side]:
    """The learner, and its baseline unless it is its own."""
    other = pair.baseline
    return [pair.learner] if other is None or other.name == pair.learner.name else [pair.learner, other]


def _accuracies(found: Result) -> str:
    values = np.asarray(found.value)[np.isfinite(found.value)]
    if values.size == 1 or math.isclose(values.min(), values.max()):
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"


def _of_guessing(side: Side, end: Result, pair: Pair) -> str:
    """What guessing would have, and how it was told apart from that."""
    level, size = side.guessing.level("normal"), side.guessing.sizes.get("normal")
    guess = f"guessing has {level:.3f}"
    if size:
        seeds = _known(end)
        mean, best = (f"{limit:.3f}" for limit in luck_limits(level, size, seeds))
        whose = f"the mean of {seeds} seeds up to {mean}, the best up to {best}" if seeds > 1 else f"up to {best}"
        return f"{guess} ({whose} with {size} images, in {100 * LUCK:g} of 100 cases)"
    return f"{guess} (by a one-sided {100 * pair.settings.confidence:g} % t interval over seeds)"
