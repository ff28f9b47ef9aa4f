"""Reading a run without xarray: its root, and its arrays, whole or in part. The one reader of both."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.codec import Json, decode
from waterjar.run.coordinates import is_number
from waterjar.run.growing import chunk_key, filled, places
from waterjar.run.identity import identify
from waterjar.run.nodes import Fault, check_nodes, chunk_bytes
from waterjar.run.schema import SCHEMA_VERSION
from waterjar.run.stamped import holds, to_json
from waterjar.run.store import PRIVATE, ROOT, read_file, sha256
from waterjar.run.writer import CHECKSUM

Region = Sequence[tuple[int, int]]
"""Begin and end along every dimension."""


class NotARunError(WaterjarError):
    """A Zarr group that was never a run, which a study may pass over; a damaged run it may not."""


class NewerSchemaError(WaterjarError):
    """A run of a later waterjar."""


class DamagedError(WaterjarError):
    """A run, or a file of it, is not what was written."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(what)
        self.path = path


_SOUND: set[str] = set()
"""SHA-256 of roots that were checked by this process."""
_MOST_SOUND = 2**14
STATUSES = ("recording", "interrupted", "sealed")


def _list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(type(item) is kind for item in value)


def _numbers_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(type(item) is int for item in value.values())


def _is_progress(value: Any) -> bool:
    if not isinstance(value, dict) or type(value.get("step")) is not int:
        return False
    return all(isinstance(item, str) if key == "train_task" else is_number(item) for key, item in value.items())


def _has_sessions(value: Any) -> bool:
    sessions = value.get("sessions") if isinstance(value, dict) else None
    return isinstance(sessions, list) and bool(sessions) and all(isinstance(one, dict) for one in sessions)


def _names_a_run(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("run_id", "root_hash"))


def _checksums(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_list_of(int), value.values()))


_REQUIRED: dict[str, Callable[[Any], bool]] = {
    "run_id": lambda value: isinstance(value, str),
    "cell_id": lambda value: isinstance(value, str),
    "config": lambda value: isinstance(value, dict),
    "seeds": lambda value: _list_of(int)(value) and bool(value),
    "tasks": _list_of(str),
    "eval_sets": _numbers_by_name,
    "progress": _is_progress,
    "provenance": _has_sessions,
    "status": lambda value: value in STATUSES,
}
_OPTIONAL: dict[str, Callable[[Any], bool]] = {
    "probe_sets": _list_of(str),
    "classes": lambda value: value is None or _list_of(str)(value),
    "eval_sizes": _numbers_by_name,
    "layers": _list_of(str),
    "storage": lambda value: isinstance(value, dict),
    "checks": _checksums,
    "data_fingerprint": lambda value: value is None or isinstance(value, str),
    "identity": lambda value: isinstance(value, dict) and _list_of(str)(value.get("unhashed")) and "numerics" in value,
    "labels": lambda value: isinstance(value, dict) and all(map(_list_of(str), value.values())),
    "example_sets": _numbers_by_name,
    "source": _names_a_run,
    "branch": _names_a_run,
    "migrated_from": _names_a_run,
}
"""What the root says of a run, and what it must look like. Earlier versions lacked some of the second kind."""


def read_root(path: Path, file: str = ROOT) -> Json:
    """The root metadata of a run, checked: it is one, it is whole, and this version can read it."""
    return root_and_digest(path, file)[0]


def root_and_digest(path: Path, file: str = ROOT) -> tuple[Json, str]:
    """The root metadata of a run, checked, and the SHA-256 of the file."""
    try:
        text = read_file(path, file)
    except FileNotFoundError:
        hint = "no such file or directory" if not path.exists() else f"it has no {ROOT}"
        raise WaterjarError(f"{path} is not a run: {hint}") from None
    except OSError as error:
        raise WaterjarError(f"could not read {path}: {error.strerror}") from error
    is_whole = holds(text, CHECKSUM)
    if text.startswith(CHECKSUM) and not is_whole:
        raise DamagedError(path, f"{path} is damaged: the checksum of its {ROOT} does not hold")
    try:
        root: Json = json.loads(text)
        attributes = root["attributes"]
        version = attributes["waterjar_schema"]
    except (KeyError, TypeError):
        if (path / PRIVATE).is_dir():
            raise DamagedError(path, f"{path} is damaged: its {ROOT} does not say what it is") from None
        raise NotARunError(f"{path} is not a waterjar run: its {ROOT} is another's") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise DamagedError(path, f"{path} is damaged: its {ROOT} is not JSON ({error})") from error
    if type(version) is not int or version > SCHEMA_VERSION:
        raise NewerSchemaError(
            f"{path} has schema {version!r}, this waterjar reads up to {SCHEMA_VERSION}: pip install --upgrade waterjar"
        )
    digest = sha256(text)
    if digest not in _SOUND:  # whoever opens a study again and again looks through the same roots
        _check(path, root, is_whole)
        if len(_SOUND) == _MOST_SOUND:
            _SOUND.clear()
        _SOUND.add(digest)
    return root, digest


