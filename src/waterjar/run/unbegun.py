"""A run of which nothing was recorded yet: it leaves nothing behind, and is in nobody's way.

A loop that fails before its first step is corrected and started again, to the same path. What a script writes before
that (`once`) it writes again; a step, an event, an annotation or a signature is somebody's, and stays.
"""

from __future__ import annotations

import contextlib
import os

from waterjar.errors import WaterjarError
from waterjar.run.root import read_root
from waterjar.run.schema import GROUPS, GROWING, SCHEMA_VERSION
from waterjar.run.store import MANIFEST, OF_WRITER, PRIVATE, ROOT, ROOT_HASH, SYNCED, LocalStore


def is_unbegun(store: LocalStore) -> bool:
    """Whether there is an open run that never had a step or an event, and of which nobody has said anything.

    One that was cut back to its beginning (`resume_at=-1`) has had some: its arrays that grow are there, without rows.
    """
    try:
        root = read_root(store.path)
        private = [item.name for item in (store.path / PRIVATE).iterdir()]
    except (WaterjarError, OSError):  # whoever goes on with it is told what is wrong with it
        return False
    attributes, nodes = root["attributes"], root["consolidated_metadata"]["metadata"].values()
    dims = [node["dimension_names"] for node in nodes if node["node_type"] == "array"]
    grows = any(names[0] in GROWING for names in dims if names)
    is_open = attributes["status"] != "sealed" and attributes["waterjar_schema"] == SCHEMA_VERSION
    is_ours = all(name in OF_WRITER or name.startswith("draft-") for name in private)
    return is_open and is_ours and attributes["progress"]["step"] == -1 and not grows


def clear(store: LocalStore) -> None:
    """Remove all that the recorder has written of it but the root, which a new one replaces at once. Under the lock.

    Numbers go before what says that they are there: after a kill on the way, the next one finds them, too.
    """
    ours = [key for key in store.files() if key.partition("/")[0] in GROUPS]
    nodes = {key.removesuffix(f"/{ROOT}") for key in ours if key.endswith(f"/{ROOT}")}
    made = [key for key in ours if key.endswith("/c") or "/c/" in key]
    made = [key for key in made if f"{key}/".partition("/c/")[0] in nodes]
    made += sorted((f"{node}/{ROOT}" for node in nodes), key=len, reverse=True)
    for key in [*made, SYNCED, MANIFEST, ROOT_HASH]:
        store.delete(key)
    for folder in sorted({parent for key in made for parent in (store.path / key).parents}, reverse=True):
        if store.path in folder.parents:
            _remove_if_empty(folder)


def leave_nothing(store: LocalStore, pid: int) -> bool:
    """Remove the run of a recorder, if nothing was recorded; whether that was so. Files of others stay."""
    if os.getpid() != pid or not store.is_locked or not is_unbegun(store):
        return False
    try:
        clear(store)
        store.delete(ROOT)
    except OSError:  # a folder that may not be written to any more: the run stays, empty
        return False
    store.unlock(remove=True)
    for folder in (store.path / PRIVATE, store.path):
        _remove_if_empty(folder)
    return True


def drop(store: LocalStore, pid: int) -> None:
    """What becomes of the run of a recorder that nobody holds any more, or whose process ends."""
    if not leave_nothing(store, pid) and os.getpid() == pid:
        store.unlock()


def _remove_if_empty(folder: os.PathLike[str]) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # noqa: PTH106 - of a folder that is not empty, nothing is removed
