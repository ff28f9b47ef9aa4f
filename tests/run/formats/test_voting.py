"""Voting classifiers: anything with estimators_ and predict_proba, and scikit-learn's own as an oracle."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from waterjar import WaterjarError, from_voting
from waterjar.diagnose import collective

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.array(["no", "yes"])[(X.sum(1) > 0).astype(int)]


class Leaning:
    """Sure by the sign of one feature."""

    def __init__(self, feature: int) -> None:
        self.feature = feature

    def predict_proba(self, x: Any) -> np.ndarray:
        share = 1 / (1 + np.exp(-3 * x[:, self.feature]))
        return np.stack([1 - share, share], 1)


def ensemble(**more: Any) -> Any:
    members = [Leaning(i) for i in range(3)]
    return SimpleNamespace(estimators_=members, classes_=np.array(["no", "yes"]), **more)


def soft(x: Any) -> np.ndarray:
    return np.mean([Leaning(i).predict_proba(x) for i in range(3)], axis=0)


def test_soft_voting(tmp_path: Path) -> None:
    run = from_voting(tmp_path / "run", ensemble(predict_proba=soft), X, Y)
    assert run["streams"].stream.values.tolist() == ["estimator_0", "estimator_1", "estimator_2"]
    found = collective.measure(run, resamples=20)
    right = (soft(X).argmax(1) == (Y == "yes")).mean()
    assert found["collective_accuracy_final"].values[0] == right
    np.testing.assert_allclose(
        found["shapley_accuracy"].values[0, 0, 0].sum(), right - max(np.mean(Y == "yes"), np.mean(Y == "no"))
    )


def test_hard_voting_by_weights_and_names(tmp_path: Path) -> None:
    votes = np.stack([X[:, i] > 0 for i in range(3)], 1) @ np.array([2.0, 1.0, 1.0]) / 4
    answer = np.array(["no", "yes"])[(votes > 0.5).astype(int)]  # a tie is "no"
    voting = ensemble(
        weights=[2, 1, 1], predict=lambda x: answer, estimators=[("a", 0), ("gone", "drop"), ("b", 0), ("c", 0)]
    )
    run = from_voting(tmp_path / "run", voting, {"test": X}, {"test": Y}, parameters=9)
    assert run["streams"].stream.values.tolist() == ["a", "b", "c"]
    whole = run["streams"].collective_logits.values[0, 0, 0]
    np.testing.assert_array_equal(whole.argmax(1), votes > 0.5)
    np.testing.assert_allclose(np.exp(whole[:, 1]), votes, atol=1e-8)


@pytest.mark.parametrize(
    ("voting", "labels", "message"),
    [
        (object(), Y, "object has no estimators_ or no classes_"),
        (ensemble(estimators_features_=[[0]] * 3), np.full(40, "maybe"), "out of bounds|labels of 'test' have 'maybe'"),
        (
            SimpleNamespace(estimators_=[1], classes_=[0, 1]),
            None,
            r"estimator 'estimator_0' \(int\) has no predict_proba",
        ),
        (
            SimpleNamespace(estimators_=[Leaning(0)], classes_=[0, 1, 2]),
            None,
            r"shape \(40, 2\): expected \(sample, class=3\)",
        ),
    ],
)
def test_what_is_no_voting(tmp_path: Path, voting: Any, labels: Any, message: str) -> None:
    with pytest.raises((WaterjarError, IndexError), match=message):
        from_voting(tmp_path / "run", voting, X, labels)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["soft", "hard", "forest", "bagging"])
def test_those_of_scikit_learn(tmp_path: Path, kind: str) -> None:
    ensembles = pytest.importorskip("sklearn.ensemble")
    tree = pytest.importorskip("sklearn.tree")
    linear = pytest.importorskip("sklearn.linear_model")
    members = [
        ("line", linear.LogisticRegression()),
        ("tree", tree.DecisionTreeClassifier(max_depth=2, random_state=0)),
    ]
    made = {
        "soft": ensembles.VotingClassifier(members, voting="soft"),
        "hard": ensembles.VotingClassifier(members, voting="hard"),
        "forest": ensembles.RandomForestClassifier(5, random_state=0),
        "bagging": ensembles.BaggingClassifier(n_estimators=4, max_features=2, random_state=0),
    }[kind].fit(X[:30], Y[:30])
    run = from_voting(tmp_path / "run", made, X[30:], Y[30:])
    if kind in ("soft", "hard"):
        assert run["streams"].stream.values.tolist() == ["line", "tree"]
    found = collective.measure(run, resamples=10)
    assert found["collective_accuracy_final"].values[0] == pytest.approx(made.score(X[30:], Y[30:]))
    if kind == "soft":
        each = [one.predict_proba(X[30:]).argmax(1) == (Y[30:] == "yes") for one in made.estimators_]
        np.testing.assert_allclose(found["individual_accuracy"].values[0, 0], np.mean(each, axis=1))


def test_estimators_that_are_dropped_take_their_weight_with_them(tmp_path: Path) -> None:
    """scikit-learn keeps "drop" in named_estimators_, and weights of all that were declared."""
    declared = [("lr", object()), ("dt", "drop"), ("nb", object()), ("kn", object())]
    votes = np.stack([X[:, i] > 0 for i in range(3)], 1) @ np.array([5.0, 1.0, 1.0]) / 7
    answer = np.array(["no", "yes"])[(votes > 0.5).astype(int)]
    voting = ensemble(
        weights=[5, 9, 1, 1], predict=lambda x: answer, estimators=declared, named_estimators_=dict(declared)
    )
    run = from_voting(tmp_path / "run", voting, X, Y)
    assert run["streams"].stream.values.tolist() == ["lr", "nb", "kn"]
    whole = np.exp(run["streams"].collective_logits.values[0, 0, 0].astype(float))
    np.testing.assert_allclose(whole[:, 1] / whole.sum(1), votes, atol=1e-3)
    voting.weights = [1, 2]
    with pytest.raises(WaterjarError, match="expected one of each of 3 estimators"):
        from_voting(tmp_path / "other", voting, X, Y)


def test_weighted_voting_says_what_is_missing(tmp_path: Path) -> None:
    weighted = lambda x: np.average([Leaning(i).predict_proba(x) for i in range(3)], axis=0, weights=[5, 1, 1])  # noqa: E731
    found = collective.measure(from_voting(tmp_path / "run", ensemble(predict_proba=weighted), X, Y), resamples=20)
    assert np.isnan(found["shapley_accuracy"]).all() and np.isnan(found["ablation"]).all()
    assert "no contributions of streams: coalitions were not recorded, and no rule makes" in str(
        found["collective_remarks"].item()
    )


class Voting:
    """It votes, and has no probabilities: by the sign of one feature, in the words or the numbers of its classes."""

    def __init__(self, feature: int, names: list[Any]) -> None:
        self.feature, self.names = feature, np.array(names)

    def predict(self, x: Any) -> np.ndarray:
        return self.names[(x[:, self.feature] > 0).astype(int)]


@pytest.mark.parametrize("names", [["no", "yes"], [0, 1]])
def test_votes_are_enough_for_hard_voting(names: list[Any], tmp_path: Path) -> None:
    """scikit-learn fits the members of a VotingClassifier on the numbers of the classes, whatever these are called."""
    members = [Leaning(0), Voting(1, names), Voting(2, names)]
    answer = np.array(["no", "yes"])[((X > 0).sum(1) > 1).astype(int)]
    voting = SimpleNamespace(estimators_=members, classes_=np.array(["no", "yes"]), predict=lambda x: answer)
    found = collective.measure(from_voting(tmp_path / "run", voting, X, Y), resamples=20)
    right = (X > 0) == (Y == "yes")[:, None]
    np.testing.assert_allclose(found["individual_accuracy"].values[0, 0], right.mean(0))
    assert found["collective_accuracy_final"].item() == (answer == Y).mean()
    assert np.isfinite(found["shapley_accuracy"].values[0, 0, 0]).all()
    assert np.isnan(found["nll_individual"].values[0, 0]).tolist() == [False, True, True]
    assert "streams estimator_1, estimator_2 have infinite logits, which answer but have no probabilities" in str(
        found["collective_remarks"].item()
    )
    with pytest.raises(WaterjarError, match="has no predict_proba"):  # the mean of probabilities needs them
        from_voting(tmp_path / "other", SimpleNamespace(**vars(voting), predict_proba=soft), X, Y)
