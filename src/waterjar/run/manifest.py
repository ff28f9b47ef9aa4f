"""The list of a sealed run's files and their SHA-256, in the format of `sha256sum`."""

from __future__ import annotations

import re
from pathlib import Path

from waterjar.run.store import MANIFEST, ROOT, read_file, sha256


def read_manifest(path: Path) -> tuple[str, dict[str, str]]:
    """The root hash of a sealed run, and file -> SHA-256; OSError or ValueError where there is no such list."""
    text = read_file(path, MANIFEST)
    return sha256(text), _parse(text.decode())


def read_root_hash(path: Path) -> str | None:
    """The root hash of a sealed run, from its manifest; None if there is no manifest."""
    try:
        return sha256(read_file(path, MANIFEST))
    except OSError:
        return None


def root_line(root_hash: str) -> bytes:
    """What stands in the file beside the manifest: its own SHA-256."""
    return f"{root_hash}  {MANIFEST}\n".encode()


def _parse(text: str) -> dict[str, str]:
    entries: dict[str, str] = {}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S.*)", line)
        if match is None or match[2].startswith("/") or ".." in match[2].split("/") or match[2] in entries:
            raise ValueError(f"line {number} is not a checksum of a file of the run")
        entries[match[2]] = match[1]
    if ROOT not in entries:
        raise ValueError(f"it lacks {ROOT}")
    return entries
