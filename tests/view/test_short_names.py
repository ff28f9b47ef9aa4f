"""Names made short: distinct, short enough, and with what tells them apart."""

from __future__ import annotations

import itertools
import re
import time

from hypothesis import given
from hypothesis import strategies as st

from waterjar.view.numbers import listed
from waterjar.view.report.charts.theme import boundaries, dash_array, keys_of
from waterjar.view.short_names import short

METHODS = [
    "plain descent", "replay of 200", "replay of 2000", "dark replay, 200", "dark replay, 2000", "ewc 10", "ewc 100",
    "shrink and perturb", "L2 to init", "continual backprop 1e-4", "continual backprop 1e-5",
]  # fmt: skip
TWELVE = [*(f"backbone=resnet18, method={one}, lr=0.01, schedule=cosine with restarts" for one in METHODS), "naive"]


@given(st.lists(st.text(max_size=60), max_size=12), st.integers(8, 30))
def test_they_stay_distinct_in_order_and_short_enough(names: list[str], most: int) -> None:
    found = short(names, most)
    assert list(found) == list(dict.fromkeys(names))
    assert len(set(found.values())) == len(found)
    assert all(len(label) <= most for label in found.values())
    assert all(found[name] == name for name in names if len(name) <= most and " ".join(name.split()) == name)
    assert short(names, most) == found


WORDS = st.text("abcdefgh", min_size=3, max_size=9)


@given(
    st.lists(WORDS, max_size=6), st.lists(WORDS, max_size=6),
    st.lists(st.text("stuvwxyz0123456789", min_size=1, max_size=12), min_size=2, max_size=12, unique=True),
    st.sampled_from([" ", "_", ", ", "/", "="]),
)  # fmt: skip
def test_a_word_in_which_they_differ_stays(before: list[str], after: list[str], own: list[str], gap: str) -> None:
    for label, word in zip(short((gap.join([*before, one, *after]) for one in own), 16).values(), own, strict=True):
        assert word in re.split("[…_,/= ]+", label)


def test_twelve_long_names_are_told_by_their_methods() -> None:
    for most in (44, 34, 26):
        for method, label in zip(METHODS, short(TWELVE, most).values(), strict=False):
            assert method in label
    grid = [f"method={m}, lr={r}, width={w}" for m, r, w in itertools.product(("er", "ewc"), (0.1, 0.01), (64, 128))]
    for name, label in short(grid, 19).items():
        assert all(value in label for value in re.findall("=([^,]+)", name))


def test_what_differs_in_one_long_word_is_kept() -> None:
    labels = list(short([f"{'x' * 50}{i}{'y' * 50}" for i in range(3)], 14).values())
    assert [str(i) in label for i, label in enumerate(labels)] == [True] * 3
    assert len(set(short(["x" * 5000 + "a", "x" * 5000 + "b", "x" * 4999 + "ya"]).values())) == 3
    assert list(short(["a b" * 20, "a  b" * 20, "a\nb" * 20], 12).values())[1:] != list(
        short(["a b" * 20], 12).values()
    )


def test_short_names_stay_as_they_are() -> None:
    assert short(["sgd, lr=0.01"])["sgd, lr=0.01"] == "sgd, lr=0.01"
    assert short(["one\ntwo"]) == {"one\ntwo": "one two"}
    assert short([]) == {}


def test_very_long_names_are_no_trouble() -> None:
    begun = time.process_time()
    short([" ".join(f"w{i * j % 997}" for i in range(2000)) for j in range(12)], 32)
    assert time.process_time() - begun < 2


def test_legends_axes_and_sentences_of_the_report_tell_them_apart() -> None:
    labels = [key.label for key in keys_of(TWELVE).values()]
    assert len(set(labels)) == 12 and max(map(len, labels)) <= 40
    keys = keys_of(TWELVE).values()
    assert len({dash_array(key.dash) for key in keys}) == 12  # without colour, too
    assert len({(key.colour, key.symbol) for key in keys}) == 12
    _, notes = boundaries([(i, f"rotated digits, task number {i}") for i in range(12)])
    assert len({note["text"] for note in notes}) == 12
    said = listed((f"{'a long name with ' * 5}method {i}" for i in range(3)), longest=60)
    assert all(f"{i}" in said for i in range(3))
