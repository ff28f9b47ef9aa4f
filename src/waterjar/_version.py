"""The version, in one place."""

__version__ = "0.1.0.dev0"

NUMERICS_VERSION = 1
"""Raised when the same config would give other numbers; part of every run_id. Where only some configs do,
whoever trains them tells the recorder another version (`RunConfig.NUMERICS`)."""
