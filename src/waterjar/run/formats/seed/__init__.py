"""The directory layout of the scripts that this package grew out of: one folder per task, numpy files and pickles.

    results/{dataset}/{algorithm}/init_weights.npy             (params,), or (R, params) where repeats start apart
                                  task_{t:03d}/representations.npy   (L, R, eval, S, H)
                                               weights.npy           (L, R, params)
                                               binary_labels.npy     (eval, S, R)
                                               metrics.pkl           test_acc, test_loss (L, R, eval), train_* (L, R)
                                               expert_metrics.pkl    the same four, (L, R): of its own task alone
                                               metadata.json         task_id, class_pairs, config

L logged epochs of a task (step 0 is not among them), R repeats, eval tasks, S samples of each, H units of one layer.
`export_seed_layout` writes it and `import_seed_layout` reads it back, one task at a time. What the layout has no place
for (labels of steps, seeds, names) stands in metadata.json under "waterjar", which other readers pass over.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from waterjar.run.formats import Made
from waterjar.run.formats.seed._export import export_seed_layout, layout_folder, layout_folders
from waterjar.run.formats.seed._import import Imported, import_seed_layout
from waterjar.run.study import Study

__all__ = ["Imported", "export_seed_layout", "import_seed_layout", "layout_folder", "layout_folders"]

TITLE = "results/{dataset}/{algorithm}/task_000 ...: a folder per task, numpy files and pickles"


class Settings(BaseModel):
    """Names of the folders, by default those in the settings of runs, and whose features are written."""

    model_config = ConfigDict(extra="forbid")
    dataset: str | None = None
    algorithm: str | None = None
    layer: str | None = None


def export_runs(study: Study, out: Path, settings: Settings) -> list[Made]:
    """Write a layout per run; that no two would share a folder is known before anything is written."""
    places = layout_folders(study, out, settings.dataset, settings.algorithm)
    return [
        export_seed_layout(run, out, dataset=place.parts[0], algorithm=place.parts[1], layer=settings.layer)
        for place, run in places.items()
    ]


def import_runs(path: Path, out: Path) -> list[Made]:
    """Make a run of one layout."""
    found = import_seed_layout(path, out)
    return [Made(found.run.path, found.notes)]
