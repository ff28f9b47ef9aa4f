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
_ASSIGNED = re.compile(r"([A-Za-z_][\w.-]*)=([^\s,;&'\"]+)")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*$")
_ISSUED = re.compile(
    r"\b(?:sk-(?=\D*\d)[\w-]{12,}|gh[opsru]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{15,}|hf_[A-Za-z0-9]{20,}|xox[a-z]-[\w-]{10,}"
    r"|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
"""Secrets by the marks that those who issue them put in front, so that they are found wherever they stand."""
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

    So it is all the way down, in lists too, and in texts that say key=value.

    >>> shown_settings({"lr": 0.1, "api_key": "x", "hub": {"token": "y", "user": 1}})
    {'lr': 0.1, 'api_key': '(not shown)', 'hub': {'token': '(not shown)', 'user': 1}}
    >>> shown_settings({"cls_token": "mean", "data": "/home/anna/images", "env": ["HF_TOKEN=x", "N=2"]})
    {'cls_token': 'mean', 'data': '~/images', 'env': ['HF_TOKEN=(not shown)', 'N=2']}
    """
    named = settings.get("name", settings.get("key"))  # {"name": "api_key", "value": "x"}
    about = named if isinstance(named, str) else ""
    return {key: shown_value(about if key == "value" and about else key, value) for key, value in settings.items()}


def shown_value(key: str, value: Any) -> Any:
    """One setting, as `shown_settings` shows it; the key may be a dotted one."""
    if any(_is_secret(part, value) for part in str(key).split(".")):
        return NOT_SHOWN
    if isinstance(value, Mapping):
        return shown_settings(value)
    if isinstance(value, list | tuple):  # an item behind one such as "--api-key" is its value
        options = ["", *(_OPTION.match(item) and item if isinstance(item, str) else None for item in value)]
        return [shown_value(before or key, item) for before, item in zip(options, value, strict=False)]
    return _shown_text(value) if isinstance(value, str) else value


def _shown_text(text: str) -> str:
    own = str(Path("~").expanduser())
    if len(own) > 1 and (text == own or text.startswith(f"{own}/")):
        text = f"~{text[len(own) :]}"
    text = _LOGIN.sub("…", _HOME.sub("~", text))
    text = _ASSIGNED.sub(lambda said: f"{said[1]}={NOT_SHOWN}" if _is_secret(said[1], said[2]) else said[0], text)
    return _ISSUED.sub(NOT_SHOWN, text)


def _is_secret(key: str, value: Any) -> bool:
    """Whether a key names a secret, of which there is one; several `tokens` are a number, or some texts."""
    if value in (None, "") or isinstance(value, bool):
        return False
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", key)]
    if words and words[-1].endswith("s") and _holds_text(value):
        words[-1] = words[-1].removesuffix("s")
    last, before = ["", "", *words][-1], ["", "", *words][-2]
    return not _SECRET.isdisjoint(words) or before in _WHOSE.get(last, ())


def _holds_text(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, str) or any(map(_holds_text, parts))
