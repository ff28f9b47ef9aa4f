"""A voting classifier of scikit-learn, or anything built like one, becomes a run; scikit-learn is not imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.errors import WaterjarError
from waterjar.run.formats._logits import from_logits
from waterjar.run.reader import Run

_ALONE = "test"


def from_voting(
    path: str | os.PathLike[str],
    voting: Any,
    inputs: object,
    labels: object = None,
    *,
    parameters: int | None = None,
    config: object = None,
) -> Run:
    """Write what a voting classifier and its estimators answer as a sealed run, and open it.

    `voting` is a fitted scikit-learn `VotingClassifier`, a forest, a bagging ensemble, or any object with `classes_`,
    a list `estimators_` whose members have `predict_proba`, and `predict_proba` or `predict` of its own. Streams are
    called as `estimators` or `named_estimators_` have them. Logits are logs of probabilities, minus infinity where a
    probability is 0; a collective that has no `predict_proba` (hard voting) has the share of weighted votes in its
    place. There an estimator may have none either, but `predict`: its votes are recorded, plus infinity for the class
    that it answers, so that accuracies and contributions are there, and `collective_remarks` says of which streams
    there are no probabilities (NLL, ambiguity). An estimator that looks at some features only (`estimators_features_`,
    as in bagging) gets those; one that is "drop" is no stream. Weights count in the collective, but no coalition of
    streams is made of them: Shapley values and ablation of unequal weights are missing, and `collective_remarks` says
    so.

    Parameters
    ----------
    inputs : (sample, feature), or {eval_set: (sample, feature)}; of one array the set is `test`.
    labels : (sample,), of the classes that `voting` knows, in the same form as inputs.
    """
    members = getattr(voting, "estimators_", None)
    classes = getattr(voting, "classes_", None)
    if members is None or classes is None or not len(members):
        raise WaterjarError(
            f"{type(voting).__name__} has no estimators_ or no classes_: expected a fitted voting classifier, whose "
            "estimators_ have predict_proba"
        )
    known = list(np.asarray(classes).ravel().tolist())
    names = _names(voting, len(members))
    sets = inputs if isinstance(inputs, Mapping) else {_ALONE: inputs}
    told = labels if isinstance(labels, Mapping) or labels is None else {_ALONE: labels}
    columns = getattr(voting, "estimators_features_", [None] * len(members))
    streams: dict[str, dict[str, NDArray[np.float64]]] = {}
    for name, member, own in zip(names, members, columns, strict=True):
        streams[name] = {
            str(key): _said(voting, member, x if own is None else np.asarray(x)[:, own], known, f"estimator '{name}'")
            for key, x in sets.items()
        }
    collective = {str(key): _whole(voting, x, streams, str(key), known) for key, x in sets.items()}
    places = None if told is None else {str(key): _places(one, known, str(key)) for key, one in told.items()}
    return from_logits(
        path,
        streams,
        collective=collective,
        labels=places,
        parameters=parameters,
        classes=[str(one) for one in known],
        config=config,
    )


def _names(voting: Any, count: int) -> list[str]:
    """As the ensemble has them, else numbered."""
    named = getattr(voting, "named_estimators_", None) or getattr(voting, "estimators", None)
    if isinstance(named, Mapping) or (named and hasattr(named, "keys")):
        found = [str(name) for name, one in named.items() if not _dropped(one)]
    else:
        found = [str(one[0]) for one in named or () if isinstance(one, tuple) and not _dropped(one[1])]
    width = len(str(count - 1))
    return found if len(found) == count else [f"estimator_{i:0{width}d}" for i in range(count)]


def _dropped(estimator: Any) -> bool:
    return isinstance(estimator, str) and estimator == "drop"


def _weights(voting: Any, count: int) -> NDArray[np.float64]:
    """(estimator,): of those that were not dropped; 1 each where there are none."""
    given = getattr(voting, "weights", None)
    if given is None:
        return np.ones(count)
    found = np.asarray(given, np.float64)
    declared = getattr(voting, "estimators", None) or ()
    if len(found) == len(declared) != count:
        found = found[[not _dropped(one[1]) for one in declared]]
    if found.shape != (count,):
        raise WaterjarError(f"weights have shape {found.shape}: expected one of each of {count} estimators")
    return found


def _said(voting: Any, member: Any, x: Any, known: list[Any], what: str) -> NDArray[np.float64]:
    """(sample, class): logs of the probabilities of one estimator; of one that only votes, plus infinity for that."""
    if hasattr(voting, "predict_proba") or hasattr(member, "predict_proba") or not hasattr(member, "predict"):
        return _logs(member, x, len(known), what)
    answers = np.asarray(member.predict(x)).ravel()
    is_numbered = hasattr(voting, "le_") or not set(answers.tolist()) <= set(known)  # fitted on places of the classes
    places = _places(answers, list(range(len(known))) if is_numbered else known, what)
    return np.where(np.arange(len(known)) == places[:, None], np.inf, 0.0)


def _logs(member: Any, x: Any, classes: int, what: str) -> NDArray[np.float64]:
    """(sample, class): logs of the probabilities of one estimator."""
    if not hasattr(member, "predict_proba"):
        raise WaterjarError(f"{what} ({type(member).__name__}) has no predict_proba: expected probabilities of classes")
    shares = np.asarray(member.predict_proba(x), np.float64)
    if shares.ndim != 2 or shares.shape[1] != classes:
        raise WaterjarError(
            f"{what} gives probabilities of shape {shares.shape}: expected (sample, class={classes}), one for each "
            "class that the whole knows"
        )
    with np.errstate(divide="ignore"):
        return np.log(shares)


def _whole(
    voting: Any, x: Any, streams: Mapping[str, Mapping[str, NDArray[np.float64]]], key: str, known: list[Any]
) -> NDArray[np.float64]:
    """(sample, class): logs of probabilities of the whole, or of the shares of weighted votes where it has none."""
    if hasattr(voting, "predict_proba"):
        return _logs(voting, x, len(known), type(voting).__name__)
    counted = _weights(voting, len(streams))
    votes = np.stack([np.arange(len(known)) == one[key].argmax(1)[:, None] for one in streams.values()], 1)
    shares = (votes * counted[:, None]).sum(1) / counted.sum()
    if hasattr(voting, "predict"):  # of equal shares it chooses one: let the largest be the one that it answers
        answers = _places(voting.predict(x), known, key)
        shares[np.arange(len(answers)), answers] += 1e-9
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares), np.float64)


def _places(labels: Any, known: list[Any], key: str) -> NDArray[np.int64]:
    """(sample,): the position of each label among the classes."""
    places = {label: place for place, label in enumerate(known)}
    given = np.asarray(labels).ravel().tolist()
    strange = next((one for one in given if one not in places), None)
    if strange is not None:
        raise WaterjarError(f"labels of '{key}' have {strange!r}: expected one of the classes {known}")
    return np.array([places[one] for one in given], np.int64)