def _check(path: Path, root: Json, is_whole: bool) -> None:
    """Refuse a root that is not as the schema has it; the checksum alone would trust whoever recomputes it."""
    attributes = root["attributes"]
    faults = [key for key, holds_for in _REQUIRED.items() if not holds_for(attributes.get(key))]
    faults += [key for key, holds_for in _OPTIONAL.items() if key in attributes and not holds_for(attributes[key])]
    consolidated = root.get("consolidated_metadata", {})
    if not isinstance(consolidated, dict) or not isinstance(consolidated.get("metadata"), dict):
        faults.append("consolidated_metadata")
    if root.get("zarr_format") != 3 or root.get("node_type") != "group":
        faults.append("zarr_format or node_type")
    if not faults and not all(-1 <= task < len(attributes["tasks"]) for task in attributes["eval_sets"].values()):
        faults.append("eval_sets")
    if faults:
        raise DamagedError(path, f"{path} is damaged: its {ROOT} lacks a valid {', '.join(faults)}")
    if not is_whole and ("checksum" in attributes or "identity" in attributes):
        raise DamagedError(path, f"{path} is damaged: its {ROOT} was rewritten, by waterjar it was not")
    try:
        to_json(attributes)  # an index and a cache keep parts of them
    except (ValueError, RecursionError) as error:
        raise DamagedError(path, f"{path} is damaged: its {ROOT} holds what JSON cannot ({error})") from None
    about = attributes.get("identity")
    if about is not None:
        of = attributes["config"], attributes["seeds"], attributes.get("data_fingerprint")
        found = identify(*of, about["unhashed"], about["numerics"], attributes.get("branch"))
        if found != (attributes["run_id"], attributes["cell_id"]):
            raise DamagedError(path, f"{path} is damaged: its run_id is not that of its config, seeds and data")
    try:
        check_nodes(consolidated["metadata"], len(attributes["seeds"]), attributes["waterjar_schema"])
    except Fault as fault:
        raise DamagedError(path, f"{path} is damaged: {fault}") from None


def read_array(
    path: Path,
    key: str,
    metadata: Json,
    digests: Mapping[str, str] | None = None,
    region: Region | None = None,
    checks: Sequence[int] | None = None,
) -> NDArray[Any]:
    """Load an array of a checked root: whole, or a `region` of it, of which only the chunks that hold it are read.

    `digests` are the SHA-256 of a sealed run's files, `checks` those that the root of an open one keeps of a raw array:
    bytes that are not those that were recorded are an error.
    """
    chunks, most = metadata["chunk_grid"]["configuration"]["chunk_shape"], chunk_bytes(metadata)
    wanted = [(0, size) for size in metadata["shape"]] if region is None else region
    shape = tuple(end - begin for begin, end in wanted)
    grid = [range(begin // c, -(-end // c)) for (begin, end), c in zip(wanted, chunks, strict=True)]
    grid = grid if math.prod(shape) else [range(0)]
    whole = None
    if math.prod(map(len, grid)) != 1:  # a single chunk is not copied
        for name in (chunk_key(key, index) for index in places(grid)):  # before memory is taken for them
            if not (path / name).is_file():
                raise DamagedError(path, f"could not read {path / name}: No such file")
        try:
            whole = filled(shape, metadata)
        except (MemoryError, ValueError) as error:
            raise WaterjarError(f"{path / key} does not fit into memory: {shape} {metadata['data_type']}") from error
    for index in places(grid):
        name = chunk_key(key, index)
        try:
            data = read_file(path, name, most + most // 64 + 2**16)  # what does not compress grows a little
        except OSError as error:
            raise DamagedError(path, f"could not read {path / name}: {error.strerror}") from error
        if digests is not None and sha256(data) != digests.get(name):
            raise DamagedError(path, f"{path / name} is damaged: it is not what was sealed (see waterjar verify)")
        if checks is not None:
            visible = most // chunks[0] * min(chunks[0], metadata["shape"][0] - index[0] * chunks[0])
            if index[0] >= len(checks) or google_crc32c.value(data[:visible]) != checks[index[0]]:
                raise DamagedError(path, f"{path / name} is damaged: its rows are not those that were recorded")
        offsets = [i * c - begin for i, c, (begin, _) in zip(index, chunks, wanted, strict=True)]
        block = decode(data, metadata, str(path / name))
        block = block[tuple(slice(max(0, -o), n - o) for o, n in zip(offsets, shape, strict=True))]
        if whole is None:
            return block
        whole[tuple(slice(max(0, o), o + c) for o, c in zip(offsets, chunks, strict=True))] = block
    assert whole is not None
    return whole
