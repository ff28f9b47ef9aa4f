"""Diagnostics: pure functions over recorded runs. Every family is a package of its own; see docs/metrics.md."""

from waterjar.diagnose.result import Result

__all__ = ["Result"]
