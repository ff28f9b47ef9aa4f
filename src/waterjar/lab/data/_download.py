"""Fetch one file, show how far it is, and keep it only if its checksum is right."""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from waterjar.errors import WaterjarError
from waterjar.run.disk import to_disk, unwritten

if TYPE_CHECKING:
    from rich.console import Console

_CHUNK = 1 << 18
_TIMEOUT = 60.0  # seconds without a byte


def data_home() -> Path:
    """Where downloads go: $WATERJAR_DATA, else waterjar/ in the user's cache directory."""
    chosen = os.environ.get("WATERJAR_DATA")
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "waterjar"


def download(url: str, target: Path, md5: str, console: Console | None = None) -> Path:
    """Fetch `url` to `target`. The file appears there only when complete and with the right md5.

    md5 is what the source publishes: it finds a broken transfer, not a forger; what is read is not trusted.
    """
    before = random.getstate()  # the import of rich draws from Python's global generator, which is the caller's
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn  # noqa: PLC0415

    random.setstate(before)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError as error:
        raise unwritten(target, error) from error
    partial = Path(name)
    digest = hashlib.md5(usedforsecurity=False)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            urllib.request.urlopen(url, timeout=_TIMEOUT) as response,
            Progress("{task.description}", *columns, console=console or Console(stderr=True)) as progress,
        ):
            length = response.headers.get("Content-Length")
            task = progress.add_task(target.name, total=int(length) if length else None)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
                progress.advance(task, len(chunk))
        if digest.hexdigest() != md5:
            raise WaterjarError(
                f"{url} arrived with md5 {digest.hexdigest()} instead of {md5}: the transfer was cut or "
                "altered. Nothing was kept; try again"
            )
        to_disk(partial)
        partial.replace(target)
        to_disk(target.parent)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise WaterjarError(f"{url} could not be fetched: {error}. Nothing was kept; try again") from error
    except OSError as error:
        raise unwritten(target, error) from error
    finally:
        partial.unlink(missing_ok=True)
    return target
