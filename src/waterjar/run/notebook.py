"""What a notebook shows of a run or a study, and the calls that they offer there.

Tables have no colours of their own, so that they are read on light and on dark ground.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterjar.run.shown import visible

if TYPE_CHECKING:
    import pandas as pd

_LINE = "border-bottom: 1px solid rgba(128, 128, 128, 0.35)"
_CELL = "text-align: left; vertical-align: top; padding: 0.15em 0.8em 0.15em 0; background: transparent; color: inherit"
MOST_ROWS = 30
"""Of a table in a notebook; the rest is counted."""


class Figures:
    """Every figure as a method: `study.plot.learning_curves()`. See `waterjar.plot`.

    A descriptor and no property: IPython completes behind what it may look up, and properties it does not run.
    """

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else _front().Plots(instance)


class FrontDoor:
    """The calls of `waterjar.front` as methods of what they are about.

    They stand above all layers, and this one must not import them: they are looked up by name when they are called.
    A test holds their signatures to those of the functions.
    """

    def measure(
        self,
        only: str | Sequence[str] | None = None,
        *,
        families: str | Sequence[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Any:
        """Measure how it learned: a `Diagnosis`. See `waterjar.measure`."""
        return _front().measure(self, only, families=families, settings=settings, baseline=baseline, fresh=fresh)

    def summary(
        self,
        metrics: str | Sequence[str] | None = None,
        *,
        numbers: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Metrics down, cells across. See `waterjar.summary`."""
        found: pd.DataFrame = _front().summary(self, metrics, numbers=numbers, settings=settings)
        return found

    def compare(
        self,
        metric: str | Sequence[str] | None = None,
        baseline: str | None = None,
        *,
        paired: bool | None = None,
        test: str | None = None,
        correction: str | None = None,
        alpha: float | None = None,
        every_column: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Cells against a baseline, seed by seed. See `waterjar.compare`."""
        tests = {"paired": paired, "test": test, "correction": correction, "alpha": alpha}
        how = {**tests, "every_column": every_column, "settings": settings}
        found: pd.DataFrame = _front().compare(self, metric, baseline, **how)
        return found

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        format: str | None = None,
        title: str = "",
        baseline: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write a report, and return where it is. See `waterjar.report`."""
        how = {"format": format, "title": title, "baseline": baseline, "settings": settings}
        return Path(_front().report(self, path, **how))

    plot = Figures()


def _front() -> Any:
    return import_module("waterjar.front")


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[str] = ()) -> str:
    """A small table in HTML. Everything in it comes from files, and is escaped; so is what a terminal would act on."""
    lines = list(rows)
    over = len(lines) - MOST_ROWS
    head = "".join(f'<th style="{_CELL}; {_LINE}">{escaped(text)}</th>' for text in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escaped(text)}</td>' for text in line) + "</tr>"
        for line in lines[:MOST_ROWS]
    )
    said = [*([f"and {over} more"] if over > 0 else []), *notes]
    below = "".join(f'<div style="opacity: 0.75">{escaped(text)}</div>' for text in said)
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return (
        f'<div style="color: inherit"><div><strong>{escaped(title)}</strong></div>'
        f'<table style="border-collapse: collapse; margin: 0.3em 0; color: inherit">{top}<tbody>{body}</tbody></table>'
        f"{below}</div>"
    )


def escaped(text: object) -> str:
    r"""A text for a page: no tag in it, and nothing that cannot be seen.

    >>> print(escaped("<b>\u202e"))
    &lt;b&gt;\u202e
    """
    return html.escape(visible(str(text)))


def counted(n: int, word: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(3, "run")
    ('1 run', '3 runs')
    """
    return f"{n} {word}" + ("" if n == 1 else "s")


def numbers_in_words(numbers: Sequence[int], most: int = 6) -> str:
    """Seeds in a row; of many, the first ones and how many there are.

    >>> numbers_in_words([1, 2, 3]), numbers_in_words(range(20), 2)
    ('1, 2, 3', '0, 1, … (20)')
    """
    shown = ", ".join(map(str, list(numbers)[:most]))
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)})"
