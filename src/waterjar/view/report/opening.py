"""The first lines of a report: what was run, and whether its numbers can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from waterjar.run.study import flat
from waterjar.view.report.blocks import Callout
from waterjar.view.numbers import counted, listed, shorten
from waterjar.view.report.story import Story

_SHOWN = (
    ("data", "on"),
    ("backbone", "with"),
)


def lead(story: Story) -> str:
    """What was run, in one sentence.

    Only what the runs say of themselves: a setting that differs between cells, or is not there, is not named.
    """
    entries = story.study.entries
    if not entries:
        return "No run in this study can be read: there is nothing to report."
    seeds = sorted({seed for entry in entries for seed in entry.seeds})
    cells = list(story.names.values())
    what = f"{counted(len(cells), 'learner')} ({listed(cells)})" if len(cells) > 1 else shorten(cells[0], 80)
    text = f"{counted(len(entries), 'run')}: {what}, {counted(len(seeds), 'seed')} ({listed(map(str, seeds))})"
    settings = [flat(entry.config) for entry in entries]
    for key, word in _SHOWN:
        value = _common(config.get(key) for config in settings)
        if isinstance(value, str) and value:
            text += f", {word} {shorten(value, 60)}"
    epochs = [(task, _common(config.get(f"training.epochs_{task}") for config in settings)) for task in ("t1", "t2")]
    if all(isinstance(value, int) for _, value in epochs):
        text += "; " + ", then ".join(f"{value} epochs of {task.upper()}" for task, value in epochs)
    return text + _shortcut(settings) + "."


def _shortcut(settings: list[dict[str, Any]]) -> str:
    kind, rate = (_common(config.get(f"shortcut.{key}") for config in settings) for key in ("kind", "rate"))
    if not isinstance(kind, str) or not isinstance(rate, int | float):
        return ""
    return f". In T2, {100 * rate:g} % of the training images of some classes carry a shortcut ({shorten(kind, 40)})"


def _common(values: Iterable[Any]) -> Any:
    """The one value that all have; None where they differ."""
    found = list(values)
    return found[0] if all(value == found[0] for value in found) else None


def status(story: Story) -> Callout:
    """The seals, in a line: the worst state speaks first."""
    total = len(story.seals)
    if not total:
        return Callout("note", "No runs", "There is no seal to check.")
    counts = {state: story.states(state) for state in ("tampered", "damaged", "missing", "open", "sealed")}
    broken = {state: seals for state, seals in counts.items() if seals and state in ("tampered", "damaged", "missing")}
    if broken:
        words = {
            "tampered": "changed after sealing",
            "damaged": "unreadable and left out",
            "missing": "sealed once and gone",
        }
        parts = [
            f"{counted(len(seals), 'run')} {words[state]} ({listed([seal.run for seal in seals], 3)})"
            for state, seals in broken.items()
        ]
        title = "Seals do not hold" if counts["tampered"] else "Runs are missing from these numbers"
        return Callout("bad", title, f"Of {total}: {'; '.join(parts)}. Do not trust these numbers before you know why.")
    if counts["open"]:
        few = listed([seal.run for seal in counts["open"]], 3)
        how_many = (
            f"{len(counts['open'])} of {counted(total, 'run')} {'is' if len(counts['open']) == 1 else 'are'} not sealed"
        )
        whose = "its" if len(counts["open"]) == 1 else "their"
        return Callout("warning", "Unfinished", f"{how_many} yet ({few}): {whose} numbers may still change.")
    every = "Its seal holds" if total == 1 else f"All {total} runs are sealed, and their seals hold"
    since = "it was" if total == 1 else "they were"
    return Callout("good", "Sealed", f"{every}: not a byte has changed since {since} recorded.")
