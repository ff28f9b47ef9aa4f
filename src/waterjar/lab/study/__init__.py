"""Studies: many runs from one declaration, run by any executor, resumed by identity."""

from waterjar.lab.study.declaration import Declaration, declare, expand, read
from waterjar.lab.study.runner import Job, plan, run

__all__ = ["Declaration", "Job", "declare", "expand", "plan", "read", "run"]
