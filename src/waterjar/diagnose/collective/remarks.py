"""What has to be said of a snapshot: what was passed over, why, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.collective.answers import Answers, has_answer, label_log_likelihood
from waterjar.diagnose.collective.coalitions import EXACT, NO_RULE, OTHER_RULE
from waterjar.diagnose.collective.inputs import ABSENCES, Affinities, Coalitions, Fingerprints, Routing, StreamOutputs
from waterjar.diagnose.collective.utilisation import utilised
from waterjar.diagnose.result import NOT_A_NUMBER, Result
from waterjar.run.combining import log_softmax


def of_outputs(outputs: StreamOutputs, seed: int, unlabelled: str = "") -> Iterator[str]:
    """Of what streams and their collective answered; `unlabelled` says which samples have no label."""
    test, other = outputs.test, outputs.validation
    if unlabelled:
        yield unlabelled
    if test.labels is None and not unlabelled:
        yield "labels were not recorded (probe_samples/label): nothing can be scored"
    elif test.labels is not None and test.collective is None:
        yield "logits of the collective were not recorded: rule= says how its streams make them"
    if test.logits is not None and len(test.logits):
        if not outputs.alive.all():
            yield (
                f"seed {seed}: {_have(outputs.names, ~outputs.alive)} no answer to some sample (logits that are NaN, "
                "or all minus infinity): passed over as a stream"
            )
        endless = outputs.alive & ~outputs.likely
        if endless.any():
            yield (
                f"seed {seed}: {_have(outputs.names, endless)} infinite logits, which answer but have no "
                "probabilities: ambiguity and the NLL of such a stream are missing"
            )
    yield from _without_likelihood(outputs, seed)
    yield from _of_controls(outputs, seed)
    yield from _of_the_collective(test, seed)
    if other is not None and other.labels is not None and len(other.labels):
        yield from _of_validation(outputs, other, seed)


def _without_likelihood(outputs: StreamOutputs, seed: int) -> Iterator[str]:
    """Of whom the likelihood of some label is 0: its logarithm is endless, whatever else is said."""
    test = outputs.test
    if test.labels is None or not len(test.labels):
        return
    streams = np.zeros(0, np.bool_)
    if test.logits is not None:
        streams = np.asarray((label_log_likelihood(test.logits, test.labels) == -np.inf).any(0)) & outputs.alive
    whole = test.collective is not None and bool((label_log_likelihood(test.collective, test.labels) == -np.inf).any())
    who = [_few(outputs.names, streams)] if streams.any() else []
    who += ["the collective"] if whole else []
    if who:
        yield (
            f"seed {seed}: {' and '.join(who)} gave the label of some sample no probability (a logit of minus infinity)"
            ": NLL is infinite there, and what is made of it infinite or undefined"
        )


def _few(names: Sequence[str], chosen: NDArray[np.bool_]) -> str:
    own = [name for name, there in zip(names, chosen, strict=True) if there]
    return f"stream{'s' * (len(own) > 1)} {', '.join(own)}" if len(own) <= 4 else f"{len(own)} of {len(names)} streams"


def _of_controls(outputs: StreamOutputs, seed: int) -> Iterator[str]:
    """Of streams that are no control alone, or under a probe; what is NaN throughout was not recorded there."""
    names, test = outputs.names, outputs.test
    if test.isolated is not None and test.isolated.size and not np.isnan(test.isolated).all():
        able = np.asarray(has_answer(test.isolated).all(0))
        if not able.all():
            yield (
                f"seed {seed}: {_have(names, ~able)} no answer alone to some sample (streams/isolated_logits): passed "
                "over as a stream alone"
            )
    broken = _unreadable(test) | _unreadable(outputs.probe)
    if broken.any():
        yield (
            f"seed {seed}: {_have(names, broken)} features that are missing or not finite (streams/pooled): passed "
            "over as a stream under a probe"
        )
    unchosen = _unreadable(outputs.validation) & ~broken
    if unchosen.any():
        yield (
            f"seed {seed}: {_have(names, unchosen)} features that are missing or not finite on validation data "
            "(streams/pooled): not chosen as the best under a probe"
        )


def _unreadable(answers: Answers | None) -> NDArray[np.bool_]:
    """(stream,): streams whose features no probe can read; none, (1,), where features were not recorded at all."""
    pooled = None if answers is None else answers.pooled
    if pooled is None or not pooled.size or np.isnan(pooled).all():
        return np.zeros(1, np.bool_)
    lacking, finite = np.asarray(np.isnan(pooled).all(0)), np.asarray(np.isfinite(pooled).all(0))
    return np.asarray((~finite & ~lacking).any(1) | lacking.all(1))


def of_parts(
    routing: Routing | None, prints: Fingerprints | None, affinities: Affinities | None, seed: int
) -> Iterator[str]:
    """Of streams that are passed over in what else was recorded; what is NaN throughout was not recorded there."""
    if routing is not None and routing.weights.size and not np.isnan(routing.weights).all():
        if not routing.alive.all():
            yield (
                f"seed {seed}: {_have(routing.names, ~routing.alive)} route weights that are NaN, infinite or "
                "negative: passed over in all that is said of routing"
            )
        idle = routing.alive & ~routing.weighed
        if idle.any():
            yield (
                f"seed {seed}: {_have(routing.names, idle)} route weights that are all 0 for some sample: passed over "
                "in what is made of weights"
            )
    if prints is not None and not np.isnan(prints.values).all() and not prints.alive.all():
        yield (
            f"seed {seed}: {_have(prints.names, ~prints.alive)} a fingerprint without a direction (numbers that are "
            "not finite, or 0 throughout): passed over in fingerprint_diversity"
        )
    if affinities is not None and affinities.values.size and not np.isnan(affinities.values).all():
        if not affinities.alive.all():
            yield (
                f"seed {seed}: {_have(affinities.names, ~affinities.alive)} affinities that are not finite: passed "
                "over in anchor_entropy and dead_anchors"
            )
        over_all = utilised(affinities)[1]
        if not isinstance(over_all, Result) and (over_all < 0).any():
            yield (
                f"seed {seed}: the mean affinity to {(over_all < 0).sum()} of {len(over_all)} anchors is negative: "
                "anchor_entropy and dead_anchors are undefined"
            )


def _have(names: Sequence[str], chosen: NDArray[np.bool_]) -> str:
    own = [name for name, there in zip(names, chosen, strict=True) if there]
    return f"streams {', '.join(own)} have" if len(own) > 1 else f"stream {own[0]} has"


def _of_the_collective(test: Answers, seed: int) -> Iterator[str]:
    if test.collective is None or not len(test.collective):
        return
    silent = ~has_answer(test.collective)
    if silent.any():
        yield (
            f"seed {seed}: the collective has no answer to {silent.sum()} of {len(silent)} samples (NaN, as a rule "
            "makes it of a stream that is not a number): it is not scored"
        )
    elif np.isnan(log_softmax(test.collective)).any():
        yield f"seed {seed}: the collective has infinite logits: it is scored, but NLL and ECE are missing"


def _of_validation(outputs: StreamOutputs, other: Answers, seed: int) -> Iterator[str]:
    if other.logits is not None and outputs.test.logits is not None:
        silent = ~np.asarray(has_answer(other.logits).all(0)) & outputs.alive
        if silent.any():
            yield (
                f"seed {seed}: {_have(outputs.names, silent)} no answer to some validation sample: not chosen as the "
                "best"
            )
    if other.collective is not None and np.isnan(log_softmax(other.collective)).any():
        yield f"seed {seed}: the collective has no probabilities on validation data, so that no temperature is fitted"


def of_coalitions(found: Coalitions, outputs: StreamOutputs | None, seed: int) -> Iterator[str]:
    """Of what contributions of streams are made of."""
    able = outputs is not None and outputs.scored is None
    if found.missing is NO_RULE and able:
        yield f"no contributions of streams: {NO_RULE.note}"
    elif found.missing is OTHER_RULE and able:
        yield f"seed {seed}: no contributions of streams that are removed: {OTHER_RULE.note}"
    elif found.missing is not None and found.missing.code == NOT_A_NUMBER:
        yield f"seed {seed}: no contributions of any stream, since the logits of one are not numbers"
    count = len(found.names)
    if count <= EXACT or not found.absences:
        return
    there = [absence for absence in ABSENCES if absence in found.absences]
    left_out = [absence for absence in ABSENCES if absence not in there]
    if left_out and any(not game.shares for game in found.absences.values()):
        yield (
            f"{count} streams, more than {EXACT}: contributions are by streams that are {' or '.join(there)}, and "
            f"{' and '.join(left_out)} left out"
        )
    if any(
        not game.shares and game.places is None and len(game.present) < 2**count for game in found.absences.values()
    ):
        yield (
            "in which orders coalitions were drawn was not recorded (streams/coalition_order): Shapley values have no "
            "interval"
        )
    yield (
        f"{count} streams: their interactions are missing, since they need all coalitions, which are looked at up to "
        f"{EXACT} streams; Shapley values are of a sample"
    )
