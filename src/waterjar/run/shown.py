r"""What is shown of texts and settings from files: nothing that acts on a terminal or a spreadsheet, and no secrets.

Control characters, those that turn the direction of writing and those that cannot be seen become visible, as `\x1b` or
`\u202e`; the joiners of Indic and Persian writing and of emoji stay. In CSV a text that a spreadsheet would run as a
formula begins with an apostrophe. Both can be undone (`from_csv_cell`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(000e00[0-7][0-9a-f])|\\)")
_FORMULA = re.compile(r"'*[=+\-@＝＋－＠]")
NOT_SHOWN = "(not shown)"

_SECRET = {"password", "passwd", "pwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey",
           "bearer", "authorization", "cookie", "cookies"}  # fmt: skip
_WHOSE = {
    "key": {"api", "access", "private", "auth", "account", "ssh", "encryption", "signing", "wandb"},
    "token": {"", "api", "access", "auth", "refresh", "session", "security", "hf", "hub", "huggingface", "wandb",
              "github", "gh", "gitlab", "slack", "bot", "jwt", "id"},
}  # fmt: skip
"""Words before `key` and `token` that make a secret of them: a `cls_token` is none."""
_HOME = re.compile(r"(?:/home|/Users)/[^/\s:;,'\"]+|[A-Za-z]:\\Users\\[^\\\s:;,'\"]+")
_LOGIN = re.compile(r"(?<=://)[^/@\s]+:[^/@\s]*(?=@)")


def visible(text: str) -> str:
    r"""Show control characters and marks of direction instead of sending them to where they act.

    >>> print(visible("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return HIDDEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible_lines(text: str) -> str:
    """As `visible`, but lines stay lines."""
    return "\n".join(map(visible, text.split("\n")))


def json_text(value: Any, *, in_page: bool = False, **how: Any) -> str:
    r"""JSON that holds every text as it is, and shows none of what `visible` would not; `in_page` has no tag in it.

    Numpy's numbers are numbers, and those that JSON does not have (NaN) are null.

    >>> print(json_text(["é", "\u202e", float("nan")]), json_text("</script>", in_page=True))
    ["é", "\u202e", null] "\u003c/script\u003e"
    """
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, **how)
    for sign in "<>&" if in_page else "":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return "\n".join(HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], line) for line in text.split("\n"))


def _plain(value: Any) -> Any:
    """As JSON has it, all the way down."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy, which is not imported here
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_cell(value: Any) -> Any:
    r"""A text as a cell that a spreadsheet shows and does not run; numbers, also those in texts, stay as they are.

    >>> print(*map(csv_cell, ["=1+1", "-0.5", "sgd", -2, "'=1", "a\x1bb", r"\x1b"]))
    '=1+1 -0.5 sgd -2 ''=1 a\x1bb \\x1b
    """
    if not isinstance(value, str):
        return value
    if HIDDEN.search(value) or _ESCAPE.search(value):
        value = visible(value.replace("\\", "\\\\"))
    return f"'{value}" if _FORMULA.match(value) and not _is_number(value) else value


def from_csv_cell(text: str) -> str:
    r"""The text that `csv_cell` was given; cells that it never made are left as they are.

    >>> [from_csv_cell(csv_cell(text)) == text for text in ("=1", "'=1", "''", "a\nb", r"\x1b", "\\\x1b", "-1", "-x")]
    [True, True, True, True, True, True, True, True]
    """
    if text.startswith("'") and _FORMULA.match(text):
        text = text[1:]
    return _ESCAPE.sub(lambda found: chr(int(found[found.lastindex], 16)) if found.lastindex else "\\", text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def shown_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without values of keys that look like secrets, and without the names of home directories.

    >>> shown_settings({"lr": 0.1, "api_key": "x", "hub": {"token": "y", "user": 1}})
    {'lr': 0.1, 'api_key': '(not shown)', 'hub': {'token': '(not shown)', 'user': 1}}
    >>> shown_settings({"cls_token": "mean", "data": "/home/anna/images"})
    {'cls_token': 'mean', 'data': '~/images'}
    """
    return {key: shown_value(key, value) for key, value in settings.items()}


def shown_value(key: str, value: Any) -> Any:
    """One setting, as `shown_settings` shows it; the key may be a dotted one."""
    if value not in (None, "") and not isinstance(value, bool) and _is_secret(str(key).rpartition(".")[2]):
        return NOT_SHOWN
    if isinstance(value, Mapping):
        return shown_settings(value)
    if isinstance(value, list | tuple):
        return [shown_value(key, item) for item in value]
    if not isinstance(value, str):
        return value
    own = str(Path("~").expanduser())
    if len(own) > 1 and (value == own or value.startswith(f"{own}/")):
        value = f"~{value[len(own) :]}"
    return _LOGIN.sub("…", _HOME.sub("~", value))


def _is_secret(key: str) -> bool:
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", key)]
    last, before = ["", "", *words][-1], ["", "", *words][-2]
    return not _SECRET.isdisjoint(words) or before in _WHOSE.get(last, ())
