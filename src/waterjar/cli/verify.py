"""`waterjar verify`: does the seal hold, and who signed it?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waterjar.cli.output import AsJson, coloured, print_json, print_rich, row, table
from waterjar.cli.progress import working

if TYPE_CHECKING:
    from waterjar.run.seal import Verification
    from waterjar.run.signature import Signature

NAME = "verify"


def command(
    path: Annotated[Path, typer.Argument(help="A run, or a directory of runs.")],
    sign: Annotated[bool, typer.Option("--sign", help="Sign the seal with an SSH key.")] = False,
    key: Annotated[Path | None, typer.Option(help="Private SSH key; by default the one in ~/.ssh.")] = None,
    allowed_signers: Annotated[
        Path | None, typer.Option(help="Allowed-signers file (see ssh-keygen); fail unless one of them signed.")
    ] = None,
    require_sealed: Annotated[bool, typer.Option("--require-sealed", help="Fail for open runs too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell sealed, open or tampered, and name every array and chunk that does not hold. Exit code 1 if tampered.

    So it is where annotations beside a run cannot be read, or do not fit it.
    """
    from waterjar.diagnose.seals import verify_all  # noqa: PLC0415 - not for --help
    from waterjar.run import signature  # noqa: PLC0415

    paths, absent = _runs(path)
    found: list[tuple[Verification, Signature]] = []
    with working("checking seals") as progress:
        verified = verify_all(progress.each("runs", paths))
    for result in verified:
        run = result.path
        if sign and result.state == "sealed":
            signature.sign(run, key)
        found.append((result, signature.check(run, allowed_signers)))
    unsigned = [result.path for result, _ in found if sign and result.state != "sealed"]
    if as_json:
        print_json([*(_plain(*pair) for pair in found), *({"path": str(p), "state": "missing"} for p in absent)])
    else:
        _print(found, absent, unsigned)
    if allowed_signers is not None and any(signed.state != "trusted" for _, signed in found):
        raise typer.Exit(1)
    bad = any(r.state == "tampered" or s.state == "invalid" for r, s in found) or bool(absent) or bool(unsigned)
    bad = bad or any("problem" in (_annotations(result.path)[0] or {}) for result, _ in found)
    if bad or (require_sealed and any(result.state == "open" for result, _ in found)):
        raise typer.Exit(1)


def _runs(path: Path) -> tuple[list[Path], list[Path]]:
    """The runs to check, and those that the ledger knows and the disk has lost."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run import ledger  # noqa: PLC0415
    from waterjar.run.store import MANIFEST, ROOT  # noqa: PLC0415

    def is_run(folder: Path) -> bool:
        return os.path.lexists(folder / ROOT) or (folder / MANIFEST).exists()  # a link that leads nowhere, too

    if not path.is_dir():
        raise WaterjarError(f"{path} is not a directory: give a run, or a directory of runs")
    if is_run(path):
        return [path], []
    found = sorted(item for item in path.iterdir() if item.is_dir() and is_run(item) and not _foreign(item))
    absent = sorted({path / entry["run"] for entry in ledger.entries(path)} - set(found))
    if not found and not absent:
        raise WaterjarError(f"{path} is not a run and holds none")
    return found, absent


def _foreign(folder: Path) -> bool:
    """A Zarr group of somebody else's among the runs."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run.root import NotARunError, read_root  # noqa: PLC0415
    from waterjar.run.store import MANIFEST  # noqa: PLC0415

    if (folder / MANIFEST).exists():
        return False
    try:
        read_root(folder)
    except NotARunError:
        return True
    except WaterjarError:
        return False
    return False


def _plain(result: Verification, signed: Signature) -> dict[str, Any]:
    return {
        "path": str(result.path),
        "state": result.state,
        "root": result.root,
        "files": result.files,
        "problems": [{"kind": p.kind, "file": p.file, "array": p.array, "chunk": p.chunk} for p in result.problems],
        "extra": result.extra,
        "annotations": _annotations(result.path)[0],
        "signature": {"state": signed.state, "key": signed.key, "signer": signed.signer, "reason": signed.reason},
    }


def _annotations(run: Path) -> tuple[dict[str, Any] | None, str]:
    """What was annotated beside the seal, and in words; damage of the file is told, and none of the run's."""
    from waterjar.errors import WaterjarError  # noqa: PLC0415
    from waterjar.run.annotations import AnnotationsError, annotations_of, told  # noqa: PLC0415
    from waterjar.run.reader import Run  # noqa: PLC0415

    try:
        known = annotations_of(run)
        if known is None:
            return None, ""
        Run(run)  # whether they fit
    except AnnotationsError as error:
        return {"problem": str(error)}, str(error)
    except WaterjarError:  # of the run itself, which has its own line
        return None, ""
    return {"entries": known.entries, "sha256": known.digest}, f"annotated, not sealed: {told(known)} ({known.digest})"


def _print(found: list[tuple[Verification, Signature]], absent: list[Path], unsigned: list[Path]) -> None:
    made = table("", ["run", "state", "root hash", "signature"])
    words = {"none": "–", "unknown_signer": "valid, signer not in a list given", "invalid": "does not hold"}
    for result, signed in found:
        who = f"by {signed.signer}" if signed.state == "trusted" else words[signed.state]
        row(made, result.path, coloured(result.state), result.root or "–", f"{who} {signed.key or ''}".strip())
    for path in absent:
        row(made, path, coloured("missing"), "in the ledger, not on disk", "–")
    problems = [f"{result.path}: {problem}" for result, _ in found for problem in result.problems]
    beside = [f"{result.path}: {said}" for result, _ in found for said in [_annotations(result.path)[1]] if said]
    extra = [f"{result.path}: not part of the run: {name}" for result, _ in found for name in result.extra]
    problems += [f"{result.path}: signature: {signed.reason}" for result, signed in found if signed.reason]
    print_rich(
        made, *problems, *extra, *beside, *(f"{path}: not signed, because it is not sealed" for path in unsigned)
    )
