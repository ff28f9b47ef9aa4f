"""Coalitions of streams: as they were recorded, or made of cached outputs by the rule that makes the collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from waterjar.diagnose.collective.answers import NOT_NUMBERS, Array, Labels, label_log_likelihood
from waterjar.diagnose.collective.inputs import ABSENCES, Coalitions, StreamOutputs
from waterjar.diagnose.collective.shapley import (
    Bools,
    all_coalitions,
    drawn_orders,
    shapley_of,
    shapley_of_orders,
    shapley_of_walks,
)
from waterjar.diagnose.result import Floats, Result
from waterjar.errors import WaterjarError
from waterjar.run.combining import averaged_parts
from waterjar.run.schema import ABSENT

EXACT = 8
"""Up to so many streams all coalitions are looked at."""
ACCURACY, LIKELIHOOD = "accuracy", "log_likelihood"
_BLOCK = 2**20
"""Numbers that are held at a time."""
NO_RULE = Result.missing(
    "not_recorded", "coalitions were not recorded, and no rule makes the collective of its streams' outputs"
)
OTHER_RULE = Result.missing(
    "not_recorded",
    "rule= does not make the recorded logits of the collective of its streams' outputs: its coalitions would be those "
    "of another one",
)


@dataclass(frozen=True, eq=False)
class Game:
    """What the collective reaches with only some streams present, sample by sample."""

    present: Bools
    """(coalition, stream)."""
    values: dict[str, Floats]
    """accuracy, log_likelihood -> (coalition, sample)."""
    shares: dict[str, Floats] = field(default_factory=dict)
    """Shapley values (stream, sample) of sampled orders; empty where they follow from `values`."""
    errors: dict[str, Floats] = field(default_factory=dict)
    """(stream,): standard error of these by the choice of orders."""
    places: Labels | None = None
    """(order, stream): the place at which each one joins in the orders that coalitions are of; None for no orders."""
    pairs: int | None = None
    """How many pairs of orders errors are of; None where there are none."""
    broken: bool = False
    """Whether some coalition said NaN."""

    def shapley(self, kind: str) -> tuple[Floats, Floats]:
        """(stream, sample) Shapley values, and (stream,) their standard error by sampling.

        It is 0 where nothing was sampled, and NaN where nobody knows how.
        """
        if kind in self.shares:
            return self.shares[kind], self.errors[kind]
        n, values = self.present.shape[1], self.values[kind]
        if len(self.present) == 2**n:
            return shapley_of(self.present, values), np.zeros(n)
        found = None if self.places is None else shapley_of_orders(self.present, values, self.places)
        return found or (shapley_of_walks(self.present, values), np.full(n, np.nan))

    def row(self, present: Bools, kind: str) -> Floats | None:
        """(sample,) of one coalition; None where it is not known."""
        places = np.flatnonzero((self.present == present).all(1))
        return self.values[kind][places[0]] if len(places) else None


def coalitions_of(
    names: Sequence[str],
    labels_of_coalitions: Sequence[str],
    recorded: Sequence[Array | None],
    labels: Labels | None,
    outputs: StreamOutputs | None,
    gradients: Array | None,
    settings: Any,
    places: Labels | None = None,
) -> Coalitions:
    """The games of one snapshot of one repeat: recorded ones, and `removed` of cached outputs where it was not."""
    right, likely = recorded
    games: dict[str, Game] = {}
    if right is not None or likely is not None:
        games = recorded_games(names, labels_of_coalitions, right, likely, labels)
        pairs = None if places is None else len(places) // 2
        games = {
            absence: replace(_with_all(game, outputs), places=places, pairs=pairs) for absence, game in games.items()
        }
    missing = None
    if ABSENCES[0] not in games:
        made = _cached(outputs, settings)
        if isinstance(made, Result):
            missing = None if games and made is not OTHER_RULE else made
        else:
            games[ABSENCES[0]] = made
    return Coalitions(names, games, gradients, missing)


def _cached(outputs: StreamOutputs | None, settings: Any) -> Game | Result:
    if outputs is None or outputs.test.logits is None:
        return NO_RULE
    if outputs.test.lacking is not None:
        return outputs.test.lacking
    if not (outputs.alive if outputs.rule == "vote" else outputs.likely).all():  # an answer is enough for a vote
        return NOT_NUMBERS
    if outputs.rule is None:
        return NO_RULE if settings.rule == "auto" else OTHER_RULE
    assert outputs.test.labels is not None
    return cached_game(
        outputs.test.logits,
        outputs.test.labels,
        outputs.rule,
        orders=settings.shapley_samples,
        seed=settings.resampling_seed,
        names=outputs.names,
    )


def recorded_games(
    names: Sequence[str], coalitions: Sequence[str], right: Array | None, likely: Array | None, labels: Labels | None
) -> dict[str, Game]:
    """absence -> game, of coalitions that are labelled `removed:101`: arrays are (sample, coalition)."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(coalitions):
        absence, _, bits = label.partition(":")
        if absence not in ABSENCES or len(bits) != len(names) or set(bits) - {"0", "1"}:
            raise WaterjarError(
                f"coalition '{label}': expected one of {', '.join(ABSENCES)}, a colon, and {len(names)} digits, "
                "1 for each stream that is present: 'removed:101'"
            )
        places.setdefault(absence, []).append(place)
    found: dict[str, Game] = {}
    for absence, rows in places.items():
        present = np.array([[bit == "1" for bit in coalitions[row].partition(":")[2]] for row in rows], np.bool_)
        values: dict[str, Floats] = {}
        if right is not None:
            own = right.T[rows].astype(np.float64)
            values[ACCURACY] = np.where(own == ABSENT, np.nan, own)
        broken = False
        if likely is not None:
            values[LIKELIHOOD] = likely.T[rows].astype(np.float64)
            if right is not None:  # somebody looked, and there was no number
                silent = np.isnan(values[LIKELIHOOD]) & ~np.isnan(values[ACCURACY])
                values[ACCURACY][silent], broken = np.nan, bool(silent.any())
        if not broken and all(np.isnan(one).all() for one in values.values()):
            continue  # nobody looked at this snapshot
        if absence == ABSENCES[0] and labels is not None and len(labels) and present.any(1).all():
            present = np.concatenate([np.zeros((1, len(names)), np.bool_), present])
            empty = without_streams(labels)
            values = {key: np.concatenate([empty[key][None], one]) for key, one in values.items()}
        found[absence] = Game(present, values, broken=broken)
    return found


