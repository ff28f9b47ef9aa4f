"""The accuracies at the checkpoint, from which the index is made: tables show them beside it."""

from __future__ import annotations

from collections.abc import Callable

from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result
from waterjar.diagnose.rigidity.pair import Pair
from waterjar.diagnose.rigidity.side import EVAL_SETS

_WHAT = {
    "normal": ("patched_accuracy", "shortcut classes, shortcut visible", "A patch"),
    "masked": ("masked_accuracy", "shortcut classes, shortcut masked", "A mask"),
    "clean": ("clean_accuracy", "shortcut classes, neither shortcut nor mask", "A clean"),
    "random_mask": (
        "random_mask_accuracy",
        "shortcut classes, shortcut visible, an equal area elsewhere masked",
        "A random mask",
    ),
    "nonshortcut": ("nonshortcut_accuracy", "classes of the last task without the shortcut", "A non-shortcut"),
    "t1": ("t1_accuracy", "classes of the first task", "A T1"),
}


def _at_checkpoint(role: str) -> Callable[[Pair], Result]:
    def compute(pair: Pair) -> Result:
        return pair.final(role)

    return compute


for _role, (_name, _words, _symbol) in _WHAT.items():
    metric(
        _name,
        family="rigidity",
        long_name=f"accuracy on {_words}",
        formula=f"A*({EVAL_SETS[_role]}), macro-averaged over classes, at the checkpoint",
        direction="higher",
        range=(0.0, 1.0),
        citation="Gu & Shi, The Einstellung Rigidity Index",
        needs=(f"performance[{EVAL_SETS[_role]}]", "performance[t2_validation]"),
        symbol=_symbol,
        matters={"normal": 4, "masked": 5}.get(_role, 0),
    )(_at_checkpoint(_role))
