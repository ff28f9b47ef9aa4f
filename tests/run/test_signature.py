from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.run import signature
from waterjar.run.seal import MANIFEST
from waterjar.run.signature import check, sign

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(file)], check=True)
    return file


def test_sign_and_check(run_path: Path, key: Path, tmp_path: Path) -> None:
    assert check(run_path).state == "none"
    file = sign(run_path, key)
    sign(run_path, key)  # signing again asks nothing
    found = check(run_path)
    assert found.state == "unknown_signer"
    fingerprint = subprocess.run(["ssh-keygen", "-lf", str(key)], capture_output=True, text=True, check=True).stdout
    assert found.key in fingerprint.split()
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ada@example.org {key.with_suffix('.pub').read_text()}")
    assert (check(run_path, allowed).state, check(run_path, allowed).signer) == ("trusted", "ada@example.org")
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    allowed.write_text(f"bob@example.org {other.with_suffix('.pub').read_text()}")
    assert check(run_path, allowed).state == "unknown_signer"
    with (run_path / MANIFEST).open("a") as manifest:
        manifest.write("\n")
    assert check(run_path).state == "invalid"
    file.write_text("nonsense")
    assert check(run_path).state == "invalid"
    (run_path / MANIFEST).unlink()
    assert check(run_path).state == "invalid"


def test_what_can_go_wrong(run_path: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WaterjarError, match=r"key .*nokey does not exist"):
        sign(run_path, tmp_path / "nokey")
    (tmp_path / "bad").write_text("not a key")
    before = sign(run_path, key).read_bytes()
    with pytest.raises(WaterjarError, match="ssh-keygen could not sign"):
        sign(run_path, tmp_path / "bad")
    assert (run_path / f"{MANIFEST}.sig").read_bytes() == before  # the good signature is still there
    with pytest.raises(WaterjarError, match="has no seal to sign"):
        sign(tmp_path, key)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    with pytest.raises(WaterjarError, match=r"no SSH key found in ~/.ssh"):
        sign(run_path)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    shutil.copy(key, tmp_path / "home" / ".ssh" / "id_ed25519")
    sign(run_path)
    with pytest.raises(WaterjarError, match="allowed signers file .* does not exist"):
        check(run_path, tmp_path / "nobody")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(WaterjarError, match="ssh-keygen is not installed"):
        check(run_path)


@pytest.mark.parametrize("kind", ["large", "pipe", "link"])
def test_a_signature_is_a_small_file_of_the_run(run_path: Path, tmp_path: Path, kind: str) -> None:
    file = run_path / f"{MANIFEST}.sig"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.touch()
        os.truncate(file, 3 * 2**30)
    found = check(run_path)
    assert found.state == "invalid" and found.reason is not None and "manifest.sha256.sig" in found.reason
    done = CliRunner().invoke(app, ["verify", str(run_path)])
    assert done.exit_code == 1 and "signature: could not read" in done.output


def test_checking_a_signature_ends(run_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign(run_path, key)
    monkeypatch.setattr(signature, "_SECONDS", 1e-6)
    found = check(run_path)
    assert found.state == "invalid" and found.reason is not None and "was not done with it" in found.reason
