"""Read a pickle of plain containers and numpy arrays, and nothing else.

A pickle is a program: it may name any function of any module and call it. This reader knows the three names
that numpy's arrays are made of, and refuses every other one before anything of it is imported or run.
"""

from __future__ import annotations

import io
import pickle
from typing import NoReturn

import numpy as np
from numpy._core import multiarray

from waterjar.errors import WaterjarError

# Written by Python 2 and numpy 1 the module was numpy.core; numpy 2 calls it numpy._core.
_ADMITTED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): multiarray._reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): multiarray._reconstruct,
}

# What a truncated or altered pickle makes the machine stumble over.
_STUMBLES = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,  # UnicodeDecodeError too
    TypeError,
    AttributeError,
    LookupError,  # IndexError, KeyError
    OverflowError,
    MemoryError,
    NotImplementedError,
    ImportError,
)


class _Refused(Exception):
    """A name that is not admitted."""


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler whose only names are those of numpy arrays."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        """Look a name up in the short list; never import."""
        try:
            return _ADMITTED[module_name, global_name]
        except KeyError:
            raise _Refused(f"{module_name}.{global_name}") from None

    def persistent_load(self, pid: object) -> NoReturn:
        """No objects from outside."""
        raise _Refused(f"a persistent object {pid!r}")


def read_plain_pickle(contents: bytes, where: str) -> dict[str, object]:
    """The dictionary in a pickle, keys as text (Python 2 wrote bytes); `where` names the source in errors."""
    try:
        value: object = _PlainUnpickler(io.BytesIO(contents), encoding="latin1").load()
    except _Refused as refused:
        raise WaterjarError(
            f"{where} asks for {refused}: only plain containers and numpy arrays are admitted, so this is not "
            "the official file. It was not executed; do not trust its source"
        ) from None
    except _STUMBLES as error:
        raise WaterjarError(f"{where} is damaged: {type(error).__name__}: {error}") from error
    if not isinstance(value, dict):
        raise WaterjarError(f"{where} holds a {type(value).__name__}, not a dictionary")
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): item for key, item in value.items()}
