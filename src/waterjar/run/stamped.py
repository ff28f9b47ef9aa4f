"""JSON that knows whether it is whole: its first entry is a checksum over all of it, that entry itself left blank."""

from __future__ import annotations

import json
from typing import Any

import google_crc32c

BLANK = "00000000"
_FIRST = b'{"checksum":"'


def to_json(value: Any) -> bytes:
    """JSON as short as it gets: the root of a run is written with every step."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def stamp(text: bytes, first: bytes = _FIRST) -> bytes:
    """Fill in the checksum of a text that begins with `first` and eight zeros.

    >>> stamp(to_json({"checksum": BLANK, "runs": 3}))
    b'{"checksum":"12618b03","runs":3}'
    """
    end = len(first) + len(BLANK)
    return b"%s%08x%s" % (first, google_crc32c.value(text), text[end:])


def holds(text: bytes, first: bytes = _FIRST) -> bool:
    """Whether a text begins with a checksum, and is as it was written, to the bit."""
    end = len(first) + len(BLANK)
    return text.startswith(first) and text == stamp(first + BLANK.encode() + text[end:], first)


def pack(value: dict[str, Any]) -> bytes:
    """A mapping as a text that `unpack` takes back."""
    return stamp(to_json({"checksum": BLANK, **value}))


def unpack(text: bytes) -> dict[str, Any]:
    """The mapping; a text that is not as it was written, or that `pack` cannot have written, is a ValueError."""
    if not holds(text):
        raise ValueError("its checksum does not hold")
    found = dict(json.loads(text))
    to_json(found)  # Python reads half a pair of surrogates, NaN and 1e999, which are not JSON
    return found
