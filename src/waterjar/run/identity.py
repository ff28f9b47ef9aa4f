"""Who a run is: run_id and cell_id from the resolved config, the data and our numerics."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from waterjar._version import NUMERICS_VERSION
from waterjar.errors import WaterjarError, brief

Config = dict[str, Any]

UNHASHED = ("paths", "workers", "device", "resources", "checkpoint", "progress")
"""Top-level config keys that change where or how fast a run goes, not its numbers."""

SEED_KEYS = ("seed", "seeds")


_DEEPEST = 40


def plain(value: object, where: str = "config", depth: int = 0) -> Any:
    """Reduce a config to what JSON holds, or say which entry cannot be.

    >>> plain({"lr": 0.1, "layers": (1, 2)})
    {'lr': 0.1, 'layers': [1, 2]}
    """
    if depth > _DEEPEST:
        raise WaterjarError(f"{brief(where)} is nested deeper than {_DEEPEST} levels, or contains itself")
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise WaterjarError(f"{where} has the key {key!r}: keys must be strings")
        return {key: plain(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise WaterjarError(f"{where} = {value} has no place in JSON: use null or leave it out")
    if isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise WaterjarError(f"{where} = {value!r} is not Unicode text")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise WaterjarError(
        f"{where} = {value!r} ({type(value).__name__}) is not plain data: use numbers, text, lists, maps"
    )


def text(argument: str, value: object) -> str:
    """A text that can be written to a file; the name of a file may be none (Python shows its bytes as surrogates)."""
    if not isinstance(value, str):
        raise WaterjarError(f"{argument}={brief(repr(value))}: expected text")
    return str(plain(value, argument))


def digest(value: object) -> str:
    """Hash plain data: sorted keys, shortest float repr, 16 hexadecimal digits of SHA-256."""
    packed = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(packed.encode()).hexdigest()[:16]


def identify(
    config: Config,
    seeds: Sequence[int],
    data_fingerprint: str | None,
    unhashed: Sequence[str] = (),
    numerics: object = NUMERICS_VERSION,
    branch: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Return (run_id, cell_id). Runs of a cell differ in nothing but their seeds, and the runs that they `branch` off.

    >>> a, b = (identify({"lr": 0.1, "device": d}, [s], None) for d, s in [("cpu", 1), ("cuda", 2)])
    >>> a[0] != b[0], a[1] == b[1]
    (True, True)
    """
    skipped = {*UNHASHED, *SEED_KEYS, *unhashed}
    cell = {
        "config": {key: item for key, item in config.items() if key not in skipped},
        "data": data_fingerprint,
        "numerics": numerics,
    }
    run = {**cell, "seeds": list(seeds), **({"branch": dict(branch)} if branch else {})}
    return digest(run), digest(cell)
