"""What is shown of texts and settings from files."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import waterjar
from waterjar import Recorder
from waterjar.run.shown import (
    HIDDEN,
    NOT_SHOWN,
    csv_cell,
    from_csv_cell,
    json_text,
    shown_settings,
    shown_value,
    visible,
)

DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    left = visible(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in DIRECTION for sign in left)


def test_marks_of_direction_are_those_of_unicode() -> None:
    """Bidi_Control of PropList.txt: what has such a class, and the three marks."""
    classes = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    known = {chr(n) for n in range(0x110000) if unicodedata.bidirectional(chr(n)) in classes}
    assert known | {"\u061c", "\u200e", "\u200f"} == set(DIRECTION)
    assert all(HIDDEN.match(sign) for sign in DIRECTION)


@given(st.text(st.sampled_from("'=+-@\\xu01ab\t\r\n\x1b\u202e ,\"é"), max_size=12))
def test_a_cell_comes_back_and_is_no_formula(text: str) -> None:
    cell = csv_cell(text)
    assert from_csv_cell(cell) == text
    try:
        float(cell)
    except ValueError:
        assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")
    file = io.StringIO()
    csv.writer(file).writerow([cell])
    assert next(csv.reader(io.StringIO(file.getvalue()))) == [cell]


def test_numbers_stay_numbers() -> None:
    assert [csv_cell(value) for value in (-0.5, 3, "-0.5", "+1e-3", None, "-inf")] == [
        -0.5, 3, "-0.5", "+1e-3", None, "-inf"
    ]  # fmt: skip


def test_a_timeline_with_formulas_and_escapes_comes_back(tmp_path: Path) -> None:
    methods = ["=cmd|' /C calc'!A0", "@sum", "-x", "+x", "\tx", "a\x1b[31mb\u202ec", r"C:\new", r"\x1b", "'=x", "plain"]
    for i, method in enumerate(methods):
        with Recorder(tmp_path / "s" / str(i), {"method": method}, eval_sets=["=set"], provenance=False) as recorder:
            recorder.log(epoch=0, performance={"accuracy": 0.5, "loss": -0.5})
    file = waterjar.to_csv(waterjar.open_study(tmp_path / "s"), tmp_path / "x.csv")
    text = file.read_text()
    assert "\x1b" not in text and "\u202e" not in text
    assert all(line[0] not in '=+-@\t"' for line in text.splitlines())
    assert ",'=set,0.5,-0.5" in text
    again = waterjar.from_csv(file, tmp_path / "again", splits=["=set"])
    assert {run.config["method"] for run in again} == set(methods)
    assert {run.load("performance").loss.item() for run in again} == {-0.5}


@pytest.mark.parametrize(
    "key",
    ["api_key", "apiKey", "API_KEY", "token", "hf_token", "accessToken", "password", "db_password", "client_secret",
     "secret", "credentials", "aws.secret_access_key", "private_key", "wandb_key",
     "authorization", "Authorization", "bearer", "cookie", "session_cookies", "pwd", "dbPwd"],
)  # fmt: skip
def test_secrets_are_not_shown(key: str) -> None:
    assert shown_settings({key: "abc123"}) == {key: NOT_SHOWN}
    assert shown_settings({"deep": {key: ["abc123"]}}) == {"deep": {key: NOT_SHOWN}}


@pytest.mark.parametrize(
    "key", ["cls_token", "n_tokens", "token_dim", "key", "monkey", "keys", "seed", "tokenizer", "lr"]
)
def test_other_settings_are(key: str) -> None:
    assert shown_settings({key: "mean", "n": 3}) == {key: "mean", "n": 3}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"tokens": ["sk-a", "sk-b"]}, {"tokens": NOT_SHOWN}),
        ({"api_keys": {"hub": "abc"}}, {"api_keys": NOT_SHOWN}),
        ({"passwords": [["abc"]]}, {"passwords": NOT_SHOWN}),
        ({"hubs": [{"n": 1, "api_key": "abc"}]}, {"hubs": [{"n": 1, "api_key": NOT_SHOWN}]}),
        ({"a": [[{"b": ({"token": "abc"},)}]]}, {"a": [[{"b": [{"token": NOT_SHOWN}]}]]}),
        ({"env": ["HF_TOKEN=abc", "N=2"]}, {"env": [f"HF_TOKEN={NOT_SHOWN}", "N=2"]}),
        ({"argv": ["--api-key", "abc", "--lr", "1"]}, {"argv": ["--api-key", NOT_SHOWN, "--lr", "1"]}),
        ({"argv": ["--api-key=abc", 3]}, {"argv": [f"--api-key={NOT_SHOWN}", 3]}),
        ({"env": [{"name": "api_key", "value": "abc"}]}, {"env": [{"name": "api_key", "value": NOT_SHOWN}]}),
        ({"url": "https://x.org/?token=abc&n=1"}, {"url": f"https://x.org/?token={NOT_SHOWN}&n=1"}),
        ({"keys": ["sk-" + "a1" * 12]}, {"keys": [NOT_SHOWN]}),
        ({"note": "by ghp_" + "a" * 36}, {"note": f"by {NOT_SHOWN}"}),
    ],
)
def test_secrets_in_lists_and_texts_are_not_shown(given: dict[str, object], wanted: dict[str, object]) -> None:
    assert shown_settings(given) == wanted


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": 3_000_000, "n_tokens": [1, 2]},
        {"special_tokens": ["[CLS]"], "keys": ["a", "b"]},
        {"name": "sgd", "value": 3, "key": "x"},
        {"package": "sk-learn-preprocessing", "formula": "y=2", "argv": ["--lr", "0.1", "-v"]},
    ],
)
def test_what_only_looks_a_little_like_it_is_shown(given: dict[str, object]) -> None:
    assert shown_settings(given) == given


def test_sections_that_are_secret_stay_so_under_dotted_keys() -> None:
    assert shown_value("credentials.user", "abc") == NOT_SHOWN
    assert shown_value("training.lr", 0.1) == 0.1


def test_home_directories_and_logins_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere/anna")
    given = {
        "a": "/somewhere/anna/x",
        "b": "/home/otto/x",
        "c": ["/Users/eva/y"],
        "d": "s3://me:pw@host/x",
        "e": "/data/x",
    }
    wanted = {"a": "~/x", "b": "~/x", "c": ["~/y"], "d": "s3://…@host/x", "e": "/data/x"}
    assert shown_settings(given) == wanted


def test_what_cannot_be_seen_is_what_unicode_says() -> None:
    """Format characters (Cf), without the joiners and those that draw something, such as the Arabic number sign."""
    drawn = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x200C, 0x200D}
    below = [*(n for n in range(0x10000) if n not in drawn), *range(0xE0000, 0xE0080)]
    assert all(HIDDEN.match(chr(n)) for n in below if unicodedata.category(chr(n)) in ("Cf", "Cc", "Cs", "Zl", "Zp"))
    assert visible("\xad\u200b\U000e0041") == r"\xad\u200b\U000e0041"
    assert from_csv_cell(csv_cell("a\U000e0041\\")) == "a\U000e0041\\"


@given(st.text())
def test_json_keeps_what_it_does_not_show(text: str) -> None:
    shown = json_text({"a": text}, indent=1)
    assert json.loads(shown) == {"a": text} and not HIDDEN.search(shown.replace("\n", ""))
