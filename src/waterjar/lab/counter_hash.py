"""Random numbers that are a function of what they are for, not of when they were drawn.

A generator with a state gives the n-th draw to whoever comes n-th: change the batch size, drop a sample or
resume half-way, and every later number is another. Here a number is a hash of named counters, such as
(seed, task, epoch, sample index), so that it is the same alone or in a batch, in any order, on any worker.

The mixer is the finaliser of SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014, with the constants of variant 13 of Stafford's "Better bit mixing", 2011).
Words are absorbed one by one:

    h_0 = gamma,    h_{k+1} = mix(h_k xor mix(w_k + (k + 1) gamma))

Not for cryptography.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Word = int | str | NDArray[np.integer]
"""One counter: a number, an array of them (broadcast against the others), or a name."""

GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

Bits = TypeVar("Bits", NDArray[np.uint64], np.uint64)


def mix64(bits: Bits) -> Bits:
    """Scramble 64 bits, one to one: each input bit flips each output bit with probability near 1/2.

    Written so that numba compiles the very same source for its scalars (`numba.njit(mix64)`).
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@lru_cache(maxsize=1024)
def name_word(name: str) -> int:
    """64 bits for a name, the same in every process (Python's `hash` of a string is not)."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def _mix_number(bits: int) -> int:
    """`mix64` of one Python number: much quicker than numpy for the seed, the task and the epoch."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
    return bits ^ (bits >> 31)


def hash_words(*words: Word) -> NDArray[np.uint64]:
    """Hash counters to 64 bits each. Arrays broadcast; the result has their common shape.

    >>> hash_words("crop", 42, np.arange(3)).dtype, hash_words("crop", 42, np.arange(3)).shape
    (dtype('uint64'), (3,))
    >>> bool(hash_words(1, 2) == hash_words(2, 1))
    False
    """
    number = GAMMA
    state: NDArray[np.uint64] | None = None
    with np.errstate(over="ignore"):  # wrapping is the point; numpy warns of it for single numbers
        for position, word in enumerate(words, start=1):
            offset = (position * GAMMA) & _MASK
            if isinstance(word, np.ndarray):
                # int64 and uint64 share bits: -1 and 2**64 - 1 are one word, as for Python numbers below.
                mixed = mix64(word.astype(np.int64, copy=False).view(np.uint64) + np.uint64(offset))
                state = mix64(mixed ^ (np.uint64(number) if state is None else state))
                continue
            value = name_word(word) if isinstance(word, str) else int(word)
            mixed_number = _mix_number((value + offset) & _MASK)
            if state is None:
                number = _mix_number(number ^ mixed_number)
            else:
                state = mix64(state ^ np.uint64(mixed_number))
    return np.asarray(number if state is None else state, dtype=np.uint64)


def uniform(*words: Word) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), multiples of 2**-53.

    >>> float(uniform("doctest", 0)) == float(uniform("doctest", 0))
    True
    """
    return (hash_words(*words) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def between(low: ArrayLike, high: ArrayLike, *words: Word) -> NDArray[np.float64]:
    """Uniform numbers in [low, high)."""
    lowest = np.asarray(low, dtype=np.float64)
    return np.asarray(lowest + (np.asarray(high, dtype=np.float64) - lowest) * uniform(*words))


def integers(count: int | NDArray[np.integer], *words: Word) -> NDArray[np.int64]:
    """Whole numbers 0 ... count - 1, with a bias of at most count / 2**32."""
    top = hash_words(*words) >> np.uint64(32)
    return np.asarray((top * np.asarray(count).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)


def normal(*words: Word) -> NDArray[np.float64]:
    """Standard normal numbers, by Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v)."""
    radius = np.sqrt(-2.0 * np.log1p(-uniform("box-muller radius", *words)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform("box-muller angle", *words)))


def permutation(count: int, *words: Word) -> NDArray[np.int64]:
    """A permutation of 0 ... count - 1: the order of the hashes of (words, i).

    >>> sorted(permutation(4, "doctest").tolist())
    [0, 1, 2, 3]
    """
    return np.argsort(hash_words(*words, np.arange(count, dtype=np.int64)), kind="stable").astype(np.int64)


def fixed_choice(rows: NDArray[np.int64], ids: NDArray[np.integer], count: int, name: str) -> NDArray[np.int64]:
    """Those `count` of some rows whose sample ids have the smallest hashes, sorted: the same ones whoever asks.

    >>> fixed_choice(np.array([3, 5, 9]), np.array([7, 8, 9]), 5, "doctest").tolist()
    [3, 5, 9]
    """
    return np.sort(rows[np.argsort(hash_words(name, ids), kind="stable")[:count]])


def epoch_order(seed: int, task: int | str, epoch: int, count: int) -> NDArray[np.int64]:
    """The order in which one epoch of one task visits its `count` samples.

    It knows nothing of earlier tasks, so that scratch_t2 and sequential see the same T2 batches.
    """
    return permutation(count, "epoch order", seed, task, epoch)
