"""Where a run comes from: versions, the user's commit, the class of machine. No names of people or hosts."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from waterjar._version import NUMERICS_VERSION, __version__
from waterjar.run.shelf import Part, from_outside

_PACKAGES = (
    "numpy",
    "scipy",
    "xarray",
    "zarr",
    "numba",
    "torch",
    "jax",
    "jaxlib",
    "avalanche-lib",
    "lightning",
)
_PARTS: ContextVar[tuple[Part, ...]] = ContextVar("parts from outside", default=())


@contextlib.contextmanager
def using_parts(parts: Mapping[str, Iterable[str]]) -> Iterator[None]:
    """Name the parts, shelf -> names, that a run opened in here is made of: packages from outside are recorded.

    A learner from another package changes numbers as a version of waterjar does.
    """
    before = _PARTS.set((*_PARTS.get(), *from_outside(parts)))
    try:
        yield
    finally:
        _PARTS.reset(before)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def collect() -> dict[str, Any]:
    """Everything worth knowing about the surroundings of a run, as plain data."""
    parts = _PARTS.get()
    named = {"parts": {f"{part.shelf}.{part.name}": part.origin for part in parts}} if parts else {}
    return {
        "versions": versions() | {part.package: part.version for part in parts},
        **named,
        "numerics_version": NUMERICS_VERSION,
        "threads": _threads(),
        "git": git_state(Path.cwd()),
        "host": host_class(),
    }


def _threads() -> int | None:
    """Threads of torch, if the training process has imported it: sums in another order round otherwise."""
    torch = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())


def versions() -> dict[str, str]:
    """Versions of python, waterjar and the installed packages that shape numbers."""
    found = {"python": platform.python_version(), "waterjar": __version__}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_state(folder: Path) -> dict[str, Any]:
    """Commit of the repository around `folder` and whether files differ from it; None and why, if there is none."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except FileNotFoundError:
        return {"commit": None, "reason": "git is not installed"}
    except subprocess.TimeoutExpired:
        return {"commit": None, "reason": "git did not answer in 5 s"}
    except subprocess.CalledProcessError:
        return {"commit": None, "reason": "not inside a git repository with a commit"}
    return {"commit": commit, "dirty": bool(changed)}


def _git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=5,
        env=environment,
    )
    return done.stdout.strip()


def host_class() -> dict[str, Any]:
    """What kind of machine this is: enough to compare times, nothing that names it."""
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        "accelerators": _accelerators(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _accelerators() -> list[str]:
    """Names of CUDA devices, if the training process has started CUDA: asking must not start it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    return [cuda.get_device_name(i) for i in range(cuda.device_count())]
