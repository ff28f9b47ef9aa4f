"""What a full evaluation found: one labelled result, under the keys of the seed document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from waterjar.diagnose.robustness import Robustness, attack_result, shift_result
from waterjar.errors import WaterjarError
from waterjar.probe.collective.failure import StreamFailure
from waterjar.run.reader import Run

KEYS = (
    "emergence",
    "test_acc",
    "fingerprint_diversity",
    "anchor_utilization",
    "stream_contributions",
    "robustness",
    "params",
    "efficiency",
    "adversarial",
    "stream_failure",
)


_WEAK = {
    "best_at_chance": "not surely above one constant answer",
    "best_below_probe": "far below a linear probe of its own features",
}
"""Flag -> why a head is no control."""
_PASSES = (
    "; they hear of each other, and what an absent stream leaves for the others beside its output (a message in a "
    "mailbox, say) still passes: what it is worth through that does not count"
)


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Any]):
    """A mapping with the keys of the seed document, made of one labelled tree of all numbers and their intervals.

    | key | what |
    |---|---|
    | emergence | emergence_ratio, collective_acc, individual_accs (stream -> accuracy), best_individual |
    | test_acc | accuracy of the collective on the test set |
    | fingerprint_diversity | diversity, similarity_matrix, avg_pairwise_similarity |
    | anchor_utilization | stream -> mean affinity to each anchor |
    | stream_contributions | stream -> accuracy lost without it |
    | robustness | clean, <shift> ..., avg_shifted, robustness |
    | params, efficiency | parameters; accuracy per million of them |
    | adversarial | clean_acc, adv_acc, robustness |
    | stream_failure | all, without_<name> ..., half_streams |

    The best stream is chosen on the validation set and everything is scored on the test set. A number that is not there
    is NaN, a mapping that is not there is empty; `passed_over` says why, in one sentence each.
    """

    tree: xr.DataTree
    """/collective: all metrics; /robustness: under every condition; /stream_failure."""
    run: Run
    """The probe run in which all of it is recorded."""
    passed_over: Mapping[str, str]
    values_by_key: Mapping[str, Any]
    remark: str = ""
    """What is wrong with the source; empty where nothing is."""

    def __getitem__(self, key: str) -> Any:
        return self.values_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_key)

    def __len__(self) -> int:
        return len(self.values_by_key)

    def __repr__(self) -> str:
        """The numbers that are asked for first, and what is not there."""
        best = self["emergence"]
        lines = [
            f"collective {best['collective_acc']:.4f}, best stream {best['best_individual']:.4f}, "
            f"rho {best['emergence_ratio']:.3f} [{self._bound('low'):.3f}, {self._bound('high'):.3f}]",
            *(f"the best stream's head is {why}: rho says little" for name, why in _WEAK.items() if self._is(name)),
            *([self.remark] if self.remark else []),
            *(f"without {name}: {why}" for name, why in self.passed_over.items()),
        ]
        return "\n".join(lines)

    def _is(self, flag: str) -> bool:
        found = self.tree["collective"].to_dataset()
        return flag in found and _number(found, flag) == 1.0

    def _bound(self, end: str) -> float:
        return _number(self.tree["collective"].to_dataset(), f"emergence_ratio_{end}")


def under_the_seeds_keys(
    metrics: xr.Dataset,
    parameters: int,
    failure: StreamFailure | None,
    robust: Robustness | None,
    passed_over: dict[str, str],
    *,
    coupled: bool = False,
) -> dict[str, Any]:
    """The seed's result out of metrics of the run, which has one snapshot of one repeat.

    `coupled`: streams change each other's outputs.
    """
    streams = [str(name) for name in metrics["stream"].values] if "stream" in metrics.coords else []
    accuracy = _number(metrics, "collective_accuracy")
    each = _table(metrics, "individual_accuracy")
    anchors = _table(metrics, "anchor_utilisation")
    lost = _table(metrics, "ablation")
    similarity = _table(metrics, "fingerprint_similarity")
    return {
        "emergence": {
            "emergence_ratio": _number(metrics, "emergence_ratio"),
            "collective_acc": accuracy,
            "individual_accs": {} if each is None else {name: float(each.sel(stream=name)) for name in streams},
            "best_individual": _number(metrics, "best_individual"),
        },
        "test_acc": accuracy,
        "fingerprint_diversity": {
            "diversity": _number(metrics, "fingerprint_diversity"),
            "similarity_matrix": np.full((0, 0), np.nan) if similarity is None else similarity.values,
            "avg_pairwise_similarity": _number(metrics, "pairwise_similarity"),
        },
        "anchor_utilization": {} if anchors is None else {n: anchors.sel(stream=n).values for n in streams},
        "stream_contributions": _contributions(lost, streams, passed_over, coupled),
        "robustness": _told(shift_result, robust, "robustness", passed_over),
        "params": parameters,
        "efficiency": _number(metrics, "parameter_efficiency"),
        "adversarial": _told(attack_result, robust, "adversarial", passed_over),
        "stream_failure": {} if failure is None else dict(failure),
    }


def _told(take: Any, robust: Robustness | None, key: str, passed_over: dict[str, str]) -> dict[str, float]:
    """A part of the seed's result; empty, and said why, where its conditions were not asked for."""
    if robust is None:
        return {}
    try:
        return dict(take(robust))
    except WaterjarError as error:
        passed_over[key] = str(error)
        return {}


def _contributions(
    lost: xr.DataArray | None, streams: list[str], passed_over: dict[str, str], coupled: bool
) -> dict[str, float]:
    """Accuracy lost without each stream: removed if the collective can be run so, else zeroed, else resampled."""
    if lost is None:
        return dict.fromkeys(streams, np.nan) if "not_a_number" in passed_over else {}
    for how in lost["absence"].values:
        own = lost.sel(absence=how)
        if not bool(np.isnan(own).all()):
            why = "" if how == "removed" else f"streams are {how}, since none can be removed"
            if how == "removed" and coupled and "removed" in passed_over:  # a rule makes the collective of outputs
                why = "streams are left out of the rule that makes the collective of their outputs, and still run"
            if why:
                passed_over["stream_contributions"] = why + (_PASSES if coupled else "")
            return {name: float(own.sel(stream=name)) for name in streams}
    return {}


def _table(metrics: xr.Dataset, name: str) -> xr.DataArray | None:
    """One snapshot of one repeat; None where all of it is missing."""
    if name not in metrics:
        return None
    found = metrics[name]
    found = found.isel({dim: -1 for dim in ("repeat", "snapshot") if dim in found.dims})
    return None if bool(np.isnan(found).all()) else found


def _number(metrics: xr.Dataset, name: str) -> float:
    found = _table(metrics, name)
    return np.nan if found is None else float(found)
