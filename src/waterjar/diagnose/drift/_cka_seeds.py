"""Do different seeds arrive at the same representation?"""

from __future__ import annotations

from waterjar.diagnose.drift._cka import linear_cka
from waterjar.diagnose.drift.inputs import Siblings
from waterjar.diagnose.registry import metric
from waterjar.diagnose.result import Result

ALONE = Result.missing("undefined", "no other seed with the same samples at the same snapshot")


@metric(
    "cka_seeds",
    family="drift",
    long_name="similarity (debiased linear CKA) of the last snapshot to that of other seeds, mean over them",
    formula="mean over other seeds of CKA(F_seed, F_other)",
    range=(-1, 1),
    citation="Kornblith et al. 2019, sec. 6",
    needs=("features",),
    summary="cka_seeds_final",
    between_seeds=True,
)
def _measure(siblings: Siblings) -> Result:
    pairs: dict[tuple[int, int], Result] = {}
    present = [(i, cloud) for i, cloud in enumerate(siblings.clouds) if cloud is not None]
    for k, (i, one) in enumerate(present):
        for j, two in present[k + 1 :]:
            pairs[i, j] = pairs[j, i] = linear_cka(one, two)
    seeds = range(len(siblings.clouds))
    return Result.stack([_mean([result for (i, _), result in pairs.items() if i == seed]) for seed in seeds])


def _mean(results: list[Result]) -> Result:
    """Over the other seeds that have a value; a seed whose own features are missing has none."""
    values = [float(result) for result in results if result.reason == "present"]
    if values:
        return Result(sum(values) / len(values), n=len(values))
    return results[0] if results else ALONE
