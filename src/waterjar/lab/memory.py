"""The largest resident memory of a stretch of a process's life, such as one run of many in a worker."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

_RESET_PEAK = "5"  # proc(5): what, written to clear_refs, sets VmHWM back to what is resident now
_NOTICEABLE = 8 * 2**20


class PeakMemory:
    """Counts from the moment it is made.

    The operating system keeps one peak per process, so a worker's second run would inherit the first one's. Linux can
    set it back (`/proc/self/clear_refs`), which costs microseconds. Where it cannot, `largest` samples what is resident
    at the moment, and knows the system's peak only once that has risen above where it stood: a peak between two
    samples may be missed, and without /proc the answer may be None. Memory-mapped data count as far as they are
    resident, and so does what an earlier run left behind in the process.

    >>> peak = PeakMemory()
    >>> (peak.largest() or 0) >= 0
    True
    """

    def __init__(self, process: Path = Path("/proc/self")) -> None:
        self._status = process / "status"
        self._largest = 0
        self._resets = self._set_back(process / "clear_refs")
        self._before = _system_peak()

    def largest(self) -> int | None:
        """The largest resident memory so far, in bytes; None if the system does not tell."""
        found = [self._largest, self._read("VmHWM" if self._resets else "VmRSS") or 0]
        peak = _system_peak()
        if not self._resets and peak > self._before:
            found.append(peak)
        self._largest = max(found)
        return self._largest or None

    def _set_back(self, switch: Path) -> bool:
        """Whether the peak is now what is resident: some sandboxes take the command and do nothing."""
        try:
            with switch.open("r+b", buffering=0) as file:  # never create it where there is none
                file.write(_RESET_PEAK.encode())
        except OSError:
            return False
        peak, now = self._read("VmHWM"), self._read("VmRSS")
        return peak is not None and now is not None and peak <= now + _NOTICEABLE

    def _read(self, name: str) -> int | None:
        try:
            found = re.search(rf"^{name}:\s+(\d+) kB$", self._status.read_text(encoding="ascii"), re.MULTILINE)
        except (OSError, UnicodeDecodeError):
            return None
        return int(found[1]) * 1024 if found else None


def _system_peak() -> int:
    """The largest resident memory of the process ever, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