def _with_all(game: Game, outputs: StreamOutputs | None) -> Game:
    """With the coalition of all streams, which is the collective itself, where it was not looked at again."""
    every = np.ones(game.present.shape[1], np.bool_)
    if outputs is None or outputs.scored is not None or (game.present == every).all(1).any():
        return game
    assert outputs.test.collective is not None and outputs.test.labels is not None
    likely = label_log_likelihood(outputs.test.collective, outputs.test.labels)
    own = {ACCURACY: outputs.test.collective_right, LIKELIHOOD: likely}
    values = {kind: np.concatenate([one, own[kind][None]]) for kind, one in game.values.items()}
    return replace(game, present=np.concatenate([game.present, every[None]]), values=values)


def without_streams(labels: Labels) -> dict[str, Floats]:
    """(sample,) of a collective whose streams are all removed: it answers the most frequent class, by its share.

    >>> without_streams(np.array([0, 1, 1]))["accuracy"]
    array([0., 1., 1.])
    """
    counts = np.bincount(labels)
    right = (labels == counts.argmax()).astype(np.float64)
    return {ACCURACY: right, LIKELIHOOD: np.log(counts[labels] / len(labels))}


def cached_game(
    logits: Array, labels: Labels, rule: str, *, orders: int = 100, seed: int = 0, names: Sequence[str] = ()
) -> Game:
    """The game of independent streams, from their logits (sample, stream, class) and the rule that joins them.

    All coalitions of up to 8 streams; of more the whole, the whole without each one, and Shapley values of `orders`
    sampled orders (Castro, Gómez & Tejada 2009), half of them backwards. Orders are drawn of the streams sorted by
    `names`, so that it does not matter in which order streams are given.

    >>> game = cached_game(np.log([[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.6, 0.4]]]), np.array([0, 1]), "mean_logit")
    >>> game.shapley("accuracy")[0].mean(1)
    array([0.5, 0. ])
    """
    n = logits.shape[1]
    if n <= EXACT:
        present = all_coalitions(n)
        return Game(present, _in_blocks(logits, labels, rule, lambda parts, own: _subsets(parts, own, rule)))
    edge = np.concatenate([np.zeros((1, n), np.bool_), ~np.eye(n, dtype=np.bool_), np.ones((1, n), np.bool_)])
    values = _in_blocks(logits, labels, rule, lambda parts, own: _some(parts, own, rule, edge[1:]))
    sorted_streams = np.argsort(np.array(names, str), kind="stable") if len(names) else np.arange(n)
    drawn = sorted_streams[drawn_orders(n, orders, seed)]
    shares = {key: np.zeros((n, len(labels))) for key in (ACCURACY, LIKELIHOOD)}
    means = {key: np.zeros((len(drawn), n)) for key in shares}
    empty = without_streams(labels)
    for place, order in enumerate(drawn):
        chain = _in_blocks(logits[:, order], labels, rule, lambda parts, own: _chain(parts, own, rule), empty)
        with np.errstate(invalid="ignore"):  # endless likelihoods: of these there is no value, and its reason says so
            for key, one in chain.items():
                gained = np.diff(one, axis=0)
                shares[key][order] += gained / len(drawn)
                means[key][place, order] = gained.mean(1)
    with np.errstate(invalid="ignore"):
        pairs = {key: one.reshape(-1, 2, n).mean(1) for key, one in means.items()}
        errors = {
            key: one.std(0, ddof=1) / np.sqrt(len(one)) if len(one) > 1 else np.full(n, np.nan)
            for key, one in pairs.items()
        }
    return Game(edge, values, shares, errors, pairs=len(drawn) // 2)


def _in_blocks(
    logits: Array,
    labels: Labels,
    rule: str,
    answers: Callable[[Floats, Labels], dict[str, Floats]],
    empty: dict[str, Floats] | None = None,
) -> dict[str, Floats]:
    """(coalition, sample) of all samples, some at a time; the first row is that without any stream."""
    samples, n, classes = logits.shape
    step = max(1, _BLOCK // (classes * (2**n if n <= EXACT else n)))
    found = [
        answers(averaged_parts(logits[at : at + step], rule), labels[at : at + step])
        for at in range(0, samples, step)
    ]  # fmt: skip
    nothing = without_streams(labels) if empty is None else empty
    return {
        key: np.concatenate([nothing[key][None], np.concatenate([one[key] for one in found], 1)]) for key in nothing
    }


def _answers(mixed: Floats, labels: Labels, rule: str) -> dict[str, Floats]:
    """Of what a rule has averaged, (coalition, sample, class)."""
    right = (mixed.argmax(-1) == labels).astype(np.float64)
    if rule == "mean_logit":
        likely = np.moveaxis(label_log_likelihood(np.moveaxis(mixed, 0, 1), labels), 0, 1)
    else:  # shares, which sum to 1
        with np.errstate(divide="ignore"):
            likely = np.log(mixed[:, np.arange(len(labels)), labels])
    return {ACCURACY: right, LIKELIHOOD: likely}


def _subsets(parts: Floats, labels: Labels, rule: str) -> dict[str, Floats]:
    """Of all coalitions but the empty one, each from one that is smaller by its first stream."""
    samples, n, classes = parts.shape
    sums = np.zeros((2**n, samples, classes))
    for code in range(1, 2**n):
        first = (code & -code).bit_length() - 1
        sums[code] = sums[code & (code - 1)] + parts[:, first]
    sizes = np.array([code.bit_count() for code in range(1, 2**n)])
    return _answers(sums[1:] / sizes[:, None, None], labels, rule)


def _some(parts: Floats, labels: Labels, rule: str, present: Bools) -> dict[str, Floats]:
    mixed = np.einsum("msc,km->ksc", np.moveaxis(parts, 1, 0), present.astype(np.float64))
    return _answers(mixed / present.sum(1)[:, None, None], labels, rule)


def _chain(parts: Floats, labels: Labels, rule: str) -> dict[str, Floats]:
    """Of the first one, two, ... streams."""
    sums = np.moveaxis(np.cumsum(parts, axis=1), 1, 0)
    return _answers(sums / np.arange(1, len(sums) + 1)[:, None, None], labels, rule)
