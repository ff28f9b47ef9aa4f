"""How a network learns, not only how well it scores.

Everything is imported on first use, so that `import waterjar` costs next to nothing. In a notebook:

    import waterjar as wj

    wj.summary("my_study")
    wj.compare("my_study", "forgetting", baseline="naive")
    wj.plot.learning_curves("my_study")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from waterjar._version import __version__
from waterjar.errors import WaterjarError

if TYPE_CHECKING:
    from waterjar.front import compare, measure, metrics, plot, report, summary
    from waterjar.probe.watch import watch as watch
    from waterjar.run.codec import Storage
    from waterjar.run.examples import judge_examples
    from waterjar.run.formats._accuracy_matrix import from_accuracy_matrix
    from waterjar.run.formats._logits import from_logits
    from waterjar.run.formats._voting import from_voting
    from waterjar.run.formats.csv import from_csv, to_csv
    from waterjar.run.reader import Run, open_run
    from waterjar.run.recorder import Recorder
    from waterjar.run.rows import masked
    from waterjar.run.schema import Variable, missing
    from waterjar.run.seal import verify
    from waterjar.run.study import Study, create_study, open_study

__all__ = [
    "Recorder",
    "Run",
    "Storage",
    "Study",
    "Variable",
    "WaterjarError",
    "__version__",
    "compare",
    "create_study",
    "from_accuracy_matrix",
    "from_csv",
    "from_logits",
    "from_voting",
    "judge_examples",
    "masked",
    "measure",
    "metrics",
    "missing",
    "open_run",
    "open_study",
    "plot",
    "report",
    "summary",
    "to_csv",
    "verify",
]

_HOME = {
    "Recorder": "run.recorder",
    "Run": "run.reader",
    "Storage": "run.codec",
    "Study": "run.study",
    "Variable": "run.schema",
    "compare": "front",
    "create_study": "run.study",
    "from_accuracy_matrix": "run.formats._accuracy_matrix",
    "from_csv": "run.formats.csv",
    "from_logits": "run.formats._logits",
    "from_voting": "run.formats._voting",
    "judge_examples": "run.examples",
    "masked": "run.rows",
    "measure": "front",
    "metrics": "front",
    "missing": "run.schema",
    "open_run": "run.reader",
    "open_study": "run.study",
    "plot": "front",
    "report": "front",
    "summary": "front",
    "to_csv": "run.formats.csv",
    "verify": "run.seal",
    "watch": "probe.watch",
}
_ROOMS = ("diagnose", "lab", "probe", "run", "stats", "testing", "view")
"""Packages that are reached as attributes. `probe`, `lab` and `watch` need torch: `import *` does not ask for them."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"waterjar.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"waterjar.{name}")
    raise AttributeError(f"module 'waterjar' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME, *_ROOMS})
