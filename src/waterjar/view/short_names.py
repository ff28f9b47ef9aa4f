"""Names made short together, so that what tells them apart stays in them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

_CUT = "…"
_SEPARATORS = r"\s_,;:/=|+-"
_PIECE = re.compile(rf"(?:\d[eE][+-]\d|[^{_SEPARATORS}])+[{_SEPARATORS}]*|[{_SEPARATORS}]+")
"""A word and the separators behind it; 1e-4 is one word."""
_LOOSE = " ,;:/|_+-"
"""Separators that need not stand beside a gap."""
_GAP = f" {_CUT}"


def short(names: Iterable[str], most: int = 32) -> dict[str, str]:
    """name -> a name of at most `most` characters; no two of them alike.

    Of long names the words are left out that most names have, then, where that is not enough, the middle; if that would
    make two of them alike, the words that any other name has. Names that nothing shorter tells apart are numbered.

    >>> short(["sgd", "a very long name indeed"], 11)
    {'sgd': 'sgd', 'a very long name indeed': 'a very…deed'}
    >>> list(short([f"resnet18, method={method}, lr=0.01" for method in ("replay", "ewc")], 17).values())
    ['resnet18…replay…', 'resnet18…ewc…']
    """
    flat = {name: " ".join(name.split()) for name in names}
    for most_others in (len(flat) / 2, 1.0, float("inf")):
        reduced = _without_common_words(list(flat.values()), most_others, most)
        labels = _cut(reduced, most)
        if len(set(labels)) == len(labels):
            break
    return dict(zip(flat, _numbered(labels, most), strict=True))


def _without_common_words(texts: Sequence[str], most_others: float, most: int) -> list[str]:
    """Long texts without as many words as must be of those that more than so many texts have, as far as that helps.

    The most common words go first; of equals the one beside a more common neighbour, then the last one.
    """
    pieces = [_PIECE.findall(text) for text in texts]
    words = [["", *(piece.strip(_LOOSE + "=") for piece in own), ""] for own in pieces]
    alone = Counter(word for own in words for word in set(own))
    paired = Counter(pair for own in words for pair in set(pairwise(own)))
    found = []
    for text, parts, own in zip(texts, pieces, words, strict=True):
        beside = [paired[pair] for pair in pairwise(own)]
        common = {i: (alone[own[i + 1]], max(beside[i], beside[i + 1]), i) for i in range(len(parts))}
        order = sorted((i for i in common if common[i][0] > max(1, most_others)), key=lambda i: common[i], reverse=True)
        ways = [*range(len(order) + 1)]
        least = bisect_left(ways, True, key=lambda k: len(_without(parts, set(order[:k]))) <= most)
        gone = set(order[:least])
        gone |= {i for i in order if i + 1 in gone and parts[i].endswith("=")}  # no key without its value
        found.append(_without(parts, gone) if len(text) > most else text)
    return found


def _without(pieces: Sequence[str], gone: set[int]) -> str:
    """The words that are kept, each gap as one sign."""
    text = ""
    for i, piece in enumerate(pieces):
        text = text.rstrip(_LOOSE).removesuffix(_CUT) + _CUT if i in gone else text + piece
    return text


def _cut(texts: Sequence[str], most: int) -> list[str]:
    """The long ones all cut at the same place: at one where they differ, if there is one."""
    fit = {text for text in texts if len(text) <= most}
    long = list(dict.fromkeys(text for text in texts if text not in fit))
    ways = _places(long, most)
    usual = made = next(ways)
    while made and (len(set(made)) < len(made) or fit & set(made)):
        made = next(ways, [])
    shown = dict(zip(long, made or usual, strict=True))
    return [shown.get(text, text) for text in texts]


def _places(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    """Texts without their middle, more or less of the end kept; then windows into them, from left to right."""
    usual = (most - 1) * 2 // 5
    for end in sorted(range(most), key=lambda end: abs(end - usual)):
        yield [text[: most - 1 - end].rstrip(_GAP) + _CUT + text[len(text) - end :].lstrip(_GAP) for text in texts]
    for start in range(1, max(map(len, texts), default=0), max(1, (most - 2) // 2)):
        yield [_CUT + text[start : start + most - 2] + _CUT for text in texts]


def _numbered(labels: Sequence[str], most: int) -> list[str]:
    """Labels, those that are alike with a number behind all but the first."""
    made: list[str] = []
    for label in labels:
        number, tried = 2, label
        while tried in made or (tried != label and tried in labels):
            behind = f" ({number})"
            tried, number = label[: max(0, most - len(behind))] + behind, number + 1
        made.append(tried)
    return made
