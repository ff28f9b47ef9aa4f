"""A run that goes on from within another one: it begins as a copy of that one's recording, up to a step."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waterjar.errors import WaterjarError
from waterjar.run.reader import Run
from waterjar.run.root import read_root
from waterjar.run.stamped import BLANK, stamp, to_json
from waterjar.run.store import MANIFEST, PRIVATE, ROOT_HASH, LocalStore
from waterjar.run.writer import CHECKSUM

KEY = "branch"
"""In a config: where the run goes off, and from which cell. In the root: from which run, by run_id and root hash."""
_SAME = ("seeds", "tasks", "eval_sets", "probe_sets", "classes", "data_fingerprint")
_OF_A_SEAL = ("checksum", "seal")


def described(source: Run, at: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a recorder, for a run that goes off from a sealed one at a place that `at` names."""
    if source.root_hash is None:
        raise WaterjarError(f"{source.path} is {source.status}: expected a sealed run, which changes no more")
    config = {**arguments["config"], KEY: f"{at} of {source.attributes['cell_id'][:8]}"}
    return {**arguments, "config": config, KEY: {"run_id": source.run_id, "root_hash": source.root_hash}}


def copy_prefix(source: Run, place: Path, identity: Mapping[str, Any]) -> None:
    """Make an unfinished run at `place` of all that a sealed one has recorded, with another identity.

    Whoever goes on with it (`Recorder(resume_at=...)`) drops what is behind the step. It is there whole or not at all.
    """
    for key in _SAME:
        if identity.get(key) != source.attributes.get(key):
            raise WaterjarError(
                f"a branch of {source.path} needs the same {key}: expected {source.attributes.get(key)}, "
                f"found {identity.get(key)}"
            )
    draft = place.parent / PRIVATE / KEY / place.name
    shutil.rmtree(draft, ignore_errors=True)
    try:
        shutil.copytree(source.path, draft, ignore=shutil.ignore_patterns(PRIVATE, MANIFEST, ROOT_HASH))
        root = read_root(source.path)
        kept = {key: value for key, value in root["attributes"].items() if key not in _OF_A_SEAL}
        attributes = {"checksum": BLANK, **kept, **identity, "status": "interrupted"}
        LocalStore(draft).put_root(stamp(to_json({**root, "attributes": attributes}), CHECKSUM), sync=True)
        draft.replace(place)
    except OSError as error:
        raise WaterjarError(f"could not copy {source.path} to {place}: {error.strerror}") from error
