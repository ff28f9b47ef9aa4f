"""YAML files: what is read, and that traps and bombs are refused with their line."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from waterjar import WaterjarError
from waterjar.run.yaml_text import MOST_BYTES, read_yaml, read_yaml_file, write_yaml


def read(folder: Path, text: str | bytes) -> dict[str, object]:
    file = folder / "study.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_yaml_file(file)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-2", 0.01), ("1E5", 1e5), ("-2.5e-3", -0.0025), ("1.0e-2", 0.01), (".5", 0.5), ("3.", 3.0), ("0.25", 0.25),
        ("12", 12), ("-3", -3), ("0", 0), ("true", True), ("False", False), ("y", "y"), ("null", None), ("~", None),
        ("", None), ("'1e-2'", "1e-2"), ('"12"', "12"), ("2024-01-01", "2024-01-01"), ("derpp", "derpp"),
        ("!!str 12", "12"), ("[1, a, [2.5]]", [1, "a", [2.5]]), ("{a: {b: [1]}}", {"a": {"b": [1]}}), ("e5", "e5"),
        ("=", "="), (".inf", math.inf), ("-.inf", -math.inf), ("'no'", "no"), ("'1_0'", "1_0"), ("1_0a", "1_0a"),
        ('"a\\u0085b"', "a\x85b"), ("0e5", 0.0), ("1e-300", 1e-300), ("1e308", 1e308),
    ],
)  # fmt: skip
def test_values(tmp_path: Path, text: str, value: object) -> None:
    found = read(tmp_path, f"x: {text}\n")["x"]
    assert found == value
    assert type(found) is type(value)


WORDS = st.text(
    st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]) | st.sampled_from("\x85\u2028\u2029")
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**39), 10**39) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz_", min_size=1), inner, max_size=4),
    max_leaves=12,
)


@given(content=st.dictionaries(st.text("abcxyz_", min_size=1), PLAIN, max_size=5))
def test_what_is_written_is_read_back_by_both(content: dict[str, object]) -> None:
    """Against PyYAML: every value and its type. It reads 1e5 as text, and finds it in quotes."""
    text = write_yaml(content)
    assert repr(read_yaml(text, "here")) == repr(content)
    assert repr(yaml.safe_load(text)) == repr(content)


@given(content=st.dictionaries(st.text("abcxyz_", min_size=1), PLAIN, max_size=5))
def test_what_pyyaml_writes_is_read_back(content: dict[str, object]) -> None:
    """It leaves out the quotes of text such as 1e5, which is a number to YAML 1.2 and to us."""
    text = yaml.safe_dump(content, sort_keys=False)
    assert repr(read_yaml(text, "here")) == repr(content) or text != write_yaml(content)


def test_aliases_and_merges(tmp_path: Path) -> None:
    text = "a: &a {lr: 0.1, momentum: 0.5}\nb: {<<: *a, momentum: 0.9}\nc: {<<: [{lr: 3}, *a]}\nd: *a\n"
    found = read(tmp_path, text)
    assert found["b"] == {"lr": 0.1, "momentum": 0.9}
    assert found["c"] == {"lr": 3, "momentum": 0.5}
    assert found["d"] == found["a"]
    assert found == yaml.safe_load(text)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbfkind: x\r\ny: 1\r\n") == {"kind": "x", "y": 1}


CHAIN = "a0: &a0 [x]\n" + "".join(f"a{k + 1}: &a{k + 1} [*a{k}]\n" for k in range(999))
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{k + 1}: &a{k + 1} [{', '.join([f'*a{k}'] * 9)}]\n" for k in range(12))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{k + 1}: &a{k + 1} {{<<: [{', '.join([f'*a{k}'] * 9)}]}}\n" for k in range(12))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nseeds: [1]\nb: 2\nseeds: [2]\n", r"study.yaml: line 4: 'seeds' is given twice, first in line 2"),
        ("a:\n  b: {c: 1, d: 2, c: 3}\n", r"line 2: 'c' is given twice"),
        ("a:\n\tb: 1\n", r"is not YAML: line 2: there is a tab; YAML is indented with spaces"),
        (b"a: 1\nb: \xff\n", r"line 2: byte 0xff is not UTF-8"),
        ("a: 1".encode("utf-16"), r"line 1: byte 0xff is not UTF-8"),
        ("a: \x00", r"is not YAML: unacceptable character"),
        (b"a" * 50_000_000, r"is larger than 256 kB"),
        (LAUGHS, r"more than 100000 values"),
        (MERGES, r"more than 100000 values"),
        (CHAIN, r"line 31: nested deeper than 30 levels"),
        ("a: {<<: {x: 1, x: 2}}", r"line 1: 'x' is given twice"),
        ("a: !!int 12", r"line 1: the tag .*int is not read"),
        ("a: &a [*a]", r"nested deeper than 30 levels"),
        ("a: &a {b: *a}", r"nested deeper than 30 levels"),
        ("[" * 500, r"nested deeper than 30 levels"),
        ("a: " + "[" * 40 + "]" * 40, r"line 1: nested deeper than 30 levels"),
        ("a: 010", r"line 1: 010 is another number, or text, to other readers"),
        ("a: 1\nb: 1_000", r"line 2: 1_000 is another number, or text, .* without _, or quotes around a text"),
        ("a: 1_0.5", r"line 1: 1_0.5 is another number, or text"),
        ("learners: [er, no]", r"line 1: no is false to some readers .* and text to others: write false, or 'no'$"),
        ("a: On", r"line 1: On is true to some readers .*: write true, or 'On'$"),
        ("a: 1e400", r"line 1: 1e400 is larger than any number of a computer"),
        ("a: [-1.0e+999]", r"line 1: -1.0e\+999 is larger than"),
        ('a: 1\nb: "\\ud800"', r"line 2: \\ud800 is half a sign, which no file can hold"),
        ('a: {"\\udfff": 1}', r"line 1: \\udfff is half a sign"),
        ("lr: 1e-400", r"line 1: 1e-400 is smaller than any number of a computer but 0"),
        ("a: 1\nb: x\x85c: 2", r'line 2: U\+0085 cannot be seen, .*: leave it out, or write "\\u0085" between double'),
        ("a: 'x\u2028y'", r"line 1: U\+2028 cannot be seen"),
        ("a: 1:30", r"line 1: 1:30 is another number"),
        ("a: 1:30.5", r"line 1: 1:30.5 is another number"),
        ("a: 0x1f", r"line 1: 0x1f is another number"),
        (f"a: {'9' * 5000}", r"line 1: 9{59}…9{20} is another number"),
        ("a: !!int x", r"line 1: the tag .*int is not read"),
        ("a: !!bool x", r"line 1: the tag .*bool is not read"),
        ("a: !!set {x}", r"line 1: the tag .*set is not read"),
        ("a: !mine x", r"line 1: the tag !mine is not read"),
        ("!!python/object:os.x {a: 1}", r"the tag .*python/object:os.x is not read"),
        ("a: !!python/object/apply:os.system ['x']", r"the tag .*os.system is not read"),
        ("{[1]: 2}", r"line 1: a list or a mapping cannot be the name of a setting"),
        ("a: {<<: 3}", r"is not YAML: line 1: .*expected a mapping or list of mappings for merging"),
        ("a: 1\n---\nb: 2", r"is not YAML: line \d: .*another document"),
        ("a:\n   b: 1\n  c: 2\n", r"is not YAML: line 3"),
        ("a: [", r"is not YAML: line 1"),
        ("a: *b", r"is not YAML: line 1: found undefined alias 'b'"),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, text: str | bytes, message: str) -> None:
    start = time.process_time()
    with pytest.raises(WaterjarError, match=message):
        read(tmp_path, text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("text", ["9" * 200_000 + "true", "1." + "9_" * 100_000 + "e", "1_" * 100_000 + "e5 x"])
def test_long_words_of_digits_take_no_longer_than_others(text: str) -> None:
    """--set with 41,000 digits and a letter took minutes."""
    start = time.process_time()
    assert read_yaml(f"a: {text}", "here") == {"a": text}
    assert time.process_time() - start < 5


def test_a_value_is_as_long_as_a_file_at_most() -> None:
    with pytest.raises(WaterjarError, match="--set a is longer than 256 kB"):
        read_yaml("a" * (MOST_BYTES + 1), "--set a")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(WaterjarError, match=r"could not read .*: No such file"):
        read_yaml_file(tmp_path / "none.yaml")
    with pytest.raises(WaterjarError, match=r"could not read .*: Is a directory"):
        read_yaml_file(tmp_path)
    with pytest.raises(WaterjarError, match="is larger than"):
        read_yaml_file(Path("/dev/zero"))
    assert MOST_BYTES > 100_000
