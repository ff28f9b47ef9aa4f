"""A figure: the last accuracy on every evaluation set, a dot per repeat."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from waterjar.view.results import Source, roots_in, study_of
from waterjar.view.style import axes, figure_of, house_style, labels, marker_styles, stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Last accuracy"
CAPTION = "Accuracy at the last step on every evaluation set; a dot is a repeat."
NEEDS = ()


def data(source: Source) -> pd.DataFrame:
    """One row per cell, evaluation set and repeat."""
    study = study_of(source, "last_accuracy shows what was recorded")
    parts = []
    for cell, recorded in study.load("performance").items():
        last = recorded["accuracy"].isel(step=-1).transpose("eval_set", "repeat")
        sets, repeats = last.shape
        about = {"cell": cell, "eval_set": np.repeat(last["eval_set"].values, repeats)}
        parts.append(pd.DataFrame({**about, "repeat": np.tile(range(repeats), sets), "value": last.values.ravel()}))
    return pd.concat(parts, ignore_index=True)


def last_accuracy(source: Source, *, ax: "Axes | None" = None) -> "Figure":
    """Draw what `data` gave."""
    with house_style():
        table, ax = data(source), axes(ax)
        styles = marker_styles(list(dict.fromkeys(table["cell"])))
        shown = labels(dict.fromkeys(table["eval_set"]))
        for cell, part in table.groupby("cell", sort=False):
            ax.plot(part["value"], part["eval_set"].map(shown), linestyle="", label=cell, **styles[cell])
        ax.set_xlabel("accuracy ↑")
        ax.legend()
        return stamp(figure_of(ax), roots_in(source))
