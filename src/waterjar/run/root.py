"""Reading a run without xarray: its root, and whole arrays. What the study and a resume are built on."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.codec import Json, decode, readable
from waterjar.run.growing import chunk_key, filled
from waterjar.run.schema import SCHEMA_VERSION
from waterjar.run.store import ROOT


class NotARunError(WaterjarError):
    """A Zarr group that was never a run, which a study may pass over; a damaged run it may not."""


class NewerSchemaError(WaterjarError):
    """A run of a later waterjar."""


_REQUIRED: dict[str, type] = {
    "run_id": str,
    "cell_id": str,
    "config": dict,
    "seeds": list,
    "tasks": list,
    "eval_sets": dict,
    "progress": dict,
    "provenance": dict,
}

STATUSES = ("recording", "interrupted", "sealed")


def read_root(path: Path) -> Json:
    """The root metadata of a run, checked: it is one, it is whole, and this version can read it."""
    try:
        text = (path / ROOT).read_bytes()
    except FileNotFoundError:
        hint = "no such file or directory" if not path.exists() else "it has no zarr.json"
        raise WaterjarError(f"{path} is not a run: {hint}") from None
    except OSError as error:
        raise WaterjarError(f"could not read {path}: {error.strerror}") from error
    try:
        root: Json = json.loads(text)
        attributes = root["attributes"]
        version = attributes["waterjar_schema"]
    except (KeyError, TypeError):
        raise NotARunError(f"{path} is not a waterjar run: its {ROOT} is another's") from None
    except (ValueError, RecursionError) as error:
        raise WaterjarError(f"{path} is damaged: its {ROOT} is not JSON ({error})") from error
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise NewerSchemaError(
            f"{path} has schema {version!r}, this waterjar reads up to {SCHEMA_VERSION}: pip install --upgrade waterjar"
        )
    faults = [key for key, kind in _REQUIRED.items() if not isinstance(attributes.get(key), kind)]
    consolidated = root.get("consolidated_metadata")
    if not isinstance(consolidated, dict) or not isinstance(consolidated.get("metadata"), dict):
        faults.append("consolidated_metadata")
    if attributes.get("status") not in STATUSES:
        faults.append("status")
    if faults or not isinstance(attributes["progress"].get("step"), int):
        raise WaterjarError(f"{path} is damaged: its {ROOT} lacks a valid {', '.join(faults) or 'progress'}")
    return root


def read_array(path: Path, key: str, metadata: Json) -> NDArray[Any]:
    """Load one array whole. Arrays written by another tool go through zarr."""
    if not readable(metadata):
        import zarr  # noqa: PLC0415 - half a second that runs of our own never pay

        return np.asarray(zarr.open_group(path, mode="r")[key][...])  # type: ignore[index]
    shape = tuple(metadata["shape"])
    chunks = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    grid = [range(math.ceil(size / chunk)) for size, chunk in zip(shape, chunks, strict=True)]
    whole = None
    for index in itertools.product(*grid):
        name = chunk_key(key, index)
        try:
            data = (path / name).read_bytes()
        except OSError as error:
            raise WaterjarError(f"could not read {path / name}: {error.strerror}") from error
        block = decode(data, metadata, str(path / name))
        if math.prod(len(r) for r in grid) == 1:
            return block[tuple(slice(0, size) for size in shape)]
        if whole is None:
            whole = filled(shape, metadata)
        place = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, chunks, shape, strict=True))
        whole[place] = block[tuple(slice(0, p.stop - p.start) for p in place)]
    return filled(shape, metadata) if whole is None else whole
