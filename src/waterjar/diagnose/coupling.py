"""Which metrics go together by arithmetic, so that a correlation of them says nothing."""

from __future__ import annotations

from waterjar.diagnose.registry import metrics


def coupled(one: str, other: str) -> bool:
    """Whether two metrics go together by arithmetic: both are, or are made of, the same metric or input (`made_of`).

    >>> coupled("pd", "patched_accuracy"), coupled("pd", "sfr"), coupled("pd", "seconds")
    (True, True, False)
    """
    return not _inputs(one).isdisjoint(_inputs(other))


_RECORDED = {
    f"performance/{name}": ("final_accuracies", "learned_accuracies")
    for name in ("accuracy", "macro_accuracy", "task_accuracy")
}
"""Of what was recorded: what metrics over tasks are made of, too."""


def _inputs(name: str) -> set[str]:
    """A metric and all that it is made of, and what that is made of."""
    known, found, open_ = metrics(), {name}, [name]
    while open_:
        declared = known.get(name := open_.pop())
        made_of = declared.made_of if declared is not None else _RECORDED.get(name.partition("[")[0], ())
        new = set(made_of) - found
        found |= new
        open_ += new
    return found
