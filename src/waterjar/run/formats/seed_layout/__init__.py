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

from waterjar.run.formats.seed_layout._export import Exported, export_seed_layout, layout_folder, layout_folders
from waterjar.run.formats.seed_layout._import import Imported, import_seed_layout

__all__ = ["Exported", "Imported", "export_seed_layout", "import_seed_layout", "layout_folder", "layout_folders"]
