"""What a learner gains and loses against its baseline, example by example."""

from __future__ import annotations

from waterjar.diagnose.examples.inputs import AnswerPair
from waterjar.diagnose.registry import Beside, metric
from waterjar.diagnose.result import Result
from waterjar.stats.mcnemar import mcnemar_p

_BESIDE = {
    "mcnemar_p": Beside((), "p of McNemar's test of this seed: of these two networks, not of other seeds"),
    "mcnemar_gained": Beside((), "examples that the learner alone has right", "example"),
    "mcnemar_lost": Beside((), "examples that the baseline alone has right", "example"),
}


@metric(
    "mcnemar_gain",
    family="examples",
    long_name="examples gained less examples lost against the baseline, as a share of all",
    formula="(b - c) / n, b right by the learner alone, c by the baseline alone; mcnemar_p by seed",
    direction="higher",
    range=(-1, 1),
    citation="McNemar 1947; Fagerland, Lydersen & Laake 2013 (mid-p); Dietterich 1998 (what it is of)",
    needs=("examples/correct",),
    relative=True,
    beside=_BESIDE,
    made_of=("example_accuracy",),
)
def _measure(pair: AnswerPair, *, mcnemar: str) -> tuple[Result, dict[str, Result]]:
    if pair.missing is not None:
        return pair.missing, dict.fromkeys(_BESIDE, pair.missing)
    gained = int(((pair.learner == 1) & (pair.baseline == 0)).sum())
    lost = int(((pair.learner == 0) & (pair.baseline == 1)).sum())
    n = len(pair.learner)
    numbers = (mcnemar_p(gained, lost, mcnemar), float(gained), float(lost))
    return Result((gained - lost) / n, n=n), {
        name: Result(number, n=n) for name, number in zip(_BESIDE, numbers, strict=True)
    }
