"""Signing a seal with an SSH key, and checking who signed: `ssh-keygen -Y`, which every researcher has.

The signature is over the manifest, so it can also be checked by hand:
`ssh-keygen -Y check-novalidate -n waterjar -s .waterjar/manifest.sha256.sig < .waterjar/manifest.sha256`
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from waterjar.errors import WaterjarError
from waterjar.run.disk import write_file
from waterjar.run.store import MANIFEST, read_file

NAMESPACE = "waterjar"
_LARGEST = 2**16
"""Bytes of a signature; those of common keys have less than 2,000."""
_SECONDS = 30
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


@dataclass(frozen=True)
class Signature:
    """What is known about a run's signature. Only `trusted` says who signed."""

    state: Literal["none", "trusted", "unknown_signer", "invalid"]
    key: str | None = None
    signer: str | None = None
    reason: str | None = None
    """Why it is invalid, where ssh-keygen was not the one to say so."""


def _file(path: Path) -> Path:
    return path / f"{MANIFEST}.sig"


def sign(path: Path, key: Path | None = None) -> Path:
    """Sign the manifest of a sealed run with a private SSH key (or the public half of one in the agent)."""
    if key is None:
        key = next((k for k in (Path.home() / ".ssh" / name for name in _KEYS) if k.is_file()), None)
        if key is None:
            raise WaterjarError(
                "no SSH key found in ~/.ssh: give one with --key, or make one with ssh-keygen -t ed25519"
            )
    if not key.is_file():
        raise WaterjarError(f"key {key} does not exist: give a private SSH key, such as ~/.ssh/id_ed25519")
    manifest = path / MANIFEST
    if not manifest.is_file():
        raise WaterjarError(f"{path} has no seal to sign: close its recorder first")
    done = _ssh_keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], manifest.read_bytes())
    if done.returncode or "BEGIN SSH SIGNATURE" not in done.stdout:
        raise WaterjarError(f"ssh-keygen could not sign with {key}: {done.stderr.strip()}")
    write_file(path / f"{MANIFEST}.sig", done.stdout)  # an earlier signature stays until this instant
    return _file(path)


def check(path: Path, allowed_signers: Path | None = None) -> Signature:
    """Check the signature of a run; with an allowed-signers file (see ssh-keygen) also whose it is."""
    if not os.path.lexists(_file(path)):
        return Signature("none")
    try:
        read_file(path, f"{MANIFEST}.sig", _LARGEST)
        return _checked(path, read_file(path, MANIFEST), allowed_signers)
    except OSError as error:
        return Signature("invalid", reason=f"could not read {error.filename}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Signature("invalid", reason=f"ssh-keygen was not done with it after {_SECONDS} seconds")


def _checked(path: Path, manifest: bytes, allowed_signers: Path | None) -> Signature:
    signature = ["-n", NAMESPACE, "-s", str(_file(path))]
    done = _ssh_keygen(["-Y", "check-novalidate", *signature], manifest, _SECONDS)
    if done.returncode:
        return Signature("invalid")
    found = re.search(r"SHA256:\S+", done.stdout)
    key = found[0] if found else None
    if allowed_signers is None:
        return Signature("unknown_signer", key)
    if not allowed_signers.is_file():
        raise WaterjarError(f"allowed signers file {allowed_signers} does not exist")
    names = _ssh_keygen(["-Y", "find-principals", "-f", str(allowed_signers), *signature[2:]], timeout=_SECONDS)
    for name in names.stdout.split("\n")[0].split(","):
        arguments = ["-Y", "verify", "-f", str(allowed_signers), "-I", name, *signature]
        if name and not _ssh_keygen(arguments, manifest, _SECONDS).returncode:
            return Signature("trusted", key, name)
    return Signature("unknown_signer", key)


def _ssh_keygen(
    arguments: list[str], data: bytes = b"", timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it; without a `timeout` where it may ask for a passphrase."""
    command = ["ssh-keygen", *arguments]
    try:
        done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=timeout)
    except FileNotFoundError as error:
        raise WaterjarError("ssh-keygen is not installed: it comes with OpenSSH (8.1 or newer)") from error
    out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)
