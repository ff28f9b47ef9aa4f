"""Studies: many runs from one declaration, run by any executor, resumed by identity."""

from waterjar.lab.study.declaration import declare, expand, read
from waterjar.lab.study.job import Job
from waterjar.lab.study.kinds import Declared
from waterjar.lab.study.remarks import notes
from waterjar.lab.study.runner import plan, run

__all__ = ["Declared", "Job", "declare", "expand", "notes", "plan", "read", "run"]
